"""Take the marks off tests that let them not run, or let them fail: skip, skipif, xfail and unittest's own.

A test that was skipped on the base still says what it expects. Its text counts, so it is run without its marks.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Final

from proofstone.sources.text import PythonText, TextEdit, apply_edits, parse_python_text

_MARKS: Final = frozenset(("skip", "skipif", "xfail", "skipIf", "skipUnless", "expectedFailure"))
_CALLS: Final = frozenset(("skip", "xfail", "importorskip", "skipTest"))
_ERRORS: Final = frozenset(("SkipTest", "Skipped"))
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def remove_skip_marks(path: str, content: bytes, tests: Collection[str]) -> bytes | None:
    """Return a Python test file whose named tests (`test_x`, `Class.test_x`) run whatever was marked, with everything
    that lets a whole module or class of theirs not run; None if there is no such mark."""
    source = parse_python_text(content) if path.endswith(".py") else None
    if source is None or not tests:
        return None
    edits = list(_find_edits(source, source.tree.body, "", tests))
    return source.encode_edited(apply_edits(source.data, edits)) if edits else None


def _find_edits(source: PythonText, body: list[ast.stmt], prefix: str, tests: Collection[str]) -> Iterator[TextEdit]:
    for statement in body:
        if isinstance(statement, _Definition):
            name = f"{prefix}{statement.name}"
            is_concerned = name in tests or any(test.startswith(f"{name}.") for test in tests)
            if not is_concerned:
                continue
            for decorator in statement.decorator_list:
                if _name_of(decorator) in _MARKS:
                    yield _blank_decorator(source, decorator)
            if isinstance(statement, ast.ClassDef):
                yield from _find_edits(source, statement.body, f"{name}.", tests)
            else:
                yield from _find_skipping_statements(source, statement)
        elif isinstance(statement, ast.Assign) and _assigns_marks(statement):
            yield TextEdit(source.start(statement), source.end(statement), b"pass")
        elif not prefix:
            yield from _find_skipping_statements(source, statement)


def _find_skipping_statements(source: PythonText, root: ast.stmt) -> Iterator[TextEdit]:
    """Yield an edit for each statement that skips the test, or the module, when it is reached."""
    for node in ast.walk(root):
        is_skip = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _is_skip(node.value)
        raised = node.exc if isinstance(node, ast.Raise) else None
        if is_skip or (raised is not None and _name_of(raised) in _ERRORS):
            assert_node = node
            if isinstance(assert_node, ast.stmt):
                yield TextEdit(source.start(assert_node), source.end(assert_node), b"pass")


def _is_skip(call: ast.Call) -> bool:
    name = _name_of(call)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return name in _CALLS and isinstance(owner, ast.Name) and owner.id in ("pytest", "self", "cls", "unittest")


def _assigns_marks(statement: ast.Assign) -> bool:
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    marks = (node for node in ast.walk(statement.value) if isinstance(node, ast.Attribute))
    return "pytestmark" in names and any(node.attr in _MARKS for node in marks)


def _name_of(expression: ast.expr) -> str:
    """Return the last part of a name that is used or called: `skip` for `pytest.mark.skip(reason)`."""
    node = expression.func if isinstance(expression, ast.Call) else expression
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _blank_decorator(source: PythonText, decorator: ast.expr) -> TextEdit:
    """Return the edit that removes a decorator with its `@`, and leaves its line empty."""
    start = source.data.rindex(b"@", 0, source.start(decorator))
    return TextEdit(start, source.end(decorator), b"")
