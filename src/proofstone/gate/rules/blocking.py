"""What follows when an executor says that it is blocked. Pure.

| what it says is missing                                | what follows                                       |
|--------------------------------------------------------|----------------------------------------------------|
| an unfinished task, or a file of one                   | that task is run first, then this one again        |
| the same, but that task waits for this one             | a person is asked                                  |
| a finished task, or a file of one                      | a person is asked: the state is inconsistent       |
| anything else                                          | a person is asked                                  |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from proofstone.gate.models import TaskBlocked, TaskRecord
from proofstone.plans.models import Plan, PlanTask

_FILE: Final = re.compile(r"[^*?\[\]]*[./][^*?\[\]]*")
"""A path that no prose contains by chance, and no pattern."""


def explain_block(plan: Plan, records: Mapping[str, TaskRecord], task_id: str, event: TaskBlocked) -> TaskBlocked:
    """Return the event with the tasks that are to be run first, or with the inconsistency that a person must see."""
    if event.disputes or records[task_id].checkpoint:
        return event
    named = [task for task in plan.tasks if task.id != task_id and _is_named(plan, task, event.error)]
    unfinished = tuple(task.id for task in named if not records[task.id].is_finished)
    if unfinished:
        is_circular = any(_waits_for(plan, records, id, task_id) for id in unfinished)
        return event if is_circular else event.model_copy(update={"waits_for": unfinished})
    if not named:
        return event
    finished = ", ".join(f"{task.name} ({task.id})" for task in named)
    verb = "are" if len(named) > 1 else "is"
    detail = f"state inconsistent: {finished} {verb} finished, and the executor says: {event.error}"
    return event.model_copy(update={"error": detail})


def _is_named(plan: Plan, task: PlanTask, text: str) -> bool:
    """Whether the text names the task: by its id, its number, its name, or a file that only this task declares."""
    number = plan.tasks.index(task) + 1
    names = (re.escape(task.id), rf"task\s+#?0*{number}", re.escape(task.name))
    if any(re.search(rf"(?<![\w-]){name}(?![\w-])", text, re.IGNORECASE) for name in names):
        return True
    others = {path for other in plan.tasks if other is not task for path in other.files}
    files = (path for path in task.files if path not in others and _FILE.fullmatch(path))
    return any(re.search(rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])", text) for path in files)


def _waits_for(plan: Plan, records: Mapping[str, TaskRecord], waiting: str, wanted: str) -> bool:
    """Whether a task waits for another one, directly or through others."""
    pending, seen = [waiting], set[str]()
    while pending:
        current = pending.pop()
        if current == wanted:
            return True
        if current not in seen:
            seen.add(current)
            pending += [*plan.get_task(current).depends_on, *records[current].waits_for]
    return False
