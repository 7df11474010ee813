"""How deep a change is looked into, and that a lane is only ever left for a deeper one."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.pipeline import PlanOutput
from proofstone.common.models import Confidence, Lane
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import BlastRadius
from proofstone.pipeline.rules.effects import AskAgent, AskPlan, AskReview, Implement, PipelineGoal
from proofstone.pipeline.rules.planning import (
    LANE_DEPTHS,
    choose_lane,
    explain_lane_exit,
    explain_outgrown_lane,
    find_deeper_lane,
    raise_plan_risks,
)
from tests.pipeline.talk import BASE, DOCS, FIX, OUT, Script, Scripted, checked, failed, plan, review, talk, task
from tests.rows import each_row
from tests.talk import needs

DOC = task("d", files=("docs/a.md", "README.md"), risk="🟢")
OTHER_DOC = task("e", files=("docs/b.md",), risk="🟢")
CODE = task("c")
RED = task("r", files=("shop/auth.py",), risk="🔴")


@each_row(
    ("files", "lane"),
    [
        ((), Lane.STANDARD),
        (("README.md",), Lane.DOCS),
        (("docs/a.md", "CHANGELOG.md"), Lane.DOCS),
        (("docs/a.md", "shop/cart.py"), Lane.FIX),
        (("shop/cart.py", "tests/test_cart.py"), Lane.FIX),
        (("a.py", "b.py", "c.py"), Lane.FIX),
        (("a.py", "b.py", "c.py", "d.py"), Lane.STANDARD),
        (("a.py", "b.py", "c.py", "tests/test_d.py"), Lane.FIX),
        (("README.md", "shop/auth.py"), Lane.LARGE),
        (("db/migrations/0001.sql",), Lane.LARGE),
        (("tests/test_auth.py",), Lane.FIX),
    ],
)
def test_the_files_that_are_named_choose_the_lane(files: tuple[str, ...], lane: Lane) -> None:
    chosen, why = choose_lane(files)
    assert (chosen, bool(why)) == (lane, True)


@each_row(
    ("lane", "of", "why", "into"),
    [
        (Lane.DOCS, plan(DOC), "", Lane.FIX),
        (Lane.DOCS, plan(DOC, OTHER_DOC), "", Lane.STANDARD),
        (Lane.DOCS, plan(CODE), "the plan changes shop/c.py, which is not documentation", Lane.FIX),
        (Lane.DOCS, plan(DOC, CODE), "the plan changes shop/c.py, which is not documentation", Lane.STANDARD),
        (Lane.DOCS, plan(RED), "the plan changes shop/auth.py, which is not documentation", Lane.LARGE),
        (Lane.FIX, plan(CODE), "", Lane.STANDARD),
        (Lane.FIX, plan(CODE, DOC), "the plan has 2 tasks", Lane.STANDARD),
        (Lane.FIX, plan(RED), "the plan changes what is 🔴: shop/auth.py", Lane.LARGE),
        (Lane.STANDARD, plan(CODE, DOC), "", Lane.LARGE),
        (Lane.STANDARD, plan(DOC, RED), "the plan changes what is 🔴: shop/auth.py", Lane.LARGE),
        (Lane.LARGE, plan(RED, CODE), "", Lane.LARGE),
    ],
)
def test_a_plan_leaves_its_lane_for_the_shallowest_that_holds_it(
    lane: Lane, of: PlanOutput, why: str, into: Lane
) -> None:
    assert (explain_lane_exit(lane, of), find_deeper_lane(lane, of)) == (why, into)


def test_a_task_that_is_red_as_a_whole_leaves_too() -> None:
    red = task("c").model_copy(update={"risk": "🔴", "size": "Large"})
    assert explain_lane_exit(Lane.STANDARD, plan(red)) == "the plan changes what is 🔴: Do c"


@each_row(
    ("lane", "tasks", "dispatches"),
    [(Lane.DOCS, 1, 2), (Lane.FIX, 1, 3), (Lane.STANDARD, 6, 26), (Lane.LARGE, 6, 26), (Lane.STANDARD, 20, 54)],
)
def test_what_a_lane_costs(lane: Lane, tasks: int, dispatches: int) -> None:
    assert LANE_DEPTHS[lane].count_dispatches(tasks) == dispatches


@pytest.mark.parametrize(("feature", "of", "gates"), [(DOCS, plan(DOC), 1), (FIX, plan(CODE), 1)], ids=["docs", "fix"])
def test_the_loop_costs_what_the_table_says(feature: PipelineGoal, of: PlanOutput, gates: int) -> None:
    it = talk(feature, {"plan": of})
    asked = sum(isinstance(need, AskAgent) for need in it.needs)
    assert asked + LANE_DEPTHS[feature.lane].dispatches_per_task * gates == LANE_DEPTHS[feature.lane].count_dispatches(
        1
    )


# The short lanes, in the loop.


def test_documentation_is_planned_done_checked_and_committed() -> None:
    it = talk(DOCS, {"plan": plan(DOC)})
    assert it.asked == ["plan 1.1", "implement 1", "check 1", "commit"]
    assert (it.end.outcome, it.end.lane, it.end.confidence) == (RunOutcome.PASSED, Lane.DOCS, Confidence.HIGH)
    assert (needs(it, AskPlan)[0].spec, needs(it, AskPlan)[0].design) == (None, None)
    assert it.notes("plan") == ["plan 1.1: 1 task"]


def test_a_fix_has_one_reviewer() -> None:
    it = talk(FIX, {"plan": plan(CODE)})
    assert it.asked == ["plan 1.1", "implement 1", "check 1", "code 1 correctness", "commit"]
    assert needs(it, AskReview)[0].criteria == CODE.done
    assert it.end.outcome is RunOutcome.PASSED


def test_a_fix_that_its_reviewer_sends_back_is_put_right() -> None:
    it = talk(FIX, {"plan": plan(CODE), "code 1 correctness": review("needs_revision")})
    assert it.asked[3:] == [
        *("code 1 correctness", "plan 2.1", "implement 2", "check 2", "code 2 correctness", "commit"),
    ]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (review("needs_revision"), RunOutcome.FAILED),
        (review("blocker"), RunOutcome.HALTED),
        (OUT, RunOutcome.FAILED),
    ],
)
def test_a_fix_that_its_reviewer_never_approves_is_not_committed(said: Scripted, outcome: RunOutcome) -> None:
    it = talk(FIX, {"plan": plan(CODE), "code": said})
    assert (it.end.outcome, it.end.commit) == (outcome, None)
    assert "knowledge" not in it.asked


def test_documentation_that_is_code_is_a_fix_and_its_plan_stands() -> None:
    it = talk(DOCS, {"plan": plan(CODE)})
    assert it.asked == ["plan 1.1", "implement 1", "check 1", "code 1 correctness", "commit"]
    assert it.notes("lane") == ["docs: documentation", "fix: the plan changes shop/c.py, which is not documentation"]
    assert needs(it, Implement)[0].lane is Lane.FIX


def _begins_again(script: Script, feature: PipelineGoal = FIX) -> list[str]:
    it = talk(feature, script)
    assert it.end.outcome is RunOutcome.PASSED
    assert needs(it, Implement)[-1].base == BASE
    return it.asked


@pytest.mark.parametrize(
    ("of", "lane"),
    [(plan(task("a", criteria=("AC-1",)), task("b", criteria=("AC-2",))), "standard"), (plan(RED), "large")],
)
def test_a_fix_that_is_more_begins_again_with_research(of: PlanOutput, lane: str) -> None:
    it = talk(FIX, {"plan": of})
    assert it.asked[:2] == ["plan 1.1", "research 1 architecture"]
    assert it.notes("lane")[1].startswith(lane)
    assert len(it.notes("lane")) == 2
    assert it.end.lane is Lane(lane)
    assert it.asked[-3:] == ["code 1 correctness", "knowledge", "commit"]


@each_row(
    ("lane", "changed", "why"),
    [
        (Lane.DOCS, {"docs/a.md": "🟢"}, ""),
        (Lane.DOCS, {"docs/a.md": "🟢", "a.py": "🟢"}, "the change is not documentation alone: a.py"),
        (Lane.FIX, {"a.py": "🟡"}, ""),
        (Lane.FIX, {"a.py": "🟡", "b.py": "🔴"}, "the change is 🔴: b.py"),
        (Lane.STANDARD, {"b.py": "🔴"}, "the change is 🔴: b.py"),
        (Lane.LARGE, {"b.py": "🔴"}, ""),
        (Lane.STANDARD, {}, ""),
    ],
)
def test_the_change_itself_shows_whether_it_keeps_to_its_lane(lane: Lane, changed: dict[str, str], why: str) -> None:
    seen = [BlastRadius.model_validate({"path": path, "change": "M", "risk": risk}) for path, risk in changed.items()]
    assert explain_outgrown_lane(lane, seen) == why


@pytest.mark.parametrize("feature", [DOCS, FIX])
def test_a_change_that_leaves_a_short_lane_begins_again_from_the_base(feature: PipelineGoal) -> None:
    docs = {"plan 1.1": plan(DOC)} if feature is DOCS else {}
    asked = _begins_again({**docs, "check 1": checked(left="shop/x.py is new")}, feature)
    assert asked[2:4] == ["check 1", "research 1 architecture"]
    assert "implement 2" in asked


def test_a_fix_that_fails_begins_again_and_the_planner_knows_why() -> None:
    it = talk(FIX, {"implement 1": failed})
    assert it.asked[1:3] == ["implement 1", "research 1 architecture"]
    assert needs(it, AskPlan)[1].failures[0] == "Do T1: VERIFY_FAILURE after 3 attempts: exit 1"
    assert it.notes("lane")[1] == "standard: the change failed in the fix lane"
    assert it.end.outcome is RunOutcome.PASSED


def test_documentation_that_fails_is_tried_as_a_fix_first() -> None:
    it = talk(DOCS, {"plan": plan(DOC), "check 1": checked(passed=False)})
    assert it.asked[2:5] == ["check 1", "plan 2.1", "implement 2"]
    assert it.end.lane is Lane.FIX


def test_rounds_of_review_are_told_apart_over_lanes() -> None:
    it = talk(
        FIX, {"code 1": review("needs_revision"), "code 1 correctness": review("needs_revision"), "implement 2": failed}
    )
    rounds = [(one.focus.value, one.round) for one in it.end.reviews if one.scope == "code"]
    assert len(rounds) == len(set(rounds))
    assert it.end.lane is Lane.STANDARD


def test_a_red_path_makes_a_fix_large_whatever_the_planner_says() -> None:
    assert explain_lane_exit(Lane.FIX, raise_plan_risks(plan(task("c", files=("shop/login.py",))))) == (
        "the plan changes what is 🔴: shop/login.py"
    )
