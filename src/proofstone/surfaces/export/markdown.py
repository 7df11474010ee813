"""Markdown as the pages have it: lines of one width, in which code and links stay whole."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

_WIDTH: Final = 118
_WHOLE: Final = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`")
_NO_BREAK: Final = "\x00"


def paragraph(text: str) -> str:
    return _wrapped(text, "", "")


def item(mark: str, text: str) -> str:
    return _wrapped(text, mark, " " * (2 if mark.startswith("-") else len(mark)))


def numbered(texts: Iterable[str]) -> str:
    return "\n".join(item(f"{number}. ", text) for number, text in enumerate(texts, 1))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _wrapped(text: str, first: str, rest: str) -> str:
    held = _WHOLE.sub(lambda found: found[0].replace(" ", _NO_BREAK), text)
    filled = textwrap.fill(
        held, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return filled.replace(_NO_BREAK, " ")
