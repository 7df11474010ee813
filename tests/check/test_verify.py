"""`--verify`: what a person's own command proves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs
from tests.workshop import Workshop, assert_failed, assert_passed

SUMS = "def total(items):\n    return sum(items)\n"
BROKEN = "def total(items):\n    return max(items)\n"
TESTS = """
from sums import total


def test_total():
    assert total([1, 2]) == 3


def test_stands_broken():
    assert total([]) == 1
"""
FOR_UNITTEST = """
import unittest

from sums import total


class Sums(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)

    def test_stands_broken(self):
        self.assertEqual(total([]), 1)
"""
MAKE = "test:\n\t@python -m pytest -q\n"
WRAPPED = ["python -m pytest -q", "sh -c 'cd . && python -m pytest -q'", "make -s test", "cd . && python -m pytest -q"]


@pytest.fixture
def root(workshop: Workshop) -> Path:
    return workshop.repo({"sums.py": SUMS, "test_sums.py": TESTS, "Makefile": MAKE})


@pytest.fixture
def plain(workshop: Workshop) -> Path:
    """The same for `unittest`, which starts much faster."""
    return workshop.repo({"sums.py": SUMS, "test_sums.py": FOR_UNITTEST})


@pytest.fixture
def bare(workshop: Workshop) -> Path:
    """One without any tests: the person's command is all that is run."""
    return workshop.repo({"sums.py": SUMS})


@pytest.mark.few(1)
@pytest.mark.parametrize("code", [1, 2, 77, 127])
def test_any_exit_code_but_zero_fails(workshop: Workshop, bare: Path, code: int) -> None:
    run = workshop.check(bare, "--verify", f"exit {code}")
    assert_failed(run)
    assert f"exit code {code}" in run.report.reason


def test_a_command_that_failed_on_the_base_too_fails_without_tests_to_compare(workshop: Workshop, bare: Path) -> None:
    workshop.write(bare, {"note.txt": "x\n"})
    assert_failed(workshop.check(bare, "--verify", "exit 1"))


@pytest.mark.few(1, ci=2)
@needs("make")
@pytest.mark.parametrize("command", WRAPPED[1:])
def test_a_regression_is_named_however_the_tests_are_started(workshop: Workshop, root: Path, command: str) -> None:
    workshop.write(root, {"sums.py": BROKEN})
    run = workshop.check(root, "--verify", command)
    assert_failed(run, "regression")
    assert "test_sums.py::test_total" in run.report.regressions


@needs("make")
@pytest.mark.parametrize("command", WRAPPED[:1])
def test_a_failure_that_stood_in_the_base_is_not_held_against_the_change(
    workshop: Workshop, root: Path, command: str
) -> None:
    workshop.write(root, {"sums.py": "def total(items):\n    return sum(list(items))\n"})
    run = workshop.check(root, "--verify", command)
    assert_passed(run)
    assert run.report.standing == ("test_sums.py::test_stands_broken",)
    again = workshop.check(root, "--verify", command)
    assert_passed(again)
    assert again.report.standing == run.report.standing


def test_a_repaired_test_is_named(workshop: Workshop, plain: Path) -> None:
    workshop.write(plain, {"sums.py": "def total(items):\n    return sum(items) if items else 1\n"})
    run = workshop.check(plain, "--verify", "python -m unittest")
    assert_passed(run)
    assert run.report.fixed == ("test_sums.Sums.test_stands_broken",)


# Fails in the first process that a run starts and passes in later ones would need memory, and there is none: the
# clock decides instead. A run of the whole file takes long enough for the second to be another one.
FLAKY = """
import os
import random
import unittest


class Chance(unittest.TestCase):
    def test_chance(self):
        self.assertLess(random.Random(os.urandom(8)).random(), 0.5)
"""
CHANCE = "test_chance.Chance.test_chance"


def test_a_test_that_fails_by_chance_is_called_flaky(workshop: Workshop, plain: Path) -> None:
    """Each run is one toss for the first answer and more for the second: one in a few is flaky, sooner or later."""
    (plain / "proofstone.toml").write_text("[check]\nflaky_reruns = 5\n")
    workshop.write(plain, {"test_sums.py": FOR_UNITTEST.replace(", 1)", ", 0)")})
    workshop.commit(plain)
    workshop.write(plain, {"test_chance.py": FLAKY})
    for _ in range(20):
        run = workshop.check(plain, "--verify", "python -m unittest", "--no-cache")
        if CHANCE in run.report.flaky:  # the command itself may be as well
            break
    assert_failed(run, "flaky")
    assert CHANCE in run.report.flaky
    assert run.report.regressions == ()


def test_what_passed_is_known_the_second_time_and_asked_again_with_fresh(workshop: Workshop, bare: Path) -> None:
    workshop.write(bare, {"note.txt": "x\n"})
    command = ("--verify", "test -e note.txt")
    assert not workshop.check(bare, *command).check("verify").reused
    assert workshop.check(bare, *command).check("verify").reused
    assert not workshop.check(bare, *command, "--no-cache").check("verify").reused
    workshop.write(bare, {"note.txt": "y\n"})
    assert not workshop.check(bare, *command).check("verify").reused


def test_nothing_to_exercise_the_change_is_no_pass(workshop: Workshop) -> None:
    root = workshop.repo({"a.c": "int a;\n"})
    workshop.write(root, {"a.c": "int b;\n"})
    run = workshop.check(root)
    assert run.exit == 1
    assert run.report.outcome == "unverifiable"
