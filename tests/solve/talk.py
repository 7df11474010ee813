"""Talking with the control loop: what roles would answer, and a run that follows a script.

Where a script says nothing, all goes well: the perceiver restates, the planner plans one subtask, the executor does it,
and everything is found to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.models import Completion, CompletionStatus
from proofstone.agents.roles.models.solve import (
    CriterionJudgement,
    FailureOutput,
    JudgementOutput,
    MergeOutput,
    PerceiveOutput,
    SolvePlanOutput,
    SubTaskDraft,
)
from proofstone.agents.roles.models.solve_messages import (
    AttemptGap,
    Criterion,
    CriterionFailure,
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    ExecutionResult,
    ExecutionStatus,
    FailureClass,
    Loss,
    OutcomeStatus,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.common.models import FrozenModel
from proofstone.runtime.rules import EffectDone
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskForFailureReport,
    AskMetaValidator,
    AskPerceiver,
    AskPerson,
    AskPlanner,
    AskValidator,
    CheckCriteria,
    CriteriaVerdicts,
    ElapsedTime,
    ExecutionRecord,
    MeasureTime,
    PublishMessage,
    PursueSubtasks,
    RecallMemory,
    ReportPlan,
    ReportRejectedPlan,
    ReportRound,
    SolveAgentFailure,
    SolveAgentReply,
    SolveEffect,
    SolveEffectResult,
    SolveResult,
    SubtaskEffect,
    SubtaskEffectResult,
    SubtaskOutcomes,
    UserReply,
)
from proofstone.solve.rules.gradient import POLICIES, LossWeights, Measurement
from proofstone.solve.rules.loop import SolveGoal, solve
from proofstone.solve.rules.subtask import pursue_subtask
from tests.talk import Prompter, drive, shorten
from tests.talk import Talk as BaseTalk

DONE = Completion(status=CompletionStatus.DONE, summary="done")
LOGICAL, ENVIRONMENTAL, MIXED = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL, FailureClass.MIXED
VERIFIABLE, PLAUSIBLE = CriterionMode.VERIFIABLE, CriterionMode.PLAUSIBLE

TASK = "t1"
RAW = "  Put the OLD store's rows into the new one…\n(ignore what I said before!)  "
INTENT = "Move the rows of the old store into the new one."
TOOLS = ("read", "glob", "grep", "run", "write", "edit")
SPEC = TaskSpec(task_id=TASK, intent=INTENT, raw_input=RAW)
OUT = SolveAgentFailure("no answer within 60 seconds")


# What roles answer.


def plausible(text: str = "nobody's balance changes") -> Criterion:
    return Criterion(criterion=text)


def verifiable(text: str = "its tests pass", command: str = "make test") -> Criterion:
    return Criterion(criterion=text, mode=VERIFIABLE, command=command)


def perceived(intent: str = INTENT, question: str = "") -> PerceiveOutput:
    return PerceiveOutput(completion=DONE, intent=intent, question=question)


def draft(
    *criteria: Criterion,
    intent: str = "Copy every row with a script",
    sequence: int = 1,
    tools: tuple[str, ...] = ("run",),
    files: tuple[str, ...] = ("src/copy.py",),
) -> SubTaskDraft:
    return SubTaskDraft(
        intent=intent, success_criteria=criteria or (plausible(),), sequence=sequence, tools=tools, files=files
    )


def plan(*drafts: SubTaskDraft, criteria: tuple[Criterion, ...] = ()) -> SolvePlanOutput:
    return SolvePlanOutput(
        completion=DONE,
        task_criteria=criteria or (plausible("both hold equally many customers"),),
        subtasks=drafts or (draft(),),
    )


def subtask(*criteria: Criterion, id: str = f"{TASK}-r1-s1") -> SubTask:
    return SubTask(subtask_id=id, parent_task_id=TASK, intent="Copy every row", success_criteria=criteria, sequence=1)


def done(
    *tools: str, targets: tuple[str, ...] = (), output: str = "copied", id: str = f"{TASK}-r1-s1", may: bool = True
) -> ExecutionRecord:
    return ExecutionRecord(
        ExecutionResult(subtask_id=id, status=ExecutionStatus.COMPLETED, output=output), tools, targets, may, targets
    )


def crash(why: str = "the process died", *, may: bool = False) -> ExecutionRecord:
    result = ExecutionResult(subtask_id=f"{TASK}-r1-s1", status=ExecutionStatus.FAILED, crashed=why)
    return ExecutionRecord(result, may_correct=may)


def word(number: int, failure: FailureClass | None = None, evidence: str = "row 7 says so") -> CriterionJudgement:
    return CriterionJudgement.model_validate(
        {
            "number": number,
            "verdict": "fail" if failure else "pass",
            "failure_class": failure and failure.value,
            "evidence": evidence,
        }
    )


def _numbered(words: Sequence[CriterionJudgement | FailureClass | None]) -> tuple[CriterionJudgement, ...]:
    return tuple(
        one if isinstance(one, CriterionJudgement) else word(number, one) for number, one in enumerate(words, start=1)
    )


def judgement(
    *words: CriterionJudgement | FailureClass | None, what_was_wrong: str = "", what_to_do: str = ""
) -> JudgementOutput:
    """About the criteria in their order, where only a class or nothing is said."""
    return JudgementOutput(
        completion=DONE, verdicts=_numbered(words), what_was_wrong=what_was_wrong, what_to_do=what_to_do
    )


WRONG, BLOCKED = judgement(LOGICAL), judgement(ENVIRONMENTAL)


def merge(
    *words: CriterionJudgement | FailureClass | None,
    meets: Literal["yes", "no", "ambiguous"] = "yes",
    why: str = "it is what they said",
) -> MergeOutput:
    return MergeOutput(
        completion=DONE,
        output="all is moved",
        summary="The rows are moved.",
        verdicts=_numbered(words or (None,)),
        meets_the_request=meets,
        why=why,
    )


def failure() -> FailureOutput:
    return FailureOutput(
        completion=DONE,
        partial=("the schema is there",),
        next_moves=("free the disk", "move fewer rows"),
        summary="Half of it is done.",
    )


def seen(criteria: Sequence[Criterion], *failures: FailureClass | None) -> CriteriaVerdicts:
    """What the engine saw of them: a class where it was not so."""
    classes = (*failures, *[None] * (len(criteria) - len(failures)))
    return CriteriaVerdicts(
        tuple(
            CriterionVerdict(
                criterion=one.criterion,
                mode=one.mode,
                verdict="fail" if of else "pass",
                failure_class=of,
                evidence="exit 1" if of else "exit 0",
            )
            for one, of in zip(criteria, classes, strict=True)
        )
    )


def came(of: SubTask, *, matched: bool = True, id: str | None = None) -> SubTaskOutcome:
    """An outcome, made up."""
    return SubTaskOutcome(
        subtask_id=of.subtask_id if id is None else id,
        parent_task_id=TASK,
        status=OutcomeStatus.MATCHED if matched else OutcomeStatus.FAILED,
        criteria_verdicts=seen(of.success_criteria, *() if matched else (LOGICAL,)).verdicts,
    )


# A run.

Asked = SolveEffect | SubtaskEffect
Given = SolveEffectResult | SubtaskEffectResult
Scripted = FrozenModel | Given | str | Callable[[Asked], Given]
Script = Mapping[str, Scripted | list[Scripted]]
"""By name of who is asked, what they say: in turn if it is a list, else each time."""


def name_of(need: Asked) -> str:
    """`plan 2.1` is the first attempt of round 2, `judge r1-s2.3` the third of that subtask."""
    match need:
        case PublishMessage(sender, recipient, message):
            return f"{sender} → {recipient}: {type(message).__name__}"
        case AskPlanner(round=round, attempt=attempt):
            return f"plan {round}.{attempt}"
        case PursueSubtasks(round=round, subtasks=subtasks):
            return f"pursue {round}.{subtasks[0].sequence}"
        case AskExecutor(subtask=of, attempt=attempt):
            return f"execute {_short(of.subtask_id)}.{attempt}"
        case AskValidator(subtask=of, attempt=attempt):
            return f"judge {_short(of.subtask_id)}.{attempt}"
        case CheckCriteria(where=where, attempt=attempt):
            return f"look {_short(where)}.{attempt}"
        case AskMetaValidator(round=round):
            return f"merge {round}"
        case MeasureTime(round=round):
            return f"time {round}"
        case ReportRejectedPlan(round=round, attempt=attempt):
            return f"not taken {round}.{attempt}"
        case ReportPlan(round=round):
            return f"planned {round}"
        case ReportRound(number=number):
            return f"round {number}"
        case AskPerceiver() | AskPerson() | RecallMemory() | AskForFailureReport():
            return {AskPerceiver: "perceive", AskPerson: "person", RecallMemory: "recall", AskForFailureReport: "fail"}[
                type(need)
            ]


def _short(id: str) -> str:
    return id.removeprefix(f"{TASK}-")


def well(need: Asked) -> Given:
    """What is sent where all goes well."""
    match need:
        case AskPerceiver():
            return SolveAgentReply(perceived())
        case AskPerson():
            return UserReply("the one in the cellar")
        case RecallMemory():
            return Calibration()
        case AskPlanner():
            return SolveAgentReply(plan())
        case AskExecutor(subtask=of):
            return done(*of.tools, targets=of.files, id=of.subtask_id)
        case AskValidator(criteria=criteria):
            return SolveAgentReply(judgement(*[None] * len(criteria)))
        case CheckCriteria(criteria=criteria):
            return seen(criteria)
        case AskMetaValidator(criteria=criteria):
            return SolveAgentReply(merge(*[None] * len(criteria)))
        case MeasureTime(round=round):
            return ElapsedTime(round * 1000)
        case AskForFailureReport():
            return OUT
        case _:
            return EffectDone()


@dataclass
class Talk(BaseTalk[Asked]):
    """All that was asked and said, in its order, and what came of it."""

    solved: SolveResult | None = None
    outcome: SubTaskOutcome | None = None

    @property
    def end(self) -> SolveResult:
        assert self.solved is not None
        return self.solved

    @property
    def fast(self) -> SubTaskOutcome:
        assert self.outcome is not None
        return self.outcome

    @property
    def names(self) -> list[str]:
        return [name_of(need) for need in self.needs]

    @property
    def asked(self) -> list[str]:
        """Those of whom something is wanted."""
        shown = (
            PublishMessage | PursueSubtasks | RecallMemory | MeasureTime | ReportRejectedPlan | ReportPlan | ReportRound
        )
        return [name_of(one) for one in self.needs if not isinstance(one, shown)]

    @property
    def said(self) -> list[str]:
        return [name_of(one) for one in self.needs if isinstance(one, PublishMessage)]

    @property
    def directives(self) -> list[DirectiveName]:
        return [one.directive for one in self.end.directives]

    def rounds(self) -> int:
        return len(self.end.readings)


_M = TypeVar("_M", bound=FrozenModel)


def messages(talk: Talk, kind: type[_M]) -> list[_M]:
    return [one.message for one in talk.needs if isinstance(one, PublishMessage) and isinstance(one.message, kind)]


def goal(*, weights: LossWeights | None = None, policy: str = "gradient", tools: tuple[str, ...] = TOOLS) -> SolveGoal:
    return SolveGoal(TASK, RAW, tools, "2026-03-01T09:00:00Z", weights or LossWeights(), POLICIES[policy])


ONCE = goal(weights=LossWeights(max_replans=0))
TWO_STEPS = plan(draft(), draft(sequence=2, intent="Count what was copied"))
BY_HAND = plan(draft(intent="Type what is missing", tools=("write",), files=("src/typed.py",)))
BY_DUMP = plan(draft(intent="Restore from a dump", tools=("grep",), files=("src/dump.py",)))


def converse(about: SolveGoal, answer: Callable[[Asked], Given]) -> Talk:
    """The whole of it: a Pursue that nobody answers is pursued, subtask by subtask."""
    talk = Talk()

    def send(need: SolveEffect) -> Given:
        talk.needs.append(need)
        sent = answer(need)
        if isinstance(need, PursueSubtasks) and not isinstance(sent, SubtaskOutcomes):
            return SubtaskOutcomes(tuple(_pursued(talk, need, one, answer) for one in need.subtasks))
        return sent

    talk.solved = drive(solve(about), send)  # type: ignore[arg-type]  # a script may send what is not wanted
    return talk


def _pursued(talk: Talk, need: PursueSubtasks, of: SubTask, answer: Callable[[Asked], Given]) -> SubTaskOutcome:
    def send(wanted: SubtaskEffect) -> Given:
        talk.needs.append(wanted)
        return answer(wanted)

    loop = pursue_subtask(need.spec, of, need.before, need.blocked_tools, need.blocked_targets)
    return drive(loop, send)  # type: ignore[arg-type]  # a script may send what is not wanted


def _as_given(said: Scripted | None, need: Asked) -> Given:
    if said is None:
        return well(need)
    if isinstance(said, FrozenModel):
        return SolveAgentReply(said)
    if isinstance(said, str):
        return UserReply(said)
    return said(need) if callable(said) else said


def follow(script: Script | None = None, about: SolveGoal | None = None) -> Talk:
    """All of the script must be used."""
    prompter: Prompter[Scripted] = Prompter(script or {}, shorten)
    talk = converse(about or goal(), lambda need: _as_given(prompter.read(name_of(need)), need))
    assert not prompter.unread(), f"nobody asked for {prompter.unread()}, only {talk.asked}"
    return talk


def fast(
    of: SubTask,
    script: Script | None = None,
    blocked_tools: tuple[str, ...] = (),
    blocked_targets: tuple[str, ...] = (),
) -> Talk:
    """One subtask."""
    prompter: Prompter[Scripted] = Prompter(script or {}, shorten)
    talk = Talk()
    pursued = PursueSubtasks(1, SPEC, (of,), (), blocked_tools, blocked_targets)
    talk.outcome = _pursued(talk, pursued, of, lambda need: _as_given(prompter.read(name_of(need)), need))
    assert not prompter.unread(), f"nobody asked for {prompter.unread()}, only {talk.asked}"
    return talk


def directive(
    name: DirectiveName, *, blocked_tools: tuple[str, ...] = (), blocked_targets: tuple[str, ...] = ()
) -> PlanDirective:
    return PlanDirective.model_validate(
        {
            "task_id": TASK,
            "loss": {"D": 1, "P": 1, "Omega": 0, "L": 0.9},
            "gradient": "plateau",
            "directive": name,
            "blocked_tools": blocked_tools,
            "blocked_targets": blocked_targets,
            "budget_pressure": 0,
            "grad_l": 0,
            "rationale": "a local minimum",
        }
    )


def verdict(
    name: str, failure: FailureClass | None = None, mode: CriterionMode = CriterionMode.VERIFIABLE
) -> CriterionVerdict:
    return CriterionVerdict(
        criterion=name, mode=mode, verdict="fail" if failure else "pass", failure_class=failure, evidence="seen"
    )


def outcome(
    *verdicts: CriterionVerdict, failed: bool | None = None, gaps: tuple[AttemptGap, ...] = ()
) -> SubTaskOutcome:
    """It failed where a verdict did, unless the test says otherwise."""
    if failed is None:
        failed = any(one.is_failed for one in verdicts)
    return SubTaskOutcome(
        subtask_id="s1",
        parent_task_id="t1",
        status=OutcomeStatus.FAILED if failed else OutcomeStatus.MATCHED,
        criteria_verdicts=verdicts,
        gap_trajectory=gaps,
    )


def gaps(*attempts: str) -> tuple[AttemptGap, ...]:
    """One of each attempt, with the criteria that failed in it: `gaps("a b", "b")`."""
    return tuple(
        AttemptGap(
            attempt=number,
            failed_criteria=tuple(CriterionFailure(criterion=name, failure_class=LOGICAL) for name in names.split()),
        )
        for number, names in enumerate(attempts, start=1)
    )


def at(
    *,
    D: float = 1.0,  # noqa: N803  the loss's own names
    P: float = 0.5,  # noqa: N803
    Omega: float = 0.0,  # noqa: N803
    nabla: float = 0.0,
    grad_l: float = 0.0,
    replans: int = 0,
    verified: bool = False,
    worsening: int = 0,
) -> Measurement:
    return Measurement(Loss(D=D, P=P, Omega=Omega, L=0.0), nabla, grad_l, replans, verified, worsening)
