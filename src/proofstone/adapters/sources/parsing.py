"""The grammars' parser, kept to work that is in proportion to the text.

A grammar's parser recovers from every error by looking again at what it has gathered since: a text that is nothing but
errors takes time that grows with the square of its length, hours for 2 MiB, and nothing can interrupt it. So a longer
text is looked at in pieces first. Where a piece is mostly errors (as a piece of honest source can be too, if it begins
inside of a string), another process tries the whole text, with a limit on its time. It also tries YAML that may be
nested very deeply: the scanner of that grammar breaks down at some depth, and would take the engine with it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
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
