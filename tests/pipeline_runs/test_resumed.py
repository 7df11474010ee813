"""A run of the pipeline that is killed goes on to the same commit: nothing is asked, done or committed twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline_runs.stage import Came, Stage, executor

ALWAYS = {("step.after-record", 6), ("gate.after-publish", 1), ("commit.after-ref", 2), ("agent.before-turn", 20)}
CASES = [
    *((f"step.{when}-record", count) for when in ("before", "after") for count in (1, 4, 6, 9, 12, 15, 18, 20, 22, 24)),
    *((f"agent.{when}-turn", count) for when in ("before", "after") for count in (1, 5, 9, 12, 17, 20)),
    *((f"commit.{point}", count) for point in ("before-objects", "before-ref", "after-ref") for count in (1, 2)),
    *((f"gate.{point}", 1) for point in ("started", "before-check", "after-check", "before-publish", "after-publish")),
    *((f"ledger.{point}", count) for point in ("before-commit", "after-commit") for count in (2, 40, 80, 120)),
]
"""`commit.*` comes by for the task, at the hidden ref, and again for the one commit."""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Came:
    return Stage.set_up(tmp_path_factory.mktemp("undisturbed") / "stage").run(executor())


@pytest.mark.parametrize(
    ("point", "count"), [pytest.param(*one, marks=() if one in ALWAYS else pytest.mark.sweep) for one in CASES]
)
def test_a_run_that_was_killed_goes_on_to_the_same_commit(
    stage: Stage, undisturbed: Came, point: str, count: int
) -> None:
    killed = stage.run(executor(), env={"ASSAY_FAULT": f"{point}:{count}"})
    assert killed.exit != 0, f"{point} does not come by {count} times"
    if not stage.runs:
        assert point.startswith("ledger."), "killed before its first row was there"
        return
    came = stage.resume("last")
    assert came.outcome == "passed", came.stderr
    assert came.report.tree == undisturbed.report.tree
    assert len(stage.git("log", "--branches", "--format=%s").splitlines()) == 2, "one commit, and the base"
    assert stage.git("rev-parse", came.report.branch) == came.report.commit
    for run_id in (came.report.run_id, *(one.run_id for one in (*came.report.gates,))):
        answered = [str(one["dispatch"]) for one in stage.messages(run_id, "Output")]
        assert len(answered) == len(set(answered)), "nobody answers twice"
    assert came.report.dispatches == undisturbed.report.dispatches
    assert stage.assay("ledger", "verify").returncode == 0


@pytest.mark.parametrize("requests", [3, 12, 16])
def test_a_budget_that_is_spent_in_the_run_or_in_a_part_can_be_raised(stage: Stage, requests: int) -> None:
    """Before the plan gate, within it, and within the task gate."""
    stopped = stage.run(executor(), args=("--budget", f"requests={requests}"))
    assert stopped.exit == 4, stopped.stderr
    came = stage.resume("last", "--budget", "requests=100")
    assert came.outcome == "passed", came.report.reason
    assert came.report.spent.requests < 30
