"""`cmd:<shell command line>`: any program as an executor or an architect.

An executor edits files in its work tree. `PROOFSTONE_TASK` names a file with the assignment, `PROOFSTONE_RESULT` a file
that it may write. Without a result the exit code decides. A result that says success together with an exit code other
than 0 contradicts itself and counts as a failure.

An architect reads `PROOFSTONE_REVIEW` and writes its verdict to `PROOFSTONE_VERDICT`. An exit code alone approves
nothing, and an approval together with an exit code other than 0 does not count.
"""

from __future__ import annotations

import signal
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
from proofstone.agents.executors.output import OutputTail, read_output_file
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
from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import SandboxResult

_SHOWN_LINES = 20


@dataclass(frozen=True)
class CommandExecutor:
    command: str

    @property
    def spec(self) -> str:
        return f"cmd:{self.command}"

    def execute(self, assignment: Assignment, site: ExecutionContext) -> ExecutionOutcome:
        task, result = site.scratch / "task.json", create_result_path(site.scratch / "result", "result.json")
        task.write_text(f"{assignment.model_dump_json(indent=2)}\n", "utf-8")
        tail = OutputTail()
        execution = site.run(
            ShellCommand(
                command=self.command,
                seconds=assignment.deadline_seconds,
                env={"PROOFSTONE_ATTEMPT": str(assignment.attempt), "PROOFSTONE_TASK_ID": assignment.task_id},
                reads={"PROOFSTONE_TASK": task},
                writes={"PROOFSTONE_RESULT": result},
                on_output=tail.add,
            )
        )
        return find_failed_outcome(execution) or self._read_result(execution, result, tail)

    def _read_result(self, execution: SandboxResult, result: Path, tail: OutputTail) -> ExecutionOutcome:
        """Return the outcome of a program that ended by itself."""
        code, duration = execution.exit_code or 0, execution.duration_ms
        written = read_output_file(result)
        if written is None:
            return ExecutionOutcome(_result_from_exit_code(code, tail), exit_code=code, duration_ms=duration)
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
        output += "\nthe command cannot be started: it sees only committed files and its own /tmp; see docs/gate.md"
    last = output.rpartition("\n")[2]
    error = f"exit code {code}" + (f": {last}" if last else "") + (f"\n{output}" if output != last else "")
    return ExecutorResult(status=ExecutorStatus.FAILURE, error=error)


def create_result_path(folder: Path, name: str) -> Path:
    """Return the path of a file in a new, empty folder, also when the same attempt is repeated."""
    if folder.is_dir():
        remove_folder(folder)
    folder.mkdir(mode=0o700, parents=True)
    return folder / name


_CMD_SHOWN_LINES = 10


@dataclass(frozen=True)
class CommandArchitect:
    command: str

    @property
    def spec(self) -> str:
        return f"cmd:{self.command}"

    def review(self, request: ReviewRequest, site: ExecutionContext) -> ReviewOutcome:
        question, answer = site.scratch / "review.json", create_result_path(site.scratch / "verdict", "verdict.json")
        question.write_text(f"{request.model_dump_json(indent=2)}\n", "utf-8")
        tail = OutputTail()
        execution = site.run(
            ShellCommand(
                command=self.command,
                seconds=request.deadline_seconds,
                env={"PROOFSTONE_ATTEMPT": str(request.attempt), "PROOFSTONE_TASK_ID": request.task_id},
                reads={"PROOFSTONE_REVIEW": question},
                writes={"PROOFSTONE_VERDICT": answer},
                on_output=tail.add,
            )
        )
        if ended := find_failed_outcome(execution):
            return build_aborted_review(ended)
        written = read_output_file(answer)
        if written is None:
            output = tail.lines(_CMD_SHOWN_LINES)
            why = f"nothing was written to $PROOFSTONE_VERDICT (exit code {execution.exit_code})"
            return NoVerdict(why=why + (f":\n{output}" if output else ""))
        verdict = parse_verdict(written, self.spec)
        if execution.exit_code and _is_approval(verdict):
            return NoVerdict(why=f"it approves, but ended with exit code {execution.exit_code}")
        return verdict


def _is_approval(verdict: ArchitectVerdict | NoVerdict) -> bool:
    return isinstance(verdict, ArchitectVerdict) and verdict.verdict is ArchitectDecision.APPROVED
