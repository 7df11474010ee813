"""`cmd:<shell command line>`: any program as an executor, an architect or, in `backends.cmd`, a backend.

All three are started by `call_program`: the request is a file that the program reads, the answer a file that it writes.

An executor edits files in its work tree. `PROOFSTONE_TASK` names a file with the assignment, `PROOFSTONE_RESULT` a file
that it may write. Without a result the exit code decides. A result that says success together with an exit code other
than 0 contradicts itself and counts as a failure.

An architect reads `PROOFSTONE_REVIEW` and writes its verdict to `PROOFSTONE_VERDICT`. An exit code alone approves
nothing, and an approval together with an exit code other than 0 does not count.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from proofstone.agents.executors.context import (
    ExecutionContext,
    ExecutionOutcome,
    ReviewOutcome,
    ShellCommand,
    build_aborted_review,
    parse_verdict,
)
from proofstone.agents.executors.output import MAX_OUTPUT_FILE_BYTES, OutputTail, read_output_file
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    ExecutorStatus,
    NoVerdict,
    ReviewRequest,
)
from proofstone.agents.rules.answer import MalformedAnswer, parse_answer
from proofstone.check.rules.failure_text import find_missing_program
from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import SandboxResult

_SHOWN_LINES = 20


@dataclass(frozen=True)
class ProgramCall:
    """What one start of a program gave."""

    execution: SandboxResult
    written: bytes | MalformedAnswer | None
    """The content of the answer file; None if the program wrote none."""
    tail: OutputTail
    """The end of its output."""

    @property
    def failure(self) -> ExecutionOutcome | None:
        """The outcome, if the program was ended from outside."""
        return find_failed_outcome(self.execution)


def call_program(
    command: str,
    site: ExecutionContext,
    request: tuple[str, str],
    answer: str,
    *,
    seconds: float | None,
    env: Mapping[str, str],
    max_bytes: int = MAX_OUTPUT_FILE_BYTES,
    errors: Path | None = None,
    on_output: Callable[[bytes], None] = lambda _: None,
) -> ProgramCall:
    """Start a program in the sandbox.

    `request` names the variable with the path of the request, and holds its text. `answer` names the variable with the
    path to which the program may write. With `errors`, its standard error goes to that file instead of the output.
    """
    folder = Path(tempfile.mkdtemp(prefix="call-", dir=site.scratch))
    try:
        variable, text = request
        asked, answered, tail = folder / "request.json", folder / "answer" / "answer.json", OutputTail()
        asked.write_bytes(text.encode("utf-8", "replace"))
        answered.parent.mkdir(mode=0o700)

        def receive(data: bytes) -> None:
            tail.add(data)
            on_output(data)

        execution = site.run(
            ShellCommand(
                command=command if errors is None else f'exec 2>"$PROOFSTONE_ERRORS"\n{command}',
                seconds=seconds,
                env=env,
                reads={variable: asked},
                writes={answer: answered, **({} if errors is None else {"PROOFSTONE_ERRORS": errors})},
                on_output=receive,
            )
        )
        return ProgramCall(execution, read_output_file(answered, max_bytes), tail)
    finally:
        remove_folder(folder)


@dataclass(frozen=True)
class CommandExecutor:
    command: str

    @property
    def spec(self) -> str:
        return f"cmd:{self.command}"

    def execute(self, assignment: Assignment, site: ExecutionContext) -> ExecutionOutcome:
        call = call_program(
            self.command,
            site,
            ("PROOFSTONE_TASK", f"{assignment.model_dump_json(indent=2)}\n"),
            "PROOFSTONE_RESULT",
            seconds=assignment.deadline_seconds,
            env={"PROOFSTONE_ATTEMPT": str(assignment.attempt), "PROOFSTONE_TASK_ID": assignment.task_id},
        )
        return call.failure or self._read_result(call)

    def _read_result(self, call: ProgramCall) -> ExecutionOutcome:
        """Return the outcome of a program that ended by itself."""
        code, duration, written = call.execution.exit_code or 0, call.execution.duration_ms, call.written
        if written is None:
            return ExecutionOutcome(
                _result_from_exit_code(code, call.tail),
                exit_code=code,
                duration_ms=duration,
                missing_program=find_missing_program(code, call.tail.lines(_SHOWN_LINES)),
            )
        claim = written if isinstance(written, MalformedAnswer) else parse_answer(written, ExecutorResult)
        if isinstance(claim, MalformedAnswer):
            why = f"the result in $PROOFSTONE_RESULT is malformed: {claim.why}"
            return ExecutionOutcome(None, malformed=why, exit_code=code, duration_ms=duration)
        if code and claim.status is ExecutorStatus.SUCCESS:
            error = f"the result says success, but the program ended with exit code {code}"
            claim = claim.model_copy(update={"status": ExecutorStatus.FAILURE, "error": error})
        return ExecutionOutcome(claim, exit_code=code, duration_ms=duration)


def find_failed_outcome(execution: SandboxResult) -> ExecutionOutcome | None:
    """Return the outcome of an execution that was ended from outside. Return None if the program ended by itself, or
    was ended because it was no longer needed."""
    code, duration = execution.exit_code, execution.duration_ms
    if execution.was_stopped:
        return None
    if execution.cancelled:
        return ExecutionOutcome(None, cancelled=True, duration_ms=duration, end_reason="interrupted")
    if execution.timed_out:
        why = execution.limit or f"not finished after {duration / 1000:.0f} s"
        return ExecutionOutcome(None, timed_out=True, duration_ms=duration, end_reason=why)
    crash = _describe_crash(execution)
    return (
        ExecutionOutcome(None, exit_code=code, crashed=crash, duration_ms=duration, end_reason=crash) if crash else None
    )


def _describe_crash(execution: SandboxResult) -> str:
    if execution.setup_error:
        return f"the sandbox could not start it: {execution.setup_error}"
    if execution.limit:
        return f"ended at {execution.limit}"
    number = (execution.exit_code or 0) - 128
    if number in set(signal.Signals):
        return f"ended by the signal {signal.Signals(number).name} (exit code {execution.exit_code})"
    return ""


def _result_from_exit_code(code: int, tail: OutputTail) -> ExecutorResult:
    if code == 0:
        return ExecutorResult(status=ExecutorStatus.SUCCESS)
    output = tail.lines(_SHOWN_LINES)
    if code in (126, 127):
        output += (
            "\nthe command cannot be started: it sees only committed files and its own /tmp; "
            "see `proofstone manual gate`"
        )
    last = output.rpartition("\n")[2]
    error = f"exit code {code}" + (f": {last}" if last else "") + (f"\n{output}" if output != last else "")
    return ExecutorResult(status=ExecutorStatus.FAILURE, error=error)


_CMD_SHOWN_LINES = 10


@dataclass(frozen=True)
class CommandArchitect:
    command: str

    @property
    def spec(self) -> str:
        return f"cmd:{self.command}"

    def review(self, request: ReviewRequest, site: ExecutionContext) -> ReviewOutcome:
        call = call_program(
            self.command,
            site,
            ("PROOFSTONE_REVIEW", f"{request.model_dump_json(indent=2)}\n"),
            "PROOFSTONE_VERDICT",
            seconds=request.deadline_seconds,
            env={"PROOFSTONE_ATTEMPT": str(request.attempt), "PROOFSTONE_TASK_ID": request.task_id},
        )
        if call.failure:
            return build_aborted_review(call.failure)
        code = call.execution.exit_code
        if call.written is None:
            output = call.tail.lines(_CMD_SHOWN_LINES)
            why = f"nothing was written to $PROOFSTONE_VERDICT (exit code {code})"
            missing_program = find_missing_program(code, output)
            return NoVerdict(why=why + (f":\n{output}" if output else ""), missing_program=missing_program)
        verdict = parse_verdict(call.written, self.spec)
        if code and _is_approval(verdict):
            return NoVerdict(why=f"it approves, but ended with exit code {code}")
        return verdict


def _is_approval(verdict: ArchitectVerdict | NoVerdict) -> bool:
    return isinstance(verdict, ArchitectVerdict) and verdict.verdict is ArchitectDecision.APPROVED
