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

from proofstone.agents.executors.context import Ran, Reviewed, ShellJob, Site, cut_short, verdict_in
from proofstone.agents.executors.output import Tail, read_written
from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    Assignment,
    ExecutorResult,
    ExecutorStatus,
    NoVerdict,
    ReviewRequest,
)
from proofstone.agents.rules.answer import Malformed, parse
from proofstone.machine.files import remove
from proofstone.sandbox.job import Execution

_SHOWN_LINES = 20


@dataclass(frozen=True)
class CommandExecutor:
    command: str

    @property
    def spec(self) -> str:
        return f"cmd:{self.command}"

    def execute(self, assignment: Assignment, site: Site) -> Ran:
        task, result = site.scratch / "task.json", fresh_file(site.scratch / "result", "result.json")
        task.write_text(f"{assignment.model_dump_json(indent=2)}\n", "utf-8")
        tail = Tail()
        execution = site.run(
            ShellJob(
                command=self.command,
                seconds=assignment.deadline_seconds,
                env={"PROOFSTONE_ATTEMPT": str(assignment.attempt), "PROOFSTONE_TASK_ID": assignment.task_id},
                reads={"PROOFSTONE_TASK": task},
                writes={"PROOFSTONE_RESULT": result},
                on_output=tail.add,
            )
        )
        return ran(execution) or self._read_result(execution, result, tail)

    def _read_result(self, execution: Execution, result: Path, tail: Tail) -> Ran:
        """Return the outcome of a program that ended by itself."""
        code, duration = execution.exit_code or 0, execution.duration_ms
        written = read_written(result)
        if written is None:
            return Ran(_result_from_exit_code(code, tail), exit_code=code, duration_ms=duration)
        claim = written if isinstance(written, Malformed) else parse(written, ExecutorResult)
        if isinstance(claim, Malformed):
            why = f"the result in $PROOFSTONE_RESULT is malformed: {claim.why}"
            return Ran(None, malformed=why, exit_code=code, duration_ms=duration)
        if code and claim.status is ExecutorStatus.SUCCESS:
            error = f"the result says success, but the program ended with exit code {code}"
            claim = claim.model_copy(update={"status": ExecutorStatus.FAILURE, "error": error})
        return Ran(claim, exit_code=code, duration_ms=duration)


def ran(execution: Execution) -> Ran | None:
    """Return the outcome of an execution that was ended from outside. Return None if the program ended by itself, or
    was ended because it was no longer needed."""
    code, duration = execution.exit_code, execution.duration_ms
    if execution.ended:
        return None
    if execution.cancelled:
        return Ran(None, cancelled=True, duration_ms=duration, ended="interrupted")
    if execution.timed_out:
        why = execution.limit or f"not finished after {duration / 1000:.0f} s"
        return Ran(None, timed_out=True, duration_ms=duration, ended=why)
    crash = _describe_crash(execution)
    return Ran(None, exit_code=code, crashed=crash, duration_ms=duration, ended=crash) if crash else None


def _describe_crash(execution: Execution) -> str:
    if execution.setup_error:
        return f"the sandbox could not start it: {execution.setup_error}"
    if execution.limit:
        return f"ended at {execution.limit}"
    number = (execution.exit_code or 0) - 128
    if number in set(signal.Signals):
        return f"ended by the signal {signal.Signals(number).name} (exit code {execution.exit_code})"
    return ""


def _result_from_exit_code(code: int, tail: Tail) -> ExecutorResult:
    if code == 0:
        return ExecutorResult(status=ExecutorStatus.SUCCESS)
    output = tail.lines(_SHOWN_LINES)
    if code in (126, 127):
        output += "\nthe command cannot be started: it sees only committed files and its own /tmp; see docs/gate.md"
    last = output.rpartition("\n")[2]
    error = f"exit code {code}" + (f": {last}" if last else "") + (f"\n{output}" if output != last else "")
    return ExecutorResult(status=ExecutorStatus.FAILURE, error=error)


def fresh_file(folder: Path, name: str) -> Path:
    """Return the path of a file in a new, empty folder, also when the same attempt is repeated."""
    if folder.is_dir():
        remove(folder)
    folder.mkdir(mode=0o700, parents=True)
    return folder / name


_CMD_SHOWN_LINES = 10


@dataclass(frozen=True)
class CommandArchitect:
    command: str

    @property
    def spec(self) -> str:
        return f"cmd:{self.command}"

    def review(self, request: ReviewRequest, site: Site) -> Reviewed:
        question, answer = site.scratch / "review.json", fresh_file(site.scratch / "verdict", "verdict.json")
        question.write_text(f"{request.model_dump_json(indent=2)}\n", "utf-8")
        tail = Tail()
        execution = site.run(
            ShellJob(
                command=self.command,
                seconds=request.deadline_seconds,
                env={"PROOFSTONE_ATTEMPT": str(request.attempt), "PROOFSTONE_TASK_ID": request.task_id},
                reads={"PROOFSTONE_REVIEW": question},
                writes={"PROOFSTONE_VERDICT": answer},
                on_output=tail.add,
            )
        )
        if ended := ran(execution):
            return cut_short(ended)
        written = read_written(answer)
        if written is None:
            output = tail.lines(_CMD_SHOWN_LINES)
            why = f"nothing was written to $PROOFSTONE_VERDICT (exit code {execution.exit_code})"
            return NoVerdict(why=why + (f":\n{output}" if output else ""))
        verdict = verdict_in(written, self.spec)
        if execution.exit_code and _is_approval(verdict):
            return NoVerdict(why=f"it approves, but ended with exit code {execution.exit_code}")
        return verdict


def _is_approval(verdict: ArchitectVerdict | NoVerdict) -> bool:
    return isinstance(verdict, ArchitectVerdict) and verdict.verdict is ArchitectDecision.APPROVED
