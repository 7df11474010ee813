"""Control groups: whose they are, and which of them are left over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proofstone.sandbox.limits import ControlGroup, create_control_group
from tests.needs import needs, unavailable

CREATE = "from proofstone.sandbox.limits import create_control_group as create; group = create(0, 64); "
ELSEWHERE = ("bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc")


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    group = create_control_group(0, 64)
    if group is None:
        unavailable("control groups cannot be had here")
    with closing(group):
        yield group


def run(lines: str, *wrap: str) -> str:
    words = [*wrap, sys.executable, "-c", CREATE + lines]
    return subprocess.run(words, capture_output=True, text=True).stdout


@needs("bwrap")
def test_a_new_group_is_not_removed_by_an_engine_in_another_pid_namespace(group: ControlGroup) -> None:
    """The process that made it does not exist there, and no process is in it yet."""
    assert "True" in run("print(group is not None); group.close()", *ELSEWHERE)
    assert [folder.is_dir() for folder in group.folders] == [True] * len(group.folders)


def test_the_groups_of_an_engine_that_was_killed_are_removed_by_the_next_one(group: ControlGroup) -> None:
    printed = run("import os; print(*group.folders, sep='\\n', flush=True); os.kill(os.getpid(), 9)")
    abandoned = [Path(line) for line in printed.splitlines()]
    assert len(abandoned) == len(group.folders) and all(folder.is_dir() for folder in abandoned)
    assert "True" in run("print(group is not None); group.close()")
    assert not any(folder.is_dir() for folder in abandoned)


def test_closing_a_group_again_does_nothing(group: ControlGroup) -> None:
    group.close()
    with Path("/dev/null").open() as other:  # it has the number of a descriptor that the group had
        group.close()
        assert other.read() == ""
    assert not any(folder.is_dir() for folder in group.folders)
