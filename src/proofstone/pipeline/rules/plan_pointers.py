"""What a plan points to: criteria, requirements, decisions and paths. Pure.

A planner sometimes points to what does not exist. It is told once, in the same conversation, what does exist. If a
pointer for the executor's reading then still leads nowhere, it is dropped with a note: nothing depends on it. A
criterion that does not exist stays a reason to reject the plan (`pipeline.rules.planning`), because tasks are accepted
by their criteria.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from proofstone.agents.roles.models.pipeline import DesignOutput, PlannedTask, PlanOutput, SpecOutput
from proofstone.plans.fields import shorten_text

_PATH: Final = re.compile(r"(?!/)(?!.*(?:^|/)\.\.(?:/|$))[^\s`<>]*[./][^\s`<>]*")
_MAX_LISTED: Final = 60


class PointerCheck:
    """The check of a planner's answer: the first answer with a pointer that leads nowhere is given back, once."""

    def __init__(self, spec: SpecOutput | None, design: DesignOutput | None) -> None:
        self._spec = spec
        self._design = design
        self._is_told = False

    def __call__(self, answer: object) -> str:
        if self._is_told or not isinstance(answer, PlanOutput):
            return ""
        problems = [
            *find_unknown_criteria(answer, self._spec),
            *find_dead_pointers(answer, self._spec, self._design),
        ]
        if not problems:
            return ""
        self._is_told = True
        return f"{'; '.join(problems)}. {list_known_ids(self._spec, self._design)}"


def find_unknown_criteria(plan: PlanOutput, spec: SpecOutput | None) -> Iterator[str]:
    """Yield the criteria of tasks that the specification does not have. Without one, the planner chooses the ids."""
    if spec is None:
        return
    known_ids = [criterion.id for criterion in spec.acceptance_criteria]
    for task in plan.tasks:
        for id in task.acceptance_criteria:
            if id not in known_ids:
                yield f"task {task.id} names the criterion {id}, which does not exist; known: {', '.join(known_ids)}"


def find_dead_pointers(plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None) -> Iterator[str]:
    """Yield the context pointers that lead nowhere. Without a specification the planner knows no ids, so only paths are
    valid."""
    for task in plan.tasks:
        for pointer in task.relevant_context:
            if not _leads_somewhere(pointer, plan, spec, design):
                yield (
                    f"task {task.id} points to {shorten_text(pointer, 60)!r}: it is neither the id of a requirement, a "
                    "criterion or a decision, nor a path in the repository"
                )


def drop_dead_pointers(
    plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None
) -> tuple[PlanOutput, tuple[str, ...]]:
    """Return the plan without context pointers that lead nowhere, and a note for each of them."""
    notes = tuple(f"{problem}; it was dropped" for problem in find_dead_pointers(plan, spec, design))
    if not notes:
        return plan, ()

    def keep(task: PlannedTask) -> PlannedTask:
        kept = tuple(pointer for pointer in task.relevant_context if _leads_somewhere(pointer, plan, spec, design))
        return task.model_copy(update={"relevant_context": kept})

    return plan.model_copy(update={"tasks": tuple(map(keep, plan.tasks))}), notes


def list_known_ids(spec: SpecOutput | None, design: DesignOutput | None) -> str:
    """Return what a plan may point to, as one sentence for its planner."""
    rows = {
        "requirements": [requirement.id for requirement in (spec.requirements if spec else ())],
        "criteria": [criterion.id for criterion in (spec.acceptance_criteria if spec else ())],
        "decisions": [decision.id for decision in (design.decisions if design else ())],
    }
    known = "; ".join(f"{name}: {', '.join(ids[:_MAX_LISTED])}" for name, ids in rows.items() if ids)
    if not known:
        return "There are no ids to point to: name paths of the repository in `relevant_context`, or leave it out."
    return f"These exist: {known}. `relevant_context` may also name paths of the repository."


def _leads_somewhere(pointer: str, plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None) -> bool:
    ids = {requirement.id for requirement in (spec.requirements if spec else ())}
    ids |= {criterion.id for criterion in (spec.acceptance_criteria if spec else ())}
    ids |= {decision.id for decision in (design.decisions if design else ())}
    own = {file.path for task in plan.tasks for file in task.files}
    return pointer in ids or pointer in own or _PATH.fullmatch(pointer) is not None
