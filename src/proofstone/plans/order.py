"""In which order the tasks of a plan may run: whom each waits for, and the wave that follows from it.

| the plan says | a task waits for |
|---|---|
| nothing | the task before it |
| `### Wave N` headings or `wave=` | every task of the nearest lower wave that has tasks |
| `depends_on` on any task | what it names; a task without it waits for nobody (waves, if any, still count) |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proofstone.plans.fields import error, shortened
from proofstone.plans.models import PlanProblem

_LABEL = re.compile(
    r"(?:task|t|aufgabe|tâche|tarea|tarefa|задача|任务|任務|タスク)[\s_#-]*([0-9][0-9.]*[a-z]?)", re.IGNORECASE
)
_NUMBER = re.compile(r"#?([0-9][0-9.]*[a-z]?)")


@dataclass(frozen=True)
class Wanted:
    """What one task says about its place."""

    id: str
    name: str
    line: int
    own_id: str = ""
    """Its `id=` attribute."""
    wave: int | None = None
    after: tuple[str, ...] | None = None
    """Its `depends_on`, as written; None if it has none."""


Edges = Mapping[str, tuple[str, ...]]


def dependencies(tasks: Sequence[Wanted]) -> tuple[Edges, tuple[PlanProblem, ...]]:
    """For each task the ids of those it waits for, and the references that lead nowhere."""
    problems: list[PlanProblem] = []
    graph = any(task.after is not None for task in tasks)
    waved = any(task.wave is not None for task in tasks)
    by_wave: dict[int, list[str]] = {}
    for task in tasks:
        by_wave.setdefault(task.wave or 0, []).append(task.id)
    lower = {wave: max((other for other in by_wave if other < wave), default=None) for wave in by_wave}
    names = _Names(tasks)
    edges: dict[str, tuple[str, ...]] = {}
    for at, task in enumerate(tasks):
        waits: list[str] = []
        if graph:
            waits += _resolved(task, names, problems)
        if waved and (below := lower[task.wave or 0]) is not None:
            waits += by_wave[below]
        if not graph and not waved and at > 0:
            waits.append(tasks[at - 1].id)
        edges[task.id] = tuple(dict.fromkeys(waits))
    problems += _cycles(tasks, edges)
    return edges, tuple(problems)


def waves(edges: Edges) -> dict[str, int]:
    """1 + the highest wave that a task waits for; 1 for those that wait in a circle."""
    found: dict[str, int] = {}
    for id in _in_order(edges):
        found[id] = 1 + max((found[other] for other in edges[id]), default=0)
    return {id: found.get(id, 1) for id in edges}


def may_run_together(edges: Edges) -> dict[str, frozenset[str]]:
    """For each task those that neither wait for it nor are waited for by it, however indirectly."""
    before: dict[str, frozenset[str]] = {}
    for id in _in_order(edges):
        before[id] = frozenset(edges[id]).union(*(before[other] for other in edges[id]))
    return {
        id: frozenset(other for other in before if other != id and other not in before[id] and id not in before[other])
        for id in before
    }


def _resolved(task: Wanted, names: _Names, problems: list[PlanProblem]) -> list[str]:
    found: list[str] = []
    after = task.after or ()
    if whole := names.exactly(", ".join(after)):  # a name may hold commas
        after = (whole,)
    for reference in after:
        id = names.find(reference)
        if id is None:
            known = ", ".join(names.all[:12])
            hint = f"there are: {known}; a number, an id= or the exact name will do"
            message = f"{task.name!r} depends on {shortened(reference, 40)!r}, which is no task of this plan"
            problems.append(error("unknown-dependency", task.line, message, hint, task.id))
        elif id == task.id:
            message = f"{task.name!r} depends on itself"
            problems.append(error("self-dependency", task.line, message, "name the tasks before it, or none", task.id))
        else:
            found.append(id)
    return found


class _Names:
    """Every way to speak of a task. Where two tasks go by the same, the earlier one is meant."""

    def __init__(self, tasks: Sequence[Wanted]) -> None:
        self.all = tuple(shortened(f"{at} ({task.name})", 40) for at, task in enumerate(tasks, start=1))
        self._exact: dict[str, str] = {}
        self._numbers: dict[str, str] = {}
        for task in tasks:
            for name in filter(None, (task.own_id, task.id, task.name, _after_label(task.name))):
                self._exact.setdefault(_folded(name), task.id)
            if label := _LABEL.match(task.name):
                self._numbers.setdefault(_number(label[1]), task.id)
        for at, task in enumerate(tasks, start=1):
            self._numbers.setdefault(str(at), task.id)

    def exactly(self, reference: str) -> str | None:
        return self._exact.get(_folded(reference))

    def find(self, reference: str) -> str | None:
        number = _NUMBER.fullmatch(reference) or _LABEL.fullmatch(reference)
        by_number = self._numbers.get(_number(number[1])) if number else None
        own = self.exactly(reference)
        return own or by_number


def _after_label(name: str) -> str:
    label = _LABEL.match(name)
    return name[label.end() :].lstrip(" \t:：.–—-") if label else ""


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def _number(text: str) -> str:
    return text.rstrip(".").lstrip("0") or "0"


def _in_order(edges: Edges) -> list[str]:
    """Every task after those it waits for; without those in a circle, and those behind it."""
    left = {id: len(before) for id, before in edges.items()}
    behind: dict[str, list[str]] = {id: [] for id in edges}
    for id, before in edges.items():
        for other in before:
            behind[other].append(id)
    order = [id for id, count in left.items() if not count]
    for id in order:  # grows while it is walked
        for other in behind[id]:
            left[other] -= 1
            if not left[other]:
                order.append(other)
    return order


def _cycles(tasks: Sequence[Wanted], edges: Edges) -> list[PlanProblem]:
    """One problem a circle, told at its first task."""
    ordered = set(_in_order(edges))
    by_id = {task.id: task for task in tasks}
    told: set[str] = set()
    problems = []
    for task in tasks:
        walked: list[str] = []
        id = task.id
        while id not in ordered and id not in told and id not in walked:
            walked.append(id)
            id = next(other for other in edges[id] if other not in ordered)
        if id in walked:
            circle = walked[walked.index(id) :]
            names = " → ".join(shortened(by_id[item].name, 40) for item in (*circle[:6], circle[0]))
            hint = "take one depends_on out, so that one of them can begin"
            line = min(by_id[item].line for item in circle)
            problems.append(error("cycle", line, f"these tasks wait for one another: {names}", hint, circle[0]))
        told.update(walked)
    return problems
