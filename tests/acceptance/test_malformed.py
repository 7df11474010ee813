"""EC-3: an answer that is not of its schema, from each kind of role.

It is shown what is wrong at most twice, asked anew once, and then it has not answered: rules, section 0. What follows
from that is the step's own rule. A task's executor is not asked anew; the gate counts its attempts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.agents.roles.models.gate import FailureType
from proofstone.gate.models import RunOutcome
from tests.acceptance.conftest import Ended
from tests.pipeline.stage import PipelineResult, Stage, planner, task
from tests.staging import babbling

NONE = "its answer is not of the schema, after 2 repairs: line 1, column 1: it is not JSON (Expecting value)"
FATAL = {
    "specifier": ({}, f"no specification: {NONE}", "spec/r1/specifier"),
    "designer": ({}, f"no design: {NONE}", "design/r1/designer"),
    "planner": ({}, f"no plan: {NONE}", "plan/i1p1/planner"),
    "reviewer": (
        {"focus": "security", "step": "design-review/*"},
        f"design review: security has not submitted: {NONE}",
        "design-review/r2/reviewer/security",
    ),
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


def untouched(stage: Stage, came: PipelineResult) -> bool:
    """Nothing is committed, and nothing is left lying in the repository."""
    branches = stage.git("for-each-ref", "--format=%(refname)", "refs/heads").splitlines()
    return came.report.commit is None and branches == ["refs/heads/main"] and not stage.git("status", "--porcelain")


@pytest.mark.parametrize("role", FATAL)
@pytest.mark.seed("pipeline", "unparseable")
def test_ec_03_without_their_answer_nothing_goes_on(stage: Stage, role: str) -> None:
    """EC-3: the run fails, says whose answer is missing and why, and each dispatch had its two repairs."""
    match, reason, dispatch = FATAL[role]
    came = stage.run(babbling(role, **match))
    assert (came.exit, came.outcome, came.report.reason) == (1, "failed", reason)
    assert untouched(stage, came)
    asked = [id for id in stage.all_dispatches(came.report) if id.startswith(dispatch)]
    assert asked == [dispatch, f"{dispatch}/d2"]
    repairs = [one for one in stage.messages(came.report.run_id, "Repair") if str(one["dispatch"]).startswith(dispatch)]
    assert len(repairs) == 2 * 2


def test_ec_03_without_a_researcher_or_the_keeper_of_knowledge_it_goes_on(red: Ended) -> None:
    """EC-3: two of four are enough, and knowledge holds nothing up. That they are missing is said."""
    assert red.report.outcome is RunOutcome.PASSED
    assert not (red.folder / "research/patterns.yaml").exists()
    notes = [one["text"] for one in red.stage.events(red.report.run_id, "pipeline.note") if one["kind"] == "unheard"]
    assert f"research on patterns: {NONE}" in notes


def test_ec_03_without_the_one_reviewer_of_a_fix_nothing_is_committed(stage: Stage) -> None:
    """EC-3, of code: the work is done and checked, and who has not spoken has not approved."""
    small = planner(task(relevant_context=[]))
    came = stage.run(small, babbling("reviewer"), args=("--files", "shop/cart.py"))
    assert (came.exit, came.report.lane.value) == (1, "fix")
    assert came.report.reason == f"code review: correctness has not submitted: {NONE}; 0 of 1 approve, and 1 must"
    assert came.report.gates[0].outcome is RunOutcome.PASSED
    assert untouched(stage, came)


def test_ec_03_an_executor_has_three_attempts_in_each_of_three_plans(stage: Stage) -> None:
    """EC-3. MALFORMED, as the gate counts it: two retries and no further dispatch; then the controller, three times."""
    came = stage.run(babbling("executor"))
    assert (came.exit, came.outcome) == (1, "failed")
    failures = [[one.type for one in done.failures] for gate in came.report.gates for done in gate.tasks]
    assert failures == [[FailureType.MALFORMED] * 3] * 3
    for gate in came.report.gates:
        assert sorted(stage.dispatches(gate.run_id)) == [f"task-01/a{attempt}/executor" for attempt in (1, 2, 3)]
    assert came.report.reason.startswith("abandoned after 3 failed iterations: ")
    assert untouched(stage, came)


@pytest.mark.sweep
def test_ec_03_an_architect_who_says_nothing_approves_nothing(stage: Stage) -> None:
    """EC-3: it is asked again, which costs the executor no attempt, and then a person is asked."""
    came = stage.run(babbling("architect"))
    assert (came.exit, came.outcome) == (3, "needs_human")
    failures = [[one.type for one in done.failures] for gate in came.report.gates for done in gate.tasks]
    assert failures == []
    assert untouched(stage, came)


@pytest.mark.sweep
@pytest.mark.parametrize("role", ["challenger", "synthesizer"])
def test_ec_03_a_plan_that_nobody_challenged_or_judged_does_not_go_on(stage: Stage, role: str) -> None:
    """EC-3, at the plan gate: at best REVISE, and after the second time the run halts."""
    came = stage.run(babbling(role))
    assert (came.exit, came.outcome) == (1, "halted")
    assert [one.verdict for one in came.report.plan_gates] == ["REVISE", "REVISE"]
    assert not came.report.gates
    assert untouched(stage, came)
