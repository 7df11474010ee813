"""Runs whose attempts do not pass: the next one is told how to go about it, in whichever process it is made."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.gate.stage import GateResult, Stage, agent, work
from tests.staging import plan, task

FAST = "[gate]\nexecutor_seconds = 6\nexecutor_seconds_max = 6\nretry_delay_seconds = 0\n"
TOLD = """\
told() { python3 -c '
import json, os
direction = json.load(open(os.environ["PROOFSTONE_TASK"]))["direction"]
print(direction and direction["directive"])'
}
"""
KEEP = 'cp "$PROOFSTONE_TASK" shop/told.json\n'
WRONG = work("one").replace("return 1", "return 2")
ONE = plan(task("One", files="shop, tests"))


def attempts(first: str, second: str, then: str) -> str:
    """An executor that leaves with 9 unless each attempt is told what it should be, and passes in the third."""
    return agent(
        t1=f"{TOLD}case $PROOFSTONE_ATTEMPT-$(told) in\n1-None) {first};;\n2-refine) {second};;\n"
        f"3-{then}) {KEEP}{work('one')};;\n*) exit 9;;\nesac"
    )


STUBBORN = attempts(WRONG, WRONG, "break_symmetry")


def directions(gated: GateResult) -> list[dict[str, Any]]:
    return [failure["direction"] for failure in gated.json["tasks"][0]["failures"]]


def compared(direction: dict[str, Any]) -> tuple[object, ...]:
    """Everything but what the clock has a part in."""
    loss = direction["loss"]
    return (
        direction["directive"],
        direction["gradient"],
        direction["nabla"],
        loss["D"],
        loss["P"],
        direction["rationale"],
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, GateResult]:
    stage = Stage.set_up(tmp_path_factory.mktemp("undisturbed"), ONE)
    gated = stage.gate(STUBBORN)
    assert gated.exit == 0, gated.stderr
    return stage, gated


def test_tests_that_go_on_failing_lead_to_another_approach(undisturbed: tuple[Stage, GateResult]) -> None:
    stage, gated = undisturbed
    assert gated.failures(1) == ["VERIFY_FAILURE"] * 2
    first, second = directions(gated)
    assert (first["directive"], first["loss"]["P"], first["failure_class"]) == ("refine", 1, "logical")
    assert 0.3 < first["loss"]["D"] < 1, "something passed"
    assert (second["directive"], second["nabla"], second["gradient"]) == ("break_symmetry", 0, "plateau")
    assert 0.3 <= second["loss"]["Omega"] < 0.4 and second["grad_l"] > 0
    told = json.loads(stage.shown("shop/told.json"))
    assert told["direction"] == second
    assert [failure["direction"] for failure in told["previous_failures"]] == [first, second]
    assert "⊥ break_symmetry: a local minimum" in told["prompt"]
    assert "- loss after attempts that did not pass: 0." in (stage.root / "SUMMARY.md").read_text()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("first", "second", "obstacle"),
    [
        pytest.param("sleep 30", "kill -9 $$", "SIGKILL", id="time-out and crash"),
    ],
)
def test_what_is_in_the_way_leads_to_another_path(tmp_path: Path, first: str, second: str, obstacle: str) -> None:
    stage = Stage.set_up(tmp_path, ONE, settings=FAST)
    gated = stage.gate(attempts(first, second, "change_path"))
    assert gated.exit == 0, gated.stderr
    for direction in directions(gated):
        assert (direction["loss"]["D"], direction["loss"]["P"]) == (1, 0), "nothing came to a check"
        assert direction["failure_class"] == "environmental"
    told = json.loads(stage.shown("shop/told.json"))
    assert obstacle in " ".join(told["direction"]["suggested_alternatives"])


@pytest.mark.ci
def test_a_missing_tool_of_a_check_is_not_held_against_the_approach(tmp_path: Path) -> None:
    text = plan(task("One", verify="python3 -m unittest tests.test_one\nno-such-checker"))
    gated = Stage.set_up(tmp_path, text).gate(agent(t1=work("one")))
    assert gated.exit == 1, gated.stderr
    for direction in directions(gated):
        assert (direction["loss"]["P"], direction["failure_class"]) == (0, "environmental")
        assert direction["loss"]["D"] < 1, "the work itself passed"


@pytest.mark.ci
def test_a_rejection_is_near(tmp_path: Path) -> None:
    verdict = '{"verdict": "REJECTED", "feedback": "say why"}'
    stage = Stage.set_up(tmp_path, ONE)
    gated = stage.gate(agent(t1=work("one")), "--architect", f"cmd:echo '{verdict}' > \"$PROOFSTONE_VERDICT\"")
    assert gated.failures(1) == ["ARCHITECT_REJECTION"] * 2, gated.stderr
    for direction in directions(gated):
        assert direction["loss"]["D"] < 0.5 and direction["failure_class"] == "logical"


def test_a_resumed_run_goes_the_way_that_was_recorded(tmp_path: Path, undisturbed: tuple[Stage, GateResult]) -> None:
    """Killed right after the first failure was recorded: what follows is what would have followed."""
    stage = Stage.set_up(tmp_path, ONE)
    killed = stage.gate(STUBBORN, env={"PROOFSTONE_FAULT": "gate.after-event:3"})
    assert killed.exit == -signal.SIGKILL, killed.stderr
    [recorded] = _recorded(stage)
    resumed = stage.resume()
    assert resumed.exit == 0, resumed.stdout + resumed.stderr
    first, second = directions(resumed)
    assert first == recorded
    assert [first, second] == _recorded(stage)
    assert [compared(one) for one in (first, second)] == [compared(one) for one in directions(undisturbed[1])]


def _recorded(stage: Stage) -> list[dict[str, Any]]:
    """The directions in the ledger, in order."""
    sql = "SELECT payload FROM events WHERE type = 'task.failed' ORDER BY seq"
    rows = json.loads(stage.proofstone("ledger", "query", sql, "--json").stdout)["rows"]
    return [json.loads(row["payload"])["event"]["failure"]["direction"] for row in rows]
