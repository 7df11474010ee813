"""`acp:<preset or command>`: a coding agent that speaks the Agent Client Protocol. One session is one turn.

The program runs in the sandbox; messages go over its standard input and output. Its requests are answered by the task's
scope, in the thread that runs it. A second thread writes, and a third watches the clock. After the answer to the
prompt, the program has a moment to end by itself before it is ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.programs.acp.session import AcpClient, AgentError, AgentRequest, AgentSession
from proofstone.agents.backends.programs.acp.session_updates import SessionLog
from proofstone.agents.backends.programs.acp.wire import AcpMessage, MessageReader, Outbox
from proofstone.agents.backends.programs.activity import ActivityLog, KeyMask
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.launch import (
    build_launch_request,
    build_mask,
    convert_result,
    find_execution_fault,
    has_acted,
    prepare_run,
)
from proofstone.agents.backends.programs.preset import ProgramResult
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.agents.rules.permission import PermissionLimits
from proofstone.sandbox.job import SandboxResult

_TICK: Final = 0.05
_GRACE_SECONDS: Final = 2.0
"""Seconds to end by itself after the answer. Some programs never do."""
_CANCEL_SECONDS: Final = 5.0
"""Seconds before the deadline at which the agent is told to stop."""


@dataclass(frozen=True)
class AcpBackend:
    """A backend that runs one session with an agent of the Agent Client Protocol for every turn."""

    program: InstalledProgram
    first_answer_seconds: float = 120.0
    """Seconds for the first answer. A program that does not speak the protocol would never give one."""

    @property
    def identity(self) -> BackendIdentity:
        return BackendIdentity(self.program.spec, model=self.program.model or None)

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        errand = build_launch_request(self.program, conversation, site)
        invocation = self.program.build_acp_invocation(errand)
        mask = build_mask(self.program)
        notes = ActivityLog(replace(site, on_text=lambda _text: None), mask)
        updates = SessionLog(site, str(errand.root), notes)
        client = AcpClient(site, updates, PermissionLimits(str(errand.root), site.scope, errand.can_run, site.secret))
        with prepare_run(self.program, invocation, site, seconds, notes) as ready, closing(Outbox()) as outbox:
            talk = AgentSession(self.program, errand, updates, ready.job.env)
            exchange = _Exchange(talk, client, outbox, mask)
            clock = _Clock(exchange, seconds, self.first_answer_seconds)
            job = replace(ready.job, stdin=outbox.read_end, stop_event=clock.enough, on_output=exchange.hear)
            with clock.running():
                execution = site.run(job)
            updates.end()
            last_lines = ready.read_last_lines() or exchange.frames.render_noise()
        outcome = self._build_outcome(conversation, execution, exchange, clock)
        if isinstance(outcome, Turn):
            return outcome
        return outcome.model_copy(
            update={
                "why": _append_lines(outcome, last_lines),
                "usage": outcome.usage if outcome.usage.tokens else updates.compute_usage({}),
                "acted": has_acted(conversation, execution),
            }
        )

    def close(self) -> None:
        """Do nothing: this backend holds no resources."""

    def _build_outcome(
        self, conversation: Conversation, execution: SandboxResult, exchange: _Exchange, clock: _Clock
    ) -> Turn | Fault:
        if exchange.ended is None or execution.cancelled:
            return find_execution_fault(execution, "") or self._build_unanswered_fault(execution, exchange)
        if clock.is_late:  # whatever the agent says: some report a normal end of the turn
            return Fault(kind=FaultKind.TIMEOUT, why="told to stop shortly before its deadline")
        return convert_result(conversation, exchange.ended, self.program, exchange.mask)

    def _build_unanswered_fault(self, execution: SandboxResult, exchange: _Exchange) -> Fault:
        """Return the fault for a program that has ended without an answer to the prompt."""
        unanswered = f"without an answer to {exchange.waiting_for}"
        if execution.was_stopped:
            why = f"{unanswered} for {self.first_answer_seconds:g} s: does it speak the Agent Client Protocol?"
        else:
            why = f"ended with exit code {execution.exit_code}, {unanswered}"
        return Fault(kind=FaultKind.CRASHED, why=f"{self.program.name}: {why}")


class _Exchange:
    """Carry messages between the session, the client and the program."""

    def __init__(self, talk: AgentSession, client: AcpClient, outbox: Outbox, mask: KeyMask) -> None:
        self._talk = talk
        self._dialogue = talk.run()
        self._client = client
        self._outbox = outbox
        self.mask = mask
        self.frames = MessageReader(mask)
        self._number = 0
        self._pending = next(self._dialogue)
        self.ended: ProgramResult | None = None
        self._send(self._pending)

    @property
    def waiting_for(self) -> str:
        return self._pending.method

    @property
    def is_answered(self) -> bool:
        """Whether the program has answered any request."""
        return self._number > 1 or self.ended is not None

    def hear(self, data: bytes) -> None:
        for message in self.frames.add(data):
            if self.ended is None:
                self._handle(message)

    def cancel(self) -> None:
        if self._talk.session:
            self._outbox.send({"method": "session/cancel", "params": {"sessionId": self._talk.session}})

    def _handle(self, message: AcpMessage) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            self._handle_answer(message)
        elif "id" in message:
            self._outbox.send({"id": message["id"], **self._client.answer_request(method, message.get("params"))})
            if self._outbox.is_too_full:
                self._give_up("it requests more than it reads")
        else:
            self._client.handle_notification(method, message.get("params"))

    def _give_up(self, why: str) -> None:
        self.ended = ProgramResult("", fault=Fault(kind=FaultKind.FAILED, why=why))
        self._outbox.hang_up()

    def _handle_answer(self, message: AcpMessage) -> None:
        if message.get("id") != self._number or not {"result", "error"} & set(message):
            return
        try:
            self._send(self._advance(message))
        except StopIteration as finished:
            self.ended = finished.value
            self._outbox.hang_up()

    def _advance(self, message: AcpMessage) -> AgentRequest:
        if "error" in message:
            return self._dialogue.throw(AgentError(self._pending.method, message["error"], self.mask))
        return self._dialogue.send(_to_object(message["result"]))

    def _send(self, request: AgentRequest) -> None:
        self._number += 1
        self._pending = request
        self._outbox.send({"id": self._number, "method": request.method, "params": dict(request.parameters)})


class _Clock:
    """Make sure that nothing waits forever: tell the agent to stop, and set `enough` when the program must end.

    Interruptions are handled elsewhere: they end the program at once.
    """

    def __init__(self, exchange: _Exchange, seconds: float | None, patience: float) -> None:
        self.enough = threading.Event()
        self.is_late = False
        self._exchange = exchange
        self._cancel_at = float("inf") if seconds is None else seconds - min(_CANCEL_SECONDS, seconds / 5)
        self._patience = patience
        self._stopped = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, name="acp-clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _watch(self) -> None:
        started = time.monotonic()
        is_cancelled, end_at = False, float("inf")
        while not self._stopped.wait(_TICK):
            elapsed = time.monotonic() - started
            if self._exchange.ended is not None:
                end_at = min(end_at, elapsed + _GRACE_SECONDS)
            elif not self._exchange.is_answered:
                end_at = self._patience
            else:
                end_at = float("inf")
                self.is_late = elapsed > self._cancel_at
                if self.is_late and not is_cancelled:
                    is_cancelled = True
                    self._exchange.cancel()
            if elapsed > end_at:
                self.enough.set()


def _to_object(value: JsonValue) -> AcpMessage:
    return value if isinstance(value, dict) else {}


def _append_lines(fault: Fault, last_lines: str) -> str:
    return fault.why if fault.kind is FaultKind.CANCELLED else f"{fault.why}\n{last_lines}".rstrip()
