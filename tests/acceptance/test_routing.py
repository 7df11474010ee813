"""AC-9: the same outputs give the same decisions.

The stored histories of `tests/pipeline/histories` are replayed need by need in `tests/pipeline/test_histories.py`,
which also says how they are renewed and shows that another routing is seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Ended
from tests.pipeline.replay import first_difference, read
from tests.pipeline.stage import PipelineResult, Stage
from tests.pipeline.test_histories import FOLDER, STORIES


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.seed("pipeline", "deterministic")
def test_ac_09_a_stored_history_is_decided_twice_in_the_same_way(name: str) -> None:
    """AC-9, the seed's own case: fixed outputs, two runs of the loop, and both are what is on record."""
    history = read(FOLDER / f"{name}.jsonl")
    assert [first_difference(history), first_difference(history)] == ["", ""]


def test_ac_09_a_whole_run_decides_the_same_again(well: Ended, tmp_path: Path) -> None:
    """AC-9, with all that is around the loop: agents beside each other, clocks, processes, another folder."""
    stage = Stage.set_up(tmp_path / "stage")
    assert decisions(stage, stage.run()) == decisions(well.stage, well.came)


def decisions(stage: Stage, came: PipelineResult) -> dict[str, object]:
    """Everything that was decided, without names of runs and folders."""
    report = came.report
    ids = {report.run_id: "RUN", str(stage.workshop.folder): "FOLDER"}

    def plain(text: str) -> str:
        for old, new in ids.items():
            text = text.replace(old, new)
        return text

    return {
        "notes": [plain(f"{one['kind']}: {one['text']}") for one in stage.events(report.run_id, "pipeline.note")],
        "asked": sorted(stage.all_dispatches(report)),
        "approvals": [(one.gate_id, one.selected_option) for one in report.approvals],
        "reviews": [(one.scope, one.focus, one.round, one.verdict) for one in report.reviews],
        "tasks": [(one.name, one.state, one.attempts) for one in report.tasks],
        "end": (came.exit, report.outcome, report.lane, report.confidence, report.tree),
        "why": [plain(str(reason)) for reason in report.reasons],
    }
