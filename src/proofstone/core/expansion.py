"""How much a value holds that was read from a text with references in it. Pure.

YAML can name a list once and use it many times, also inside of another: some lines then stand for more values than any
memory holds. Nothing is copied when it is read, but whoever walks through it walks for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MOST_VALUES: Final = 200_000


def is_bounded(value: object, most: int = MOST_VALUES) -> bool:
    """Return whether the value, with every reference written out, holds at most so many values."""
    waiting, seen = [value], 0
    while waiting:
        one = waiting.pop()
        seen += 1
        if isinstance(one, Mapping):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple | set):
            waiting += one
        if seen + len(waiting) > most:
            return False
    return True
