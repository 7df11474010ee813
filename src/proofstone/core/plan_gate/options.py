"""What an answer to a question with options means. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_MOST_DIGITS: Final = 3


def chosen(text: str, options: Sequence[str]) -> str | None:
    """The option that is named by its number, from 1; None: there is none of that number. Anything else is the person's
    own words."""
    said = text.strip()
    if not options or not said.isdecimal():
        return said
    number = int(said) if len(said) <= _MOST_DIGITS else 0
    return options[number - 1] if 0 < number <= len(options) else None
