"""`cli:<preset>[:<model>]`: a headless coding agent. One run of the program is one turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from proofstone.agents.backends import BackendIdentity
from proofstone.agents.backends.programs.activity import ActivityLog
from proofstone.agents.backends.programs.discovery import InstalledProgram
from proofstone.agents.backends.programs.launch import (
    build_launch_request,
    build_mask,
    convert_result,
    find_execution_fault,
    has_acted,
    prepare_run,
)
from proofstone.agents.backends.programs.lines import LineSplitter
from proofstone.agents.backends.programs.preset import OutputReader, ProgramResult
from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.models import Conversation, Fault, FaultKind, Turn
from proofstone.errors import InternalError
from proofstone.sandbox.job import SandboxResult


@dataclass(frozen=True)
class CliBackend:
    """A backend that runs a headless coding agent for every turn."""

    program: InstalledProgram

    @property
    def identity(self) -> BackendIdentity:
        return BackendIdentity(self.program.spec, model=self.program.model or None)

    def turn(self, conversation: Conversation, site: ExecutionContext, seconds: float | None) -> Turn | Fault:
        preset = self.program.preset
        if preset is None or preset.invoke is None or preset.stream is None:
            raise InternalError(f"{self.program.spec} was located without a way to start it")
        invocation = preset.invoke(build_launch_request(self.program, conversation, site))
        stream = preset.stream()
        notes = ActivityLog(site, build_mask(self.program))
        with prepare_run(self.program, invocation, site, seconds, notes) as ready:
            reader = _OutputReader(stream, notes)
            execution = site.run(replace(ready.job, on_output=reader.add))
            reader.end()
            last_lines = ready.read_last_lines()
        final = _build_final(stream, execution, last_lines)
        turn = convert_result(conversation, final, self.program, notes.mask)
        return turn.model_copy(update={"acted": has_acted(conversation, execution)})

    def close(self) -> None:
        """Do nothing: this backend holds no resources."""


def _build_final(stream: OutputReader, execution: SandboxResult, last_lines: str) -> ProgramResult:
    """Return the program's own result, with a fault added if it did not end normally.

    A fault that the program reports itself takes precedence: one program ends with the provider's status as its exit
    code, which looks like a signal.
    """
    final = stream.is_final(execution.exit_code)
    if execution.exit_code is not None and final.fault is not None:
        return final
    if fault := find_execution_fault(execution, last_lines):
        return replace(final, fault=fault)
    if not execution.exit_code:
        return final
    why = f"ended with exit code {execution.exit_code}\n{last_lines or final.text}".rstrip()
    return replace(final, fault=Fault(kind=FaultKind.CRASHED, why=why))


class _OutputReader:
    """Read what the program prints, line by line."""

    def __init__(self, stream: OutputReader, notes: ActivityLog) -> None:
        self._stream = stream
        self._notes = notes
        self._lines = LineSplitter()

    def add(self, data: bytes) -> None:
        for line in self._lines.add(data):
            self._read_line(line)

    def end(self) -> None:
        self._read_line(self._lines.take_rest())

    def _read_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        for activity in self._stream.line(text) if text.strip() else ():
            self._notes.add(activity)
