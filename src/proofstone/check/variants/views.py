"""A source file in three texts: code alone, code with its strings, and comments alone.

Rules of the static scan must not be set off by a comment that explains them, nor be hidden by one. The grammar says
what is comment and what is string; each text keeps the others' places as blanks, so that columns agree. Lines are
those of `str.splitlines`, as for the lines that a change added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from proofstone.check.rules.scan_rule import Line
from proofstone.sources.syntax import language_of
from proofstone.sources.text import parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


LANGUAGES: Final = frozenset({"python", "javascript", "typescript", "tsx", "go", "rust", "java", "ruby"})


class _Kind(Enum):
    COMMENT = auto()
    STRING = auto()
    NOTHING = auto()
    """Neither, and no code: the backslash that joins two lines."""


_KINDS: Final[dict[str, _Kind]] = {
    **dict.fromkeys(("comment", "line_comment", "block_comment", "html_comment", "hash_bang_line"), _Kind.COMMENT),
    **dict.fromkeys(
        (
            "string_content",
            "string_fragment",
            "multiline_string_fragment",
            "raw_string_literal_content",
            "interpreted_string_literal_content",
            "heredoc_content",
            "escape_sequence",
            "regex_pattern",
            "jsx_text",
            "rune_literal",
            "char_literal",
            "character_literal",
            "uninterpreted",  # what stands after __END__
        ),
        _Kind.STRING,
    ),
    "line_continuation": _Kind.NOTHING,
}
_WHOLE_STRINGS: Final = frozenset({"string", "raw_string_literal", "interpreted_string_literal", "string_literal"})
"""Strings to be blanked as a whole where a grammar does not look into them."""
# Python and JavaScript end a line, and with it a comment, at a lone carriage return too; the grammars do not all.
_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")
_INK: Final = re.compile("[^\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")

_Span = tuple[int, int, _Kind]


def views(path: str, content: bytes) -> tuple[Line, ...] | None:
    """The lines of a source file; None when its language is none that the scan can read."""
    language = language_of(path, content)
    if language not in LANGUAGES:
        return None
    root = parse_source(_LONE_RETURN.sub(b"\n", content), language)
    if root is None:
        return plain(content)
    whole = content.decode("utf-8", "surrogateescape")
    code: list[str] = []
    text: list[str] = []
    comment: list[str] = []
    for part, kind in _parts(content, whole, sorted(_spans(root), key=_start)):
        blank = _blank(part)
        code.append(part if kind is None else blank)
        text.append(part if kind is None or kind is _Kind.STRING else blank)
        comment.append(part if kind is _Kind.COMMENT else blank)
    return _lines("".join(code), "".join(text), "".join(comment))


def plain(content: bytes) -> tuple[Line, ...]:
    """The lines of a file without a grammar: nothing is known to be a comment, so that all of it counts."""
    whole = content.decode("utf-8", "surrogateescape")
    return _lines(whole, whole, _blank(whole))


def _lines(code: str, text: str, comment: str) -> tuple[Line, ...]:
    each = zip(code.splitlines(), text.splitlines(), comment.splitlines(), strict=True)
    return tuple(Line(number, *texts) for number, texts in enumerate(each, start=1))


def _blank(part: str) -> str:
    return _INK.sub(" ", part)


def _start(span: _Span) -> int:
    return span[0]


def _spans(root: Node) -> Iterator[_Span]:
    """Comments and contents of strings, as offsets in bytes."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        kind = _KINDS.get(node.type)
        if kind is not None:
            yield node.start_byte, node.end_byte, kind
        elif node.child_count:
            waiting += node.children
        elif node.type in _WHOLE_STRINGS and node.end_byte - node.start_byte > 2:
            yield node.start_byte + 1, node.end_byte - 1, _Kind.STRING


def _parts(content: bytes, whole: str, spans: list[_Span]) -> Iterator[tuple[str, _Kind | None]]:
    """The file cut at the spans, in characters."""
    ascii_only = len(content) == len(whole)
    at = chars = 0
    for start, end, kind in spans:
        start = max(start, at)
        if end <= start:
            continue
        for stop, what in ((start, None), (end, kind)):
            size = stop - at if ascii_only else len(content[at:stop].decode("utf-8", "surrogateescape"))
            yield whole[chars : chars + size], what
            at, chars = stop, chars + size
    yield whole[chars:], None
