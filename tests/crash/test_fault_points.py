"""Killed at any named boundary, `proofstone check` loses nothing, harms nothing, and works the next time."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from proofstone.faults import FAULT_POINTS
from tests.crash.bench import Bench

OTHERS = ("commit.", "gate.", "page.", "agent.", "step.", "checkpoint.", "daemon.")
CHECK_POINTS = [point for point in FAULT_POINTS if not point.startswith(OTHERS)]
"""Those that `proofstone check` comes by."""
FIRST_ONLY = ("key.",)
"""Those that only the very first one comes by."""


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize("point", [point for point in CHECK_POINTS if not point.startswith(FIRST_ONLY)])
def test_a_check_killed_at_a_fault_point_loses_nothing(bench: Bench, point: str) -> None:
    bench.change()
    before = bench.state()
    killed = bench.check(env={"PROOFSTONE_FAULT": point})
    assert killed.exit == -signal.SIGKILL, f"{point} was not reached: {killed.stderr}"
    assert killed.stdout == ""
    bench.wait_until_nothing_runs()
    bench.assert_unharmed(before)
    bench.assert_works_again()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(name, marks=[] if number % 3 == 0 else [pytest.mark.sweep])
        for number, name in enumerate(CHECK_POINTS)
    ],
)
def test_the_very_first_check_can_be_killed_anywhere(tmp_path: Path, point: str) -> None:
    """With nothing made yet: no ledger, no private git directory, no cache."""
    fresh = Bench.unchecked(tmp_path)
    before = fresh.files()
    killed = fresh.check(env={"PROOFSTONE_FAULT": point})
    assert killed.exit == -signal.SIGKILL, f"{point} was not reached: {killed.stderr}"
    fresh.wait_until_nothing_runs()
    assert fresh.files() == before
    fresh.assert_works_again()


def test_a_bad_change_killed_before_its_record_is_not_passed_by_the_next_run(bench: Bench) -> None:
    bench.change("bad")
    for point in ("check.before-record", "check.after-record"):
        assert bench.check(env={"PROOFSTONE_FAULT": point}).exit == -signal.SIGKILL
    again = bench.check()
    assert again.exit == 1
    assert again.report.outcome == "failed"
    assert not again.check("verify").reused
    bench.change()
