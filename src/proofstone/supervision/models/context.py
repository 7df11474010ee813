"""Text that fits into bracketed messages, and the versions of the context of a run.

Text that would break the form of a message is corrected when the value is created, so that every value can be written
and read back. The context is what all agents of a run were told; it has numbered versions.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from proofstone.common.models import FrozenModel

_MAX_CHARACTERS = 20_000
_MAX_BRIEF_CHARACTERS = 2_000
MESSAGE_START = re.compile(
    r"\s*(?P<speaker>(?:\w[\w .+-]{0,60}:\s+){0,2})(?P<mark>[`*]{0,2})\[(?P<tag>[A-Z][A-Z_-]*)\]"
)
"""The start of a line that is, or might be, a message. The name of the speaker may come first."""
_HEADING_OR_FENCE = re.compile(r"\s*(?:#|```)")
_SEPARATORS = re.compile(r"[|,\n\r]|: ")
"""Separators between two names in a list."""


def _join_lines(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value


def _to_phrase(value: object) -> object:
    return _join_lines(value.replace("|", "/")) if isinstance(value, str) else value


def _to_prose(value: object) -> object:
    """Quote lines that would be read as a heading or a message, and strip trailing spaces."""
    if not isinstance(value, str):
        return value
    lines = (line.rstrip() for line in value.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n"))
    return "\n".join(f"> {line}" if _is_markup(line) else line for line in lines)


def _is_markup(line: str) -> bool:
    """Return whether the line is a heading, a message or a fence."""
    return bool(MESSAGE_START.match(line) or _HEADING_OR_FENCE.match(line))


def _strip_backticks(value: object) -> object:
    """Remove the backticks that mark names in prose."""
    return value.replace("`", "") if isinstance(value, str) else value


def _check_name(value: str) -> str:
    if value != " ".join(value.split()) or _SEPARATORS.search(value) or value.endswith(":"):
        raise ValueError("a name in a list is on one line and holds neither `|` nor `,` nor a colon before a space")
    if value.endswith("(NEW)"):
        raise ValueError("`(NEW)` says that a file is new and is no part of its name")
    return value


def _strip_full_stop(value: object) -> object:
    """Remove the final full stop: the line that the text is put on has its own."""
    return value.rstrip(" .") if isinstance(value := _join_lines(value), str) else value


def truncate_line(text: str) -> str:
    """Shorten text from others so that it fits on one line of a message."""
    plain = " ".join(text.split())
    return plain if len(plain) <= _MAX_BRIEF_CHARACTERS else f"{plain[:_MAX_BRIEF_CHARACTERS]} …"


Sentence = Annotated[str, BeforeValidator(_join_lines), Field(min_length=1, max_length=_MAX_CHARACTERS)]
"""Text on one line."""
Phrase = Annotated[str, BeforeValidator(_to_phrase), Field(min_length=1, max_length=_MAX_CHARACTERS)]
"""Text on one line that other fields may follow, so it has no `|`."""
Clause = Annotated[str, BeforeValidator(_strip_full_stop), Field(min_length=1, max_length=_MAX_CHARACTERS)]
"""Text on one line that is followed by a full stop."""
Prose = Annotated[str, BeforeValidator(_to_prose), Field(max_length=_MAX_CHARACTERS)]
"""Text on any number of lines."""
Name = Annotated[
    str, BeforeValidator(_strip_backticks), Field(min_length=1, max_length=500), AfterValidator(_check_name)
]
"""A path, an id or a symbol: a member of a list."""
PhaseNumber = Annotated[int, Field(ge=0, le=10_000)]


VersionNumber = int


class ContextItem(FrozenModel):
    """One statement of the context."""

    key: Name
    text: Sentence
    files: tuple[str, ...] = ()
    """The statement concerns agents that may change one of these files …"""
    criteria: tuple[str, ...] = ()
    """… or must meet one of these criteria. If both are empty, it concerns every agent."""


class ContextSection(FrozenModel):
    name: Name
    items: tuple[ContextItem, ...] = Field(min_length=1)


class ContextVersion(FrozenModel):
    number: VersionNumber = Field(ge=1)
    sections: tuple[ContextSection, ...] = ()

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> ContextVersion:
        keys = [(section.name, item.key) for section in self.sections for item in section.items]
        names = [section.name for section in self.sections]
        if len(set(keys)) < len(keys) or len(set(names)) < len(names):
            raise ValueError("a section name, or a key within a section, occurs more than once")
        return self


class DeltaOperation(StrEnum):
    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"
    REPLACED = "REPLACED"
    """A line of a section that was rewritten as a whole."""


class DeltaLine(FrozenModel):
    operation: DeltaOperation
    section: Name
    key: Name
    text: Sentence
    """The current text, or the last text of a removed item."""


class AckAction(StrEnum):
    CONTINUE = "CONTINUE"
    PAUSE = "PAUSE"
    NEED_CLARIFICATION = "NEED_CLARIFICATION"


class ContextUpdate(FrozenModel):
    """An update of the context that is sent to an agent."""

    before: VersionNumber = Field(ge=0)
    """The version that the agent knew. 0 if it knew none."""
    version: VersionNumber = Field(ge=1)
    lines: tuple[DeltaLine, ...] = ()

    @model_validator(mode="after")
    def _check_order(self) -> ContextUpdate:
        if self.before > self.version:
            raise ValueError(f"GC-v{self.version} does not follow GC-v{self.before}")
        return self


class Ack(FrozenModel):
    """An agent's acknowledgement of a context update."""

    version: VersionNumber = Field(ge=1)
    applied: int = Field(ge=0)
    total: int = Field(ge=0)
    impact: Clause
    action: AckAction


class ContextReader(FrozenModel):
    """An agent as a reader of the context."""

    agent: str
    files: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    knows: VersionNumber = 0
    """The version that was last sent to the agent."""
    acknowledged: VersionNumber = 0
    frozen: bool = False
    """A gate is in progress: the agent's context stays unchanged until it has ended."""
    again: bool = False
    """The agent asked for the whole context, or did not understand the update."""
    sent_whole: bool = False
    """The last update contained the whole context."""
    awaited: int | None = None
    """The number of lines to acknowledge. None if no acknowledgement is awaited."""


class ContextDelivery(FrozenModel):
    """A context update and its receiver."""

    agent: str
    update: ContextUpdate
    whole: Literal["", "gap", "large", "request", "first"] = ""
    """Why the whole context is sent. Empty if only the difference is sent."""
    reverify: bool
    """Whether the agent is to be questioned about the update. False when the same update is repeated."""


class AckOutcome(StrEnum):
    TAKEN = "taken"
    """The agent has applied every line."""
    PAUSED = "paused"
    """The agent waits for an answer: it said so, or it did not apply all of the whole context."""
    SEND_WHOLE = "send_whole"
    """The agent did not understand the update, or did not apply all of it."""
    UNASKED = "unasked"
    """No acknowledgement was awaited, or it names another version."""


class ContextRequirement(FrozenModel):
    """A requirement that was added to a run."""

    number: int
    """Its number in the run, from 1."""
    text: str
    files: tuple[str, ...] = ()
    """It concerns agents that may change one of these files. If empty, it concerns every agent."""
    by: str = "person"

    @property
    def key(self) -> str:
        return f"requirement-{self.number}"
