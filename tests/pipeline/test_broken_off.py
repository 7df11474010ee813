"""A run that is broken off, by a person or by its budget: they are told how to go on, and it goes on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.pipeline.stage import REQUEST, RESEARCH, TEAM, Stage, researcher
from tests.waiting import PATIENCE

INTERACTIVE = ("--mode", "interactive")
"""So that it ends where it asks, after the research."""


@pytest.mark.few(2)
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_breaks_it_off_is_told_how_to_go_on(tmp_path: Path, sign: signal.Signals) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    sleeping = {**researcher(RESEARCH[0]), "steps": [{"sleep": 300}]}
    spec = stage.cast([sleeping, *TEAM])
    running = stage.workshop.start(stage.root, "run", REQUEST, "--backend", spec, *INTERACTIVE)
    assert running.stderr is not None
    heard = (line for line in running.stderr if line.startswith("  ✓ researcher"))
    for _ in RESEARCH[1:]:
        next(heard)
    os.kill(running.pid, sign)
    stdout, stderr = running.communicate(timeout=PATIENCE)
    assert (running.returncode, stdout) == (128 + sign, ""), stderr
    assert "Traceback" not in stderr
    (told,) = [line for line in stderr.splitlines() if "resume with" in line]
    run_id = told.split()[-1]
    assert told == f"nothing is lost; resume with: proofstone resume {run_id}"
    assert f"{run_id}  interrupted; `proofstone resume {run_id}` continues it" in stage.proofstone("status").stdout
    stage.cast([*TEAM])
    assert stage.resume(run_id).exit == 3, "it has come to what it asks"


def test_a_spent_budget_stops_it_and_more_of_it_goes_on(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    costly = [{**researcher(focus), "usage": {"input_tokens": 900, "output_tokens": 200}} for focus in RESEARCH]
    came = stage.run(
        *costly, args=["--budget-tokens", "1000"]
    )  # they ask beside each other; whoever comes next may not
    assert came.exit == 4, came.stderr
    document = json.loads(came.stdout)
    assert document["outcome"] == "budget_exhausted" and "1,000 tokens" in document["reason"]
    assert f"proofstone resume {document['run_id']} --budget" in came.stderr
    assert "budget_exhausted" in stage.proofstone("runs").stdout
    assert stage.resume("last", "--budget-tokens", "1000000").exit == 0
