"""What a run that ends without a commit leaves for the person: what was accomplished, and what they could do now. Pure.

| the run                                  | next moves                                                             |
|------------------------------------------|------------------------------------------------------------------------|
| was halted by a blocker                  | resume, which fixes it and reviews again; look at the work; start anew |
| failed, with a part of the work done     | look at the work; start again with what is left; another agent         |
| failed, with nothing done                | read why; say more in the request; another agent                       |
| was stopped by a person, or by a budget  | none: the person knows, and the report names the command               |
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from proofstone.agents.roles.models.gate import TaskState
from proofstone.gate.models import RunOutcome, TaskReport
from proofstone.pipeline.models.run import GateSummary, RunReport

_MAX_NAMED_TASKS = 3


def list_partial_results(gates: Sequence[GateSummary]) -> tuple[str, ...]:
    """Return the tasks whose work has passed the task gate, although it is not committed."""
    return tuple(
        f"{task.name}: done and checked, but not committed"
        for gate in gates
        for task in gate.tasks
        if task.state is TaskState.APPROVED
    )


def suggest_next_moves(report: RunReport, patch: str = "") -> tuple[str, ...]:
    """Return two or three things that the person could do now; none if they ended the run themselves. `patch` is the
    file with the work so far, if there is any.
    """
    if report.outcome not in (RunOutcome.FAILED, RunOutcome.HALTED) or was_ended_by_person(report):
        return ()
    run = report.run_id
    look = f"look at the work so far: git apply {shlex.quote(patch)}" if patch else ""
    read = f"read why: {report.bundle}" if report.bundle else f"read why: proofstone status {run} --verbose"
    again = "start again, and let another agent do the part that failed: --backend ROLE=SPEC"
    if report.awaits_fix:
        resume = f"have it fixed and reviewed again: proofstone resume {run}"
        return tuple(filter(None, (resume, look or read, "start again with a request that avoids it")))
    failed = [task.name for task in _unfinished_tasks(report)]
    if report.partial and failed:
        rest = f"start again with what is left: {', '.join(failed[:_MAX_NAMED_TASKS])}"
        return tuple(filter(None, (look or read, rest, again)))
    return (look or read, "say more in the request: what failed, and what should happen instead", again)


def _unfinished_tasks(report: RunReport) -> list[TaskReport]:
    last = report.gates[-1].tasks if report.gates else ()
    done = {task.name for gate in report.gates for task in gate.tasks if task.state is TaskState.APPROVED}
    return [task for task in last if task.name not in done]


def was_ended_by_person(report: RunReport) -> bool:
    """Return whether a person ended the run at one of its approvals."""
    return any(entry.selected_option in ("abort", "abandon") for entry in report.approvals)
