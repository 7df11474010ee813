"""Changed expectations in JavaScript and TypeScript tests: node's assert, tape, jest, vitest, chai.

Left as they are: constants, expected exceptions, snapshots, and what a `catch` would take.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofstone.sources.text import Edit, inserted

if TYPE_CHECKING:
    from tree_sitter import Node


FUNCTIONS: Final = frozenset({"arrow_function", "function_expression", "generator_function"})
_TEST_NAMES: Final = frozenset({"test", "it", "specify"})
_VARIANTS: Final = frozenset({"", "only", "each", "concurrent", "sequential", "serial", "test", "it"})

EQUAL: Final = frozenset(
    {
        *("equal", "equals", "eq", "eql", "is", "same", "strictSame"),
        *("strictEqual", "deepEqual", "deepStrictEqual", "deepLooseEqual"),
    }
)
OPPOSITE: Final = {
    "notEqual": "equal",
    "notStrictEqual": "strictEqual",
    "notDeepEqual": "deepEqual",
    "notDeepStrictEqual": "deepStrictEqual",
}
TRUTH: Final = frozenset({"ok", "notOk", "true", "false", "truthy", "falsy", "assert", "isTrue", "isFalse", "isOk"})
BARE: Final = frozenset({"equal", "strictEqual", "deepEqual", "deepStrictEqual"})
"""What is often taken out of node's assert and called without it."""
MATCHERS: Final = frozenset(
    {
        *("toBe", "toEqual", "toStrictEqual", "toContain", "toContainEqual", "toMatchObject", "toHaveLength"),
        *("toHaveBeenCalledWith", "toHaveBeenLastCalledWith", "toBeCloseTo"),
        *("equal", "equals", "eq", "eql", "eqls"),
    }
)
_LEFT_ALONE: Final = re.compile(r"\b(?:rejects?|throws?|toThrow\w*|rejected\w*|\w*Snapshot)\b")
_NESTED: Final = FUNCTIONS | {"function_declaration", "method_definition"}
_ITERATIONS: Final = frozenset({"forEach", "map"})
_RECEIVERS: Final = frozenset({"assert", "t", "chai", "tap"})
_LITERALS: Final = frozenset({"string", "number", "true", "false", "null", "undefined", "regex"})
_BRANCHES: Final = frozenset({"if_statement", "switch_statement", "ternary_expression", "catch_clause"})


def javascript_expectations(
    root: Node, names: Collection[str] | None, word: str, *, typed: bool
) -> tuple[list[Edit], tuple[str, ...]]:
    edits: set[Edit] = set()
    tests: list[str] = []
    for title, callback in javascript_tests(root):
        if names is None or any(name == title or name.endswith((" " + title, ":" + title)) for name in names):
            change = _Change(word, typed)
            if change.test(callback):
                tests.append(title)
            edits.update(change.edits)
    return sorted(edits, key=lambda edit: edit.start), tuple(dict.fromkeys(tests))


def javascript_tests(root: Node) -> Iterator[tuple[str, Node]]:
    """Titles and callbacks, in the order of the file."""
    for call in javascript_calls(root):
        arguments = _arguments(call)
        callback = next((argument for argument in arguments[1:] if argument.type in FUNCTIONS), None)
        if callback is not None and (title := _title(arguments[0])):
            yield title, callback


def javascript_calls(root: Node) -> Iterator[Node]:
    """Calls that make a test: a name and a callback."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        called = node.type == "call_expression" and test_name(node)
        if called and any(argument.type in FUNCTIONS for argument in _arguments(node)[1:]):
            yield node
        waiting += reversed(node.named_children)


def plain_name(call: Node) -> str:
    """The name that a test is made with, if it is called by that name alone."""
    name = text_of(call.child_by_field_name("function"))
    return name if name in _TEST_NAMES else ""


def test_name(call: Node) -> str:
    """`it` for `it(…)`, `it.only(…)` and `it.each(…)(…)`, `test` for `t.test(…)`; empty if it is no call of a test."""
    first, _, rest = text_of(call.child_by_field_name("function")).partition(".")
    variant = re.match(r"\w*", rest)
    if first in _TEST_NAMES:
        return first if not variant or variant[0] in _VARIANTS else ""
    return rest if rest in _TEST_NAMES else ""


def text_of(node: Node | None) -> str:
    return ((node.text if node else None) or b"").decode(errors="replace")


def _title(node: Node) -> str:
    plain = node.type == "string" or (node.type == "template_string" and "${" not in text_of(node))
    return re.sub(r"\\(.)", r"\1", text_of(node)[1:-1]) if plain else ""


def _arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    listed = arguments.named_children if arguments is not None and arguments.type == "arguments" else []
    return [item for item in listed if item.type != "comment"]


@dataclass
class _Change:
    """Collects the edits of one test."""

    word: str
    typed: bool
    edits: list[Edit] = field(default_factory=list)

    def test(self, callback: Node) -> bool:
        """Whether an expectation was changed that the test cannot avoid."""
        certain = False
        waiting = [(callback, True, True)]
        while waiting:
            node, sure, heard = waiting.pop()
            if node.type == "call_expression" and _LEFT_ALONE.search(_last_names(node)):
                continue
            changed = self.expectation(node)
            certain |= changed and sure and (heard or _records(node))
            sure &= node.type not in _BRANCHES
            heard &= node == callback or not _may_swallow(node)
            caught = node.child_by_field_name("body") if _has_catch(node) else None
            waiting += ((child, sure, heard) for child in node.named_children if child != caught and not changed)
        return certain

    def expectation(self, node: Node) -> bool:
        if node.type == "expression_statement":
            said = node.named_children[0]
            return said.type == "member_expression" and self._turn_round(said)
        if node.type != "call_expression":
            return False
        function = node.child_by_field_name("function")
        arguments = _arguments(node)
        if function is None or any(argument.type == "spread_element" for argument in arguments[:2]):
            return False
        if function.type == "member_expression":
            if _expect_call(function) is not None:
                return self._expect(function, arguments)
            called = text_of(function.child_by_field_name("property"))
            return _root(function) in _RECEIVERS and self._assert(function, called, arguments)
        name = text_of(function)
        return (name in BARE or name == "assert") and self._assert(function, name, arguments)

    def _expect(self, function: Node, arguments: list[Node]) -> bool:
        """`expect(a).toBe(b)`, in jest's manner or chai's."""
        matcher = text_of(function.child_by_field_name("property"))
        if matcher in MATCHERS and arguments and _negation(function) is None:
            self._wrap(arguments[0])
            return True
        return self._turn_round(function)

    def _assert(self, function: Node, name: str, arguments: list[Node]) -> bool:
        """`assert.equal(a, b)`, `t.is(a, b)`, `assert(a)`."""
        if not arguments or all(argument.type in _LITERALS for argument in arguments[:2]):
            return False
        if name in EQUAL and len(arguments) >= 2:
            first, second = arguments[:2]
            self._wrap(first if first.type in _LITERALS and second.type not in _LITERALS else second)
        elif name in TRUTH and arguments[0].type not in _LITERALS:
            self._around(arguments[0], b"!(", b")")
        elif name in OPPOSITE and (named := function.child_by_field_name("property")) is not None:
            self.edits.append(Edit(named.start_byte, named.end_byte, OPPOSITE[name].encode()))
        else:
            return False
        return True

    def _turn_round(self, chain: Node) -> bool:
        """Takes `.not` out of a chain that begins with `expect(…)`, or puts it in."""
        call, negation = _expect_call(chain), _negation(chain)
        if call is None or _LEFT_ALONE.search(text_of(chain)[call.end_byte - chain.start_byte :]):
            return False
        if negation is not None:
            dot = negation.prev_sibling
            self.edits.append(Edit(dot.start_byte if dot else negation.start_byte, negation.end_byte, b""))
        else:
            self.edits.append(inserted(call.end_byte, b".not"))
        return True

    def _wrap(self, expected: Node) -> None:
        self._around(expected, f'["{self.word}", ('.encode(), b")] as any" if self.typed else b")]")

    def _around(self, node: Node, before: bytes, after: bytes) -> None:
        self.edits += [inserted(node.start_byte, before), inserted(node.end_byte, after)]


def _chain(node: Node) -> Iterator[Node]:
    """The member expressions of `a.b.c`, from the last, and what the chain begins with."""
    at: Node | None = node
    while at is not None:
        yield at
        at = at.child_by_field_name("object") if at.type == "member_expression" else None


def _expect_call(node: Node) -> Node | None:
    *_, first = _chain(node)
    called = first.child_by_field_name("function") if first.type == "call_expression" else None
    return first if text_of(called) == "expect" else None


def _negation(node: Node) -> Node | None:
    properties = (item.child_by_field_name("property") for item in _chain(node))
    return next((item for item in properties if text_of(item) == "not"), None)


def _root(node: Node) -> str:
    *_, first = _chain(node)
    return text_of(first)


def _last_names(call: Node) -> str:
    """The names of the chain that is called, without what `expect` was given."""
    function = call.child_by_field_name("function")
    if function is None:
        return ""
    return " ".join(text_of(item.child_by_field_name("property")) for item in _chain(function))


def _may_swallow(node: Node) -> bool:
    """Whether it is a function whose exceptions need not reach the test: a handler, or a promise's callback."""
    if node.type not in _NESTED:
        return False
    call = node.parent.parent if node.parent is not None else None
    if call is None or call.type != "call_expression":
        return True
    return not test_name(call) and _ITERATIONS.isdisjoint(_last_names(call).split()[:1])


def _records(node: Node) -> bool:
    """`t.equal(…)`: tape and tap write the failure down instead of throwing."""
    function = node.child_by_field_name("function")
    return function is not None and text_of(function.child_by_field_name("object")) in ("t", "tap")


def _has_catch(node: Node) -> bool:
    return node.type == "try_statement" and node.child_by_field_name("handler") is not None
