"""From a request to a commit: the whole pipeline where all goes well, and each way that it can turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.models import Completion, CompletionStatus
from proofstone.agents.roles.models.gate import RetryDirection, TaskState
from proofstone.agents.roles.models.pipeline import PlanOutput, ResearchOutput
from proofstone.common.models import Confidence, Lane, Severity
from proofstone.errors import InputError
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import ApprovalRequest
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
    CommitChange,
    Implement,
    PipelineEffect,
    PipelineEffectResult,
    RecordNote,
    VerifyPlan,
)
from proofstone.plans.parser import read_plan
from tests.pipeline.talk import (
    BASE,
    FEATURE,
    GAVE_UP,
    INTERACTIVE,
    OUT,
    WAIT,
    Script,
    Scripted,
    checked,
    concern,
    ended,
    failed,
    finding,
    gated,
    plan,
    research,
    review,
    spec,
    talk,
    task,
    tip,
    verified,
)
from tests.rows import each_row
from tests.talk import needs

RESEARCH = tuple(f"research 1 {focus}" for focus in ("architecture", "impact", "dependencies", "patterns"))
AGAIN = "research 1.2 impact"
FOCI = ("security", "architecture", "correctness")
REVISION = review("needs_revision")


def panel(scope: str, round: int) -> tuple[str, ...]:
    return tuple(f"{scope} {round} {focus}" for focus in FOCI)


def two(scope: str, round: int, said: Scripted) -> dict[str, Scripted]:
    """Two of the three say this."""
    return dict.fromkeys(panel(scope, round)[:2], said)


# All goes well.


@pytest.mark.seed("pipeline", "steps")
def test_where_all_goes_well_it_goes_from_research_to_a_commit() -> None:
    it = talk()
    assert it.asked == [
        *RESEARCH,
        "gate-post-research",
        "spec 1",
        "design 1",
        *panel("design", 1),
        "plan 1.1",
        "verify 1",
        "gate-post-planning",
        "implement 1",
        "check 1",
        *panel("code", 1),
        "knowledge",
        "commit",
    ]
    assert (it.end.outcome, it.end.commit, it.end.confidence) == (RunOutcome.PASSED, "c" * 40, Confidence.HIGH)
    assert (it.end.tip, it.end.known_issues, it.end.single_model) == (tip(1), (), False)


@pytest.mark.seed("pipeline", "dispatch-count")
def test_it_asks_agents_fourteen_times() -> None:
    """Of the 26 for six tasks, the other 12 are executors and architects: the task gate asks them."""
    six = plan(*(task(f"t{number}") for number in range(6)))
    it = talk(script={"plan": six})
    assert len([need for need in it.needs if isinstance(need, AskAgent)]) == 26 - 2 * 6


def test_what_may_run_at_once_is_asked_at_once() -> None:
    batches = talk().batches
    assert [batch for batch in batches if len(batch) > 1] == [RESEARCH, panel("design", 1), panel("code", 1)]


@pytest.mark.seed("pipeline", "steps")
def test_each_step_is_given_what_came_before() -> None:
    it = talk()
    (specified,), (designed,), (planned,) = needs(it, AskSpec), needs(it, AskDesign), needs(it, AskPlan)
    assert [one.focus for one in specified.research] == ["architecture", "impact", "dependencies", "patterns"]
    assert (designed.spec, designed.research) == (spec(), specified.research)
    assert (planned.spec, planned.design is not None, len(planned.reviews)) == (spec(), True, 3)
    (done,) = needs(it, Implement)
    assert (done.base, done.lane) == (BASE, Lane.STANDARD)
    assert done.text == needs(it, VerifyPlan)[0].text
    assert done.context[0][0] == "task-01"
    reviews = [one for one in needs(it, AskReview) if one.scope == "code"]
    assert {one.tip for one in reviews} == {tip(1)}
    assert reviews[0].criteria == ("AC-1: AC-1 holds", "AC-2: AC-2 holds")


def test_what_is_planned_is_noted_with_what_executors_need_not_read() -> None:
    it = talk()
    (noted,) = (one for one in needs(it, RecordNote) if one.kind == "plan")
    assert isinstance(noted.data, PlanOutput)
    assert noted.data.waves == (("T1",),)
    assert "characters" in noted.text


def test_a_plan_that_its_planner_would_revise_again_waits_for_a_person_and_teaches_nobody() -> None:
    """The attempt before failed at the gate, and is worth learning from; that a person aborts is not."""
    unsure = plan().model_copy(
        update={"completion": Completion(status=CompletionStatus.NEEDS_REVISION, summary="task 2 is too large")}
    )
    it = talk(script={"implement 1": failed, "plan 2.1": unsure, "plan 2.2": unsure})
    assert it.asked[-3:] == ["plan 2.1", "plan 2.2", "gate-revision"]
    assert (it.end.outcome, it.end.commit) == (RunOutcome.HALTED, None)
    assert it.end.reason.endswith("the planner says NEEDS_REVISION about its own answer: task 2 is too large")
    goes_on = talk(
        script={
            "implement 1": failed,
            "plan 2.1": unsure,
            "plan 2.2": unsure,
            "gate-revision": ApprovalDecision("proceed"),
        }
    )
    assert goes_on.end.outcome is RunOutcome.PASSED


@pytest.mark.seed("pipeline", "knowledge-nonblocking")
def test_knowledge_holds_nothing_up() -> None:
    assert talk(script={"knowledge": OUT}).end.commit


def test_a_commit_that_fails_is_said() -> None:
    end = talk(script={"commit": AgentFailure("the branch is locked")}).end
    assert (end.outcome, end.commit, end.reason) == (
        RunOutcome.FAILED,
        None,
        "the commit failed: the branch is locked",
    )


def test_reviewers_that_were_one_model_are_told_apart_from_three() -> None:
    assert talk(script=dict.fromkeys(panel("code", 1), AgentReply(review(), "one"))).end.single_model
    two_models = dict.fromkeys(panel("code", 1)[:2], AgentReply(review(), "one"))
    assert not talk(script=two_models).end.single_model


# Research.


@pytest.mark.seed("pipeline", "research-four")
def test_two_researchers_are_enough() -> None:
    it = talk(script={RESEARCH[0]: OUT, **dict.fromkeys((RESEARCH[1], AGAIN), research(completion=GAVE_UP))})
    assert it.end.outcome is RunOutcome.PASSED
    assert it.notes("unheard") == [
        "research on architecture: no answer within 60 seconds",
        "research on impact: I cannot",
    ]
    assert "No answer: architecture, impact." in needs(it, AskForApproval)[0].request.context


@pytest.mark.parametrize(
    "first",
    [
        AgentFailure("not finished after 60 s", was_asked_once=True),
        research(completion=GAVE_UP),
        research(completion=Completion(status=CompletionStatus.NEEDS_REVISION, summary="ask me better")),
    ],
)
@pytest.mark.seed("pipeline", "research-four")
def test_researchers_who_were_asked_once_are_asked_again_together(first: AgentFailure | ResearchOutput) -> None:
    it = talk(script={RESEARCH[0]: first, RESEARCH[3]: first})
    assert it.batches[1:3] == [RESEARCH, ("research 1.2 architecture", "research 1.2 patterns")]
    assert (it.end.outcome, it.notes("unheard")) == (RunOutcome.PASSED, [])
    assert len(needs(it, AskSpec)[0].research) == 4


def test_nobody_is_asked_a_third_time() -> None:
    again = AgentFailure("not finished after 60 s", was_asked_once=True)
    it = talk(script={RESEARCH[0]: OUT, RESEARCH[1]: again, AGAIN: again})
    assert it.batches[1:3] == [RESEARCH, (AGAIN,)]
    assert it.notes("unheard") == [
        "research on architecture: no answer within 60 seconds",
        "research on impact: not finished after 60 s",
    ]


def test_one_researcher_is_not() -> None:
    it = talk(script=dict.fromkeys(RESEARCH[:3], OUT))
    assert (it.end.outcome, it.end.reason) == (RunOutcome.FAILED, "insufficient research: 1 of 4 researchers answered")
    assert "gate-post-research" not in it.asked
    assert it.end.confidence is None


@pytest.mark.seed("pipeline", "gate-research")
def test_research_is_expanded_once_with_what_is_open() -> None:
    it = talk(
        INTERACTIVE,
        {"gate-post-research": ApprovalDecision("expand", "Who calls it?"), RESEARCH[3]: OUT, "spec": spec()},
    )
    second = needs(it, AskResearch)[4:]
    assert [one.round for one in second] == [2] * 4
    assert second[0].questions == ("Who calls it?", "there is no research on patterns yet")
    assert [one.id for one in needs(it, AskForApproval)[1].request.options] == ["proceed", "abort"]
    assert needs(it, AskForApproval)[1].request.gate_id == "gate-post-research-2"
    assert len(needs(it, AskSpec)[0].research) == 7


@pytest.mark.parametrize(
    "script", [{"gate-post-research": ApprovalDecision("abort")}, {"gate-post-planning": ApprovalDecision("abort")}]
)
def test_the_person_can_abort(script: Script) -> None:
    it = talk(INTERACTIVE, script)
    assert (it.end.outcome, it.end.reason) == (RunOutcome.HALTED, "aborted by the user")
    assert it.asked[-1] == next(iter(script))


def test_an_option_that_is_not_offered_is_an_error() -> None:
    with pytest.raises(InputError, match="gate-post-research: 'maybe' is not offered"):
        talk(INTERACTIVE, {"gate-post-research": ApprovalDecision("maybe")})


# Specification and pushback.


def test_concerns_are_noted_where_nobody_is_asked() -> None:
    it = talk(script={"spec": spec(concern(), concern(Severity.MINOR, "The name is odd."))})
    assert it.notes("concern") == ["major: It breaks old clients.", "minor: The name is odd."]
    assert "gate-pushback" not in it.asked
    assert it.end.outcome is RunOutcome.PASSED


@pytest.mark.seed("pipeline", "pushback-spec")
def test_concerns_are_for_the_person_where_there_is_one() -> None:
    it = talk(INTERACTIVE, {"spec": spec(concern())})
    assert it.asked[6:8] == ["gate-pushback", "design 1"]
    assert not needs(it, AskForApproval)[1].by_person


def test_a_blocker_waits_for_a_person_even_where_nobody_is_asked() -> None:
    it = talk(script={"spec": spec(concern(Severity.BLOCKER)), "gate-pushback": WAIT})
    assert it.end.outcome is RunOutcome.NEEDS_HUMAN
    assert isinstance(it.end.waiting, ApprovalRequest)
    assert (it.end.waiting.gate_id, it.end.waiting.default.id) == ("gate-pushback", "abandon")
    assert needs(it, AskForApproval)[-1].by_person


def test_a_blocker_is_logged_where_the_person_said_so_beforehand() -> None:
    it = talk(replace(FEATURE, proceed_on_pushback=True), {"spec": spec(concern(Severity.BLOCKER))})
    assert it.end.outcome is RunOutcome.PASSED
    assert len(it.notes("concern")) == 1
    assert "gate-pushback" not in it.asked


def test_a_modified_request_is_specified_once_more() -> None:
    it = talk(
        INTERACTIVE,
        {
            "spec 1": spec(concern()),
            "spec 2": spec(concern(text="Still.")),
            "gate-pushback": ApprovalDecision("modify", "Old clients are gone."),
        },
    )
    second = needs(it, AskSpec)[1]
    assert second.answers == ("Old clients are gone.", "the concern is: It breaks old clients.")
    last = needs(it, AskForApproval)[2].request
    assert (last.gate_id, [one.id for one in last.options]) == ("gate-pushback-2", ["proceed", "abandon"])
    assert it.end.outcome is RunOutcome.PASSED


@pytest.mark.parametrize("round", [1, 2])
def test_the_person_can_abandon(round: int) -> None:
    script: Script = {
        "spec": spec(concern()),
        "gate-pushback": ApprovalDecision("modify"),
        "gate-pushback-2": ApprovalDecision("abandon"),
    }
    it = talk(INTERACTIVE, script if round == 2 else {**script, "gate-pushback": ApprovalDecision("abandon")})
    assert (it.end.outcome, it.end.reason) == (RunOutcome.HALTED, "abandoned by the user")


@pytest.mark.parametrize(("who", "what"), [("spec", "specification"), ("design 1", "design"), ("plan", "plan")])
def test_without_an_answer_nothing_goes_on(who: str, what: str) -> None:
    end = talk(script={who: OUT}).end
    assert (end.outcome, end.reason) == (RunOutcome.FAILED, f"no {what}: no answer within 60 seconds")


@each_row("who", [*RESEARCH[:1], "spec", "design 1", "design 1 security", "plan", "code 1 security"])
def test_where_the_budget_is_spent_nobody_else_is_asked(who: str) -> None:
    it = talk(script={who: AgentFailure("the run's 5 USD are spent", is_budget_exhausted=True)})
    assert (it.end.outcome, it.end.reason) == (RunOutcome.BUDGET_EXHAUSTED, "the run's 5 USD are spent")
    assert "knowledge" not in it.asked
    assert any(name.startswith(who) for name in it.batches[-1])


# Design and its review.


@pytest.mark.seed("pipeline", "design-revision")
def test_a_design_is_revised_once_with_what_reviewers_said() -> None:
    it = talk(script=two("design", 1, REVISION))
    assert [need.round for need in needs(it, AskDesign)] == [1, 2]
    assert len(needs(it, AskDesign)[1].reviews) == 3
    second = [need for need in needs(it, AskReview) if need.scope == "design"][3:]
    assert [len(need.earlier) for need in second] == [1, 1, 0]
    assert (it.end.outcome, it.end.confidence, it.end.known_issues) == (RunOutcome.PASSED, Confidence.HIGH, ())


@pytest.mark.seed("pipeline", "design-revision")
def test_what_is_left_of_a_design_review_binds_the_plan() -> None:
    it = talk(script={**two("design", 1, REVISION), **two("design", 2, REVISION)})
    assert "Round once." in needs(it, VerifyPlan)[0].text
    assert [need.round for need in needs(it, AskDesign)] == [1, 2]
    assert (it.end.outcome, it.end.confidence) == (RunOutcome.PASSED, Confidence.MEDIUM)
    assert [one.source for one in it.end.known_issues] == [
        "review design/security, round 2",
        "review design/architecture, round 2",
    ]


@pytest.mark.parametrize("round", [1, 2])
def test_a_blocker_of_a_design_halts(round: int) -> None:
    it = talk(script={**two("design", 1, REVISION), f"design {round} correctness": review("blocker")})
    assert (it.end.outcome, it.end.commit) == (RunOutcome.HALTED, None)
    assert "plan 1.1" not in it.asked
    assert it.end.known_issues[-1].severity is Severity.BLOCKER


def test_a_reviewer_who_was_not_heard_is_asked_again_and_nothing_is_revised_for_it() -> None:
    it = talk(script={"design 1 security": OUT})
    assert [need.round for need in needs(it, AskDesign)] == [1]
    assert "design 2 security" in it.asked
    assert it.end.outcome is RunOutcome.PASSED


@pytest.mark.parametrize("scope", ["design", "code"])
def test_what_not_everybody_has_reviewed_does_not_go_on(scope: str) -> None:
    it = talk(script={f"{scope} 1 security": OUT, f"{scope} 2 security": OUT})
    assert (it.end.outcome, it.end.commit, it.end.confidence) == (RunOutcome.FAILED, None, Confidence.LOW)
    assert it.end.reason == f"{scope} review: security has not submitted: no answer within 60 seconds"
    assert it.asked[-1] == "knowledge"


# Plan and plan gate.

LOST = plan(task(criteria=("AC-9",)))


def test_a_plan_against_the_rules_goes_back_with_what_is_wrong() -> None:
    it = talk(script={"plan 1.1": LOST})
    second = needs(it, AskPlan)[1]
    assert (second.iteration, second.attempt) == (1, 2)
    assert second.failures == (
        "task T1 names the criterion AC-9, which does not exist; known: AC-1, AC-2",
        "no task covers AC-1, AC-2",
    )
    assert len(it.notes("not-taken")) == 1
    assert it.end.outcome is RunOutcome.PASSED


def test_after_three_of_them_there_is_no_plan() -> None:
    it = talk(script={"plan": LOST})
    assert [name for name in it.agents if name.startswith("plan")] == ["plan 1.1", "plan 1.2", "plan 1.3"]
    assert (it.end.outcome, it.end.confidence) == (RunOutcome.FAILED, Confidence.LOW)
    assert it.end.reason.startswith("no acceptable plan: task T1 names the criterion AC-9")
    assert it.asked[-1] == "knowledge"


@pytest.mark.parametrize("verdict", ["REVISE", "RETHINK"])
def test_a_plan_that_is_challenged_goes_back_once(verdict: str) -> None:
    it = talk(script={"verify 1": verified(verdict, "Nobody locks it", mitigations=("lock the file",))})
    second = needs(it, AskPlan)[1]
    assert second.directive == f"the plan gate decided {verdict}: what it says"
    assert second.failures == ("major: Nobody locks it (plan gate C1)", "mitigation: lock the file")
    assert [one.verdict for one in it.end.plan_gates] == [verdict, "PROCEED"]
    assert it.end.outcome is RunOutcome.PASSED


def test_a_plan_that_is_challenged_again_halts_the_run() -> None:
    it = talk(script={"verify": verified("REVISE", "Nobody locks it")})
    assert (it.end.outcome, it.end.reason) == (RunOutcome.HALTED, "the plan gate decided REVISE: what it says")
    assert len(it.end.plan_gates) == 2
    assert [one.title for one in it.end.known_issues] == ["Nobody locks it"]
    assert not needs(it, Implement)


def test_mitigations_of_a_plan_that_proceeds_bind_its_tasks() -> None:
    it = talk(script={"verify": verified("PROCEED", mitigations=("lock the file first",))})
    read, _ = read_plan(needs(it, Implement)[0].text, "PLAN.md")
    assert read is not None
    assert "lock the file first" in read.context
    assert "lock the file first" not in needs(it, VerifyPlan)[0].text


@pytest.mark.parametrize("sent", [verified(None), WAIT])
def test_a_question_of_the_plan_gate_waits_for_the_person(sent: PipelineEffectResult) -> None:
    end = talk(script={"verify": sent}).end
    assert end.outcome is RunOutcome.NEEDS_HUMAN
    assert end.waiting is not None


@pytest.mark.seed("pipeline", "gate-planning")
def test_the_person_can_have_the_plan_revised_once() -> None:
    it = talk(INTERACTIVE, {"gate-post-planning": ApprovalDecision("revise", "Smaller tasks.")})
    second = needs(it, AskPlan)[1]
    assert (second.attempt, second.directive, second.failures) == (
        2,
        "The user wants another plan.",
        ("Smaller tasks.",),
    )
    last = needs(it, AskForApproval)[-1].request
    assert (last.gate_id, [one.id for one in last.options]) == ("gate-post-planning-2", ["approve", "abort"])
    assert len(it.end.plan_gates) == 2
    assert it.end.outcome is RunOutcome.PASSED


@pytest.mark.parametrize("gate", ["gate-post-research", "gate-post-planning"])
def test_a_run_that_nobody_answers_waits(gate: str) -> None:
    it = talk(INTERACTIVE, {gate: WAIT})
    assert it.end.outcome is RunOutcome.NEEDS_HUMAN
    assert isinstance(it.end.waiting, ApprovalRequest)
    assert it.end.waiting.gate_id == gate
    assert it.asked[-1] == gate


# Tasks and the controller.

TWO = plan(task("a", criteria=("AC-1",)), task("b", criteria=("AC-2",)))
ANEW = plan(task("x", title="Ask the bank", description="Something quite new."))
REST = plan(task("a", criteria=("AC-1",), description="Write it in another way."))


@pytest.mark.seed("pipeline", "replan-loop")
def test_what_failed_is_planned_anew_as_the_controller_directs() -> None:
    it = talk(script={"plan 1.1": TWO, "implement 1": failed, "plan 2.1": REST})
    second = needs(it, AskPlan)[1]
    assert second.directive.startswith("refine: Keep the approach, and improve it where it failed.")
    assert second.failures == ("Do a: VERIFY_FAILURE after 3 attempts: exit 1", "Do a: tests (fail): tests is red")
    assert it.notes("direction") == [
        "iteration 1: D=0.50 P=1.00 ∇=+0.00 Ω=0.00 ⊥ refine: the first round: there is no direction yet, so same "
        "approach, tighter"
    ]
    (noted,) = (one for one in needs(it, RecordNote) if one.kind == "direction")
    assert isinstance(noted.data, RetryDirection)
    assert it.end.outcome is RunOutcome.PASSED


def test_the_next_plan_begins_where_the_last_one_ended_and_is_verified_but_not_agreed_to_again() -> None:
    it = talk(script={"plan 1.1": TWO, "implement 1": failed, "plan 2.1": REST})
    at = it.asked.index("plan 2.1")
    assert it.asked[at : at + 4] == ["plan 2.1", "verify 2", "implement 2", "check 2"]
    assert [need.base for need in needs(it, Implement)] == [BASE, tip(1)]
    assert needs(it, CommitChange)[0].tip == tip(2)


def test_only_what_is_not_met_must_be_planned_again() -> None:
    it = talk(script={"plan 1.1": TWO, "implement 1": failed, "plan 2.1": plan(task("b", criteria=("AC-2",)))})
    assert "no task covers AC-1" in it.notes("not-taken")[0]


@pytest.mark.seed("pipeline", "replan-loop")
def test_after_three_iterations_it_is_given_up() -> None:
    it = talk(script={"implement": failed, "plan 3.1": ANEW})
    assert [need.iteration for need in needs(it, Implement)] == [1, 2, 3]
    assert (it.end.outcome, it.end.confidence, it.end.commit) == (RunOutcome.FAILED, Confidence.LOW, None)
    assert it.end.reason == (
        "abandoned after 3 failed iterations: Ask the bank: VERIFY_FAILURE after 3 attempts: exit 1"
    )
    assert it.asked[-1] == "knowledge"
    assert needs(it, AskKnowledge)[0].outcome.startswith("failed: abandoned")


def test_a_plateau_breaks_the_symmetry_and_the_same_plan_is_not_taken_again() -> None:
    it = talk(script={"implement": failed, "plan 3.2": ANEW})
    assert "break_symmetry" in it.notes("direction")[1]
    assert "almost an earlier one (similarity 1.00)" in it.notes("not-taken")[0]
    assert "implement 3" in it.asked


def test_time_that_runs_out_gives_up_earlier() -> None:
    def slow(need: PipelineEffect) -> PipelineEffectResult:
        assert isinstance(need, Implement)
        return replace(gated(need, RunOutcome.FAILED, TaskState.FAILED), elapsed_ms=60 * 60_000)

    it = talk(replace(FEATURE, minutes=60), {"implement": slow})
    assert "Ω=0.70" in it.notes("direction")[1]
    assert "Ω=0.40" in it.notes("direction")[0]


@pytest.mark.parametrize("outcome", [RunOutcome.HALTED, RunOutcome.NEEDS_HUMAN, RunOutcome.BUDGET_EXHAUSTED])
def test_where_the_task_gate_stops_the_run_does(outcome: RunOutcome) -> None:
    it = talk(script={"implement": ended(outcome)})
    assert (it.end.outcome, it.end.reason, it.end.commit) == (outcome, f"it is {outcome}", None)
    assert (it.end.waiting is not None) == (outcome is RunOutcome.NEEDS_HUMAN)
    assert (it.asked[-1] == "knowledge") == (outcome is RunOutcome.HALTED)
    assert not it.notes("direction")


def test_a_question_of_the_task_gate_waits_for_the_person() -> None:
    end = talk(script={"implement": WAIT}).end
    assert (end.outcome, end.waiting) == (RunOutcome.NEEDS_HUMAN, WAIT)


def test_a_whole_that_does_not_pass_is_an_iteration_that_failed() -> None:
    it = talk(script={"check 1": checked(passed=False)})
    second = needs(it, AskPlan)[1]
    assert second.failures == ("all checks on the merged tree: tests: 2 fail", "this worked before: test_old")
    assert it.asked[it.asked.index("implement 2") :][:3] == ["implement 2", "check 2", "code 1 security"]
    assert it.end.outcome is RunOutcome.PASSED


def test_a_whole_that_never_passes_is_given_up() -> None:
    it = talk(script={"check": checked(passed=False), "plan 3.1": ANEW})
    assert len(needs(it, Implement)) == 3
    assert (it.end.outcome, it.end.commit) == (RunOutcome.FAILED, None)
    assert "code 1 security" not in it.asked


@pytest.mark.parametrize(
    ("confidence", "commits"), [(Confidence.HIGH, True), (Confidence.MEDIUM, True), (Confidence.LOW, False)]
)
@pytest.mark.seed("pipeline", "commit")
def test_only_what_one_is_sure_enough_of_is_committed(confidence: Confidence, commits: bool) -> None:
    it = talk(script={"check": checked(confidence=confidence, raises=("cover it",))})
    assert (it.end.commit is not None, it.end.confidence) == (commits, confidence)
    assert ("commit" in it.asked) == commits
    assert ("cover it" in "".join(map(str, it.end.reasons))) == (confidence is not Confidence.HIGH)


# Code review.


def test_what_a_code_review_finds_is_put_right_as_a_task_and_reviewed_again() -> None:
    it = talk(script=two("code", 1, REVISION))
    at = it.asked.index("code 1 correctness") + 1
    assert it.asked[at:] == ["plan 2.1", "verify 2", "implement 2", "check 2", *panel("code", 2), "knowledge", "commit"]
    second = needs(it, AskPlan)[1]
    assert second.directive.startswith("The code review requires a revision")
    assert second.failures[0] == (
        "major (security): It rounds twice: A cent is lost. Seen in shop/cart.py:3. Recommended: Round once."
    )
    assert (it.end.outcome, it.end.known_issues, it.end.confidence) == (RunOutcome.PASSED, (), Confidence.HIGH)
    assert not it.notes("direction")


@pytest.mark.seed("pipeline", "review-rounds")
def test_after_two_rounds_what_is_left_is_known_and_nothing_is_committed() -> None:
    it = talk(script={**two("code", 1, REVISION), **two("code", 2, REVISION)})
    assert (it.end.outcome, it.end.commit, it.end.confidence) == (RunOutcome.FAILED, None, Confidence.LOW)
    assert it.end.reason == "code review: 1 of 3 approve, and 2 must"
    assert len(it.end.known_issues) == 2
    assert it.asked[-1] == "knowledge"


@pytest.mark.parametrize("round", [1, 2])
@pytest.mark.seed("pipeline", "security-blocker")
def test_a_blocker_of_code_halts(round: int) -> None:
    it = talk(script={**two("code", 1, REVISION), f"code {round} security": review("blocker")})
    assert (it.end.outcome, it.end.commit, it.asked[-1]) == (RunOutcome.HALTED, None, "knowledge")


@pytest.mark.seed("pipeline", "dissent")
def test_dissent_is_known_and_keeps_the_confidence_from_being_high() -> None:
    it = talk(script={"code 1 security": REVISION})
    assert (it.end.outcome, it.end.confidence) == (RunOutcome.PASSED, Confidence.MEDIUM)
    assert [one.title for one in it.end.known_issues] == ["It rounds twice"]


def test_an_open_critical_is_a_round_of_revision_even_if_all_approve() -> None:
    critical = review("approve", finding(Severity.CRITICAL))
    it = talk(script={"code 1 security": critical})
    assert "code 2 security" in it.asked
    assert it.end.outcome is RunOutcome.PASSED
    low = talk(script={"code 1 security": critical, "code 2 security": critical}).end
    assert (low.commit, low.confidence) == (None, Confidence.LOW)


def test_a_review_is_no_failed_iteration_but_what_it_asks_for_may_be() -> None:
    it = talk(script={"implement 1": failed, "implement 2": failed, **two("code", 1, REVISION), "plan 3.1": ANEW})
    assert [need.iteration for need in needs(it, Implement)] == [1, 2, 3, 4]
    assert it.end.outcome is RunOutcome.PASSED
    given_up = talk(
        script={
            "implement 1": failed,
            "implement 2": failed,
            "implement 4": failed,
            **two("code", 1, REVISION),
            "plan 3.1": ANEW,
        }
    )
    assert given_up.end.reason.startswith("abandoned after 3 failed iterations")


# Lanes of the whole pipeline.


def test_a_red_file_makes_it_large_and_the_whole_cascade_is_run() -> None:
    it = talk(script={"plan": plan(task(files=("shop/auth.py",)))})
    assert it.notes("lane")[1:] == ["large: the plan changes what is 🔴: shop/auth.py"]
    assert "check 1 large" in it.asked
    assert "🔴: shop/auth.py" in needs(it, AskForApproval)[1].request.context
    assert (it.end.lane, needs(it, Implement)[0].lane) == (Lane.LARGE, Lane.LARGE)


def test_a_change_that_turns_out_red_is_checked_again_as_such() -> None:
    it = talk(script={"check 1": checked(left="shop/cart.py is 🔴: cryptography")})
    assert it.asked[it.asked.index("check 1") :][:3] == ["check 1", "check 1 large", "code 1 security"]
    assert it.end.lane is Lane.LARGE
    assert it.end.outcome is RunOutcome.PASSED
