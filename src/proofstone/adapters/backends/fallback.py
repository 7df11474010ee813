"""Several backends as one: if one cannot serve, the next is asked.

Whoever wrote the last turn is asked first, because it knows its own thoughts; else the order is the person's. What a
backend keeps in `Turn.provider_state` is given back to it alone. The next one works in what those before it left: what
they did behind the runtime's back counts as its own. What is asked in the middle of the work goes to those who can
answer it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.adapters.backends import Backend, Identity
from proofstone.adapters.executors.site import Site
from proofstone.contracts.agent import Conversation, Entry, Fault, FaultKind, Turn
from proofstone.contracts.budget import Usage

_NEXT: Final = (FaultKind.UNAVAILABLE, FaultKind.DENIED, FaultKind.REJECTED, FaultKind.FILTERED)
"""What another one may do better. A deadline or a cancellation holds for all of them."""


@dataclass(frozen=True)
class Fallback:
    backends: Sequence[Backend]
    """At least one; no two of the same spec."""

    @property
    def identity(self) -> Identity:
        return self.backends[0].identity

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        ends = None if seconds is None else time.monotonic() + seconds
        faults: list[Fault] = []
        for backend in self._in_order(conversation):
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                break
            spec = backend.identity.spec
            outcome = backend.turn(_for(conversation, spec), site, left)
            if isinstance(outcome, Turn):
                state: JsonValue = {"backend": spec, "state": outcome.provider_state}
                usage = sum((fault.usage for fault in faults), outcome.usage)
                acted = outcome.acted or any(fault.acted for fault in faults)
                return outcome.model_copy(update={"provider_state": state, "usage": usage, "acted": acted})
            faults.append(outcome)
            if outcome.kind not in _NEXT:
                break
        return _together(faults)

    def close(self) -> None:
        with ExitStack() as closing:
            for backend in self.backends:
                closing.callback(backend.close)

    def _in_order(self, conversation: Conversation) -> list[Backend]:
        turns = [entry for entry in conversation.entries if isinstance(entry, Turn)]
        last = _author(turns[-1]) if turns else None
        able = [backend for backend in self.backends if _can_answer(backend, conversation)]
        return sorted(able or self.backends[:1], key=lambda backend: backend.identity.spec != last)


def _can_answer(backend: Backend, conversation: Conversation) -> bool:
    """Whoever has nothing to say to a question in the middle of the work would take it for the work."""
    asked = conversation.asked
    return not asked or backend.identity.answers(conversation.occasion.role, asked)


def _together(faults: Sequence[Fault]) -> Fault:
    """What they come to. If one could not be reached, asking again may help, whatever the others say."""
    if not faults:
        return Fault(kind=FaultKind.TIMEOUT, why="no time was left to ask a model")
    transient = [fault for fault in faults if fault.kind is FaultKind.UNAVAILABLE]
    pauses = [fault.retry_after for fault in transient if fault.retry_after is not None]
    last = faults[-1]
    helps = bool(transient) and last.kind in _NEXT
    return Fault(
        kind=FaultKind.UNAVAILABLE if helps else last.kind,
        why="\n".join(fault.why for fault in faults),
        retry_after=min(pauses, default=None) if helps else last.retry_after,
        usage=sum((fault.usage for fault in faults), Usage()),
        acted=any(fault.acted for fault in faults),
    )


def _for(conversation: Conversation, spec: str) -> Conversation:
    return conversation.model_copy(
        update={"entries": tuple(_as_seen_by(spec, entry) for entry in conversation.entries)}
    )


def _as_seen_by(spec: str, entry: Entry) -> Entry:
    if not isinstance(entry, Turn):
        return entry
    state = entry.provider_state
    own = state.get("state") if isinstance(state, dict) and _author(entry) == spec else None
    return entry.model_copy(update={"provider_state": own})


def _author(turn: Turn) -> JsonValue:
    return turn.provider_state.get("backend") if isinstance(turn.provider_state, dict) else None
