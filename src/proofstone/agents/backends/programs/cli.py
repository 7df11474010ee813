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
            heard = _Heard(stream, notes)
            execution = site.run(replace(ready.job, on_output=heard.add))
            heard.end()
            last_lines = ready.last_lines()
        final = _final(stream, execution, last_lines)
        came = turned(conversation, final, self.program, notes.mask)
        return came.model_copy(update={"acted": has_acted(conversation, execution)})

    def close(self) -> None:
        """It holds nothing."""


def _final(stream: Stream, execution: Execution, last_lines: str) -> Final:
    """What the program says, unless it did not come to its own end: then, why. Its own word for a trouble goes first:
    one of them ends with the provider's status for an exit code, which could pass for a signal."""
    final = stream.final(execution.exit_code)
    if execution.exit_code is not None and final.fault is not None:
        return final
    if fault := fault_from(execution, last_lines):
        return replace(final, fault=fault)
    if not execution.exit_code:
        return final
    why = f"ended with exit code {execution.exit_code}\n{last_lines or final.text}".rstrip()
    return replace(final, fault=Fault(kind=FaultKind.CRASHED, why=why))


class _Heard:
    """What the program prints, line by line."""

    def __init__(self, stream: Stream, notes: Notes) -> None:
        self._stream = stream
        self._notes = notes
        self._lines = Lines()

    def add(self, data: bytes) -> None:
        for line in self._lines.add(data):
            self._line(line)

    def end(self) -> None:
        self._line(self._lines.end())

    def _line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        for activity in self._stream.line(text) if text.strip() else ():
            self._notes.add(activity)
