"""The interface of an attendant, which supervises an agent at each turn boundary and during a turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from proofstone.agents.executors.context import Site
from proofstone.agents.models import Fault, Told
from proofstone.agents.rules.conversation import Aside, Boundary

Aloud = Callable[[str, str], None]
"""Sends an agent a message during a turn: its text, and the question that it asks. The message is recorded; only the
agent's behaviour shows whether it was received."""


@dataclass(frozen=True)
class Known:
    """A turn boundary in the ledger: the message that was sent there, and the attendant's state at that time."""

    told: Told | None
    standing: Mapping[str, JsonValue]


@dataclass
class Listened:
    """A turn that an attendant observes."""

    site: Site
    """The site for the backend. It reports the agent's activity to the attendant."""
    stopped: Fault | None = None
    """Why the attendant stopped the turn, if it did."""


class Attendant(Protocol):
    """Supervises an agent. `speak` decides and updates the state; `standing` is the whole state; `recall` restores the
    state from the ledger and decides nothing."""

    @property
    def standing(self) -> Mapping[str, JsonValue]: ...

    def speak(self, at: Boundary) -> Aside | Fault | None: ...

    def recall(self, at: Boundary, known: Known) -> Aside | None: ...

    def listening(self, site: Site, aloud: Aloud) -> AbstractContextManager[Listened]:
        """Observe the agent during a turn."""
        ...
