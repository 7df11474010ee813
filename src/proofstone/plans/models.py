"""A plan as its author wrote it: frontmatter and tasks. Ids are the engine's; references are rewritten to them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from proofstone.common.models import Contract


class TaskType(StrEnum):
    AUTO = "auto"
    HUMAN_VERIFY = "checkpoint:human-verify"
    DECISION = "checkpoint:decision"
    HUMAN_ACTION = "checkpoint:human-action"

    @property
    def is_checkpoint(self) -> bool:
        """Whether it stops for the person instead of being executed."""
        return self is not TaskType.AUTO


class PlanTask(Contract):
    """One task. A checkpoint has neither files nor a verify command of its own."""

    id: str
    """`task-01`, by position in the document."""
    name: str
    type: TaskType = TaskType.AUTO
    files: tuple[str, ...] = ()
    """What it may change: paths from the repository's root, or globs."""
    action: str = ""
    verify: tuple[str, ...] = ()
    """Command lines that must exit 0, each run by the engine."""
    heldout: tuple[str, ...] = ()
    """Further ones that the executor is never shown."""
    must_pass: tuple[str, ...] = ()
    """Tests, by id, that must be there, be executed, pass, and depend on the change."""
    done: tuple[str, ...] = ()
    """The criteria, split by line or `;`."""
    depends_on: tuple[str, ...] = ()
    """Ids of tasks that must be finished first, from attributes, waves or the order of the document."""
    wave: int = Field(default=1, ge=1)
    """Derived: 1 + the highest wave it depends on."""
    flaky_allowed: bool = False
    test_changes: str = ""
    """The author's reason, if the task is to change what tests expect: the attribute `test-changes`."""
    line: int = 1
    """Where it begins in the document."""
    prompt: str = ""
    """Of a checkpoint: what the person is asked to see, decide or do, as written."""


class RequiredArtifact(Contract):
    """A file that must be there when the last task is finished."""

    path: str
    provides: str = ""
    contains: str = ""
    """Text that it must hold."""
    exports: tuple[str, ...] = ()
    min_lines: int = 0
    line: int = 0


class KeyLink(Contract):
    """Something in one file that must refer to another."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    via: str = ""
    pattern: str = ""
    """A regular expression that must match in `source`."""
    line: int = 0


class MustHaves(Contract):
    truths: tuple[str, ...] = ()
    artifacts: tuple[RequiredArtifact, ...] = ()
    key_links: tuple[KeyLink, ...] = ()


class Plan(Contract):
    path: str
    """As the person named it."""
    title: str
    """The first heading, else the objective's first line, else the file's name."""
    phase: str = ""
    plan: str = ""
    """Identifiers are text: `01` stays `01`."""
    type: str = ""
    wave: str = ""
    depends_on: tuple[str, ...] = ()
    """Other plans, complete when their SUMMARY.md exists."""
    files_modified: tuple[str, ...] = ()
    autonomous: bool = True
    must_haves: MustHaves = MustHaves()
    objective: str = ""
    context: str = ""
    tasks: tuple[PlanTask, ...]

    def task(self, id: str) -> PlanTask:
        return next(task for task in self.tasks if task.id == id)


class ProblemSeverity(StrEnum):
    ERROR = "error"
    """The plan cannot be run."""
    WARNING = "warning"


class PlanProblem(Contract):
    """Something wrong with a plan, where it is, and what would be right."""

    severity: ProblemSeverity
    rule: str
    """`missing-verify`, `vacuous-verify`, `unknown-dependency`, `cycle` …"""
    line: int
    message: str
    hint: str
    task: str | None = None
