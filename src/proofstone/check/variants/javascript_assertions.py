"""Read the assertions of JavaScript and TypeScript tests: node's assert, AVA, tape, jest, vitest, chai.

As for Python, constants of a test are replaced by what they hold before assertions are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from proofstone.check.rules.weakened_tests import AssertionForm, TestAssertion, TestBody, TestSource
from proofstone.check.variants.javascript_expectations import (
    BARE_ASSERTIONS,
    EQUALITY_METHODS,
    FUNCTION_NODES,
    RECEIVERS,
    find_expect_call,
    find_javascript_tests,
    find_root_name,
    list_arguments,
    read_node_text,
    walk_chain,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_Form = AssertionForm
_METHOD_FORMS: Final[Mapping[str, AssertionForm]] = {
    **dict.fromkeys((*EQUALITY_METHODS, "partialDeepStrictEqual"), _Form.EQUAL),
    "partialDeepStrictEqual": _Form.PARTIAL,
    **dict.fromkeys(("like", "match", "regex", "include", "includes"), _Form.PARTIAL),
    **dict.fromkeys(("not", "notEqual", "notStrictEqual", "notDeepEqual", "notDeepStrictEqual"), _Form.NOT_EQUAL),
    **dict.fromkeys(("ok", "truthy", "assert", "isOk"), _Form.TRUTHY),
    **dict.fromkeys(("notOk", "falsy"), _Form.FALSY),
    **dict.fromkeys(("throws", "rejects", "throwsAsync"), _Form.RAISES),
    **dict.fromkeys(("instanceOf", "isArray", "isString", "isObject", "isNumber", "isFunction"), _Form.INSTANCE),
    **dict.fromkeys(("exists", "isDefined", "isNotNull"), _Form.PRESENT),
    **dict.fromkeys(("true", "isTrue", "false", "isFalse"), _Form.EQUAL),
}
"""Methods of assertion objects: `assert.equal`, `t.is`."""
_MATCHER_FORMS: Final[Mapping[str, AssertionForm]] = {
    **dict.fromkeys(("toBe", "toEqual", "toStrictEqual", "equal", "equals", "eq", "eql", "eqls"), _Form.EQUAL),
    **dict.fromkeys(("toBeNull", "toBeUndefined", "toBeNaN", "true", "false", "null", "undefined"), _Form.EQUAL),
    **dict.fromkeys(("toBeCloseTo", "closeTo", "approximately"), _Form.APPROXIMATE),
    **dict.fromkeys(("toBeOneOf", "oneOf"), _Form.ONE_OF),
    **dict.fromkeys(("toContain", "toContainEqual", "toMatch", "toMatchObject", "toHaveProperty"), _Form.PARTIAL),
    **dict.fromkeys(("include", "includes", "contain", "match", "string"), _Form.PARTIAL),
    **dict.fromkeys(("toBeGreaterThan", "toBeGreaterThanOrEqual", "above", "least", "gt", "gte"), _Form.BOUND),
    **dict.fromkeys(("toBeLessThan", "toBeLessThanOrEqual", "below", "most", "lt", "lte"), _Form.BOUND),
    **dict.fromkeys(("toBeInstanceOf", "instanceof", "instanceOf", "a", "an", "toBeTypeOf"), _Form.INSTANCE),
    **dict.fromkeys(("toBeDefined", "exist"), _Form.PRESENT),
    **dict.fromkeys(("toBeTruthy", "ok"), _Form.TRUTHY),
    "toBeFalsy": _Form.FALSY,
    **dict.fromkeys(("toThrow", "toThrowError", "throw", "throws"), _Form.RAISES),
    **dict.fromkeys(
        ("toHaveBeenCalledWith", "toHaveBeenLastCalledWith", "toHaveBeenNthCalledWith", "calledWith"), _Form.CALLED_WITH
    ),
    **dict.fromkeys(("toHaveBeenCalled", "toHaveBeenCalledTimes", "called"), _Form.CALLED),
}
"""Matchers of `expect`, of jest and of chai."""
_FIXED_VALUES: Final = {
    **{"true": "true", "isTrue": "true", "false": "false", "isFalse": "false"},
    **{"toBeNull": "null", "null": "null", "toBeUndefined": "undefined", "undefined": "undefined", "toBeNaN": "NaN"},
}
"""The value that a matcher without an argument compares with."""
_UPPER: Final = frozenset({"toBeLessThan", "toBeLessThanOrEqual", "below", "most", "lt", "lte"})
_INCLUDED: Final = frozenset({"toBeLessThanOrEqual", "toBeGreaterThanOrEqual", "most", "least", "lte", "gte"})
_WILDCARD: Final = re.compile(r"\bexpect\s*\.\s*(?:any|anything|objectContaining|arrayContaining|stringContaining)\b")
_CHAIN_WORDS: Final = frozenset({"to", "be", "been", "is", "that", "have", "has", "and", "with", "deep", "not"})
_EXCEPTION_TYPE: Final = re.compile(r"(?:\w+\.)*[A-Z]\w*")
_DEFAULT_DIGITS: Final = 2
_LONGEST_TEXT: Final = 600
_DEEPEST: Final = 5
_LITERALS: Final = frozenset({"string", "number", "true", "false", "null", "undefined", "regex"})


def list_javascript_tests(root: Node) -> dict[str, TestSource]:
    """Return the tests of a file by name. A title that occurs again gets a number."""
    tests: dict[str, TestSource] = {}
    for title, callback in find_javascript_tests(root):
        name = " > ".join((*_find_suites(callback), title))
        if name in tests:
            name = f"{name} #{sum(other.startswith(name) for other in tests) + 1}"
        call = callback.parent.parent if callback.parent else None
        tests[name] = TestSource(read_node_text(call or callback), partial(_read_test, name, callback))
    return tests


def _find_suites(callback: Node) -> list[str]:
    """Return the titles of the `describe` blocks around a test."""
    titles: list[str] = []
    call = callback.parent.parent if callback.parent else None
    node = call.parent if call else None
    while node is not None:
        if node.type == "call_expression" and read_node_text(node.child_by_field_name("function")).startswith(
            ("describe", "suite", "context")
        ):
            arguments = list_arguments(node)
            titles.append(read_node_text(arguments[0])[1:-1] if arguments else "")
        node = node.parent
    return titles[::-1]


def _read_test(name: str, callback: Node) -> TestBody:
    reader = _ScriptAssertionReader(_find_constants(callback))
    reader.read(callback.child_by_field_name("body") or callback, (), None)
    return TestBody(
        name=name,
        line=callback.start_point[0] + 1,
        assertions=tuple(reader.assertions),
        calls=frozenset((*_walk_calls(callback), *_find_macros(callback))),
        cases=_read_table(callback),
        setup="\n".join(_list_setup(callback)),
    )


def _find_macros(callback: Node) -> Iterator[str]:
    """Yield the functions that a test is given by name: AVA calls them with the callback."""
    for argument in callback.parent.named_children if callback.parent else ():
        if argument.type == "identifier":
            yield read_node_text(argument)


def _walk_calls(node: Node) -> Iterator[str]:
    for part in _walk(node):
        if part.type == "throw_statement":
            yield "throw"
        if part.type == "call_expression" and (function := part.child_by_field_name("function")) is not None:
            yield read_node_text(function.child_by_field_name("property") or function)


def _walk(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending += reversed(current.children)


def _read_table(callback: Node) -> tuple[str, ...]:
    """Return the rows of `it.each([…])`."""
    call = callback.parent.parent if callback.parent else None
    table = call.child_by_field_name("function") if call is not None else None
    if table is None or table.type != "call_expression":
        return ()
    arguments = list_arguments(table)
    if len(arguments) != 1 or arguments[0].type != "array":
        return ()
    return tuple(_normalize(element, {}) for element in arguments[0].named_children if element.type != "comment")


def _find_constants(callback: Node) -> dict[str, Node]:
    """Return the constants of a test that are declared once, with their values."""
    values: dict[str, Node] = {}
    counts: dict[str, int] = {}
    for node in _walk(callback):
        if node.type == "variable_declarator" and read_node_text(node.parent).startswith("const"):
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None and name.type == "identifier":
                counts[read_node_text(name)] = counts.get(read_node_text(name), 0) + 1
                if value is not None and value.type not in FUNCTION_NODES:
                    values[read_node_text(name)] = value
    return {name: value for name, value in values.items() if counts[name] == 1}


def _list_setup(callback: Node) -> Iterator[str]:
    """Yield what variables are set to, and what loops run over."""
    for node in _walk(callback):
        if node.type in ("variable_declarator", "assignment_expression", "augmented_assignment_expression"):
            yield _normalize(node, {})
        elif node.type == "for_in_statement" and (iterable := node.child_by_field_name("right")) is not None:
            yield _normalize(iterable, {})


def _normalize(node: Node, constants: Mapping[str, Node], depth: int = 0) -> str:
    """Return the source of a node with single spaces, one kind of quotes, no comments and constants replaced."""
    if node.type == "comment":
        return ""
    if node.type == "await_expression" and node.named_children:
        return _normalize(node.named_children[0], constants, depth)
    if node.type == "identifier" and depth < _DEEPEST and (value := constants.get(read_node_text(node))) is not None:
        inner = {name: held for name, held in constants.items() if name != read_node_text(node)}
        text = _normalize(value, inner, depth + 1)
        return text if len(text) <= _LONGEST_TEXT else read_node_text(node)
    if node.type == "string":
        return f"'{read_node_text(node)[1:-1]}'"
    if not node.children:
        return read_node_text(node)
    parts = [_normalize(child, constants, depth) for child in node.children]
    text = " ".join(part for part in parts if part)
    return re.sub(r" ?([.()\[\]!]) ?", r"\1", re.sub(r",? ?([)\]}])|;$", r"\1", text))


@dataclass
class _ScriptAssertionReader:
    """Collects the assertions of one test."""

    constants: Mapping[str, Node]
    assertions: list[TestAssertion] = field(default_factory=list)

    def read(self, node: Node, guards: tuple[str, ...], cases: tuple[str, ...] | None) -> None:
        """Read the assertions below a node."""
        if (found := self.read_assertion(node)) is not None:
            self.assertions.append(
                replace(
                    found,
                    line=node.start_point[0] + 1,
                    source=" ".join(read_node_text(node).split()),
                    guards=guards,
                    cases=cases,
                )
            )
            return
        for child in node.named_children:
            if child.type == "return_statement" and not child.named_children:
                return  # nothing after it is reached
            self.read(child, self._add_guards(node, child, guards), self._find_cases(node, child, cases))

    def _add_guards(self, node: Node, child: Node, guards: tuple[str, ...]) -> tuple[str, ...]:
        if node.type == "if_statement" and child != node.child_by_field_name("condition"):
            alternative = node.child_by_field_name("alternative")
            branches = [node.child_by_field_name("consequence"), alternative]
            if alternative is not None and all(branch and self._has_assertion(branch) for branch in branches):
                return guards
            condition = read_node_text(node.child_by_field_name("condition"))
            return (*guards, f"{'unless' if child == alternative else 'if'} {' '.join(condition.split())}")
        if node.type == "try_statement" and child == node.child_by_field_name("body"):
            handler = node.child_by_field_name("handler")
            if handler is not None and not self._has_assertion(handler) and "throw" not in read_node_text(handler):
                return (*guards, "as long as no handler swallows it")
        return guards

    def _find_cases(self, node: Node, child: Node, cases: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Return the elements that a loop runs over; none are known if the loop is over no literal."""
        if node.type == "for_in_statement" and child == node.child_by_field_name("body"):
            return self._read_elements(node.child_by_field_name("right")) or cases or ()
        if node.type in ("for_statement", "while_statement"):
            return cases or ()
        if node.type == "call_expression" and child == node.child_by_field_name("arguments"):
            function = node.child_by_field_name("function")
            if function is not None and read_node_text(function.child_by_field_name("property")) in ("forEach", "map"):
                return self._read_elements(function.child_by_field_name("object")) or cases or ()
        return cases

    def _read_elements(self, node: Node | None) -> tuple[str, ...]:
        if node is not None and node.type == "identifier":
            node = self.constants.get(read_node_text(node), node)
        if node is None or node.type != "array":
            return ()
        return tuple(self.normalize(element) for element in node.named_children if element.type != "comment")

    def _has_assertion(self, node: Node) -> bool:
        return any(part.type == "call_expression" and self.read_assertion(part) is not None for part in _walk(node))

    def read_assertion(self, node: Node) -> TestAssertion | None:
        """Return the assertion that a node states, if it states one."""
        if node.type == "expression_statement" and node.named_children:
            expression = node.named_children[0]
            if expression.type == "member_expression" and find_expect_call(expression) is not None:
                return self._read_expect(expression, [])
            return None
        if node.type != "call_expression" or (function := node.child_by_field_name("function")) is None:
            return None
        arguments = list_arguments(node)
        if function.type == "member_expression":
            if find_expect_call(function) is not None:
                return self._read_expect(function, arguments)
            method = read_node_text(function.child_by_field_name("property"))
            is_known = find_root_name(function) in RECEIVERS and method in _METHOD_FORMS
            return self._read_method(method, arguments) if is_known else None
        name = read_node_text(function)
        if name in BARE_ASSERTIONS or name == "assert":
            return self._read_method("ok" if name == "assert" else name, arguments)
        return None

    def _read_expect(self, chain: Node, arguments: Sequence[Node]) -> TestAssertion | None:
        """Read `expect(a).toBe(b)` in the style of jest or chai."""
        call = find_expect_call(chain)
        names = [read_node_text(member.child_by_field_name("property")) for member in walk_chain(chain)]
        matcher = next((name for name in names if name and name not in _CHAIN_WORDS), "")
        if call is None or not list_arguments(call) or not matcher:
            return None
        subject = list_arguments(call)[0]
        is_truth = matcher in ("toBeTruthy", "ok", "true") or read_node_text(next(iter(arguments), None)) == "true"
        if is_truth and "not" not in names and (condition := self._read_condition(subject)) is not None:
            return condition
        if matcher == "toContain" and subject.type == "array" and arguments and "not" not in names:
            return self._read_one_of(arguments[0], subject)
        modifiers = " ".join(sorted({"resolves", "rejects"} & set(names)))
        found = self._build(_MATCHER_FORMS.get(matcher, _Form.OTHER), subject, matcher, arguments, modifiers)
        return _negate(found, matcher) if "not" in names and found is not None else found

    def _read_method(self, method: str, arguments: Sequence[Node]) -> TestAssertion | None:
        """Read `assert.equal(a, b)`, `t.is(a, b)` or `assert(a)`."""
        if not arguments:
            return None
        form = _METHOD_FORMS[method]
        subject, *rest = arguments
        is_truth = form is _Form.TRUTHY or method in ("true", "isTrue")
        if is_truth and (condition := self._read_condition(subject)) is not None:
            return condition
        if form in (_Form.TRUTHY, _Form.FALSY, _Form.PRESENT) or method in _FIXED_VALUES:
            rest = []  # what follows is a message
        elif form is _Form.EQUAL and rest and subject.type in _LITERALS and rest[0].type not in _LITERALS:
            subject, rest = rest[0], [subject]
        limit = 2 if form is _Form.RAISES else 1
        return self._build(form, subject, method, rest[:limit], "")

    def _read_condition(self, node: Node) -> TestAssertion | None:
        """Read a condition that must be true: `a === b`, `[…].includes(a)`, or several joined by `||`."""
        node = _unwrap(node)
        if node.type == "binary_expression" and read_node_text(node.child_by_field_name("operator")) == "||":
            sides = [node.child_by_field_name(name) for name in ("left", "right")]
            options = [self._read_condition(side) for side in sides if side is not None]
            found = [option for option in options if option is not None]
            if len(found) < 2 or len({option.subject for option in found}) > 1:
                return None
            accepted = tuple(value for option in found for value in option.expected)
            text = f"{found[0].subject} {_Form.ONE_OF} {', '.join(accepted)}"
            return replace(found[0], form=_Form.ONE_OF, text=text, expected=accepted)
        if (comparison := _read_equality(node)) is not None:
            return self._build(_Form.EQUAL, comparison[0], "", comparison[1:], "")
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        values = function.child_by_field_name("object") if function is not None else None
        if values is None or values.type != "array" or not read_node_text(function).endswith(".includes"):
            return None
        return self._read_one_of(list_arguments(node)[0], values) if list_arguments(node) else None

    def _read_one_of(self, subject: Node, values: Node) -> TestAssertion | None:
        found = self._build(_Form.ONE_OF, subject, "", [values], "")
        return None if found is None else replace(found, text=f"{found.subject} {_Form.ONE_OF} {found.expected}")

    def _build(
        self, form: AssertionForm, subject: Node, matcher: str, arguments: Sequence[Node], modifiers: str
    ) -> TestAssertion | None:
        value = f"{modifiers} {self.normalize(subject)}".strip()
        expected = tuple(map(self.normalize, arguments))
        if matcher in _FIXED_VALUES and not expected:
            expected = (_FIXED_VALUES[matcher],)
        is_constant = subject.type in _LITERALS and not any(argument.type not in _LITERALS for argument in arguments)
        if is_constant:
            return None  # true or false whatever the code under test does
        if form is _Form.EQUAL and expected[:1] == (value,):
            form = _Form.ITSELF
        if form is _Form.ONE_OF and arguments and arguments[0].type == "array":
            expected = self._read_elements(arguments[0])
        if form is _Form.CALLED and matcher == "toHaveBeenCalledTimes":
            form = _Form.OTHER
        if form is _Form.RAISES:
            expected = tuple(name for argument in arguments for name in self._read_exception(argument))
        parts = frozenset(self.normalize(part) for part in _walk(subject) if part.is_named and part != subject)
        return TestAssertion(
            form=form,
            subject=value,
            text=f"{value} {form if form is not _Form.OTHER else matcher} {', '.join(expected)}".strip(),
            line=0,
            source="",
            expected=expected,
            tolerance=_read_tolerance(matcher, arguments) if form is _Form.APPROXIMATE else None,
            bound=_read_bound(matcher, arguments) if form is _Form.BOUND else None,
            has_wildcard=bool(_WILDCARD.search(" ".join(expected))),
            roots=frozenset(_walk_calls(subject)),
            parts=parts,
            is_local=subject.type == "identifier" and value == read_node_text(subject),
        )

    def _read_exception(self, node: Node) -> Iterator[str]:
        """Yield the type of an expected exception by its own name, and everything else as a pattern."""
        if node.type == "object":
            for pair in node.named_children:
                key, value = (pair.child_by_field_name(name) for name in ("key", "value"))
                if read_node_text(key) == "instanceOf" and value is not None:
                    yield read_node_text(value).rpartition(".")[2]
                else:
                    yield f"match={self.normalize(pair)}"
            return
        text = self.normalize(node)
        yield text.rpartition(".")[2] if _EXCEPTION_TYPE.fullmatch(text) else f"match={text}"

    def normalize(self, node: Node) -> str:
        return _normalize(node, self.constants)


def _unwrap(node: Node) -> Node:
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    return node


def _read_equality(node: Node) -> tuple[Node, Node] | None:
    """Return both sides of `a === b`, the value under test first."""
    node = _unwrap(node)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = read_node_text(node.child_by_field_name("operator"))
    if node.type != "binary_expression" or operator not in ("===", "==") or left is None or right is None:
        return None
    return (right, left) if left.type in _LITERALS and right.type not in _LITERALS else (left, right)


def _negate(assertion: TestAssertion, matcher: str) -> TestAssertion:
    """Return `expect(…).not.…`."""
    forms = {_Form.EQUAL: _Form.NOT_EQUAL, _Form.TRUTHY: _Form.FALSY, _Form.FALSY: _Form.TRUTHY}
    form = forms.get(assertion.form, _Form.OTHER)
    if assertion.form is _Form.EQUAL and assertion.expected[:1] in (("null",), ("undefined",)):
        form = _Form.PRESENT
    return replace(assertion, form=form, text=f"not {assertion.text} {matcher}")


def _read_tolerance(matcher: str, arguments: Sequence[Node]) -> float | None:
    number = _read_number(arguments[1]) if len(arguments) > 1 else float(_DEFAULT_DIGITS)
    if number is None or matcher != "toBeCloseTo":
        return number
    return 10.0**-number / 2 if abs(number) < 300 else None


def _read_bound(matcher: str, arguments: Sequence[Node]) -> tuple[str, float] | None:
    number = _read_number(arguments[0]) if arguments else None
    if number is None:
        return None
    wider = 1e-9 if matcher in _INCLUDED else 0.0
    return ("<", number + wider) if matcher in _UPPER else (">", number - wider)


def _read_number(node: Node) -> float | None:
    try:
        return float(read_node_text(node).replace("_", ""))
    except ValueError:
        return None
