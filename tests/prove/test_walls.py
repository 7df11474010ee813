"""The walls are tried for certain: at the weakest level the same attempts get through."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from proofstone.common.models import Assurance
from proofstone.prove.attempts import PROGRAMS
from proofstone.prove.trial import TrialBench
from proofstone.prove.walls import try_walls
from proofstone.sandbox.job import JobLimits
from proofstone.sandbox.limits import LimitWatch
from proofstone.sandbox.probe import try_sandboxes
from proofstone.sandbox.rules import THREATS
from tests.needs import needs
from tests.workshop import Workshop

OPEN_ON_SOME_MACHINES_ONLY = {"perf", "userfaultfd", "bpf", "kernel-settings", "time", "io_uring", "user-namespace"}
"""Without a filter the kernel decides, by its version and its settings."""


def tried(workshop: Workshop, level: Assurance) -> dict[str, bool | None]:
    bench = TrialBench(workshop.folder / "bench", workshop.environment["PATH"], threading.Event())
    walls = try_walls(bench, level)
    assert all(bool(wall.fix) is (wall.held is False) for wall in walls)
    assert [wall.attempt for wall in walls] == [threat.name for threat in THREATS]
    return {wall.attempt: wall.held for wall in walls}


def promised(level: Assurance) -> set[str]:
    return {threat.name for threat in THREATS if threat.is_prevented_at(level, as_root=os.geteuid() == 0)}


@needs("bwrap")
def test_the_strongest_level_holds(workshop: Workshop) -> None:
    if try_sandboxes(workshop.folder / "probe").best_level is not Assurance.BUBBLEWRAP:
        pytest.skip("bubblewrap does not work here")
    walls = tried(workshop, Assurance.BUBBLEWRAP)
    assert promised(Assurance.BUBBLEWRAP) == set(walls)
    assert {name for name, held in walls.items() if held is False} == set()


def test_an_attempt_on_the_memory_lasts_until_it_was_measured(tmp_path: Path) -> None:
    """Where there is no control group the engine measures, so what is over in a moment says nothing."""
    (tmp_path / "known.json").write_text('{"hoard_mb": 256}')
    (tmp_path / "hoard.py").write_text(PROGRAMS["hoard.py"])
    with subprocess.Popen([sys.executable, tmp_path / "hoard.py"], stdout=subprocess.PIPE) as attempt:
        watch = LimitWatch(JobLimits(memory_mb=64), attempt.pid, [], has_group=False)
        while not (exceeded := watch.describe_exceeded(time.monotonic())) and attempt.poll() is None:
            time.sleep(0.05)
        attempt.kill()
        assert (exceeded, attempt.communicate()[0]) == ("the memory limit of 64 MiB", b"")


@pytest.mark.ci
def test_the_weakest_level_does_not_and_nothing_of_it_stays(workshop: Workshop) -> None:
    walls = tried(workshop, Assurance.PLAIN)
    gave_way = {name for name, held in walls.items() if held is False}
    untried = {name for name, held in walls.items() if held is None}
    assert gave_way & promised(Assurance.PLAIN) == set()
    assert set(walls) - promised(Assurance.PLAIN) - OPEN_ON_SOME_MACHINES_ONLY - untried <= gave_way
    assert walls["outlive"] is True
    left = [path for folder in ("/etc", "/usr", "/run") for path in Path(folder).glob("proofstone-prove-*")]
    assert left == []
