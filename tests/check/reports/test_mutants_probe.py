"""The probe that runs many mutants in one pytest process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proofstone.check.models import ReportFormat, TestReport
from proofstone.check.mutation_runs import encode_plan
from proofstone.check.rules.strength import StrengthBounds
from proofstone.check.variants.mutants import choose_mutants, list_mutants
from tests.check.reports.project import Project
from tests.check.reports.test_pytest_probe import PYTEST

SHOP = """LIMIT = 10
RATES = {"a": 3}


class Cart:
    size = 7

    def add(self, units, cost):
        if units >= LIMIT:
            return units * cost * 9 // 10
        return units * cost


def count(n):
    i = 0
    while i < n:
        i += 1
    return i


def never(x):
    return x + 1
"""
TESTS = """import subprocess
import sys

import pytest

from shop import Cart, count


@pytest.fixture(scope="session")
def cart():
    return Cart()


def test_add(cart):
    assert cart.add(2, 5) == 10
    assert cart.size == 7


@pytest.mark.parametrize("units", [20])
def test_many(cart, units):
    assert cart.add(units, 5) == 90


def test_count():
    assert count(3) == 3


def test_fails_anyway():
    assert Cart().add(2, 5) == 11


def test_program():
    printed = subprocess.run([sys.executable, "-c", "from shop import RATES; print(RATES['a'])"], capture_output=True)
    assert printed.stdout == b"3\\n"
"""


def measure(project: Project, text: str, bounds: StrengthBounds) -> tuple[TestReport, dict[str, dict[str, Any]]]:
    """Run all mutants of a file; return the report, and what became of each mutant by its line."""
    content = text.encode()
    mutants = choose_mutants(list_mutants("shop.py", content, range(1, 100)), {"shop.py": content}, bounds.mutants)
    project.env = {"PROOFSTONE_MUTANTS": encode_plan(".", mutants, bounds, ["shop.py"])}
    report = project.run(ReportFormat.PYTEST, [*PYTEST, "-p", "no:cacheprovider"])
    facts = {result.id: json.loads(result.message) for result in report.results}
    shown = {f"{mutant.line} {mutant.after}": facts.get(f"mutant {n}", {}) for n, mutant in enumerate(mutants)}
    return report, shown | {"lines": facts["lines shop.py"]}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "repo")
    project.file("shop.py", SHOP)
    project.file("tests/test_shop.py", TESTS)
    project.file("pytest.ini", "[pytest]\npythonpath = .\n")
    return project


def test_each_mutant_meets_the_tests_that_reach_it(project: Project) -> None:
    report, facts = measure(project, SHOP, StrengthBounds(mutants=100, test_runs=1000, fresh=3, seconds=300))
    assert (project.exit_code, report.complete, report.problems) == (0, True, ()), project.output
    assert facts.pop("lines") == {"lines": [[9, 11], [15, 18]]}
    status = {mutant: result.get("status") for mutant, result in facts.items()}
    assert status["9 if units > LIMIT:"] == "survived"
    assert status["9 if units < LIMIT:"] == "killed"
    assert status["10 return units * cost * 9 * 10"] == "killed"
    assert facts["10 return None"]["by"] == "tests/test_shop.py::test_many[20]"
    assert facts["11 return units / cost"]["by"] == "tests/test_shop.py::test_add"  # and not the one that fails anyway
    # A loop that does not end is noticed by its processor time.
    assert "signal" in facts["17 i -= 1"]["by"]
    # No function reaches this one, but the program that a test starts may do so: that test ran.
    assert (status["22 return x - 1"], facts["22 return x - 1"]["tests"]) == ("survived", 1)
    # What runs on import needs a fresh pytest, of which there were three. The program of a test reads the file.
    assert status["1 LIMIT = 11"] == "survived"
    assert facts['2 RATES = {"": 3}']["by"] == "tests/test_shop.py::test_program"
    assert facts["6 size = 8"]["by"] == "tests/test_shop.py::test_add"
    assert [mutant for mutant, found in status.items() if found is None] == ['2 RATES = {"a": 4}']
    assert (project.root / "shop.py").read_text() == SHOP


def test_the_number_of_test_runs_is_bounded_and_lines_of_no_test_are_named(project: Project) -> None:
    project.file("tests/test_shop.py", TESTS.partition("def test_program")[0])
    _, facts = measure(project, SHOP, StrengthBounds(mutants=100, test_runs=3, fresh=0, seconds=300))
    facts.pop("lines")
    decided = [result["status"] for result in facts.values() if result]
    assert decided[:3] == ["killed"] * 3
    assert set(decided[3:]) <= {"unreached"}
    assert len(decided) < len(facts)
