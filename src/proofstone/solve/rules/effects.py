"""The effects that the loops yield, their results, and the final result."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve_messages import (
    CorrectionSignal,
    Criterion,
    CriterionVerdict,
    DispatchManifest,
    ExecutionResult,
    FinalResult,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.common.serialization import AnyModel, serializable
from proofstone.runtime.rules import EffectDone
from proofstone.solve.rules.gradient import Measurement

# Effects.


@serializable("solve.publish_message")
@dataclass(frozen=True)
class PublishMessage:
    """Publish a contract from one role to another on the bus. Result: an acknowledgement."""

    sender: str
    recipient: str
    message: AnyModel


@serializable("solve.ask_perceiver")
@dataclass(frozen=True)
class AskPerceiver:
    """Dispatch the perceiver. Result: a reply with a PerceivedOutput, or a failure."""

    raw_input: str
    clarification: str = ""


@serializable("solve.ask_person")
@dataclass(frozen=True)
class AskPerson:
    """Ask the user. Result: the reply of the user."""

    question: str


@serializable("solve.recall_memory")
@dataclass(frozen=True)
class RecallMemory:
    """Read what the memory knows about the task. Result: a Calibration."""

    spec: TaskSpec


@serializable("solve.ask_planner")
@dataclass(frozen=True)
class AskPlanner:
    """Dispatch the planner. Result: a reply with a SolvePlanOutput, or a failure."""

    round: int
    attempt: int
    """The attempt within this round: 2, if the first plan was rejected."""
    spec: TaskSpec
    calibration: Calibration
    directive: PlanDirective | None
    previous: tuple[SubTask, ...]
    outcomes: tuple[SubTaskOutcome, ...]
    rejected: str
    merged: tuple[CriterionVerdict, ...] = ()
    """The verdicts on the merged result of the previous plan."""
    blocked_tools: tuple[str, ...] = ()
    """All current blocks, whoever set them and when."""
    blocked_targets: tuple[str, ...] = ()


@serializable("solve.report_rejected_plan")
@dataclass(frozen=True)
class ReportRejectedPlan:
    """Tell the observer that a plan breaks the rules. Result: an acknowledgement."""

    round: int
    attempt: int
    why: str


@serializable("solve.report_plan")
@dataclass(frozen=True)
class ReportPlan:
    """Tell the observer that a plan was accepted. Result: an acknowledgement."""

    round: int
    subtasks: tuple[SubTask, ...]


@serializable("solve.pursue_subtasks")
@dataclass(frozen=True)
class PursueSubtasks:
    """Pursue these subtasks with `subtask.pursue`, in parallel where that is allowed. Result: their outcomes, in
    order.
    """

    round: int
    spec: TaskSpec
    subtasks: tuple[SubTask, ...]
    before: tuple[SubTaskOutcome, ...]
    blocked_tools: tuple[str, ...]
    blocked_targets: tuple[str, ...] = ()


@serializable("solve.ask_executor")
@dataclass(frozen=True)
class AskExecutor:
    """Dispatch an executor. Result: the record of the execution."""

    spec: TaskSpec
    subtask: SubTask
    attempt: int
    before: tuple[SubTaskOutcome, ...]
    corrections: tuple[CorrectionSignal, ...]
    blocked_tools: tuple[str, ...]
    blocked_targets: tuple[str, ...] = ()


@serializable("solve.check_criteria")
@dataclass(frozen=True)
class CheckCriteria:
    """Let the engine run the commands and check the predicates. Result: the verdicts, in the order of the criteria."""

    where: str
    """The subtask or the task, as a name for the journal."""
    attempt: int
    """The attempt at a subtask. For the task, 1 is the check before the merge and 2 the check of its output."""
    criteria: tuple[Criterion, ...]
    output: str


@serializable("solve.ask_validator")
@dataclass(frozen=True)
class AskValidator:
    """Dispatch the validator. Result: a reply with a JudgementOutput, or a failure."""

    subtask: SubTask
    attempt: int
    result: ExecutionResult
    criteria: tuple[Criterion, ...]
    """The criteria that the engine cannot check."""


@serializable("solve.ask_meta_validator")
@dataclass(frozen=True)
class AskMetaValidator:
    """Dispatch the meta-validator. Result: a reply with a MergeOutput, or a failure."""

    round: int
    manifest: DispatchManifest
    outcomes: tuple[SubTaskOutcome, ...]
    criteria: tuple[Criterion, ...]
    """The criteria that the engine cannot check."""
    seen: tuple[CriterionVerdict, ...] = ()
    """The verdicts of the engine so far."""


@serializable("solve.measure_time")
@dataclass(frozen=True)
class MeasureTime:
    """Measure how long the task has taken. Result: the elapsed time."""

    round: int


@serializable("solve.report_round")
@dataclass(frozen=True)
class ReportRound:
    """Tell the observer that a round has ended. Result: an acknowledgement."""

    number: int
    reading: Measurement
    directive: PlanDirective
    """`accept` or `abandon` in the last round."""
    outcomes: tuple[SubTaskOutcome, ...]
    subtasks: tuple[SubTask, ...] = ()
    """Empty if there was no plan."""
    elapsed_ms: int = 0
    """Milliseconds since the start of the task."""
    rejected: tuple[str, ...] = ()
    """Why plans of this round were rejected."""
    merged: tuple[CriterionVerdict, ...] = ()
    """The verdicts on the merged result, if there was one."""


@serializable("solve.ask_for_failure_report")
@dataclass(frozen=True)
class AskForFailureReport:
    """Ask the planner what was achieved, and what to do next. Result: a reply with a FailureOutput, or a failure."""

    spec: TaskSpec
    directive: PlanDirective
    outcomes: tuple[SubTaskOutcome, ...]
    previous: tuple[SubTask, ...] = ()
    """The last plan."""
    merged: tuple[CriterionVerdict, ...] = ()


AskLoopAgent = AskPerceiver | AskPlanner | AskMetaValidator | AskForFailureReport
SolveEffect = (
    PublishMessage
    | AskPerceiver
    | AskPerson
    | RecallMemory
    | AskPlanner
    | ReportRejectedPlan
    | ReportPlan
    | PursueSubtasks
    | AskMetaValidator
    | CheckCriteria
    | MeasureTime
    | ReportRound
    | AskForFailureReport
)
SubtaskEffect = PublishMessage | AskExecutor | CheckCriteria | AskValidator


# Results.


@serializable("solve.agent_reply")
@dataclass(frozen=True)
class SolveAgentReply:
    output: AnyModel


@serializable("solve.agent_failure")
@dataclass(frozen=True)
class SolveAgentFailure:
    why: str


@serializable("solve.user_reply")
@dataclass(frozen=True)
class UserReply:
    text: str


@serializable("solve.execution_record")
@dataclass(frozen=True)
class ExecutionRecord:
    """The executor's claims, and its actions according to the engine's own record."""

    result: ExecutionResult
    tools: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    may_correct: bool = True
    """Whether another attempt could help: not after a crash, an infrastructure error or a safety refusal."""
    obstacles: tuple[str, ...] = ()
    """The targets at which a tool failed."""


@serializable("solve.criteria_verdicts")
@dataclass(frozen=True)
class CriteriaVerdicts:
    verdicts: tuple[CriterionVerdict, ...]


@serializable("solve.subtask_outcomes")
@dataclass(frozen=True)
class SubtaskOutcomes:
    outcomes: tuple[SubTaskOutcome, ...]


@serializable("solve.elapsed_time")
@dataclass(frozen=True)
class ElapsedTime:
    ms: int


SolveEffectResult = (
    SolveAgentReply
    | SolveAgentFailure
    | UserReply
    | EffectDone
    | Calibration
    | SubtaskOutcomes
    | CriteriaVerdicts
    | ElapsedTime
)
SubtaskEffectResult = SolveAgentReply | SolveAgentFailure | EffectDone | ExecutionRecord | CriteriaVerdicts

SubtaskWorkflow = Generator[SubtaskEffect, SubtaskEffectResult, SubTaskOutcome]


@dataclass(frozen=True)
class SolveResult:
    result: FinalResult
    spec: TaskSpec
    readings: tuple[Measurement, ...] = ()
    directives: tuple[PlanDirective, ...] = ()
    outcomes: tuple[SubTaskOutcome, ...] = ()
    """The outcomes of the last round."""
    subtasks: tuple[SubTask, ...] = ()
    rejected: tuple[str, ...] = ()
    """The rejected plans, with the reasons."""
    rounds: tuple[ReplanRequest | OutcomeSummary, ...] = ()
    """The reports of the meta-validator to the controller, in order."""
    all_subtasks: tuple[SubTask, ...] = ()
    """The subtasks of all rounds."""


SolveWorkflow = Generator[SolveEffect, SolveEffectResult, SolveResult]
