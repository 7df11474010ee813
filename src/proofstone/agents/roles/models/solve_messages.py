"""The messages of the control loop on the bus. The engine assigns ids and times."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from proofstone.common.models import FrozenModel

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]


class CriterionMode(StrEnum):
    VERIFIABLE = "verifiable"
    """The engine checks it itself; no model is asked."""
    PLAUSIBLE = "plausible"
    """A model judges."""


class FailureClass(StrEnum):
    LOGICAL = "logical"
    """The approach is wrong."""
    ENVIRONMENTAL = "environmental"
    """Something in the environment was in the way."""
    MIXED = "mixed"
    """There are as many logical failures as environmental ones."""


class PredicateKind(StrEnum):
    EXISTS = "exists"
    """The file `path` exists."""
    ABSENT = "absent"
    CONTAINS = "contains"
    """The file `path` contains `text`."""
    MATCHES = "matches"
    """A line of the file `path` matches the regular expression `text`."""
    OUTPUT_CONTAINS = "output_contains"
    """The output of the subtask, or the merged result, contains `text`."""


class Predicate(FrozenModel):
    """A property of files or of the result that code can check."""

    kind: PredicateKind
    path: str = ""
    text: str = ""

    @model_validator(mode="after")
    def _check_required_fields(self) -> Predicate:
        if self.kind is not PredicateKind.OUTPUT_CONTAINS and not self.path:
            raise ValueError(f"{self.kind} needs a path")
        if self.kind not in (PredicateKind.EXISTS, PredicateKind.ABSENT) and not self.text:
            raise ValueError(f"{self.kind} needs a text")
        return self


def _read_text(value: object) -> object:
    """Read a plain text as a criterion that a model judges."""
    return {"criterion": value} if isinstance(value, str) else value


class Criterion(FrozenModel):
    """A criterion. A verifiable one says how the engine checks it: by a command that exits 0, or by a predicate."""

    criterion: str = Field(min_length=1, max_length=1000)
    mode: CriterionMode = CriterionMode.PLAUSIBLE
    command: str = Field(default="", max_length=4000)
    predicate: Predicate | None = None

    @model_validator(mode="after")
    def _check_mode(self) -> Criterion:
        checks = bool(self.command.strip()) + (self.predicate is not None)
        if self.mode is CriterionMode.VERIFIABLE and checks != 1:
            raise ValueError("a verifiable criterion needs either a command or a predicate, and not both")
        if self.mode is CriterionMode.PLAUSIBLE and checks:
            raise ValueError("a criterion with a command or a predicate must be verifiable: no model judges it")
        return self


Criteria = Annotated[tuple[Annotated[Criterion, BeforeValidator(_read_text)], ...], Field(min_length=1, max_length=40)]


class Constraints(FrozenModel):
    scope: str | None = None
    deadline: str | None = None


class TaskSpec(FrozenModel):
    """The task in the person's words. It has no criteria: the planner defines what success means."""

    task_id: str
    intent: str
    constraints: Constraints = Constraints()
    raw_input: str
    """Verbatim, never summarised."""
    clarification: str = ""
    """The person's answer to the perceiver's question, if there was one, also verbatim."""


class SubTask(FrozenModel):
    subtask_id: str
    parent_task_id: str
    intent: str
    success_criteria: Criteria
    context: str = ""
    deadline: str | None = None
    """When the engine gives the subtask up, if no person works on it. It is known when the subtask is handed out, and
    only its message states it."""
    sequence: int = Field(ge=1)
    """Subtasks with the same number run in parallel; the next number waits for all of them."""
    tools: tuple[str, ...] = ()
    """The tools that it is going to use. The plan validator compares them with the blocked tools."""
    files: tuple[str, ...] = ()
    """The paths that it is going to change or rely on."""


class DispatchManifest(FrozenModel):
    task_id: str
    subtask_ids: tuple[str, ...] = Field(min_length=1)
    task_spec: TaskSpec | None = None
    dispatched_at: str
    task_criteria: Criteria
    """Criteria for the combined result."""


class ExecutionStatus(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"


class ExecutionResult(FrozenModel):
    subtask_id: str
    status: ExecutionStatus
    output: JsonValue = None
    tool_calls: tuple[str, ...] = ()
    """The engine's record of the calls, each with the name of its tool first: `grep TODO src`."""
    crashed: str = ""
    """Why the executor gave no result: a crash, a timeout, a spent budget, an unreadable answer."""


class CorrectionSignal(FrozenModel):
    subtask_id: str
    attempt_number: int = Field(ge=1)
    failed_criterion: str
    failure_class: FailureClass
    what_was_wrong: str
    what_to_do: str


class CriterionVerdict(FrozenModel):
    criterion: str
    mode: CriterionMode
    verdict: Literal["pass", "fail"]
    failure_class: FailureClass | None = None
    evidence: str = ""

    @model_validator(mode="after")
    def _check_failure_class(self) -> CriterionVerdict:
        if (self.verdict == "fail") != (self.failure_class is not None):
            raise ValueError("a failed criterion needs a failure_class, and a passed one must not have any")
        return self

    @property
    def is_failed(self) -> bool:
        return self.verdict == "fail"


class CriterionFailure(FrozenModel):
    criterion: str
    failure_class: FailureClass


class AttemptGap(FrozenModel):
    """The criteria that failed in one attempt."""

    attempt: int = Field(ge=1)
    failed_criteria: tuple[CriterionFailure, ...] = ()


class OutcomeStatus(StrEnum):
    MATCHED = "matched"
    FAILED = "failed"


class SubTaskOutcome(FrozenModel):
    subtask_id: str
    parent_task_id: str
    status: OutcomeStatus
    output: JsonValue = None
    failure_reason: str | None = None
    criteria_verdicts: tuple[CriterionVerdict, ...] = ()
    gap_trajectory: tuple[AttemptGap, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of the tools that the subtask used."""
    targets: tuple[str, ...] = ()
    """Paths that the tools were used on."""
    obstacles: tuple[str, ...] = ()
    """The targets at which a tool failed, which may have been in the way."""

    @model_validator(mode="after")
    def _check_verdicts(self) -> SubTaskOutcome:
        if self.is_matched and any(verdict.is_failed for verdict in self.criteria_verdicts):
            raise ValueError("a matched outcome must not have a failed criterion")
        return self

    @property
    def is_matched(self) -> bool:
        return self.status is OutcomeStatus.MATCHED


class ReplanRequest(FrozenModel):
    task_id: str
    gap_summary: str
    failed_subtasks: tuple[str, ...] = ()
    correction_count: int = Field(default=0, ge=0)
    elapsed_ms: int = Field(ge=0)
    outcomes: tuple[SubTaskOutcome, ...]
    merged_verdicts: tuple[CriterionVerdict, ...] = ()
    """The verdicts on the merged result, if there was one. A rejection there counts like any other failure."""
    recommendation: Literal["replan", "abandon"] = "replan"


class OutcomeSummary(FrozenModel):
    """The outcome of a task whose subtasks all matched and whose merged result was verified."""

    task_id: str
    summary: str
    output: JsonValue = None
    elapsed_ms: int = Field(ge=0)
    outcomes: tuple[SubTaskOutcome, ...]
    merged_verdicts: tuple[CriterionVerdict, ...]


class Loss(FrozenModel):
    D: Fraction
    """The distance of the result from the request."""
    P: Fraction
    """How far the approach itself is to blame: 0 all environmental, 1 all logical."""
    Omega: Fraction
    """How much of the budget is spent."""
    L: FiniteFloat


class Gradient(StrEnum):
    IMPROVING = "improving"
    STABLE = "stable"
    """The loss does not change, and the goal is near."""
    WORSENING = "worsening"
    PLATEAU = "plateau"
    """The loss does not change, and the goal is far."""

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


class PlanDirective(FrozenModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    task_id: str
    loss: Loss
    gradient: Gradient
    directive: DirectiveName
    blocked_tools: tuple[str, ...] = ()
    blocked_targets: tuple[str, ...] = ()
    failed_criterion: str = ""
    """The first failed criterion that contributes to D."""
    failure_class: FailureClass = FailureClass.MIXED
    budget_pressure: Fraction
    grad_l: FiniteFloat
    suggested_alternatives: tuple[str, ...] = ()
    """Hints for another path."""
    rationale: str


class FinalStatus(StrEnum):
    ACCEPTED = "accepted"
    PARTIAL = "partial"
    """Abandoned, with at least one subtask done."""
    ABANDONED = "abandoned"


class FinalResult(FrozenModel):
    """The final result of a task, which only the controller publishes."""

    task_id: str
    status: FinalStatus
    summary: str
    output: JsonValue = None
    loss: Loss
    grad_l: FiniteFloat
    replans: int = Field(ge=0)
    partial: tuple[str, ...] = ()
    """The finished subtasks of an abandoned task."""
    next_moves: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_distance(self) -> FinalResult:
        if (self.loss.D == 0) != (self.status is FinalStatus.ACCEPTED):
            raise ValueError("D must be 0 exactly if the result was accepted")
        return self
