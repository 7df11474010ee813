"""The task, from the person's words to the final result, by script."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.solve_messages import (
    DirectiveName,
    FinalResult,
    FinalStatus,
    Gradient,
    OutcomeSummary,
    ReplanRequest,
)
from proofstone.agents.rules.routes import is_allowed
from proofstone.runtime.rules import EffectDone
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskForFailureReport,
    ElapsedTime,
    ExecutionRecord,
    PublishMessage,
    PursueSubtasks,
    ReportPlan,
    ReportRejectedPlan,
    ReportRound,
    SolveAgentReply,
    UserReply,
)
from proofstone.solve.rules.gradient import LossWeights
from tests.rows import each_row
from tests.solve.talk import (
    BLOCKED,
    BY_DUMP,
    BY_HAND,
    ENVIRONMENTAL,
    LOGICAL,
    MIXED,
    ONCE,
    OUT,
    TOOLS,
    TWO_STEPS,
    WRONG,
    Script,
    Scripted,
    Talk,
    crash,
    done,
    draft,
    failure,
    follow,
    goal,
    judgement,
    merge,
    messages,
    perceived,
    plan,
    plausible,
)
from tests.talk import needs

REFINE, ABANDON = DirectiveName.REFINE, DirectiveName.ABANDON
PATH, APPROACH, BREAK = DirectiveName.CHANGE_PATH, DirectiveName.CHANGE_APPROACH, DirectiveName.BREAK_SYMMETRY
HALF = plan(draft(plausible("alpha holds"), plausible("beta holds")))
OTHER_HALF = plan(
    draft(plausible("alpha holds"), plausible("beta holds"), intent="Type it", tools=("write",), files=("x",))
)


# How it goes.


def test_all_goes_well_at_once_and_every_message_stands_in_its_place() -> None:
    talk = follow()
    assert talk.names == [
        "perceive",
        "perceiver → planner: TaskSpec",
        "recall",
        "plan 1.1",
        "planned 1",
        "planner → executor: SubTask",
        "planner → meta_validator: DispatchManifest",
        "pursue 1.1",
        "execute r1-s1.1",
        "executor → agent_validator: ExecutionResult",
        "judge r1-s1.1",
        "agent_validator → meta_validator: SubTaskOutcome",
        "merge 1",
        "time 1",
        "meta_validator → controller: OutcomeSummary",
        "round 1",
        "controller → person: FinalResult",
    ]
    result = talk.end.result
    assert (result.status, result.replans, result.grad_l, result.loss.D) == (FinalStatus.ACCEPTED, 0, 0, 0)
    assert (result.output, result.summary) == ("all is moved", "The rows are moved.")
    assert not result.partial
    assert not result.next_moves
    assert not talk.directives


def test_a_failed_round_goes_by_the_controller_back_to_the_planner() -> None:
    talk = follow({"judge r1": WRONG, "plan 2.1": BY_HAND})
    after = talk.names[talk.names.index("time 1") :]
    assert after[:5] == [
        "time 1",
        "meta_validator → controller: ReplanRequest",
        "round 1",
        "controller → planner: PlanDirective",
        "recall",
    ]
    assert talk.end.result.replans == 1


Case = tuple[Script, list[DirectiveName], FinalStatus]
RUNS: dict[str, Case] = {
    "something in the way, another path": (
        {"judge r1": BLOCKED, "plan 2.1": plan(draft(files=("src/other.py",)))},
        [PATH],
        FinalStatus.ACCEPTED,
    ),
    "a wrong approach, another one": ({"judge r1": WRONG, "plan 2.1": BY_HAND}, [BREAK], FinalStatus.ACCEPTED),
    "it gets worse, and the approach is to blame": (
        {
            "plan 1.1": HALF,
            "judge r1": judgement(None, LOGICAL),
            "plan 2.1": OTHER_HALF,
            "judge r2": judgement(LOGICAL, LOGICAL),
            "plan 3.1": BY_DUMP,
        },
        [BREAK, APPROACH],
        FinalStatus.ACCEPTED,
    ),
    "it gets worse, and something is in the way": (
        {
            "plan 1.1": HALF,
            "judge r1": judgement(None, ENVIRONMENTAL),
            "plan 2.1": OTHER_HALF,
            "judge r2": judgement(ENVIRONMENTAL, ENVIRONMENTAL),
            "plan 3.1": OTHER_HALF,
        },
        [PATH, REFINE],
        FinalStatus.ACCEPTED,
    ),
    "it comes nearer": (
        {
            "plan 1.1": HALF,
            "judge r1": judgement(LOGICAL, LOGICAL),
            "plan 2.1": OTHER_HALF,
            "judge r2": judgement(LOGICAL, None),
            "plan 3.1": OTHER_HALF,
        },
        [BREAK, REFINE],
        FinalStatus.ACCEPTED,
    ),
    "nearly there": (
        {
            "plan 1.1": plan(criteria=tuple(plausible(f"part {one} is so") for one in "abc")),
            "merge 1": merge(None, None, LOGICAL),
        },
        [REFINE],
        FinalStatus.ACCEPTED,
    ),
    "an executor that crashes": (
        {"execute r1": crash("no space left"), "plan 2.1": BY_HAND},
        [PATH],
        FinalStatus.ACCEPTED,
    ),
    "nothing helps": (
        {
            "judge": BLOCKED,
            "plan 2.1": BY_HAND,
            "plan 3.1": BY_DUMP,
            "plan 4.1": BY_HAND,
        },
        [PATH, PATH, PATH, ABANDON],
        FinalStatus.ABANDONED,
    ),
}


@each_row("case", RUNS.values())
def test_what_the_controller_directs(case: Case) -> None:
    script, directives, status = case
    talk = follow(script)
    assert talk.directives == directives
    assert talk.end.result.status is status
    assert talk.rounds() == len(directives) + (status is FinalStatus.ACCEPTED)


def test_change_path_blocks_what_it_was_tried_on_and_no_tool() -> None:
    talk = follow({"judge r1": BLOCKED, "plan 2": [plan(), BY_HAND]})
    (directive,) = talk.end.directives
    assert (directive.blocked_targets, directive.blocked_tools) == (("src/copy.py",), ())
    assert directive.suggested_alternatives == ("another target than src/copy.py",)
    assert directive.failure_class is ENVIRONMENTAL
    assert talk.end.rejected == ("round 2: subtask 1 uses src/copy.py: the controller blocked it",)


@pytest.mark.seed("control-loop", "blocked-tools")
def test_break_symmetry_blocks_the_tools_of_what_failed_and_the_plan_rules_refuse_them() -> None:
    talk = follow({"judge r1": WRONG, "plan 2": [plan(), BY_HAND]})
    (directive,) = talk.end.directives
    assert (directive.blocked_tools, directive.blocked_targets) == (("run",), ())
    assert not directive.suggested_alternatives
    assert (directive.failed_criterion, directive.failure_class) == ("nobody's balance changes", LOGICAL)
    assert directive.gradient is Gradient.PLATEAU
    assert directive.rationale.startswith("a local minimum (∇=+0.00, D=1.00)")
    assert talk.end.rejected == (
        "round 2: subtask 1 uses run: the controller blocked it; available: read, glob, grep, write, edit",
    )
    assert [one.blocked_tools for one in needs(talk, AskExecutor)][-1] == ("run",)
    assert talk.end.result.status is FinalStatus.ACCEPTED


def test_only_the_tools_of_what_failed_are_blocked() -> None:
    two = plan(draft(tools=("read",)), draft(intent="Count them", tools=("grep",)))
    talk = follow({"plan 1.1": two, "judge r1-s2": WRONG, "plan 2.1": BY_HAND})
    assert talk.end.directives[0].blocked_tools == ("grep",)


def test_a_merge_that_was_rejected_blames_the_tools_of_all() -> None:
    two = plan(draft(tools=("read",)), draft(intent="Count them", tools=("run",)))
    talk = follow({"plan 1.1": two, "merge 1": merge(LOGICAL, meets="no"), "plan 2.1": BY_HAND})
    (directive,) = talk.end.directives
    assert (directive.directive, directive.blocked_tools) == (BREAK, ("read", "run"))
    assert (directive.failed_criterion, directive.failure_class) == ("both hold equally many customers", LOGICAL)


@each_row(
    ("used", "blocked"),
    [
        (("run", "read"), ("run", "read")),
        (("run", "curl"), ("run", "curl")),
        (("read", "glob", "grep"), ("read", "glob", "grep")),
        (("run", "write", "edit"), ()),
        (TOOLS, ()),
        ((*TOOLS, "curl"), ()),
        ((), ()),
    ],
)
def test_tools_are_blocked_as_long_as_one_is_left_to_work_with(used: tuple[str, ...], blocked: tuple[str, ...]) -> None:
    talk = follow({"execute r1": done(*used), "judge r1": WRONG, "plan 2.1": BY_HAND})
    assert talk.end.directives[0].blocked_tools == blocked


def test_a_tie_of_classes_is_mixed() -> None:
    script = {"plan 1.1": HALF, "judge r1": judgement(LOGICAL, ENVIRONMENTAL), "plan 2.1": BY_HAND}
    assert follow(script).end.directives[0].failure_class is MIXED


def test_worsening_in_the_way_travels_with_a_hint() -> None:
    script, _, _ = RUNS["it gets worse, and something is in the way"]
    refine = follow(script).end.directives[-1]
    assert refine.suggested_alternatives == ("another target than x",)
    assert not refine.blocked_tools
    assert not refine.blocked_targets


def test_whoever_looks_on_hears_of_every_round() -> None:
    talk = follow({"judge r1": WRONG, "plan 2": [plan(), BY_HAND]})
    first, second = needs(talk, ReportRound)
    assert (first.number, first.directive, first.reading) == (1, talk.end.directives[0], talk.end.readings[0])
    assert ([one.is_matched for one in first.outcomes], first.elapsed_ms, first.rejected) == ([False], 1000, ())
    assert [one.subtask_id for one in first.subtasks] == ["t1-r1-s1"]
    assert (second.number, second.reading, second.elapsed_ms) == (2, talk.end.readings[1], 2000)
    assert [one.subtask_id for one in second.subtasks] == ["t1-r2-s1"]
    assert second.rejected == (
        "subtask 1 uses run: the controller blocked it; available: read, glob, grep, write, edit",
    )


def test_what_is_accepted_is_shown_and_binds_no_plan() -> None:
    talk = follow()
    (round,) = needs(talk, ReportRound)
    assert (round.directive.directive, round.directive.loss.D) == (DirectiveName.ACCEPT, 0)
    assert round.directive.rationale == "everything that was asked for is there, and verified"
    assert (round.directive.blocked_tools, round.directive.failed_criterion) == ((), "")
    assert not talk.end.directives
    assert "controller → planner: PlanDirective" not in talk.said


def test_whoever_looks_on_hears_of_every_plan_taken_or_not() -> None:
    talk = follow({"judge r1": WRONG, "plan 2": [plan(), plan(draft(tools=("curl",))), BY_HAND]})
    shown = [one for one in talk.names if one.startswith(("planned", "not taken"))]
    assert shown == ["planned 1", "not taken 2.1", "not taken 2.2", "planned 2"]
    assert [(one.round, one.why) for one in needs(talk, ReportRejectedPlan)] == [
        (2, why.removeprefix("round 2: ")) for why in talk.end.rejected
    ]
    assert [one.subtasks for one in needs(talk, ReportPlan)] == [one.subtasks for one in needs(talk, PursueSubtasks)]


def test_what_is_left_at_the_end_is_of_all_rounds() -> None:
    talk = follow({"judge r1": WRONG, "plan 2.1": BY_HAND})
    assert [one.subtask_id for one in talk.end.subtasks] == ["t1-r2-s1"]
    assert [one.subtask_id for one in talk.end.all_subtasks] == ["t1-r1-s1", "t1-r2-s1"]
    assert talk.end.rounds == (*messages(talk, ReplanRequest), *messages(talk, OutcomeSummary))


# What the controller is told.


def test_what_is_asked_for_when_it_failed() -> None:
    two = plan(draft(), draft(plausible("beta holds")))
    talk = follow({"plan 1.1": two, "judge r1-s1": [WRONG, judgement(None)], "judge r1-s2": WRONG, "plan 2.1": BY_HAND})
    (request,) = messages(talk, ReplanRequest)
    assert request.failed_subtasks == ("t1-r1-s2",)
    assert request.correction_count == 3
    assert request.elapsed_ms == 1000
    assert request.gap_summary == "beta holds: row 7 says so"
    assert request.recommendation == "replan"


@pytest.mark.parametrize(("replans", "recommended"), [(0, ["abandon"]), (1, ["replan", "abandon"])])
def test_what_is_recommended_goes_by_the_replans_that_are_left(replans: int, recommended: list[str]) -> None:
    talk = follow({"execute": crash()}, goal(weights=LossWeights(max_replans=replans)))
    assert [one.recommendation for one in messages(talk, ReplanRequest)] == recommended


def test_a_long_round_is_not_a_worse_one() -> None:
    """Time alone moves L, and decides nothing but when to stop."""
    late = ElapsedTime(300_000)
    talk = follow({"judge": BLOCKED, "time 2": late, "time 3": late, "plan 2.1": BY_HAND, "plan 3.1": BY_DUMP})
    assert talk.end.readings[1].nabla == 0
    assert talk.end.readings[1].grad_l > 0.1
    assert talk.directives == [PATH, PATH, ABANDON]
    assert [one.gradient for one in talk.end.directives[:2]] == [Gradient.PLATEAU] * 2


@pytest.mark.parametrize(
    ("script", "rounds"),
    [({"time": ElapsedTime(10**9)}, 3), ({"time": ElapsedTime(0)}, 4), ({"time": EffectDone()}, 4)],
    ids=["time is up", "there is time", "nobody knows the time"],
)
def test_it_is_abandoned_when_the_budget_is_spent(script: Script, rounds: int) -> None:
    talk = follow({"execute": crash(), **script})
    assert talk.rounds() == rounds
    assert talk.directives[-1] is ABANDON
    assert talk.end.result.replans == rounds - 1


# The end.


def test_abandoned_with_what_was_done_and_what_could_be_done_next() -> None:
    talk = follow({"plan 1.1": TWO_STEPS, "judge r1-s2": WRONG, "fail": failure()}, ONCE)
    result = talk.end.result
    assert (result.status, result.summary) == (FinalStatus.PARTIAL, "Half of it is done.")
    assert (result.partial, result.next_moves) == (("the schema is there",), ("free the disk", "move fewer rows"))
    assert result.output is None
    (ask,) = needs(talk, AskForFailureReport)
    assert (ask.directive, ask.outcomes) == (talk.end.directives[-1], talk.end.outcomes)
    assert (ask.previous, ask.merged) == (talk.end.subtasks, ())
    assert talk.names[-5:] == [
        "meta_validator → controller: ReplanRequest",
        "round 1",
        "controller → planner: PlanDirective",
        "fail",
        "controller → person: FinalResult",
    ]


@pytest.mark.parametrize(
    "answer", [OUT, SolveAgentReply(perceived()), EffectDone()], ids=["it fails", "another answer", "none"]
)
def test_where_the_planner_cannot_say_code_does(answer: Scripted) -> None:
    talk = follow({"plan 1.1": TWO_STEPS, "judge r1-s2": WRONG, "fail": answer}, ONCE)
    result = talk.end.result
    assert result.status is FinalStatus.PARTIAL
    assert result.summary == "the budget is spent (Ω=0.60, 0 replans): nothing more is tried"
    assert result.partial == ("t1-r1-s1: copied",)
    assert result.next_moves == (
        "look at the first failure: nobody's balance changes",
        "narrow the goal or split it, and run it again",
    )


def test_a_planner_that_hands_over_is_told_what_was_said_of_the_merged_result() -> None:
    talk = follow({"merge": merge(LOGICAL)}, ONCE)
    (ask,) = needs(talk, AskForFailureReport)
    assert [(one.criterion, one.failure_class) for one in ask.merged] == [("both hold equally many customers", LOGICAL)]


def test_what_an_earlier_plan_has_done_is_done_if_the_last_round_had_none() -> None:
    script: Script = {"plan 1.1": TWO_STEPS, "judge r1-s2": WRONG, "plan 2.1": OUT}
    talk = follow(script, goal(weights=LossWeights(max_replans=1)))
    assert (talk.end.result.status, talk.end.result.partial) == (FinalStatus.PARTIAL, ("t1-r1-s1: copied",))
    (ask,) = needs(talk, AskForFailureReport)
    assert [one.subtask_id for one in ask.outcomes] == ["t1-r1-s1", "t1-r1-s2", "t1-r2-plan"]
    assert [one.subtask_id for one in ask.previous] == ["t1-r1-s1", "t1-r1-s2"]


def test_what_was_done_is_told_as_json_where_it_is_no_text() -> None:
    counted = done().result.model_copy(update={"output": {"rows": 7, "lost": None}})
    talk = follow({"plan 1.1": TWO_STEPS, "execute r1-s1": ExecutionRecord(counted), "judge r1-s2": WRONG}, ONCE)
    assert talk.end.result.partial == ('t1-r1-s1: {"rows": 7, "lost": null}',)


def test_what_code_says_goes_by_what_was_in_the_way() -> None:
    result = follow({"judge": BLOCKED}, ONCE).end.result
    assert result.next_moves[1] == "remove the obstacle, and run it again"
    assert (result.status, result.partial) == (FinalStatus.ABANDONED, ())


@pytest.mark.parametrize(
    ("planned", "told"),
    [
        (OUT, "there was no plan: see why the planner failed"),
        (plan(draft(tools=("curl",))), "every plan was rejected: see the reasons"),
    ],
    ids=["it failed", "none was taken"],
)
def test_where_there_was_no_plan_code_says_so(planned: Scripted, told: str) -> None:
    result = follow({"plan": planned, "fail": OUT}, ONCE).end.result
    assert result.next_moves[0] == told
    assert len(result.next_moves) == 2


def test_a_planner_cannot_claim_that_something_was_done_when_nothing_was() -> None:
    result = follow({"judge": WRONG, "fail": failure()}, ONCE).end.result
    assert (result.status, result.partial) == (FinalStatus.ABANDONED, ())
    assert result.next_moves == ("free the disk", "move fewer rows")


@each_row("case", RUNS.values())
@pytest.mark.seed("control-loop", "final-result")
def test_every_message_is_on_a_route_and_the_final_result_is_the_last_of_them(case: Case) -> None:
    talk = follow({**case[0], "perceive": [perceived(question="Which?"), perceived()], "person": UserReply("that")})
    assert [
        one
        for one in needs(talk, PublishMessage)
        if not is_allowed(one.sender, one.recipient, type(one.message).__name__)
    ] == []
    assert messages(talk, FinalResult) == [talk.end.result]
    assert talk.names[-1] == "controller → person: FinalResult"


@pytest.mark.parametrize("policy", ["gradient", "grid", "naive"])
def test_every_policy_comes_to_an_end(policy: str) -> None:
    talk: Talk = follow({"execute": crash()}, goal(policy=policy))
    assert talk.end.result.status is FinalStatus.ABANDONED
    assert 1 <= talk.rounds() <= 4
