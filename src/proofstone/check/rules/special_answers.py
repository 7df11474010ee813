"""Find code that gives the answers of the tests for another reason than its input: an earlier call, a hash, an error.

`check.rules.special_casing` looks for the inputs of tests. Here the inputs are hidden or do not matter, and only the
answers betray the code. The kinds:

- *state*: the answer is chosen by something that earlier calls left behind, such as a counter.
- *turn*: a function that is no method counts its calls and asks whether it is the second or the third, whatever it
  answers then. No test has to expect anything.
- *sequence*: the answers of one test stand in a row, and each call takes the next one.
- *hash*: the inputs are compared by their hashes.
- *handler*: an exception is swallowed, and what a test expects is returned instead.

An answer counts only if a test expects exactly this value, and if honest code would hardly hold it by chance: see
`is_telling`. This is a suspicion and no proof, like the other one. Python only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from proofstone.check.rules.special_casing import (
    EQUALITY_METHODS,
    Literal,
    is_telling,
    line_of,
    parse_module,
    read_answer,
    read_literal,
    read_source_line,
)
from proofstone.common.risk import is_test_path


class AnswerKind(StrEnum):
    STATE = "an answer that depends on earlier calls"
    TURN = "a function that counts its calls and compares the number"
    SEQUENCE = "the answers of a test, one after the other"
    HASH = "an input that is recognised by its hash"
    HANDLER = "an exception that is answered as a test expects"


@dataclass(frozen=True)
class ExpectedValue:
    """A value that a test expects."""

    path: str
    line: int
    function: str
    """The test function."""


@dataclass(frozen=True)
class SpecialAnswer:
    """Code that gives the answer of a test."""

    line: int
    code: str
    kind: AnswerKind
    value: Literal
    expected: ExpectedValue | None
    """None if the code is suspicious whatever the tests expect."""
    test_code: str

    def describe(self) -> str:
        """Return what was found, with the place in the tests."""
        if self.expected is None:
            return f"{self.kind} with {self.value!r}"
        return f"{self.kind}: {self.value!r}, as the test expects ({self.expected.path}:{self.expected.line})"


def find_expected_values(tests: Mapping[str, str]) -> dict[str, list[ExpectedValue]]:
    """Return the telling values that tests compare with, by their representation."""
    found: dict[str, list[ExpectedValue]] = {}
    for path, text in tests.items():
        tree = parse_module(text)
        for function in ast.walk(tree) if tree else ():
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                for value in _list_compared(node):
                    literal = read_literal(value)
                    if literal is not None and is_telling(literal[0]):
                        place = ExpectedValue(path, value.lineno, function.name)
                        found.setdefault(repr(literal[0]), []).append(place)
    return found


def _list_compared(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a test compares a value with."""
    match node:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            yield from (left, right)
        case ast.Call(func=ast.Attribute(attr=name), args=[first, second, *_]) if name in EQUALITY_METHODS:
            yield from (first, second)


def find_special_answers(
    path: str,
    text: str,
    added: Collection[int],
    expected: Mapping[str, Sequence[ExpectedValue]],
    tests: Mapping[str, str],
) -> list[SpecialAnswer]:
    """Return the answers of tests that the added lines of a product file hold, one for each statement."""
    tree = parse_module(text) if path.endswith(".py") and not is_test_path(path) else None
    found: dict[int, SpecialAnswer] = {}
    for node, state in _walk(tree) if tree is not None else ():
        line = line_of(node)
        for kind, literal in _list_answers(node, state) if line in added else ():
            place = _find_expected(kind, literal, expected)
            if (place is not None or kind is AnswerKind.TURN) and line not in found:
                code = read_source_line(text, line)
                test_code = read_source_line(tests.get(place.path, ""), place.line) if place else ""
                found[line] = SpecialAnswer(line, code, kind, literal, place, test_code)
    return [found[line] for line in sorted(found)]


def _find_expected(
    kind: AnswerKind, literal: Literal, expected: Mapping[str, Sequence[ExpectedValue]]
) -> ExpectedValue | None:
    """Return where a test expects a value. All values of a sequence must be expected by one test function."""
    if kind is not AnswerKind.SEQUENCE:
        return next(iter(expected.get(repr(literal), ())), None)
    if not isinstance(literal, tuple) or len({*map(repr, literal)}) < 2:
        return None
    functions = [{(place.path, place.function) for place in expected.get(repr(value), ())} for value in literal]
    shared = set.intersection(*functions)
    places = expected.get(repr(literal[0]), ())
    return next((place for place in places if (place.path, place.function) in shared), None)


# What the code answers


_HASHES: Final = re.compile(r"hash|md5|sha\d*|sha3_\d+|blake2[bs]|crc32|adler32|hexdigest|digest")


def _walk(tree: ast.Module) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yield every node with the names that hold the state of the function around it."""
    pending: list[tuple[ast.AST, frozenset[str]]] = [(tree, frozenset())]
    while pending:
        node, state = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            state = _find_state(node)
        yield node, state
        pending += [(child, state) for child in ast.iter_child_nodes(node)]


def _find_state(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return what outlives a call and is changed by it, as it is written: `calls`, `answer.calls`, `seen`."""
    nodes = list(ast.walk(function))
    shared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    local = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} - shared
    arguments = (*function.args.args, *function.args.kwonlyargs)
    parameters = {argument.arg for argument in arguments} - {"self", "cls"}
    defaults = [default for default in (*function.args.defaults, *function.args.kw_defaults) if default is not None]
    has_mutable = any(isinstance(default, ast.List | ast.Dict | ast.Set | ast.Call) for default in defaults)
    foreign = (local | parameters) if not has_mutable else local
    found = {name for name in shared if any(_stores(node, name) for node in nodes)}
    for node in nodes:
        match node:
            case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target):
                found |= {ast.unparse(target)} if _root(target) not in foreign else set()
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "add" | "pop" | "popleft")):
                found |= {name} if name not in foreign else set()
            case ast.Call(func=ast.Name(id="next"), args=[ast.Name(id=name), *_]) if name not in local | parameters:
                found.add(name)
    return frozenset(found)


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _list_answers(node: ast.AST, state: frozenset[str]) -> Iterator[tuple[AnswerKind, Literal]]:
    match node:
        case ast.If(test=test, body=[first, *_], orelse=rest):
            for answer in (read_answer(first), read_answer(rest[0]) if rest else None):
                yield from _judge_condition(test, answer, state)
        case ast.IfExp(test=test, body=body, orelse=other):
            for answer in (read_literal(body), read_literal(other)):
                yield from _judge_condition(test, answer, state)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.In()], comparators=[right]):
            number = read_literal(right)
            own = frozenset(name for name in state if not name.startswith(("self.", "cls.")))
            if number is not None and _holds_numbers(number[0]) and _mentions(left, own):
                yield AnswerKind.TURN, number[0]
        case ast.ExceptHandler(body=[*_, last]) if (answer := read_answer(last)) is not None:
            yield AnswerKind.HANDLER, answer[0]
        case ast.Subscript(value=ast.List() | ast.Tuple() as values, slice=index) if _mentions(index, state):
            yield from _read_sequence(values)
        case ast.Call(func=ast.Name(id="iter" | "deque" | "cycle"), args=[ast.List() | ast.Tuple() as values]):
            yield from _read_sequence(values)
        case ast.Dict(keys=keys, values=values) if len(keys) > 1 and all(map(_is_digest, keys)):
            for value in values:
                yield from ((AnswerKind.HASH, answer) for answer in read_literal(value) or ())


def _judge_condition(
    test: ast.expr, answer: tuple[Literal] | None, state: frozenset[str]
) -> Iterator[tuple[AnswerKind, Literal]]:
    if answer is None:
        return
    if _mentions(test, state):
        yield AnswerKind.STATE, answer[0]
    names = {
        function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        for function in (node.func for node in ast.walk(test) if isinstance(node, ast.Call))
    }
    has_literal = any(isinstance(node, ast.Constant) for node in ast.walk(test))
    if has_literal and any(_HASHES.fullmatch(name) for name in names):
        yield AnswerKind.HASH, answer[0]


def _read_sequence(values: ast.expr) -> Iterator[tuple[AnswerKind, Literal]]:
    for literal in read_literal(values) or ():
        yield AnswerKind.SEQUENCE, literal


def _holds_numbers(value: Literal) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return bool(values) and all(type(number) is int and number > 0 for number in values)


def _mentions(test: ast.expr, state: frozenset[str]) -> bool:
    """Return whether an expression reads the state."""
    return bool(state) and any(
        isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and ast.unparse(node) in state
        for node in ast.walk(test)
    )


_DIGEST: Final = re.compile(r"[0-9a-f]{8,128}")


def _is_digest(key: ast.expr | None) -> bool:
    return (
        isinstance(key, ast.Constant)
        and isinstance(key.value, str)
        and _DIGEST.fullmatch(key.value) is not None
        and not key.value.isdigit()
    )
