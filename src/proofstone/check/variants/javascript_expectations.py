"""Change the expectations of JavaScript and TypeScript tests: node's assert, tape, jest, vitest, chai.

Constants, expected exceptions, snapshots and assertions that a `catch` would swallow are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.sources.text import TextEdit, insert_edit

if TYPE_CHECKING:
    from tree_sitter import Node


FUNCTION_NODES: Final = frozenset({"arrow_function", "function_expression", "generator_function"})
_TEST_NAMES: Final = frozenset({"test", "it", "specify"})
_VARIANTS: Final = frozenset({"", "only", "each", "concurrent", "sequential", "serial", "test", "it"})

EQUALITY_METHODS: Final = frozenset(
    {
        *("equal", "equals", "eq", "eql", "is", "same", "strictSame"),
        *("strictEqual", "deepEqual", "deepStrictEqual", "deepLooseEqual"),
    }
)
OPPOSITE_METHODS: Final = {
    "notEqual": "equal",
    "notStrictEqual": "strictEqual",
    "notDeepEqual": "deepEqual",
    "notDeepStrictEqual": "deepStrictEqual",
}
TRUTH_METHODS: Final = frozenset(
    {"ok", "notOk", "true", "false", "truthy", "falsy", "assert", "isTrue", "isFalse", "isOk"}
)
BARE_ASSERTIONS: Final = frozenset({"equal", "strictEqual", "deepEqual", "deepStrictEqual"})
"""Functions of node's assert that are often imported and called by name."""
EXPECT_MATCHERS: Final = frozenset(
    {
        *("toBe", "toEqual", "toStrictEqual", "toContain", "toContainEqual", "toMatchObject", "toHaveLength"),
        *("toHaveBeenCalledWith", "toHaveBeenLastCalledWith", "toBeCloseTo"),
        *("equal", "equals", "eq", "eql", "eqls"),
    }
)
_UNTOUCHED: Final = re.compile(r"\b(?:rejects?|throws?|toThrow\w*|rejected\w*|\w*Snapshot)\b")
_NESTED: Final = FUNCTION_NODES | {"function_declaration", "method_definition"}
_ITERATIONS: Final = frozenset({"forEach", "map"})
RECEIVERS: Final = frozenset({"assert", "t", "chai", "tap"})
_LITERALS: Final = frozenset({"string", "number", "true", "false", "null", "undefined", "regex"})
_BRANCHES: Final = frozenset({"if_statement", "switch_statement", "ternary_expression", "catch_clause"})


def mutate_javascript_expectations(
    root: Node, names: Collection[str] | None, word: str, *, typed: bool
) -> tuple[list[TextEdit], tuple[str, ...]]:
    """Return edits that change the expectations of the named tests, and the tests that must then fail. None stands for
    all tests."""
    edits: set[TextEdit] = set()
    tests: list[str] = []
    for title, callback in find_javascript_tests(root):
        if names is None or any(name == title or name.endswith((" " + title, ":" + title)) for name in names):
            change = _ExpectationEdits(word, typed)
            if change.test(callback):
                tests.append(title)
            edits.update(change.edits)
    return sorted(edits, key=lambda edit: edit.start), tuple(dict.fromkeys(tests))


def find_javascript_tests(root: Node) -> Iterator[tuple[str, Node]]:
    """Return titles and callbacks of the tests, in the order of the file."""
    for call in find_test_calls(root):
        arguments = list_arguments(call)
        callback = next((argument for argument in arguments[1:] if argument.type in FUNCTION_NODES), None)
        if callback is not None and (title := _read_title(arguments[0])):
            yield title, callback


def find_test_calls(root: Node) -> Iterator[Node]:
    """Return the calls that define a test: they have a name and a callback."""
    pending = [root]
    while pending:
        node = pending.pop()
        is_test_call = node.type == "call_expression" and find_test_name(node)
        if is_test_call and any(argument.type in FUNCTION_NODES for argument in list_arguments(node)[1:]):
            yield node
        pending += reversed(node.named_children)


def find_plain_test_name(call: Node) -> str:
    """Return the name of the test function if it is called by that name alone."""
    name = read_node_text(call.child_by_field_name("function"))
    return name if name in _TEST_NAMES else ""


def find_test_name(call: Node) -> str:
    """Return `it` for `it(…)`, `it.only(…)` and `it.each(…)(…)`, and `test` for `t.test(…)`; empty if the call defines
    no test."""
    first, _, rest = read_node_text(call.child_by_field_name("function")).partition(".")
    variant = re.match(r"\w*", rest)
    if first in _TEST_NAMES:
        return first if not variant or variant[0] in _VARIANTS else ""
    return rest if rest in _TEST_NAMES else ""


def read_node_text(node: Node | None) -> str:
    """Return the source text of a node."""
    return ((node.text if node else None) or b"").decode(errors="replace")


def _read_title(node: Node) -> str:
    plain = node.type == "string" or (node.type == "template_string" and "${" not in read_node_text(node))
    return re.sub(r"\\(.)", r"\1", read_node_text(node)[1:-1]) if plain else ""


def list_arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    nodes = arguments.named_children if arguments is not None and arguments.type == "arguments" else []
    return [node for node in nodes if node.type != "comment"]


@dataclass
class _ExpectationEdits:
    """Collects the edits of one test."""

    word: str
    typed: bool
    edits: list[TextEdit] = field(default_factory=list)

    def test(self, callback: Node) -> bool:
        """Return whether an expectation was changed that the test cannot avoid."""
        must_fail = False
        pending = [(callback, True, True)]
        while pending:
            node, is_certain, is_reported = pending.pop()
            if node.type == "call_expression" and _UNTOUCHED.search(_chain_names(node)):
                continue
            changed = self.expectation(node)
            must_fail |= changed and is_certain and (is_reported or _records_failure(node))
            is_certain &= node.type not in _BRANCHES
            is_reported &= node == callback or not _may_swallow(node)
            caught = node.child_by_field_name("body") if _has_catch(node) else None
            pending += (
                (child, is_certain, is_reported) for child in node.named_children if child != caught and not changed
            )
        return must_fail

    def expectation(self, node: Node) -> bool:
        """Change the expectation that a node states, if it states one; return whether it was changed."""
        if node.type == "expression_statement":
            expression = node.named_children[0]
            return expression.type == "member_expression" and self._negate_expect(expression)
        if node.type != "call_expression":
            return False
        function = node.child_by_field_name("function")
        arguments = list_arguments(node)
        if function is None or any(argument.type == "spread_element" for argument in arguments[:2]):
            return False
        if function.type == "member_expression":
            if find_expect_call(function) is not None:
                return self._change_expect(function, arguments)
            method = read_node_text(function.child_by_field_name("property"))
            return find_root_name(function) in RECEIVERS and self._change_assert(function, method, arguments)
        name = read_node_text(function)
        return (name in BARE_ASSERTIONS or name == "assert") and self._change_assert(function, name, arguments)

    def _change_expect(self, function: Node, arguments: list[Node]) -> bool:
        """Change `expect(a).toBe(b)` in the style of jest or chai."""
        matcher = read_node_text(function.child_by_field_name("property"))
        if matcher in EXPECT_MATCHERS and arguments and _find_negation(function) is None:
            self._wrap(arguments[0])
            return True
        return self._negate_expect(function)

    def _change_assert(self, function: Node, name: str, arguments: list[Node]) -> bool:
        """Change `assert.equal(a, b)`, `t.is(a, b)` or `assert(a)`."""
        if not arguments or all(argument.type in _LITERALS for argument in arguments[:2]):
            return False
        if name in EQUALITY_METHODS and len(arguments) >= 2:
            first, second = arguments[:2]
            self._wrap(first if first.type in _LITERALS and second.type not in _LITERALS else second)
        elif name in TRUTH_METHODS and arguments[0].type not in _LITERALS:
            self._around(arguments[0], b"!(", b")")
        elif name in OPPOSITE_METHODS and (property_node := function.child_by_field_name("property")) is not None:
            self.edits.append(
                TextEdit(property_node.start_byte, property_node.end_byte, OPPOSITE_METHODS[name].encode())
            )
        else:
            return False
        return True

    def _negate_expect(self, chain: Node) -> bool:
        """Remove `.not` from a chain that begins with `expect(…)`, or insert it."""
        call, negation = find_expect_call(chain), _find_negation(chain)
        if call is None or _UNTOUCHED.search(read_node_text(chain)[call.end_byte - chain.start_byte :]):
            return False
        if negation is not None:
            dot = negation.prev_sibling
            self.edits.append(TextEdit(dot.start_byte if dot else negation.start_byte, negation.end_byte, b""))
        else:
            self.edits.append(insert_edit(call.end_byte, b".not"))
        return True

    def _wrap(self, expected: Node) -> None:
        self._around(expected, f'["{self.word}", ('.encode(), b")] as any" if self.typed else b")]")

    def _around(self, node: Node, before: bytes, after: bytes) -> None:
        self.edits += [insert_edit(node.start_byte, before), insert_edit(node.end_byte, after)]


def walk_chain(node: Node) -> Iterator[Node]:
    """Return the member expressions of `a.b.c`, the last one first, and then the start of the chain."""
    current: Node | None = node
    while current is not None:
        yield current
        current = current.child_by_field_name("object") if current.type == "member_expression" else None


def find_expect_call(node: Node) -> Node | None:
    *_, first = walk_chain(node)
    function = first.child_by_field_name("function") if first.type == "call_expression" else None
    return first if read_node_text(function) == "expect" else None


def _find_negation(node: Node) -> Node | None:
    properties = (member.child_by_field_name("property") for member in walk_chain(node))
    return next((name for name in properties if read_node_text(name) == "not"), None)


def find_root_name(node: Node) -> str:
    *_, first = walk_chain(node)
    return read_node_text(first)


def _chain_names(call: Node) -> str:
    """Return the names of the chain that is called, without the arguments of `expect`."""
    function = call.child_by_field_name("function")
    if function is None:
        return ""
    return " ".join(read_node_text(member.child_by_field_name("property")) for member in walk_chain(function))


def _may_swallow(node: Node) -> bool:
    """Return whether a node is a function whose exceptions may not reach the test, such as a handler or a promise's
    callback."""
    if node.type not in _NESTED:
        return False
    call = node.parent.parent if node.parent is not None else None
    if call is None or call.type != "call_expression":
        return True
    return not find_test_name(call) and _ITERATIONS.isdisjoint(_chain_names(call).split()[:1])


def _records_failure(node: Node) -> bool:
    """Return whether the call is like `t.equal(…)`: tape and tap record a failure and do not throw."""
    function = node.child_by_field_name("function")
    return function is not None and read_node_text(function.child_by_field_name("object")) in ("t", "tap")


def _has_catch(node: Node) -> bool:
    return node.type == "try_statement" and node.child_by_field_name("handler") is not None
