"""The `api:` backend: a turn is one request to a provider.

A connection is opened with the first turn. Nothing of a provider's library is imported before that.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.api import event_loop
from proofstone.agents.backends.api.model_choice import ModelChoice
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.common.models import Usage

if TYPE_CHECKING:
    from proofstone.agents.backends.api.session import ApiSession


class ApiBackend:
    """A backend whose turns are requests to one model of a provider."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._lock = threading.Lock()
        self._open: tuple[ApiSession, event_loop.EventLoop] | None = None

    @property
    def identity(self) -> BackendIdentity:
        choice = self._choice
        return BackendIdentity(choice.spec, vendor=choice.vendor, model=choice.model, edits=choice.edits)

    @property
    def choice(self) -> ModelChoice:
        """The model, with its settings."""
        return self._choice

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        outcome: Turn | Fault | None = None
        if not site.cancel.is_set():
            session, events = self._ensure_open()

            def pass_on(piece: str) -> None:
                if isinstance(piece, event_loop.ProgressLine):
                    site.on_progress(piece)
                else:
                    site.on_text(piece)

            outcome = events.run(lambda hear: session.turn(conversation, hear, seconds), pass_on, site.cancel)
        why = f"the question to {self._choice.name} was cancelled"
        return outcome or Fault(kind=FaultKind.CANCELLED, why=why, usage=Usage(requests=1, usd=None))

    def close(self) -> None:
        with self._lock:
            opened, self._open = self._open, None
        if opened:
            session, events = opened
            try:
                events.run(lambda _: session.aclose())
            finally:
                event_loop.return_loop()

    def _ensure_open(self) -> tuple[ApiSession, event_loop.EventLoop]:
        with self._lock:
            if self._open is None:
                from proofstone.agents.backends.api.session import ApiSession

                session = ApiSession(self._choice)
                self._open = session, event_loop.lease_loop()
            return self._open
