"""EC-5: a run that breaks off in the middle keeps what it has, and goes on from there.

`tests/pipeline/test_resumed.py` kills it at many more places.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import Ended
from tests.pipeline.stage import Stage


def test_ec_05_a_run_that_dies_while_a_task_is_checked_goes_on_to_the_same_end(well: Ended, tmp_path: Path) -> None:
    """EC-5, the seed's own case: a failure at step 5. The state is the ledger's and not a scan of files, so documents
    that are gone meanwhile are written again."""
    stage = Stage.set_up(tmp_path / "stage")
    killed = stage.run(env={"PROOFSTONE_FAULT": "gate.before-check"})
    assert killed.exit != 0 and not killed.stdout
    (run, *parts) = stage.runs
    answered = _answers(stage)
    assert json.loads(stage.proofstone("status", run, "--json").stdout)["run_id"] == run
    folder = stage.root / ".proofstone" / run
    assert (folder / "plan-output.yaml").is_file()
    (folder / "spec-output.yaml").unlink()
    came = stage.resume(run)
    assert (came.exit, came.outcome, came.report.run_id) == (0, "passed", run), came.stderr
    assert came.report.tree == well.report.tree
    assert (folder / "spec-output.yaml").is_file()
    after = _answers(stage)
    assert set(answered) < set(after) and len(after) == len(set(after)), "nobody is asked twice"
    assert came.report.dispatches == well.report.dispatches
    assert parts == [one.run_id for one in came.report.plan_gates] + [one.run_id for one in came.report.gates]
    assert stage.git("rev-list", "--count", f"{came.report.base_commit}..{came.report.branch}") == "1"


@pytest.mark.seed("pipeline", "resume")
def test_ec_05_a_run_that_has_ended_is_not_begun_again(well: Ended) -> None:
    """EC-5: it says that it has ended, and does nothing."""
    before = well.rows("SELECT COUNT(*) FROM messages")
    commit = well.stage.git("rev-parse", well.report.branch)
    again = well.stage.proofstone("resume", well.report.run_id)
    assert (again.returncode, again.stdout[:6]) == (0, "PASSED")
    assert well.rows("SELECT COUNT(*) FROM messages") == before
    assert well.stage.git("rev-parse", well.report.branch) == commit


def _answers(stage: Stage) -> list[tuple[str, str]]:
    return [(run, str(one["dispatch"])) for run in stage.runs for one in stage.messages(run, "Output")]
