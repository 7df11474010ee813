"""Build the backend that the user's specs name.

This is the only module that knows which kind of spec is which implementation. Several specs become one
`FallbackBackend`:
- If a backend cannot serve, the next one is asked.
- The backend that wrote the last turn is asked first, because it knows its own thoughts. After that, the user's order
  holds.
- A backend gets back only its own `Turn.provider_state`.
- The next backend works on what the earlier ones left: their changes behind the runtime's back count as its own.
- A question in the middle of the work goes to the backends that can answer it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends import Backend, BackendIdentity
from proofstone.agents.backends.api import api_backend
from proofstone.agents.backends.cmd import CommandBackend
from proofstone.agents.backends.human import HumanBackend
from proofstone.agents.backends.programs.acp.backend import AcpBackend
from proofstone.agents.backends.programs.cli import CliBackend
from proofstone.agents.backends.programs.discovery import locate_acp, locate_cli
from proofstone.agents.backends.script import ScriptedBackend
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.executors.people import ReadLine
from proofstone.agents.executors.selection import SPEC_KINDS, unknown_spec_error
from proofstone.agents.models import Conversation, ConversationEntry, Fault, FaultKind, Turn
from proofstone.agents.script_file import read_script
from proofstone.common.models import Usage
from proofstone.config.providers import STANDARD_PROFILE
from proofstone.config.user import UserConfig, UserSettings
from proofstone.errors import InputError

_FALLBACK_KINDS: Final = (FaultKind.UNAVAILABLE, FaultKind.DENIED, FaultKind.REJECTED, FaultKind.FILTERED)
"""Faults after which another backend may succeed. A deadline or a cancellation applies to all of them."""


@dataclass(frozen=True)
class FallbackBackend:
    """Several backends as one: if one cannot serve, the next is asked."""

    backends: Sequence[Backend]
    """At least one; no two have the same spec."""

    @property
    def identity(self) -> BackendIdentity:
        return self.backends[0].identity

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        ends = None if seconds is None else time.monotonic() + seconds
        faults: list[Fault] = []
        for backend in self._order_backends(conversation):
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                break
            spec = backend.identity.spec
            outcome = backend.turn(_adapt_conversation(conversation, spec), site, left)
            if isinstance(outcome, Turn):
                state: JsonValue = {"backend": spec, "state": outcome.provider_state}
                usage = sum((fault.usage for fault in faults), outcome.usage)
                acted = outcome.acted or any(fault.acted for fault in faults)
                return outcome.model_copy(update={"provider_state": state, "usage": usage, "acted": acted})
            faults.append(outcome)
            if outcome.kind not in _FALLBACK_KINDS:
                break
        return _combine_faults(faults)

    def close(self) -> None:
        with ExitStack() as closing:
            for backend in self.backends:
                closing.callback(backend.close)

    def _order_backends(self, conversation: Conversation) -> list[Backend]:
        turns = [entry for entry in conversation.entries if isinstance(entry, Turn)]
        last = _get_author(turns[-1]) if turns else None
        able = [backend for backend in self.backends if _can_answer(backend, conversation)]
        return sorted(able or self.backends[:1], key=lambda backend: backend.identity.spec != last)


def _can_answer(backend: Backend, conversation: Conversation) -> bool:
    """Return whether the backend can answer. One that cannot would take the question for the work itself."""
    question = conversation.open_question
    return not question or backend.identity.can_answer(conversation.occasion.role, question)


def _combine_faults(faults: Sequence[Fault]) -> Fault:
    """Combine the faults into one. If a backend was unavailable, asking again may help, whatever the others say."""
    if not faults:
        return Fault(kind=FaultKind.TIMEOUT, why="no time was left to ask a model")
    transient = [fault for fault in faults if fault.kind is FaultKind.UNAVAILABLE]
    pauses = [fault.retry_after for fault in transient if fault.retry_after is not None]
    last = faults[-1]
    can_retry = bool(transient) and last.kind in _FALLBACK_KINDS
    return Fault(
        kind=FaultKind.UNAVAILABLE if can_retry else last.kind,
        why="\n".join(fault.why for fault in faults),
        retry_after=min(pauses, default=None) if can_retry else last.retry_after,
        usage=sum((fault.usage for fault in faults), Usage()),
        acted=any(fault.acted for fault in faults),
    )


def _adapt_conversation(conversation: Conversation, spec: str) -> Conversation:
    return conversation.model_copy(
        update={"entries": tuple(_adapt_entry(spec, entry) for entry in conversation.entries)}
    )


def _adapt_entry(spec: str, entry: ConversationEntry) -> ConversationEntry:
    if not isinstance(entry, Turn):
        return entry
    state = entry.provider_state
    own_state = state.get("state") if isinstance(state, dict) and _get_author(entry) == spec else None
    return entry.model_copy(update={"provider_state": own_state})


def _get_author(turn: Turn) -> JsonValue:
    return turn.provider_state.get("backend") if isinstance(turn.provider_state, dict) else None


def build_backend(
    specs: Sequence[str],
    *,
    folder: Path,
    root: Path | None = None,
    listen: ReadLine | None = None,
    person: UserConfig | None = None,
) -> Backend:
    """Build the backend that the specs name; specs after the first are fallbacks.

    A script's path is relative to `folder`. Coding agents are never looked for in the repository at `root`. An
    InputError says what a spec lacks: its provider, key, package, program or file.
    """
    settings = person.settings if person else UserSettings()

    def build(spec: str) -> Backend:
        kind, _, rest = spec.partition(":")
        if kind == "api":
            profile = person.profile if person else STANDARD_PROFILE
            return api_backend(spec, person.providers if person else None, settings.models, profile=profile)
        if kind == "cli" and rest.strip():
            return CliBackend(locate_cli(spec, settings.programs, root or folder))
        if kind == "acp" and rest.strip():
            return AcpBackend(locate_acp(spec, settings.programs, root or folder))
        if kind == "cmd" and rest.strip():
            return CommandBackend(rest)
        if spec == "human":
            return HumanBackend(listen)
        if kind == "script" and rest.strip():
            return ScriptedBackend(read_script(folder / rest), spec)
        raise unknown_spec_error("agent", spec)

    if not specs:
        raise InputError("no backend is given", hint=f"name one of: {SPEC_KINDS}")
    backends = [build(spec) for spec in dict.fromkeys(specs)]
    return backends[0] if len(backends) == 1 else FallbackBackend(backends)
