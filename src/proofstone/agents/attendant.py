"""Whoever attends to an agent while it works: shown each turn boundary, and what can be heard within a turn."""

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
"""Says something to an agent in the middle of a turn: the text, and what it asks for. It is recorded; whether anybody
hears it shows by what the agent does."""


@dataclass(frozen=True)
class Known:
    """A boundary that is on record: what was said there, and what was known then."""

    told: Told | None
    standing: Mapping[str, JsonValue]


@dataclass
class Listened:
    """A turn that is listened to."""

    site: Site
    """For the backend: it tells of what it hears."""
    stopped: Fault | None = None
    """Why the turn was ended from here, if it was."""


class Attendant(Protocol):
    """Rules: `speak` decides and remembers; `standing` is everything that it remembers; `recall` takes that back, and
    decides nothing."""

    @property
    def standing(self) -> Mapping[str, JsonValue]: ...

    def speak(self, at: Boundary) -> Aside | Fault | None: ...

    def recall(self, at: Boundary, known: Known) -> Aside | None: ...

    def listening(self, site: Site, aloud: Aloud) -> AbstractContextManager[Listened]:
        """While a turn lasts."""
        ...
