"""Make mutants of the lines of a change: copies of a file with one small mistake each.

A test suite that passes with such a mistake would not notice it. The mistakes are those of `MutantOperator`; the tables
of `check.variants.mutation_languages` say how each language spells them. A mutant has as many lines as the original, so
that a line is the same line in both, and it always parses.

Mutants are chosen in an order that depends on the source alone: one for each line, then a second one for each line, and
so on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Final

from proofstone.check.variants.mutation_languages import (
    DEBUG_GUARD,
    LOGGING_CALL,
    MESSAGE_ARGUMENTS,
    MESSAGE_CALL,
    MUTATION_LANGUAGES,
    UNFINISHED,
    MutationLanguage,
)
from proofstone.sources.grammar_outline import is_test_only
from proofstone.sources.syntax import MAX_SOURCE_BYTES, detect_language
from proofstone.sources.text import TextEdit, apply_edits, parse_valid, split_bom

if TYPE_CHECKING:
    from tree_sitter import Node


class MutantOperator(StrEnum):
    """The mistakes, in the order in which they are tried on a line."""

    CONDITION = "condition negated"
    COMPARISON = "comparison"
    BOUNDARY = "boundary"
    BOOLEAN = "boolean operator"
    ARITHMETIC = "arithmetic"
    RETURN = "return value"
    STATEMENT = "statement removed"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Mutant:
    """One small mistake in one file."""

    path: str
    line: int
    operator: MutantOperator
    edit: TextEdit
    """The bytes of the file that are replaced."""
    before: str
    """The line as it is."""
    after: str
    """The line with the mistake."""
    function: str = ""
    """The function around it; empty if there is none."""
    is_new_function: bool = False
    """Whether the first line of that function is one of the lines that are mutated."""

    def apply(self, content: bytes) -> bytes:
        return apply_edits(content, [self.edit])


def can_mutate(path: str, content: bytes) -> bool:
    """Return whether mutants of a file of this language can be made."""
    language = detect_language(path, content)
    return language in MUTATION_LANGUAGES and not path.endswith(".pyi") and len(content) <= MAX_SOURCE_BYTES


def list_mutants(path: str, content: bytes, lines: Collection[int]) -> tuple[Mutant, ...]:
    """Return the mutants of these lines of a file, in the order of the file."""
    language = detect_language(path, content)
    mark, text = split_bom(content)
    root = parse_valid(text, language) if language is not None and can_mutate(path, content) else None
    if root is None or language is None or not lines:
        return ()
    finder = _Finder(path, mark, text, frozenset(lines), MUTATION_LANGUAGES[language])
    operators = list(MutantOperator)
    return tuple(
        sorted(
            dict.fromkeys(finder.find(root)),
            key=lambda mutant: (mutant.line, operators.index(mutant.operator), mutant.edit.start, mutant.edit.text),
        )
    )


def choose_mutants(mutants: Sequence[Mutant], contents: Mapping[str, bytes], count: int) -> list[Mutant]:
    """Return at most `count` mutants that parse, in the order in which they are tried: the first of every line come
    first. `contents` holds the files."""
    ranks: list[tuple[int, int]] = []
    seen: Counter[tuple[str, int]] = Counter()
    for index, mutant in enumerate(mutants):
        ranks.append((seen[mutant.path, mutant.line], index))
        seen[mutant.path, mutant.line] += 1
    ordered = (mutants[index] for _, index in sorted(ranks))
    return list(islice((mutant for mutant in ordered if _is_valid(mutant, contents[mutant.path])), count))


def _is_valid(mutant: Mutant, content: bytes) -> bool:
    language = detect_language(mutant.path, content)
    return language is not None and parse_valid(split_bom(mutant.apply(content))[1], language) is not None


_WORDS: Final = re.compile(r"\w+\W*\s+\W*\w+")
_NUMBER: Final = re.compile(rb"(?:0|[1-9][0-9_]*)(?:\.[0-9]+)?")
_MAX_TEXT: Final = 160


@dataclass
class _Finder:
    """Finds the places of one file that can be changed."""

    path: str
    mark: bytes
    text: bytes
    lines: frozenset[int]
    language: MutationLanguage
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._starts = [0]
        for line in self.text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def find(self, root: Node) -> Iterator[Mutant]:
        pending = [root]
        while pending:
            node = pending.pop()
            if self._is_silent(node):
                continue
            if node.start_point[0] < max(self.lines) and node.end_point[0] + 1 >= min(self.lines):
                yield from self._mutate(node)
                pending += reversed(node.children)

    # What is left alone

    def _is_silent(self, node: Node) -> bool:
        language = self.language
        if node.type in language.silent or is_test_only(node):
            return True
        if node.type in language.functions:
            return _text(node.child_by_field_name("name")) in language.silent_functions
        if node.type in language.strings and node.parent is not None and node.parent.type in language.containers:
            return True  # a docstring
        if node.type in ("if_statement",) and DEBUG_GUARD.search(_text(node.child_by_field_name("condition"))):
            return True
        if node.type in _CALLS and LOGGING_CALL.fullmatch(_call_name(node)):
            return True
        return node.type == "expression_statement" and self._is_silent_statement(node)

    def _is_silent_statement(self, node: Node) -> bool:
        """Return whether a statement is nothing but a call for logging, a docstring, or a directive."""
        child = node.named_children[0] if node.named_child_count else None
        return child is not None and (
            (child.type in _CALLS and LOGGING_CALL.fullmatch(_call_name(child)) is not None)
            or child.type in self.language.strings
        )

    def _is_message(self, node: Node) -> bool:
        """Return whether a text is written for a person."""
        if _WORDS.search(_text(node)):
            return True
        above = node.parent
        while above is not None and above.type not in self.language.containers:
            if above.type in self.language.raising:
                return True
            if above.type in _CALLS and MESSAGE_CALL.fullmatch(_call_name(above)):
                return True
            if above.type == "keyword_argument" and _text(above.child_by_field_name("name")) in MESSAGE_ARGUMENTS:
                return True
            above = above.parent
        return False

    # What is changed

    def _mutate(self, node: Node) -> Iterator[Mutant]:
        language = self.language
        if node.type in language.operations:
            yield from self._mutate_operation(node)
        if node.type in language.conditions and (condition := self._find_condition(node)) is not None:
            yield from self._negate(condition)
        if node.type in language.returns and node.named_child_count:
            yield from self._replace_result(node.named_children[0])
        body = node.child_by_field_name("body") if node.type in language.expression_bodies else None
        if body is not None and body.type not in language.containers:
            yield from self._replace_result(body)
        if node.parent is not None and node.parent.type in language.containers and node.type in language.removable:
            yield from self._remove(node)
        yield from self._mutate_constant(node)

    def _mutate_operation(self, node: Node) -> Iterator[Mutant]:
        language = self.language
        for child in node.children:
            operator = _OPERATOR_SPACES.sub(" ", _text(child))
            if child.is_named and operator not in language.comparisons:
                continue
            if operator in language.comparisons:
                # Negating the whole condition would be the same mistake: see `_negate`.
                yield from self._replace(child, language.comparisons[operator], MutantOperator.COMPARISON)
                if operator in language.boundaries:
                    yield from self._replace(child, language.boundaries[operator], MutantOperator.BOUNDARY)
            elif operator in language.booleans:
                yield from self._replace(child, language.booleans[operator], MutantOperator.BOOLEAN)
            elif operator in language.arithmetic and not self._joins_texts(node):
                yield from self._replace(child, language.arithmetic[operator], MutantOperator.ARITHMETIC)

    def _joins_texts(self, node: Node) -> bool:
        """Return whether an operand is a text: to subtract it is an error that every test notices."""
        return any(
            child.type in self.language.strings or child.type in ("template_string", "concatenated_string", "list")
            for child in node.named_children
        )

    def _find_condition(self, node: Node) -> Node | None:
        name = self.language.conditions[node.type]
        found = node.child_by_field_name(name)
        if found is None:
            token = next((index for index, child in enumerate(node.children) if child.type == name), None)
            found = node.children[token + 1] if token is not None and token + 1 < node.child_count else None
        while found is not None and found.type == "parenthesized_expression" and found.named_child_count == 1:
            found = found.named_children[0]
        return found

    def _negate(self, condition: Node) -> Iterator[Mutant]:
        language = self.language
        first = condition.children[0] if condition.child_count == 2 else None
        if first is not None and first.type == language.not_token:
            yield from self._replace(first, "", MutantOperator.CONDITION)
        elif condition.type not in ("let_condition", "let_chain", "named_expression") and not self._is_comparison(
            condition
        ):
            before, after = language.negation
            data = self.text[condition.start_byte : condition.end_byte]
            yield from self._replace(condition, (before + data + after).decode("utf-8", "replace"), _CONDITION)

    def _is_comparison(self, node: Node) -> bool:
        """Return whether a condition is one comparison, which has a mutant that negates it already."""
        operators = [child for child in node.children if _OPERATOR_SPACES.sub(" ", _text(child)) in _COMPARED]
        return node.type in self.language.operations and len(operators) == 1 and node.child_count == 3

    def _replace_result(self, value: Node) -> Iterator[Mutant]:
        language = self.language
        if value.type == "expression_list" and value.named_child_count == 1:
            value = value.named_children[0]
        text = _text(value)
        is_literal = value.type in language.truths or value.type in language.numbers or value.type in language.strings
        if is_literal or text in _EMPTY_RESULTS:
            return  # the value of a literal is changed as a constant
        if language.empty_result:
            yield from self._replace(value, language.empty_result.decode(), MutantOperator.RETURN)
            return
        for child in value.named_children if value.type == "expression_list" else [value]:
            if _text(child) == "err":  # the only value whose type is known without a compiler
                yield from self._replace(child, "nil", MutantOperator.RETURN)

    def _remove(self, node: Node) -> Iterator[Mutant]:
        if node.type == "assignment" and not self._sets_state(node):
            return  # without its first assignment a variable is unknown, which every test notices
        child = node.named_children[0] if node.type == "expression_statement" and node.named_child_count else node
        if child.type in _WHOLE_STATEMENTS or UNFINISHED.match(_text(node)):
            return
        newlines = b"\n" * self.text[node.start_byte : node.end_byte].count(b"\n")
        yield from self._replace(node, (self.language.removed + newlines).decode(), MutantOperator.STATEMENT)

    @staticmethod
    def _sets_state(node: Node) -> bool:
        left = node.child_by_field_name("left")
        return left is not None and left.type in ("attribute", "subscript")

    def _mutate_constant(self, node: Node) -> Iterator[Mutant]:
        language = self.language
        if node.type in language.truths:
            yield from self._replace(node, language.truths[node.type], MutantOperator.CONSTANT)
        elif node.type in language.numbers and _NUMBER.fullmatch(node.text or b""):
            value = _text(node).replace("_", "")
            larger = str(float(value) + 1) if "." in value else str(int(value) + 1)
            yield from self._replace(node, larger, MutantOperator.CONSTANT)
        elif node.type in language.strings and not self._is_message(node):
            yield from self._mutate_string(node)

    def _mutate_string(self, node: Node) -> Iterator[Mutant]:
        """Change a text that has no parts to fill in. An empty one gets a letter, and any other becomes empty."""
        contents = [child for child in node.named_children if "start" not in child.type and "end" not in child.type]
        if any(child.type == "interpolation" for child in contents):
            return
        if not contents:
            quoted = _text(node)
            if len(quoted) == 2:
                yield from self._replace(node, f"{quoted[0]}x{quoted[1]}", MutantOperator.CONSTANT)
        elif len(contents) == 1 and b"\n" not in (contents[0].text or b""):
            yield from self._replace(contents[0], "", MutantOperator.CONSTANT)

    def _replace(self, node: Node, replacement: str, operator: MutantOperator) -> Iterator[Mutant]:
        line = node.start_point[0] + 1
        if line not in self.lines:
            return
        edit = TextEdit(node.start_byte, node.end_byte, replacement.encode())
        first, last = self._starts[line - 1], self._starts[min(node.end_point[0] + 1, len(self._starts) - 1)]
        before = self.text[first:last]
        after = before[: edit.start - first] + edit.text + before[edit.end - first :]
        shift = len(self.mark)
        moved = TextEdit(edit.start + shift, edit.end + shift, edit.text)
        function = self._find_function(node)
        name = _text(function.child_by_field_name("name")) if function is not None else ""
        is_new = function is not None and function.start_point[0] + 1 in self.lines
        yield Mutant(self.path, line, operator, moved, _shorten(before), _shorten(after), name, is_new)

    def _find_function(self, node: Node) -> Node | None:
        while node.parent is not None:
            node = node.parent
            if node.type in self.language.functions:
                return node
        return None


_CONDITION: Final = MutantOperator.CONDITION
_CALLS: Final = frozenset(
    {"call", "call_expression", "method_invocation", "macro_invocation", "new_expression", "object_creation_expression"}
)
_WHOLE_STATEMENTS: Final = frozenset(
    {
        "if_expression",
        "match_expression",
        "for_expression",
        "while_expression",
        "loop_expression",
        "return_expression",
        "block",
        "unsafe_block",
    }
)
"""Statements with statements of their own, and returns: they have other mutants."""
_OPERATOR_SPACES: Final = re.compile(r"\s+")
_COMPARED: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "===", "!==", "in", "not in", "is", "is not"})
_EMPTY_RESULTS: Final = frozenset({"None", "undefined", "null", "nil", "()", "void 0", "NotImplemented"})


def _text(node: Node | None) -> str:
    return ((node.text if node else None) or b"").decode("utf-8", "replace")


def _call_name(node: Node) -> str:
    """Return what is called, with its receiver: `self.log.info`, `System.out.println`, `panic!`."""
    if node.type == "macro_invocation":
        return _text(node.child_by_field_name("macro")) + "!"
    function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    if function is not None:
        return _text(function)
    if node.type == "object_creation_expression":
        return _text(node.child_by_field_name("type"))
    receiver, name = (_text(node.child_by_field_name(part)) for part in ("object", "name"))
    return f"{receiver}.{name}" if receiver else name


def _shorten(data: bytes) -> str:
    lines = data.decode("utf-8", "replace").strip().splitlines()
    text = " ".join(part.strip() for part in lines if part.strip())
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
