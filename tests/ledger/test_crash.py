"""Whatever breaks, a row that was acknowledged stays, the chain verifies, and the next run works."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from proofstone.faults import FAULT_POINTS
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import artifacts_path, ledger_path, read_daemon_location
from proofstone.ledger.daemon_setup import move_to_account
from proofstone.ledger.models import CheckRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.ledger.verification import verify_with_artifacts
from proofstone.testing.ledger_conformance import build_check_row
from tests.needs import needs, unavailable

ROOT = Path(__file__).parents[2]
OURS = [point for point in FAULT_POINTS if point.startswith(("ledger.", "artifact."))]
APPENDS, ROWS = 6, 3


def write(
    home: Path, *, wrap: Sequence[str] = (), fault: str = "", file_limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if file_limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    return subprocess.run(
        [*wrap, sys.executable, "-m", "tests.ledger.writer", str(home), str(APPENDS), str(ROWS)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PROOFSTONE_FAULT": fault, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )


def acknowledged(done: subprocess.CompletedProcess[str]) -> list[int]:
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("ack ")]
    return [int(seq) for line in lines for seq in line[1:]]


def assert_nothing_was_lost(home: Path, acks: list[int]) -> int:
    """Returns how many rows there are after one more append."""
    with SqliteLedger(ledger_path(home)) as ledger:
        rows = {stored.seq: stored.row for stored in ledger.read(CheckRow)}
        assert set(acks) <= set(rows)
        assert len(rows) % ROWS == 0, "a part of an append is there"
        store = ArtifactStore(artifacts_path(home))
        for seq in acks:
            artifact = rows[seq].artifact
            assert artifact is not None
            assert store.find_problem(artifact) is None
        assert verify_with_artifacts(ledger, store).problem is None
        ledger.append(build_check_row())
        assert ledger.verify().ok
        return ledger.head().seq


@pytest.mark.few(3)
@pytest.mark.parametrize("point", OURS)
def test_a_process_killed_at_a_fault_point_loses_nothing_acknowledged(tmp_path: Path, point: str) -> None:
    before = write(tmp_path)
    assert before.returncode == 0, before.stderr
    killed = write(tmp_path, fault=point)
    assert killed.returncode == -signal.SIGKILL
    assert acknowledged(killed) == []
    total = assert_nothing_was_lost(tmp_path, acknowledged(before))
    committed = point == "ledger.after-commit"
    assert total == APPENDS * ROWS + (ROWS if committed else 0) + 1


def test_a_process_killed_while_it_creates_the_ledger_leaves_one_that_opens(tmp_path: Path) -> None:
    killed = write(tmp_path, fault="ledger.before-insert")
    assert killed.returncode == -signal.SIGKILL
    assert assert_nothing_was_lost(tmp_path, []) == 1


CALLS = ("pwrite64", "write", "fdatasync", "fsync", "ftruncate", "rename")
ERRORS = ("EIO", "ENOSPC")
EVERY = [(call, error, when) for call in CALLS for error in ERRORS for when in range(1, 61)]
WHEN = (1, 7, 20)
SAMPLE = [
    (call, error, WHEN[(at + with_error) % len(WHEN)])
    for at, call in enumerate(CALLS)
    for with_error, error in enumerate(ERRORS)
]
"""Every call with every error, early or late; `EVERY` is the sweep's."""


def break_calls(home: Path, call: str, error: str, when: int, onward: bool) -> None:
    times = f"{when}+" if onward else str(when)
    home.mkdir()
    wrap = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:error={error}:when={times}"]
    done = write(home, wrap=wrap)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 0:
        assert len(acknowledged(done)) == APPENDS * ROWS
    else:
        assert done.stderr.strip()
    assert_nothing_was_lost(home, acknowledged(done))


@pytest.mark.few(6)
@needs("strace")
@pytest.mark.parametrize(("call", "error", "when"), SAMPLE)
def test_a_failing_system_call_loses_nothing_acknowledged(tmp_path: Path, call: str, error: str, when: int) -> None:
    break_calls(tmp_path / "home", call, error, when, onward=True)


@needs("strace")
@pytest.mark.sweep
@pytest.mark.parametrize("onward", [False, True])
@pytest.mark.parametrize(("call", "error", "when"), EVERY)
def test_no_failing_system_call_loses_anything_acknowledged(
    tmp_path: Path, call: str, error: str, when: int, onward: bool
) -> None:
    break_calls(tmp_path / "home", call, error, when, onward=onward)


@pytest.mark.few(2)
@needs("strace")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("pwrite64", "disk I/O error"),
        ("fdatasync", "disk I/O error"),
        ("write", "Input/output error"),
        ("fsync", "Input/output error"),
        ("rename", "Input/output error"),
    ],
)
def test_injected_errors_do_reach_the_writer(tmp_path: Path, call: str, words: str) -> None:
    """Otherwise the tests above would prove nothing."""
    before = write(tmp_path)
    wrap = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:error=EIO:when=3+"]
    done = write(tmp_path, wrap=wrap)
    assert done.returncode == 2
    assert words in done.stderr
    assert_nothing_was_lost(tmp_path, acknowledged(before) + acknowledged(done))


@pytest.mark.few(2)
@pytest.mark.parametrize("limit", [0, 4096, 40_000, 100_000, 150_000])
def test_a_file_that_may_not_grow_loses_nothing_acknowledged(tmp_path: Path, limit: int) -> None:
    done = write(tmp_path, file_limit=limit)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert_nothing_was_lost(tmp_path, acknowledged(done))


@needs("mount", "umount")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_named_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    home = tmp_path / "disk"
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "tmpfs", str(home)], capture_output=True
    )
    if mounted.returncode != 0:
        unavailable(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        with (home / "ballast").open("wb") as ballast:
            ballast.write(b"x" * 70_000)
        done = write(home)
        assert done.returncode == 2
        assert "full" in done.stderr or "No space left" in done.stderr
        (home / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=4m", str(home)], check=True)
        assert_nothing_was_lost(home, acknowledged(done))
    finally:
        subprocess.run(["umount", str(home)], check=True)


def run_killed(code: str, fault: str, *args: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=ROOT,
        env={**os.environ, "PROOFSTONE_FAULT": fault, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_verification_killed_before_its_checkpoint_is_done_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with SqliteLedger(ledger_path(home)) as ledger:
        ledger.append(build_check_row())
    code = "import sys; from proofstone.cli.main import main; main(['ledger', 'verify', '--home', sys.argv[1]])"
    run_killed(code, "checkpoint.before-publish", str(home))
    with SqliteLedger(ledger_path(home)) as ledger:
        assert ledger.checkpoint() is None
        assert ledger.verify().ok
        assert ledger.record_checkpoint(ledger.head()) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files to another account needs root")
@pytest.mark.parametrize("point", ["daemon.before-location", "daemon.after-location"])
def test_a_ledger_that_is_given_away_is_in_one_place_or_the_other(tmp_path: Path, point: str) -> None:
    home, state = tmp_path / "home", tmp_path / "state"
    with SqliteLedger(ledger_path(home)) as ledger:
        ledger.append(build_check_row())
        first = ledger.hash_at(1)
    os.chown(home, 12345, 12345)
    code = (
        "import sys; from pathlib import Path; from proofstone.ledger.daemon_setup import move_to_account\n"
        "home, state = map(Path, sys.argv[1:]); move_to_account(home, 'nobody', state / 's', state)"
    )
    run_killed(code, point, str(home), str(state))
    moved = point == "daemon.after-location"
    assert (read_daemon_location(home) is not None) == moved
    with SqliteLedger(ledger_path(home), "read") as ledger:
        assert ledger.hash_at(1) == first
        assert ledger.verify().ok
    if not moved:
        move_to_account(home, "nobody", state / "s", state)
        with SqliteLedger(ledger_path(home), "read") as ledger:
            assert ledger.hash_at(1) == first
