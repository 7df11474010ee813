"""What the loops ask for, what they are sent, and what is left when they have ended."""

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
from proofstone.common.models import Contract
from proofstone.solve.rules.gradient import Reading

# What the loops ask for.


@dataclass(frozen=True)
class Say:
    """A contract passes from one role to another, over the bus. Sent back: Noted."""

    sender: str
    recipient: str
    message: Contract


@dataclass(frozen=True)
class AskPerceiver:
    """Sent back: Heard with a PerceivedOutput, or Failed."""

    raw_input: str
    clarification: str = ""


@dataclass(frozen=True)
class AskPerson:
    """Sent back: Answered."""

    question: str


@dataclass(frozen=True)
class Recall:
    """What memory says about it. Sent back: Calibration."""

    spec: TaskSpec


@dataclass(frozen=True)
class AskPlanner:
    """Sent back: Heard with a SolvePlanOutput, or Failed."""

    round: int
    attempt: int
    """Of this round: 2, if the plan before was not taken."""
    spec: TaskSpec
    calibration: Calibration
    directive: PlanDirective | None
    previous: tuple[SubTask, ...]
    outcomes: tuple[SubTaskOutcome, ...]
    rejected: str
    merged: tuple[CriterionVerdict, ...] = ()
    """What was said of the merged result of the previous plan."""
    blocked_tools: tuple[str, ...] = ()
    """All that are in force, whoever has blocked them and when."""
    blocked_targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotTaken:
    """A plan breaks the rules: for whoever looks on. Sent back: Noted."""

    round: int
    attempt: int
    why: str


@dataclass(frozen=True)
class Planned:
    """A plan was taken: for whoever looks on. Sent back: Noted."""

    round: int
    subtasks: tuple[SubTask, ...]


@dataclass(frozen=True)
class Pursue:
    """Have these subtasks done, beside each other where they may be: each by `fast.pursue`. Sent back: Pursued, in
    their order."""

    round: int
    spec: TaskSpec
    subtasks: tuple[SubTask, ...]
    before: tuple[SubTaskOutcome, ...]
    blocked_tools: tuple[str, ...]
    blocked_targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class AskExecutor:
    """Sent back: Executed."""

    spec: TaskSpec
    subtask: SubTask
    attempt: int
    before: tuple[SubTaskOutcome, ...]
    corrections: tuple[CorrectionSignal, ...]
    blocked_tools: tuple[str, ...]
    blocked_targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Look:
    """The engine runs the commands and looks at the predicates. Sent back: Looked, in their order."""

    where: str
    """Which subtask, or the task: a name for the record."""
    attempt: int
    """Of the subtask. Of the task, 1 is the look before the merge and 2 the one at its output."""
    criteria: tuple[Criterion, ...]
    output: str


@dataclass(frozen=True)
class AskValidator:
    """Sent back: Heard with a JudgementOutput, or Failed."""

    subtask: SubTask
    attempt: int
    result: ExecutionResult
    criteria: tuple[Criterion, ...]
    """Those that nobody can look up."""


@dataclass(frozen=True)
class AskMetaValidator:
    """Sent back: Heard with a MergeOutput, or Failed."""

    round: int
    manifest: DispatchManifest
    outcomes: tuple[SubTaskOutcome, ...]
    criteria: tuple[Criterion, ...]
    """Those that nobody can look up."""
    seen: tuple[CriterionVerdict, ...] = ()
    """What the engine has looked at already."""


@dataclass(frozen=True)
class AskTime:
    """How long the task has taken. Sent back: Elapsed."""

    round: int


@dataclass(frozen=True)
class Round:
    """A round has ended: for whoever looks on. Sent back: Noted."""

    number: int
    reading: Reading
    directive: PlanDirective
    """Of the last round `accept` or `abandon`."""
    outcomes: tuple[SubTaskOutcome, ...]
    subtasks: tuple[SubTask, ...] = ()
    """None: there was no plan."""
    elapsed_ms: int = 0
    """Since the task began."""
    rejected: tuple[str, ...] = ()
    """Why plans of this round were not taken."""
    merged: tuple[CriterionVerdict, ...] = ()
    """What was said of the merged result, where it came to that."""


@dataclass(frozen=True)
class AskForFailure:
    """What was done all the same, and what could be done next. Sent back: Heard with a FailureOutput, or Failed."""

    spec: TaskSpec
    directive: PlanDirective
    outcomes: tuple[SubTaskOutcome, ...]
    previous: tuple[SubTask, ...] = ()
    """The last plan."""
    merged: tuple[CriterionVerdict, ...] = ()


Need = (
    Say
    | AskPerceiver
    | AskPerson
    | Recall
    | AskPlanner
    | NotTaken
    | Planned
    | Pursue
    | AskMetaValidator
    | Look
    | AskTime
    | Round
    | AskForFailure
)
FastNeed = Say | AskExecutor | Look | AskValidator


# What they are sent.


@dataclass(frozen=True)
class Heard:
    output: Contract


@dataclass(frozen=True)
class Failed:
    why: str


@dataclass(frozen=True)
class Answered:
    text: str


@dataclass(frozen=True)
class Noted:
    pass


@dataclass(frozen=True)
class Executed:
    """What the executor claims, and what it did, by the engine's own record."""

    result: ExecutionResult
    tools: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    may_correct: bool = True
    """Whether trying again could help: not after a crash, an infrastructure error or a safety refusal."""
    obstacles: tuple[str, ...] = ()
    """Of the targets, those at which a tool failed."""


@dataclass(frozen=True)
class Looked:
    verdicts: tuple[CriterionVerdict, ...]


@dataclass(frozen=True)
class Pursued:
    outcomes: tuple[SubTaskOutcome, ...]


@dataclass(frozen=True)
class Elapsed:
    ms: int


Sent = Heard | Failed | Answered | Noted | Calibration | Pursued | Looked | Elapsed
FastSent = Heard | Failed | Noted | Executed | Looked

FastLoop = Generator[FastNeed, FastSent, SubTaskOutcome]


@dataclass(frozen=True)
class Solved:
    result: FinalResult
    spec: TaskSpec
    readings: tuple[Reading, ...] = ()
    directives: tuple[PlanDirective, ...] = ()
    outcomes: tuple[SubTaskOutcome, ...] = ()
    """Of the last round."""
    subtasks: tuple[SubTask, ...] = ()
    rejected: tuple[str, ...] = ()
    """Plans that were not taken, and why."""
    rounds: tuple[ReplanRequest | OutcomeSummary, ...] = ()
    """What the meta-validator told the controller, in order."""
    all_subtasks: tuple[SubTask, ...] = ()
    """Of all rounds."""


Loop = Generator[Need, Sent, Solved]
