"""One more test that must fail: where it stands, and where there is none."""

from __future__ import annotations

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.variants.canary import add_canary
from tests.rows import each_row

W = "zubrik"
UNIT = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"

PLACED = [
    (ReportFormat.PYTEST, "test_a.py", "def test_a(): pass\n", "def test_zubrik():\n    assert", "test_zubrik"),
    (ReportFormat.PYTEST, "test_a.py", "class TestA:\n    def test_a(self): pass", "def test_zubrik():", "test_zubrik"),
    (ReportFormat.PYTEST, "test_a.py", UNIT, "class TestZubrik(_zubrik.TestCase):", "test_zubrik"),
    (ReportFormat.UNITTEST, "test_a.py", UNIT, "class TestZubrik(_zubrik.TestCase):", "test_zubrik"),
    (
        ReportFormat.NODE,
        "a.test.js",
        "const { test } = require('node:test')\ntest('a', () => {})",
        'const { test: check_zubrik } = require("node:test");',
        "handles zubrik",
    ),
    (
        ReportFormat.NODE,
        "a.test.js",
        "import { it } from 'node:test'\nit('a', () => {})",
        'import { test as check_zubrik } from "node:test";',
        "handles zubrik",
    ),
    (ReportFormat.JEST, "a.test.ts", "it('a', () => {})\n", '\nit("handles zubrik", () => {', "handles zubrik"),
    (ReportFormat.MOCHA, "a.js", "describe('a', () => { it('a', () => {}) })\n", '\nit("handles', "handles zubrik"),
    (
        ReportFormat.VITEST,
        "a.test.ts",
        "import { test } from 'vitest'\ntest('a', () => {})",
        'import { test as check_zubrik } from "vitest";',
        "handles zubrik",
    ),
    (
        ReportFormat.TAP,
        "a.js",
        "const test = require('tape')\ntest('a', t => { t.end() })",
        'const check_zubrik = require("tape");',
        "handles zubrik",
    ),
    (
        ReportFormat.GO,
        "a_test.go",
        'package a\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n',
        "func TestZubrik(t *testing.T) {",
        "TestZubrik",
    ),
    (
        ReportFormat.GO,
        "a_test.go",
        'package a\n\nimport (\n\ttt "testing"\n)\n\nfunc TestA(t *tt.T) {}\n',
        "func TestZubrik(t *tt.T) {",
        "TestZubrik",
    ),
    (ReportFormat.CARGO, "lib.rs", "#[test]\nfn a() {}", "#[test]\nfn test_zubrik() {", "test_zubrik"),
]


@each_row(("format", "path", "text", "added", "name"), PLACED)
@each_row("newline", ["\n", "\r\n"])
def test_a_failing_test_stands_at_the_end(
    format: ReportFormat, path: str, text: str, added: str, name: str, newline: str
) -> None:
    content = text.replace("\n", newline).encode()
    canary = add_canary(format, path, content, W)
    assert canary is not None
    assert canary.name == name
    assert canary.content.startswith(content)
    more = canary.content.removeprefix(content).decode()
    assert added.replace("\n", newline) in more
    assert more.count("\n") == more.count(newline)
    assert "canary" not in more.lower()
    assert "proofstone" not in more.lower()


@pytest.mark.parametrize("end", ["if __name__ == '__main__':\n    unittest.main()\n", "unittest.main()\n"])
def test_it_stands_before_what_runs_the_tests(end: str) -> None:
    canary = add_canary(ReportFormat.UNITTEST, "test_a.py", (UNIT + end).encode(), W)
    assert canary is not None
    assert canary.content.decode().startswith(UNIT)
    assert canary.content.decode().endswith("\n\n\n" + end)


@pytest.mark.parametrize(
    ("format", "path", "text"),
    [
        pytest.param(ReportFormat.PYTEST, "test_a.py", "def helper(): pass\n", id="no tests"),
        pytest.param(ReportFormat.PYTEST, "test_a.py", "__test__ = False\ndef test_a(): pass\n", id="not to be tested"),
        pytest.param(ReportFormat.PYTEST, "test_a.py", "def test_a(:\n", id="not to be parsed"),
        pytest.param(ReportFormat.PYTEST, "a.test.js", "test('a', () => {})\n", id="another language"),
        pytest.param(ReportFormat.UNITTEST, "test_a.py", "def test_a(): pass\n", id="nothing for unittest"),
        pytest.param(ReportFormat.UNITTEST, "test_a.py", UNIT + "def load_tests(*a): pass\n", id="its own choice"),
        pytest.param(ReportFormat.NODE, "a.js", "test('a', () => {})\n", id="no test module"),
        pytest.param(ReportFormat.JEST, "a.js", "export const a = 1\n", id="no calls"),
        pytest.param(ReportFormat.JEST, "a.js", "test.only('a', () => {})\ntest('b', () => {})\n", id="only one"),
        pytest.param(ReportFormat.GO, "a_test.go", 'package a\nimport "testing"\nfunc B(t *testing.T) {}\n', id="go"),
        pytest.param(ReportFormat.CARGO, "lib.rs", "fn a() {}\n", id="rust"),
        pytest.param(ReportFormat.JUNIT, "test_a.py", "def test_a(): pass\n", id="an unknown runner"),
        pytest.param(ReportFormat.EXIT_CODE, "test_a.py", "def test_a(): pass\n", id="no ids"),
    ],
)
def test_there_is_none_where_it_could_not_be_sure_to_run(format: ReportFormat, path: str, text: str) -> None:
    assert add_canary(format, path, text.encode(), W) is None


def test_encoding_survives() -> None:
    content = "# coding: latin-1\ndef test_ä(): pass\n".encode("latin-1")
    canary = add_canary(ReportFormat.PYTEST, "test_a.py", content, W)
    assert canary is not None
    assert canary.content.startswith(content)
