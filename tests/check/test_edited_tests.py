"""A change that edits tests, or what decides them: never taken in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs
from tests.workshop import Workshop, assert_failed, assert_passed

SUMS = "def total(items):\n    return sum(items)\n"
BROKEN = "def total(items):\n    return max(items)\n"
TEST = "from sums import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
DATA = """
from pathlib import Path

from sums import total


def test_data():
    assert total([2, 2]) == int((Path(__file__).parent / "data" / "expected").read_text())
"""
XFAIL = """
import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.xfail)
"""
LIE = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""
WORD = ("--accept-test-changes", "the rule was changed on purpose", "--accepted-by", "Ada")


@pytest.fixture
def root(workshop: Workshop) -> Path:
    files = {"conftest.py": "", "sums.py": SUMS, "tests/test_sums.py": TEST, "tests/test_data.py": DATA}
    return workshop.repo({**files, "tests/conftest.py": "", "tests/data/expected": "4"})


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize(
    ("what", "files", "rule"),
    [
        (
            "weakened assertions",
            {"tests/test_sums.py": TEST.replace("== 3", "> 0"), "tests/test_data.py": DATA.replace("==", "<=")},
            "edited-expectation",
        ),
        pytest.param(
            "a lying conftest",
            {"tests/unit/conftest.py": "", "conftest.py": LIE},
            "edited-expectation",
            marks=pytest.mark.sweep,
        ),
        ("everything expected to fail", {"conftest.py": XFAIL}, "test-skipped"),
        (
            "edited data, and a comment elsewhere",
            {"tests/data/expected": "2", "tests/test_sums.py": f"# note\n{TEST.replace('== 3', '== 2')}"},
            "edited-expectation",
        ),
    ],
)
def test_a_broken_source_does_not_pass_by(
    workshop: Workshop, root: Path, what: str, files: dict[str, str], rule: str
) -> None:
    workshop.write(root, {"sums.py": BROKEN, **files})
    run = workshop.check(root)
    assert run.json["outcome"] == "failed", what
    assert rule in {finding["rule"] for finding in run.json["findings"]}


def test_a_new_conftest_that_lies_is_taken_away_for_the_old_tests(workshop: Workshop) -> None:
    root = workshop.repo({"pytest.ini": "[pytest]\n", "sums.py": SUMS, "test_sums.py": TEST})
    workshop.write(root, {"sums.py": BROKEN, "conftest.py": LIE})
    run = workshop.check(root)
    assert_failed(run, "edited-expectation")
    assert run.report.edited == ("test_sums.py::test_total",)


def test_old_tests_that_can_no_longer_be_loaded_need_a_word(workshop: Workshop, root: Path) -> None:
    renamed = {"sums.py": SUMS.replace("total", "summed"), "tests/test_sums.py": TEST.replace("total(", "summed(")}
    renamed["tests/test_sums.py"] = renamed["tests/test_sums.py"].replace("import total", "import summed")
    renamed["tests/test_sums.py"] = renamed["tests/test_sums.py"].replace("test_summed", "test_total")
    renamed["tests/test_data.py"] = DATA.replace("import total", "import summed").replace("total(", "summed(")
    workshop.write(root, renamed)
    assert_failed(workshop.check(root), "old-tests-unrunnable")
    assert_passed(workshop.check(root, *WORD))


@pytest.mark.ci
def test_an_honest_conftest_passes(workshop: Workshop, root: Path) -> None:
    better = SUMS.replace("sum(items)", "sum(list(items))")
    workshop.write(root, {"tests/unit/conftest.py": "import pytest\n", "sums.py": better})
    assert_passed(workshop.check(root))


def test_a_moved_test_file_is_no_lost_test(workshop: Workshop, root: Path) -> None:
    (root / "tests" / "unit").mkdir()
    (root / "tests/test_sums.py").rename(root / "tests/unit/test_sums.py")
    run = workshop.check(root)
    assert_passed(run)
    assert run.report.findings == ()


@needs("make")
def test_a_test_command_without_ids_cannot_be_edited_away(workshop: Workshop) -> None:
    make = "test:\n\t@grep -q good state\n"
    root = workshop.repo({"Makefile": make, "state": "good\n"})
    workshop.write(root, {"Makefile": "test:\n\t@:\n", "state": "bad\n"})
    assert_failed(workshop.check(root), "edited-check")
    workshop.write(root, {"Makefile": f"# how to test\n{make}", "state": "good and better\n"})
    assert_passed(workshop.check(root))


def test_a_linter_whose_configuration_is_taken_away_is_named(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"ruff.toml": "line-length = 100\n"})
    workshop.commit(root)
    (root / "ruff.toml").unlink()
    run = workshop.check(root)
    assert [finding.rule for finding in run.report.findings] == ["check-dropped"]


def test_an_edited_file_of_tests_that_another_one_uses_is_put_back_for_both(workshop: Workshop) -> None:
    same = "def same(found, wanted):\n    return found == wanted\n\n\ndef test_same():\n    assert same(1, 1)\n"
    test = (
        "from sums import total\nfrom test_same import same\n\n\ndef test_total():\n    assert same(total([1, 2]), 3)\n"
    )
    root = workshop.repo({"conftest.py": "", "sums.py": BROKEN, "tests/test_same.py": same, "tests/test_sums.py": test})
    workshop.write(root, {"tests/test_same.py": same.replace("found == wanted", "abs(found - wanted) <= 1")})
    run = workshop.check(root)
    assert_failed(run, "edited-expectation")
    assert run.report.edited == ("tests/test_sums.py::test_total",)
