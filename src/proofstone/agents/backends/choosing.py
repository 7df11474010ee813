"""Several backends as one: if one cannot serve, the next is asked.

Whoever wrote the last turn is asked first, because it knows its own thoughts; else the order is the person's. What a
backend keeps in `Turn.provider_state` is given back to it alone. The next one works in what those before it left: what
they did behind the runtime's back counts as its own. What is asked in the middle of the work goes to those who can
answer it.

From words to backends: the one place that knows which kind of spec is which implementation.

One short question to a backend, to see whether it answers as it should. It costs what it costs: a few tokens.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import Field, JsonValue

from proofstone.agents.backends import Backend, Identity
from proofstone.agents.backends.api import api_backend
from proofstone.agents.backends.cmd import CommandBackend
from proofstone.agents.backends.human import HumanBackend
from proofstone.agents.backends.programs.acp.backend import AcpBackend
from proofstone.agents.backends.programs.cli import CliBackend
from proofstone.agents.backends.programs.locating import locate_acp, locate_cli
from proofstone.agents.backends.script import ScriptedBackend
from proofstone.agents.executors.choosing import KINDS, unknown
from proofstone.agents.executors.context import Site
from proofstone.agents.executors.people import Listen
from proofstone.agents.models import Conversation, Entry, Fault, FaultKind, Occasion, Told, Turn
from proofstone.agents.rules.answer import Malformed, parse, validated
from proofstone.agents.script_file import read_script
from proofstone.common.models import Contract, Usage
from proofstone.config.person import Person, PersonSettings
from proofstone.errors import InputError

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


def backend_from(
    specs: Sequence[str],
    *,
    folder: Path,
    root: Path | None = None,
    listen: Listen | None = None,
    person: Person | None = None,
) -> Backend:
    """The backend that the specs name, the later ones as fallbacks. A script's path counts from `folder`; coding agents
    are never looked for in the repository at `root`.

    An InputError says what a spec lacks: its provider, key, package, program or file.
    """
    theirs = person.settings if person else PersonSettings()

    def one(spec: str) -> Backend:
        kind, _, rest = spec.partition(":")
        if kind == "api":
            return api_backend(spec, person.providers if person else None, theirs.models)
        if kind == "cli" and rest.strip():
            return CliBackend(locate_cli(spec, theirs.programs, root or folder))
        if kind == "acp" and rest.strip():
            return AcpBackend(locate_acp(spec, theirs.programs, root or folder))
        if kind == "cmd" and rest.strip():
            return CommandBackend(rest)
        if spec == "human":
            return HumanBackend(listen)
        if kind == "script" and rest.strip():
            return ScriptedBackend(read_script(folder / rest), spec)
        raise unknown("agent", spec)

    if not specs:
        raise InputError("no backend is named", hint=f"one of: {KINDS}")
    named = [one(spec) for spec in dict.fromkeys(specs)]
    return named[0] if len(named) == 1 else Fallback(named)


SECONDS: Final = 60.0


class Echo(Contract):
    """The answer to a probe."""

    word: str = Field(description="The word that you were asked to repeat.")


@dataclass(frozen=True)
class Probed:
    spec: str
    fault: str = ""
    """Why it is of no use, in words; empty: it answered."""
    model: str = ""
    """Who answered, as they call themselves."""
    milliseconds: int = 0
    usage: Usage = field(default_factory=Usage)


def probe(backend: Backend, site: Site, seconds: float = SECONDS) -> Probed:
    began = time.monotonic()
    outcome = backend.turn(_question(), site, seconds)
    took = round(1000 * (time.monotonic() - began))
    spec = backend.identity.spec
    if isinstance(outcome, Fault):
        return Probed(spec, f"{outcome.kind}: {outcome.why}", milliseconds=took)
    return Probed(spec, _wrong(outcome), outcome.model, took, outcome.usage)


def _question() -> Conversation:
    return Conversation(
        occasion=Occasion(run_id="probe", role="probe"),
        instructions="This is a test of the connection. Answer at once, by the schema, and use no tools.",
        tools=(),
        output_schema=Echo.model_json_schema(),
        entries=(Told(text="Repeat the word `proofstone`."),),
    )


def _wrong(turn: Turn) -> str:
    if turn.calls:
        return f"malformed: it called the tool {turn.calls[0].name}, which it does not have, instead of answering"
    said = validated(turn.answer, Echo) if turn.answer is not None else parse(turn.text.encode(), Echo)
    return f"malformed: {said.why}" if isinstance(said, Malformed) else ""
