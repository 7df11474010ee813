"""Killed from outside at any moment, or interrupted by the person."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.crash.bench import VERIFY, Bench
from tests.waiting import PATIENCE, wait_until

CHECK = ("check", "--json", "--verify", VERIFY)
_random = random.Random(20)  # the same moments in every run
EVERY = [(_random.random(), whole_group) for _ in range(30) for whole_group in (False, True)]
SAMPLE = EVERY[:6]


@pytest.fixture(scope="module")
def usual(shared_bench: Bench) -> float:
    """How long a check takes here, so that the moments lie within it."""
    shared_bench.change()
    started = time.monotonic()
    shared_bench.workshop.start(shared_bench.root, *CHECK).communicate()
    return time.monotonic() - started


def kill_at(bench: Bench, moment: float, *, whole_group: bool) -> None:
    bench.change()
    before = bench.state()
    running = bench.workshop.start(bench.root, *CHECK)
    try:
        running.wait(moment)
    except subprocess.TimeoutExpired:
        (os.killpg if whole_group else os.kill)(running.pid, signal.SIGKILL)
    running.communicate()
    assert running.returncode in (-signal.SIGKILL, 0)
    bench.wait_until_nothing_runs()
    bench.assert_unharmed(before)
    bench.assert_works_again()


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize(("part", "whole_group"), SAMPLE)
def test_a_check_killed_at_any_moment_loses_nothing(bench: Bench, usual: float, part: float, whole_group: bool) -> None:
    kill_at(bench, part * usual, whole_group=whole_group)


@pytest.mark.sweep
@pytest.mark.parametrize(("part", "whole_group"), EVERY[6:])
def test_a_check_killed_at_many_moments_loses_nothing(
    bench: Bench, usual: float, part: float, whole_group: bool
) -> None:
    kill_at(bench, part * usual, whole_group=whole_group)


def sleepers(seconds: str) -> list[str]:
    """Processes of a check that sleeps for so long, wherever they run."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and (place / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(place.name)
        except OSError:
            continue
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_check_started_dies_with_it(bench: Bench, number: signal.Signals) -> None:
    seconds = f"86.{os.getpid()}{int(number)}"
    before = bench.state()
    # A background process in a session of its own: nothing but the sandbox can find it.
    command = f"setsid sleep {seconds} & sleep {seconds}; {VERIFY}"
    running = bench.workshop.start(bench.root, "check", "--verify", command)
    wait_until(lambda: len(sleepers(seconds)) >= 2, lambda: "the check did not start")
    os.kill(running.pid, number)
    running.communicate()
    assert running.returncode != 0
    wait_until(lambda: not sleepers(seconds), lambda: "the check goes on without its engine")
    bench.wait_until_nothing_runs()
    bench.assert_unharmed(before)
    bench.assert_works_again()


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "interrupted by SIGTERM"),
        (signal.SIGHUP, 129, "interrupted by SIGHUP"),
    ],
)
def test_a_signal_ends_a_check_and_everything_it_started(
    bench: Bench, number: signal.Signals, code: int, message: str
) -> None:
    seconds = f"870.{os.getpid()}{int(number)}"
    before = bench.state()
    running = bench.workshop.start(bench.root, "check", "--json", "--verify", f"sleep {seconds}; {VERIFY}")
    wait_until(lambda: bool(sleepers(seconds)), lambda: "the check did not start")
    os.killpg(running.pid, number)
    stdout, stderr = running.communicate(timeout=PATIENCE)  # far below the time that the check would take
    assert running.returncode == code
    assert json.loads(stdout)["error"] == {"type": "Interrupted", "message": message, "hint": None, "exit_code": code}
    assert stderr.splitlines()[-1] == f"proofstone: {message}"
    assert "Traceback" not in stderr
    assert sleepers(seconds) == []
    assert bench.processes() == []
    assert bench.workshop.leftovers == []
    bench.assert_unharmed(before)
    event = bench.last_event()
    assert (event["type"], event["outcome"]) == ("run.finished", "interrupted")
    bench.assert_works_again()


def test_an_interrupted_check_is_never_reused(bench: Bench) -> None:
    seconds = f"88.{os.getpid()}"
    command = f"sleep {seconds} && false"
    running = bench.workshop.start(bench.root, "check", "--verify", command)
    wait_until(lambda: bool(sleepers(seconds)), lambda: "the check did not start")
    os.killpg(running.pid, signal.SIGINT)
    running.communicate()
    bench.wait_until_nothing_runs()
    sql = "SELECT count(*) AS passed FROM checks WHERE passed = 1 AND command LIKE 'sleep 88.%'"
    asked = bench.workshop.proofstone(bench.root, "ledger", "query", sql, "--json")
    assert '"passed": 0' in asked.stdout
