"""What the roles of the control loop hand each other on the bus. Ids and times are the engine's."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from proofstone.common.models import Contract

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Real = Annotated[float, Field(allow_inf_nan=False)]


class CriterionMode(StrEnum):
    VERIFIABLE = "verifiable"
    """The engine looks itself; no model is asked."""
    PLAUSIBLE = "plausible"
    """A model judges."""


class FailureClass(StrEnum):
    LOGICAL = "logical"
    """The approach is wrong."""
    ENVIRONMENTAL = "environmental"
    """Something was in the way of it."""
    MIXED = "mixed"
    """Of several failures: as many of the one as of the other."""


class PredicateKind(StrEnum):
    EXISTS = "exists"
    """The file `path` is there."""
    ABSENT = "absent"
    CONTAINS = "contains"
    """The file `path` holds `text`."""
    MATCHES = "matches"
    """A line of the file `path` matches the regular expression `text`."""
    OUTPUT_CONTAINS = "output_contains"
    """What the subtask, or the merged result, says holds `text`."""


class Predicate(Contract):
    """Something about files or the result that code can look at."""

    kind: PredicateKind
    path: str = ""
    text: str = ""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Predicate:
        if self.kind is not PredicateKind.OUTPUT_CONTAINS and not self.path:
            raise ValueError(f"{self.kind} needs a path")
        if self.kind not in (PredicateKind.EXISTS, PredicateKind.ABSENT) and not self.text:
            raise ValueError(f"{self.kind} needs a text")
        return self


def _plain(written: object) -> object:
    """A plain text is a criterion that is judged."""
    return {"criterion": written} if isinstance(written, str) else written


class Criterion(Contract):
    """What must be so. A verifiable one says how the engine can see it: by a command that exits 0, or a predicate."""

    criterion: str = Field(min_length=1, max_length=1000)
    mode: CriterionMode = CriterionMode.PLAUSIBLE
    command: str = Field(default="", max_length=4000)
    predicate: Predicate | None = None

    @model_validator(mode="after")
    def _can_be_seen(self) -> Criterion:
        seen = bool(self.command.strip()) + (self.predicate is not None)
        if self.mode is CriterionMode.VERIFIABLE and seen != 1:
            raise ValueError("a verifiable criterion has a command or a predicate, and one of them only")
        if self.mode is CriterionMode.PLAUSIBLE and seen:
            raise ValueError("what has a command or a predicate is verifiable: nobody judges it")
        return self


Criteria = Annotated[tuple[Annotated[Criterion, BeforeValidator(_plain)], ...], Field(min_length=1, max_length=40)]


class Constraints(Contract):
    scope: str | None = None
    deadline: str | None = None


class TaskSpec(Contract):
    """The person's words, carried into the loop. It has no criteria: what success means is for the planner to say."""

    task_id: str
    intent: str
    constraints: Constraints = Constraints()
    raw_input: str
    """Verbatim, never summarised."""
    clarification: str = ""
    """What the person answered to the perceiver's question, where there was one: verbatim too."""


class SubTask(Contract):
    subtask_id: str
    parent_task_id: str
    intent: str
    success_criteria: Criteria
    context: str = ""
    deadline: str | None = None
    """Nobody sets one here: what the person said of time is in the task, and how long it may take is the engine's."""
    sequence: int = Field(ge=1)
    """Those of one number run beside each other; the next number waits for all of them."""
    tools: tuple[str, ...] = ()
    """That it means to use: what the plan validator holds against what is blocked."""
    files: tuple[str, ...] = ()
    """That it means to change or to rest on."""


class DispatchManifest(Contract):
    task_id: str
    subtask_ids: tuple[str, ...] = Field(min_length=1)
    task_spec: TaskSpec | None = None
    dispatched_at: str
    task_criteria: Criteria
    """About the combined result."""


class ExecutionStatus(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"


class ExecutionResult(Contract):
    subtask_id: str
    status: ExecutionStatus
    output: JsonValue = None
    tool_calls: tuple[str, ...] = ()
    """Each with the name of its tool first: `grep TODO src`. The engine's own record of them."""
    crashed: str = ""
    """Why there is no result of its own: a crash, a timeout, a budget, an answer that could not be read."""


class CorrectionSignal(Contract):
    subtask_id: str
    attempt_number: int = Field(ge=1)
    failed_criterion: str
    failure_class: FailureClass
    what_was_wrong: str
    what_to_do: str


class CriterionVerdict(Contract):
    criterion: str
    mode: CriterionMode
    verdict: Literal["pass", "fail"]
    failure_class: FailureClass | None = None
    evidence: str = ""

    @model_validator(mode="after")
    def _a_failure_has_a_class(self) -> CriterionVerdict:
        if (self.verdict == "fail") != (self.failure_class is not None):
            raise ValueError("what failed has a failure_class, and nothing else has one")
        return self

    @property
    def failed(self) -> bool:
        return self.verdict == "fail"


class FailedCriterion(Contract):
    criterion: str
    failure_class: FailureClass


class Gap(Contract):
    """What had failed after one attempt."""

    attempt: int = Field(ge=1)
    failed_criteria: tuple[FailedCriterion, ...] = ()


class OutcomeStatus(StrEnum):
    MATCHED = "matched"
    FAILED = "failed"


class SubTaskOutcome(Contract):
    subtask_id: str
    parent_task_id: str
    status: OutcomeStatus
    output: JsonValue = None
    failure_reason: str | None = None
    criteria_verdicts: tuple[CriterionVerdict, ...] = ()
    gap_trajectory: tuple[Gap, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of the tools that it used."""
    targets: tuple[str, ...] = ()
    """Paths that they were used on."""
    obstacles: tuple[str, ...] = ()
    """Those of them at which a tool failed: what was in the way, if something was."""

    @model_validator(mode="after")
    def _what_matched_has_not_failed(self) -> SubTaskOutcome:
        if self.matched and any(verdict.failed for verdict in self.criteria_verdicts):
            raise ValueError("what matched has no criterion that failed")
        return self

    @property
    def matched(self) -> bool:
        return self.status is OutcomeStatus.MATCHED


class ReplanRequest(Contract):
    task_id: str
    gap_summary: str
    failed_subtasks: tuple[str, ...] = ()
    correction_count: int = Field(default=0, ge=0)
    elapsed_ms: int = Field(ge=0)
    outcomes: tuple[SubTaskOutcome, ...]
    merged_verdicts: tuple[CriterionVerdict, ...] = ()
    """Of the merged result, where it came to that: what was rejected there counts like any other failure."""
    recommendation: Literal["replan", "abandon"] = "replan"


class OutcomeSummary(Contract):
    """Everything matched and the merged result was verified."""

    task_id: str
    summary: str
    output: JsonValue = None
    elapsed_ms: int = Field(ge=0)
    outcomes: tuple[SubTaskOutcome, ...]
    merged_verdicts: tuple[CriterionVerdict, ...]


class Loss(Contract):
    D: Share
    """Distance of the result from what was asked for."""
    P: Share
    """How far the approach itself is to blame: 0 all environmental, 1 all logical."""
    Omega: Share
    """How much of the budget is spent."""
    L: Real


class Gradient(StrEnum):
    IMPROVING = "improving"
    STABLE = "stable"
    """Flat, and near."""
    WORSENING = "worsening"
    PLATEAU = "plateau"
    """Flat, and far."""

    @property
    def arrow(self) -> str:
        return {"improving": "↓", "stable": "→", "worsening": "↑", "plateau": "⊥"}[self.value]


class DirectiveName(StrEnum):
    ACCEPT = "accept"
    REFINE = "refine"
    CHANGE_PATH = "change_path"
    CHANGE_APPROACH = "change_approach"
    BREAK_SYMMETRY = "break_symmetry"
    ABANDON = "abandon"


class PlanDirective(Contract):
    model_config = ConfigDict(frozen=True, extra="forbid")

    task_id: str
    loss: Loss
    gradient: Gradient
    directive: DirectiveName
    blocked_tools: tuple[str, ...] = ()
    blocked_targets: tuple[str, ...] = ()
    failed_criterion: str = ""
    """The first of those that drive D."""
    failure_class: FailureClass = FailureClass.MIXED
    budget_pressure: Share
    grad_l: Real
    suggested_alternatives: tuple[str, ...] = ()
    """Where the path hint travels."""
    rationale: str


class FinalStatus(StrEnum):
    ACCEPTED = "accepted"
    PARTIAL = "partial"
    """Abandoned, with at least one subtask done."""
    ABANDONED = "abandoned"


class FinalResult(Contract):
    """Only the controller says this."""

    task_id: str
    status: FinalStatus
    summary: str
    output: JsonValue = None
    loss: Loss
    grad_l: Real
    replans: int = Field(ge=0)
    partial: tuple[str, ...] = ()
    """What was done, subtask by subtask, where it was abandoned."""
    next_moves: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _distance_says_whether_it_was_accepted(self) -> FinalResult:
        if (self.loss.D == 0) != (self.status is FinalStatus.ACCEPTED):
            raise ValueError("D is 0 exactly where it was accepted")
        return self
