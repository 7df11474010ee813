"""Talking with the pipeline: a conversation that follows a script. Where it says nothing, all goes well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from proofstone.agents.models import Completion, CompletionStatus
from proofstone.agents.roles.models.gate import AttemptFailure, FailureReason, FailureType, TaskState
from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import (
    AcceptanceCriterion,
    Alternative,
    Concern,
    DesignDecision,
    DesignOutput,
    FindingCategory,
    KnowledgeOutput,
    PanelFinding,
    PanelOutput,
    PlannedFile,
    PlannedTask,
    PlanOutput,
    Requirement,
    ResearchFinding,
    ResearchFocus,
    ResearchOutput,
    ReviewFocus,
    ReviewScope,
    SpecOutput,
)
from proofstone.common.models import Confidence, FrozenModel, Lane, ReviewVerdict, Severity, Verdict, as_reason
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import FinalChecks, GateSummary, KnownIssue, PlanGateSummary, RunMode
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AgentReply,
    ApprovalDecision,
    AskAgent,
    AskDesign,
    AskForApproval,
    AskKnowledge,
    AskPlan,
    AskResearch,
    AskReview,
    AskSpec,
    AwaitFix,
    CheckCounts,
    CommitChange,
    CommitResult,
    CountChecks,
    CountReviews,
    Implement,
    MergedCheckResult,
    PendingAnswer,
    PipelineEffect,
    PipelineEffectResult,
    PipelineGoal,
    PipelineResult,
    PlanGateResult,
    RecordNote,
    ReviewCounts,
    RunAllChecks,
    TaskGateResult,
    VerifyPlan,
)
from proofstone.pipeline.rules.loop import deliver
from proofstone.pipeline.rules.reviews import CheckTally
from proofstone.plans.parser import read_plan
from proofstone.runtime.rules import EffectDone
from tests.talk import Prompter, drive
from tests.talk import Talk as BaseTalk

BASE = "b" * 40
FEATURE = PipelineGoal("r1", "totals", "Carts have totals", Lane.STANDARD, "no files are named", base_commit=BASE)
INTERACTIVE = replace(FEATURE, mode=RunMode.INTERACTIVE)
FIX = replace(FEATURE, lane=Lane.FIX, lane_reason="few files")
DOCS = replace(FEATURE, lane=Lane.DOCS, lane_reason="documentation")
OUT = AgentFailure("no answer within 60 seconds")
WAIT = PendingAnswer("How should we proceed?", "proofstone approve r1 gate proceed")


# What is sent.


def name_of(need: PipelineEffect) -> str:
    """`plan 2.1` is the first attempt of iteration 2, `code 1 security` that reviewer's first round."""
    match need:
        case AskResearch(focus=focus, round=round, attempt=attempt):
            return f"research {round}{f'.{attempt}' if attempt > 1 else ''} {focus}"
        case AskSpec(round=round):
            return f"spec {round}"
        case AskDesign(round=round):
            return f"design {round}"
        case AskPlan(iteration=iteration, attempt=attempt):
            return f"plan {iteration}.{attempt}"
        case AskReview(scope=scope, focus=focus, round=round):
            return f"{scope} {round} {focus}"
        case AskKnowledge():
            return "knowledge"
        case AskForApproval(request=request):
            return request.gate_id
        case AwaitFix(number=number):
            return f"fix {number}"
        case VerifyPlan(iteration=iteration):
            return f"verify {iteration}"
        case Implement(iteration=iteration):
            return f"implement {iteration}"
        case RunAllChecks(iteration=iteration, lane=lane):
            return f"check {iteration}{' large' if lane is Lane.LARGE else ''}"
        case CountReviews(scope=scope, round=round):
            return f"rows {scope} {round}"
        case CountChecks():
            return "rows"
        case CommitChange():
            return "commit"
        case RecordNote(kind=kind):
            return f"note {kind}"


def tip(iteration: int) -> str:
    return f"{iteration}" * 40


def report(
    number: int, name: str = "", *, state: TaskState = TaskState.APPROVED, confidence: Confidence = Confidence.HIGH
) -> TaskReport:
    failures = (failure(),) if state is TaskState.FAILED else ()
    return TaskReport(
        id=f"task-{number:02}",
        name=name or f"task {number}",
        state=state,
        attempts=3 if failures else 1,
        confidence=confidence if state is TaskState.APPROVED else None,
        commit=None,
        failures=failures,
    )


def failure(*checks: str, verdict: Verdict = Verdict.FAIL, passed: tuple[str, ...] = ()) -> AttemptFailure:
    reasons = tuple(
        FailureReason(check=check, verdict=verdict, detail=f"{check} is red") for check in checks or ("tests",)
    )
    return AttemptFailure(attempt=3, type=FailureType.VERIFY_FAILURE, error="exit 1", reasons=reasons, passed=passed)


def gated(
    need: Implement, outcome: RunOutcome = RunOutcome.PASSED, *states: TaskState, reason: str = ""
) -> TaskGateResult:
    """What the task gate made of the plan that it was given. States are in order; the rest is approved."""
    read, _ = read_plan(need.text, "PLAN.md")
    assert read is not None
    all_of = (*states, *[TaskState.APPROVED] * (len(read.tasks) - len(states)))
    tasks = tuple(report(at, one.name, state=all_of[at - 1]) for at, one in enumerate(read.tasks, start=1))
    return TaskGateResult(
        GateSummary(
            iteration=need.iteration,
            run_id=f"r1-g{need.iteration}",
            outcome=outcome,
            reason=reason,
            tasks=tasks,
            tip=tip(need.iteration),
        )
    )


def failed(need: PipelineEffect) -> PipelineEffectResult:
    """The first task did not pass."""
    assert isinstance(need, Implement)
    return gated(need, RunOutcome.FAILED, TaskState.FAILED, reason="failed: task-01")


def ended(outcome: RunOutcome) -> Callable[[PipelineEffect], PipelineEffectResult]:
    def sent(need: PipelineEffect) -> PipelineEffectResult:
        assert isinstance(need, Implement)
        return gated(need, outcome, TaskState.PENDING, reason=f"it is {outcome}")

    return sent


def checked(
    *, passed: bool = True, left: str = "", confidence: Confidence = Confidence.HIGH, raises: tuple[str, ...] = ()
) -> MergedCheckResult:
    reason = "" if passed else "tests: 2 fail"
    regressions = () if passed else ("test_old",)
    reasons = tuple(map(as_reason, raises))
    checks = FinalChecks(
        tree="t" * 40,
        passed=passed,
        reason=reason,
        confidence=confidence,
        reasons=reasons,
        regressions=regressions,
    )
    return MergedCheckResult(checks, left)


def verified(verdict: str | None = "PROCEED", *open: str, mitigations: tuple[str, ...] = ()) -> PlanGateResult:
    return PlanGateResult(
        PlanGateSummary.model_validate(
            {
                "iteration": 1,
                "run_id": "r1-p1",
                "verdict": verdict,
                "reason": "what it says",
                "open": tuple(
                    KnownIssue(severity=Severity.MAJOR, title=title, source="plan gate C1") for title in open
                ),
                "mitigations": mitigations,
            }
        )
    )


def well(need: PipelineEffect) -> PipelineEffectResult:
    """What is sent where all goes well."""
    match need:
        case AskResearch(focus=focus):
            return AgentReply(research(focus), "model-r")
        case AskSpec():
            return AgentReply(spec())
        case AskDesign():
            return AgentReply(design())
        case AskPlan():
            return AgentReply(plan())
        case AskReview(scope=scope, focus=focus, round=round):
            return AgentReply(review(focus=focus, scope=scope, round=round), f"model-{focus}")
        case AskKnowledge():
            return AgentReply(knowledge())
        case AskForApproval(request=request):
            return ApprovalDecision(request.default.id)
        case AwaitFix():
            return PendingAnswer("a blocker halts the run", "proofstone resume r1")
        case VerifyPlan():
            return verified()
        case Implement():
            return gated(need)
        case RunAllChecks():
            return checked()
        case CountReviews(said=said):
            return ReviewCounts(said)
        case CountChecks():
            return CheckCounts((CheckTally("the merged tree", ("tests",), ("tests",)),))
        case CommitChange():
            return CommitResult("c" * 40)
        case RecordNote():
            return EffectDone()


# A run.

Scripted = FrozenModel | PipelineEffectResult | Callable[[PipelineEffect], PipelineEffectResult]
Script = Mapping[str, Scripted | list[Scripted]]
"""By name of what is asked, or by its first word, what is sent."""


@dataclass
class Talk(BaseTalk[PipelineEffect]):
    """All that was asked, in its order, and what came of it."""

    feature: PipelineGoal = FEATURE
    batches: list[tuple[str, ...]] = field(default_factory=list)
    sent: list[PipelineEffectResult] = field(default_factory=list)
    delivered: PipelineResult | None = None

    @property
    def end(self) -> PipelineResult:
        assert self.delivered is not None
        return self.delivered

    @property
    def asked(self) -> list[str]:
        """All but the notes, and but what is only looked up."""
        return [
            name_of(need)
            for need in self.needs
            if not isinstance(need, RecordNote | CountReviews | CountChecks | AwaitFix)
        ]

    @property
    def agents(self) -> list[str]:
        return [name_of(need) for need in self.needs if isinstance(need, AskAgent)]

    def notes(self, kind: str) -> list[str]:
        return [need.text for need in self.needs if isinstance(need, RecordNote) and need.kind == kind]


def talk(feature: PipelineGoal = FEATURE, script: Script | None = None, *, most: int = 400) -> Talk:
    """The conversation, to its end."""
    prompter: Prompter[Scripted] = Prompter(script or {}, lambda name: (name, name.partition(" ")[0]))
    return converse(feature, lambda need: _as_sent(prompter.read(name_of(need)), need), most=most)


def converse(
    feature: PipelineGoal, answer: Callable[[PipelineEffect], PipelineEffectResult], *, most: int = 400
) -> Talk:
    found = Talk(feature=feature)

    def send(batch: tuple[PipelineEffect, ...]) -> tuple[PipelineEffectResult, ...]:
        assert len(found.batches) < most, "it does not end"
        sent = tuple(map(answer, batch))
        found.needs += batch
        found.sent += sent
        found.batches.append(tuple(map(name_of, batch)))
        return sent

    found.delivered = drive(deliver(feature), send)
    return found


def _as_sent(said: Scripted | None, need: PipelineEffect) -> PipelineEffectResult:
    if said is None:
        return well(need)
    if isinstance(said, FrozenModel):
        return AgentReply(said)
    return said(need) if callable(said) else said


DONE = Completion(status=CompletionStatus.DONE, summary="done")
GAVE_UP = Completion(status=CompletionStatus.ERROR, summary="I cannot")


def research(focus: ResearchFocus = ResearchFocus.IMPACT, *, completion: Completion = DONE) -> ResearchOutput:
    found = ResearchFinding(
        id="F1", title="One place", detail="All goes through it.", evidence=("shop/cart.py:1",), relevance="high"
    )
    return ResearchOutput(
        completion=completion, focus=focus, findings=(found,), summary=f"{focus} is clear", source_files_examined=()
    )


def concern(severity: Severity = Severity.MAJOR, text: str = "It breaks old clients.") -> Concern:
    return Concern(severity=severity, concern=text, suggestion="Keep the old route.")


def spec(
    *concerns: Concern, constraints: tuple[str, ...] = (), criteria: tuple[str, ...] = ("AC-1", "AC-2")
) -> SpecOutput:
    return SpecOutput(
        completion=DONE,
        requirements=(Requirement(id="R-1", text="A cart has a total."), Requirement(id="R-2", text="Totals round.")),
        acceptance_criteria=tuple(
            AcceptanceCriterion(id=id, text=f"{id} holds", test_method=f"a test of {id}") for id in criteria
        ),
        edge_cases=("an empty cart",),
        constraints=constraints,
        pushback=concerns,
    )


def design() -> DesignOutput:
    return DesignOutput(
        completion=DONE,
        architecture="One module that adds, one that rounds.",
        decisions=(_decision("D-1", "Where to round"), _decision("D-2", "Which type")),
    )


def _decision(id: str, title: str) -> DesignDecision:
    return DesignDecision(
        id=id,
        title=title,
        context="Sums drift.",
        alternatives=(
            Alternative(id="a", label="at the end", description=f"{title}: once."),
            Alternative(id="b", label="each time", description="Often."),
        ),
        selected="a",
        rationale="It is exact.",
        confidence=Confidence.HIGH,
        confidence_definition="It was measured.",
        risk="🟢",
    )


def task(
    id: str = "T1",
    *,
    files: tuple[str, ...] = (),
    risk: RiskMark = "🟡",
    after: tuple[str, ...] = (),
    criteria: tuple[str, ...] = ("AC-1", "AC-2"),
    context: tuple[str, ...] = (),
    title: str = "",
    description: str = "",
    verify: tuple[str, ...] = (),
    done: tuple[str, ...] = ("the total of nothing is 0",),
) -> PlannedTask:
    stem = id.lower()
    return PlannedTask(
        id=id,
        title=title or f"Do {id}",
        description=description or f"Write what {id} is about.",
        size="Large" if risk == "🔴" else "Standard",
        risk=risk,
        files=tuple(
            PlannedFile(path=path, risk=risk) for path in files or (f"shop/{stem}.py", f"tests/test_{stem}.py")
        ),
        depends_on=after,
        acceptance_criteria=criteria,
        relevant_context=context,
        verify=verify or (f"python3 -m unittest tests.test_{stem}",),
        done=done,
    )


def plan(*tasks: PlannedTask) -> PlanOutput:
    return PlanOutput(completion=DONE, overall_risk_summary="little", tasks=tasks or (task(),))


def finding(severity: Severity = Severity.MAJOR, title: str = "It rounds twice") -> PanelFinding:
    return PanelFinding(
        title=title,
        severity=severity,
        category=FindingCategory.CORRECTNESS,
        description="A cent is lost.",
        affected=("shop/cart.py:3",),
        recommendation="Round once.",
        evidence="round(round(x))",
    )


def review(
    verdict: ReviewVerdict | Literal["approve", "needs_revision", "blocker"] = "approve",
    *findings: PanelFinding,
    focus: ReviewFocus = ReviewFocus.CORRECTNESS,
    scope: ReviewScope = "code",
    round: int = 1,
) -> PanelOutput:
    needed = {
        ReviewVerdict.APPROVE: (),
        ReviewVerdict.NEEDS_REVISION: (finding(),),
        ReviewVerdict.BLOCKER: (finding(Severity.BLOCKER, "It leaks the key"),),
    }
    verdict = ReviewVerdict(verdict)
    return PanelOutput(
        completion=DONE,
        review_focus=focus,
        scope=scope,
        round=round,
        verdict=verdict,
        confidence=Confidence.HIGH,
        findings=findings or needed[verdict],
        summary="read",
    )


def knowledge() -> KnowledgeOutput:
    return KnowledgeOutput(completion=DONE)
