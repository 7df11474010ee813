"""A Markdown text line by line, in which code, quotations and comments are separated from prose; and the steps of a
plan.

The spans come from the parser of plans (`plans.tags`), which finds them in any text in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from proofstone.plans.tags import PlanTags, TextSpan

_QUOTATION = re.compile(r"[ \t]*>")
_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”")


class LineKind(Enum):
    """The kind of a line."""

    PROSE = "prose"
    FENCE = "fence"
    MARK = "mark"
    """The line that opens or closes a fence."""
    QUOTATION = "quotation"
    """Words of somebody else."""
    COMMENT = "comment"


class DocumentLine(NamedTuple):
    """A line of a document."""

    number: int
    text: str
    """As written."""
    kind: LineKind
    prose: str
    """With blanks in place of inline code and comments."""
    inline_codes: tuple[str, ...]
    """The inline code of the line."""

    @property
    def unquoted(self) -> str:
        """The author's own words, without words in quotation marks."""
        return _QUOTED.sub(" ", self.prose)


@dataclass(frozen=True)
class MarkdownDocument:
    r"""A text whose line ends are `\n`."""

    tags: PlanTags

    @staticmethod
    def parse(text: str) -> MarkdownDocument:
        """Parse the text. A plan that is fenced as a whole is unfenced, as the plan parser does."""
        tags = PlanTags(text)
        if tags.fences and not tags.tasks and "<task" in text.lower():
            tags = tags.unfence_plan()
        return MarkdownDocument(tags)

    @cached_property
    def lines(self) -> tuple[DocumentLine, ...]:
        return tuple(self._iterate_lines())

    def text_between(self, first: int, last: int) -> str:
        """Return the lines from `first` through `last`, as written."""
        return "\n".join(self.tags.lines[first - 1 : last])

    def split_by_line(self, span: TextSpan) -> Iterator[tuple[int, TextSpan]]:
        """Split a span of the text by lines, each with its part of the line."""
        for number in range(
            self.tags.line_number(span.start), self.tags.line_number(max(span.end - 1, span.start)) + 1
        ):
            start, length = self.tags.line_starts[number - 1], len(self.tags.lines[number - 1])
            yield number, TextSpan(max(span.start - start, 0), min(span.end - start, length))

    def _iterate_lines(self) -> Iterator[DocumentLine]:
        kinds = self._find_fenced_lines()
        hidden: dict[int, list[TextSpan]] = {}
        for hidden_span in self.tags.hidden_spans:
            for number, span in self.split_by_line(hidden_span):
                hidden.setdefault(number - 1, []).append(span)
        for index, text in enumerate(self.tags.lines):
            if index not in hidden:
                yield DocumentLine(index + 1, text, kinds.get(index) or _find_kind(text, text, ()), text, ())
                continue
            spans = hidden[index]
            plain = blank_spans(text, spans)
            codes = tuple(
                text[span.start : span.end].strip("` ") for span in spans if text[span.start : span.end][:1] == "`"
            )
            kind = kinds.get(index) or _find_kind(text, plain, codes)
            yield DocumentLine(index + 1, text, kind, plain, codes if kind is LineKind.PROSE else ())

    def _find_fenced_lines(self) -> dict[int, LineKind]:
        kinds: dict[int, LineKind] = {}
        for fence in self.tags.fences:
            kinds.update(dict.fromkeys(range(fence.first_line + 1, fence.last_line), LineKind.FENCE))
            kinds.update({fence.first_line: LineKind.MARK, fence.last_line: LineKind.MARK})
        return kinds


def _find_kind(text: str, plain: str, codes: tuple[str, ...]) -> LineKind:
    if _QUOTATION.match(text):
        return LineKind.QUOTATION
    hidden = bool(text.strip()) and not plain.strip()
    return LineKind.COMMENT if hidden and not codes else LineKind.PROSE


def blank_spans(text: str, spans: list[TextSpan]) -> str:
    """Replace each character of the spans by a blank, so that the other characters keep their positions."""
    pieces, position = [], 0
    for span in spans:
        pieces += [text[position : span.start], " " * (span.end - span.start)]
        position = span.end
    return "".join([*pieces, text[position:]])


_MAX_OCCURRENCES = 50
_CONTEXT_LENGTH = 40
"""Characters before and after a text that show whether it is an entry of its own."""
_BEFORE_ENTRY = ("", ":", ";", ">", "-", "+", "•", "]", ",", "|")
_AFTER_ENTRY = ("", ";", "<", ",", "|")
_WORD_CHARACTER = re.compile(r"[\w/.-]")
_CONTINUES = re.compile(r"[\w/-]|\.\w")


@dataclass(frozen=True)
class PlanStep:
    """A task of a PLAN.md, or a step of any other text."""

    name: str
    line: int
    files: tuple[str, ...]
    verify: tuple[str, ...]
    done: tuple[str, ...]
    is_ordered: bool
    """Whether the predecessors of the step are known: they are named, or they follow from the order of the document."""
    is_checkpoint: bool = False
    end: int = 0
    """The last line."""
    text: str = ""
    """The complete text, as written."""
    action: str = ""
    """For a task: its action."""
    waits_for: tuple[int, ...] = ()
    """For other texts: the numbers of the steps that it names as predecessors."""
    number: int = 0
    """The number of the step; 0 if it has none."""
    wave: int = 1
    """Steps of a lower wave come before it."""

    def find_line(self, fragment: str) -> int:
        """Return the line of the step that contains the text, else its first line."""
        needle = next((line.strip() for line in fragment.split("\n") if line not in ("set -e", "{")), "")
        words = needle.split()
        for needle_part in dict.fromkeys((needle, " ".join(words[:6]), " ".join(words[:3]))):
            places = [*islice(_find_occurrences(self.text, needle_part), _MAX_OCCURRENCES)]
            if places:
                at = max(places, key=lambda place: _rate_fit(self.text, place, place + len(needle_part)))
                return self.line + self.text.count("\n", 0, at)
        return self.line


def _find_occurrences(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle) if needle else -1
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def _rate_fit(text: str, start: int, end: int) -> int:
    """Rate an occurrence: 2 for an entry of its own, 1 for whole words, 0 for a part of something longer."""
    before = text[max(0, start - _CONTEXT_LENGTH) : start].rpartition("\n")[2].rstrip(" \t`*_\"'")
    after = text[end : end + _CONTEXT_LENGTH].partition("\n")[0].lstrip(" \t`*_\"'")
    if before[-1:] in _BEFORE_ENTRY and after.rstrip(".")[:1] in _AFTER_ENTRY:
        return 2
    return int(not _WORD_CHARACTER.match(text[max(0, start - 1) : start]) and not _CONTINUES.match(text, end))


@dataclass(frozen=True)
class OpenPoint:
    """An open point of the plan: TBD, ???, "to be decided"."""

    line: int
    text: str
