"""What sets re-verification off, and at which level it begins. One row for each trigger."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.contracts.reverify.ladder import Level, Trigger


class Row(NamedTuple):
    title: str
    level: Level
    when: str


TRIGGERS: Final[Mapping[Trigger, Row]] = MappingProxyType(
    {
        Trigger.SILENCE: Row("silence", Level.PING, "nothing was heard of it for more than 15 minutes"),
        Trigger.STALE_DOCS: Row("stale documents", Level.PING, "its documents were stale twice in a row"),
        Trigger.SCOPE_CHANGE: Row("scope change", Level.QUESTION, "a context update affects its files or criteria"),
        Trigger.MILESTONE: Row("milestone", Level.QUESTION, "it goes from one task to the next, if that is configured"),
        Trigger.LOW_TOOL_USE: Row(
            "low tool use", Level.QUESTION, "past half of the task without one look, where one is required"
        ),
        Trigger.DEVIATION: Row("deviation", Level.ANALYSIS, "it touches undeclared files, or its approach is another"),
        Trigger.RECOVERY: Row("recovery", Level.PING, "the engine was restarted; further up where answers do not fit"),
    }
)
