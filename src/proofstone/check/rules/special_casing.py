"""Find code that answers the tests' own inputs: a new branch or table whose inputs and answers are those of a test.

`if units == 10 and cost == 100: return 900` next to `assert price(10, 100) == 900` passes the test and is right for
nothing else. The rules:

- Only code that the change added counts: a branch, a conditional expression, a `case`, or a table.
- The inputs that a branch compares with must be inputs of one test, and its answer must be what that test expects.
- Values that honest code compares with all the time prove nothing: 0, 1, 2, -1, None, True, False, empty values, and
  words, which are the names of options.
- A call that was recorded while the tests ran counts only if it passes several values and the code compares with all of
  them: honest code often compares one argument with a value that some test passes.
- A table counts if every one of its entries, and at least two, is an input of a test with what the test expects.

This is a suspicion and no proof: it lowers the confidence, and a held-out check settles it. Python only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.common.risk import is_test_path

_TRIVIAL: Final[tuple[object, ...]] = (0, 1, 2, -1, None, True, False, "", b"", (), 0.0, 1.0)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9-]*")
EQUALITY_METHODS: Final = frozenset(
    {"assertEqual", "assertEquals", "assertAlmostEqual", "assert_equal", "assertTupleEqual"}
)
_MAX_EXAMPLES: Final = 5000

Literal = object
"""The value of a literal, with lists as tuples, so that it can be compared and hashed."""


@dataclass(frozen=True)
class TestExample:
    """One call that a test makes with literal arguments, and what the test expects of it."""

    __test__ = False  # pytest must not collect this class because of its name

    inputs: tuple[Literal, ...]
    expected: Literal
    path: str
    line: int
    """The line of the test; 0 if the call was recorded while the tests ran."""

    @property
    def is_recorded(self) -> bool:
        return not self.line


@dataclass(frozen=True)
class SpecialCase:
    """Code that answers an example of a test."""

    line: int
    code: str
    example: TestExample
    test_code: str
    is_table: bool = False

    def describe(self) -> str:
        """Return what was found, with the place in the tests."""
        answer = f"{self.example.expected!r} for {', '.join(map(repr, self.example.inputs))}"
        what = "a table whose every entry a test expects" if self.is_table else "a branch for the input of a test"
        where = f"({self.example.path}:{self.example.line})"
        if self.example.is_recorded:
            where = "(recorded while the tests ran)"
        return f"{what}: it answers {answer}, as the test does {where}"


def find_examples(tests: Mapping[str, str]) -> tuple[TestExample, ...]:
    """Return the examples in test files, given as path → text: assertions about calls, and rows of parameters."""
    examples: list[TestExample] = []
    for path, text in tests.items():
        tree = parse_module(text)
        for node in ast.walk(tree) if tree else ():
            for inputs, expected in _list_pairs(node):
                if not is_trivial(expected):
                    examples.append(TestExample(inputs, expected, path, getattr(node, "lineno", 1)))
        if len(examples) > _MAX_EXAMPLES:
            break
    return tuple(examples[:_MAX_EXAMPLES])


def find_special_cases(
    path: str, text: str, added: Collection[int], examples: Sequence[TestExample], tests: Mapping[str, str]
) -> list[SpecialCase]:
    """Return the special cases that the added lines of a product file hold, one for each branch or table."""
    tree = parse_module(text) if path.endswith(".py") and not is_test_path(path) else None
    if tree is None or not examples:
        return []
    cases: list[SpecialCase] = []
    for node in ast.walk(tree):
        if line_of(node) not in added:
            continue
        example = next(_match_branch(node, examples), None)
        is_table = False
        if example is None and isinstance(node, ast.Dict):
            example, is_table = _match_table(node, examples), True
        if example is not None:
            code, test_code = (
                read_source_line(text, line_of(node)),
                read_source_line(tests.get(example.path, ""), example.line),
            )
            cases.append(SpecialCase(line_of(node), code, example, test_code, is_table))
    return cases


def parse_module(text: str) -> ast.Module | None:
    """Return the tree of a module; None if it cannot be parsed."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # the check of the syntax reports it


# What tests expect


def _list_pairs(node: ast.AST) -> Iterator[tuple[tuple[Literal, ...], Literal]]:
    match node:
        case ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[expected]):
            yield from _pair_call(call, expected)
        case ast.Compare(left=expected, ops=[ast.Eq()], comparators=[ast.Call() as call]):
            yield from _pair_call(call, expected)
        case ast.Call(func=ast.Attribute(attr=name), args=[first, second, *_]) if name in EQUALITY_METHODS:
            for call_side, expected in ((first, second), (second, first)):
                if isinstance(call_side, ast.Call):
                    yield from _pair_call(call_side, expected)
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, ast.List() | ast.Tuple() as rows, *_]):
            for row in rows.elts:
                yield from _pair_row(row)


def _pair_call(call: ast.Call, expected: ast.expr) -> Iterator[tuple[tuple[Literal, ...], Literal]]:
    values = [read_literal(argument) for argument in (*call.args, *(keyword.value for keyword in call.keywords))]
    answer = read_literal(expected)
    if answer is not None and values and all(value is not None for value in values):
        yield tuple(value[0] for value in values if value), answer[0]


def _pair_row(row: ast.expr) -> Iterator[tuple[tuple[Literal, ...], Literal]]:
    """Yield a row of parameters: its last value is what the test expects of the others."""
    elements = row.args if isinstance(row, ast.Call) else getattr(row, "elts", [])
    values = [read_literal(element) for element in elements]
    if len(values) > 1 and all(value is not None for value in values):
        read = [value[0] for value in values if value]
        yield tuple(read[:-1]), read[-1]


# What the code answers


def _match_branch(node: ast.AST, examples: Iterable[TestExample]) -> Iterator[TestExample]:
    """Yield the examples that a branch answers."""
    match node:
        case ast.If(test=test, body=[first, *_]):
            compared, answer = _list_compared(test), read_answer(first)
        case ast.IfExp(test=test, body=body):
            compared, answer = _list_compared(test), read_literal(body)
        case ast.match_case(pattern=pattern, body=[first, *_]):
            compared, answer = _list_pattern(pattern), read_answer(first)
        case _:
            return
    if answer is None or not compared or not any(is_telling(value) for value in compared):
        return
    for example in examples:
        if example.expected == answer[0] and _is_same_kind(example.expected, answer[0]):
            inputs = {*map(repr, example.inputs), *(repr(value) for value in flatten(example.inputs))}
            demanded = {repr(value) for value in flatten(compared)}
            is_whole = {repr(value) for value in flatten(example.inputs)} <= demanded
            if demanded <= inputs and (is_whole or not example.is_recorded):
                yield example


def _match_table(table: ast.Dict, examples: Iterable[TestExample]) -> TestExample | None:
    """Return an example that a table answers, if the tests expect every entry of it."""
    entries = [
        (_read_key(key), read_literal(value))
        for key, value in zip(table.keys, table.values, strict=True)
        if key is not None
    ]
    known = {(repr(example.inputs), repr(example.expected)): example for example in examples}
    known |= {(repr(example.inputs[0]), repr(example.expected)): example for example in examples if example.inputs}
    found = [
        known.get((repr(key[0]), repr(value[0])))
        for key, value in entries
        if key is not None and value is not None and is_telling(key[0])
    ]
    is_whole = len(found) == len(table.keys) > 1 and all(found)
    return found[0] if is_whole else None


def _read_key(key: ast.expr) -> tuple[Literal] | None:
    """Return the literal of a key, also if the code writes it as `repr((1, 2))` or makes it a tuple."""
    match key:
        case ast.Call(func=ast.Name(id="repr" | "str" | "tuple" | "frozenset"), args=[inner], keywords=[]):
            return read_literal(inner)
    return read_literal(key)


def _list_compared(test: ast.expr) -> list[Literal]:
    """Return the literals that a condition demands of values; empty if it demands something else too."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [_list_compared(value) for value in values]
            return [value for part in parts for value in part] if all(parts) else []
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            found = [value for value in (read_literal(left), read_literal(right)) if value is not None]
            return [found[0][0]] if len(found) == 1 else []
        case ast.Compare(ops=[ast.In()], comparators=[ast.Tuple() | ast.List() | ast.Set() as options]):
            literals = [read_literal(option) for option in options.elts]
            return [literal[0] for literal in literals if literal] if len(literals) == 1 else []
    return []


def _list_pattern(pattern: ast.pattern) -> list[Literal]:
    match pattern:
        case ast.MatchValue(value=value):
            literal = read_literal(value)
            return [literal[0]] if literal else []
        case ast.MatchSequence(patterns=patterns):
            parts = [_list_pattern(part) for part in patterns]
            return [value for part in parts for value in part] if all(parts) else []
    return []


def read_answer(statement: ast.stmt) -> tuple[Literal] | None:
    """Return the literal that a statement returns, assigns or yields, in a tuple of its own."""
    match statement:
        case ast.Return(value=ast.expr() as value) | ast.Assign(value=value) | ast.Expr(value=ast.Yield(value=value)):
            return read_literal(value) if value is not None else None
    return None


def read_literal(node: ast.expr) -> tuple[Literal] | None:
    """Return the value of a literal in a tuple of its own; None if the expression is no literal."""
    try:
        return (_freeze(ast.literal_eval(node)),)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _freeze(value: object) -> Literal:
    if isinstance(value, list | tuple):
        return tuple(_freeze(element) for element in value)
    if isinstance(value, dict):
        return tuple((_freeze(key), _freeze(element)) for key, element in value.items())
    return value


def flatten(values: Iterable[object]) -> Iterator[object]:
    """Yield the values of nested tuples."""
    for value in values:
        if isinstance(value, tuple):
            yield from flatten(value)
        else:
            yield value


def is_telling(value: Literal) -> bool:
    """Return whether honest code would hardly compare with this value, or answer with it, by chance."""
    if isinstance(value, tuple):
        return any(is_telling(element) for element in value)
    return not is_trivial(value) and not (isinstance(value, str) and _WORD.fullmatch(value) is not None)


def is_trivial(value: Literal) -> bool:
    """Return whether honest code answers with this value all the time."""
    return any(value == trivial and type(value) is type(trivial) for trivial in _TRIVIAL)


def _is_same_kind(left: Literal, right: Literal) -> bool:
    """Return whether two equal values are of one type: True equals 1, and 1 equals 1.0."""
    return repr(left) == repr(right)


def line_of(node: ast.AST) -> int:
    """Return the line of a node; a `case` has that of its pattern, and what has none gives 0."""
    line = getattr(node.pattern if isinstance(node, ast.match_case) else node, "lineno", 0)
    return line if isinstance(line, int) else 0


def read_source_line(text: str, number: int) -> str:
    """Return one line of a text, without its indentation."""
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
