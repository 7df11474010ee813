"""A run of the pipeline that is killed, and what must be true when it has gone on."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from proofstone.ledger.connection import ledger_path
from tests.pipeline.stage import REQUEST, TEAM, PipelineResult, Stage, executor

Link = tuple[object, ...]


@dataclass(frozen=True)
class Undisturbed:
    came: PipelineResult
    passed: Sequence[tuple[str, int]]
    """Every fault point that it came by, with the how-manieth time it was."""
    seconds: float

    @classmethod
    def seen(cls, folder: Path) -> Undisturbed:
        stage, trace = Stage.set_up(folder / "stage"), folder / "trace"
        began = time.monotonic()
        came = stage.run(executor(), env={"PROOFSTONE_FAULT_TRACE": str(trace)})
        seconds = time.monotonic() - began
        lines = [line.split() for line in trace.read_text().splitlines()]
        assert len({process for process, _ in lines}) == 1, "each process counts for itself"
        counts: Counter[str] = Counter()
        passed = []
        for _, point in lines:
            counts[point] += 1
            passed.append((point, counts[point]))
        return cls(came, passed, seconds)


def links(stage: Stage) -> list[Link]:
    """Every row there is, by what the chain has of it: its number, its table, and a hash over all that it says."""
    path = ledger_path(stage.workshop.proofstone_home)
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'chain'").fetchone():
            return []
        return file.execute("SELECT seq, tbl, hash FROM chain ORDER BY seq").fetchall()


def killed_at(stage: Stage, point: str, count: int) -> None:
    killed = stage.run(executor(), env={"PROOFSTONE_FAULT": f"{point}:{count}"})
    assert killed.exit == -signal.SIGKILL, f"{point} does not come by {count} times: {killed.exit} {killed.stderr}"


def killed_after(stage: Stage, seconds: float, *args: str) -> list[Link]:
    """So long after its first row, with everything that it has started. The rows that others could see before."""
    known = len(links(stage))
    running = stage.workshop.start(stage.root, *args, "--json", "--quiet")
    while len(links(stage)) == known and running.poll() is None:
        time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        running.wait(seconds)
    seen = links(stage)
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    return seen


def begun(stage: Stage) -> tuple[str, ...]:
    """The words of a run, as `stage.run` has them."""
    return "run", REQUEST, "--backend", stage.cast([executor(), *TEAM])


def goes_on_to_the_same(stage: Stage, undisturbed: Undisturbed, before: Sequence[Link]) -> None:
    """`before`: rows that were on record when it was killed."""
    came = stage.resume("last") if before and stage.runs else stage.run(executor())
    expected = undisturbed.came.report
    assert came.outcome == "passed", came.stderr
    assert came.report.tree == expected.tree
    assert len(stage.git("log", "--branches", "--format=%s").splitlines()) == 2, "one commit, and the base"
    assert stage.git("rev-parse", came.report.branch) == came.report.commit
    parts = (*(one.run_id for one in came.report.plan_gates), *(one.run_id for one in came.report.gates))
    for run_id in (came.report.run_id, *parts):
        answered = [str(one["dispatch"]) for one in stage.messages(run_id, "Output")]
        assert len(answered) == len(set(answered)), "nobody answers twice"
    assert came.report.dispatches == expected.dispatches
    assert links(stage)[: len(before)] == list(before), "no row is lost or changed"
    verified = stage.proofstone("ledger", "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
