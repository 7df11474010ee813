"""System calls that fail, and disks that are full: a clear word, never a false pass, and the next run works."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.bench import Bench
from tests.needs import needs, unavailable
from tests.workshop import CheckRun

CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "mkdir")
ERRORS = ("EIO", "ENOSPC")
EVERY = [(call, error, when) for call in CALLS for error in ERRORS for when in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)]
_NO_OUTPUT = 120
"""How Python ends when its own output cannot be written."""
SAMPLE = [
    ("write", "EIO", 13),
    ("pwrite64", "ENOSPC", 5),
    ("fdatasync", "EIO", 2),
    ("rename", "ENOSPC", 1),
    ("mkdir", "ENOSPC", 3),
]


def broken(bench: Bench, call: str, error: str, when: int, *, onward: bool, word: str) -> None:
    """One check in which a call fails from its `when`th time on, or only then, in every process that is started."""
    bench.change(word)
    before = bench.state()
    times = f"{when}+" if onward else str(when)
    inject = f"inject={call}:error={error}:when={times}"
    wrap = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
    done = bench.check(wrap=wrap)
    assert_honest(done, word, is_mute=onward and call == "write")
    bench.wait_until_nothing_runs()
    bench.assert_unharmed(before)
    bench.change()
    bench.assert_works_again()


def assert_honest(done: CheckRun, word: str, *, is_mute: bool = False) -> None:
    """Passed only if the change is good; otherwise it says why, unless what it says cannot be written either."""
    known = (1, 2, 70, _NO_OUTPUT)
    assert done.exit in ((0, *known) if word == "good" else known), done.stderr
    if done.exit in (2, 70) and not is_mute:
        assert "proofstone: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.few(1, ci=2)
@needs("strace")
@pytest.mark.parametrize("word", ["good", "bad"])
@pytest.mark.parametrize(("call", "error", "when"), SAMPLE)
def test_a_failing_call_gives_no_false_pass(bench: Bench, call: str, error: str, when: int, word: str) -> None:
    broken(bench, call, error, when, onward=True, word=word)


@needs("strace")
@pytest.mark.sweep
@pytest.mark.parametrize("onward", [False, True])
@pytest.mark.parametrize(("call", "error", "when"), EVERY)
def test_no_failing_call_gives_a_false_pass(bench: Bench, call: str, error: str, when: int, onward: bool) -> None:
    broken(bench, call, error, when, onward=onward, word="bad")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        unavailable("only root can mount a small disk")
    (tmp_path / "state").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(tmp_path / "state")],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        unavailable(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path / "state")], check=True)


@pytest.mark.few(1)
@needs("mount", "umount")
@pytest.mark.parametrize("size", ["64k", "200k", "300k", "450k"])
def test_a_full_disk_is_named_and_costs_nothing(small_disk: Path, size: str) -> None:
    state = small_disk / "state"
    subprocess.run(["mount", "-o", f"remount,size={size}", str(state)], check=True)
    bench = Bench.unchecked(small_disk)
    before = bench.files()
    done = bench.check()
    assert done.exit == 2, done.stderr
    assert "No space left" in done.stderr or "disk is full" in done.stderr
    assert "hint: " in done.stderr
    assert bench.files() == before
    subprocess.run(["mount", "-o", "remount,size=64m", str(state)], check=True)
    bench.check()
    verified = bench.workshop.proofstone(bench.root, "ledger", "verify")
    assert verified.returncode == 0, verified.stderr
    assert bench.check().exit == 0


def test_broken_calls_do_reach_the_check(bench: Bench) -> None:
    """Otherwise the tests above would prove nothing."""
    wrap = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"]
    wrap += ["-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EIO:when=1+"]
    done = bench.check(wrap=wrap)
    assert done.exit == 2
    assert "disk I/O error" in done.stderr
