"""Split a source file into three texts: code alone, code with its strings, and comments alone.

A comment that explains a rule of the static scan must neither trigger nor hide it. The grammar tells comments and
strings from code. Each text has blanks where the others have content, so that columns agree. Lines are split as by
`str.splitlines`, like the lines that a change added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from proofstone.check.rules.scan_rule import ScanLine
from proofstone.sources.syntax import detect_language
from proofstone.sources.text import parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


SCANNED_LANGUAGES: Final = frozenset({"python", "javascript", "typescript", "tsx", "go", "rust", "java", "ruby"})


class _SpanKind(Enum):
    COMMENT = auto()
    STRING = auto()
    NOTHING = auto()
    """Neither comment nor string nor code: the backslash that joins two lines."""


_SPAN_KINDS: Final[dict[str, _SpanKind]] = {
    **dict.fromkeys(("comment", "line_comment", "block_comment", "html_comment", "hash_bang_line"), _SpanKind.COMMENT),
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
            "uninterpreted",  # the text after __END__
        ),
        _SpanKind.STRING,
    ),
    "line_continuation": _SpanKind.NOTHING,
}
_WHOLE_STRINGS: Final = frozenset({"string", "raw_string_literal", "interpreted_string_literal", "string_literal"})
"""Strings that are blanked as a whole if the grammar does not parse their content."""
# In Python and JavaScript a lone carriage return ends a line, and so a comment. Not all grammars know that.
_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")
_VISIBLE: Final = re.compile("[^\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")

_Span = tuple[int, int, _SpanKind]


def split_views(path: str, content: bytes) -> tuple[ScanLine, ...] | None:
    """Return the lines of a source file; None if the scan cannot read its language."""
    language = detect_language(path, content)
    if language not in SCANNED_LANGUAGES:
        return None
    root = parse_source(_LONE_RETURN.sub(b"\n", content), language)
    if root is None:
        return plain_lines(content)
    full_text = content.decode("utf-8", "surrogateescape")
    code: list[str] = []
    text: list[str] = []
    comment: list[str] = []
    for part, kind in _split_parts(content, full_text, sorted(_find_spans(root), key=_start)):
        blank = _blank(part)
        code.append(part if kind is None else blank)
        text.append(part if kind is None or kind is _SpanKind.STRING else blank)
        comment.append(part if kind is _SpanKind.COMMENT else blank)
    return _build_lines("".join(code), "".join(text), "".join(comment))


def plain_lines(content: bytes) -> tuple[ScanLine, ...]:
    """Return the lines of a file without a grammar. No comments are known, so everything counts as code."""
    full_text = content.decode("utf-8", "surrogateescape")
    return _build_lines(full_text, full_text, _blank(full_text))


def _build_lines(code: str, text: str, comment: str) -> tuple[ScanLine, ...]:
    triples = zip(code.splitlines(), text.splitlines(), comment.splitlines(), strict=True)
    return tuple(ScanLine(number, *texts) for number, texts in enumerate(triples, start=1))


def _blank(part: str) -> str:
    return _VISIBLE.sub(" ", part)


def _start(span: _Span) -> int:
    return span[0]


def _find_spans(root: Node) -> Iterator[_Span]:
    """Return comments and contents of strings, as byte offsets."""
    pending = [root]
    while pending:
        node = pending.pop()
        kind = _SPAN_KINDS.get(node.type)
        if kind is not None:
            yield node.start_byte, node.end_byte, kind
        elif node.child_count:
            pending += node.children
        elif node.type in _WHOLE_STRINGS and node.end_byte - node.start_byte > 2:
            yield node.start_byte + 1, node.end_byte - 1, _SpanKind.STRING


def _split_parts(content: bytes, full_text: str, spans: list[_Span]) -> Iterator[tuple[str, _SpanKind | None]]:
    """Split the file at the spans and return the parts as text."""
    ascii_only = len(content) == len(full_text)
    offset = chars = 0
    for start, end, kind in spans:
        start = max(start, offset)
        if end <= start:
            continue
        for stop, part_kind in ((start, None), (end, kind)):
            size = stop - offset if ascii_only else len(content[offset:stop].decode("utf-8", "surrogateescape"))
            yield full_text[chars : chars + size], part_kind
            offset, chars = stop, chars + size
    yield full_text[chars:], None
