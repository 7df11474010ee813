"""AC-6: each file has a risk, code may raise it and nobody lowers it, and any 🔴 makes the whole of it Large."""

from __future__ import annotations

import json

import pytest

from proofstone.agents.roles.models.payload import RiskMark
from proofstone.common.models import Lane
from proofstone.gate.rules.pass_rule import MIN_SIGNALS, MIN_SIGNALS_LARGE
from proofstone.pipeline.rules.effects import PipelineGoal
from proofstone.pipeline.rules.planning import raise_plan_risks
from tests.acceptance.conftest import Ended
from tests.pipeline.talk import DOCS, FIX, plan, talk, task

MIXED = plan(task("mixed", files=("docs/a.md", "shop/auth.py"), risk="🟢"))
"""A 🟢 and a 🔴 file, both of which the planner calls 🟢."""


@pytest.mark.seed("pipeline", "risk-per-file")
def test_ac_06_a_green_and_a_red_file_make_a_large_task() -> None:
    """AC-6, the seed's own case. By the path, whatever the planner says."""
    (found,) = raise_plan_risks(MIXED).tasks
    assert [(file.path, file.risk) for file in found.files] == [("docs/a.md", "🟢"), ("shop/auth.py", "🔴")]
    assert (found.risk, found.size) == ("🔴", "Large")


@pytest.mark.parametrize("risk", ["🟢", "🟡", "🔴"])
@pytest.mark.seed("pipeline", "risk-per-file")
def test_ac_06_a_risk_is_never_lowered(risk: RiskMark) -> None:
    """AC-6: of a file that no rule knows, the planner's word stands."""
    (found,) = raise_plan_risks(plan(task("plain", files=("shop/plain.py",), risk=risk))).tasks
    assert (found.files[0].risk, found.risk) == (risk, risk)


@pytest.mark.parametrize("feature", [DOCS, FIX], ids=["docs", "fix"])
def test_ac_06_what_is_red_leaves_a_short_lane_for_the_large_one(feature: PipelineGoal) -> None:
    """AC-6: with research, reviews and the plan gate, none of which the short lanes have."""
    it = talk(feature, {"plan": MIXED})
    assert it.end.lane is Lane.LARGE
    assert it.notes("lane")[-1].startswith("large: the plan changes ")
    assert {"research 1 impact", "design 1 security", "verify 1", "check 2 large"} <= set(it.asked)


def test_ac_06_a_red_file_that_was_planned_as_green_is_raised_everywhere(red: Ended) -> None:
    """AC-6, in a whole run: the lane, the approval that calls it out, the task's own record, and the plan's."""
    assert (red.came.exit, red.report.lane.value) == (0, "large")
    assert red.report.lane_reason == "the plan changes what is 🔴: shop/auth.py"
    ((payload,),) = red.rows("SELECT payload FROM approvals WHERE gate = 'gate-post-planning'")
    assert "These files are 🔴: shop/auth.py" in json.loads(payload)["request"]["context"]
    for recorded in (red.yaml("tasks/task-01.yaml")["payload"], red.yaml("plan-output.yaml")["payload"]["tasks"][0]):
        assert (recorded["risk"], recorded["size"]) == ("🔴", "Large")
        assert recorded["files"][0] == {"path": "shop/auth.py", "risk": "🔴"}
    assert {(one.path, one.risk) for one in red.report.changed} >= {("shop/auth.py", "🔴")}


@pytest.mark.seed("pipeline", "tier-4")
def test_ac_06_it_is_checked_to_the_last_tier(red: Ended, well: Ended) -> None:
    """AC-6: where something is 🔴 and nowhere else, and by one signal more."""
    readiness = "SELECT COUNT(*) FROM checks WHERE check_name LIKE 'readiness-%' AND task_id = ?"
    for task_id in ("task-01", "final"):
        assert red.rows(readiness, task_id)[0][0] > 0
        assert well.rows(readiness, task_id) == [(0,)]
    assert (MIN_SIGNALS, MIN_SIGNALS_LARGE) == (2, 3)
