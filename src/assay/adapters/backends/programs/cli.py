"""`cli:<preset>[:<model>]`: a headless coding agent. One run of the program is one turn."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace

from assay.adapters.backends import Identity
from assay.adapters.backends.programs.launching import errand_of, fault_from, prepared, turned
from assay.adapters.backends.programs.locating import Program
from assay.adapters.backends.programs.noting import Notes
from assay.adapters.backends.programs.preset import Stream
from assay.adapters.executors.site import Site
from assay.contracts.agent import Activity, Conversation, Fault, FaultKind, Turn
from assay.errors import InternalError

_LONGEST_LINE = 16 << 20
"""Characters of one line of output; what is longer is no event of any program."""


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
        with prepared(self.program, invocation, site, seconds) as ready:
            heard = _Heard(stream, Notes(site))
            execution = site.run(replace(ready.job, on_output=heard.add))
            heard.end()
            last_lines = ready.last_lines()
        if fault := fault_from(execution, last_lines):
            return fault.model_copy(update={"usage": stream.final(None).usage})
        final = stream.final(execution.exit_code)
        if execution.exit_code and final.fault is None:
            why = f"ended with exit code {execution.exit_code}\n{last_lines or final.text}".rstrip()
            final = replace(final, fault=Fault(kind=FaultKind.CRASHED, why=why))
        return turned(conversation, final, self.program)

    def close(self) -> None:
        """It holds nothing."""


class _Heard:
    """What the program prints, line by line."""

    def __init__(self, stream: Stream, notes: Notes) -> None:
        self._stream = stream
        self._notes = notes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def add(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        for line in lines:
            self._line(line)
        self._rest = self._rest[:_LONGEST_LINE]

    def end(self) -> None:
        self._line(self._rest + self._decoder.decode(b"", final=True))

    def _line(self, line: str) -> None:
        activities: tuple[Activity, ...] = tuple(self._stream.line(line)) if line.strip() else ()
        for activity in activities:
            self._notes.add(activity)
