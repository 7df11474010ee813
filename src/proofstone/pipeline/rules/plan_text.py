"""A planner's tasks as a plan that the task gate reads. Pure.

Each task holds what its executor needs, and of specification and design only what the task points to. Ids are the
engine's: `task-01` is the first task, and references follow. What stands in front of every executor, such as a
mitigation that the plan gate asked for, is the plan's context.

Whatever an agent wrote stays text: it can neither open nor close a tag, a comment or a fence of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from proofstone.agents.roles.models.pipeline import (
    AcceptanceCriterion,
    Decision,
    DesignOutput,
    PlannedTask,
    PlanOutput,
    Requirement,
    SpecOutput,
)
from proofstone.common.text import slug
from proofstone.pipeline.rules.effects import Feature
from proofstone.plans.fields import shortened
from proofstone.plans.tags import PARTS

_OPENS: Final = re.compile(
    rf"<(?=/?(?:{'|'.join(sorted((*PARTS, 'task', 'objective')))})|!--)",
    re.IGNORECASE,
)
"""What would begin a tag or a comment of the plan."""
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_HEADING: Final = re.compile(r"^(\s*)#", re.MULTILINE)
_TITLE_LENGTH: Final = 120
_NAME_LENGTH: Final = 200


def plan_text(
    feature: Feature,
    plan: PlanOutput,
    spec: SpecOutput | None,
    design: DesignOutput | None,
    iteration: int,
    constraints: Sequence[str] = (),
) -> str:
    """The whole document. `constraints`: what every task keeps to, beside what the specification says."""
    title = shortened(_line(feature.request), _TITLE_LENGTH) or feature.slug
    kept = (*(spec.constraints if spec else ()), *constraints)
    context = f"<context>\nEvery task keeps to this:\n{_items(kept)}\n</context>\n\n" if kept else ""
    return (
        f'---\nphase: "{slug(feature.slug)}"\nplan: "{iteration:02}"\ntype: execute\n---\n# {title}\n\n'
        f"<objective>\n{_HEADING.sub(_as_text, _safe(feature.request))}\n</objective>\n\n"
        f"{context}{tasks_text(plan, spec, design)}"
    )


def tasks_text(plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None) -> str:
    """The tasks alone, in the planner's order."""
    ids = task_ids(plan)
    tasks = "".join(_task(task, ids, spec, design) for task in plan.tasks)
    return f"<tasks>\n{tasks}</tasks>\n"


def task_ids(plan: PlanOutput) -> dict[str, str]:
    """For each id of the planner's the engine's."""
    return {task.id: f"task-{number:02}" for number, task in enumerate(plan.tasks, start=1)}


def context_of(task: PlannedTask, spec: SpecOutput | None, design: DesignOutput | None) -> str:
    """What of specification and design the task's executor is shown: what it points to, and nothing else."""
    wanted = {*task.acceptance_criteria, *task.relevant_context}
    found = _Whole(
        decisions=[decision for decision in (design.decisions if design else ()) if decision.id in wanted],
        requirements=[requirement for requirement in (spec.requirements if spec else ()) if requirement.id in wanted],
        criteria=[item for item in (spec.acceptance_criteria if spec else ()) if item.id in wanted],
    )
    paths = [item for item in task.relevant_context if item not in found.ids]
    return "\n\n".join(filter(None, (found.text(), f"Read first:\n{_items(paths)}" if paths else "")))


def saving(plan: PlanOutput, spec: SpecOutput, design: DesignOutput) -> tuple[int, int]:
    """Characters of specification and design that all executors are shown together, and that it would be if each were
    shown the whole."""
    whole = _Whole([*design.decisions], [*spec.requirements], [*spec.acceptance_criteria])
    shown = sum(len(context_of(task, spec, design)) for task in plan.tasks)
    everything = "\n\n".join((whole.text(), _safe(design.architecture), _items(spec.edge_cases)))
    return shown, len(everything) * len(plan.tasks)


class _Whole:
    """Parts of specification and design, to be shown."""

    def __init__(
        self, decisions: list[Decision], requirements: list[Requirement], criteria: list[AcceptanceCriterion]
    ) -> None:
        self._decisions, self._requirements, self._criteria = decisions, requirements, criteria

    @property
    def ids(self) -> frozenset[str]:
        spec = (*(requirement.id for requirement in self._requirements), *(item.id for item in self._criteria))
        return frozenset((*spec, *(decision.id for decision in self._decisions)))

    def text(self) -> str:
        return "\n\n".join(self._sections())

    def _sections(self) -> Iterator[str]:
        if self._requirements:
            yield "What is asked for:\n" + _items(
                f"{requirement.id}: {requirement.text}" for requirement in self._requirements
            )
        if self._criteria:
            yield "What must hold, and how it is seen:\n" + _items(
                f"{item.id}: {item.text} (seen by: {item.test_method})" for item in self._criteria
            )
        if self._decisions:
            yield "What was decided:\n" + _items(map(_decided, self._decisions))


def _decided(decision: Decision) -> str:
    chosen = next(alternative for alternative in decision.alternatives if alternative.id == decision.selected)
    return f"{decision.id}: {decision.title}: {chosen.label}. {chosen.description} Because: {decision.rationale}"


def _task(task: PlannedTask, ids: dict[str, str], spec: SpecOutput | None, design: DesignOutput | None) -> str:
    after = ", ".join(ids[other] for other in task.depends_on)
    name = shortened(_line(task.title), _NAME_LENGTH)
    files = "\n".join(f"`{_line(file.path)}`" for file in task.files)
    action = "\n\n".join(filter(None, (_safe(task.description).strip(), context_of(task, spec, design))))
    verify = "".join(f"<verify>{_safe(command).strip()}</verify>\n" for command in task.verify)
    return (
        f'<task type="auto" id="{ids[task.id]}" depends_on="{after}">\n<name>{name}</name>\n'
        f"<files>\n{files}\n</files>\n<action>\n{action}\n</action>\n{verify}"
        f"<done>\n{_items(_done(task, spec))}\n</done>\n</task>\n"
    )


def _done(task: PlannedTask, spec: SpecOutput | None) -> Iterable[str]:
    """Its own criteria and the specification's: the gate asks for each. One of the latter stays one, whatever
    punctuation it holds."""
    criteria = [item for item in (spec.acceptance_criteria if spec else ()) if item.id in task.acceptance_criteria]
    return dict.fromkeys((*task.done, *(re.sub("[;；]", ",", item.text) for item in criteria)))


def _items(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_line(text)}" for text in texts)


def _line(text: str) -> str:
    return _safe(" ".join(text.split()))


def _safe(text: str) -> str:
    """The text, without anything that the reader of plans would take for a mark of its own."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _FENCE.sub(lambda found: "'" * len(found[0]), text)
    return _OPENS.sub("&lt;", text)


def _as_text(found: re.Match[str]) -> str:
    return f"{found[1]}\\#"
