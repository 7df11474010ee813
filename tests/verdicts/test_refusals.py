"""How a refusal reads: the cause first, one finding for each cause, and the assertion's own message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from proofstone.common.models import Finding, Outcome
from tests.needs import needs
from tests.workshop import CheckRun, Workshop

pytestmark = needs("git", "bwrap")

CALC = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a + b + 4\n"
CASES = (
    "import pytest\nfrom calc import add\n\n\n@pytest.mark.parametrize('n', range(10))\ndef test_add(n):\n"
    "    assert add(n, 1) == n + 1\n"
)
SKIPPED = "import os\nimport pytest\nfrom calc import add\n\n\ndef test_later():\n{body}    assert add(1, 1) == 2\n"
PROJECT = {
    "calc.py": CALC,
    "conftest.py": "",
    "pytest.ini": "[pytest]\npythonpath = .\ntestpaths = tests\n",
    **{f"tests/test_{name}.py": CASES for name in ("a", "b", "c")},
    "tests/test_later.py": SKIPPED.format(body="    if not os.path.exists('now'): pytest.skip('not yet')\n"),
}


def only(run: CheckRun) -> Finding:
    assert len(run.report.findings) == 1, run.report.findings
    return run.report.findings[0]


def test_a_module_that_a_conftest_misses_is_the_one_finding(workshop: Workshop) -> None:
    """Seen before: as many findings as there are tests, and `no pytest report: pytest did not run`."""
    root = workshop.repo(PROJECT)
    workshop.write(root, {"tests/conftest.py": "import not_installed\n"})
    run = workshop.check(root)
    finding = only(run)
    assert (run.report.outcome, finding.rule) == (Outcome.FAILED, "unfinished-run")
    cause = "ModuleNotFoundError: No module named 'not_installed'"
    assert cause in finding.headline
    assert "ImportError while loading conftest" in finding.detail
    assert "tests/conftest.py:1" in finding.detail
    assert finding.detail.endswith("30 tests that ran on the base did not run because of it")
    assert len(finding.tests) == 30
    assert cause in run.report.reason
    assert "did not run, or ran without" not in run.stdout

    shown = workshop.proofstone(root, "check")
    assert shown.stderr == ""  # the default prints no progress
    assert "proofstone explain unfinished-run" in shown.stdout
    assert "tests:pytest      pass          fail" in shown.stdout  # the table, because something did not pass
    detailed = workshop.proofstone(root, "check", "--verbose")
    assert "✗ tests:pytest" in detailed.stderr


@pytest.mark.ci
def test_the_same_error_in_many_files_is_one_finding_and_broken_syntax_too(workshop: Workshop) -> None:
    root = workshop.repo(PROJECT)
    workshop.write(root, {"calc.py": f"import not_installed\n{CALC}"})
    run = workshop.check(root)
    finding = only(run)
    assert finding.rule == "unloadable-tests"
    error = "4 test files cannot be loaded: ModuleNotFoundError: No module named 'not_installed'"
    assert finding.headline == error
    assert "tests/test_a.py" in finding.detail
    assert "30 tests that ran on the base did not run because of it" in finding.detail
    assert run.check("tests:pytest").reason == error

    workshop.write(root, {"calc.py": "def add(a, b:\n    return a + b\n"})
    run = workshop.check(root)
    finding = only(run)
    assert (finding.rule, finding.path, finding.line) == ("syntax", "calc.py", 1)
    assert "30 tests that ran on the base did not run because of it" in finding.detail


@pytest.mark.ci
def test_what_failed_before_is_said_and_every_regression_is_listed(workshop: Workshop) -> None:
    root = workshop.repo(PROJECT)
    workshop.write(root, {"calc.py": WRONG, "now": ""})
    run = workshop.check(root)
    assert len(run.report.regressions) == 31
    reason = "30 tests now fail that passed before; 1 test now fails that was skipped before"
    assert run.check("tests:pytest").reason == reason
    passed, skipped = sorted(run.report.findings, key=lambda finding: -len(finding.tests))
    assert (passed.rule, len(passed.tests), skipped.rule) == ("regression", 30, "regression")
    assert "assert 5 == (0 + 1)" in passed.headline
    assert skipped.detail.startswith("tests/test_later.py::test_later: was skipped on the base, fails now: assert 6")
    assert set(run.report.regressions) == {*passed.tests, *skipped.tests}


UNITTEST = "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n"
NODE = "const { test } = require('node:test');\nconst assert = require('assert');\n"
GO = 'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(2, 3); got != 5 {\n'
RUST = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(super::add(2, 3), 5);\n    }\n}\n"
RUNNERS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str], str]] = {
    "unittest": (
        {"calc.py": CALC, "test_calc.py": UNITTEST + "        self.assertEqual([add(2, 3)], [5])\n"},
        {"calc.py": WRONG},
        "AssertionError: Lists differ: [9] != [5]",
    ),
    "node": (
        {
            "package.json": '{"scripts": {"test": "node --test"}}',
            "calc.js": "exports.add = (a, b) => a + b;\n",
            "calc.test.js": NODE
            + "const { add } = require('./calc');\ntest('adds', () => { assert.strictEqual(add(2, 3), 5); });\n",
        },
        {"calc.js": "exports.add = (a, b) => a + b + 4;\n"},
        "Expected values to be strictly equal: 9 !== 5",
    ),
    "go": (
        {
            "go.mod": "module example.org/calc\n\ngo 1.19\n",
            "calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
            "calc_test.go": GO + '\t\tt.Errorf("Add(2, 3) = %d, want 5", got)\n\t}\n}\n',
        },
        {"calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b + 4 }\n"},
        "Add(2, 3) = 9, want 5",
    ),
    "cargo": (
        {
            "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
            "Cargo.lock": 'version = 3\n\n[[package]]\nname = "calc"\nversion = "0.1.0"\n',
            "src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 { a + b }\n" + RUST,
        },
        {"src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 { a + b + 4 }\n" + RUST},
        "assertion `left == right` failed; left: 9; right: 5",
    ),
}


@pytest.mark.parametrize(
    "runner", [pytest.param(name, marks=needs(name) if name != "unittest" else ()) for name in RUNNERS]
)
def test_the_assertions_own_message_is_shown(workshop: Workshop, runner: str) -> None:
    files, change, message = RUNNERS[runner]
    root = workshop.repo(files)
    workshop.write(root, change)
    # A toolchain of rustup lies in the home of whoever runs the tests.
    run = workshop.check(root, env={"HOME": str(Path.home())} if runner == "cargo" else None)
    assert run.report.findings, run.report.reason
    finding = only(run)
    assert finding.rule == "regression", run.report.reason
    assert finding.detail.endswith(f"passed on the base, fails now: {message}"), finding.detail
    assert run.check("tests:").reason == "1 test now fails that passed before"


@needs("node")
def test_a_file_that_node_cannot_load_names_its_error(workshop: Workshop) -> None:
    files, _, _ = RUNNERS["node"]
    root = workshop.repo(files)
    workshop.write(root, {"calc.js": "exports.add = require('./missing').add;\n"})
    finding = only(workshop.check(root))
    assert finding.rule == "unloadable-tests"
    assert "Cannot find module './missing'" in finding.headline
    assert "1 test that ran on the base did not run because of it" in finding.detail


def test_a_rule_is_explained(workshop: Workshop) -> None:
    home = workshop.folder
    page = workshop.proofstone(home, "explain", "edited-expectation")
    assert page.returncode == 0
    for word in ("what was found:", "why it matters:", "for example:", "what to do:"):
        assert word in page.stdout
    document = json.loads(workshop.proofstone(home, "explain", "ruff", "E501", "--json").stdout)
    assert (document["rule"], document["asked"]) == ("lint", "ruff E501")
    listed = json.loads(workshop.proofstone(home, "explain", "--json").stdout)
    assert "regression" in {row["rule"] for row in listed["rules"]}
    assert "regression  " in workshop.proofstone(home, "explain").stdout
    wrong = workshop.proofstone(home, "explain", "regresion")
    assert wrong.returncode == 2
    assert "did you mean regression" in wrong.stderr
