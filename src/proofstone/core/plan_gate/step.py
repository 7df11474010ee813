"""What a plan of any form is made of: its steps, and the places where it says that something is not known yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

_MOST_PLACES = 50
_AROUND = 40
"""Characters before and after a text that say how it stands there."""
_OPENS = ("", ":", ";", ">", "-", "+", "•", "]", ",", "|")
_CLOSES = ("", ";", "<", ",", "|")
_WITHIN = re.compile(r"[\w/.-]")
_GOES_ON = re.compile(r"[\w/-]|\.\w")


@dataclass(frozen=True)
class Step:
    """A task of a PLAN.md, or a step of any other text."""

    name: str
    line: int
    files: tuple[str, ...]
    verify: tuple[str, ...]
    done: tuple[str, ...]
    ordered: bool
    """Whether one knows what it waits for: it is said, or it follows from the order of the document."""
    checkpoint: bool = False
    end: int = 0
    """Its last line."""
    text: str = ""
    """All of it, as written."""
    action: str = ""
    """Of a task: what it is told to do."""
    waits_for: tuple[int, ...] = ()
    """Of other texts: the numbers of the steps that it says it comes after."""
    number: int = 0
    """The one it goes by there; 0: none."""
    wave: int = 1
    """Steps of a lower one come before it."""

    def line_of(self, fragment: str) -> int:
        """Where in it a text stands, as far as it stands there as it was read."""
        needle = next((line.strip() for line in fragment.split("\n") if line not in ("set -e", "{")), "")
        words = needle.split()
        for said in dict.fromkeys((needle, " ".join(words[:6]), " ".join(words[:3]))):
            places = [*islice(_places(self.text, said), _MOST_PLACES)]
            if places:
                at = max(places, key=lambda place: _fit(self.text, place, place + len(said)))
                return self.line + self.text.count("\n", 0, at)
        return self.line


def _places(text: str, said: str) -> Iterator[int]:
    at = text.find(said) if said else -1
    while at >= 0:
        yield at
        at = text.find(said, at + len(said))


def _fit(text: str, start: int, end: int) -> int:
    """How surely it was read here: as an entry of its own, as whole words, or as part of something longer."""
    before = text[max(0, start - _AROUND) : start].rpartition("\n")[2].rstrip(" \t`*_\"'")
    after = text[end : end + _AROUND].partition("\n")[0].lstrip(" \t`*_\"'")
    if before[-1:] in _OPENS and after.rstrip(".")[:1] in _CLOSES:
        return 2
    return int(not _WITHIN.match(text[max(0, start - 1) : start]) and not _GOES_ON.match(text, end))


@dataclass(frozen=True)
class Marker:
    """A place that is still open: TBD, ???, "to be decided"."""

    line: int
    text: str
