"""The interfaces of executors and architects, and the site where they work.

An executor gets an assignment and a site: a work tree of its own, and a way to run commands there, inside the sandbox.
What it says afterwards is a claim; how it ended is what the engine observed. An architect sees the candidate and the
findings about it, and gives a verdict. An answer that does not match the schema approves nothing.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from proofstone.agents.executors.output import mask_output_file, mask_sink
from proofstone.agents.models import Activity, WorkSnapshot
from proofstone.agents.roles.models.gate import (
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    NoVerdict,
    PendingReview,
    ReviewRequest,
)
from proofstone.agents.rules.answer import MalformedAnswer, parse_answer
from proofstone.check.reports.rerun import merge_variables
from proofstone.common.models import Assurance, Finding
from proofstone.common.secrets import NO_SECRETS, SecretMask
from proofstone.sandbox.job import (
    BindMount,
    JobLimits,
    OutputSink,
    PrivateHome,
    Sandbox,
    SandboxJob,
    SandboxPaths,
    SandboxResult,
    SandboxView,
)
from proofstone.sandbox.login_guard import guard_logins
from proofstone.sandbox.mounts import build_home_variables

_EXCHANGE_FOLDER = Path("/run/proofstone/handed")
_MOST_NAMED = 3
"""How many files a message names."""


@dataclass(frozen=True)
class ShellCommand:
    """A command line for the site's shell."""

    command: str
    seconds: float | None = None
    """The time limit; None for the limit of the site."""
    env: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, Path] = field(default_factory=dict)
    """Files of the engine that the command may read, by the environment variable that names them."""
    writes: Mapping[str, Path] = field(default_factory=dict)
    """Files that the command may write, by variable. Each is in a folder of its own, which exists already."""
    on_output: Callable[[bytes], None] | None = None
    home: PrivateHome | None = None
    """A HOME of its own, instead of the person's."""
    hosts: tuple[str, ...] | None = None
    """The only hosts that it can reach; None for those of the site. A line warns if the sandbox cannot enforce it."""
    stdin: int | None = None
    """A file descriptor for its standard input, if any."""
    visible: tuple[Path, ...] = ()
    """Folders that it needs, even if they are inside hidden folders."""
    is_output_shown: bool = True
    """Whether its output is shown to the person. The output of a protocol is only stored and passed to `on_output`."""
    say: Callable[[str], None] = lambda _line: None
    """Called with a line for the person."""
    on_refused: Callable[[str], None] = lambda _host: None
    """Called on another thread with each host that the command was not allowed to reach: `example.com:443`."""
    stop_event: threading.Event | None = None
    """Set when the command is no longer needed. It is then ended, without an error (`Execution.was_stopped`)."""
    mask: tuple[bytes, ...] = ()
    """Values that are removed from its output, such as keys that it was given."""


class WorkTreeObserver(Protocol):
    """Reports what changed in the work tree."""

    def observe_changes(self, impact: Iterable[str] = ()) -> WorkSnapshot:
        """Return the changes. `impact` is what the agent said about interfaces before the work."""
        ...


class NoChanges:
    """Reports no changes, for a site where nobody changes anything."""

    def observe_changes(self, impact: Iterable[str] = ()) -> WorkSnapshot:
        return WorkSnapshot()


@dataclass(frozen=True)
class ExecutionContext:
    """Where an executor or an architect works and what it may use. The engine makes one for each attempt."""

    work_tree: Path
    """The path of the work tree on the machine."""
    scratch: Path
    """The scratch folder of this attempt on the machine."""
    run: Callable[[ShellCommand], SandboxResult]
    """Runs a command line in the sandbox, in the work tree."""
    is_done: Callable[[], bool] = lambda: False
    """Whether the person has run `proofstone done`."""
    say: Callable[[str], None] = lambda _line: None
    """Called with a line for the person."""
    on_text: Callable[[str], None] = lambda _text: None
    """Called with the text of an agent, piece by piece, while it is written."""
    on_progress: Callable[[str], None] = lambda _line: None
    """Called with a line about what happens between two turns, such as a tool call or a repair."""
    on_activity: Callable[[Activity], None] = lambda _activity: None
    """Called with each activity of a program with its own tools, to record it."""
    scope: tuple[str, ...] = ()
    """Paths and patterns (`proofstone.common.globs`) that may be changed here; empty if there are none."""
    level: Assurance = Assurance.PLAIN
    """The assurance level of the sandbox."""
    secret: tuple[str, ...] = ()
    """Further patterns of files that no agent may see."""
    sandbox_path: Path | None = None
    """The path of the work tree inside the sandbox; None if it is the same as on the machine."""
    observer: WorkTreeObserver = field(default_factory=NoChanges)
    cancel: threading.Event = field(default_factory=threading.Event)
    mask: SecretMask = NO_SECRETS
    """Secret values that are removed from the output of tools."""


@dataclass(frozen=True)
class ExecutionOutcome:
    """The outcome of one execution as the engine observed it, and the claim of the executor."""

    claim: ExecutorResult | None
    """None if the claim is malformed or there is none."""
    malformed: str = ""
    """Why the result does not match the schema, and where."""
    exit_code: int | None = None
    timed_out: bool = False
    crashed: str = ""
    """The signal or limit that ended the program, or why the sandbox could not start it."""
    cancelled: bool = False
    duration_ms: int = 0
    end_reason: str = ""
    """Why the execution was ended from outside, in words, also for a time limit."""
    missing_program: str = ""
    """The program that was not found, if that is why it failed."""
    drifted: bool = False
    """Whether the agent was stopped because it misunderstood its task or drifted away from it."""
    findings: tuple[Finding, ...] = ()
    """Findings about the agent's behaviour while it worked."""
    corrections: int | None = None
    """How often it corrected itself after a verify command had failed; None if nobody could count."""


class Executor(Protocol):
    @property
    def spec(self) -> str:
        """The spec as the person wrote it: `cmd:./agent.sh`."""
        ...

    def execute(self, assignment: Assignment, site: ExecutionContext) -> ExecutionOutcome: ...


@dataclass(frozen=True)
class SandboxedShell:
    """The usual `Site.run`: runs `/bin/sh -c` in the sandbox and writes all output to the sink."""

    sandbox: Sandbox
    view: SandboxView
    """Has a work tree for an executor. Without one, writes are thrown away and commands run one at a time."""
    variables: Mapping[str, str]
    limits: JobLimits
    scratch: Path
    sink: OutputSink
    cancel: threading.Event
    on_output: Callable[[bytes], None] | None = None
    guards: Path | None = None
    """A folder of Proofstone's state for all runs that share a login (`sandbox/login_guard.py`); None if each run has
    its own."""
    mask: SecretMask = NO_SECRETS
    """Secret values that are removed from the output and from the files that a job writes."""

    @property
    def root(self) -> Path:
        """The path of the tree inside the sandbox. Programs need it before they run."""
        return self.view.root if self._is_strongest else self.view.work_tree or self._copy_path

    @property
    def _copy_path(self) -> Path:
        return self.scratch / "shown"

    @property
    def _is_strongest(self) -> bool:
        return self.sandbox.level is Assurance.BUBBLEWRAP

    def __call__(self, job: ShellCommand) -> SandboxResult:
        scratch = Path(tempfile.mkdtemp(prefix="shell-", dir=self.scratch))
        view = replace(
            self.view,
            engine_binds=self._build_binds(job),
            own_home=job.home or self.view.own_home,
            hosts=self.view.hosts if job.hosts is None else job.hosts,
            visible=(*self.view.visible, *job.visible),
            unmasked=job.visible,
            copy_at=self._copy_path,
        )
        place = self.sandbox.prepare(view, scratch)
        limits = self.limits if job.seconds is None else replace(self.limits, seconds=job.seconds)
        for line in () if self._is_strongest else _describe_gaps(view):
            job.say(f"without bubblewrap {line}")
        with (
            mask_sink(self.sink, job.mask) as sink,
            self._guard_login(job, view.own_home, scratch) if view.own_home else nullcontext(),
        ):
            execution = self.sandbox.run(
                SandboxJob(
                    argv=("/bin/sh", "-c", job.command),
                    cwd=place.root,
                    env=self._build_variables(job, place),
                    view=view,
                    paths=place,
                    scratch=scratch,
                    limits=limits,
                    cancel=self.cancel,
                    on_output=self._combine_listeners(job),
                    stdin=job.stdin,
                    stop=job.stop_event,
                    on_refused=job.on_refused,
                    mask=self.mask,
                ),
                sink,
            )
        for path in job.writes.values():
            mask_output_file(path, self.mask)
        return execution

    def _guard_login(self, job: ShellCommand, own: PrivateHome, scratch: Path) -> AbstractContextManager[None]:
        return guard_logins(own, self.guards or scratch / "guards", job.say, sealed=self._is_strongest)

    @staticmethod
    def _build_binds(job: ShellCommand) -> tuple[BindMount, ...]:
        read = [BindMount(path, _EXCHANGE_FOLDER / variable / path.name) for variable, path in job.reads.items()]
        written = [
            BindMount(path.parent, _EXCHANGE_FOLDER / variable, writable=True) for variable, path in job.writes.items()
        ]
        return (*read, *written)

    def _build_variables(self, job: ShellCommand, place: SandboxPaths) -> dict[str, str]:
        paths = [str(path) for path in place.engine_paths]
        read = dict(zip(job.reads, paths, strict=False))
        folders = dict(zip(job.writes, paths[len(job.reads) :], strict=True))
        written = {variable: f"{folder}/{job.writes[variable].name}" for variable, folder in folders.items()}
        # Files that Python compiles are not part of the executor's work.
        temporary = {"TMPDIR": str(place.temporary), "PYTHONPYCACHEPREFIX": str(place.temporary / "pycache")}
        modules = {"PYTHONPATH": ":".join(map(str, place.module_path))} if place.module_path else {}
        base = build_home_variables(self.variables, place.home, self.view.home) if place.home else self.variables
        return merge_variables(base, modules) | temporary | dict(job.env) | read | written

    def _combine_listeners(self, job: ShellCommand) -> Callable[[bytes], None]:
        listeners = [
            listener for listener in (self.on_output if job.is_output_shown else None, job.on_output) if listener
        ]

        def notify(data: bytes) -> None:
            for listener in listeners:
                listener(data)

        return notify


def _describe_gaps(view: SandboxView) -> Iterator[str]:
    """Yield what a job can do because the sandbox has no mounts and no network of its own."""
    if view.hosts:
        yield f"nothing keeps it to {', '.join(view.hosts)}: it can reach any host"
    readable = [name for name in view.hidden if view.work_tree and (view.work_tree / name).is_file()]
    if readable:
        files = "1 file that may hold secrets" if len(readable) == 1 else f"{len(readable)} files that may hold secrets"
        ellipsis = ", …" if len(readable) > _MOST_NAMED else ""
        yield f"it can read {', '.join(readable[:_MOST_NAMED])}{ellipsis}: {files}"


ReviewOutcome = ArchitectVerdict | PendingReview | NoVerdict


class Architect(Protocol):
    @property
    def spec(self) -> str:
        """The spec as the person wrote it."""
        ...

    def review(self, request: ReviewRequest, site: ExecutionContext) -> ReviewOutcome:
        """Review the candidate, which is at the site. Files written there are thrown away."""
        ...


def parse_verdict(written: bytes | MalformedAnswer | None, spec: str) -> ArchitectVerdict | NoVerdict:
    """Parse a written verdict. Its author is set here and not taken from the text."""
    if written is None:
        return NoVerdict(why="no verdict was given")
    verdict = written if isinstance(written, MalformedAnswer) else parse_answer(written, ArchitectVerdict)
    if isinstance(verdict, MalformedAnswer):
        return NoVerdict(why=f"the verdict is malformed: {verdict.why}")
    return verdict.model_copy(update={"by": spec})


def build_aborted_review(ended: ExecutionOutcome) -> NoVerdict:
    """Return the result of a review that was ended from outside."""
    why = ended.claim.error if ended.claim and ended.claim.error else ended.end_reason
    return NoVerdict(why=why, timed_out=ended.timed_out, cancelled=ended.cancelled)
