"""Format text: counts, slugs, and text by other people made safe for terminals and prompts. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final


def pluralize(number: int, thing: str) -> str:
    """Return the number with its noun: `1 check`, `1,200 checks`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


_TAIL_LINES: Final = 40
_TAIL_CHARS: Final = 3000


def cut_to_tail(text: str) -> str:
    """Return the last lines of a long text; `[...]` marks what was left out."""
    lines = text.rstrip().splitlines()
    tail = "\n".join(lines[-_TAIL_LINES:])
    kept = tail[-_TAIL_CHARS:]
    return kept if len(lines) <= _TAIL_LINES and kept == tail else f"[...]\n{kept}"


_MAX_SLUG_LENGTH = 48


def slugify(text: str) -> str:
    """Return a short name for a branch: lower-case letters, digits and dashes, or `plan` if the text contains none of
    them.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_MAX_SLUG_LENGTH].strip("-") or "plan"


_MAX_BACKTICKS: Final = 80
"""The longest run of backticks that is shown unchanged: the fence around the text is longer still, and appears twice.
"""
_ALLOWED_CHARS: Final = "\n\t\u200c\u200d"
"""Line breaks, tabs, and the joiners that some languages and emoji need."""
_ALLOWED_CATEGORIES: Final = ("Zs", "Cn", "Co")
"""Unicode categories: spaces of other scripts, and characters that only newer Unicode tables know."""


def fence_text(text: str, language: str = "") -> str:
    """Return the text inside a fence that is longer than any fence in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def escape_invisible(text: str) -> str:
    """Return the text with invisible characters escaped.

    A model reads characters that a person does not see: those that reverse the writing direction, move the cursor, or
    have no width.
    """
    plain = text.replace("\n", "").isprintable()  # nearly always true, and much faster than a check of each character
    escaped = text if plain else "\r\n".join("".join(map(_escape_invisible_char, part)) for part in text.split("\r\n"))
    return re.sub(f"`{{{_MAX_BACKTICKS + 1},}}", lambda run: f"[{len(run[0])} backticks]", escaped)


def _escape_invisible_char(char: str) -> str:
    if char.isprintable() or char in _ALLOWED_CHARS or unicodedata.category(char) in _ALLOWED_CATEGORIES:
        return char
    return json.dumps(char)[1:-1]


def escape_control(text: str) -> str:
    r"""Return the text with control characters escaped, except line breaks and tabs, so that `\\x1b[2J` clears no
    screen.
    """
    return "".join(char if char.isprintable() or char in "\n\t" else _escape_control_char(char) for char in text)


def _escape_control_char(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")
