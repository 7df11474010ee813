"""Changed expectations in Python tests: `assert`, and the methods of unittest, mock and numpy.

Left as they are: constants, what stands in a block that expects an exception, and what `except` would catch.

Copies of tests whose expectations were changed: an honest test that passed must fail on them.

A value that claims to be equal to everything, or an assertion that was made to accept anything, passes all the same,
and that exposes it. Equality is changed by wrapping the expected value together with a word that nobody can know, so
that nothing honest can be equal to it; other conditions are turned round.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.check.variants.javascript_expectations import javascript_expectations
from proofstone.sources.syntax import LIMIT, language_of
from proofstone.sources.text import Edit, PythonText, applied, inserted, parsed, python_text, without_bom

_Definition = ast.FunctionDef | ast.AsyncFunctionDef

EQUAL: Final = frozenset(
    {
        "assertEqual",
        "assertEquals",
        "assertListEqual",
        "assertTupleEqual",
        "assertSetEqual",
        "assertDictEqual",
        "assertSequenceEqual",
        "assertCountEqual",
        "assertMultiLineEqual",
        "assertAlmostEqual",
        "assert_equal",
        "assert_almost_equal",
        "assert_array_equal",
        "assert_array_almost_equal",
        "assert_allclose",
        "assert_frame_equal",
        "assert_series_equal",
    }
)
CALLED: Final = frozenset({"assert_called_with", "assert_called_once_with", "assert_any_call"})
OPPOSITE: Final[Mapping[str, str]] = {
    "assertFalse": "assertTrue",
    "assertNotEqual": "assertEqual",
    "assertNotIn": "assertIn",
    "assertIs": "assertIsNot",
    "assertIsNot": "assertIs",
    "assertIsNone": "assertIsNotNone",
    "assertIsNotNone": "assertIsNone",
    "assertIsInstance": "assertNotIsInstance",
    "assertNotIsInstance": "assertIsInstance",
    "assertGreater": "assertLessEqual",
    "assertLessEqual": "assertGreater",
    "assertLess": "assertGreaterEqual",
    "assertGreaterEqual": "assertLess",
    "assertRegex": "assertNotRegex",
    "assertNotRegex": "assertRegex",
}
_CATCHES_ASSERTIONS: Final = frozenset({"AssertionError", "Exception", "BaseException"})
_EXPECTS_EXCEPTION: Final = frozenset({"raises", "assertRaises", "assertRaisesRegex", "suppress"})
_EXPECTED_NAMES: Final = ("expected", "want", "correct")


def python_expectations(
    source: PythonText, names: Collection[str] | None, word: str
) -> tuple[list[Edit], tuple[str, ...]]:
    edits: list[Edit] = []
    tests: list[str] = []
    for name, test in _tests(source.tree.body, ""):
        if name.rpartition(".")[2].startswith("test") if names is None else _named(name, names):
            change = _Change(source, word, _called(test))
            if change.block(test.body):
                tests.append(name)
            edits += change.edits
    return edits, tuple(dict.fromkeys(tests))


def _tests(body: Sequence[ast.stmt], around: str) -> Iterator[tuple[str, _Definition]]:
    for stmt in body:
        if isinstance(stmt, _Definition):
            yield around + stmt.name, stmt
        elif isinstance(stmt, ast.ClassDef):
            yield from _tests(stmt.body, f"{around}{stmt.name}.")
        elif isinstance(stmt, ast.If | ast.Try | ast.With):
            yield from _tests(stmt.body, around)


def _called(test: _Definition) -> set[str]:
    return {node.func.id for node in ast.walk(test) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def _named(name: str, names: Collection[str]) -> bool:
    """By its name alone, with its class, or with whatever stands before the class."""
    return any(
        name == item or name.endswith("." + item) or ("." in name and item.endswith("." + name)) for item in names
    )


@dataclass
class _Change:
    """Collects the edits of one test. Methods say whether something was changed that the test cannot avoid."""

    source: PythonText
    word: str
    called: Collection[str]
    """Names of the functions that the test calls itself."""
    edits: list[Edit] = field(default_factory=list)

    def block(self, body: Sequence[ast.stmt]) -> bool:
        changed = [self.statement(stmt) for stmt in body]
        return any(changed)

    def statement(self, stmt: ast.stmt) -> bool:
        match stmt:
            case ast.Assert(test=condition):
                return self.condition(condition)
            case ast.Expr(value=ast.Await(value=ast.Call() as call)) | ast.Expr(value=ast.Call() as call):
                return self.call(call)
            case ast.With() | ast.AsyncWith() if any(_expects_exception(item) for item in stmt.items):
                return False
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                # What is only handed over may never run, or run where nobody hears of its exceptions.
                return self.block(stmt.body) and stmt.name in self.called
            case ast.With() | ast.AsyncWith():
                return self.block(stmt.body)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self.block(stmt.body)
            case ast.If(body=body, orelse=orelse):
                return all([self.block(body), self.block(orelse)])
            case ast.Try() | ast.TryStar():
                return self.attempt(stmt)
        return False

    def attempt(self, stmt: ast.Try | ast.TryStar) -> bool:
        for handler in stmt.handlers:
            self.block(handler.body)
        self.block(stmt.orelse)
        caught = any(_catches_assertions(handler) for handler in stmt.handlers)
        return any([not caught and self.block(stmt.body), self.block(stmt.finalbody)])

    def condition(self, condition: ast.expr) -> bool:
        """Makes a true condition false, unless it holds whatever a value is compared with."""
        match condition:
            case _ if _constant(condition):
                return False
            case ast.Compare(left=left, ops=ops, comparators=[*_, right]) if all(isinstance(op, ast.Eq) for op in ops):
                self.wrap(left if len(ops) == 1 and _is_expected(left, right) else right)
            case ast.Compare(left=left, ops=[ast.In()], comparators=[right]):
                self.membership(left, right)
            case ast.BoolOp(op=ast.And(), values=values):
                changed = [self.condition(value) for value in values]
                return any(changed)
            case _:
                self.around(condition, b" not (", b")")
        return True

    def call(self, call: ast.Call) -> bool:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = call.args
        # The parentheses of a lone generator expression are those of the call: nothing can be put around it.
        if any(isinstance(item, ast.Starred | ast.GeneratorExp) for item in given[:2]) or all(map(_constant, given)):
            return False
        if name in EQUAL and len(given) >= 2:
            self.wrap(given[0] if _is_expected(given[0], given[1]) else given[1])
        elif name == "assertIn" and len(given) >= 2:
            self.membership(given[0], given[1])
        elif name == "assertTrue":
            return self.condition(given[0])
        elif name in OPPOSITE and isinstance(call.func, ast.Attribute):
            end = self.source.end(call.func)
            self.edits.append(Edit(end - len(name), end, OPPOSITE[name].encode()))
        elif name in CALLED:
            self.edits.append(inserted(self.source.start(given[0]), self._word + b", "))
        else:
            return False
        return True

    def membership(self, left: ast.expr, right: ast.expr) -> None:
        if isinstance(right, ast.List | ast.Tuple | ast.Set):
            self.around(right, b"[(" + self._word + b", (", b"))]")
        elif isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and isinstance(left.value, str)):
            self.around(left, b"((", b") + " + self._word + b")")
        elif isinstance(left, ast.Constant) and isinstance(left.value, bytes):
            self.around(left, b"((", b") + b" + self._word + b")")
        else:
            self.wrap(left)

    def wrap(self, expected: ast.expr) -> None:
        self.around(expected, b"(" + self._word + b", (", b"))")

    def around(self, node: ast.expr, before: bytes, after: bytes) -> None:
        self.edits += [inserted(self.source.start(node), before), inserted(self.source.end(node), after)]

    @property
    def _word(self) -> bytes:
        return f'"{self.word}"'.encode()


def _constant(expression: ast.expr) -> bool:
    """Without anything that could come from the code under test."""
    return not any(isinstance(node, ast.Name | ast.Call | ast.Await | ast.Yield) for node in ast.walk(expression))


def _is_expected(left: ast.expr, right: ast.expr) -> bool:
    """Whether the left side is what the right one is held against, and not the other way round."""
    if _constant(left) or _constant(right):
        return _constant(left)
    return isinstance(left, ast.Name) and left.id.startswith(_EXPECTED_NAMES)


def _expects_exception(item: ast.withitem) -> bool:
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in _EXPECTS_EXCEPTION


def _catches_assertions(handler: ast.ExceptHandler) -> bool:
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else None
    return names is None or bool(names & _CATCHES_ASSERTIONS)


_JAVASCRIPT = ("javascript", "typescript", "tsx")


@dataclass(frozen=True)
class Mutated:
    content: bytes
    tests: tuple[str, ...]
    """Those in which an expectation was changed that the test cannot avoid: `test_x`, `Class.test_x`, or the title."""


def mutated(path: str, content: bytes, names: Collection[str] | None, word: str) -> Mutated:
    """`names`: the tests to change, all of them if None. `word`: random letters."""
    language = language_of(path, content)
    unchanged = Mutated(content, ())
    if len(content) > LIMIT:
        return unchanged
    if language == "python":
        return _python(content, names, word) or unchanged
    return (_javascript(content, language, names, word) if language in _JAVASCRIPT else None) or unchanged


def _python(content: bytes, names: Collection[str] | None, word: str) -> Mutated | None:
    source = python_text(content)
    if source is None:
        return None
    edits, tests = python_expectations(source, _wanted(names), word)
    changed = source.encoded(applied(source.data, edits))
    return Mutated(changed, tests) if changed is not None else None


def _javascript(content: bytes, language: str, names: Collection[str] | None, word: str) -> Mutated | None:
    mark, text = without_bom(content)
    root = parsed(text, language)
    if root is None:
        return None
    edits, tests = javascript_expectations(root, names, word, typed=language != "javascript")
    changed = applied(text, edits)
    return Mutated(mark + changed, tests) if parsed(changed, language) else None


def _wanted(names: Collection[str] | None) -> Collection[str] | None:
    """Python names, without parameters."""
    return None if names is None else {name.partition("[")[0].replace("::", ".") for name in names}
