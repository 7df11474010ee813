"""Nothing old is taken for something new: bytecode, build products, kept results."""

from __future__ import annotations

import py_compile
import shutil
import sys

import pytest

from tests.needs import needs
from tests.workshop import Workshop

pytestmark = needs("bwrap")

THING = "def f():\n    return {}\n"
TEST = """
import unittest

from thing import f


class Thing(unittest.TestCase):
    def test_f(self):
        self.assertEqual(f(), 1)
"""
ID = "test_thing.Thing.test_f"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "mode", [py_compile.PycInvalidationMode.UNCHECKED_HASH, py_compile.PycInvalidationMode.TIMESTAMP]
)
def test_committed_bytecode_does_not_run_instead_of_the_source(
    workshop: Workshop, mode: py_compile.PycInvalidationMode
) -> None:
    root = workshop.repo({"thing.py": THING.format(1), "test_thing.py": TEST})
    cached = root / "__pycache__" / f"thing.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(root / "thing.py"), cfile=str(cached), invalidation_mode=mode)
    workshop.commit(root)
    workshop.write(root, {"thing.py": THING.format(2)})
    done = workshop.check(root)
    assert done.report.regressions == (ID,), done.stderr


def test_bytecode_that_the_change_brings_along_does_not_run_either(workshop: Workshop) -> None:
    root = workshop.repo({"thing.py": THING.format(1), "test_thing.py": TEST})
    cached = root / "__pycache__" / f"thing.{sys.implementation.cache_tag}.pyc"
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(root / "thing.py"), cfile=str(cached), invalidation_mode=unchecked)
    workshop.write(root, {"thing.py": THING.format(2)})
    assert workshop.check(root).report.regressions == (ID,)


MAKE = {"Makefile": "prog: prog.sh\n\tcp prog.sh prog\n", "prog.sh": "exit 0\n", ".gitignore": "prog\n"}


@needs("make")
def test_base_and_change_share_no_build_product_and_the_work_trees_own_is_not_seen(workshop: Workshop) -> None:
    root = workshop.repo(MAKE)
    assert workshop.run(root, "make", "prog").returncode == 0
    workshop.write(root, {"prog.sh": "exit 7\n", "prog": "exit 0\n"})  # the product is newer than its source
    done = workshop.check(root, "--verify", "make prog && sh ./prog")
    line = done.check("verify")
    assert (line.verdict, line.baseline) == ("fail", "pass"), done.stderr
    assert "cp prog.sh prog" in done.output("verify")


@needs("make")
def test_a_build_of_the_base_is_not_used_for_the_change_with_older_time_stamps(workshop: Workshop) -> None:
    root = workshop.repo({**MAKE, "Makefile": MAKE["Makefile"] + "test: prog\n\tsh ./prog\n"})
    workshop.write(root, {"prog.sh": "exit 7\n"})
    import os

    os.utime(root / "prog.sh", (1, 1))
    for _ in range(2):
        line = workshop.check(root, "--verify", "make prog && sh ./prog").check("verify")
        assert (line.verdict, line.baseline) == ("fail", "pass")


def test_a_pass_is_kept_a_failure_never_and_fresh_runs_again(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n"})

    def reused(*args: str) -> tuple[bool, bool]:
        done = workshop.check(root, "--verify", "grep b a.txt", "--verify", "grep c a.txt", *args)
        assert done.exit == 1, done.stderr
        passed, failed = (line for line in done.report.checks if line.kind == "verify")
        assert (passed.verdict, failed.verdict) == ("pass", "fail")
        return passed.reused, failed.reused

    assert reused() == (False, False)
    assert reused() == (True, False)
    assert reused("--no-cache") == (False, False)


def test_a_kept_result_does_not_survive_another_tree_or_environment(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    for text, variables, expected in (
        ("b\n", {}, False),
        ("b\n", {}, True),
        ("b\n", {"LC_ALL": "C"}, False),
        ("b b\n", {}, False),
    ):
        workshop.write(root, {"a.txt": text})
        line = workshop.check(root, "--verify", "grep b a.txt", env=variables).check("verify")
        assert (line.verdict, line.reused) == ("pass", expected)


FLAG_TEST = """
import pathlib
import unittest

from thing import f


class Thing(unittest.TestCase):
    def test_always(self):
        pass

    def test_f(self):
        self.assertTrue((pathlib.Path.home() / ".cache" / "flag").exists(), "no flag")
        self.assertEqual(f(), 1)
"""


def test_a_failure_of_the_base_that_was_kept_does_not_excuse_a_regression(workshop: Workshop) -> None:
    root = workshop.repo({"thing.py": THING.format(1), "test_thing.py": FLAG_TEST})
    workshop.write(root, {"note.md": "1\n"})
    first = workshop.check(root)
    assert first.report.standing == (ID,), first.stderr
    workshop.write(workshop.home, {".cache/flag": ""})  # whatever made it fail is over
    workshop.write(root, {"thing.py": THING.format(2)})
    second = workshop.check(root)
    assert second.report.regressions == (ID,), second.stderr
    assert second.exit == 1 and second.report.standing == ()


def test_a_failure_of_the_base_that_still_stands_is_no_regression(workshop: Workshop) -> None:
    root = workshop.repo({"thing.py": THING.format(1), "test_thing.py": FLAG_TEST})
    for text in ("1\n", "2\n"):
        workshop.write(root, {"note.md": text})
        done = workshop.check(root)
        assert (done.report.standing, done.report.regressions) == ((ID,), ()), done.stderr


def test_a_kept_result_whose_ledger_row_is_gone_is_not_used(workshop: Workshop) -> None:
    root = workshop.repo({"a.txt": "a\n"})
    workshop.write(root, {"a.txt": "b\n"})
    assert workshop.check(root, "--verify", "grep b a.txt").exit == 0
    for file in (workshop.proofstone_home / "ledger").iterdir():
        file.unlink()
    shutil.rmtree(workshop.proofstone_home / "anchors")
    workshop.git(root, "update-ref", "-d", "refs/proofstone/ledger")
    done = workshop.check(root, "--verify", "grep b a.txt")
    assert done.report.checks and not done.check("verify").reused, done.stderr
