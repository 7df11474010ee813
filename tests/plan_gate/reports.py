"""Reports of the plan gate, one for each way in which it can end."""

from __future__ import annotations

import os
from pathlib import Path

from proofstone.agents.roles.models.plan_gate import Dimension
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeConfidence,
    ChallengeLine,
    ChallengeOrigin,
    ChallengeStatus,
    ClaimKind,
    Convergence,
    ConvergenceStatus,
    IterationState,
    LookupResult,
    PlanQuality,
    PlanSeverity,
    ProbedRisk,
    RepositoryClaim,
    RiskLine,
    SurfacedContext,
    SurfacedImpact,
    SurfacedLine,
    SurfacedSource,
    TeamMode,
    Unknown,
    UnknownLine,
    UnknownResolution,
    UnknownType,
)
from proofstone.common.models import BudgetUsage
from proofstone.plan_gate.models import (
    Complexity,
    FalseClaim,
    OpenQuestion,
    PlanEvent,
    PlanEventKind,
    PlanReport,
    PlanVerdict,
    QualityScore,
    ScoreLine,
    UserAnswer,
)

RUN = "20260226T143000Z-a1b2c3"
DIGEST = "d" * 64
BASE = "b" * 40
PLAN = "plans/basket/PLAN.md"

OPEN, RESOLVED, UNRESOLVED = ChallengeStatus.OPEN, ChallengeStatus.RESOLVED, ChallengeStatus.UNRESOLVED
BLOCKING, SIGNIFICANT, MINOR = PlanSeverity.BLOCKING, PlanSeverity.SIGNIFICANT, PlanSeverity.MINOR


def challenge(
    id: str, severity: PlanSeverity = SIGNIFICANT, status: ChallengeStatus = OPEN, **said: object
) -> Challenge:
    body: dict[str, object] = {
        "origin": ChallengeOrigin.CHALLENGER,
        "claim": f"The plan assumes that basket {id} fits in a cookie",
        "concern": "A cookie holds 4 KiB, and a basket with 60 lines is larger",
        "failure_scenario": "A customer adds line 61, the cookie is dropped, and the basket is empty",
        "alternative": "Keep the basket on the server, and only its number in the cookie",
        "confidence": ChallengeConfidence.HIGH,
        "iteration_introduced": 1,
    }
    return Challenge.model_validate({"id": id, "severity": severity, "status": status, **body, **said})


def state(
    iteration: int, challenges: tuple[Challenge, ...], status: ConvergenceStatus, **said: object
) -> IterationState:
    def standing(severity: PlanSeverity) -> int:
        return sum(one.severity is severity and one.status.is_open for one in challenges)

    body: dict[str, object] = {
        "iteration": iteration,
        "plan_path": f"/shop/{PLAN}",
        "plan_quality": PlanQuality.ADEQUATE,
        "team_mode": TeamMode.BASE,
        "challenges": tuple(ChallengeLine(id=one.id, status=one.status, severity=one.severity) for one in challenges),
        "unknowns": (UnknownLine(id="U1", resolution=UnknownResolution.CONFIRMED),),
        "surfaced_contexts": (SurfacedLine(id="S1", impact=SurfacedImpact.CONTRADICTS_PLAN, generates_challenge="C2"),),
        "probed_risks": (RiskLine(id="P1"),),
        "convergence": Convergence(
            blocking_open=standing(BLOCKING), significant_open=standing(SIGNIFICANT), status=status
        ),
    }
    return IterationState.model_validate({**body, **said})


UNKNOWN = Unknown(
    id="U1",
    description="How large a basket may become",
    type=UnknownType.FILE_MISSING,
    affects_challenge="C1",
    suggested_query="MAX_LINES",
    resolution=UnknownResolution.CONFIRMED,
    finding="[VERIFIED: src/shop/basket.py | MAX_LINES is 200 | larger than a cookie holds]",
)
SURFACED = SurfacedContext(
    id="S1",
    source=SurfacedSource.GIT_HISTORY,
    location="4f2a9c1",
    relevance="Cookies were taken out once before, for the same reason",
    impact=SurfacedImpact.CONTRADICTS_PLAN,
    generates_challenge="C2",
)
RISK = ProbedRisk(
    id="P1",
    risk="The session store restarts",
    trigger="A deployment at noon",
    cascade="Baskets are lost",
    probability="MED",
    severity=MINOR,
)
FALSE = FalseClaim(
    agent="researcher:resolve",
    iteration=1,
    about="U2",
    looked=LookupResult(
        claim=RepositoryClaim(kind=ClaimKind.SYMBOL, name="Basket.load", path="src/shop/basket.py"),
        holds=False,
        saw="src/shop/basket.py defines no Basket.load",
    ),
)
SCORE = QualityScore(
    total=6,
    lines=(
        ScoreLine(dimension=Dimension.APPROACH, weight=0.25, score=7, evidence="steps follow each other", audited=6),
        ScoreLine(dimension=Dimension.RISK, weight=0.20, score=6, evidence="no way back is named", audited=3),
    ),
)
CHALLENGES = (
    challenge("C1", BLOCKING, RESOLVED, resolution="the basket moves to the server", mitigation="a session table"),
    challenge("C2", mitigation="Write a migration for open baskets", origin=ChallengeOrigin.SURFACED),
    challenge("C3", MINOR, ChallengeStatus.DEFERRED, resolution="still open at the end", origin=ChallengeOrigin.RULES),
)
STATES = (
    state(1, tuple(one.model_copy(update={"status": OPEN}) for one in CHALLENGES), ConvergenceStatus.CONTINUE),
    state(2, CHALLENGES, ConvergenceStatus.CONVERGED, quality_score=6),
)


def report(**said: object) -> PlanReport:
    """A plan that is to be revised, unless it is said otherwise."""
    body: dict[str, object] = {
        "run_id": RUN,
        "plan_path": PLAN,
        "plan_digest": DIGEST,
        "base_commit": BASE,
        "title": "A basket that survives",
        "verdict": PlanVerdict.REVISE,
        "status": ConvergenceStatus.CONVERGED,
        "reason": "nothing BLOCKING stands, and one or two SIGNIFICANT challenges",
        "plan_quality": PlanQuality.ADEQUATE,
        "quality_reason": "2 of 3 tasks have a verification",
        "complexity": Complexity(steps=3, domains=1, integrations=2),
        "team_mode": TeamMode.BASE,
        "agents": {"challenger": "api:small", "researcher": "api:small", "synthesizer": "api:large"},
        "challenges": CHALLENGES,
        "lines": {"C2": 14, "C3": 31},
        "evidence": {"C1": "U1"},
        "unknowns": (UNKNOWN,),
        "surfaced": (SURFACED,),
        "risks": (RISK,),
        "iterations": STATES,
        "score": SCORE,
        "disputes": ("C1: the challenger thinks that the table is not enough",),
        "audit": "Better than it was.",
        "against": (FALSE,),
        "events": (PlanEvent(iteration=1, kind=PlanEventKind.REFUSED, text="C2 → DEFERRED was not allowed"),),
        "next_step": f"take the mitigations into {PLAN}, then verify it again",
        "dispatches": 9,
        "spent": BudgetUsage(requests=12, input_tokens=30_000, output_tokens=4_000, usd=0.42),
    }
    return PlanReport.model_validate({**body, **said})


def proceed() -> PlanReport:
    """Without any model, a good plan."""
    return report(
        verdict=PlanVerdict.PROCEED,
        reason="nothing BLOCKING or SIGNIFICANT stands",
        agents={},
        challenges=(),
        lines={},
        evidence={},
        unknowns=(),
        surfaced=(),
        risks=(),
        iterations=(state(1, (), ConvergenceStatus.CONVERGED),),
        score=None,
        disputes=(),
        audit="",
        against=(),
        events=(),
        next_step="",
        dispatches=0,
        spent=BudgetUsage(),
    )


def strong() -> PlanReport:
    challenges = tuple(challenge(f"C{number}", mitigation=f"Measure {number}") for number in (1, 2, 3))
    return report(
        challenges=challenges,
        strong=True,
        reason="three or more SIGNIFICANT challenges stand, each with a mitigation",
    )


def waiting() -> PlanReport:
    """A question is."""
    stands = challenge("C1", BLOCKING, UNRESOLVED, resolution="nobody knows who may see a basket")
    return report(
        verdict=None,
        status=ConvergenceStatus.BLOCKED,
        reason="a BLOCKING challenge is UNRESOLVED: only the person can settle it",
        challenges=(stands, *CHALLENGES[1:]),
        questions=(OpenQuestion(challenge="C1", question="Who may see a basket?", options=("Its owner", "Anybody")),),
        iterations=(state(1, (stands, *CHALLENGES[1:]), ConvergenceStatus.BLOCKED),),
    )


def rethink() -> PlanReport:
    stands = challenge("C1", BLOCKING, UNRESOLVED, resolution="it cannot work", mitigation="another store")
    challenges = (stands, *CHALLENGES[1:])
    return report(
        verdict=PlanVerdict.RETHINK,
        status=ConvergenceStatus.FORCED_EXIT,
        reason="the last iteration, and a BLOCKING challenge stands",
        challenges=challenges,
        iterations=(
            state(
                1,
                challenges,
                ConvergenceStatus.CONTINUE,
                synthesizer_directives=("RE-SWEEP: look at the session store",),
                user_responses=("C1=its owner",),
            ),
            state(2, challenges, ConvergenceStatus.CONTINUE),
            state(3, challenges, ConvergenceStatus.FORCED_EXIT),
        ),
        answers=(UserAnswer(challenge="C1", text="its owner", iteration=1),),
    )


GOLDEN = Path(__file__).parent / "golden"
RENEW = "PROOFSTONE_RENEW_GOLDEN"
HOW = f"renew the copies with {RENEW}=1 python -m pytest tests/plan_gate, and read the difference"


def matches_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get(RENEW):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{name} is missing: {HOW}"
    assert text == path.read_text(encoding="utf-8"), f"{name} differs: {HOW}"
