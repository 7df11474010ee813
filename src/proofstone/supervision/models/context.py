"""Words that travel on lines with a form of their own.

What would break the form is put right when the value is made, so that every value can be written and read back.

What all agents of a run were told, in numbered versions, and what differs between two of them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from proofstone.common.models import Contract

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


VersionNumber = int


class ContextItem(Contract):
    """One thing that holds."""

    key: Name
    text: Sentence
    files: tuple[str, ...] = ()
    """Whom it concerns: whoever may change one of these files …"""
    criteria: tuple[str, ...] = ()
    """… or has to meet one of these criteria. Neither: everybody."""


class ContextSection(Contract):
    name: Name
    items: tuple[ContextItem, ...] = Field(min_length=1)


class ContextVersion(Contract):
    number: VersionNumber = Field(ge=1)
    sections: tuple[ContextSection, ...] = ()

    @model_validator(mode="after")
    def _each_is_there_once(self) -> ContextVersion:
        keys = [(section.name, item.key) for section in self.sections for item in section.items]
        names = [section.name for section in self.sections]
        if len(set(keys)) < len(keys) or len(set(names)) < len(names):
            raise ValueError("a section, and a key within its section, is there only once")
        return self


class Operation(StrEnum):
    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"
    REPLACED = "REPLACED"
    """One of all the lines of a section that was written anew."""


class DeltaLine(Contract):
    operation: Operation
    section: Name
    key: Name
    text: Sentence
    """As it is now; of something that was removed, as it was."""


class Action(StrEnum):
    CONTINUE = "CONTINUE"
    PAUSE = "PAUSE"
    NEED_CLARIFICATION = "NEED_CLARIFICATION"


class ContextUpdate(Contract):
    """What an agent is sent."""

    before: VersionNumber = Field(ge=0)
    """0: it knew none."""
    version: VersionNumber = Field(ge=1)
    lines: tuple[DeltaLine, ...] = ()

    @model_validator(mode="after")
    def _goes_on(self) -> ContextUpdate:
        if self.before > self.version:
            raise ValueError(f"GC-v{self.version} does not follow GC-v{self.before}")
        return self


class Ack(Contract):
    """What an agent says to it."""

    version: VersionNumber = Field(ge=1)
    applied: int = Field(ge=0)
    total: int = Field(ge=0)
    impact: Clause
    action: Action


class Reader(Contract):
    """An agent, as far as the context concerns it."""

    agent: str
    files: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    knows: VersionNumber = 0
    """The version that it was sent last."""
    acknowledged: VersionNumber = 0
    frozen: bool = False
    """A gate is in progress: what it was told stays as it is until that has ended."""
    again: bool = False
    """It asked for the whole of it, or showed that it has not understood what it was sent."""
    sent_whole: bool = False
    """The last thing that it was sent was the whole."""
    awaited: int | None = None
    """Lines that are to be acknowledged; None: nothing is."""


class Sent(Contract):
    """An update, and whom it goes to."""

    agent: str
    update: ContextUpdate
    whole: Literal["", "gap", "large", "request", "first"] = ""
    """Why all of it is sent; empty: only what differs."""
    reverify: bool
    """Whether the agent is to be asked about it: not where it is told the same once more."""


class AckOutcome(StrEnum):
    TAKEN = "taken"
    """It has applied every line."""
    PAUSED = "paused"
    """It waits for a word before it goes on: it says so, or it has not taken in even the whole."""
    SEND_WHOLE = "send_whole"
    """It has not understood, or not taken all of it."""
    UNASKED = "unasked"
    """Nothing was waited for, or it is about another version."""
