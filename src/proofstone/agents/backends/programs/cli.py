"""`cli:<preset>[:<model>]`: a headless coding agent. One run of the program is one turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from proofstone.agents.backends import Identity
from proofstone.agents.backends.programs.activity import Notes
from proofstone.agents.backends.programs.launching import errand_of, fault_from, has_acted, mask_for, prepared, turned
from proofstone.agents.backends.programs.lines import Lines
from proofstone.agents.backends.programs.locating import Program
from proofstone.agents.backends.programs.preset import Final, Stream
from proofstone.agents.executors.context import Site
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.errors import InternalError
from proofstone.sandbox.job import Execution


@dataclass(frozen=True)
class CliBackend:
    """A backend that runs a headless coding agent for every turn."""

    program: Program

    @property
    def identity(self) -> Identity:
        return Identity(self.program.spec, model=self.program.model or None)

    def turn(self, conversation: Conversation, site: Site, seconds: float | None) -> Turn | Fault:
        preset = self.program.preset
        if preset is None or preset.invoke is None or preset.stream is None:
            raise InternalError(f"{self.program.spec} was located without a way to start it")
        invocation = preset.invoke(errand_of(self.program, conversation, site))
        stream = preset.stream()
        notes = Notes(site, mask_for(self.program))
        with prepared(self.program, invocation, site, seconds, notes) as ready:
            reader = _OutputReader(stream, notes)
            execution = site.run(replace(ready.job, on_output=reader.add))
            reader.end()
            last_lines = ready.last_lines()
        final = _build_final(stream, execution, last_lines)
        turn = turned(conversation, final, self.program, notes.mask)
        return turn.model_copy(update={"acted": has_acted(conversation, execution)})

    def close(self) -> None:
        """Do nothing: this backend holds no resources."""


def _build_final(stream: Stream, execution: Execution, last_lines: str) -> Final:
    """Return the program's own result, with a fault added if it did not end normally.

    A fault that the program reports itself takes precedence: one program ends with the provider's status as its exit
    code, which looks like a signal.
    """
    final = stream.final(execution.exit_code)
    if execution.exit_code is not None and final.fault is not None:
        return final
    if fault := fault_from(execution, last_lines):
        return replace(final, fault=fault)
    if not execution.exit_code:
        return final
    why = f"ended with exit code {execution.exit_code}\n{last_lines or final.text}".rstrip()
    return replace(final, fault=Fault(kind=FaultKind.CRASHED, why=why))


class _OutputReader:
    """Read what the program prints, line by line."""

    def __init__(self, stream: Stream, notes: Notes) -> None:
        self._stream = stream
        self._notes = notes
        self._lines = Lines()

    def add(self, data: bytes) -> None:
        for line in self._lines.add(data):
            self._read_line(line)

    def end(self) -> None:
        self._read_line(self._lines.end())

    def _read_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        for activity in self._stream.line(text) if text.strip() else ():
            self._notes.add(activity)
