"""The `api:` backend: a turn is one request to a provider. Nothing of a provider is imported before the first one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from proofstone.adapters.backends import Identity
from proofstone.adapters.backends.api import loop
from proofstone.adapters.backends.api.choice import Choice
from proofstone.adapters.executors.site import Site
from proofstone.contracts.agent import Conversation, Fault, FaultKind, Turn
from proofstone.contracts.budget import Usage

if TYPE_CHECKING:
    from proofstone.adapters.backends.api.session import Session


class ApiBackend:
    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._lock = threading.Lock()
        self._open: tuple[Session, loop.EventLoop] | None = None

    @property
    def identity(self) -> Identity:
        return Identity(self._choice.spec, vendor=self._choice.vendor, model=self._choice.model)

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        outcome: Turn | Fault | None = None
        if not site.cancel.is_set():
            session, events = self._opened()
            outcome = events.run(lambda hear: session.turn(conversation, hear, seconds), site.hear, site.cancel)
        why = f"the question to {self._choice.name} was cancelled"
        return outcome or Fault(kind=FaultKind.CANCELLED, why=why, usage=Usage(requests=1, usd=None))

    def close(self) -> None:
        with self._lock:
            was_open, self._open = self._open, None
        if was_open:
            session, events = was_open
            try:
                events.run(lambda _: session.aclose())
            finally:
                loop.give_back()

    def _opened(self) -> tuple[Session, loop.EventLoop]:
        with self._lock:
            if self._open is None:
                from proofstone.adapters.backends.api.session import Session

                session = Session(self._choice)
                self._open = session, loop.lease()
            return self._open
