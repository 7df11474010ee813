"""Parse source files in bounded time, edit them by byte offset, and read JSON with comments.

A grammar's parser recovers from every error by examining again what it has read since. A text that is nothing but
errors takes time that grows with the square of its length, hours for 2 MiB, and nothing can interrupt it. So a longer
text is first parsed in pieces. If a piece is mostly errors (which is possible in honest source if the piece begins
inside of a string), another process tries the whole text with a time limit. That process also tries YAML that may be
nested very deeply: the scanner of that grammar crashes at some depth, and would crash the engine.

Edits use byte offsets that all parsers agree on. In JSON, comments become blanks and line ends stay, so that the
position in an error is the position in the file.
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


PIECE_BYTES: Final = 8 << 10
"""Bytes that are parsed at once whatever they contain. This takes some tenths of a second at worst."""
MAX_PARSE_SECONDS: Final = 10
"""Processor time. Honest source of 2 MiB takes one or two seconds."""
_MAX_ERROR_CHILDREN: Final = 400
"""A piece with more children of errors than this is mostly errors."""
_MAX_LEVELS: Final = 60
"""Maximum number of characters in a line that can nest YAML. The scanner fails at about 200 levels."""
_LEVELS: Final = (b"- ", b"? ", b": ", b"-\t", b"?\t", b":\t")
_TRY_SCRIPT: Final = f"""
import resource, sys
from tree_sitter_language_pack import get_parser
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, ({MAX_PARSE_SECONDS}, {MAX_PARSE_SECONDS}))
get_parser(sys.argv[1]).parse(sys.stdin.buffer.read())
"""
_try_results: dict[tuple[str, str], bool] = {}
"""Results by the digest of the text and its language."""


def parse_source(content: bytes, language: str) -> Node | None:
    """Return the root of the grammar's tree; None if the text is too broken to be parsed in a reasonable time."""
    # Imported here, so that callers that do not parse do not pay for it.
    from tree_sitter_language_pack import get_parser

    parser = get_parser(language)  # type: ignore[arg-type]
    if language == "yaml" and _may_be_deep(content) and not _can_parse(content, language):
        return None
    if len(content) > PIECE_BYTES:
        pieces = (content[offset : offset + PIECE_BYTES] for offset in range(0, len(content), PIECE_BYTES))
        if any(_is_mostly_errors(parser.parse(piece).root_node) for piece in pieces) and not _can_parse(
            content, language
        ):
            return None
    return parser.parse(content).root_node


def _may_be_deep(content: bytes) -> bool:
    """Return whether YAML may be nested deeper than its grammar's scanner supports: beyond that it overruns its
    memory."""
    return any(
        len(line) - len(line.lstrip(b" \t")) > _MAX_LEVELS or sum(map(line.count, _LEVELS)) > _MAX_LEVELS
        for line in content.splitlines()
    )


def _is_mostly_errors(root: Node) -> bool:
    error_children, pending = 0, [root]
    while pending and error_children <= _MAX_ERROR_CHILDREN:
        node = pending.pop()
        if node.is_error:
            error_children += node.child_count
        elif node.has_error:
            pending += node.children
    return error_children > _MAX_ERROR_CHILDREN


def _can_parse(content: bytes, language: str) -> bool:
    """Return whether a process with limited processor time can parse the text. Each text is tried once."""
    key = (hashlib.sha256(content).hexdigest(), language)
    if key not in _try_results:
        _try_results[key] = _try_in_process(content, language)
    return _try_results[key]


def _try_in_process(content: bytes, language: str) -> bool:
    process = subprocess.run(
        [sys.executable, "-I", "-c", _TRY_SCRIPT, language],
        input=content,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return process.returncode == 0


_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)
"""What Python's parser and tokenizer raise for a text that they cannot process."""

_LONE_RETURN = re.compile(rb"\r(?!\n)")


@dataclass(frozen=True)
class TextEdit:
    """Replaces the bytes from `start` up to `end` by `text`. It is an insertion if the two are equal."""

    start: int
    end: int
    text: bytes


def insert_edit(at: int, text: bytes) -> TextEdit:
    """Return an edit that inserts `text`."""
    return TextEdit(at, at, text)


def apply_edits(content: bytes, edits: Iterable[TextEdit]) -> bytes:
    """Apply all edits. At the same offset, edits keep their order."""
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        pieces += [content[at : edit.start], edit.text]
        at = edit.end
    return b"".join((*pieces, content[at:]))


def detect_newline(content: bytes) -> bytes:
    """Return the line ending of a text."""
    return b"\r\n" if b"\r\n" in content else b"\n"


def parse_valid(content: bytes, language: str) -> Node | None:
    """Return the grammar's tree; None if the text is not valid in this language."""
    root = parse_source(content, language)
    return None if root is None or root.has_error else root


def split_bom(content: bytes) -> tuple[bytes, bytes]:
    """Return the byte order mark, or nothing, and the rest: some grammars treat the mark as an error."""
    return (BOM_UTF8, content[len(BOM_UTF8) :]) if content.startswith(BOM_UTF8) else (b"", content)


def parse_python_text(content: bytes) -> PythonText | None:
    """Parse a Python source; return None if this interpreter cannot parse it."""
    if _LONE_RETURN.search(content):
        return None  # `ast` and `bytes.splitlines` count such lines, but `tokenize` does not
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
        comments = tuple(token for token in tokens if token.type == tokenize.COMMENT)
        return PythonText(encoding, text.encode(), _parse_tree(text), comments)
    except _UNREADABLE:
        return None


@dataclass(frozen=True)
class PythonText:
    """A Python source in UTF-8, whatever its own encoding, because `ast` counts offsets in UTF-8."""

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

    def encode_edited(self, data: bytes) -> bytes | None:
        """Return edited text in the file's own encoding; None if it does not compile."""
        text = data.decode()
        try:
            _check_compiles(text)
        except _UNREADABLE:
            return None
        return text.encode(self.encoding)


def _parse_tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are left to linters
        return ast.parse(text)


def _check_compiles(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, "<changed>", "exec", dont_inherit=True)


# Both patterns match strings first and keep them: `//` or `,]` inside a string is text.
_STRING = r'("(?:\\.|[^"\\\n])*+")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/")
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*+[}\]])")


def strip_json_comments(text: str) -> str:
    """Return `text` without comments and trailing commas, with every other character in its place."""
    bare = _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    return _TRAILING_COMMA.sub(lambda m: m[1] or " ", bare)


def parse_jsonc(text: str) -> object:
    """Return the value. Raise `json.JSONDecodeError` with the position, or `RecursionError` if it is nested too
    deeply."""
    value: object = json.loads(strip_json_comments(text))
    return value
