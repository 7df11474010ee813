"""A plan that changes while it is carried out: a task may touch more, and must do more. Pure.

Nothing is ever taken away from a task: what it was to do and to prove, it still has to.
"""

from __future__ import annotations

from collections.abc import Iterable

from proofstone.common.globs import undeclared
from proofstone.common.models import Contract
from proofstone.plans.models import Plan, PlanTask


class Amendment(Contract):
    """What is added to one task."""

    task: str
    files: tuple[str, ...] = ()
    """That it may change as well."""
    requirement: str = ""
    """That it must meet as well."""
    number: int = 0
    """Of the person's word that the requirement comes from; 0: it comes from nobody's."""
    why: str = ""


def amended(plan: Plan, amendments: Iterable[Amendment]) -> Plan:
    tasks = {task.id: task for task in plan.tasks}
    for amendment in amendments:
        tasks[amendment.task] = _more(tasks[amendment.task], amendment)
    return plan.model_copy(update={"tasks": tuple(tasks[task.id] for task in plan.tasks)})


def _more(task: PlanTask, more: Amendment) -> PlanTask:
    update: dict[str, object] = {"files": (*task.files, *undeclared(dict.fromkeys(more.files), task.files))}
    if more.requirement and more.requirement not in task.done:
        update["action"] = f"{task.action}\n\nAdded while the work was under way: {more.requirement}".strip()
        update["done"] = (*task.done, more.requirement)
    return task.model_copy(update=update)


def why_not(plan: Plan, more: Amendment) -> str:
    """Why a task cannot have these files; empty if it can. A file has one owner at a time."""
    task = plan.task(more.task)
    if wide := [path for path in more.files if not _is_one_file(path)]:
        return f"{', '.join(wide)} is not the path of one file"
    for other in plan.tasks:
        if other.id == task.id or other.id in task.depends_on or task.id in other.depends_on:
            continue
        theirs = [path for path in more.files if not undeclared((path,), other.files)]
        if theirs:
            return f"{', '.join(theirs)} belongs to {other.id} ({other.name})"
    return ""


def _is_one_file(path: str) -> bool:
    """What is added is named file by file: a pattern or a folder would hold what nobody has looked at."""
    parts = path.split("/")
    return bool(parts[-1]) and not set("*?") & set(path) and not {"", ".", ".."} & {*parts}


def amended_text(text: str, plan: Plan, amendments: Iterable[Amendment]) -> str:
    """The plan's own document with what was added, as its author would have written it. `plan` is what it says now."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for amendment in amendments:
        task = plan.task(amendment.task)
        begin = task.line - 1
        for tag, added in (
            ("files", undeclared(amendment.files, task.files)),
            ("done", _new_criterion(task, amendment)),
        ):
            _insert(lines, begin, f"</{tag}>", added)
    return "\n".join(lines)


def _new_criterion(task: PlanTask, more: Amendment) -> tuple[str, ...]:
    return (more.requirement,) if more.requirement and more.requirement not in task.done else ()


def _insert(lines: list[str], begin: int, closing: str, added: Iterable[str]) -> None:
    """Before the closing tag, each on a line of its own; line numbers of what comes before stay as they are."""
    for number in range(begin, len(lines)):
        before, tag, after = lines[number].partition(closing)
        if tag:
            new = "\n".join(added)
            lines[number] = f"{before.rstrip()}\n{new}\n{tag}{after}" if new else lines[number]
            return
