"""What became of a run as a whole. Pure.

| first match                                                                  | outcome          |
|------------------------------------------------------------------------------|------------------|
| the budget ran out                                                           | budget_exhausted |
| 3 tasks of one wave failed, or claims were wrong in 3 tasks                   | halted           |
| a task failed and has no attempts left, or a must-have does not hold         | failed           |
| a person is asked: checkpoint, review, blocked task, work they must commit   | needs_human      |
| every task is finished                                                       | passed           |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from proofstone.contracts.gate import CLAIM_MISMATCH, TaskState
from proofstone.contracts.gate_record import TaskRecord
from proofstone.contracts.gate_report import MustHaveResult, RunOutcome
from proofstone.contracts.plan import Plan, PlanTask
from proofstone.core.gate.retry import HALT_FAILURES, HALT_MISMATCHES, may_retry
from proofstone.core.gate.schedule import ready


def exhausted(record: TaskRecord) -> bool:
    """Whether it failed and the gate does not try again."""
    return record.state is TaskState.FAILED and not may_retry(record)


def halted(plan: Plan, records: Mapping[str, TaskRecord], recent: Collection[str]) -> str:
    """Why the run must stop at once, if it must. `recent`: tasks to which something happened since a person last
    resumed the run; what they had seen by then does not stop it again."""
    failed = Counter(plan.task(id).wave for id in recent if exhausted(records[id]))
    for wave, count in sorted(failed.items()):
        if count >= HALT_FAILURES:
            return f"{count} tasks of wave {wave} failed"
    liars = sorted(id for id in recent if _contradicted(records[id]))
    if len(liars) >= HALT_MISMATCHES:
        return f"what the executor claims is not what was seen, in {', '.join(liars)}"
    return ""


def outcome(
    plan: Plan,
    records: Mapping[str, TaskRecord],
    must_haves: Sequence[MustHaveResult],
    *,
    recent: Collection[str],
    budget: str = "",
) -> tuple[RunOutcome, str]:
    """The outcome, and why it is not `passed`."""
    if budget:
        return RunOutcome.BUDGET_EXHAUSTED, budget
    if why := halted(plan, records, recent):
        return RunOutcome.HALTED, why
    failed = [f"{plan.task(id).name} ({id})" for id, record in records.items() if exhausted(record)]
    if failed:
        return RunOutcome.FAILED, f"failed: {', '.join(failed)}"
    missing = [one for one in must_haves if one.holds is False]
    if missing:
        return RunOutcome.FAILED, f"{missing[0].what}: {missing[0].detail}"
    if all(record.finished for record in records.values()):
        return RunOutcome.PASSED, ""
    asked = [task.id for task in plan.tasks if _asks(task, records)]
    return RunOutcome.NEEDS_HUMAN, f"a person is asked about {', '.join(asked)}"


def _asks(task: PlanTask, records: Mapping[str, TaskRecord]) -> bool:
    """Whether it waits for a person, and not for another task."""
    record = records[task.id]
    if record.state is TaskState.PENDING:
        return ready(task, records)
    return not record.finished


def _contradicted(record: TaskRecord) -> bool:
    if record.evidence is not None and record.evidence.mismatches:
        return True
    last = record.failures[-1:]
    return any(reason.check == CLAIM_MISMATCH for failure in last for reason in failure.reasons)
