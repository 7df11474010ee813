"""What an executor is, where it works, and what came of it.

An executor gets an assignment and a site: a work tree of its own, and one way to run commands there, inside the
sandbox. What it says afterwards is a claim. How it ended is what the engine saw.

What an architect is: somebody who sees the candidate and what was found out about it, and gives a verdict.

Whatever is not a verdict of the schema approves nothing.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from proofstone.agents.executors.output import mask_written, masked
from proofstone.agents.models import Activity, Worked
from proofstone.agents.roles.models.gate import (
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    NoVerdict,
    ReviewRequest,
    Waiting,
)
from proofstone.agents.rules.answer import Malformed, parse
from proofstone.check.reports.rerun import merge
from proofstone.common.models import Assurance, Finding
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.sandbox.job import Bind, Execution, Job, Limits, OwnHome, Place, Sandbox, Sink, View
from proofstone.sandbox.login_guard import guarded
from proofstone.sandbox.mounts import at_home

_HANDED = Path("/run/proofstone/handed")
_NAMED = 3
"""Files that a line names."""


@dataclass(frozen=True)
class ShellJob:
    """A command line for the site's shell."""

    command: str
    seconds: float | None = None
    """Its deadline; None: as long as the site allows."""
    env: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, Path] = field(default_factory=dict)
    """Files of the engine's that it may read, by the variable that will name them to it."""
    writes: Mapping[str, Path] = field(default_factory=dict)
    """Files that it may write, by variable; each lies in a folder of its own, which is there already."""
    on_output: Callable[[bytes], None] | None = None
    home: OwnHome | None = None
    """A HOME of its own, in place of the person's."""
    hosts: tuple[str, ...] | None = None
    """The only hosts that it can reach; None: as the site says. Where the sandbox cannot see to it, a line tells."""
    stdin: int | None = None
    """A file descriptor that it reads from; None: nothing."""
    visible: tuple[Path, ...] = ()
    """Folders that it needs, wherever they lie: also below what nobody else sees."""
    shown: bool = True
    """Whether what it prints is for whoever watches. A protocol is only kept, and passed to `on_output`."""
    say: Callable[[str], None] = lambda _line: None
    """A line for whoever watches."""
    on_refused: Callable[[str], None] = lambda _host: None
    """Told of each host that it was kept from: `example.com:443`. It is called in another thread."""
    enough: threading.Event | None = None
    """Set when it is no longer needed: it is then ended, and that is no fault of its own (`Execution.ended`)."""
    mask: tuple[bytes, ...] = ()
    """What is not kept of its output: keys that it was given."""


class Sight(Protocol):
    """Who can tell what changed in the work tree."""

    def worked(self, impact: Iterable[str] = ()) -> Worked:
        """`impact`: what was said about interfaces before the work."""
        ...


class Unchanged:
    """Where nobody changes anything."""

    def worked(self, impact: Iterable[str] = ()) -> Worked:
        return Worked()


@dataclass(frozen=True)
class Site:
    """Where an executor or an architect works and what it may use; made by the engine for one attempt."""

    work_tree: Path
    """On the machine."""
    scratch: Path
    """Of this attempt, on the machine."""
    run: Callable[[ShellJob], Execution]
    """Runs a command line in the sandbox, in the work tree."""
    heard: Callable[[], bool] = lambda: False
    """Whether the person has said that they are finished: `proofstone done`."""
    say: Callable[[str], None] = lambda _line: None
    """A line for whoever watches."""
    hear: Callable[[str], None] = lambda _text: None
    """What an agent is saying, piece by piece, while it says it."""
    doing: Callable[[str], None] = lambda _line: None
    """What happens between two turns of an agent, in one line: a tool that it uses, an answer that it must repair."""
    noted: Callable[[Activity], None] = lambda _activity: None
    """What a program with tools of its own is seen doing; it goes on record."""
    scope: tuple[str, ...] = ()
    """Paths and patterns (`proofstone.common.globs`) that may be changed here; empty: none."""
    level: Assurance = Assurance.PLAIN
    """Of the sandbox that runs it."""
    secret: tuple[str, ...] = ()
    """Further patterns of files that no agent is shown."""
    seen_at: Path | None = None
    """Where the work tree is, as what runs here sees it; None: where it is on the machine."""
    sight: Sight = field(default_factory=Unchanged)
    cancel: threading.Event = field(default_factory=threading.Event)
    mask: SecretMask = NO_SECRETS
    """Values that are taken out of what tools show here."""


@dataclass(frozen=True)
class Ran:
    """What came of one execution, as the engine saw it, and what the executor claims."""

    claim: ExecutorResult | None
    """None: it is malformed, or it never came to that."""
    malformed: str = ""
    """Why the result is not of the schema, and where."""
    exit_code: int | None = None
    timed_out: bool = False
    crashed: str = ""
    """The signal or limit that ended it, or why the sandbox could not start it."""
    cancelled: bool = False
    duration_ms: int = 0
    ended: str = ""
    """How it came to an end that was not its own, in words: also for a deadline."""
    drifted: bool = False
    """It was stopped, because it did not understand its task or had left it."""
    findings: tuple[Finding, ...] = ()
    """What was found out about it while it worked."""


class Executor(Protocol):
    @property
    def spec(self) -> str:
        """As the person wrote it: `cmd:./agent.sh`."""
        ...

    def execute(self, assignment: Assignment, site: Site) -> Ran: ...


@dataclass(frozen=True)
class SandboxedShell:
    """What `Site.run` usually is: `/bin/sh -c` in the sandbox, with everything it prints in the sink."""

    sandbox: Sandbox
    view: View
    """With a work tree for an executor; without one, what is written is thrown away, and runs come one at a time."""
    variables: Mapping[str, str]
    limits: Limits
    scratch: Path
    sink: Sink
    cancel: threading.Event
    on_output: Callable[[bytes], None] | None = None
    guards: Path | None = None
    """A folder of Proofstone's state, for all runs that share a login (`sandbox/startup.py`); None: for each run its
    own."""
    mask: SecretMask = NO_SECRETS
    """Values that are taken out of what is printed here, and of the files that a job hands back."""

    @property
    def root(self) -> Path:
        """Where what runs here finds its tree. Programs are told before they run."""
        return self.view.root if self._is_strongest else self.view.work_tree or self._copy_at

    @property
    def _copy_at(self) -> Path:
        return self.scratch / "shown"

    @property
    def _is_strongest(self) -> bool:
        return self.sandbox.level is Assurance.BUBBLEWRAP

    def __call__(self, job: ShellJob) -> Execution:
        scratch = Path(tempfile.mkdtemp(prefix="shell-", dir=self.scratch))
        view = replace(
            self.view,
            handed=self._handed(job),
            own_home=job.home or self.view.own_home,
            hosts=self.view.hosts if job.hosts is None else job.hosts,
            visible=(*self.view.visible, *job.visible),
            unmasked=job.visible,
            copy_at=self._copy_at,
        )
        place = self.sandbox.place(view, scratch)
        limits = self.limits if job.seconds is None else replace(self.limits, seconds=job.seconds)
        for line in () if self._is_strongest else _not_kept_from(view):
            job.say(f"without bubblewrap {line}")
        with (
            masked(self.sink, job.mask) as sink,
            self._guarded(job, view.own_home, scratch) if view.own_home else nullcontext(),
        ):
            execution = self.sandbox.run(
                Job(
                    argv=("/bin/sh", "-c", job.command),
                    cwd=place.root,
                    env=self._variables(job, place),
                    view=view,
                    place=place,
                    scratch=scratch,
                    limits=limits,
                    cancel=self.cancel,
                    on_output=self._tell(job),
                    stdin=job.stdin,
                    enough=job.enough,
                    on_refused=job.on_refused,
                    mask=self.mask,
                ),
                sink,
            )
        for path in job.writes.values():
            mask_written(path, self.mask)
        return execution

    def _guarded(self, job: ShellJob, own: OwnHome, scratch: Path) -> AbstractContextManager[None]:
        return guarded(own, self.guards or scratch / "guards", job.say, sealed=self._is_strongest)

    @staticmethod
    def _handed(job: ShellJob) -> tuple[Bind, ...]:
        read = [Bind(path, _HANDED / variable / path.name) for variable, path in job.reads.items()]
        written = [Bind(path.parent, _HANDED / variable, writable=True) for variable, path in job.writes.items()]
        return (*read, *written)

    def _variables(self, job: ShellJob, place: Place) -> dict[str, str]:
        found = [str(path) for path in place.handed]
        read = dict(zip(job.reads, found, strict=False))
        folders = dict(zip(job.writes, found[len(job.reads) :], strict=True))
        written = {variable: f"{folder}/{job.writes[variable].name}" for variable, folder in folders.items()}
        # What Python compiles is no work of the executor's.
        temporary = {"TMPDIR": str(place.temporary), "PYTHONPYCACHEPREFIX": str(place.temporary / "pycache")}
        modules = {"PYTHONPATH": ":".join(map(str, place.module_path))} if place.module_path else {}
        base = at_home(self.variables, place.home, self.view.home) if place.home else self.variables
        return merge(base, modules) | temporary | dict(job.env) | read | written

    def _tell(self, job: ShellJob) -> Callable[[bytes], None]:
        listeners = [listener for listener in (self.on_output if job.shown else None, job.on_output) if listener]

        def tell(data: bytes) -> None:
            for listener in listeners:
                listener(data)

        return tell


def _not_kept_from(view: View) -> Iterator[str]:
    """What it takes mounts and a network of its own to keep it from."""
    if view.hosts:
        yield f"nothing keeps it to {', '.join(view.hosts)}: it can reach any host"
    there = [name for name in view.hidden if view.work_tree and (view.work_tree / name).is_file()]
    if there:
        files = "1 file that may hold secrets" if len(there) == 1 else f"{len(there)} files that may hold secrets"
        more = ", …" if len(there) > _NAMED else ""
        yield f"it can read {', '.join(there[:_NAMED])}{more}: {files}"


Reviewed = ArchitectVerdict | Waiting | NoVerdict


class Architect(Protocol):
    @property
    def spec(self) -> str:
        """As the person wrote it."""
        ...

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        """`site` holds the candidate; what is written there is thrown away."""
        ...


def verdict_in(written: bytes | Malformed | None, spec: str) -> ArchitectVerdict | NoVerdict:
    """The verdict that was written. Whose it is, is known here and not said by them."""
    if written is None:
        return NoVerdict(why="no verdict was given")
    verdict = written if isinstance(written, Malformed) else parse(written, ArchitectVerdict)
    if isinstance(verdict, Malformed):
        return NoVerdict(why=f"the verdict is malformed: {verdict.why}")
    return verdict.model_copy(update={"by": spec})


def cut_short(ended: Ran) -> NoVerdict:
    """A review that did not come to its own end."""
    why = ended.claim.error if ended.claim and ended.claim.error else ended.ended
    return NoVerdict(why=why, timed_out=ended.timed_out, cancelled=ended.cancelled)
