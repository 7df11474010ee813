"""Changes to a text by byte offset, and source files as bytes whose offsets the parsers agree on."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from proofstone.adapters.sources.parsing import parse_source

if TYPE_CHECKING:
    from tree_sitter import Node

_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)
"""What Python's parser and tokenizer raise for a text they cannot take in."""

_LONE_RETURN = re.compile(rb"\r(?!\n)")


@dataclass(frozen=True)
class Edit:
    """`text` in place of the bytes from `start` up to `end`; an insertion where the two are equal."""

    start: int
    end: int
    text: bytes


def inserted(at: int, text: bytes) -> Edit:
    return Edit(at, at, text)


def applied(content: bytes, edits: Iterable[Edit]) -> bytes:
    """The text with all edits made. At one offset, the edit that is named first comes first."""
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces += [content[at : edit.start], edit.text]
        at = edit.end
    return b"".join((*pieces, content[at:]))


def newline_of(content: bytes) -> bytes:
    return b"\r\n" if b"\r\n" in content else b"\n"


def parsed(content: bytes, language: str) -> Node | None:
    """The grammar's tree; None if the text is not in this language."""
    root = parse_source(content, language)
    return None if root is None or root.has_error else root


def without_bom(content: bytes) -> tuple[bytes, bytes]:
    """The mark, or nothing, and the rest: some grammars take the mark for an error."""
    return (BOM_UTF8, content[len(BOM_UTF8) :]) if content.startswith(BOM_UTF8) else (b"", content)


def python_text(content: bytes) -> PythonText | None:
    """None if it is no Python that this interpreter can parse."""
    if _LONE_RETURN.search(content):
        return None  # `ast` and `bytes.splitlines` count such lines, `tokenize` does not
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
        comments = tuple(token for token in tokens if token.type == tokenize.COMMENT)
        return PythonText(encoding, text.encode(), _tree(text), comments)
    except _UNREADABLE:
        return None


@dataclass(frozen=True)
class PythonText:
    """A Python source in UTF-8, whatever its own encoding, because that is what `ast` counts offsets in."""

    encoding: str
    data: bytes
    tree: ast.Module
    _comments: tuple[tokenize.TokenInfo, ...]

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def start(self, node: ast.stmt | ast.expr | ast.keyword) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.stmt | ast.expr) -> int:
        return self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    @property
    def comments(self) -> Iterator[tuple[int, int]]:
        for token in self._comments:
            line, column = token.start
            start = self.offset(line, len(token.line[:column].encode()))
            yield start, start + len(token.string.encode())

    def encoded(self, data: bytes) -> bytes | None:
        """Changed text in the file's own encoding; None if it does not compile."""
        text = data.decode()
        try:
            _compile(text)
        except _UNREADABLE:
            return None
        return text.encode(self.encoding)


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape is the linter's business
        return ast.parse(text)


def _compile(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, "<changed>", "exec", dont_inherit=True)
