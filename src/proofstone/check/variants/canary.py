"""One more test in a test file, which must fail: if the report does not say so, the report is a lie.

It looks like the file's other tests, so that nothing can tell it from them. Where it could not be sure to run (a file
that chooses its tests itself, or has none) there is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from posixpath import splitext
from typing import TYPE_CHECKING, Final

from proofstone.check.models import ReportFormat
from proofstone.check.variants.javascript_expectations import javascript_calls, plain_name, text_of
from proofstone.sources.syntax import LIMIT, language_of
from proofstone.sources.text import applied, inserted, newline_of, parsed, python_text, without_bom

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True)
class Canary:
    content: bytes
    name: str
    """Part of the id that the report must give it."""


def with_canary(format: ReportFormat, path: str, content: bytes, word: str) -> Canary | None:
    """The file with a failing test, named with `word` (random lower-case letters); None where it has no place."""
    language = language_of(path, content)
    place = _PLACES.get(format)
    if place is None or language is None or len(content) > LIMIT:
        return None
    languages, make = place
    if language not in languages:
        return None
    return _in_python(format, content, word) if make is None else _at_the_end(make, path, language, content, word)


def _wrong_length(word: str) -> int:
    return len(word) + 1 + sum(word.encode()) % 7


# Python


def _in_python(format: ReportFormat, content: bytes, word: str) -> Canary | None:
    source = python_text(content)
    text = _python_test(format, source.tree.body, word) if source else None
    if source is None or text is None:
        return None
    newline = newline_of(content)
    at = len(source.data)
    for stmt in reversed(source.tree.body):
        if not _runs_the_tests(stmt):
            break
        at = source.start(stmt)
    lead = b"" if source.data[:at].endswith(b"\n") else newline
    tail = newline * 2 if at < len(source.data) else b""
    data = applied(source.data, [inserted(at, lead + newline * 2 + text.encode().replace(b"\n", newline) + tail)])
    changed = source.encoded(data)
    return Canary(changed, f"test_{word}") if changed is not None else None


def _python_test(format: ReportFormat, body: list[ast.stmt], word: str) -> str | None:
    if any(_chooses_its_tests(stmt) for stmt in body):
        return None
    functions = any(isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef) and _is_test(stmt) for stmt in body)
    classes = [stmt for stmt in body if isinstance(stmt, ast.ClassDef) and any(map(_is_test, stmt.body))]
    cases = [class_ for class_ in classes if any(ast.unparse(base).endswith("TestCase") for base in class_.bases)]
    if format is ReportFormat.PYTEST and (functions or len(classes) > len(cases)):
        return _PYTEST.format(word=word, wrong=_wrong_length(word))
    # A base that is no TestCase by its name may still be one.
    made = any(class_.bases for class_ in classes)
    return _UNITTEST.format(word=word, wrong=_wrong_length(word), title=word.title()) if made else None


def _is_test(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef) and stmt.name.startswith("test")


def _chooses_its_tests(stmt: ast.stmt) -> bool:
    names = {node.id for node in getattr(stmt, "targets", []) if isinstance(node, ast.Name)}
    return "__test__" in names or (isinstance(stmt, ast.FunctionDef) and stmt.name == "load_tests")


def _runs_the_tests(stmt: ast.stmt) -> bool:
    """`unittest.main()`, with or without the guard: nothing after it would be run."""
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


# Other languages: a text for the end of the file, or None if it has no place there

_Make = Callable[[str, "Node", str], str | None]


def _at_the_end(make: _Make, path: str, language: str, content: bytes, word: str) -> Canary | None:
    mark, data = without_bom(content)
    root = parsed(data, language)
    text = make(path, root, word) if root else None
    if text is None:
        return None
    newline = newline_of(content)
    lead = b"" if data.endswith(b"\n") else newline
    changed = data + lead + newline + text.encode().replace(b"\n", newline)
    name = _NAMES.get(language, "handles {word}").format(word=word, title=word.title())
    return Canary(mark + changed, name) if parsed(changed, language) else None


_NAMES: Final = {"go": "Test{title}", "rust": "test_{word}"}


def _with_own_function(path: str, root: Node, word: str) -> str | None:
    """Called as the file calls it, be it global or imported."""
    calls = [name for name in map(plain_name, javascript_calls(root)) if name]
    if not calls or _ONLY.search(text_of(root)):
        return None
    return _JAVASCRIPT_TEST.format(name=calls[0], word=word, wrong=_wrong_length(word))


def _with_import(*modules: str) -> _Make:
    """By the function of the first of these modules that the file names, under a name of its own."""

    def make(path: str, root: Node, word: str) -> str | None:
        text = text_of(root)
        module = next((item for item in modules if re.search(rf"""['"]{item}['"]""", text)), None)
        if module is None or not any(True for _ in javascript_calls(root)):
            return None
        if module != "node:test" and _ONLY.search(text):
            return None  # node runs the others as well, unless it is told not to
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
"""Such a file leaves out all other tests, and so would it this one."""
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


def _go(path: str, root: Node, word: str) -> str | None:
    text = text_of(root)
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


def _cargo(path: str, root: Node, word: str) -> str | None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "attribute_item" and text_of(node) == "#[test]":
            return _RUST.format(word=word, wrong=_wrong_length(word))
        waiting += node.named_children
    return None


_RUST: Final = """\
#[test]
fn test_{word}() {{
    assert_eq!("{word}".len(), {wrong});
}}
"""

_PYTHON = ("python",)
_JAVASCRIPT = ("javascript", "typescript", "tsx")
_PLACES: Final[dict[ReportFormat, tuple[tuple[str, ...], _Make | None]]] = {
    ReportFormat.PYTEST: (_PYTHON, None),
    ReportFormat.UNITTEST: (_PYTHON, None),
    ReportFormat.NODE: (_JAVASCRIPT, _with_import("node:test")),
    ReportFormat.VITEST: (_JAVASCRIPT, _with_import("vitest")),
    ReportFormat.TAP: (_JAVASCRIPT, _with_import("tape", "tap")),
    ReportFormat.JEST: (_JAVASCRIPT, _with_own_function),
    ReportFormat.MOCHA: (_JAVASCRIPT, _with_own_function),
    ReportFormat.GO: (("go",), _go),
    ReportFormat.CARGO: (("rust",), _cargo),
}
"""Languages and text by format; None for Python, where the place matters as well."""
