"""Find the tags of a plan in text that is Markdown, not XML.

Which `<` begins a tag is decided by name and place: only the names below count, and none of them inside a fenced code
block, inline code or an HTML comment. If such a span closes a tag that it did not open, its marks were paired wrongly
(somebody forgot a fence), and it hides nothing. All functions look positions up in sorted lists, so that the time stays
proportional to the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

PART_NAMES = frozenset(
    (
        *("name", "title", "files", "action", "description", "verify", "verification", "done", "heldout", "must-pass"),
        *("acceptance_criteria", "behavior", "behaviour", "implementation", "read_first", "depends_on", "dependencies"),
        *("what-built", "how-to-verify", "decision", "context", "options", "resume-signal", "instructions"),
    )
)
"""The elements that a task may contain. Any other tag inside a task is text."""

REQUIRED_PARTS = ("name", "files", "action", "verify", "done")

_NAMES = "|".join(sorted((*PART_NAMES, "task"), key=len, reverse=True))
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_NAMES})(?![\w:.-])(?P<attributes>(?:[^<>\"']|\"[^\"<\n]*\"|'[^'<\n]*')*+)>",
    re.IGNORECASE | re.ASCII,
)
_BROKEN_TASK = re.compile(r"^[ \t]*<task(?![\w:.-])", re.IGNORECASE | re.MULTILINE | re.ASCII)
_ATTRIBUTE = re.compile(
    r"(?<![\w:-])([A-Za-z_][\w:-]*+)\s*+=\s*+(?:\"([^\"<\n]*)\"|'([^'<\n]*)'|([^\s\"'<>/]+))", re.ASCII
)
_FENCE_OPENS = re.compile(
    r"^[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]+)?(?:<[A-Za-z][^<>`\n]*>[ \t]*)?(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$"
)
_FENCE_CLOSES = re.compile(r"^[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*(?:<.*)?$")
_MAX_NESTING = 20
_BACKTICKS = re.compile("`+")


MAX_TAGS = 20_000
"""More tags than any plan has. A text with more is refused before it is parsed."""


def has_too_many_tags(text: str) -> bool:
    return sum(1 for _ in islice(_TAG.finditer(text), MAX_TAGS + 1)) > MAX_TAGS


class TextSpan(NamedTuple):
    start: int
    end: int


class Tag(NamedTuple):
    name: str
    """In lower case."""
    is_closing: bool
    is_empty: bool
    """`<done/>`: opened and closed in one tag."""
    span: TextSpan
    attributes: Mapping[str, str]


class Fence(NamedTuple):
    first_line: int
    """Line indexes of the two fence marks."""
    last_line: int


class TaskPart(NamedTuple):
    """A child element of a task."""

    name: str
    content: str
    start: int
    """The position at which the content begins in the text."""
    is_closed: bool


@dataclass(frozen=True)
class TaskElement:
    """A `<task>` element with its parts."""

    attributes: Mapping[str, str]
    span: TextSpan
    parts: tuple[TaskPart, ...]
    is_closed: bool


@dataclass(frozen=True)
class PlanTags:
    """A text and its tags."""

    text: str
    ignored_fence_lines: frozenset[int] = field(default=frozenset())
    """Indexes of lines whose fence marks are ignored."""

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def line_number(self, position: int) -> int:
        """Return the line of a position, counted from 1."""
        return bisect_right(self.line_starts, position)

    def is_hidden(self, position: int) -> bool:
        """Whether the position is inside code or a comment."""
        at = bisect_right(self._hidden_starts, position) - 1
        return at >= 0 and position < self.hidden_spans[at].end

    def unfence_plan(self) -> PlanTags:
        """Return the same text without the fences around tasks: people paste a whole plan in a fence."""
        tasks = [tag.span.start for tag in self._all_tags if tag.name == "task" and not tag.is_closing]
        ignored: set[int] = set()
        for fence in self.fences:
            start, end = self.line_starts[fence.first_line], self.line_starts[fence.last_line]
            if not _has_any_between(tasks, start, end):
                continue
            ignored.update((fence.first_line, fence.last_line))
        return PlanTags(self.text, frozenset(ignored))

    @cached_property
    def tasks(self) -> tuple[TaskElement, ...]:
        return tuple(self._iterate_tasks())

    @cached_property
    def broken_tasks(self) -> tuple[int, ...]:
        """Positions of a `<task` that begins a line and is not a tag: a quote or the `>` is missing."""
        whole = {tag.span.start for tag in self._all_tags}
        starts = (match.end() - len("<task") for match in _BROKEN_TASK.finditer(self.text))
        return tuple(at for at in starts if at not in whole and not self.is_hidden(at) and not self._is_in_task(at))

    @cached_property
    def stray_tags(self) -> tuple[Tag, ...]:
        """The first part tag of each gap between tasks that has parts of two kinds: there, `<task>` is misspelled."""
        gaps: dict[int, list[Tag]] = {}
        for tag in self._part_tags:
            at = tag.span.start
            if tag.name in REQUIRED_PARTS and not tag.is_closing and not self._is_in_task(at) and self._begins_line(at):
                gaps.setdefault(bisect_right(self._task_starts, tag.span.start), []).append(tag)
        return tuple(tags[0] for tags in gaps.values() if len({tag.name for tag in tags}) > 1)

    def read_section(self, name: str) -> str:
        """Return the text between `<name>` and `</name>` outside the tasks, else ""."""
        opening = re.compile(rf"^[ \t]*<{name}>", re.IGNORECASE | re.MULTILINE)
        for match in opening.finditer(self.text):
            if self.is_hidden(match.end() - 1) or self._is_in_task(match.start()):
                continue
            closing = re.compile(rf"</{name}>|^[ \t]*<task\b", re.IGNORECASE | re.MULTILINE)
            end = closing.search(self.text, match.end())
            return self.text[match.end() : end.start() if end else match.end()].strip()
        return ""

    def find_headings(self) -> Iterator[tuple[int, int, str]]:
        """Yield position, level and text of each Markdown heading outside code and tasks."""
        for match in re.finditer(r"^ {0,3}(#{1,6})[ \t]+(\S[^\n]*)$", self.text, re.MULTILINE):
            if not self.is_hidden(match.start(1)) and not self._is_in_task(match.start(1)):
                yield match.start(1), len(match[1]), match[2].rstrip("# \t")

    def _is_in_task(self, position: int) -> bool:
        at = bisect_right(self._task_starts, position) - 1
        return at >= 0 and position < self.tasks[at].span.end

    @cached_property
    def _task_starts(self) -> list[int]:
        return [task.span.start for task in self.tasks]

    @cached_property
    def _all_tags(self) -> tuple[Tag, ...]:
        """All tags, hidden or not."""
        return tuple(_make_tag(match) for match in _TAG.finditer(self.text))

    @cached_property
    def _visible_tags(self) -> tuple[Tag, ...]:
        return tuple(tag for tag in self._all_tags if not self.is_hidden(tag.span.start))

    # -- hidden spans --------------------------------------------------------------------------------------------

    @cached_property
    def hidden_spans(self) -> tuple[TextSpan, ...]:
        """Code and comments, in order, without overlaps."""
        spans = [TextSpan(self.line_starts[f.first_line], self._line_end(f.last_line)) for f in self.fences]
        return tuple(_keep_outermost([*spans, *self._find_comments(), *self._find_inline_code()]))

    @cached_property
    def _hidden_starts(self) -> list[int]:
        return [span.start for span in self.hidden_spans]

    @cached_property
    def fences(self) -> tuple[Fence, ...]:
        """The outermost pairs of fence marks. A mark with a language opens a fence, even within another."""
        pairs: list[Fence] = []
        opened: list[tuple[int, str]] = []
        for line, text in enumerate(self.lines):
            if ("```" not in text and "~~~" not in text) or line in self.ignored_fence_lines:
                continue
            closing, opening = _FENCE_CLOSES.match(text), _FENCE_OPENS.match(text)
            first = _find_opener(opened, closing["mark"]) if closing is not None else None
            if first is not None and self._is_balanced(self.line_starts[first + 1], self.line_starts[line]):
                pairs.append(Fence(first, line))
            elif opening is not None:
                opened.append((line, opening["mark"]))
        return tuple(_keep_outermost_fences(pairs))

    def _find_comments(self) -> Iterator[TextSpan]:
        ends = [match.end() for match in re.finditer("-->", self.text)]
        for match in re.finditer("<!--", self.text):
            at = bisect_left(ends, match.end() + 3)
            if at < len(ends) and self._is_balanced(match.start(), ends[at]):
                yield TextSpan(match.start(), ends[at])

    def _find_inline_code(self) -> Iterator[TextSpan]:
        for line, start in zip(self.lines, self.line_starts, strict=True):
            if "`" in line:
                yield from (span for span in _find_code_spans(line, start) if self._is_balanced(*span))

    def _line_end(self, line: int) -> int:
        """Return the end of a fence's last mark. Text after it on the line is outside the fence."""
        match = _FENCE_CLOSES.match(self.lines[line])
        return self.line_starts[line] + (match.end("mark") if match else len(self.lines[line]))

    def _is_balanced(self, start: int, end: int) -> bool:
        """Whether the span may be hidden: it closes nothing that was opened before it.

        An example may show a lone closing tag. Then the real one follows before the next tag of this name is opened.
        """
        for opened, closed in self._tag_positions:
            first_close, first_open = _find_first_from(closed, start), _find_first_from(opened, start)
            if first_close is None or first_close >= end or (first_open is not None and first_open < first_close):
                continue
            close, reopened = _find_first_from(closed, end), _find_first_from(opened, end)
            within = _count_between(opened, start, end) - _count_between(closed, start, end)
            if within >= 0 or close is None or (reopened is not None and reopened < close):
                return False
        return True

    @cached_property
    def _tag_positions(self) -> tuple[tuple[list[int], list[int]], ...]:
        positions: dict[str, tuple[list[int], list[int]]] = {}
        for tag in self._all_tags:
            if not tag.is_empty:
                positions.setdefault(tag.name, ([], []))[tag.is_closing].append(tag.span.start)
        return tuple(positions.values())

    # -- tasks and their parts -----------------------------------------------------------------------------------

    def _iterate_tasks(self) -> Iterator[TaskElement]:
        bounds = [tag for tag in self._visible_tags if tag.name == "task" and self._is_structure(tag)]
        starts = [tag.span.start for tag in bounds]
        part_starts = [tag.span.start for tag in self._part_tags]
        position = 0
        for opening in bounds:
            if opening.is_closing or opening.span.start < position:
                continue
            begin = opening.span.start
            if opening.is_empty:
                position = opening.span.end
                yield TaskElement(opening.attributes, opening.span, (), is_closed=True)
                continue
            parts, end = self._read_parts(opening.span.end, starts, part_starts)
            at = bisect_left(starts, end)
            closed = at < len(bounds) and bounds[at].is_closing
            position = bounds[at].span.end if closed else end
            yield TaskElement(opening.attributes, TextSpan(begin, position), tuple(parts), closed)

    def _read_parts(self, position: int, bounds: list[int], starts: list[int]) -> tuple[list[TaskPart], int]:
        """Return the parts from `position` on, and their end: the next task tag, else the end of the text."""
        parts: list[TaskPart] = []
        while True:
            limit = _find_first_from(bounds, position)
            at = bisect_left(starts, position)
            if at >= len(starts) or (limit is not None and starts[at] > limit):
                return parts, len(self.text) if limit is None else limit
            tag = self._part_tags[at]
            position = tag.span.end
            if tag.is_closing:
                continue  # it closes nothing that is open, so it is text
            if tag.is_empty:
                parts.append(TaskPart(tag.name, "", tag.span.start, is_closed=True))
                continue
            close = _find_first_from(self._closing_positions.get(tag.name, []), position)
            closed = close is not None and (limit is None or close < limit)
            if close is None or not closed:
                after = next((start for start in starts[at + 1 : at + 50] if self._begins_line(start)), None)
                ends = [end for end in (after, limit) if end is not None]
                close = min(ends, default=len(self.text))
            parts.append(TaskPart(tag.name, self.text[position:close], position, closed))
            position = close

    def _begins_line(self, position: int) -> bool:
        """Whether only blanks or another tag precede the position on its line."""
        line = self.text[self.line_starts[self.line_number(position) - 1] : position].rstrip()
        return not line or line.endswith(">")

    def _is_structure(self, tag: Tag) -> bool:
        """Whether a `<task>` tag bounds a task, rather than being mentioned in a sentence."""
        before = self.text[max(0, tag.span.start - 200) : tag.span.start].rstrip(" \t")
        leads = not before or before[-1] in "\n>"
        if tag.is_closing or not leads or tag.attributes:
            return leads
        after = self.text[tag.span.end : tag.span.end + 200].lstrip(" \t")
        return not after or after[0] in "\n<"

    @cached_property
    def _part_tags(self) -> tuple[Tag, ...]:
        return tuple(tag for tag in self._visible_tags if tag.name != "task")

    @cached_property
    def _closing_positions(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for tag in self._part_tags:
            if tag.is_closing:
                positions.setdefault(tag.name, []).append(tag.span.start)
        return positions


def _make_tag(match: re.Match[str]) -> Tag:
    attribute_text = match["attributes"]
    attributes = {
        name.lower(): next((value for value in values if value), "")
        for name, *values in _ATTRIBUTE.findall(attribute_text)
    }  # fmt: skip
    empty = attribute_text.rstrip().endswith("/") and not match["close"]
    return Tag(match["name"].lower(), bool(match["close"]), empty, TextSpan(*match.span()), attributes)


def _find_code_spans(line: str, start: int) -> Iterator[TextSpan]:
    """Yield inline code: from a run of backticks to the next run of the same length on the line."""
    runs = [match.span() for match in _BACKTICKS.finditer(line)]
    following: dict[int, int] = {}
    partner: list[int | None] = [None] * len(runs)
    for at in range(len(runs) - 1, -1, -1):
        length = runs[at][1] - runs[at][0]
        partner[at] = following.get(length)
        following[length] = at
    at = 0
    while at < len(runs):
        other = partner[at]
        if other is not None:
            yield TextSpan(start + runs[at][0], start + runs[other][1])
            at = other
        at += 1


def _find_opener(opened: list[tuple[int, str]], mark: str) -> int | None:
    """Return the line of the nearest mark that `mark` can close. Marks opened after it were never closed."""
    for at in range(len(opened) - 1, max(len(opened) - _MAX_NESTING, 0) - 1, -1):
        line, other = opened[at]
        if other[0] == mark[0] and len(other) <= len(mark):
            del opened[at:]
            return line
    return None


def _keep_outermost_fences(pairs: list[Fence]) -> Iterator[Fence]:
    end = -1
    for fence in sorted(pairs):
        if fence.first_line > end:
            yield fence
            end = fence.last_line


def _keep_outermost(spans: list[TextSpan]) -> Iterator[TextSpan]:
    end = -1
    for span in sorted(spans):
        if span.start >= end:
            yield span
            end = span.end


def _count_between(positions: list[int], start: int, end: int) -> int:
    return bisect_left(positions, end) - bisect_left(positions, start)


def _has_any_between(positions: list[int], start: int, end: int) -> bool:
    return _count_between(positions, start, end) > 0


def _find_first_from(positions: list[int], start: int) -> int | None:
    at = bisect_left(positions, start)
    return positions[at] if at < len(positions) else None
