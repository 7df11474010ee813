"""Backends: whoever can add a turn to a conversation. One Protocol; which one serves a role is the person's choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from proofstone.agents.executors.context import Site
from proofstone.agents.models import Conversation, Fault, Turn


@dataclass(frozen=True)
class Identity:
    """Who stands behind a backend, as far as it can be told without asking."""

    spec: str
    """As the person wrote it: `api:openai:gpt-5`."""
    vendor: str | None = None
    """`openai`; None for programs, people and scripts."""
    model: str | None = None
    answers: Callable[[str, str], bool] = field(default=lambda _role, _asked: True, compare=False, repr=False)
    """Whether it has an answer to what is asked of a role in the middle of its work. Who thinks always has."""


class Backend(Protocol):
    """Rules, for every implementation (`proofstone.testing.backend_conformance` holds them to it):
    - it adds one turn, and carries out no tool itself;
    - it returns a Fault instead of raising, whatever the other side does; an error that the person must put right
      before anything can work (a script without a matching entry) is raised as an InputError;
    - it ends soon after `site.cancel` is set (CANCELLED) or the deadline is over (TIMEOUT), leaving no process behind;
    - what it hears while the turn lasts goes to `site.hear`, piece by piece.
    """

    @property
    def identity(self) -> Identity: ...

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        """`seconds`: how long this turn may take; None: as long as a person needs."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
