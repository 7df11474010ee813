"""The grammars' parser, kept to work that is in proportion to the text.

A grammar's parser recovers from every error by looking again at what it has gathered since: a text that is nothing but
errors takes time that grows with the square of its length, hours for 2 MiB, and nothing can interrupt it. So a longer
text is looked at in pieces first. Where a piece is mostly errors (as a piece of honest source can be too, if it begins
inside of a string), another process tries the whole text, with a limit on its time. It also tries YAML that may be
nested very deeply: the scanner of that grammar breaks down at some depth, and would take the engine with it.

Changes to a text by byte offset, and source files as bytes whose offsets the parsers agree on.

JSON as people write it in configuration: with comments and trailing commas.

Comments become blanks and line ends stay, so that the position in an error is the position in the file.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import subprocess
import sys
import tokenize
import warnings
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node


PIECE: Final = 8 << 10
"""Bytes that are parsed at once whatever they hold: some tenths of a second at worst."""
SECONDS: Final = 10
"""Of the processor. Honest source of 2 MiB takes one or two."""
_MOST_WRONG: Final = 400
"""Children of errors in a piece, above which it is mostly errors."""
_MOST_LEVELS: Final = 60
"""Of what can nest YAML, in a line. The scanner fails at some 200 levels."""
_LEVELS: Final = (b"- ", b"? ", b": ", b"-\t", b"?\t", b":\t")
_TRY: Final = f"""
import resource, sys
from tree_sitter_language_pack import get_parser
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
get_parser(sys.argv[1]).parse(sys.stdin.buffer.read())
"""
_tried: dict[tuple[str, str], bool] = {}
"""By the digest of the text, and its language."""


def parse_source(content: bytes, language: str) -> Node | None:
    """Return the root of the grammar's tree; None if the text is too broken to be parsed in a sensible time."""
    # Imported here: what is not asked about should not pay for it.
    from tree_sitter_language_pack import get_parser

    parser = get_parser(language)  # type: ignore[arg-type]
    if language == "yaml" and _may_be_deep(content) and not _ends(content, language):
        return None
    if len(content) > PIECE:
        pieces = (content[at : at + PIECE] for at in range(0, len(content), PIECE))
        if any(_is_mostly_errors(parser.parse(piece).root_node) for piece in pieces) and not _ends(content, language):
            return None
    return parser.parse(content).root_node


def _may_be_deep(content: bytes) -> bool:
    """Return whether YAML may be nested deeper than its grammar's scanner bears: it writes beyond its own memory."""
    return any(
        len(line) - len(line.lstrip(b" \t")) > _MOST_LEVELS or sum(map(line.count, _LEVELS)) > _MOST_LEVELS
        for line in content.splitlines()
    )


def _is_mostly_errors(root: Node) -> bool:
    wrong, waiting = 0, [root]
    while waiting and wrong <= _MOST_WRONG:
        node = waiting.pop()
        if node.is_error:
            wrong += node.child_count
        elif node.has_error:
            waiting += node.children
    return wrong > _MOST_WRONG


def _ends(content: bytes, language: str) -> bool:
    """Return whether a process that may use so much of the processor comes to the end of the text; tried once."""
    key = (hashlib.sha256(content).hexdigest(), language)
    if key not in _tried:
        _tried[key] = _try(content, language)
    return _tried[key]


def _try(content: bytes, language: str) -> bool:
    tried = subprocess.run(
        [sys.executable, "-I", "-c", _TRY, language],
        input=content,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return tried.returncode == 0


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


# In both, a string is matched first and kept: `//` or `,]` inside one is text.
_STRING = r'("(?:\\.|[^"\\\n])*+")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/")
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*+[}\]])")


def plain_json(text: str) -> str:
    """`text` without comments and trailing commas, every other character where it was."""
    bare = _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    return _TRAILING_COMMA.sub(lambda m: m[1] or " ", bare)


def parse_jsonc(text: str) -> object:
    """The value; raises `json.JSONDecodeError` with the place, or `RecursionError` when nested absurdly."""
    value: object = json.loads(plain_json(text))
    return value
