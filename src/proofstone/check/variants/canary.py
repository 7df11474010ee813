"""Add one test that must fail to a test file. If the report does not show the failure, the report is wrong.

The test looks like the file's other tests, so that nothing can distinguish it from them. No test is added if it might
not run: in a file that selects its tests itself, or that has none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from posixpath import splitext
from typing import TYPE_CHECKING, Final

from proofstone.check.models import ReportFormat
from proofstone.check.variants.javascript_expectations import find_plain_test_name, find_test_calls, read_node_text
from proofstone.sources.syntax import MAX_SOURCE_BYTES, detect_language
from proofstone.sources.text import apply_edits, detect_newline, insert_edit, parse_python_text, parse_valid, split_bom

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True)
class Canary:
    """A test file with one more test that must fail."""

    content: bytes
    name: str
    """Part of the id that the test must have in the report."""


def add_canary(format: ReportFormat, path: str, content: bytes, word: str) -> Canary | None:
    """Return the file with a failing test named after `word` (random lower-case letters); None if no test can be
    added."""
    language = detect_language(path, content)
    support = _SUPPORTED.get(format)
    if support is None or language is None or len(content) > MAX_SOURCE_BYTES:
        return None
    languages, make = support
    if language not in languages:
        return None
    return (
        _add_python_test(format, content, word) if make is None else _append_test(make, path, language, content, word)
    )


def _wrong_length(word: str) -> int:
    return len(word) + 1 + sum(word.encode()) % 7


# Python


def _add_python_test(format: ReportFormat, content: bytes, word: str) -> Canary | None:
    source = parse_python_text(content)
    text = _build_python_test(format, source.tree.body, word) if source else None
    if source is None or text is None:
        return None
    newline = detect_newline(content)
    offset = len(source.data)
    for stmt in reversed(source.tree.body):
        if not _starts_runner(stmt):
            break
        offset = source.start(stmt)
    lead = b"" if source.data[:offset].endswith(b"\n") else newline
    tail = newline * 2 if offset < len(source.data) else b""
    data = apply_edits(
        source.data, [insert_edit(offset, lead + newline * 2 + text.encode().replace(b"\n", newline) + tail)]
    )
    changed = source.encode_edited(data)
    return Canary(changed, f"test_{word}") if changed is not None else None


def _build_python_test(format: ReportFormat, body: list[ast.stmt], word: str) -> str | None:
    if any(_selects_tests(stmt) for stmt in body):
        return None
    has_functions = any(isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef) and _is_test(stmt) for stmt in body)
    classes = [stmt for stmt in body if isinstance(stmt, ast.ClassDef) and any(map(_is_test, stmt.body))]
    cases = [class_ for class_ in classes if any(ast.unparse(base).endswith("TestCase") for base in class_.bases)]
    if format is ReportFormat.PYTEST and (has_functions or len(classes) > len(cases)):
        return _PYTEST.format(word=word, wrong=_wrong_length(word))
    # A base class may be a TestCase although its name does not say so.
    has_base_class = any(class_.bases for class_ in classes)
    return _UNITTEST.format(word=word, wrong=_wrong_length(word), title=word.title()) if has_base_class else None


def _is_test(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef) and stmt.name.startswith("test")


def _selects_tests(stmt: ast.stmt) -> bool:
    names = {node.id for node in getattr(stmt, "targets", []) if isinstance(node, ast.Name)}
    return "__test__" in names or (isinstance(stmt, ast.FunctionDef) and stmt.name == "load_tests")


def _starts_runner(stmt: ast.stmt) -> bool:
    """Return whether a statement starts the runner, such as `unittest.main()` with or without the guard. Nothing after
    it would run."""
    guard = isinstance(stmt, ast.If) and "__name__" in ast.unparse(stmt.test)
    return guard or (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call))


_PYTEST: Final = """\
def test_{word}():
    assert len("{word}") == {wrong}
"""
_UNITTEST: Final = """\
import unittest as _{word}


class Test{title}(_{word}.TestCase):
    def test_{word}(self):
        self.assertEqual(len("{word}"), {wrong})
"""


# Other languages: the text to append to the file, or None if no test can be added

_TestBuilder = Callable[[str, "Node", str], str | None]


def _append_test(make: _TestBuilder, path: str, language: str, content: bytes, word: str) -> Canary | None:
    mark, data = split_bom(content)
    root = parse_valid(data, language)
    text = make(path, root, word) if root else None
    if text is None:
        return None
    newline = detect_newline(content)
    lead = b"" if data.endswith(b"\n") else newline
    changed = data + lead + newline + text.encode().replace(b"\n", newline)
    name = _NAMES.get(language, "handles {word}").format(word=word, title=word.title())
    return Canary(mark + changed, name) if parse_valid(changed, language) else None


_NAMES: Final = {"go": "Test{title}", "rust": "test_{word}"}


def _build_global_test(path: str, root: Node, word: str) -> str | None:
    """Build a test with the test function that the file itself calls, whether global or imported."""
    calls = [name for name in map(find_plain_test_name, find_test_calls(root)) if name]
    if not calls or _ONLY.search(read_node_text(root)):
        return None
    return _JAVASCRIPT_TEST.format(name=calls[0], word=word, wrong=_wrong_length(word))


def _build_imported_test(*modules: str) -> _TestBuilder:
    """Return a builder that imports the test function from the first of these modules that the file names, under a name
    of its own."""

    def make(path: str, root: Node, word: str) -> str | None:
        text = read_node_text(root)
        module = next((candidate for candidate in modules if re.search(rf"""['"]{candidate}['"]""", text)), None)
        if module is None or not any(True for _ in find_test_calls(root)):
            return None
        if module != "node:test" and _ONLY.search(text):
            return None  # node runs all tests unless `--test-only` is given
        name = f"check_{word}"
        imported = _IMPORTS[module][not _is_esm(path, root)].format(name=name)
        test = _TAP_TEST if module in ("tape", "tap") else _JAVASCRIPT_TEST
        return f"{imported}\n\n{test.format(name=name, word=word, wrong=_wrong_length(word))}"

    return make


def _is_esm(path: str, root: Node) -> bool:
    suffix = splitext(path)[1]
    if suffix in (".mjs", ".mts", ".cjs", ".cts"):
        return suffix.startswith(".m")
    return any(child.type in ("import_statement", "export_statement") for child in root.children)


_ONLY: Final = re.compile(r"\.only\b|\bf(?:it|describe)\(")
"""Marks files that skip all other tests. They would skip the canary too."""
_IMPORTS: Final = {
    "node:test": ('import {{ test as {name} }} from "node:test";', 'const {{ test: {name} }} = require("node:test");'),
    "tap": ('import {{ test as {name} }} from "tap";', 'const {{ test: {name} }} = require("tap");'),
    "tape": ('import {name} from "tape";', 'const {name} = require("tape");'),
    "vitest": ('import {{ test as {name} }} from "vitest";', 'import {{ test as {name} }} from "vitest";'),
}
_JAVASCRIPT_TEST: Final = """\
{name}("handles {word}", () => {{
  const length = "{word}".length;
  if (length !== {wrong}) throw new Error(`expected ${{length}} to equal {wrong}`);
}});
"""
_TAP_TEST: Final = """\
{name}("handles {word}", (t) => {{
  t.equal("{word}".length, {wrong});
  t.end();
}});
"""


def _build_go_test(path: str, root: Node, word: str) -> str | None:
    text = read_node_text(root)
    imported = re.search(r"""(?m)^\s*(?:import\s+)?([\w.]*)[ \t]*"testing"\s*$""", text)
    if imported is None or imported[1] == "_" or not path.endswith("_test.go") or not _GO_TEST.search(text):
        return None
    package = {"": "testing.", ".": ""}.get(imported[1], f"{imported[1]}.")
    return _GO.format(title=word.title(), word=word, wrong=_wrong_length(word), package=package)


_GO_TEST: Final = re.compile(r"(?m)^func Test\w*\(")
_GO: Final = """\
func Test{title}(t *{package}T) {{
\tif got, want := len("{word}"), {wrong}; got != want {{
\t\tt.Fatalf("got %d, want %d", got, want)
\t}}
}}
"""


def _build_rust_test(path: str, root: Node, word: str) -> str | None:
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type == "attribute_item" and read_node_text(node) == "#[test]":
            return _RUST.format(word=word, wrong=_wrong_length(word))
        pending += node.named_children
    return None


_RUST: Final = """\
#[test]
fn test_{word}() {{
    assert_eq!("{word}".len(), {wrong});
}}
"""

_PYTHON = ("python",)
_JAVASCRIPT = ("javascript", "typescript", "tsx")
_SUPPORTED: Final[dict[ReportFormat, tuple[tuple[str, ...], _TestBuilder | None]]] = {
    ReportFormat.PYTEST: (_PYTHON, None),
    ReportFormat.UNITTEST: (_PYTHON, None),
    ReportFormat.NODE: (_JAVASCRIPT, _build_imported_test("node:test")),
    ReportFormat.VITEST: (_JAVASCRIPT, _build_imported_test("vitest")),
    ReportFormat.TAP: (_JAVASCRIPT, _build_imported_test("tape", "tap")),
    ReportFormat.JEST: (_JAVASCRIPT, _build_global_test),
    ReportFormat.MOCHA: (_JAVASCRIPT, _build_global_test),
    ReportFormat.GO: (("go",), _build_go_test),
    ReportFormat.CARGO: (("rust",), _build_rust_test),
}
"""Languages and test builder by format. The builder is None for Python, where the position matters as well."""
