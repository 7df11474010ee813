"""The document model: what a page says, without how it is written. Pure.

A report is built once as a `Document`; `documents.markdown_page` and `documents.html` write it. All text in it is raw:
the writers escape it, so that nothing that somebody else wrote becomes markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from proofstone.documents.diff import FileDiff


class Tone(StrEnum):
    """Whether something is good news. The words say so too, for readers without colours."""

    GOOD = "good"
    BAD = "bad"
    UNSURE = "unsure"


class SpanStyle(StrEnum):
    PLAIN = "plain"
    CODE = "code"
    STRONG = "strong"
    FAINT = "faint"


@dataclass(frozen=True)
class StyledText:
    """A piece of text in one style."""

    text: str
    style: SpanStyle = SpanStyle.PLAIN
    tone: Tone | None = None


Inline = tuple[StyledText, ...]
"""Text of one line."""


def inline(*parts: str | StyledText) -> Inline:
    """Return a line of text. Strings are plain."""
    return tuple(StyledText(part) if isinstance(part, str) else part for part in parts if part)


def code(text: str) -> StyledText:
    return StyledText(text, SpanStyle.CODE)


def strong(text: str, tone: Tone | None = None) -> StyledText:
    return StyledText(text, SpanStyle.STRONG, tone)


def faint(text: str) -> StyledText:
    return StyledText(text, SpanStyle.FAINT)


@dataclass(frozen=True)
class Paragraph:
    text: Inline


@dataclass(frozen=True)
class Bullets:
    items: tuple[Inline, ...]


@dataclass(frozen=True)
class Quote:
    """Somebody's own words, line by line."""

    text: str


@dataclass(frozen=True)
class CodeBlock:
    text: str
    language: str = "text"


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Table:
    head: tuple[str, ...]
    rows: tuple[tuple[Inline, ...], ...]


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, which is markup already. Formats without pictures leave it out."""

    svg: str


@dataclass(frozen=True)
class Remark:
    """A remark about one line of a diff, or about a file as a whole if `line` is None."""

    path: str
    line: int | None
    text: Inline
    more: tuple[Inline, ...] = ()
    tone: Tone | None = None


@dataclass(frozen=True)
class DiffBlock:
    """A diff, with remarks below the lines they are about."""

    files: tuple[FileDiff, ...]
    remarks: tuple[Remark, ...] = ()
    left_out: str = ""
    """What is not shown; empty if everything is."""


Block = Paragraph | Bullets | Quote | CodeBlock | Heading | Table | Picture | DiffBlock


@dataclass(frozen=True)
class Section:
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole page: the title, what must be seen first, and the sections. Sections without blocks are left out."""

    title: str
    summary: tuple[Block, ...]
    sections: tuple[Section, ...] = field(default_factory=tuple)


def bullets(items: Iterable[Inline]) -> tuple[Block, ...]:
    """Return a list; nothing without items."""
    found = tuple(items)
    return (Bullets(found),) if found else ()


def table(head: Iterable[str], rows: Iterable[Iterable[str | StyledText | Inline]]) -> tuple[Block, ...]:
    """Return a table; nothing without rows."""
    filled = tuple(tuple(cell if isinstance(cell, tuple) else inline(cell) for cell in row) for row in rows)
    return (Table(tuple(head), filled),) if filled else ()
