"""What this suite forks is what people start: otherwise its other tests would prove less than they say."""

from __future__ import annotations

import signal

import pytest

from tests.workshop import Workshop

STARTED = ("env",)
"""A program that starts `proofstone`, so that it cannot be forked."""


def test_a_check_sees_the_same_variables_in_a_fork(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n"})
    asked = ("--no-cache", "--verify", "env | sort; pwd; umask; ulimit -a")
    forked, started = (workshop.check(root, *asked, wrap=wrap).output("verify") for wrap in ((), STARTED))
    assert forked == started
    assert f"HOME={workshop.home}" in forked


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "args",
    [("config", "show", "--json"), ("check", "--base", "gone"), ("check", "--json", "--verify", ""), ("no-such",), ()],
    ids=" ".join,
)
def test_a_fork_says_and_ends_with_the_same(workshop: Workshop, args: tuple[str, ...]) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    forked, started = (workshop.proofstone(root, *args, wrap=wrap) for wrap in ((), STARTED))
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_a_fork_that_is_killed_ends_by_its_signal(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    for wrap in ((), STARTED):
        killed = workshop.check(root, env={"PROOFSTONE_FAULT": "snapshot.before-tree"}, wrap=wrap)
        assert killed.exit == -signal.SIGKILL


def test_variables_that_python_reads_when_it_starts_reach_it(workshop: Workshop) -> None:
    """By a start, not by a fork."""
    root = workshop.repo({"a.txt": "a\n"})
    assert "import time:" in workshop.proofstone(root, "--version", env={"PYTHONPROFILEIMPORTTIME": "1"}).stderr
