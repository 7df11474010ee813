"""Change the expectations of tests: a genuine test that passed must then fail.

A value that claims to equal everything, or an assertion that accepts anything, passes anyway, and that exposes it.
Equality is changed by wrapping the expected value together with a random word, so that no genuine value can equal it.
Other conditions are negated.

The Python part handles `assert` and the methods of unittest, mock and numpy. It leaves alone constants, blocks that
expect an exception, and assertions that an `except` would catch.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.check.variants.javascript_expectations import mutate_javascript_expectations
from proofstone.sources.syntax import MAX_SOURCE_BYTES, detect_language
from proofstone.sources.text import (
    PythonText,
    TextEdit,
    apply_edits,
    insert_edit,
    parse_python_text,
    parse_valid,
    split_bom,
)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

EQUALITY_ASSERTIONS: Final = frozenset(
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
CALL_ASSERTIONS: Final = frozenset({"assert_called_with", "assert_called_once_with", "assert_any_call"})
OPPOSITE_ASSERTIONS: Final[Mapping[str, str]] = {
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


def mutate_python_expectations(
    source: PythonText, names: Collection[str] | None, word: str
) -> tuple[list[TextEdit], tuple[str, ...]]:
    """Return edits that change the expectations of the named tests, and the tests that must then fail. None stands for
    all tests."""
    edits: list[TextEdit] = []
    tests: list[str] = []
    for name, test in find_functions(source.tree.body, ""):
        if name.rpartition(".")[2].startswith("test") if names is None else _is_named(name, names):
            change = _ExpectationEdits(source, word, _find_called_names(test))
            if change.block(test.body):
                tests.append(name)
            edits += change.edits
    return edits, tuple(dict.fromkeys(tests))


def find_functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, FunctionNode]]:
    for stmt in body:
        if isinstance(stmt, FunctionNode):
            yield prefix + stmt.name, stmt
        elif isinstance(stmt, ast.ClassDef):
            yield from find_functions(stmt.body, f"{prefix}{stmt.name}.")
        elif isinstance(stmt, ast.If | ast.Try | ast.With):
            yield from find_functions(stmt.body, prefix)


def _find_called_names(test: FunctionNode) -> set[str]:
    return {node.func.id for node in ast.walk(test) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def _is_named(name: str, names: Collection[str]) -> bool:
    """Return whether one of the names means this test: by its own name, with its class, or with a longer prefix."""
    return any(
        name == wanted or name.endswith("." + wanted) or ("." in name and wanted.endswith("." + name))
        for wanted in names
    )


@dataclass
class _ExpectationEdits:
    """Collects the edits of one test. Methods return whether they changed an expectation that the test cannot avoid."""

    source: PythonText
    word: str
    called: Collection[str]
    """Names of the functions that the test itself calls."""
    edits: list[TextEdit] = field(default_factory=list)

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
                # A callback may never run, or its exceptions may be swallowed.
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
        caught = any(catches_assertions(handler) for handler in stmt.handlers)
        return any([not caught and self.block(stmt.body), self.block(stmt.finalbody)])

    def condition(self, condition: ast.expr) -> bool:
        """Make a true condition false, unless it is constant."""
        match condition:
            case _ if is_constant(condition):
                return False
            case ast.Compare(left=left, ops=ops, comparators=[*_, right]) if all(isinstance(op, ast.Eq) for op in ops):
                self.wrap(left if len(ops) == 1 and is_expected(left, right) else right)
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
        arguments = call.args
        # A lone generator expression uses the parentheses of the call, so it cannot be wrapped.
        if any(isinstance(argument, ast.Starred | ast.GeneratorExp) for argument in arguments[:2]) or all(
            map(is_constant, arguments)
        ):
            return False
        if name in EQUALITY_ASSERTIONS and len(arguments) >= 2:
            self.wrap(arguments[0] if is_expected(arguments[0], arguments[1]) else arguments[1])
        elif name == "assertIn" and len(arguments) >= 2:
            self.membership(arguments[0], arguments[1])
        elif name == "assertTrue":
            return self.condition(arguments[0])
        elif name in OPPOSITE_ASSERTIONS and isinstance(call.func, ast.Attribute):
            end = self.source.end(call.func)
            self.edits.append(TextEdit(end - len(name), end, OPPOSITE_ASSERTIONS[name].encode()))
        elif name in CALL_ASSERTIONS:
            self.edits.append(insert_edit(self.source.start(arguments[0]), self._word + b", "))
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
        self.edits += [insert_edit(self.source.start(node), before), insert_edit(self.source.end(node), after)]

    @property
    def _word(self) -> bytes:
        return f'"{self.word}"'.encode()


def is_constant(expression: ast.expr) -> bool:
    """Return whether an expression contains nothing that could come from the code under test."""
    return not any(isinstance(node, ast.Name | ast.Call | ast.Await | ast.Yield) for node in ast.walk(expression))


def is_expected(left: ast.expr, right: ast.expr) -> bool:
    """Return whether the left side is the expected value and the right side the actual one."""
    if is_constant(left) or is_constant(right):
        return is_constant(left)
    return isinstance(left, ast.Name) and left.id.startswith(_EXPECTED_NAMES)


def _expects_exception(item: ast.withitem) -> bool:
    function = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) in _EXPECTS_EXCEPTION


def catches_assertions(handler: ast.ExceptHandler) -> bool:
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)} if handler.type else None
    return names is None or bool(names & _CATCHES_ASSERTIONS)


_JAVASCRIPT_LANGUAGES = ("javascript", "typescript", "tsx")


@dataclass(frozen=True)
class MutatedTests:
    """A test file with changed expectations."""

    content: bytes
    tests: tuple[str, ...]
    """Tests in which an unavoidable expectation was changed: `test_x`, `Class.test_x`, or the title."""


def mutate_expectations(path: str, content: bytes, names: Collection[str] | None, word: str) -> MutatedTests:
    """Change the expectations of the tests in `names`, or of all tests if None. `word` is a random word."""
    language = detect_language(path, content)
    unchanged = MutatedTests(content, ())
    if len(content) > MAX_SOURCE_BYTES:
        return unchanged
    if language == "python":
        return _mutate_python(content, names, word) or unchanged
    return (
        _mutate_javascript(content, language, names, word) if language in _JAVASCRIPT_LANGUAGES else None
    ) or unchanged


def _mutate_python(content: bytes, names: Collection[str] | None, word: str) -> MutatedTests | None:
    source = parse_python_text(content)
    if source is None:
        return None
    edits, tests = mutate_python_expectations(source, _normalize_names(names), word)
    changed = source.encode_edited(apply_edits(source.data, edits))
    return MutatedTests(changed, tests) if changed is not None else None


def _mutate_javascript(content: bytes, language: str, names: Collection[str] | None, word: str) -> MutatedTests | None:
    mark, text = split_bom(content)
    root = parse_valid(text, language)
    if root is None:
        return None
    edits, tests = mutate_javascript_expectations(root, names, word, typed=language != "javascript")
    changed = apply_edits(text, edits)
    return MutatedTests(mark + changed, tests) if parse_valid(changed, language) else None


def _normalize_names(names: Collection[str] | None) -> Collection[str] | None:
    """Return Python names without parameters."""
    return None if names is None else {name.partition("[")[0].replace("::", ".") for name in names}
