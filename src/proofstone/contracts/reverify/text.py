"""Words that travel on lines with a form of their own.

What would break the form is put right when the value is made, so that every value can be written and read back.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

_LONGEST = 20_000
_BRIEF = 2_000
MESSAGE = re.compile(r"\s*(?P<speaker>(?:\w[\w .+-]{0,60}:\s+){0,2})(?P<mark>[`*]{0,2})\[(?P<tag>[A-Z][A-Z_-]*)\]")
"""The beginning of a line that is a message, or might be: whoever tells of it may name the speaker first."""
_HEADING_OR_FENCE = re.compile(r"\s*(?:#|```)")
_BETWEEN = re.compile(r"[|,\n\r]|: ")
"""What stands between two names in a list."""


def _one_line(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value


def _phrase(value: object) -> object:
    return _one_line(value.replace("|", "/")) if isinstance(value, str) else value


def _prose(value: object) -> object:
    """Lines that would be read as a heading or as a message of their own are quoted. Spaces at a line's end go."""
    if not isinstance(value, str):
        return value
    lines = (line.rstrip() for line in value.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n"))
    return "\n".join(f"> {line}" if _has_form(line) else line for line in lines)


def _has_form(line: str) -> bool:
    """A heading, a message, a fence: at the beginning of a line these mean something."""
    return bool(MESSAGE.match(line) or _HEADING_OR_FENCE.match(line))


def _bare(value: object) -> object:
    """Without the marks that names wear in prose."""
    return value.replace("`", "") if isinstance(value, str) else value


def _name(value: str) -> str:
    if value != " ".join(value.split()) or _BETWEEN.search(value) or value.endswith(":"):
        raise ValueError("a name in a list is on one line and holds neither `|` nor `,` nor a colon before a space")
    if value.endswith("(NEW)"):
        raise ValueError("`(NEW)` says that a file is new and is no part of its name")
    return value


def _whole_words(value: object) -> object:
    """Without the dot behind it: the line it stands on has its own."""
    return value.rstrip(" .") if isinstance(value := _one_line(value), str) else value


def brief(text: str) -> str:
    """What others wrote, as it fits on a line of ours."""
    plain = " ".join(text.split())
    return plain if len(plain) <= _BRIEF else f"{plain[:_BRIEF]} …"


Sentence = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=_LONGEST)]
"""On one line."""
Phrase = Annotated[str, BeforeValidator(_phrase), Field(min_length=1, max_length=_LONGEST)]
"""On one line, and something may follow on it: without the bar that separates fields."""
Clause = Annotated[str, BeforeValidator(_whole_words), Field(min_length=1, max_length=_LONGEST)]
"""On one line, before a full stop."""
Prose = Annotated[str, BeforeValidator(_prose), Field(max_length=_LONGEST)]
"""On as many lines as it takes."""
Name = Annotated[str, BeforeValidator(_bare), Field(min_length=1, max_length=500), AfterValidator(_name)]
"""A path, an id, a symbol: something that stands in a list with others."""
PhaseNumber = Annotated[int, Field(ge=0, le=10_000)]
