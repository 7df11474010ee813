"""`acp:<preset or command>`: a coding agent that speaks the Agent Client Protocol. One session is one turn.

The program runs in the sandbox and is spoken to over its standard input and output; what it asks is answered by the
task's scope, in the thread that runs it. A second thread writes, and a third looks at the clock. When the prompt is
answered it is given a moment to end by itself, and is ended then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends import Identity
from proofstone.agents.backends.programs.acp.session import AgentError, Ask, Client, Talk
from proofstone.agents.backends.programs.acp.session_updates import Heard
from proofstone.agents.backends.programs.acp.wire import Frames, Message, Outbox
from proofstone.agents.backends.programs.activity import Mask, Notes
from proofstone.agents.backends.programs.launching import errand_of, fault_from, has_acted, mask_for, prepared, turned
from proofstone.agents.backends.programs.locating import Program
from proofstone.agents.backends.programs.preset import Final as Said
from proofstone.agents.executors.context import Site
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.agents.rules.permission import Bounds
from proofstone.sandbox.job import Execution

_TICK: Final = 0.05
_GRACE: Final = 2.0
"""Seconds to end by itself, once it has answered. Some never do."""
_BEFORE_DEADLINE: Final = 5.0
"""Seconds before its deadline that it is told to stop."""


@dataclass(frozen=True)
class AcpBackend:
    program: Program
    patience: float = 120.0
    """Seconds for its first answer: a program that does not speak the protocol would never give one."""

    @property
    def identity(self) -> Identity:
        return Identity(self.program.spec, model=self.program.model or None)

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        errand = errand_of(self.program, conversation, site)
        invocation = self.program.acp_invocation(errand)
        mask = mask_for(self.program)
        notes = Notes(replace(site, hear=lambda _text: None), mask)
        heard = Heard(site, str(errand.root), notes)
        client = Client(site, heard, Bounds(str(errand.root), site.scope, errand.may_run, site.secret))
        with prepared(self.program, invocation, site, seconds, notes) as ready, closing(Outbox()) as outbox:
            talk = Talk(self.program, errand, heard, ready.job.env)
            exchange = _Exchange(talk, client, outbox, mask)
            clock = _Clock(exchange, seconds, self.patience)
            job = replace(ready.job, stdin=outbox.read_end, enough=clock.enough, on_output=exchange.hear)
            with clock.running():
                execution = site.run(job)
            heard.end()
            last_lines = ready.last_lines() or exchange.frames.noise()
        came = self._came_of(conversation, execution, exchange, clock)
        if isinstance(came, Turn):
            return came
        return came.model_copy(
            update={
                "why": _with_lines(came, last_lines),
                "usage": came.usage if came.usage.tokens else heard.usage({}),
                "acted": has_acted(conversation, execution),
            }
        )

    def close(self) -> None:
        """It holds nothing."""

    def _came_of(
        self, conversation: Conversation, execution: Execution, exchange: _Exchange, clock: _Clock
    ) -> Turn | Fault:
        if exchange.ended is None or execution.cancelled:
            return fault_from(execution, "") or self._broken(execution, exchange)
        if clock.is_late:  # whatever it says then: some call it the end of their turn
            return Fault(kind=FaultKind.TIMEOUT, why="told to stop shortly before its deadline")
        return turned(conversation, exchange.ended, self.program, exchange.mask)

    def _broken(self, execution: Execution, exchange: _Exchange) -> Fault:
        """It is over, and the prompt was never answered."""
        waited = f"without an answer to {exchange.waiting_for}"
        if execution.ended:
            why = f"{waited} for {self.patience:g} s: does it speak the Agent Client Protocol?"
        else:
            why = f"ended with exit code {execution.exit_code}, {waited}"
        return Fault(kind=FaultKind.CRASHED, why=f"{self.program.name}: {why}")


class _Exchange:
    """Carries messages between the session, the client and the program."""

    def __init__(self, talk: Talk, client: Client, outbox: Outbox, mask: Mask) -> None:
        self._talk = talk
        self._dialogue = talk.dialogue()
        self._client = client
        self._outbox = outbox
        self.mask = mask
        self.frames = Frames(mask)
        self._number = 0
        self._asked = next(self._dialogue)
        self.ended: Said | None = None
        self._ask(self._asked)

    @property
    def waiting_for(self) -> str:
        return self._asked.method

    @property
    def is_answered(self) -> bool:
        """Whether it has answered anything at all."""
        return self._number > 1 or self.ended is not None

    def hear(self, data: bytes) -> None:
        for message in self.frames.add(data):
            if self.ended is None:
                self._take(message)

    def cancel(self) -> None:
        if self._talk.session:
            self._outbox.send({"method": "session/cancel", "params": {"sessionId": self._talk.session}})

    def _take(self, message: Message) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            self._answered(message)
        elif "id" in message:
            self._outbox.send({"id": message["id"], **self._client.answer(method, message.get("params"))})
            if self._outbox.is_too_full:
                self._give_up("it asks for more than it reads")
        else:
            self._client.told(method, message.get("params"))

    def _give_up(self, why: str) -> None:
        self.ended = Said("", fault=Fault(kind=FaultKind.FAILED, why=why))
        self._outbox.hang_up()

    def _answered(self, message: Message) -> None:
        if message.get("id") != self._number or not {"result", "error"} & set(message):
            return
        try:
            self._ask(self._next(message))
        except StopIteration as over:
            self.ended = over.value
            self._outbox.hang_up()

    def _next(self, message: Message) -> Ask:
        if "error" in message:
            return self._dialogue.throw(AgentError(self._asked.method, message["error"], self.mask))
        return self._dialogue.send(_object(message["result"]))

    def _ask(self, ask: Ask) -> None:
        self._number += 1
        self._asked = ask
        self._outbox.send({"id": self._number, "method": ask.method, "params": dict(ask.parameters)})


class _Clock:
    """Sees to it that nothing waits for ever: tells the agent to stop, and says when it is enough. An interruption is
    not its concern: that ends the program at once."""

    def __init__(self, exchange: _Exchange, seconds: float | None, patience: float) -> None:
        self.enough = threading.Event()
        self.is_late = False
        self._exchange = exchange
        self._late = float("inf") if seconds is None else seconds - min(_BEFORE_DEADLINE, seconds / 5)
        self._patience = patience
        self._over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, name="acp-clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        started = time.monotonic()
        told, leave = False, float("inf")
        while not self._over.wait(_TICK):
            passed = time.monotonic() - started
            if self._exchange.ended is not None:
                leave = min(leave, passed + _GRACE)
            elif not self._exchange.is_answered:
                leave = self._patience
            else:
                leave = float("inf")
                self.is_late = passed > self._late
                if self.is_late and not told:
                    told = True
                    self._exchange.cancel()
            if passed > leave:
                self.enough.set()


def _object(value: JsonValue) -> Message:
    return value if isinstance(value, dict) else {}


def _with_lines(fault: Fault, last_lines: str) -> str:
    return fault.why if fault.kind is FaultKind.CANCELLED else f"{fault.why}\n{last_lines}".rstrip()
