"""L3, L4 and L5: reports that lie, and tests that cannot fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import Workshop, assert_failed, assert_passed

WRONG = "def total(items):\n    return max(items)\n"
RIGHT = "def total(items):\n    return sum(items)\n"
TEST = """
from sums import total


def test_total():
    assert total([1, 2]) == 3


def test_one():
    assert total([4]) == 4
"""
FOR_UNITTEST = """
import unittest

from sums import total


class Sums(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)

    def test_one(self):
        self.assertEqual(total([4]), 4)
"""
# Each patches the runner without naming it, as somebody would who knows that names are looked for.
EVERYTHING = """
import importlib

runner = importlib.import_module("_py" + "test.reports")
make = runner.TestReport.__init__


def lie(self, *args, **more):
    make(self, *args, **more)
    self.outcome = "passed"


runner.TestReport.__init__ = lie
"""
ONE = EVERYTHING.replace('self.outcome = "passed"', 'if "test_total" in self.nodeid:\n        self.outcome = "passed"')
EQUAL = """
class Total(int):
    def same(self, other):
        return 1 > 0


setattr(Total, "__" + "eq__", Total.same)


def total(items):
    return Total(max(items))
"""
SECOND_REPORT = """
import os

for number in os.listdir("/proc/self/fd"):
    try:
        place = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    if place.endswith("l") and "json" in place:
        with open(os.path.join(os.path.dirname(place), "py" "test-1.jsonl"), "w") as copy:
            copy.write('{"event": "start", "base": "/"}\\n{"event": "finish", "exit": 0}\\n')
"""


@pytest.fixture
def root(workshop: Workshop) -> Path:
    return workshop.repo({"conftest.py": "", "sums.py": WRONG, "tests/test_sums.py": TEST})


@pytest.fixture
def plain(workshop: Workshop) -> Path:
    """The same for `unittest`, which starts much faster: for whatever is no lie of a runner."""
    return workshop.repo({"tests/__init__.py": "", "sums.py": WRONG, "tests/test_sums.py": FOR_UNITTEST})


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (WRONG + EVERYTHING, "canary-passed"),
        pytest.param(WRONG + ONE, "unfailing-test", marks=pytest.mark.sweep),
        (EQUAL, "unfailing-test"),
    ],
    ids=["everything passes", "one test passes", "everything is equal"],
)
def test_a_lie_about_results_is_exposed(workshop: Workshop, root: Path, source: str, rule: str) -> None:
    workshop.write(root, {"sums.py": source})
    assert_failed(workshop.check(root), rule)


def test_a_second_report_is_a_forged_one(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"sums.py": RIGHT + SECOND_REPORT})
    assert_failed(workshop.check(root), "report-forged")


def test_a_run_that_ends_itself_early_is_named(workshop: Workshop, root: Path) -> None:
    early = 'import atexit\nimport os\n\natexit.register(getattr(os, "_ex" + "it"), 0)\n'
    source = f"{early}\n{WRONG}\n".replace("return max(items)", 'getattr(os, "_ex" + "it")(0)')
    workshop.write(root, {"sums.py": source})
    assert_failed(workshop.check(root), "unfinished-run")


def test_a_repair_is_seen_to_be_needed_by_its_test(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"sums.py": RIGHT})
    run = workshop.check(root, "--must-pass", "test_total")
    assert_passed(run)
    assert run.json["sensitive"] == ["tests/test_sums.py::test_total"]
    assert run.json["confidence"] == "high"
    rows = workshop.proofstone(root, "ledger", "show", run.json["run_id"], "--json").stdout
    assert "tests:pytest:must-fail" in rows
    assert "tests:pytest:sabotaged" in rows
    again = workshop.check(root, "--must-pass", "test_total")
    assert (again.json["sensitive"], again.json["confidence"]) == (run.json["sensitive"], "high")


def test_a_named_new_test_that_the_base_passes_too_is_refused(workshop: Workshop, plain: Path) -> None:
    vacuous = f"{FOR_UNITTEST}\n    def test_totals_are_sums(self):\n        self.assertEqual(total([7]), 7)\n"
    workshop.write(plain, {"sums.py": WRONG + "\n\nSIZE = 2\n", "tests/test_sums.py": vacuous})
    assert_failed(workshop.check(plain, "--must-pass", "test_totals_are_sums"), "insensitive-test")


@pytest.mark.ci
def test_a_further_new_test_that_the_base_passes_too_is_no_fault(workshop: Workshop, plain: Path) -> None:
    more = f"{FOR_UNITTEST}\n    def test_one_more(self):\n        self.assertEqual(total([7]), 7)\n"
    workshop.write(plain, {"sums.py": RIGHT, "tests/test_sums.py": more})
    assert_passed(workshop.check(plain, "--must-pass", "test_total"))


@pytest.mark.ci
def test_a_new_module_with_its_test_is_taken(workshop: Workshop, plain: Path) -> None:
    head = "import unittest\n\nfrom means import mean\n\n\nclass Means(unittest.TestCase):\n"
    workshop.write(
        plain,
        {
            "means.py": "def mean(items):\n    return sum(items) / len(items)\n",
            "tests/test_means.py": f"{head}    def test_mean(self):\n        self.assertEqual(mean([1, 3]), 2)\n",
        },
    )
    run = workshop.check(plain, "--must-pass", "test_mean")
    assert_passed(run)
    assert run.json["sensitive"] == ["tests.test_means.Means.test_mean"]


def test_a_change_that_nothing_covers_passes_with_less_confidence(workshop: Workshop, plain: Path) -> None:
    workshop.write(plain, {"more.py": "def more():\n    return 1\n"})
    run = workshop.check(plain)
    assert_passed(run)
    assert run.json["confidence"] == "medium"
    assert any("no test covers the change" in reason["reason"] for reason in run.json["reasons"])


def test_a_refactoring_is_covered_by_the_tests_there_are(workshop: Workshop) -> None:
    root = workshop.repo({"tests/__init__.py": "", "sums.py": RIGHT, "tests/test_sums.py": FOR_UNITTEST})
    workshop.write(root, {"sums.py": RIGHT.replace("return sum(items)", "found = sum(items)\n    return found")})
    run = workshop.check(root)
    assert_passed(run)
    assert run.json["confidence"] == "high"


def test_a_pytest_that_stops_at_the_first_failure_meets_the_canary_all_the_same(workshop: Workshop) -> None:
    files = {"pytest.ini": "[pytest]\naddopts = -x\n", "sums.py": WRONG, "tests/test_sums.py": TEST}
    root = workshop.repo(files)
    workshop.write(root, {"sums.py": RIGHT})
    run = workshop.check(root, "--must-pass", "test_total")
    assert_passed(run)
    assert run.json["confidence"] == "high"


def test_a_test_that_failed_by_chance_on_the_base_is_no_repair_that_needs_no_change(workshop: Workshop) -> None:
    """Its first run on the base fails, all others pass: a change that has nothing to do with it is not to blame."""
    mark = workshop.folder / "home" / "ran-before"
    said = f"import pathlib\n\n        self.assertTrue(pathlib.Path({str(mark)!r}).exists())"
    by_chance = f"{FOR_UNITTEST}\n    def test_by_chance(self):\n        {said}\n"
    files = {"tests/__init__.py": "", "sums.py": RIGHT, "tests/test_sums.py": by_chance}
    root = workshop.repo({**files, "proofstone.toml": "[check]\nflaky_reruns = 0\n"})
    workshop.write(root, {"sums.py": RIGHT.replace("return sum(items)", "found = sum(items)\n    return found")})
    workshop.check(root)  # the base's failure is kept from here on
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    run = workshop.check(root)
    assert "insensitive-test" not in {one.rule for one in run.report.findings}
