"""Suppressions: which are seen, which name nothing, and that a file without them is still the same file."""

from __future__ import annotations

import ast

import pytest

from proofstone.check.rules.scan_rules import find_suppressions, remove_suppressions
from proofstone.sources.syntax import find_syntax_errors
from tests.check.scan.reading import lines_of, scanned
from tests.rows import each_row

EVERY_LINE = range(1, 1000)

BLANKET = [
    ("a.py", "x = 1  # noqa\n", "x = 1\n"),
    ("a.py", "x = 1  # NOQA because of that\n", "x = 1\n"),
    ("a.py", "x = f()  # type: ignore\n", "x = f()\n"),
    ("a.py", "x = f()  # pyright: ignore\n", "x = f()\n"),
    ("a.py", "x = f()  # nosec\n", "x = f()\n"),
    ("a.py", "# ruff: noqa\nx = 1\n", "#\nx = 1\n"),
    ("a.py", "# flake8: noqa\nx = 1\n", "#\nx = 1\n"),
    ("a.py", "# mypy: ignore-errors\nx = 1\n", "#\nx = 1\n"),
    ("a.py", "    # pylint: disable=all\n", "    #\n"),
    ("a.py", "# pylint: skip-file\n", "#\n"),
    ("a.js", "/* eslint-disable */\nf()\n", "/* */\nf()\n"),
    ("a.js", "f() // eslint-disable-line\n", "f()\n"),
    ("a.js", "// eslint-disable-next-line -- it is fine\nf()\n", "//\nf()\n"),
    ("a.ts", "// @ts-nocheck\nf()\n", "//\nf()\n"),
    ("a.ts", "// @ts-ignore: it is fine\nf()\n", "//\nf()\n"),
    ("a.go", "package a\n\nvar x = 1 //nolint\n", "package a\n\nvar x = 1\n"),
    ("a.rs", "#![allow(warnings)]\nfn f() {}\n", "\nfn f() {}\n"),
    ("A.java", '@SuppressWarnings("all") class A {}\n', "class A {}\n"),
    ("a.rb", "x = 1 # rubocop:disable all\n", "x = 1\n"),
]
NAMED = [
    ("a.py", "x = 1  # noqa: E501, F401\n", "x = 1\n"),
    ("a.py", "# ruff: noqa: F401\n", "#\n"),
    ("a.py", "x = f()  # type: ignore[arg-type]  # see the docs\n", "x = f()  # see the docs\n"),
    ("a.py", "x = f()  # pyright: ignore[reportCallIssue]\n", "x = f()\n"),
    ("a.py", '# mypy: disable-error-code="arg-type"\n', "#\n"),
    ("a.py", "x = 1  # pylint: disable=invalid-name\n", "x = 1\n"),
    ("a.py", "if x:  # pragma: no cover\n    f()\n", "if x:\n    f()\n"),
    ("a.py", "x = f()  # nosec B101\n", "x = f()\n"),
    ("a.js", "/* eslint-disable no-console */\n", "/* */\n"),
    ("a.js", "// eslint-disable-next-line no-console, @scope/rule -- fine\nf()\n", "//\nf()\n"),
    ("a.js", "/* eslint-disable\n  no-console */\nf()\n", "/*\n  no-console */\nf()\n"),
    ("a.ts", "// @ts-expect-error: fails on purpose\nf()\n", "//\nf()\n"),
    ("a.js", "/* istanbul ignore next */ function f() {}\n", "/* */ function f() {}\n"),
    ("a.js", "/* c8 ignore start */\n", "/* */\n"),
    ("a.ts", "// biome-ignore lint/suspicious/noExplicitAny: fine\nf()\n", "//\nf()\n"),
    ("a.jsx", "x = <b>{/* eslint-disable-next-line no-x */}</b>\n", "x = <b>{/* */}</b>\n"),
    ("a.go", "package a\n\nvar x = 1 //nolint:errcheck\n", "package a\n\nvar x = 1\n"),
    ("a.rs", "#[allow(dead_code)] fn f() {}\n", "fn f() {}\n"),
    ("A.java", '@SuppressWarnings("unchecked")\nclass A {}\n', "\nclass A {}\n"),
    ("a.rb", "x = 1 # rubocop:disable Style/Foo\n", "x = 1\n"),
]
CASES = [(*case, True) for case in BLANKET] + [(*case, False) for case in NAMED]


@pytest.mark.parametrize(("path", "source", "bare", "blanket"), CASES)
def test_a_suppression_is_seen_and_taken_out(path: str, source: str, bare: str, *, blanket: bool) -> None:
    lines = lines_of(path, source)
    (found,) = find_suppressions(lines, EVERY_LINE)
    assert found.blanket is blanket
    assert remove_suppressions(source.encode(), [found], lines) == bare.encode()


@pytest.mark.parametrize(("path", "source", "bare", "blanket"), CASES)
def test_a_file_without_its_suppressions_parses_and_has_none(
    path: str, source: str, bare: str, *, blanket: bool
) -> None:
    assert not find_syntax_errors(path, bare.encode())
    assert find_suppressions(lines_of(path, bare), EVERY_LINE) == []


@each_row(
    ("path", "source"),
    [
        ("a.py", 'x = "# noqa"\n'),
        ("a.py", '"""Say `# type: ignore` where you must."""\n'),
        ("a.py", "x = 1  # a type: the ignored one\n"),
        ("a.py", "# pyright: strict\n"),
        ("a.js", "const x = '// eslint-disable-line'\n"),
        ("a.js", "/* eslint no-console: 2 */ // eslint-enable\n"),
        ("a.rs", 'fn f() { let x = "#[allow(dead_code)]"; }\n'),
    ],
)
def test_what_only_looks_like_a_suppression_is_none(path: str, source: str) -> None:
    assert find_suppressions(lines_of(path, source), EVERY_LINE) == []


def test_only_added_ones_are_found_and_of_old_ones_only_what_came_on_top() -> None:
    lines = lines_of("a.py", "x = 1  # noqa\ny = 2  # noqa\n")
    assert [found.line for found in find_suppressions(lines, {2})] == [2]
    assert find_suppressions(lines[1:], {2}, lines_of("a.py", "z = 3  # noqa\n")) == []
    assert scanned("a.py", "x = f()  # noqa\n", "x = g()  # noqa\n") == []


def test_several_on_one_line_are_taken_out_together() -> None:
    source = "x = f()  # type: ignore  # noqa\n"
    lines = lines_of("a.py", source)
    found = find_suppressions(lines, EVERY_LINE)
    assert len(found) == 2
    assert remove_suppressions(source.encode(), found, lines) == b"x = f()\n"


def test_every_other_byte_stays() -> None:
    content = 'größe = "ÄÖ"  # noqa\r\nlast = 1  # type: ignore'.encode() + b"\r\nx = '\xff'\n\x0cy = 2"
    lines = lines_of("a.py", content.decode("utf-8", "surrogateescape").replace("\udcff", "?"))
    bare = remove_suppressions(content, find_suppressions(lines, EVERY_LINE), lines)
    assert bare == 'größe = "ÄÖ"\r\nlast = 1'.encode() + b"\r\nx = '\xff'\n\x0cy = 2"


def test_python_keeps_its_meaning() -> None:
    source = (
        "def f():  # noqa\n    # type: ignore\n    if x:  # pragma: no cover\n        # noqa: E1\n        return 1\n"
    )
    lines = lines_of("a.py", source)
    bare = remove_suppressions(source.encode(), find_suppressions(lines, EVERY_LINE), lines)
    assert ast.dump(ast.parse(bare)) == ast.dump(ast.parse(source))
    assert bare.count(b"\n") == source.count("\n")
