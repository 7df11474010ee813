"""A test that was made to check less is never passed over in silence, whether or not the source changed."""

from __future__ import annotations

import pytest

from tests.needs import needs
from tests.workshop import CheckRun, Workshop, assert_passed

CALC = "def add(a, b):\n    return a + b\n\n\ndef half(a):\n    return a / 2\n"
TEST = """from calc import add, half


def test_add():
    assert add(2, 3) == 5


def test_half():
    result = half(4)
    assert result == 2
    assert half(1) == 0.5
"""
FILES = {"pytest.ini": "[pytest]\n", "calc.py": CALC, "tests/test_calc.py": TEST}
APPROVED = ("--accept", "weakened-test=the sum may be rounded", "--accepted-by", "ann@example.org")


def weakened(run: CheckRun) -> list[str]:
    return [finding.detail for finding in run.report.findings if finding.rule == "weakened-test"]


def test_a_weakened_test_needs_a_persons_word(workshop: Workshop) -> None:
    """Source untouched, `== 5` → `in (5, 9)`: refused, with both lines, until a person accepts it."""
    root = workshop.repo(FILES)
    workshop.write(root, {"tests/test_calc.py": TEST.replace("== 5", "in (5, 9)")})
    run = workshop.check(root)
    assert (run.exit, run.report.outcome) == (1, "failed")
    (finding,) = run.report.findings
    assert (finding.rule, finding.severity, finding.layer) == ("weakened-test", "major", "L2")
    assert (finding.path, finding.line, finding.check) == ("tests/test_calc.py", 5, "tests:pytest")
    assert finding.detail.startswith("tests/test_calc.py::test_add: checks less than before")
    assert (finding.before, finding.after) == ("assert add(2, 3) == 5", "assert add(2, 3) in (5, 9)")
    assert "accept" not in f"{finding.fix} {finding.detail}"  # an agent may read this

    accepted = workshop.check(root, *APPROVED)
    assert_passed(accepted)
    assert accepted.report.confidence != "high"
    assert [acceptance.rule for acceptance in accepted.report.accepted] == ["weakened-test"]


@pytest.mark.ci
def test_it_counts_beside_a_change_of_the_source_and_not_twice(workshop: Workshop) -> None:
    """`test_half` is weakened although its old version passes; `test_add` was edited because its old version fails."""
    root = workshop.repo(FILES)
    source = CALC.replace("a + b", "a + b + 1")
    test = TEST.replace("== 5", "in (5, 6)").replace("assert result == 2", "assert result")
    workshop.write(root, {"calc.py": source, "tests/test_calc.py": test})
    run = workshop.check(root)
    assert [detail.partition(": ")[0] for detail in weakened(run)] == ["tests/test_calc.py::test_half"]
    assert run.report.edited == ("tests/test_calc.py::test_add",)


@pytest.mark.ci
def test_honest_edits_of_tests_pass(workshop: Workshop) -> None:
    """A renamed variable, a split test, stricter assertions, a comparison of floats."""
    root = workshop.repo(FILES)
    test = """import pytest

from calc import add, half


def test_add():
    total = add(2, 3)
    assert 5 == total
    assert isinstance(total, int)


def test_half():
    halved = half(4)
    assert halved == 2


def test_half_of_an_odd_number():
    assert half(1) == pytest.approx(0.5)
"""
    workshop.write(root, {"tests/test_calc.py": test})
    run = workshop.check(root)
    assert weakened(run) == []
    assert_passed(run)


@needs("node")
def test_a_weakened_javascript_test_is_found_by_its_title(workshop: Workshop) -> None:
    test = """const test = require("node:test");
const assert = require("node:assert");
const { describe } = test;
const add = require("../add.js");

describe("add", () => {
  test("sums", () => {
    assert.strictEqual(add(2, 3), 5);
  });
});
"""
    package = '{"name": "sums", "version": "1.0.0", "scripts": {"test": "node --test"}}\n'
    files = {"package.json": package, "add.js": "module.exports = (a, b) => a + b;\n", "test/add.test.js": test}
    root = workshop.repo(files)
    workshop.write(root, {"test/add.test.js": test.replace("strictEqual(add(2, 3), 5)", "ok(add(2, 3))")})
    run = workshop.check(root)
    (finding,) = [finding for finding in run.report.findings if finding.rule == "weakened-test"]
    assert (finding.path, finding.line) == ("test/add.test.js", 8)
    assert finding.after == "assert.ok(add(2, 3))"
    assert run.exit == 1
