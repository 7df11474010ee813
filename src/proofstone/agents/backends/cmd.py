"""`cmd:<shell command line>` as a backend: a program that is started for every turn, in the sandbox.

`PROOFSTONE_REQUEST` names a JSON file with the conversation so far, `PROOFSTONE_ANSWER` one that it may write: its
answer, or
`{"tool_calls": [{"name": …, "arguments": {…}}]}` to use tools; it is then started again, with the results. If it writes
none, what it prints on standard output is taken in its place. Standard error is for its troubles: its end is shown when
it breaks down. An exit code other than 0 is a breakdown, whatever was written.
"""

from __future__ import annotations

import codecs
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.backends import Identity
from proofstone.agents.backends.wording import calls_in, calls_wanted, prompt_of
from proofstone.agents.executors.context import Ran, ShellJob, Site
from proofstone.agents.executors.output import Tail, read_written
from proofstone.agents.executors.programs import fresh_file, ran
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.agents.rules.answer import Malformed
from proofstone.common.models import Usage
from proofstone.machine.files import remove
from proofstone.sandbox.job import Execution

MOST_BYTES = 8 << 20
"""Of an answer."""
_SHOWN_LINES = 20
_NOT_ITS_CONCERN = {"thoughts", "provider_state", "usage", "model"}
_PRICE_UNKNOWN = Usage(requests=1, usd=None)


@dataclass(frozen=True)
class CommandBackend:
    command: str

    @property
    def identity(self) -> Identity:
        return Identity(f"cmd:{self.command}", answers=lambda _role, _asked: False)

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        folder = Path(tempfile.mkdtemp(prefix="turn-", dir=site.scratch))
        try:
            return self._turn(conversation, site, seconds, folder)
        finally:
            remove(folder)

    def close(self) -> None:
        """It holds nothing."""

    def _turn(self, conversation: Conversation, site: Site, seconds: float | None, folder: Path) -> Turn | Fault:
        request = folder / "request.json"
        request.write_bytes(request_text(conversation).encode("utf-8", "replace"))
        answer, errors = fresh_file(folder / "answer", "answer.json"), fresh_file(folder / "errors", "errors.txt")
        printed = _Printed(site.hear)
        occasion = conversation.occasion
        execution = site.run(
            ShellJob(
                command=f'exec 2>"$PROOFSTONE_ERRORS"\n{self.command}',
                seconds=seconds,
                env={
                    "PROOFSTONE_ROLE": occasion.role,
                    "PROOFSTONE_TASK_ID": occasion.task or "",
                    "PROOFSTONE_ATTEMPT": str(occasion.attempt),
                },
                reads={"PROOFSTONE_REQUEST": request},
                writes={"PROOFSTONE_ANSWER": answer, "PROOFSTONE_ERRORS": errors},
                on_output=printed.add,
            )
        )
        if ended := ran(execution):
            return fault_of(ended, _last_lines(errors, printed))
        if execution.exit_code:
            return _crashed(execution, _last_lines(errors, printed))
        written = read_written(answer, MOST_BYTES)
        if written is None:
            return self._said(conversation, "its output", printed.all)
        return self._said(conversation, "$PROOFSTONE_ANSWER", written)

    def _said(self, conversation: Conversation, where: str, said: bytes | Malformed) -> Turn | Fault:
        if isinstance(said, Malformed):
            return Fault(kind=FaultKind.MALFORMED, why=f"the answer in {where} is malformed: {said.why}")
        try:
            text = said.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            why = f"the answer in {where} is malformed: byte {error.start} is not UTF-8"
            return Fault(kind=FaultKind.MALFORMED, why=why)
        calls = calls_in(conversation, calls_wanted(text))
        return Turn(
            text="" if calls else text,
            calls=calls,
            model=self.identity.spec,
            usage=_PRICE_UNKNOWN,
            acted=conversation.occasion.role == "executor",
        )


def request_text(conversation: Conversation) -> str:
    """The conversation as a program is handed it."""
    request = {
        "role": conversation.occasion.role,
        "occasion": conversation.occasion.model_dump(mode="json"),
        "instructions": conversation.instructions,
        "tools": [tool.model_dump(mode="json") for tool in conversation.tools],
        "output_schema": conversation.model_dump(mode="json", include={"output_schema"})["output_schema"],
        "messages": [entry.model_dump(mode="json", exclude=_NOT_ITS_CONCERN) for entry in conversation.entries],
        "prompt": prompt_of(conversation),
    }
    return json.dumps(request, ensure_ascii=False, indent=2) + "\n"


def fault_of(ended: Ran, last_lines: str = "") -> Fault:
    """An execution that did not come to its own end, as a fault."""
    if ended.cancelled:
        return Fault(kind=FaultKind.CANCELLED, why=ended.ended)
    if ended.timed_out:
        return Fault(kind=FaultKind.TIMEOUT, why=ended.ended)
    if ended.crashed:
        return Fault(kind=FaultKind.CRASHED, why=f"{ended.ended}\n{last_lines}".rstrip())
    said = ended.claim.error if ended.claim else None
    return Fault(kind=FaultKind.FAILED, why=said or "it says that it cannot")


def _crashed(execution: Execution, last_lines: str) -> Fault:
    why = f"ended with exit code {execution.exit_code}"
    if execution.exit_code in (126, 127):
        why += " (the command cannot be started: it sees committed files only, and a /tmp of its own; see docs/gate.md)"
    return Fault(kind=FaultKind.CRASHED, why=f"{why}\n{last_lines}".rstrip())


def _last_lines(errors: Path, printed: _Printed) -> str:
    """What it said of its troubles; if nothing, what it said at all."""
    written = read_written(errors, MOST_BYTES)
    if isinstance(written, Malformed):
        return f"(its standard error: {written.why})"
    tail = Tail()
    tail.add(written or b"")
    return tail.lines(_SHOWN_LINES) or printed.tail.lines(_SHOWN_LINES)


class _Printed:
    """What a program prints, kept as far as an answer may go, and heard as it comes."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self.tail = Tail()
        self._hear = hear
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = bytearray()
        self._size = 0

    @property
    def all(self) -> bytes | Malformed:
        if self._size > MOST_BYTES:
            return Malformed(f"it has {self._size} bytes; {MOST_BYTES} are allowed")
        return bytes(self._kept)

    def add(self, data: bytes) -> None:
        self.tail.add(data)
        self._kept += data[: max(0, MOST_BYTES - self._size)]
        self._size += len(data)
        if text := self._decoder.decode(data):
            self._hear(text)
