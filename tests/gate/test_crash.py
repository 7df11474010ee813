"""Killed at any named boundary, a run is resumed to the same history: nothing is lost, nothing is done twice."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from proofstone.faults import FAULT_POINTS
from tests.gate.stage import Stage, agent, work
from tests.staging import plan, task
from tests.waiting import wait_until

PLAN = plan(task("One"), task("Two"))
EXECUTOR = agent(t1=work("one"), t2=work("two"))
CASES = [(point, count) for point in FAULT_POINTS for count in (1, 2, 5)]
SAMPLE = {
    ("gate.started", 1),
    ("gate.after-event", 5),
    ("gate.after-freeze", 1),
    ("commit.after-ref", 1),
    ("gate.after-publish", 2),
}
"""The rest is run by `make test-sweep`."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    stage = Stage.set_up(tmp_path_factory.mktemp("undisturbed"), PLAN)
    gated = stage.gate(EXECUTOR)
    assert gated.exit == 0, gated.stderr
    return _history(stage)


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize(
    ("point", "count"),
    [
        pytest.param(*case, marks=[] if case in SAMPLE else [pytest.mark.sweep], id=f"{case[0]}-{case[1]}")
        for case in CASES
    ],
)
def test_a_run_killed_at_a_fault_point_ends_like_an_undisturbed_one(
    tmp_path: Path, undisturbed: list[str], point: str, count: int
) -> None:
    stage = Stage.set_up(tmp_path, PLAN)
    killed = stage.gate(EXECUTOR, env={"PROOFSTONE_FAULT": f"{point}:{count}"})
    if killed.exit == 0:
        assert (point, count) not in SAMPLE
        pytest.skip(f"a run of two tasks comes by {point} less than {count} times")
    assert killed.exit == -signal.SIGKILL, killed.stderr
    wait_until(lambda: not stage.processes(), lambda: f"still running: {stage.processes()}")
    begun = json.loads(stage.proofstone("runs", "--json").stdout)["runs"] if _has_ledger(stage) else []
    resumed = stage.resume() if begun else stage.gate(EXECUTOR)
    assert resumed.exit == 0, resumed.stderr
    assert _history(stage) == undisturbed
    assert stage.git("status", "--porcelain") == ""
    assert stage.leftovers == [] and stage.workshop.leftovers == []
    assert stage.processes() == []
    assert stage.proofstone("ledger", "verify").returncode == 0
    for events in _events(stage).values():
        approved = events.index("task.approved")
        assert "task.started" not in events[approved:]
        assert events.count("task.committed") == 1


def _has_ledger(stage: Stage) -> bool:
    return (stage.workshop.proofstone_home / "ledger" / "ledger.db").is_file()


def _history(stage: Stage) -> list[str]:
    """Subjects and trees; authors and dates are those of the day."""
    return stage.git("log", "--reverse", "--format=%s %T", stage.branch).splitlines()[1:]


def _events(stage: Stage) -> dict[str, list[str]]:
    """What happened to each task, in order."""
    sql = "SELECT task_id, type FROM events WHERE type LIKE 'task.%' ORDER BY seq"
    found: dict[str, list[str]] = {}
    for row in json.loads(stage.proofstone("ledger", "query", sql, "--json").stdout)["rows"]:
        found.setdefault(row["task_id"], []).append(row["type"])
    return found
