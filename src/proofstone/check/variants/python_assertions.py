"""Read the assertions of Python tests: `assert`, unittest, pytest, mock and numpy.

Local variables that are assigned once are replaced by what they hold, so that two versions of a test that differ only
in names and in extracted expressions have the same assertions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from proofstone.check.rules.weakened_tests import AssertionForm, TestAssertion, TestBody, TestSource
from proofstone.check.variants.expectations import (
    EQUALITY_ASSERTIONS,
    FunctionNode,
    catches_assertions,
    find_functions,
    is_constant,
    is_expected,
)
from proofstone.sources.text import PythonText

_Form = AssertionForm
_APPROXIMATE: Final = frozenset(
    {"assertAlmostEqual", "assert_almost_equal", "assert_array_almost_equal", "assert_allclose", "approx"}
)
_UNITTEST_FORMS: Final[Mapping[str, AssertionForm]] = {
    "assertNotEqual": _Form.NOT_EQUAL,
    "assertIs": _Form.EQUAL,
    "assertIsNot": _Form.NOT_EQUAL,
    "assertIsInstance": _Form.INSTANCE,
    "assertRegex": _Form.PARTIAL,
    "assertRegexpMatches": _Form.PARTIAL,
    "assertDictContainsSubset": _Form.PARTIAL,
    "assertGreater": _Form.BOUND,
    "assertGreaterEqual": _Form.BOUND,
    "assertLess": _Form.BOUND,
    "assertLessEqual": _Form.BOUND,
}
"""Methods with two arguments, the subject first."""
_MOCK_FORMS: Final[Mapping[str, AssertionForm]] = {
    "assert_called_once_with": _Form.CALLED_WITH,
    "assert_called_with": _Form.CALLED_WITH,
    "assert_any_call": _Form.CALLED_WITH,
    "assert_has_calls": _Form.CALLED_WITH,
    "assert_awaited_once_with": _Form.CALLED_WITH,
    "assert_awaited_with": _Form.CALLED_WITH,
    "assert_called_once": _Form.CALLED,
    "assert_called": _Form.CALLED,
    "assert_awaited_once": _Form.CALLED,
    "assert_awaited": _Form.CALLED,
}
_RAISES: Final = frozenset({"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex"})
_PART_METHODS: Final = frozenset({"startswith", "endswith", "issubset", "issuperset"})
_PART_FUNCTIONS: Final = frozenset({"search", "match", "fullmatch"})
_OPERATORS: Final[Mapping[type[ast.cmpop], str]] = {ast.Lt: "<", ast.LtE: "<", ast.Gt: ">", ast.GtE: ">"}
_FLIPPED: Final = {"<": ">", ">": "<"}
_INCLUDED: Final = 1e-9
"""What an included bound is wider than an excluded one."""
_WILDCARDS: Final = frozenset({"ANY", "IsAnything", "Anything"})
_LONGEST_TEXT: Final = 600
_DEEPEST: Final = 5


def list_python_tests(source: PythonText) -> dict[str, TestSource]:
    """Return all functions of a test file by name."""
    lines = source.data.decode().splitlines()
    functions: dict[str, TestSource] = {}
    for name, function in find_functions(source.tree.body, ""):
        first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        text = "\n".join(lines[first - 1 : function.end_lineno])
        functions[name] = TestSource(text, partial(_read_function, name, function))
    return functions


def _read_function(name: str, function: FunctionNode) -> TestBody:
    names = _find_single_assignments(function)
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    reader = _AssertionReader(names)
    reader.read_block(function.body, (), None)
    cases = tuple(case for decorator in function.decorator_list for case in _read_parameters(decorator))
    return TestBody(
        name=name,
        line=function.lineno,
        assertions=tuple(
            replace(found, is_local=found.subject in stored - names.keys()) for found in reader.assertions
        ),
        calls=frozenset(_find_called_name(node) for node in ast.walk(function) if isinstance(node, ast.Call))
        | {"raise" for node in ast.walk(function) if isinstance(node, ast.Raise)},
        cases=cases,
        setup="\n".join(_list_setup(function.body)),
    )


def _list_setup(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the statements that assert nothing, and what loops run over."""
    for stmt in body:
        if isinstance(stmt, ast.For | ast.AsyncFor):
            yield ast.unparse(stmt.iter)
        blocks = [value for _, value in ast.iter_fields(stmt) if isinstance(value, list)]
        inner = [part for block in blocks for part in block if isinstance(part, ast.stmt)]
        yield from _list_setup(inner)
        if not inner and not any(_asserts(node) for node in ast.walk(stmt)):
            yield ast.unparse(stmt)


def _read_parameters(decorator: ast.expr) -> Iterator[str]:
    """Yield the parameter sets of `@pytest.mark.parametrize`, if they are a literal list."""
    if isinstance(decorator, ast.Call) and _find_called_name(decorator) == "parametrize" and len(decorator.args) >= 2:
        values = decorator.args[1]
        if isinstance(values, ast.List | ast.Tuple) and not any(isinstance(v, ast.Starred) for v in values.elts):
            yield from (_read_parameter(value) for value in values.elts)


def _read_parameter(value: ast.expr) -> str:
    """Return the values of one parameter set without its id and its marks."""
    if isinstance(value, ast.Call) and _find_called_name(value) == "param":
        return ast.unparse(value.args[0] if len(value.args) == 1 else ast.Tuple(value.args, ast.Load()))
    return ast.unparse(value)


def _find_single_assignments(function: FunctionNode) -> dict[str, ast.expr]:
    """Return the local variables that are assigned exactly once, with what they hold."""
    values: dict[str, ast.expr] = {}
    counts: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    arguments = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    return {name: value for name, value in values.items() if counts.get(name) == 1 and name not in arguments}


class _Inliner(ast.NodeTransformer):
    """Replaces local variables by what they hold, and drops `await`."""

    def __init__(self, names: Mapping[str, ast.expr], depth: int = 0) -> None:
        self.names, self.depth = names, depth

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.names.get(node.id)
        if value is None or self.depth >= _DEEPEST:
            return node
        inner = _Inliner({name: held for name, held in self.names.items() if name != node.id}, self.depth + 1)
        inlined: ast.expr = inner.visit(_copy(value))
        return inlined if len(ast.unparse(inlined)) <= _LONGEST_TEXT else node

    def visit_Await(self, node: ast.Await) -> ast.AST:
        inlined: ast.AST = self.visit(node.value)
        return inlined


def _copy(expression: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(expression), mode="eval").body


@dataclass
class _AssertionReader:
    """Collects the assertions of one function."""

    names: Mapping[str, ast.expr]
    assertions: list[TestAssertion] = field(default_factory=list)

    def read_block(self, body: Sequence[ast.stmt], guards: tuple[str, ...], cases: tuple[str, ...] | None) -> None:
        for stmt in body:
            self.read_statement(stmt, guards, cases)
            if isinstance(stmt, ast.Return | ast.Continue | ast.Break):
                return  # nothing after it is reached
            if isinstance(stmt, ast.If) and not stmt.orelse and isinstance(stmt.body[-1], ast.Return | ast.Continue):
                guards = (*guards, f"unless {ast.unparse(stmt.test)}")

    def read_statement(self, stmt: ast.stmt, guards: tuple[str, ...], cases: tuple[str, ...] | None) -> None:
        match stmt:
            case ast.Assert(test=condition):
                self.add(stmt, self.read_condition(self.inline(condition)), guards, cases)
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                self.add(stmt, self.read_call(call), guards, cases)
            case ast.Assign(value=ast.Call() as call) | ast.Return(value=ast.Call() as call) if (
                _find_called_name(call) in _RAISES
            ):
                self.add(stmt, self.read_call(call), guards, cases)
            case ast.With() | ast.AsyncWith():
                self.read_with(stmt, guards, cases)
            case ast.For() | ast.AsyncFor():
                self.read_block(stmt.body, guards, _read_cases(self.inline(stmt.iter)) or cases or ())
                self.read_block(stmt.orelse, guards, cases)
            case ast.While():
                self.read_block(stmt.body, guards, cases or ())
            case ast.If():
                self.read_if(stmt, guards, cases)
            case ast.Try() | ast.TryStar():
                self.read_try(stmt, guards, cases)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.read_block(stmt.body, guards, cases)
            case ast.Match():
                for option in stmt.cases:
                    self.read_block(option.body, guards, cases)

    def read_if(self, stmt: ast.If, guards: tuple[str, ...], cases: tuple[str, ...] | None) -> None:
        """Read both branches. If each of them asserts something, the assertions are no weaker for being in branches."""
        has_both = all(
            any(_asserts(node) for part in block for node in ast.walk(part)) for block in (stmt.body, stmt.orelse)
        )
        condition = ast.unparse(stmt.test)
        self.read_block(stmt.body, guards if has_both else (*guards, f"if {condition}"), cases)
        self.read_block(stmt.orelse, guards if has_both else (*guards, f"unless {condition}"), cases)

    def read_try(self, stmt: ast.Try | ast.TryStar, guards: tuple[str, ...], cases: tuple[str, ...] | None) -> None:
        is_swallowed = any(catches_assertions(handler) and not _fails(handler.body) for handler in stmt.handlers)
        self.read_block(stmt.body, (*guards, "as long as no handler swallows it") if is_swallowed else guards, cases)
        for handler in stmt.handlers:
            self.read_block(handler.body, guards, cases)
        self.read_block(stmt.orelse, guards, cases)
        self.read_block(stmt.finalbody, guards, cases)

    def read_with(self, stmt: ast.With | ast.AsyncWith, guards: tuple[str, ...], cases: tuple[str, ...] | None) -> None:
        for item in stmt.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and _find_called_name(call) in _RAISES:
                body = "; ".join(self.unparse(part) for part in stmt.body)
                roots = frozenset(
                    _find_called_name(node)
                    for part in stmt.body
                    for node in ast.walk(part)
                    if isinstance(node, ast.Call)
                )
                self.add(call, [replace(self.read_raises(call, body), roots=roots - {""})], guards, cases)
            if isinstance(call, ast.Call) and _find_called_name(call) == "suppress":
                guards = (*guards, "as long as no handler swallows it")
        self.read_block(stmt.body, guards, cases)

    def read_call(self, call: ast.Call) -> list[TestAssertion]:
        """Read a call that stands alone: a method of unittest, mock or numpy, or a helper that asserts."""
        name = _find_called_name(call)
        if name in _RAISES and len(call.args) >= 2 and not name.endswith("Regex"):
            return [self.read_raises(ast.Call(call.func, call.args[:1], call.keywords), self.unparse(call.args[1]))]
        if not name.startswith(("assert", "fail")) or (not call.args + call.keywords and name not in _MOCK_FORMS):
            return []
        arguments = [self.inline(argument) for argument in call.args]
        if name in _MOCK_FORMS and isinstance(call.func, ast.Attribute):
            subject = self.inline(call.func.value)
            text = f"{ast.unparse(subject)}.{name}({', '.join(map(ast.unparse, arguments))})"
            return [_assertion(_MOCK_FORMS[name], subject, text)]
        if name in ("assertTrue", "assert_") and arguments:
            return self.read_condition(arguments[0])
        if name == "assertFalse" and arguments:
            return self.read_condition(ast.UnaryOp(ast.Not(), arguments[0]))
        if name in ("assertIsNone", "assertIsNotNone") and arguments:
            operator = ast.Is() if name == "assertIsNone" else ast.IsNot()
            return self.read_condition(ast.Compare(arguments[0], [operator], [ast.Constant(None)]))
        if name in ("assertIn", "assertNotIn") and len(arguments) >= 2:
            membership = ast.In() if name == "assertIn" else ast.NotIn()
            return self.read_condition(ast.Compare(arguments[0], [membership], [arguments[1]]))
        if len(arguments) >= 2 and name in _APPROXIMATE:
            left, right = _order(arguments[0], arguments[1])
            return [_approximate(left, right, _read_tolerance(call))]
        if len(arguments) >= 2 and name in EQUALITY_ASSERTIONS:
            return self.read_condition(ast.Compare(arguments[0], [ast.Eq()], [arguments[1]]))
        if len(arguments) >= 2 and name in _UNITTEST_FORMS:
            return [_unittest_assertion(name, arguments[0], arguments[1])]
        text = f"{name}({', '.join(map(ast.unparse, arguments))})"
        return [] if all(map(is_constant, arguments)) else [TestAssertion(_Form.OTHER, "", text, 0, "")]

    def read_raises(self, call: ast.Call, body: str) -> TestAssertion:
        """Read `pytest.raises(…)` and its kind. The subject is the code that must raise."""
        types = call.args[0] if call.args else None
        elements = types.elts if isinstance(types, ast.Tuple) else [types] if types is not None else []
        names = [ast.unparse(self.inline(element)).rpartition(".")[2] for element in elements]
        pattern = next((word.value for word in call.keywords if word.arg == "match"), None)
        if pattern is None and _find_called_name(call).endswith("Regex") and len(call.args) >= 2:
            pattern = call.args[1]
        is_pattern = pattern is not None and not (isinstance(pattern, ast.Constant) and pattern.value in ("", ".*"))
        expected = (*names, f"match={ast.unparse(self.inline(pattern))}") if pattern and is_pattern else tuple(names)
        kind = "warns" if "arns" in _find_called_name(call) else "raises"
        return TestAssertion(_Form.RAISES, f"{kind}: {body}", f"{kind}({', '.join(expected)}): {body}", 0, "", expected)

    def read_condition(self, condition: ast.expr) -> list[TestAssertion]:
        """Read the condition of an `assert`. Conditions joined by `and` are assertions of their own."""
        match condition:
            case _ if is_constant(condition) and not isinstance(condition, ast.Compare):
                return []
            case ast.BoolOp(op=ast.And(), values=values):
                return [assertion for value in values for assertion in self.read_condition(value)]
            case ast.BoolOp(op=ast.Or(), values=values):
                return [_alternatives(condition, [self.read_condition(value) for value in values])]
            case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(left=left, ops=[ast.In()], comparators=[right])):
                return [_assertion(_Form.OTHER, right, f"{ast.unparse(left)} not in {ast.unparse(right)}")]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return [_assertion(_Form.FALSY, operand, f"not {ast.unparse(operand)}")]
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return _read_comparison(left, operator, right)
            case ast.Call():
                return [_read_truth_call(condition)]
            case _:
                return [_assertion(_Form.TRUTHY, condition, ast.unparse(condition))]

    def add(
        self,
        node: ast.stmt | ast.expr,
        found: Sequence[TestAssertion],
        guards: tuple[str, ...],
        cases: tuple[str, ...] | None,
    ) -> None:
        source = ast.unparse(node)
        self.assertions += [
            replace(assertion, line=node.lineno, source=source, guards=guards, cases=cases) for assertion in found
        ]

    def inline(self, expression: ast.expr) -> ast.expr:
        inlined: ast.expr = _Inliner(self.names).visit(_copy(expression))
        return inlined

    def unparse(self, node: ast.stmt | ast.expr) -> str:
        if isinstance(node, ast.Expr):
            return ast.unparse(self.inline(node.value))
        return ast.unparse(self.inline(node)) if isinstance(node, ast.expr) else ast.unparse(node)


def _read_comparison(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> list[TestAssertion]:
    texts = ast.unparse(left), ast.unparse(right)
    if is_constant(left) and is_constant(right):
        return []  # true or false whatever the code under test does
    if texts[0] == texts[1] and isinstance(operator, ast.Eq | ast.Is):
        return [_assertion(_Form.ITSELF, left, f"{texts[0]} == itself")]
    subject, expected = _order(left, right)
    match operator:
        case ast.Eq() | ast.Is() if _is_wildcard(expected):
            return [_assertion(_Form.PRESENT, subject, f"{ast.unparse(subject)} is anything")]
        case ast.Eq() if isinstance(expected, ast.Call) and _find_called_name(expected) == "approx" and expected.args:
            return [_approximate(subject, expected.args[0], _read_tolerance(expected))]
        case ast.Eq() | ast.Is():
            value = ast.unparse(expected)
            return [
                replace(
                    _assertion(_Form.EQUAL, subject, f"{ast.unparse(subject)} == {value}"),
                    expected=(value,),
                    has_wildcard=any(_is_wildcard(node) for node in ast.walk(expected)),
                )
            ]
        case ast.IsNot() if texts[1] == "None":
            return [_assertion(_Form.PRESENT, left, f"{texts[0]} is not None")]
        case ast.NotEq() | ast.IsNot():
            return [_assertion(_Form.NOT_EQUAL, subject, f"{ast.unparse(subject)} != {ast.unparse(expected)}")]
        case ast.In() if isinstance(right, ast.List | ast.Tuple | ast.Set) and not is_constant(left):
            values = tuple(map(ast.unparse, right.elts))
            form = _Form.ONE_OF if len(values) > 1 else _Form.EQUAL
            text = (
                f"{texts[0]} in {sorted(values)}" if len(values) > 1 else f"{texts[0]} == {values[0] if values else ''}"
            )
            return [replace(_assertion(form, left, text), expected=values)]
        case ast.In():
            return [replace(_assertion(_Form.PARTIAL, right, f"{texts[0]} in {texts[1]}"), expected=texts[:1])]
        case ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE():
            return [_read_bound(left, operator, right)]
    return [_assertion(_Form.OTHER, right, f"{texts[0]} not in {texts[1]}")]


def _read_bound(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> TestAssertion:
    direction = _OPERATORS[type(operator)]
    subject, limit = left, right
    if is_constant(left) and not is_constant(right):
        subject, limit, direction = right, left, _FLIPPED[direction]
    sign = "=" if isinstance(operator, ast.LtE | ast.GtE) else ""
    text = f"{ast.unparse(subject)} {direction}{sign} {ast.unparse(limit)}"
    number = _read_number(limit)
    wider = _INCLUDED if sign else 0.0
    bound = None if number is None else (direction, number + wider if direction == "<" else number - wider)
    return replace(_assertion(_Form.BOUND, subject, text), bound=bound)


def _unittest_assertion(name: str, left: ast.expr, right: ast.expr) -> TestAssertion:
    form = _UNITTEST_FORMS[name]
    if form is _Form.BOUND:
        operators = {"assertGreater": ast.Gt(), "assertGreaterEqual": ast.GtE(), "assertLess": ast.Lt()}
        return _read_bound(left, operators.get(name, ast.LtE()), right)
    if form is _Form.EQUAL:
        return next(iter(_read_comparison(left, ast.Is(), right)), _VACUOUS)
    if form is _Form.INSTANCE:
        return _instance(left, right)
    text = f"{ast.unparse(left)} {form} {ast.unparse(right)}"
    return replace(_assertion(form, left, text), expected=(ast.unparse(right),))


_VACUOUS: Final = TestAssertion(_Form.OTHER, "", "", 0, "")


def _read_truth_call(call: ast.Call) -> TestAssertion:
    """Read a call whose result is asserted to be true."""
    name, arguments, text = _find_called_name(call), call.args, ast.unparse(call)
    if name == "isinstance" and len(arguments) == 2:
        return _instance(arguments[0], arguments[1])
    if name in ("all", "any") and len(arguments) == 1:
        return replace(_assertion(_Form.EVERY if name == "all" else _Form.SOME, arguments[0], text), parts=_parts(call))
    if name in ("isclose", "allclose") and len(arguments) >= 2:
        left, right = _order(arguments[0], arguments[1])
        return _approximate(left, right, _read_tolerance(call))
    if (
        name in ("array_equal", "array_equiv")
        and len(arguments) == 2
        and (found := _read_comparison(arguments[0], ast.Eq(), arguments[1]))
    ):
        return found[0]
    if name in _PART_METHODS and isinstance(call.func, ast.Attribute) and len(arguments) == 1:
        return replace(_assertion(_Form.PARTIAL, call.func.value, text), expected=(ast.unparse(arguments[0]),))
    if name in _PART_FUNCTIONS and len(arguments) == 2:
        return replace(_assertion(_Form.PARTIAL, arguments[1], text), expected=(ast.unparse(arguments[0]),))
    return _assertion(_Form.TRUTHY, call, text)


def _instance(subject: ast.expr, types: ast.expr) -> TestAssertion:
    elements = types.elts if isinstance(types, ast.Tuple) else [types]
    names = tuple(sorted(ast.unparse(element) for element in elements))
    return replace(_assertion(_Form.INSTANCE, subject, f"isinstance({ast.unparse(subject)}, {names})"), expected=names)


def _alternatives(condition: ast.expr, options: Sequence[Sequence[TestAssertion]]) -> TestAssertion:
    """Read conditions joined by `or`: one value may equal any of several, or the condition is simply true or not."""
    flat = [option[0] for option in options if len(option) == 1]
    is_one_of = len(flat) == len(options) and all(option.form in (_Form.EQUAL, _Form.ONE_OF) for option in flat)
    text = ast.unparse(condition)
    if is_one_of and len({option.subject for option in flat}) == 1:
        values = tuple(value for option in flat for value in option.expected)
        return replace(flat[0], form=_Form.ONE_OF, text=text, expected=values)
    # The first alternative is what the assertion was about before the others were added.
    first = options[0][0] if options and options[0] else None
    subject = first.subject if first else text
    parts = frozenset().union(*(option.parts for found in options for option in found))
    return TestAssertion(_Form.SOME, subject, text, 0, "", roots=first.roots if first else frozenset(), parts=parts)


def _approximate(subject: ast.expr, expected: ast.expr, tolerance: float | None) -> TestAssertion:
    value = ast.unparse(expected)
    text = f"{ast.unparse(subject)} ≈ {value} ± {tolerance}"
    return replace(_assertion(_Form.APPROXIMATE, subject, text), expected=(value,), tolerance=tolerance)


_TOLERANCES: Final = ("rel", "abs", "rel_tol", "abs_tol", "rtol", "atol", "delta")
_PLACES: Final = ("places", "decimal")
_DEFAULT_TOLERANCE: Final = 1e-6


def _read_tolerance(call: ast.Call) -> float | None:
    """Return the largest tolerance of a comparison; None if it is not a literal."""
    numbers: list[float | None] = []
    for word in call.keywords:
        number = _read_number(word.value) if word.arg in (*_TOLERANCES, *_PLACES) else _DEFAULT_TOLERANCE
        numbers.append(10.0**-number if word.arg in _PLACES and number is not None and abs(number) < 300 else number)
    if _find_called_name(call).startswith("assert") and len(call.args) >= 3 and (places := _read_number(call.args[2])):
        numbers.append(10.0**-places if abs(places) < 300 and "allclose" not in _find_called_name(call) else places)
    return (
        None
        if None in numbers
        else max((number for number in numbers if number is not None), default=_DEFAULT_TOLERANCE)
    )


def _read_number(expression: ast.expr) -> float | None:
    match expression:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                return None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _read_number(operand)
            return None if number is None else -number
    return None


def _order(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
    """Return the value under test and the expected value, on whichever sides they are written."""
    return (right, left) if is_expected(left, right) else (left, right)


def _assertion(form: AssertionForm, subject: ast.expr, text: str) -> TestAssertion:
    calls = frozenset(_find_called_name(node) for node in ast.walk(subject) if isinstance(node, ast.Call))
    return TestAssertion(form, ast.unparse(subject), text, 0, "", roots=calls - {""}, parts=_parts(subject))


def _parts(subject: ast.expr) -> frozenset[str]:
    """Return the expressions inside another one."""
    inner = (node for node in ast.walk(subject) if isinstance(node, ast.expr) and node is not subject)
    return frozenset(ast.unparse(node) for node in inner if not isinstance(node, ast.Constant))


def _read_cases(iterable: ast.expr) -> tuple[str, ...]:
    """Return the elements of a literal that a loop runs over."""
    if (
        isinstance(iterable, ast.Call)
        and _find_called_name(iterable) == "items"
        and isinstance(iterable.func, ast.Attribute)
    ):
        iterable = iterable.func.value
    if isinstance(iterable, ast.Dict):
        return tuple(
            f"{ast.unparse(key)}: {ast.unparse(value)}"
            for key, value in zip(iterable.keys, iterable.values, strict=True)
            if key
        )
    if isinstance(iterable, ast.List | ast.Tuple | ast.Set):
        return tuple(map(ast.unparse, iterable.elts))
    return ()


def _asserts(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.Call)
        and (_find_called_name(node).startswith(("assert", "fail")) or _find_called_name(node) in _RAISES)
    )


def _fails(body: Sequence[ast.stmt]) -> bool:
    """Return whether a handler lets the test fail: it raises, asserts, or calls `fail`."""
    return any(isinstance(node, ast.Raise) or _asserts(node) for stmt in body for node in ast.walk(stmt))


def _is_wildcard(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in _WILDCARDS


def _find_called_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
