"""From where the loop stands to the report: what it holds, when it warns, and what it says to do next."""

from __future__ import annotations

from dataclasses import replace

from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeOrigin,
    ChallengeStatus,
    ConvergenceStatus,
    PlanQuality,
    TeamMode,
)
from proofstone.common.models import BudgetUsage
from proofstone.plan_gate.models import Complexity, OpenQuestion, PlanVerdict, UserAnswer
from proofstone.plan_gate.rules.decision import PlanDecision
from proofstone.plan_gate.rules.effects import PlanProgress
from proofstone.plan_gate.rules.report import PlanRunInfo, build_plan_report
from tests.plan_gate import reports
from tests.plan_gate.reports import BLOCKING, MINOR, SIGNIFICANT, challenge
from tests.rows import each_row

OPEN, RESOLVED, UNRESOLVED = ChallengeStatus.OPEN, ChallengeStatus.RESOLVED, ChallengeStatus.UNRESOLVED
DEFERRED, PUT_OFF = ChallengeStatus.DEFERRED, ChallengeStatus.DEFERRED_SURFACED
WITHDRAWN = ChallengeStatus.WITHDRAWN
ABOUT = PlanRunInfo(
    run_id="r1",
    plan_path="plans/PLAN.md",
    plan="PLAN.md",
    plan_digest=reports.DIGEST,
    base_commit=reports.BASE,
    title="A basket that survives",
    quality=PlanQuality.RICH,
    quality_reason="every task has what it needs",
    complexity=Complexity(steps=3),
    team_mode=TeamMode.SCALED,
    is_trivial=False,
    is_runnable=True,
    agents={"challenger": "api:small"},
)
PROGRESS = PlanProgress(
    challenges=reports.CHALLENGES,
    lines={"C2": 14},
    rules={"C3": "vacuous"},
    evidence={"C1": "U1"},
    unknowns=(reports.UNKNOWN,),
    surfaced=(reports.SURFACED,),
    risks=(reports.RISK,),
    iterations=reports.STATES,
    score=reports.SCORE,
    disputes=("C1: not enough",),
    audit="Better than it was.",
    against=(reports.FALSE,),
    events=reports.report().events,
    answers=(UserAnswer(challenge="C1", text="its owner", iteration=1),),
)
CONVERGED, BLOCKED = ConvergenceStatus.CONVERGED, ConvergenceStatus.BLOCKED
PROCEED = PlanDecision(CONVERGED, PlanVerdict.PROCEED, "nothing stands")
REVISE = PlanDecision(CONVERGED, PlanVerdict.REVISE, "some stand", is_strong=True)
RETHINK = PlanDecision(ConvergenceStatus.FORCED_EXIT, PlanVerdict.RETHINK, "too much stands")
WAITS = PlanDecision(BLOCKED, None, "a question waits")
QUESTIONS = (OpenQuestion(challenge="C1", question="Who?"), OpenQuestion(challenge="C4", question="When?"))


def test_the_report_holds_all_that_is_known() -> None:
    spent = BudgetUsage(requests=3, input_tokens=10, output_tokens=5, usd=0.5)
    report = build_plan_report(ABOUT, PROGRESS, REVISE, spent=spent, dispatches=7)
    for field in (name for name in vars(PROGRESS)):
        assert getattr(report, field) == getattr(PROGRESS, field), field
    for field in (
        "run_id",
        "plan_path",
        "plan",
        "plan_digest",
        "base_commit",
        "title",
        "complexity",
        "team_mode",
        "trivial",
    ):
        assert getattr(report, field) == getattr(ABOUT, {"trivial": "is_trivial"}.get(field, field)), field
    assert (report.plan_quality, report.quality_reason) == (ABOUT.quality, ABOUT.quality_reason)
    assert report.agents == ABOUT.agents
    assert (report.verdict, report.strong, report.status) == (REVISE.verdict, True, CONVERGED)
    assert (report.reason, report.questions) == ("some stand", ())
    assert (report.spent, report.dispatches) == (spent, 7)


def test_nothing_spent_is_nothing_spent() -> None:
    report = build_plan_report(ABOUT, PROGRESS, PROCEED)
    assert (report.spent, report.dispatches, report.strong) == (BudgetUsage(), 0, False)


def test_while_a_question_waits_there_is_no_verdict_and_no_score() -> None:
    report = build_plan_report(ABOUT, PROGRESS, WAITS, questions=QUESTIONS)
    assert (report.verdict, report.score, report.questions) == (None, None, QUESTIONS)
    assert report.status is BLOCKED


@each_row(
    ("statuses", "warned"),
    [
        ([DEFERRED] * 4, False),
        ([DEFERRED] * 5, True),
        ([PUT_OFF] * 5, True),
        ([DEFERRED] * 3 + [PUT_OFF] * 2, True),
        ([DEFERRED] * 4 + [WITHDRAWN, RESOLVED, OPEN, UNRESOLVED], False),
        ([], False),
    ],
)
def test_five_that_were_deferred_are_a_debt_to_warn_of(statuses: list[ChallengeStatus], warned: bool) -> None:
    many = tuple(challenge(f"C{number}", MINOR, status) for number, status in enumerate(statuses, 1))
    assert build_plan_report(ABOUT, replace(PROGRESS, challenges=many), PROCEED).debt_warning == warned


NEXT: list[tuple[str, PlanDecision, bool, tuple[Challenge, ...], str]] = [
    ("proceed", PROCEED, True, (), "Have it done: proofstone gate plans/PLAN.md"),
    (
        "proceed, with mitigations",
        PROCEED,
        True,
        (challenge("C1", BLOCKING, RESOLVED, mitigation="x"),),
        "Let whoever does it know of the mitigations: proofstone verify-plan --apply-mitigations r1; "
        "then have it done: proofstone gate plans/PLAN.md",
    ),
    (
        "proceed, not as tasks",
        PROCEED,
        False,
        (),
        "Write it as tasks that can be run and proven, see `proofstone manual plan`; then proofstone gate PLAN.md",
    ),
    (
        "a question",
        WAITS,
        True,
        (challenge("C1", BLOCKING, UNRESOLVED),),
        'Answer what is asked: proofstone verify-plan --resume r1 --answer "C1=…" --answer "C4=…"',
    ),
    (
        "mitigations for all that stands",
        REVISE,
        True,
        (challenge("C1", mitigation="x"), challenge("C2", MINOR)),
        "Take the mitigations in: proofstone verify-plan --apply-mitigations r1; or revise the plan, "
        "and put it through the gate again",
    ),
    (
        "one without",
        REVISE,
        True,
        (challenge("C1", mitigation="x"), challenge("C2")),
        "Revise the plan, and put it through the gate again. Nothing answers C2 yet.",
    ),
    (
        "one that was put off",
        REVISE,
        True,
        (challenge("C1", mitigation="x"), challenge("C2", SIGNIFICANT, PUT_OFF, mitigation="y")),
        "Revise the plan, and put it through the gate again. Nothing answers C2 yet.",
    ),
    (
        "it had to end early",
        replace(REVISE, status=ConvergenceStatus.FORCED_EXIT),
        True,
        (challenge("C1", mitigation="x"),),
        "It had to end before it converged: put it through the gate again with agents that answer.",
    ),
    (
        "what the rules have found",
        RETHINK,
        True,
        (
            *(challenge(f"C{n}", BLOCKING, origin=ChallengeOrigin.RULES, mitigation="x") for n in range(1, 8)),
            challenge("C8"),
        ),
        "Put right in the plan what C1, C2, C3, C4, C5 and 2 more say, and put it through the gate again.",
    ),
    ("nothing to take in", REVISE, True, (), "Revise the plan, and put it through the gate again."),
    (
        "rethink",
        RETHINK,
        True,
        (challenge("C1", BLOCKING), challenge("C2", BLOCKING, UNRESOLVED), challenge("C3", BLOCKING, mitigation="x")),
        "Revise the plan, and put it through the gate again. Nothing answers C1, C2 yet.",
    ),
    (
        "rethink, with mitigations for all",
        RETHINK,
        True,
        (challenge("C1", BLOCKING, mitigation="x"),),
        "Revise the plan, and put it through the gate again.",
    ),
]


@each_row(("decision", "runnable", "challenges", "step"), [row[1:] for row in NEXT])
def test_the_next_step(decision: PlanDecision, runnable: bool, challenges: tuple[Challenge, ...], step: str) -> None:
    questions = QUESTIONS if decision is WAITS else ()
    about = replace(ABOUT, is_runnable=runnable)
    report = build_plan_report(about, replace(PROGRESS, challenges=challenges), decision, questions=questions)
    assert report.next_step == step
