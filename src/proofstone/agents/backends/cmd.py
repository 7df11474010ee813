"""`cmd:<shell command line>` as a backend: a program that is started in the sandbox for every turn.

`PROOFSTONE_REQUEST` names a JSON file with the conversation so far. `PROOFSTONE_ANSWER` names a file to which the
program may write its answer, or `{"tool_calls": [{"name": …, "arguments": {…}}]}` to use tools; it is then started
again with the results. If it writes nothing there, its standard output is the answer. Standard error is for
diagnostics: its last lines are shown when the program fails. An exit code other than 0 is a failure, whatever was
written.
"""

from __future__ import annotations

import codecs
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.transcript import build_tool_calls, parse_tool_calls, render_prompt
from proofstone.agents.executors.context import ExecutionContext, ExecutionOutcome
from proofstone.agents.executors.output import OutputTail, read_output_file
from proofstone.agents.executors.programs import call_program
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.agents.rules.answer import MalformedAnswer
from proofstone.common.models import Usage
from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import SandboxResult

MAX_ANSWER_BYTES = 8 << 20
"""The largest answer that is accepted."""
_MAX_SHOWN_LINES = 20
_PRIVATE_FIELDS = {"thoughts", "provider_state", "usage", "model"}
_PRICE_UNKNOWN = Usage(requests=1, usd=None)


@dataclass(frozen=True)
class CommandBackend:
    """A backend that runs a shell command line for every turn."""

    command: str

    @property
    def identity(self) -> BackendIdentity:
        return BackendIdentity(f"cmd:{self.command}", can_answer=lambda _role, _asked: False)

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        folder = Path(tempfile.mkdtemp(prefix="errors-", dir=site.scratch))
        try:
            return self._turn(conversation, site, seconds, folder / "errors.txt")
        finally:
            remove_folder(folder)

    def close(self) -> None:
        """Do nothing: this backend holds no resources."""

    def _turn(
        self, conversation: Conversation, site: ExecutionContext, seconds: float | None, errors: Path
    ) -> Turn | Fault:
        stdout = _Stdout(site.on_text)
        occasion = conversation.occasion
        call = call_program(
            self.command,
            site,
            ("PROOFSTONE_REQUEST", render_request(conversation)),
            "PROOFSTONE_ANSWER",
            seconds=seconds,
            env={
                "PROOFSTONE_ROLE": occasion.role,
                "PROOFSTONE_TASK_ID": occasion.task or "",
                "PROOFSTONE_ATTEMPT": str(occasion.attempt),
            },
            max_bytes=MAX_ANSWER_BYTES,
            errors=errors,
            on_output=stdout.add,
        )
        if call.failure:
            return build_outcome_fault(call.failure, _read_last_lines(errors, call.tail))
        if call.execution.exit_code:
            return _build_crash_fault(call.execution, _read_last_lines(errors, call.tail))
        if call.written is None:
            return self._read_turn(conversation, "its output", stdout.all)
        return self._read_turn(conversation, "$PROOFSTONE_ANSWER", call.written)

    def _read_turn(self, conversation: Conversation, source: str, content: bytes | MalformedAnswer) -> Turn | Fault:
        if isinstance(content, MalformedAnswer):
            return Fault(kind=FaultKind.MALFORMED, why=f"the answer in {source} is malformed: {content.why}")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            why = f"the answer in {source} is malformed: byte {error.start} is not UTF-8"
            return Fault(kind=FaultKind.MALFORMED, why=why)
        calls = build_tool_calls(conversation, parse_tool_calls(text))
        return Turn(
            text="" if calls else text,
            calls=calls,
            model=self.identity.spec,
            usage=_PRICE_UNKNOWN,
            acted=conversation.occasion.role == "executor",
        )


def render_request(conversation: Conversation) -> str:
    """Return the conversation as the JSON request that a program reads."""
    request = {
        "role": conversation.occasion.role,
        "occasion": conversation.occasion.model_dump(mode="json"),
        "instructions": conversation.instructions,
        "tools": [tool.model_dump(mode="json") for tool in conversation.tools],
        "output_schema": conversation.model_dump(mode="json", include={"output_schema"})["output_schema"],
        "messages": [entry.model_dump(mode="json", exclude=_PRIVATE_FIELDS) for entry in conversation.entries],
        "prompt": render_prompt(conversation),
    }
    return json.dumps(request, ensure_ascii=False, indent=2) + "\n"


def build_outcome_fault(ended: ExecutionOutcome, last_lines: str = "") -> Fault:
    """Return the fault for an execution that did not end normally."""
    if ended.cancelled:
        return Fault(kind=FaultKind.CANCELLED, why=ended.end_reason)
    if ended.timed_out:
        return Fault(kind=FaultKind.TIMEOUT, why=ended.end_reason)
    if ended.crashed:
        return Fault(kind=FaultKind.CRASHED, why=f"{ended.end_reason}\n{last_lines}".rstrip())
    claimed_error = ended.claim.error if ended.claim else None
    return Fault(kind=FaultKind.FAILED, why=claimed_error or "the program reported that it failed")


def _build_crash_fault(execution: SandboxResult, last_lines: str) -> Fault:
    why = f"ended with exit code {execution.exit_code}"
    if execution.exit_code in (126, 127):
        why += (
            " (the command cannot be started: it sees only committed files and its own /tmp; "
            "see `proofstone manual gate`)"
        )
    return Fault(kind=FaultKind.CRASHED, why=f"{why}\n{last_lines}".rstrip())


def _read_last_lines(errors: Path, stdout: OutputTail) -> str:
    """Return the last lines of standard error or, if it is empty, of standard output."""
    written = read_output_file(errors, MAX_ANSWER_BYTES)
    if isinstance(written, MalformedAnswer):
        return f"(its standard error: {written.why})"
    tail = OutputTail()
    tail.add(written or b"")
    return tail.lines(_MAX_SHOWN_LINES) or stdout.lines(_MAX_SHOWN_LINES)


class _Stdout:
    """The standard output of a program: kept up to the largest answer, and passed on as it arrives."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._buffer = bytearray()
        self._size = 0

    @property
    def all(self) -> bytes | MalformedAnswer:
        if self._size > MAX_ANSWER_BYTES:
            return MalformedAnswer(f"it has {self._size} bytes; {MAX_ANSWER_BYTES} are allowed")
        return bytes(self._buffer)

    def add(self, data: bytes) -> None:
        self._buffer += data[: max(0, MAX_ANSWER_BYTES - self._size)]
        self._size += len(data)
        if text := self._decoder.decode(data):
            self._hear(text)
