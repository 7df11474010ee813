"""Real runners agree: sabotage and changed expectations make honest tests fail, the canary fails alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.variants.canary import add_canary
from proofstone.check.variants.expectations import mutate_expectations
from proofstone.check.variants.sabotage import sabotage_file
from tests.needs import needs
from tests.person import programs

W = "zubrik"


@dataclass(frozen=True)
class Runner:
    format: ReportFormat
    argv: tuple[str, ...]
    line: str
    """How it says what became of a test: the status, and the name, which is a group."""
    passed: str
    source: tuple[str, str]
    tests: tuple[str, str]
    names: tuple[str, str]
    """The test of the function that changes, and another one."""
    change: tuple[str, str]

    def statuses(self, directory: Path) -> dict[str, bool]:
        """Whether each test passed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "NODE"))}
        done = subprocess.run(
            self.argv,
            cwd=directory,
            env=kept | {"PYTHONDONTWRITEBYTECODE": "1"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        found = {match["name"]: match["status"] == self.passed for match in re.finditer(self.line, done.stdout)}
        assert found, done.stdout
        return found

    def run(self, directory: Path, *, source: bytes | None = None, tests: bytes | None = None) -> dict[str, bool]:
        for (name, text), other in ((self.source, source), (self.tests, tests)):
            path = directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode() if other is None else other)
        return self.statuses(directory)


_PYTHON_SOURCE = "def double(n):\n    return n + n\n\n\ndef triple(n):\n    return 3 * n\n"

RUNNERS = {
    "pytest": Runner(
        ReportFormat.PYTEST,
        (
            *(str(programs() / "python"), "-m", "pytest", "-vv"),
            *("-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."),
        ),
        r"(?m)::(?P<name>\w+) (?P<status>PASSED|FAILED|ERROR)",
        "PASSED",
        ("shop.py", _PYTHON_SOURCE),
        (
            "test_shop.py",
            "from shop import double, triple\n\n\n"
            "def test_double():\n    assert double(2) == 4\n\n\ndef test_triple():\n    assert triple(2) == 6\n",
        ),
        ("test_double", "test_triple"),
        ("n + n", "2 * n"),
    ),
    "unittest": Runner(
        ReportFormat.UNITTEST,
        (sys.executable, "-m", "unittest", "-v"),
        r"(?m)^(?P<name>\w+) \(.*\.\.\. (?P<status>ok|FAIL|ERROR)$",
        "ok",
        ("shop.py", _PYTHON_SOURCE),
        (
            "test_shop.py",
            "import unittest\n\nfrom shop import double, triple\n\n\nclass Shop(unittest.TestCase):\n"
            "    def test_double(self):\n        self.assertEqual(double(2), 4)\n\n"
            "    def test_triple(self):\n        self.assertTrue(triple(2) == 6)\n\n\n"
            'if __name__ == "__main__":\n    unittest.main()\n',
        ),
        ("test_double", "test_triple"),
        ("n + n", "2 * n"),
    ),
    "node, CommonJS": Runner(
        ReportFormat.NODE,
        ("node", "--test", "--test-reporter=tap", "shop.test.js"),
        r"(?m)^\s*(?P<status>ok|not ok) \d+ - (?P<name>.*)$",
        "ok",
        ("shop.js", "exports.double = (n) => n + n\n\nexports.triple = function (n) { return 3 * n }\n"),
        (
            "shop.test.js",
            "const { test } = require('node:test')\nconst assert = require('node:assert')\n"
            "const shop = require('./shop')\n\ntest('double', () => assert.strictEqual(shop.double(2), 4))\n"
            "test('triple', () => { assert.ok(shop.triple(2) === 6) })\n",
        ),
        ("double", "triple"),
        ("n + n", "2 * n"),
    ),
    "node, modules": Runner(
        ReportFormat.NODE,
        ("node", "--test", "--test-reporter=tap", "shop.test.mjs"),
        r"(?m)^\s*(?P<status>ok|not ok) \d+ - (?P<name>.*)$",
        "ok",
        ("shop.mjs", "export function double(n) {\n  return n + n\n}\nexport const triple = (n) => 3 * n\n"),
        (
            "shop.test.mjs",
            "import { describe, it } from 'node:test'\nimport assert from 'node:assert'\n"
            "import { double, triple } from './shop.mjs'\n\ndescribe('shop', () => {\n"
            "  it('double', () => { assert.equal(double(2), 4) })\n"
            "  it('triple', () => { assert.deepEqual([triple(2)], [6]) })\n})",
        ),
        ("double", "triple"),
        ("n + n", "2 * n"),
    ),
    "go": Runner(
        ReportFormat.GO,
        ("go", "test", "-v", "./..."),
        r"(?m)^\s*--- (?P<status>PASS|FAIL): (?P<name>\w+)",
        "PASS",
        (
            "shop.go",
            'package shop\n\nimport "strings"\n\nfunc Double(s string) string {\n\treturn strings.Repeat(s, 2)\n}\n\n'
            "func Triple(n int) int { return 3 * n }\n",
        ),
        (
            "shop_test.go",
            'package shop\n\nimport "testing"\n\n'
            'func TestTriple(t *testing.T) {\n\tif Triple(2) != 6 {\n\t\tt.Fatal("wrong")\n\t}\n}\n\n'
            'func TestDouble(t *testing.T) {\n\tif Double("a") != "aa" {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
        ),
        ("TestDouble", "TestTriple"),
        ("strings.Repeat(s, 2)", "s + s"),
    ),
    "cargo": Runner(
        ReportFormat.CARGO,
        ("cargo", "test", "--offline", "--lib"),
        r"(?m)^test (?:\w+::)*(?P<name>\w+) \.\.\. (?P<status>ok|FAILED)$",
        "ok",
        (
            "src/lib.rs",
            "#![deny(warnings)]\n\npub fn double(n: i32) -> i32 {\n    n + n\n}\n\n"
            "pub fn triple(n: i32) -> i32 {\n    3 * n\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n"
            "    #[test]\n    fn doubled() {\n        assert_eq!(double(2), 4);\n    }\n\n"
            "    #[test]\n    fn tripled() {\n        assert_eq!(triple(2), 6);\n    }\n}\n",
        ),
        ("Cargo.toml", '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'),
        ("doubled", "tripled"),
        ("n + n", "2 * n"),
    ),
}
NEEDED = {"node, CommonJS": "node", "node, modules": "node", "go": "go", "cargo": "cargo"}


def runners(*names: str) -> pytest.MarkDecorator:
    chosen = [
        pytest.param(RUNNERS[name], id=name, marks=needs(*([NEEDED[name]] if name in NEEDED else []))) for name in names
    ]
    return pytest.mark.parametrize("runner", chosen)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "go.mod").write_text("module shop\n\ngo 1.18\n")
    return tmp_path


@runners(*RUNNERS)
def test_a_sabotaged_function_fails_its_own_test_and_no_other(runner: Runner, directory: Path) -> None:
    path, new = runner.source
    mine, other = runner.names
    before = runner.run(directory)
    assert (before[mine], before[other]) == (True, True)
    result = sabotage_file(path, new.replace(*runner.change).encode(), new.encode())
    assert result is not None
    assert result.complete
    after = runner.run(directory, source=result.content)
    assert not after.get(mine)
    assert after[other]


@runners("pytest", "unittest", "node, CommonJS", "node, modules")
def test_changed_expectations_fail_in_the_tests_that_are_named(runner: Runner, directory: Path) -> None:
    path, text = runner.tests
    mine, other = runner.names
    result = mutate_expectations(path, text.encode(), [mine], W)
    assert [name.rpartition(".")[2] for name in result.tests] == [mine]
    after = runner.run(directory, tests=result.content)
    assert (after[mine], after[other]) == (False, True)
    everything = mutate_expectations(path, text.encode(), None, W)
    assert len(everything.tests) == 2
    after = runner.run(directory, tests=everything.content)
    assert (after[mine], after[other]) == (False, False)


@runners(*RUNNERS)
def test_the_canary_fails_and_the_others_pass(runner: Runner, directory: Path) -> None:
    path, text = runner.tests if runner.format is not ReportFormat.CARGO else runner.source
    canary = add_canary(runner.format, path, text.encode(), W)
    assert canary is not None
    changed = {"source" if runner.format is ReportFormat.CARGO else "tests": canary.content}
    after = runner.run(directory, **changed)
    assert {name: after[name] for name in (*runner.names, canary.name)} == {
        runner.names[0]: True,
        runner.names[1]: True,
        canary.name: False,
    }


def test_a_value_that_equals_everything_is_exposed(tmp_path: Path) -> None:
    """It passes every test; and it still does when the expectations are changed, which no honest value does."""
    runner = RUNNERS["pytest"]
    faked = (
        "class Equal(int):\n    __hash__ = int.__hash__\n\n    def __eq__(self, other):\n        return True\n\n\n"
        "def double(n):\n    return Equal()\n\n\ndef triple(n):\n    return 3 * n\n"
    )
    path, text = runner.tests
    result = mutate_expectations(path, text.encode(), None, W)
    assert runner.run(tmp_path, source=faked.encode()) == {"test_double": True, "test_triple": True}
    after = runner.run(tmp_path, source=faked.encode(), tests=result.content)
    assert after == {"test_double": True, "test_triple": False}
