"""Work that is no part of the result decides nothing about it: tasks that a person skips, and tasks that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.stage import Stage, executor, planner, task
from tests.staging import Entry

ASKS_PERSON: Entry = {
    "role": "architect",
    "match": {"task": "A function count"},
    "output": {"verdict": "REJECTED", "recommendation": "manual_review", "feedback": "ask somebody who knows"},
}
REASON = "The fair opens today; Ada looks at the counting tomorrow"


@pytest.mark.seed("pipeline", "skip-in-run")
def test_a_run_goes_on_without_a_task_that_a_person_has_skipped(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    two = planner(task(), task("tally", acceptance_criteria=["AC-1", "AC-2"]))
    asked = stage.run(ASKS_PERSON, two, executor("tally", task="A function tally"))
    assert (asked.exit, asked.outcome) == (3, "needs_human"), asked.stdout
    part = f"{asked.report.run_id}-g1"
    skipped = stage.proofstone("skip", part, "1", "--category", "time-pressure", "--reason", REASON)
    assert skipped.returncode == 0, skipped.stderr
    status = stage.proofstone("status", part).stdout
    assert "# go on without its work" in status and "committed it yourself" not in status
    assert stage.proofstone("done", part, "1").returncode == 0
    done = stage.resume(asked.report.run_id)
    assert (done.exit, done.outcome) == (0, "passed"), done.report.reason
    assert stage.git("show", "--name-only", "--format=", str(done.report.commit)).split() == [
        "shop/tally.py",
        "tests/test_tally.py",
    ]
    assert any(
        "a person skipped it, so its work is not in the commit" in reason.reason for reason in done.report.reasons
    )


@pytest.mark.ci
@pytest.mark.seed("control-loop", "directives-on-the-bus", "report-at-the-end")
def test_how_a_failed_task_was_to_be_verified_does_not_bind_the_next_plan(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    wrong = planner(task(verify=["python3 -m unittest tests.test_nowhere"]), iteration=1)
    done = stage.run(wrong, planner(task("count", title="Count them"), iteration=2))
    assert (done.exit, done.outcome) == (0, "passed"), done.report.reason
    assert len(done.report.gates) == 2
    run = done.report.run_id
    (directive,) = stage.messages(run, "PlanDirective")
    assert (directive["task_id"], directive["directive"]) == (run, "refine")
    assert len(stage.messages(run, "AuditReport")) == 1
