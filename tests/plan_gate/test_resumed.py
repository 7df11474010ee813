"""Killed wherever it may be, a run of the plan gate goes on to the same report: nothing is lost, and nothing that is on
record is asked again."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.plan_gate.scenes import GREPS, PAUSED, SCENES
from tests.plan_gate.stage import (
    PlanGateResult,
    Stage,
    challenge,
    challenger,
    file,
    researcher,
    risk,
    ruling,
    script,
    symbol,
    synthesizer,
    unknown,
)

ENTRIES = script(
    challenger(challenge("The plan assumes that total adds"), challenge("It is long", "MINOR"), iteration=1),
    researcher("resolve", steps=[{"tools": GREPS[:3]}, {"tools": GREPS[3:7]}], iteration=1),
    researcher("probe", risk("two carts at once", evidence=[file("shop/stock.py")])),
    researcher("resolve", unknown("C1", symbol("total")), iteration=2),
    synthesizer(ruling("C1", evidence=["U1"]), iteration=2),
)
"""Two iterations, tools, one that goes beyond its budget, and a false claim."""
ALWAYS = {
    ("step.before-record", 1),
    ("step.after-record", 4),
    ("agent.before-turn", 3),
    ("agent.after-turn", 5),
    ("agent.after-tool", 4),
    ("ledger.before-commit", 12),
}
"""The others are run by `make test-sweep`."""
CASES = [
    *((f"step.{when}-record", count) for when in ("before", "after") for count in (1, 4, 5, 8, 9)),
    *((f"agent.{when}-turn", count) for when in ("before", "after") for count in (1, 3, 5, 11)),
    *((f"agent.{when}-tool", count) for when in ("before", "after") for count in (1, 4, 6)),
    *((f"ledger.{point}", count) for point in ("before-insert", "before-commit", "after-commit") for count in (1, 12)),
    *((f"artifact.{when}-rename", count) for when in ("before", "after") for count in (1, 2, 5)),
]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlanGateResult, Counter[str]]:
    stage = Stage.set_up(tmp_path_factory.mktemp("undisturbed") / "stage")
    came = stage.verify(ENTRIES)
    assert came.exit == 0, came.stderr
    assert came.convergence == ["CONTINUE", "CONVERGED"] and came.events("budget") and came.report.against
    return came, _said(stage, came.run_id)


@pytest.mark.few(2, ci=6)
@pytest.mark.parametrize(
    ("point", "count"),
    [
        pytest.param(*case, marks=[] if case in ALWAYS else [pytest.mark.sweep], id=f"{case[0]}-{case[1]}")
        for case in CASES
    ],
)
def test_a_run_that_was_killed_goes_on_to_the_same_report_and_asks_nothing_twice(
    stage: Stage, undisturbed: tuple[PlanGateResult, Counter[str]], point: str, count: int
) -> None:
    expected, said = undisturbed
    killed = stage.verify(ENTRIES, env={"PROOFSTONE_FAULT": f"{point}:{count}"})
    assert killed.exit == -signal.SIGKILL, f"it does not come there: {killed.stderr}"
    begun = stage.resume("last")
    came = stage.verify(ENTRIES) if begun.exit == 2 and "no run" in begun.stderr else begun
    assert came.exit == 0, came.stderr
    assert came.masked == expected.masked
    assert _said(stage, came.run_id) == said
    for type in ("plan.step", "plan.iteration", "plan.held-against", "plan.report"):
        events = [json.dumps(one, sort_keys=True) for one in stage.events(came.run_id, type)]
        assert events and len(events) == len(set(events)), f"{type} is on record twice"
    steps = [one["step"] for one in stage.events(came.run_id, "plan.step")]
    assert len(steps) == len(set(steps)) == came.report.dispatches
    ids = [str(row["message_id"]) for row in _rows(stage, "SELECT message_id FROM messages")]
    assert len(ids) == len(set(ids))
    assert stage.workshop.leftovers == []
    assert stage.proofstone("ledger", "verify").returncode == 0


def test_who_has_failed_before_the_crash_is_not_asked_again(stage: Stage) -> None:
    killed = stage.verify(SCENES["resolve-fails"].entries, env={"PROOFSTONE_FAULT": "step.after-record:5"})
    assert killed.exit == -signal.SIGKILL
    (run_id,) = stage.runs
    before = [one for one in stage.asked(run_id) if one[0] != "challenger:audit"]
    came = stage.resume("last")
    assert came.exit == 0, came.stderr
    assert came.events("failure") == ["researcher:resolve: it fell over"]
    assert [one for one in stage.asked(run_id) if one[0] != "challenger:audit"] == before
    assert before.count(("researcher:resolve", 1)) == 2
    assert len(stage.messages(run_id, "Fault")) == 2


def test_an_answer_that_was_given_before_the_crash_is_not_asked_for_again(stage: Stage) -> None:
    entries = SCENES["answered"].entries
    paused = stage.verify(entries)
    assert paused.exit == 3
    killed = stage.resume("last", "--answer", "C1=in cents", env={"PROOFSTONE_FAULT": "step.before-record:1"})
    assert killed.exit == -signal.SIGKILL
    came = stage.resume("last")
    assert came.exit == 0, came.stderr
    assert [one.text for one in came.report.answers] == ["in cents"]
    assert len(_rows(stage, "SELECT seq FROM approvals")) == 1


def test_the_plan_as_it_was_is_what_the_run_goes_on_about(stage: Stage) -> None:
    paused = stage.verify(SCENES["answered"].entries)
    stage.write("PLAN.md", "# Another plan\n\nNothing is left of it.\n")
    came = stage.resume(paused.run_id, "--answer", "C1=in cents")
    assert came.exit == 0, came.stderr
    assert came.report.plan_digest == paused.report.plan_digest
    assert stage.proofstone("gate", "PLAN.md", "--verified").returncode == 2


def test_a_project_that_has_moved_on_is_looked_at_as_it_was(stage: Stage) -> None:
    entries = script(
        *PAUSED,
        researcher("resolve", unknown("C1", symbol("total")), iteration=2),
        synthesizer(ruling("C1", evidence=["U1"]), iteration=2),
    )
    paused = stage.verify(entries)
    assert paused.exit == 3, paused.stderr
    stage.write("shop/cart.py", "TOTAL = 0\n")
    stage.workshop.commit(stage.root)
    came = stage.resume(paused.run_id, "--answer", "C1=in cents")
    assert came.exit == 0, came.stderr
    assert came.report.base_commit == paused.report.base_commit
    assert came.report.unknowns[-1].finding.startswith("[VERIFIED: ")


def _said(stage: Stage, run_id: str) -> Counter[str]:
    """How often what was said: turns, results, answers."""
    rows = _rows(stage, f"SELECT type FROM messages WHERE run_id = '{run_id}'")
    return Counter(str(row["type"]) for row in rows)


def _rows(stage: Stage, sql: str) -> list[dict[str, object]]:
    done = stage.proofstone("ledger", "query", sql, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)["rows"]
    return found
