"""A run of the pipeline that is killed goes on to the same commit: nothing is asked, done or committed twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofstone.faults import FAULT_POINTS
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path
from proofstone.ledger.models import ArtifactRow
from tests.conftest import SEED
from tests.pipeline.served import FIX
from tests.pipeline.stage import REQUEST, TEAM, PipelineResult, Stage, executor, planner, task

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


SAMPLE = 4
PARTS = 48
"""Of the sweep: each takes every 48th fault point that a run comes by, so that the parts can be done side by side."""
MOMENTS = [random.Random(moment).random() for moment in range(24)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed.seen(tmp_path_factory.mktemp("undisturbed"))


def test_a_run_comes_by_every_kind_of_boundary(undisturbed: Undisturbed) -> None:
    """Else nothing would be said about it here."""
    elsewhere = {point for point in FAULT_POINTS if point.startswith(("daemon.", "checkpoint."))}
    assert {point for point, _ in undisturbed.passed} == set(FAULT_POINTS) - elsewhere


@pytest.mark.few(1, ci=4)
@pytest.mark.parametrize("number", range(SAMPLE))
@pytest.mark.seed("pipeline", "resume")
def test_a_run_that_was_killed_goes_on_to_the_same_commit(stage: Stage, undisturbed: Undisturbed, number: int) -> None:
    """At boundaries that a seed draws, of all kinds alike."""
    drawn = random.Random(f"{SEED}:{number}")
    kind = drawn.choice(sorted({point for point, _ in undisturbed.passed}))
    point, count = drawn.choice([one for one in undisturbed.passed if one[0] == kind])
    killed_at(stage, point, count)
    goes_on_to_the_same(stage, undisturbed, links(stage))


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(PARTS))
def test_a_run_that_was_killed_anywhere_goes_on_to_the_same_commit(
    tmp_path: Path, undisturbed: Undisturbed, part: int
) -> None:
    """At every boundary, each time that it comes by."""
    for point, count in undisturbed.passed[part::PARTS]:
        stage = Stage.set_up(tmp_path / f"{point}-{count}")
        killed_at(stage, point, count)
        goes_on_to_the_same(stage, undisturbed, links(stage))


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_and_its_resumption_killed_at_any_moment_go_on_to_the_same_commit(
    stage: Stage, undisturbed: Undisturbed, moment: float
) -> None:
    """With all that they have started: also within a step, a check, a call of git."""
    killed_after(stage, moment * undisturbed.seconds, *begun(stage))
    before = killed_after(stage, moment * (1 - moment) * undisturbed.seconds, "resume", "last")
    goes_on_to_the_same(stage, undisturbed, before)


def test_what_an_agent_has_printed_is_on_record_with_its_answer(stage: Stage) -> None:
    """Nobody is asked again for an answer that is on record, so nothing of it may come later."""
    plans = planner(task(relevant_context=[]))
    prints = {**plans, "steps": [{"run": {"command": "echo seen by the planner"}}]}
    # What memory knows and what was added are the steps before it.
    killed = stage.run(prints, args=FIX, env={"PROOFSTONE_FAULT": "step.after-record:3"})
    assert killed.exit == -signal.SIGKILL, killed.stderr
    with closing(stage.ledger()) as ledger:
        kept = [one.row.artifact for one in ledger.read(ArtifactRow)]
    store = ArtifactStore(artifacts_path(stage.workshop.proofstone_home))
    assert any(b"seen by the planner" in store.read(one) for one in kept)


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize("requests", [3, 12, 16])
def test_a_budget_that_is_spent_in_the_run_or_in_a_part_can_be_raised(stage: Stage, requests: int) -> None:
    """Before the plan gate, within it, and within the task gate."""
    stopped = stage.run(executor(), args=("--budget", f"requests={requests}"))
    assert stopped.exit == 4, stopped.stderr
    came = stage.resume("last", "--budget", "requests=100")
    assert came.outcome == "passed", came.report.reason
    assert came.report.spent.requests < 30
