"""The controller in a run of the gate: its directives on the bus, its settings, and what the auditor makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.stage import Stage, agent, work
from tests.staging import plan, task

STUCK = work("one", 2).replace("return 2", "return 3")


@pytest.mark.seed("control-loop", "directives-on-the-bus", "report-at-the-end")
def test_directives_are_on_the_bus_and_the_auditor_reports_thrashing_at_the_end(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=STUCK))
    assert gated.exit == 1, gated.stdout + gated.stderr
    sent = "SELECT payload FROM messages WHERE type = 'PlanDirective' AND sender = 'controller' ORDER BY seq"
    directives = stage.query(sent)
    assert [one["directive"] for one in directives] == ["refine", "break_symmetry", "break_symmetry"]
    assert {one["task_id"] for one in directives} == {"task-01"}
    (report,) = stage.query("SELECT payload FROM messages WHERE sender = 'auditor' AND recipient = 'person'")
    assert "thrashing" in [finding["kind"] for finding in report["anomalies"]]
    assert ("thrashing", "task-01") in [(finding["kind"], finding["task"]) for finding in gated.json["audit"]]
    again = stage.proofstone("resume", "last")
    assert "what the auditor found:" in again.stdout and "the symmetry was broken 2 times" in again.stdout


@pytest.mark.seed("control-loop", "weights-are-settings", "path-hint")
def test_weights_and_thresholds_are_settings_and_another_path_has_a_hint(tmp_path: Path) -> None:
    settings = "[controller]\nblame_above = 1.0\nnear_below = 0.0\n"
    stage = Stage.set_up(tmp_path, plan(task("One")), settings=settings)
    gated = stage.gate(agent(t1=STUCK))
    assert gated.exit == 1, gated.stdout + gated.stderr
    directions = [failure["direction"] for failure in gated.json["tasks"][0]["failures"]]
    assert [one["directive"] for one in directions] == ["refine", "change_path", "change_path"]
    (hint, *_) = directions[1]["suggested_alternatives"]
    assert hint.startswith("a way around this: verify: ")
    stage.workshop.configure(stage.root, "[controller]\nabandon_at = 1.5\n")
    refused = stage.proofstone("check")
    assert refused.returncode == 2
    assert "abandon_at" in refused.stderr and "proofstone.toml:2" in refused.stderr
