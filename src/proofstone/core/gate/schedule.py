"""Which tasks may start now. Pure: the same plan and the same records give the same answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from proofstone.contracts.gate import TaskState
from proofstone.contracts.gate_record import TaskRecord
from proofstone.contracts.plan import Plan, PlanTask
from proofstone.core.scope import overlap


def startable(
    plan: Plan, records: Mapping[str, TaskRecord], busy: Collection[str], held: Collection[str], slots: int
) -> list[str]:
    """Tasks to start, in document order. `busy`: executors at work; `held`: tasks that are under way in any stage,
    whose files nobody else may touch meanwhile."""
    free = slots - len(busy)
    taken = [plan.task(id).files for id in held]
    chosen: list[str] = []
    for task in plan.tasks:
        if len(chosen) >= free:
            break
        if task.type.is_checkpoint or not ready(task, records) or task.id in held:
            continue
        if any(overlap(task.files, files) for files in taken):
            continue
        chosen.append(task.id)
        taken.append(task.files)
    return chosen


def ready(task: PlanTask, records: Mapping[str, TaskRecord]) -> bool:
    """Whether it waits for nothing but a free slot, or the person's word."""
    pending = records[task.id].state is TaskState.PENDING
    return pending and all(records[id].finished for id in task.depends_on)


def waiting_for(task: PlanTask, records: Mapping[str, TaskRecord]) -> tuple[str, ...]:
    """The tasks that it still waits for."""
    return tuple(id for id in task.depends_on if not records[id].finished)
