"""How many of something, in words. Pure.

A short name for branches, made of a longer text. Pure.

Text of others in what an agent is told: in a fence that it cannot end, with nothing unseen in it. Pure.

Text that somebody else chose, made safe to show.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final


def counted(number: int, thing: str) -> str:
    """`1 check`, `1,200 checks`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


_LONGEST = 48


def slug(text: str) -> str:
    """Lower-case letters, digits and dashes; `plan` where nothing of that kind is in the text."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST].strip("-") or "plan"


_MOST: Final = 80
"""Backticks in a row that are shown as they are: the fence around them is longer still, and stands there twice."""
_KEPT: Final = "\n\t\u200c\u200d"
"""Without the joiners some languages, and emoji, are not what they were."""
_HARMLESS: Final = ("Zs", "Cn", "Co")
"""Spaces of other scripts, and characters that only newer tables know."""


def quoted(text: str, language: str = "") -> str:
    """The text in a fence that is longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def visible(text: str) -> str:
    """The text with what an eye would miss and a model would not written out: what turns the direction of writing
    around, moves the cursor, or is not there at all."""
    plain = text.replace("\n", "").isprintable()  # nearly always, and much faster than to look at each character
    seen = text if plain else "\r\n".join("".join(map(_seen, part)) for part in text.split("\r\n"))
    return re.sub(f"`{{{_MOST + 1},}}", lambda run: f"[{len(run[0])} backticks]", seen)


def _seen(char: str) -> str:
    if char.isprintable() or char in _KEPT or unicodedata.category(char) in _HARMLESS:
        return char
    return json.dumps(char)[1:-1]


def printable(text: str) -> str:
    """`text` with control characters written out, except line breaks and tabs: `\\x1b[2J` clears no screen."""
    return "".join(char if char.isprintable() or char in "\n\t" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")
