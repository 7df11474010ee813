"""The interface of an supervisor, which supervises an agent at each turn boundary and during a turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import EngineMessage, Fault
from proofstone.agents.rules.conversation import Interjection, TurnBoundary

SendDuringTurn = Callable[[str, str], None]
"""Sends an agent a message during a turn: its text, and the question that it asks. The message is recorded; only the
agent's behaviour shows whether it was received."""


@dataclass(frozen=True)
class BoundaryRecord:
    """A turn boundary in the ledger: the message that was sent there, and the supervisor's state at that time."""

    message: EngineMessage | None
    state: Mapping[str, JsonValue]


@dataclass
class TurnObservation:
    """A turn that an supervisor observes."""

    site: ExecutionContext
    """The site for the backend. It reports the agent's activity to the supervisor."""
    stop_fault: Fault | None = None
    """Why the supervisor stopped the turn, if it did."""


class Supervisor(Protocol):
    """Supervises an agent. `interject` decides and updates the state; `state` is the whole state; `restore` restores it
    from the ledger and decides nothing."""

    @property
    def state(self) -> Mapping[str, JsonValue]: ...

    def interject(self, at: TurnBoundary) -> Interjection | Fault | None: ...

    def restore(self, at: TurnBoundary, known: BoundaryRecord) -> Interjection | None: ...

    def observe_turn(self, site: ExecutionContext, aloud: SendDuringTurn) -> AbstractContextManager[TurnObservation]:
        """Observe the agent during a turn."""
        ...
