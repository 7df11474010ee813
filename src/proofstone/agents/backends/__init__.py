"""Backends: everything that can add a turn to a conversation. The user chooses which backend serves which role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, EditMode, Fault, Turn


@dataclass(frozen=True)
class BackendIdentity:
    """Who is behind a backend, as far as it is known without a request."""

    spec: str
    """The spec as the user wrote it: `api:openai:gpt-5`."""
    vendor: str | None = None
    """`openai`; None for programs, people and scripts."""
    model: str | None = None
    edits: EditMode = "tool"
    """How its agents change files: a small model writes blocks into its text."""
    can_answer: Callable[[str, str], bool] = field(default=lambda _role, _asked: True, compare=False, repr=False)
    """Whether the backend can answer a question that a role is asked in the middle of its work. A model always can."""


class Backend(Protocol):
    """Add turns to a conversation.

    Every implementation follows these rules (`proofstone.testing.backend_conformance` tests them):
    - A backend adds one turn and does not carry out tools itself.
    - It returns a Fault instead of raising, whatever the other side does. An error that the user must fix before
      anything can work (a script without a matching entry) is raised as an InputError.
    - It ends soon after `site.cancel` is set (CANCELLED) or the deadline has passed (TIMEOUT), and leaves no process
      behind.
    - It passes output that arrives during the turn to `site.hear`, piece by piece.
    """

    @property
    def identity(self) -> BackendIdentity: ...

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        """Return the next turn. `seconds` limits how long it may take; None sets no limit, for a person."""
        ...

    def close(self) -> None:
        """Release the resources that the backend holds."""
