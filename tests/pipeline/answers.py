"""What agents of the pipeline would answer."""

from __future__ import annotations

from typing import Literal

from proofstone.agents.models import Completion, CompletionStatus
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
from proofstone.common.models import Confidence, ReviewVerdict, Severity

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
