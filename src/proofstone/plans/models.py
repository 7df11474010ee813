"""A plan as its author wrote it: frontmatter and tasks. Proofstone assigns the task ids and rewrites references to
them.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from proofstone.common.models import FrozenModel


class TaskType(StrEnum):
    """What happens to a task: an executor works on it, or a person is asked."""

    AUTO = "auto"
    HUMAN_VERIFY = "checkpoint:human-verify"
    DECISION = "checkpoint:decision"
    HUMAN_ACTION = "checkpoint:human-action"

    @property
    def is_checkpoint(self) -> bool:
        """Whether the run stops here for a person, instead of executing the task."""
        return self is not TaskType.AUTO


class PlanTask(FrozenModel):
    """A task of a plan. A checkpoint has neither files nor a verify command."""

    id: str
    """`task-01`, by position in the document."""
    name: str
    type: TaskType = TaskType.AUTO
    files: tuple[str, ...] = ()
    """The files that the task may change: paths from the root of the repository, or globs."""
    action: str = ""
    verify: tuple[str, ...] = ()
    """Commands that must exit with 0. Proofstone runs each of them itself."""
    heldout: tuple[str, ...] = ()
    """More verify commands, which the executor never sees."""
    must_pass: tuple[str, ...] = ()
    """Ids of tests that must exist, run, pass and depend on the change."""
    done: tuple[str, ...] = ()
    """The done criteria, split by line or `;`."""
    depends_on: tuple[str, ...] = ()
    """Ids of the tasks that must be finished first, from attributes, waves or the order of the document."""
    wave: int = Field(default=1, ge=1)
    """Derived: 1 + the highest wave among the dependencies."""
    flaky_allowed: bool = False
    test_changes: str = ""
    """Why the task may change what tests expect: the attribute `test-changes`."""
    line: int = 1
    """The line of the document on which the task begins."""
    prompt: str = ""
    """For a checkpoint: what the person should look at, decide or do, as written."""


class RequiredArtifact(FrozenModel):
    """A file that must exist when the last task is finished."""

    path: str
    provides: str = ""
    contains: str = ""
    """Text that the file must contain."""
    exports: tuple[str, ...] = ()
    min_lines: int = 0
    line: int = 0


class KeyLink(FrozenModel):
    """A reference from one file to another that must exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    via: str = ""
    pattern: str = ""
    """A regular expression that must match in `source`."""
    line: int = 0


class MustHaves(FrozenModel):
    """What must be true when the plan is finished, from its frontmatter."""

    truths: tuple[str, ...] = ()
    artifacts: tuple[RequiredArtifact, ...] = ()
    key_links: tuple[KeyLink, ...] = ()


class Plan(FrozenModel):
    """A plan, as read from its document."""

    path: str
    """The path as the user gave it."""
    title: str
    """The first heading, else the first line of the objective, else the file name."""
    phase: str = ""
    plan: str = ""
    """An identifier is text: `01` stays `01`."""
    type: str = ""
    wave: str = ""
    depends_on: tuple[str, ...] = ()
    """Other plans. A plan is complete when its SUMMARY.md exists."""
    files_modified: tuple[str, ...] = ()
    autonomous: bool = True
    must_haves: MustHaves = MustHaves()
    objective: str = ""
    context: str = ""
    tasks: tuple[PlanTask, ...]

    def get_task(self, id: str) -> PlanTask:
        """Return the task with this id."""
        return next(task for task in self.tasks if task.id == id)


class ProblemSeverity(StrEnum):
    ERROR = "error"
    """The plan cannot be run."""
    WARNING = "warning"


class PlanProblem(FrozenModel):
    """A problem in a plan: where it is, and how to fix it."""

    severity: ProblemSeverity
    rule: str
    """`missing-verify`, `vacuous-verify`, `unknown-dependency`, `cycle` …"""
    line: int
    message: str
    hint: str
    task: str | None = None
