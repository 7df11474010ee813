"""The order in which the tasks of a plan may run: the dependencies of each task, and the wave that follows from them.

| the plan has | a task waits for | |---|---| | nothing | the task before it | | `### Wave N` headings or `wave=` |
every task of the nearest lower wave that has tasks | | `depends_on` on any task | the tasks it names; a task without it
waits for none (waves, if any, still count) |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofstone.plans.fields import make_error, shorten_text
from proofstone.plans.models import PlanProblem

_LABEL = re.compile(
    r"(?:task|t|aufgabe|tâche|tarea|tarefa|задача|任务|任務|タスク)[\s_#-]*([0-9][0-9.]*[a-z]?)", re.IGNORECASE
)
_NUMBER = re.compile(r"#?([0-9][0-9.]*[a-z]?)")


@dataclass(frozen=True)
class TaskOrdering:
    """What a task says about its place in the order."""

    id: str
    name: str
    line: int
    own_id: str = ""
    """Its `id=` attribute."""
    wave: int | None = None
    depends_on: tuple[str, ...] | None = None
    """Its `depends_on` as written; None if it has none."""


DependencyEdges = Mapping[str, tuple[str, ...]]


def resolve_dependencies(tasks: Sequence[TaskOrdering]) -> tuple[DependencyEdges, tuple[PlanProblem, ...]]:
    """Return the ids of the dependencies of each task, and a problem for each reference to an unknown task."""
    problems: list[PlanProblem] = []
    has_graph = any(task.depends_on is not None for task in tasks)
    has_waves = any(task.wave is not None for task in tasks)
    by_wave: dict[int, list[str]] = {}
    for task in tasks:
        by_wave.setdefault(task.wave or 0, []).append(task.id)
    lower = {wave: max((other for other in by_wave if other < wave), default=None) for wave in by_wave}
    names = _Names(tasks)
    edges: dict[str, tuple[str, ...]] = {}
    for index, task in enumerate(tasks):
        waits: list[str] = []
        if has_graph:
            waits += _resolve_references(task, names, problems)
        if has_waves and (below := lower[task.wave or 0]) is not None:
            waits += by_wave[below]
        if not has_graph and not has_waves and index > 0:
            waits.append(tasks[index - 1].id)
        edges[task.id] = tuple(dict.fromkeys(waits))
    problems += _find_cycles(tasks, edges)
    return edges, tuple(problems)


def compute_task_waves(edges: DependencyEdges) -> dict[str, int]:
    """Return the wave of each task: 1 + the highest wave of its dependencies. A task in a cycle has wave 1."""
    result: dict[str, int] = {}
    for id in _sort_topologically(edges):
        result[id] = 1 + max((result[other] for other in edges[id]), default=0)
    return {id: result.get(id, 1) for id in edges}


def find_concurrent_tasks(edges: DependencyEdges) -> dict[str, frozenset[str]]:
    """For each task, return the tasks that neither depend on it nor are among its dependencies, even indirectly."""
    before: dict[str, frozenset[str]] = {}
    for id in _sort_topologically(edges):
        before[id] = frozenset(edges[id]).union(*(before[other] for other in edges[id]))
    return {
        id: frozenset(other for other in before if other != id and other not in before[id] and id not in before[other])
        for id in before
    }


def _resolve_references(task: TaskOrdering, names: _Names, problems: list[PlanProblem]) -> list[str]:
    ids: list[str] = []
    after = task.depends_on or ()
    if exact := names.exactly(", ".join(after)):  # a name may hold commas
        after = (exact,)
    for reference in after:
        id = names.find(reference)
        if id is None:
            known = ", ".join(names.all[:12])
            hint = f"the tasks are: {known}; use a number, an id= or the exact name"
            message = f"{task.name!r} depends on {shorten_text(reference, 40)!r}, which is not a task of this plan"
            problems.append(make_error("unknown-dependency", task.line, message, hint, task.id))
        elif id == task.id:
            message = f"{task.name!r} depends on itself"
            problems.append(
                make_error("self-dependency", task.line, message, "name the tasks before it, or none", task.id)
            )
        else:
            ids.append(id)
    return ids


class _Names:
    """All names of each task. If two tasks share a name, it means the earlier one."""

    def __init__(self, tasks: Sequence[TaskOrdering]) -> None:
        self.all = tuple(shorten_text(f"{at} ({task.name})", 40) for at, task in enumerate(tasks, start=1))
        self._exact: dict[str, str] = {}
        self._numbers: dict[str, str] = {}
        for task in tasks:
            for name in filter(None, (task.own_id, task.id, task.name, _strip_label(task.name))):
                self._exact.setdefault(_fold(name), task.id)
            if label := _LABEL.match(task.name):
                self._numbers.setdefault(_normalize_number(label[1]), task.id)
        for at, task in enumerate(tasks, start=1):
            self._numbers.setdefault(str(at), task.id)

    def exactly(self, reference: str) -> str | None:
        return self._exact.get(_fold(reference))

    def find(self, reference: str) -> str | None:
        number = _NUMBER.fullmatch(reference) or _LABEL.fullmatch(reference)
        by_number = self._numbers.get(_normalize_number(number[1])) if number else None
        exact = self.exactly(reference)
        return exact or by_number


def _strip_label(name: str) -> str:
    label = _LABEL.match(name)
    return name[label.end() :].lstrip(" \t:：.–—-") if label else ""


def _fold(name: str) -> str:
    return " ".join(name.split()).casefold()


def _normalize_number(text: str) -> str:
    return text.rstrip(".").lstrip("0") or "0"


def _sort_topologically(edges: DependencyEdges) -> list[str]:
    """Sort the tasks so that each follows its dependencies. Tasks in a cycle, or after one, are left out."""
    remaining = {id: len(before) for id, before in edges.items()}
    dependents: dict[str, list[str]] = {id: [] for id in edges}
    for id, before in edges.items():
        for other in before:
            dependents[other].append(id)
    order = [id for id, count in remaining.items() if not count]
    for id in order:  # the list grows during the loop
        for other in dependents[id]:
            remaining[other] -= 1
            if not remaining[other]:
                order.append(other)
    return order


def _find_cycles(tasks: Sequence[TaskOrdering], edges: DependencyEdges) -> list[PlanProblem]:
    """Return one problem for each cycle, reported at its first task."""
    ordered = set(_sort_topologically(edges))
    by_id = {task.id: task for task in tasks}
    reported: set[str] = set()
    problems = []
    for task in tasks:
        path: list[str] = []
        id = task.id
        while id not in ordered and id not in reported and id not in path:
            path.append(id)
            id = next(other for other in edges[id] if other not in ordered)
        if id in path:
            cycle = path[path.index(id) :]
            names = " → ".join(shorten_text(by_id[member].name, 40) for member in (*cycle[:6], cycle[0]))
            hint = "take one depends_on out, so that one of them can begin"
            line = min(by_id[member].line for member in cycle)
            problems.append(make_error("cycle", line, f"these tasks wait for one another: {names}", hint, cycle[0]))
        reported.update(path)
    return problems
