"""Limits that are enforced by measuring."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proofstone.sandbox.job import JobLimits
from proofstone.sandbox.limits import LimitWatch, find_descendants

HOARD = "x = bytearray(b'y' * (96 << 20)); print('ready', flush=True); input()"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@contextmanager
def running(*argv: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout and process.stdout.readline() == "ready\n"
            yield process
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(30)


def test_memory_of_a_grandchild_counts_where_there_is_no_control_group(tmp_path: Path) -> None:
    with running(PARENT, HOARD) as process:
        assert len(find_descendants(process.pid)) == 2
        small, large = JobLimits(memory_mb=64), JobLimits(memory_mb=512)
        assert "memory limit of 64 MiB" in LimitWatch(
            small, process.pid, [tmp_path], has_group=False
        ).describe_exceeded(1)
        assert LimitWatch(large, process.pid, [tmp_path], has_group=False).describe_exceeded(1) == ""
        assert LimitWatch(small, process.pid, [tmp_path], has_group=True).describe_exceeded(1) == ""
        assert LimitWatch(JobLimits(memory_mb=0), process.pid, [tmp_path], has_group=False).describe_exceeded(1) == ""


def test_what_was_written_counts_and_what_was_there_before_does_not(tmp_path: Path) -> None:
    scratch, work_tree = tmp_path / "scratch", tmp_path / "work"
    for folder in (scratch, work_tree):
        folder.mkdir()
    (work_tree / "before").write_bytes(b"x" * (3 << 20))
    watch = LimitWatch(JobLimits(disk_mb=2, memory_mb=0), 1, [scratch, work_tree], has_group=True)
    assert watch.describe_exceeded(1) == ""
    (scratch / "deep").mkdir()
    (scratch / "deep" / "new").write_bytes(b"x" * (3 << 20))
    assert watch.describe_exceeded(1.2) == "", "too early to measure again"
    assert "disk limit of 2 MiB" in watch.describe_exceeded(100)
    assert LimitWatch(JobLimits(disk_mb=0, memory_mb=0), 1, [scratch], has_group=True).describe_exceeded(100) == ""
