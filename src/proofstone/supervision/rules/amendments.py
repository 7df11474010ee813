"""Amend a plan while it is carried out: a task may change more files, and must meet more requirements. Pure.

Nothing is ever removed from a task: it keeps all its work and all its criteria. A file that decides what counts as
proof, or whose risk is 🔴, is never added on the word of an agent: a person names it, or a new plan declares it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from proofstone.check.rules.protected import find_roles
from proofstone.common.globs import find_undeclared
from proofstone.common.models import ChangeKind, FrozenModel
from proofstone.common.risk import PathChange, Risk, assess_risk
from proofstone.plans.models import Plan, PlanTask


class Amendment(FrozenModel):
    """Additions to one task."""

    task: str
    files: tuple[str, ...] = ()
    """Additional files that the task may change."""
    requirement: str = ""
    """An additional requirement that the task must meet."""
    number: int = 0
    """The number of the person's requirement. 0 if it does not come from a person."""
    why: str = ""
    by: str = ""
    """The person who allowed it; empty if the executor asked for it and the rules allowed it."""


def amend_plan(plan: Plan, amendments: Iterable[Amendment]) -> Plan:
    tasks = {task.id: task for task in plan.tasks}
    for amendment in amendments:
        tasks[amendment.task] = _extend_task(tasks[amendment.task], amendment)
    return plan.model_copy(update={"tasks": tuple(tasks[task.id] for task in plan.tasks)})


def _extend_task(task: PlanTask, amendment: Amendment) -> PlanTask:
    update: dict[str, object] = {"files": (*task.files, *find_undeclared(dict.fromkeys(amendment.files), task.files))}
    if amendment.requirement and amendment.requirement not in task.done:
        update["action"] = f"{task.action}\n\nAdded while the work was under way: {amendment.requirement}".strip()
        update["done"] = (*task.done, amendment.requirement)
    return task.model_copy(update=update)


def explain_amendment_refusal(plan: Plan, more: Amendment) -> str:
    """Return why a task cannot have these files, or an empty string. A file has one owner at a time."""
    task = plan.get_task(more.task)
    if patterns := [path for path in more.files if not _is_single_file(path)]:
        return f"{', '.join(patterns)} is not the path of a single file"
    for other in plan.tasks:
        if other.id == task.id or other.id in task.depends_on or task.id in other.depends_on:
            continue
        foreign = [path for path in more.files if not find_undeclared((path,), other.files)]
        if foreign:
            return f"{', '.join(foreign)} belongs to {other.id} ({other.name})"
    return ""


def _is_single_file(path: str) -> bool:
    """Return whether the path names one file. A pattern or folder could include files that nobody has examined."""
    parts = path.split("/")
    return bool(parts[-1]) and not set("*?") & set(path) and not {"", ".", ".."} & {*parts}


def explain_sensitive_files(files: Iterable[str], named_by_person: Collection[str] = ()) -> str:
    """Return why these files need the decision of a person, or an empty string. What a person named is decided."""
    reasons = []
    for path in files:
        risk = assess_risk(PathChange(path=path, kind=ChangeKind.MODIFIED))
        roles = ", ".join(sorted(find_roles(path)))
        if path not in named_by_person and (roles or risk.risk is Risk.RED):
            reasons.append(f"{path} ({f'protected: {roles}' if roles else f'🔴 {risk.reason}'})")
    return f"only a person or a new plan can add {', '.join(reasons)}" if reasons else ""


def amend_plan_text(text: str, plan: Plan, amendments: Iterable[Amendment]) -> str:
    """Return the plan's document with the additions, written as its author would write them. `plan` is its current
    content.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for amendment in amendments:
        task = plan.get_task(amendment.task)
        begin = task.line - 1
        for tag, added in (
            ("files", find_undeclared(amendment.files, task.files)),
            ("done", _new_criterion(task, amendment)),
        ):
            _insert(lines, begin, f"</{tag}>", added)
    return "\n".join(lines)


def _new_criterion(task: PlanTask, amendment: Amendment) -> tuple[str, ...]:
    return (amendment.requirement,) if amendment.requirement and amendment.requirement not in task.done else ()


def _insert(lines: list[str], begin: int, closing: str, added: Iterable[str]) -> None:
    """Insert the lines before the closing tag. Earlier line numbers do not change."""
    for number in range(begin, len(lines)):
        before, tag, after = lines[number].partition(closing)
        if tag:
            new = "\n".join(added)
            lines[number] = f"{before.rstrip()}\n{new}\n{tag}{after}" if new else lines[number]
            return
