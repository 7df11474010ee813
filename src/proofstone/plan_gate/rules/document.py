"""A Markdown text line by line, with what in it is code, a quotation or a comment told apart from what it says itself.

The stretches come from the reader of plans (`core/plan/tags.py`), which finds them in any text in linear time.

What a plan of any form is made of: its steps, and the places where it says that something is not known yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from proofstone.plans.tags import Span, Tags

_QUOTATION = re.compile(r"[ \t]*>")
_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”")


class Kind(Enum):
    PROSE = "prose"
    FENCE = "fence"
    MARK = "mark"
    """The line that opens or closes a fence."""
    QUOTATION = "quotation"
    """Somebody else's words."""
    COMMENT = "comment"


class Line(NamedTuple):
    number: int
    text: str
    """As written."""
    kind: Kind
    plain: str
    """Without inline code and comments, which are blanked."""
    codes: tuple[str, ...]
    """Its inline code."""

    @property
    def unquoted(self) -> str:
        """What the author says: without words in quotation marks."""
        return _QUOTED.sub(" ", self.plain)


@dataclass(frozen=True)
class Document:
    """One text; line ends are `\\n`."""

    tags: Tags

    @staticmethod
    def of(text: str) -> Document:
        """A plan that stands in a fence as a whole is taken out of it, as its reader does."""
        tags = Tags(text)
        if tags.fences and not tags.tasks and "<task" in text.lower():
            tags = tags.with_fenced_plan()
        return Document(tags)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return tuple(self._lines())

    def between(self, first: int, last: int) -> str:
        """The lines from `first` through `last`, as written."""
        return "\n".join(self.tags.lines[first - 1 : last])

    def on_lines(self, span: Span) -> Iterator[tuple[int, Span]]:
        """A stretch of the text as the lines that it lies on, each with its part of them."""
        for number in range(self.tags.line(span.start), self.tags.line(max(span.end - 1, span.start)) + 1):
            start, length = self.tags.line_starts[number - 1], len(self.tags.lines[number - 1])
            yield number, Span(max(span.start - start, 0), min(span.end - start, length))

    def _lines(self) -> Iterator[Line]:
        kinds = self._fenced()
        hidden: dict[int, list[Span]] = {}
        for whole in self.tags.hidden:
            for number, span in self.on_lines(whole):
                hidden.setdefault(number - 1, []).append(span)
        for at, text in enumerate(self.tags.lines):
            if at not in hidden:
                yield Line(at + 1, text, kinds.get(at) or _kind(text, text, ()), text, ())
                continue
            spans = hidden[at]
            plain = blanked(text, spans)
            codes = tuple(
                text[item.start : item.end].strip("` ") for item in spans if text[item.start : item.end][:1] == "`"
            )
            kind = kinds.get(at) or _kind(text, plain, codes)
            yield Line(at + 1, text, kind, plain, codes if kind is Kind.PROSE else ())

    def _fenced(self) -> dict[int, Kind]:
        kinds: dict[int, Kind] = {}
        for fence in self.tags.fences:
            kinds.update(dict.fromkeys(range(fence.first + 1, fence.last), Kind.FENCE))
            kinds.update({fence.first: Kind.MARK, fence.last: Kind.MARK})
        return kinds


def _kind(text: str, plain: str, codes: tuple[str, ...]) -> Kind:
    if _QUOTATION.match(text):
        return Kind.QUOTATION
    hidden = bool(text.strip()) and not plain.strip()
    return Kind.COMMENT if hidden and not codes else Kind.PROSE


def blanked(text: str, spans: list[Span]) -> str:
    """With a blank for each hidden character, so that everything else keeps its place."""
    kept, position = [], 0
    for span in spans:
        kept += [text[position : span.start], " " * (span.end - span.start)]
        position = span.end
    return "".join([*kept, text[position:]])


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
