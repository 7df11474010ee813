"""What is on record of a run with several iterations: documents, telemetry, and a script that repeats all of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from proofstone.ledger.models import StepStatus, TelemetryRow
from tests.pipeline.stage import REQUEST, PipelineResult, Stage, executor, finding, planner, reviewer, task

FASTER = "return sum(1 for _ in prices)"


@pytest.mark.seed("pipeline", "task-documents", "plan-gate-telemetry", "record-every-role")
def test_every_task_of_the_commit_has_its_documents_and_every_role_is_recorded(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    slow = reviewer("security", "code", finding("It is slow", "critical"), verdict="needs_revision", round=1)
    too_many = planner(task(), task("tally", verify=["true"]), iteration=1, attempt=1)
    first = stage.run(
        slow,
        too_many,
        planner(task("count", title="Count faster"), iteration=2),
        executor(body=FASTER, task="Count faster"),
    )
    assert (first.exit, first.outcome) == (0, "passed"), first.report.reason
    folder = Path(first.report.directory)
    for kind in ("tasks", "implementation-reports", "verification-reports"):
        assert sorted(file.name for file in (folder / kind).iterdir()) == ["task-01-i2.yaml", "task-01.yaml"], kind
    assert "Count faster" in (folder / "tasks/task-01-i2.yaml").read_text()
    assert "iteration: 2" in (folder / "implementation-reports/task-01-i2.yaml").read_text()

    with stage.ledger() as ledger:
        rows = [stored.row for stored in ledger.read(TelemetryRow, run_id=first.report.plan_gates[0].run_id)]
    ended = Counter((row.step, row.agent) for row in rows if row.status is StepStatus.DONE)
    assert ended == {("plan/i1", "challenger"): 2, ("plan/i1", "researcher"): 2, ("plan/i1", "synthesizer"): 1}

    script = tmp_path / "again.yaml"
    assert stage.proofstone("record", "last", "-o", str(script)).returncode == 0
    stage.git("branch", "-D", first.report.branch)
    done = stage.proofstone("run", REQUEST, "--backend", f"script:{script}", "--json", "--quiet")
    second = PipelineResult.of(done)
    assert (second.exit, second.outcome) == (0, "passed"), second.stdout
    assert second.report.tree == first.report.tree
    assert second.report.dispatches == first.report.dispatches
