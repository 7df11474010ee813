"""A bench: a person's repository, Proofstone's state beside it, and a work tree in which executors are put to work."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from proofstone.agents.backends.factory import build_backend
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import Dispatcher
from proofstone.agents.executors.context import ExecutionContext, ExecutionOutcome, SandboxedShell
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.gate_agents import GateAgentFactory
from proofstone.agents.roles.models.gate import Assignment, CheckSummary, ReviewRequest
from proofstone.agents.spending import SpendingMeter
from proofstone.common.models import Assurance, Budget, Verdict
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.sandbox.job import BindMount, JobLimits, Sandbox, SandboxView
from proofstone.testing import acp_agent

SOURCE = Path(acp_agent.__file__).parents[2]
"""The folder that agents import `proofstone` from. It may lie below a temporary folder, which sandboxes hide."""


@dataclass
class Bench:
    folder: Path
    sandbox: Sandbox
    limits: JobLimits = field(default_factory=lambda: JobLimits(seconds=60))
    includes: tuple[str, ...] = ()
    """Files of the person's folder that the sandbox shows."""
    cancel: threading.Event = field(default_factory=threading.Event)
    said: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    output: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        write(self.root, {"a.txt": "the person's own\n", ".venv/pyvenv.cfg": "", ".venv/lib/m.py": "x = 1\n"})
        write(self.work_tree, {"a.txt": "a\n", "src/b.txt": "b\n"})
        write(self.state, {"ledger": "secret\n"})
        (self.folder / "home").mkdir()
        self.scratch.mkdir()

    @property
    def strongest(self) -> bool:
        return self.sandbox.level is Assurance.BUBBLEWRAP

    @property
    def root(self) -> Path:
        """The person's repository."""
        return self.folder / "project"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def work_tree(self) -> Path:
        return self.state / "work" / "files"

    @property
    def scratch(self) -> Path:
        return self.state / "scratch"

    @property
    def view(self) -> SandboxView:
        return SandboxView(
            root=self.root,
            files=self.work_tree,
            work_tree=self.work_tree,
            home=self.folder / "home",
            dependencies=(self.root / ".venv",),
            includes=tuple(BindMount(self.root / name, self.root / name) for name in self.includes),
            masked=(self.state,),
            visible=(Path(sys.prefix), Path(sys.base_prefix), SOURCE),
        )

    def site(self, *, view: SandboxView | None = None, heard: Callable[[], bool] = lambda: False) -> ExecutionContext:
        shell = SandboxedShell(
            sandbox=self.sandbox,
            view=view or self.view,
            variables={"PATH": os.environ["PATH"], "HOME": str(self.folder / "home")},
            limits=self.limits,
            scratch=self.scratch,
            sink=_Collected(self.output),
            cancel=self.cancel,
        )
        return ExecutionContext(
            self.work_tree, self.scratch, shell, heard, self.said.append, on_text=self.heard.append, cancel=self.cancel
        )

    def casting(self, listen: ReadLine | None = None) -> GateAgentFactory:
        """Who executes and who reviews here; a script lies in the bench's folder."""
        dispatcher = Dispatcher(MessageBus(self.ledger, assigned().run_id), SpendingMeter(Budget()))
        return GateAgentFactory(
            lambda specs: build_backend(specs, folder=self.folder, listen=listen), dispatcher, listen
        )

    @cached_property
    def ledger(self) -> SqliteLedger:
        return SqliteLedger(self.state / "own" / "ledger.sqlite")

    def execute(self, spec: str, assignment: Assignment | None = None) -> ExecutionOutcome:
        return self.casting().build_executor([spec]).execute(assignment or assigned(), self.site())

    def run(self, command: str, *, seconds: float | None = 60) -> ExecutionOutcome:
        return self.execute(f"cmd:{command}", assigned(seconds=seconds))

    def script(self, text: str, assignment: Assignment | None = None) -> ExecutionOutcome:
        (self.folder / "s.yaml").write_text(text)
        return self.execute("script:s.yaml", assignment)

    def printed(self) -> str:
        return self.output.decode("utf-8", "replace")

    def files(self) -> set[str]:
        """Everything in the work tree: files, links and empty folders."""
        found = [path for path in self.work_tree.rglob("*") if path.is_symlink() or path.is_file() or empty(path)]
        return {path.relative_to(self.work_tree).as_posix() for path in found}


@dataclass(frozen=True)
class _Collected:
    into: bytearray

    def write(self, data: bytes, /) -> None:
        self.into.extend(data)


def empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def assigned(*, task: str = "task-02", attempt: int = 1, seconds: float | None = 60) -> Assignment:
    return Assignment(
        run_id="20260226T143000Z-abcdef",
        task_id=task,
        task_name="Greet the user",
        plan="A plan",
        files=("a.txt",),
        action="Greet.",
        verify=("test -f a.txt",),
        done=("a.txt greets",),
        attempt=attempt,
        max_attempts=3,
        base_commit="0" * 40,
        deadline_seconds=seconds,
        prompt="Greet.",
    )


def asked(*, attempt: int = 1, seconds: float | None = 60) -> ReviewRequest:
    return ReviewRequest(
        run_id="20260226T143000Z-abcdef",
        task_id="task-02",
        task_name="Greet the user",
        attempt=attempt,
        action="Greet.",
        done=("a.txt greets",),
        files=("a.txt",),
        claim=None,
        diff="+hello\n",
        checks=(CheckSummary(name="verify", verdict=Verdict.PASS),),
        criteria=("it is friendly",),
        deadline_seconds=seconds,
    )
