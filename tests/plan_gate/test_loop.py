"""The convergence loop, by example: who is asked when, what becomes of what they say, and how it ends."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.plan_gate import Dimension, DirectiveKind, Dispute, QuestionDraft, ResearchMode
from proofstone.agents.roles.models.plan_gate_records import (
    ChallengeOrigin,
    ChallengeStatus,
    ConvergenceStatus,
    PlanSeverity,
    SurfacedImpact,
    TeamMode,
)
from proofstone.agents.rules.tool_budgets import BudgetKind
from proofstone.plan_gate.models import PlanEventKind, PlanVerdict
from proofstone.plan_gate.rules.effects import (
    AskChallenges,
    AskPlanAudit,
    AskPlanQuestions,
    AskPlanResearch,
    AskSynthesis,
    PlanAnswers,
    RecordIteration,
)
from proofstone.runtime.rules import EffectDone
from tests.plan_gate.talk import (
    BLOCKING,
    HERE,
    MINOR,
    SIGNIFICANT,
    Script,
    Scripted,
    audit,
    challenges,
    context,
    directive,
    draft,
    entering,
    follow,
    heard,
    probed,
    raising,
    resolved,
    resolving,
    risk,
    ruling,
    score,
    subject,
    surfaced,
    synthesis,
    unknown,
    unresolving,
)
from tests.rows import each_row

OPEN, RESOLVED, UNRESOLVED = ChallengeStatus.OPEN, ChallengeStatus.RESOLVED, ChallengeStatus.UNRESOLVED
DEFERRED = ChallengeStatus.DEFERRED
CONTINUE, CONVERGED = ConvergenceStatus.CONTINUE, ConvergenceStatus.CONVERGED
BLOCKED, FORCED = ConvergenceStatus.BLOCKED, ConvergenceStatus.FORCED_EXIT
PROCEED, REVISE, RETHINK = PlanVerdict.PROCEED, PlanVerdict.REVISE, PlanVerdict.RETHINK
CONTRADICTS = SurfacedImpact.CONTRADICTS_PLAN
SCALED = TeamMode.SCALED
FIRST = ["challenger 1", "surface 1", "probe 1", "synthesis 1"]


# Who is asked, and when.


def test_where_nobody_has_anything_to_say_the_plan_proceeds_after_a_closing_audit() -> None:
    talk = follow(subject())
    assert talk.asked == [*FIRST, "audit 1"]
    assert talk.came == (CONVERGED, PROCEED)
    assert [state.convergence.status for state in talk.states] == [CONVERGED]


def test_a_scaled_team_is_asked_side_by_side_and_its_further_members_only_once() -> None:
    talk = follow(subject(team=SCALED), {"devils-advocate 1": challenges(SIGNIFICANT)})
    first = talk.needs[0]
    assert [(need.origin, need.max_challenges) for need in first if isinstance(need, AskChallenges)] == [
        (ChallengeOrigin.CHALLENGER, 5),
        (ChallengeOrigin.DOMAIN_EXPERT, 3),
        (ChallengeOrigin.DEVILS_ADVOCATE, 2),
    ]
    assert len(first) == 3
    later = talk.need("challenger 2")
    assert isinstance(later, AskChallenges) and later.max_challenges == 3
    assert talk.asked_in(2) == ["challenger", "resolve", "synthesis"]
    assert talk.challenges["C1"].origin is ChallengeOrigin.DEVILS_ADVOCATE


def test_researchers_work_side_by_side_and_sweep_and_probe_in_the_first_iteration_only() -> None:
    talk = follow(subject(), {"challenger 1": challenges(SIGNIFICANT, MINOR)})
    (looking_into,) = [needs for needs in talk.needs if isinstance(needs[0], AskPlanResearch) and len(needs) > 1]
    assert [need.mode for need in looking_into if isinstance(need, AskPlanResearch)] == list(ResearchMode)
    assert all(isinstance(need, AskPlanResearch) and need.targets == ("C1", "C2") for need in looking_into)
    assert talk.asked[5:-1] == ["challenger 2", "resolve 2", "synthesis 2", "challenger 3", "resolve 3", "synthesis 3"]


def test_whoever_is_asked_is_shown_how_far_it_has_come() -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING, SIGNIFICANT),
        "resolve 1": heard(resolved(unknown("C2", HERE)), "Read: 9 of 8"),
        "surface 1": surfaced(context()),
        "probe 1": probed(risk()),
        "synthesis 1": synthesis(*unresolving("C1"), directives=(directive(DirectiveKind.NOTE), raising())),
        "person 1": {"C1": "It is empty."},
    }
    talk = follow(subject(), script)
    need = talk.need("challenger 2")
    assert isinstance(need, AskChallenges)
    seen = need.snapshot
    assert (seen.iteration, seen.is_last) == (2, False)
    assert [one.id for one in seen.challenges] == ["C1", "C2"]
    assert ([one.id for one in seen.unknowns], [one.id for one in seen.surfaced]) == (["U1"], ["S1"])
    assert [one.id for one in seen.risks] == ["P1"]
    assert seen.responses == ("C1: It is empty.",)
    assert seen.directives == ("NOTE: the store", "RAISE-BUDGET resolve Read +2: more to read")
    assert "researcher:resolve: Read: 9 of 8" in seen.notes
    assert seen.budget.limit(ResearchMode.RESOLVE, BudgetKind.READ) == 10
    last = talk.need("synthesis 3")
    assert isinstance(last, AskSynthesis) and last.snapshot.is_last


# The table, by what leads to each row.

HALF = [draft(SIGNIFICANT, mitigation="Keep two stores.") for _ in range(2)]
ROWS: list[tuple[str, Script, list[ConvergenceStatus], PlanVerdict]] = [
    ("nothing stands", {}, [CONVERGED], PROCEED),
    (
        "all is settled at once",
        {"challenger 1": challenges(BLOCKING, SIGNIFICANT), "synthesis 1": synthesis(*resolving("C1", "C2"))},
        [CONVERGED],
        PROCEED,
    ),
    (
        "all is settled in time",
        {"challenger 1": challenges(BLOCKING, SIGNIFICANT), "synthesis 2": synthesis(*resolving("C1", "C2"))},
        [CONTINUE, CONVERGED],
        PROCEED,
    ),
    (
        "two stand",
        {"challenger 1": challenges(SIGNIFICANT, SIGNIFICANT), "synthesis 1": synthesis(*unresolving("C1", "C2"))},
        [CONVERGED],
        REVISE,
    ),
    ("one stays open", {"challenger 1": challenges(SIGNIFICANT)}, [CONTINUE, CONTINUE, CONVERGED], REVISE),
    (
        "three stand, with mitigations",
        {
            "challenger 1": challenges(*HALF, draft(SIGNIFICANT, mitigation="Keep three stores.")),
            "synthesis 1": synthesis(*unresolving("C1", "C2", "C3")),
        },
        [CONVERGED],
        REVISE,
    ),
    (
        "three stand, one without",
        {
            "challenger 1": challenges(*HALF, SIGNIFICANT),
            "synthesis 1": synthesis(*unresolving("C1", "C2", "C3")),
        },
        [CONTINUE, CONTINUE, FORCED],
        RETHINK,
    ),
    ("one that blocks stays open", {"challenger 1": challenges(BLOCKING)}, [CONTINUE, CONTINUE, FORCED], RETHINK),
    (
        "one that blocks is not to be settled at the end",
        {"challenger 1": challenges(BLOCKING), "synthesis 3": synthesis(*unresolving("C1"))},
        [CONTINUE, CONTINUE, FORCED],
        RETHINK,
    ),
]


@each_row(("script", "states", "verdict"), [row[1:] for row in ROWS])
def test_how_it_ends(script: Script, states: list[ConvergenceStatus], verdict: PlanVerdict) -> None:
    talk = follow(subject(), script)
    assert [state.convergence.status for state in talk.states] == states
    assert [state.iteration for state in talk.states] == list(range(1, len(states) + 1))
    assert talk.came == (states[-1], verdict)
    assert talk.end.decision.is_strong == (script == ROWS[5][1])
    assert talk.asked[-1] == f"audit {len(states)}"


@pytest.mark.seed("plan-gate", "forced-exit")
def test_a_plan_whose_blocking_challenge_nobody_settles_is_to_be_thought_over_after_three_iterations() -> None:
    """The person is asked twice and answers, and it is not enough."""
    script: Script = {
        "challenger 1": challenges(BLOCKING),
        **{f"synthesis {number}": synthesis(*unresolving("C1")) for number in (1, 2, 3)},
        "person 1": {"C1": "It is empty."},
        "person 2": {"C1": "It is, at night."},
    }
    talk = follow(subject(), script)
    assert [state.convergence.status for state in talk.states] == [BLOCKED, BLOCKED, FORCED]
    assert talk.came == (FORCED, RETHINK)
    assert [one.user_responses for one in talk.states] == [(), ("C1: It is empty.",), ("C1: It is, at night.",)]
    assert "person 3" not in talk.asked


# The person.


@pytest.mark.seed("plan-gate", "blocked-pause")
def test_a_question_waits_and_its_answer_starts_the_next_iteration() -> None:
    asked = QuestionDraft(challenge="C1", question="Is it empty?", options=("yes", "no"))
    script: Script = {
        "challenger 1": challenges(BLOCKING, SIGNIFICANT),
        "synthesis 1": synthesis(*unresolving("C1", "C2"), questions=(asked,)),
        "person 1": {"C1": " yes ", "C2": "not asked"},
        "synthesis 2": synthesis(ruling("C1", RESOLVED, "person"), ruling("C2", RESOLVED, "person")),
    }
    talk = follow(subject(), script)
    need = talk.need("person 1")
    assert isinstance(need, AskPlanQuestions)
    (question,) = need.questions
    assert (question.challenge, question.question, question.options) == ("C1", "Is it empty?", ("yes", "no"))
    assert "It is not after the first night." in question.why
    assert (need.decision.status, need.decision.verdict) == (BLOCKED, None)
    assert len(need.progress.iterations) == 1
    answered = talk.seen("challenger 2")["C1"]
    assert (answered.status, answered.resolution) == (OPEN, "the person says: yes")
    assert [(one.challenge, one.text, one.iteration) for one in talk.end.progress.answers] == [("C1", "yes", 1)]
    assert talk.statuses == {"C1": "RESOLVED", "C2": "UNRESOLVED"}
    assert talk.came == (CONVERGED, REVISE)


def test_a_question_that_nobody_has_put_into_words_is_asked_all_the_same() -> None:
    script: Script = {"challenger 1": challenges(BLOCKING), "synthesis 1": synthesis(*unresolving("C1"))}
    need = follow(subject(), script).need("person 1")
    assert isinstance(need, AskPlanQuestions)
    assert need.questions[0].question == "How should this be settled?"
    assert "It is not after the first night." in need.questions[0].why


def test_what_was_not_answered_is_asked_again() -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING, BLOCKING),
        "synthesis 1": synthesis(*unresolving("C1", "C2")),
        "person 1": [{"C2": "yes", "C1": " "}, {"C1": "no"}],
    }
    talk = follow(subject(), script)
    asked = [need for needs in talk.needs for need in needs if isinstance(need, AskPlanQuestions)]
    assert [[one.challenge for one in need.questions] for need in asked[:2]] == [["C1", "C2"], ["C1"]]
    assert [one.challenge for one in talk.end.progress.answers] == ["C2", "C1"]
    assert talk.states[1].user_responses == ("C2: yes", "C1: no")


@pytest.mark.parametrize("said", [{}, {"C1": " "}, {"C9": "yes"}])
def test_an_answer_that_says_nothing_is_an_error(said: dict[str, str]) -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING),
        "synthesis 1": synthesis(*unresolving("C1")),
        "person 1": PlanAnswers(said),
    }
    with pytest.raises(ValueError, match="nothing is said about C1"):
        follow(subject(), script)


# The closing audit, scores and disputes.


def test_the_closing_audit_is_told_the_verdict_and_shown_beside_it() -> None:
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT),
        "synthesis 1": synthesis(
            *resolving("C1"),
            scores=(score(Dimension.RISK, 7),),
            disputes=(Dispute(challenge="C1", text="two of them do not agree"),),
        ),
        "audit 1": audit(score(Dimension.RISK, 4), disputes=(Dispute(challenge="C1", text="not settled"),)),
    }
    talk = follow(subject(), script)
    need = talk.need("audit 1")
    assert isinstance(need, AskPlanAudit)
    assert need.verdict == "PROCEED: nothing BLOCKING or SIGNIFICANT stands"
    progress = talk.end.progress
    assert progress.audit == "It holds."
    assert progress.disputes == ("C1: two of them do not agree", "C1: not settled (challenger, at the close)")
    assert progress.score is not None
    assert [(line.score, line.audited, line.is_disputed) for line in progress.score.lines] == [(7, 4, True)]
    assert talk.states[-1].quality_score == 7


@pytest.mark.seed("plan-gate", "iteration-state")
def test_a_score_stands_in_the_state_of_the_last_iteration_only() -> None:
    scored = synthesis(scores=(score(Dimension.RISK, 7),))
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT),
        **{f"synthesis {number}": scored for number in (1, 2, 3)},
    }
    assert [state.quality_score for state in follow(subject(), script).states] == [None, None, 7]


# What the rules alone have against a plan.


def test_what_the_rules_found_comes_first_and_is_discussed() -> None:
    rules = (entering(BLOCKING, origin=ChallengeOrigin.RULES, line=4), entering(MINOR, origin=ChallengeOrigin.RULES))
    talk = follow(subject(*rules), {"challenger 1": challenges(SIGNIFICANT)})
    assert [one.origin for one in talk.challenges.values()] == [
        ChallengeOrigin.RULES,
        ChallengeOrigin.RULES,
        ChallengeOrigin.CHALLENGER,
    ]
    assert talk.end.progress.lines == {"C1": 4}
    need = talk.need("resolve 1")
    assert isinstance(need, AskPlanResearch) and need.targets == ("C1", "C2", "C3")


RULES_ALONE: list[tuple[str, list[PlanSeverity], dict[str, str], ConvergenceStatus, PlanVerdict]] = [
    ("nothing", [], {}, CONVERGED, PROCEED),
    ("what is minor", [MINOR], {}, CONVERGED, PROCEED),
    ("one significant", [SIGNIFICANT], {}, CONVERGED, REVISE),
    ("three, without mitigation", [SIGNIFICANT] * 3, {}, FORCED, RETHINK),
    ("one that blocks", [BLOCKING], {}, FORCED, RETHINK),
    ("answered", [BLOCKING, SIGNIFICANT], {"C1": "yes", "C2": "no"}, CONVERGED, PROCEED),
    ("answered in part", [BLOCKING, SIGNIFICANT], {"C1": "yes"}, CONVERGED, REVISE),
    ("an answer to nothing", [BLOCKING], {"C7": "yes"}, FORCED, RETHINK),
]


@each_row(
    ("severities", "answers", "status", "verdict"),
    [row[1:] for row in RULES_ALONE],
)
def test_where_nobody_is_asked_the_rules_and_the_persons_word_decide(
    severities: list[PlanSeverity], answers: dict[str, str], status: ConvergenceStatus, verdict: PlanVerdict
) -> None:
    rules = [entering(one, origin=ChallengeOrigin.RULES) for one in severities]
    talk = follow(subject(*rules, team=None, answers=answers))
    assert (talk.asked, talk.came) == ([], (status, verdict))
    heard_of = [id for id in answers if id in talk.challenges]
    assert [one.challenge for one in talk.end.progress.answers] == heard_of
    assert talk.states[0].user_responses == tuple(f"{id}: {answers[id]}" for id in heard_of)
    assert {talk.statuses[id] for id in heard_of} <= {"RESOLVED"}
    assert len(talk.events(PlanEventKind.REFUSED)) == len(answers) - len(heard_of)


TWELVE = [entering(one, origin=ChallengeOrigin.RULES) for one in (*[SIGNIFICANT] * 3, *[BLOCKING] * 9)]


def test_of_more_than_eight_rules_the_gravest_are_discussed_and_one_that_blocks_is_never_lost() -> None:
    talk = follow(subject(*TWELVE))
    put_off = [id for id, one in talk.seen("challenger 1").items() if one.status is not OPEN]
    assert put_off == ["C1", "C2", "C3", "C12"]
    assert talk.states[0].convergence.blocking_open == 9


def test_where_nobody_discusses_them_there_is_room_for_all_and_all_can_be_answered() -> None:
    assert set(follow(subject(*TWELVE, team=None)).statuses.values()) == {"OPEN"}
    answers = {f"C{number}": "yes" for number in range(1, 13)}
    assert follow(subject(*TWELVE, team=None, answers=answers)).came == (CONVERGED, PROCEED)


@pytest.mark.parametrize("team", TeamMode)
def test_if_the_plan_cannot_be_run_as_it_is_nobody_is_asked(team: TeamMode) -> None:
    rules = (
        entering(BLOCKING, origin=ChallengeOrigin.RULES, final=True),
        entering(BLOCKING, origin=ChallengeOrigin.RULES),
    )
    talk = follow(subject(*rules, team=team, answers={"C1": "never mind", "C2": "yes"}))
    assert (talk.asked, talk.came) == ([], (FORCED, RETHINK))
    assert talk.statuses == {"C1": "OPEN", "C2": "RESOLVED"}
    assert talk.events(PlanEventKind.REFUSED) == [
        "the answer to C1 settles nothing: C1 is in the plan's text: edit the plan"
    ]


def test_what_the_person_has_said_beforehand_settles_nothing_by_itself_where_others_are_asked() -> None:
    talk = follow(subject(entering(BLOCKING, origin=ChallengeOrigin.RULES), answers={"C1": "yes"}))
    assert talk.seen("resolve 1")["C1"].status is OPEN
    assert talk.came == (FORCED, RETHINK)


# The record.


@pytest.mark.seed("plan-gate", "iteration-state")
def test_the_state_of_an_iteration_is_that_of_its_end() -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING, SIGNIFICANT),
        "resolve 1": resolved(unknown("C1", HERE)),
        "surface 1": surfaced(context(impact=CONTRADICTS)),
        "probe 1": probed(risk()),
        "synthesis 1": synthesis(ruling("C1", RESOLVED, "U1")),
    }
    talk = follow(subject(), script)
    state = talk.states[0]
    assert (state.plan_path, state.team_mode, state.iteration) == ("plans/PLAN.md", TeamMode.BASE, 1)
    assert [(line.id, line.status) for line in state.challenges] == [("C1", RESOLVED), ("C2", OPEN), ("C3", OPEN)]
    assert [(line.id, line.resolution.value) for line in state.unknowns] == [("U1", "REFUTED")]
    assert [(line.id, line.generates_challenge) for line in state.surfaced_contexts] == [("S1", "C3")]
    assert [(line.id, line.generates_challenge) for line in state.probed_risks] == [("P1", None)]
    assert (state.convergence.blocking_open, state.convergence.significant_open) == (0, 2)
    assert state.convergence.status is CONTINUE
    second = talk.states[1]
    assert (second.unknowns, second.surfaced_contexts, second.probed_risks) == ((), (), ()), "each has its own"


def test_each_event_is_told_with_the_iteration_in_which_it_was() -> None:
    script: Script = {"challenger 1": challenges(*[SIGNIFICANT] * 6), "synthesis 2": synthesis(ruling("C1", DEFERRED))}
    talk = follow(subject(), script)
    told = [need.events for needs in talk.needs for need in needs if isinstance(need, RecordIteration)]
    assert [[(one.iteration, one.kind) for one in events] for events in told] == [
        [(1, PlanEventKind.OVERFLOW)],
        [(2, PlanEventKind.REFUSED)],
        [],
    ]


@each_row("wrong", [heard(probed()), EffectDone(), PlanAnswers({})])
@each_row("who", ["challenger 1", "surface 1", "synthesis 1"])
def test_an_answer_of_the_wrong_kind_is_an_error_of_ours(who: str, wrong: Scripted) -> None:
    with pytest.raises(TypeError, match="is wanted, not"):
        follow(subject(), {who: wrong})


def test_an_answer_that_is_no_answer_of_a_person_is_an_error_of_ours() -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING),
        "synthesis 1": synthesis(*unresolving("C1")),
        "person 1": EffectDone(),
    }
    with pytest.raises(TypeError, match="an answer is wanted"):
        follow(subject(), script)
