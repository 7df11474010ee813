"""What all agents of a run were told, in numbered versions, and what differs between two of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from proofstone.contracts.base import Contract
from proofstone.contracts.reverify.text import Clause, Name, Sentence

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
