"""The time of one subtask is a setting, its message states the deadline, and a late executor is given up."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tests.solve.stage import RIGHT, Stage, executor


@pytest.mark.seed("control-loop", "subtask-deadline", "path-hint")
def test_a_subtask_has_the_deadline_of_the_settings(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage", settings='[solve]\nsubtask_seconds = 4\npolicy = "gradient"\n')
    late = executor(RIGHT, round=1)
    late["steps"].insert(0, {"sleep": 60})
    came = stage.solve(late, executor(RIGHT))
    assert (came.exit, came.status, came.directives) == (0, "accepted", ["change_path", "accept"])
    first, second = stage.messages(came.report.run_id, "SubTask")
    for message in (first, second):
        assert datetime.fromisoformat(str(message["deadline"])).tzinfo is not None
    assert str(first["deadline"]) < str(second["deadline"])
    (hint,) = came.report.rounds[0].directive.suggested_alternatives
    assert hint.startswith("a way around this: `grep -qx 3 count.txt` exits 0")
    assert came.report.rounds[0].outcomes[0].failure_reason
    refused = stage.proofstone("solve", "x", "--backend", "script:none.yaml")
    assert refused.returncode == 2
