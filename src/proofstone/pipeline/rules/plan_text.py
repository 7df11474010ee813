"""Render the tasks of a planner as a plan that the task gate reads. Pure.

Each task contains what its executor needs, and of the specification and the design only what the task points to. The
ids are the engine's: `task-01` is the first task, and references follow. What every executor must see, such as a
mitigation that the plan gate demands, is the context of the plan.

Text of an agent stays text: it can neither open nor close a tag, a comment or a fence of the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from proofstone.agents.roles.models.pipeline import (
    AcceptanceCriterion,
    DesignDecision,
    DesignOutput,
    PlannedTask,
    PlanOutput,
    Requirement,
    SpecOutput,
)
from proofstone.common.text import slugify
from proofstone.gate.rules.criterion_commands import find_criterion_commands
from proofstone.pipeline.rules.effects import PipelineGoal
from proofstone.plans.fields import shorten_text
from proofstone.plans.tags import PART_NAMES

_TAG_START: Final = re.compile(
    rf"<(?=/?(?:{'|'.join(sorted((*PART_NAMES, 'task', 'objective')))})|!--)",
    re.IGNORECASE,
)
"""What would begin a tag or a comment of the plan."""
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_HEADING: Final = re.compile(r"^(\s*)#", re.MULTILINE)
_TITLE_LENGTH: Final = 120
_NAME_LENGTH: Final = 200


def render_plan_text(
    feature: PipelineGoal,
    plan: PlanOutput,
    spec: SpecOutput | None,
    design: DesignOutput | None,
    iteration: int,
    constraints: Sequence[str] = (),
) -> str:
    """Return the whole document. `constraints` apply to every task, in addition to those of the specification."""
    title = shorten_text(_one_line(feature.request), _TITLE_LENGTH) or feature.slug
    all_constraints = (*(spec.constraints if spec else ()), *constraints)
    context = (
        f"<context>\nEvery task must follow these constraints:\n{_bullet_lines(all_constraints)}\n</context>\n\n"
        if all_constraints
        else ""
    )
    return (
        f'---\nphase: "{slugify(feature.slug)}"\nplan: "{iteration:02}"\ntype: execute\n---\n# {title}\n\n'
        f"<objective>\n{_HEADING.sub(_escape_heading, _escape_markup(feature.request))}\n</objective>\n\n"
        f"{context}{render_tasks_text(plan, spec, design)}"
    )


def render_tasks_text(plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None) -> str:
    """Return the tasks alone, in the planner's order."""
    ids = assign_task_ids(plan)
    tasks = "".join(_render_task(task, ids, spec, design) for task in plan.tasks)
    return f"<tasks>\n{tasks}</tasks>\n"


def assign_task_ids(plan: PlanOutput) -> dict[str, str]:
    """Return the engine's id for each id of the planner."""
    return {task.id: f"task-{number:02}" for number, task in enumerate(plan.tasks, start=1)}


def render_task_context(task: PlannedTask, spec: SpecOutput | None, design: DesignOutput | None) -> str:
    """Return the parts of the specification and the design that the task points to, for its executor."""
    ids = {*task.acceptance_criteria, *task.relevant_context}
    parts = _ContextParts(
        decisions=[decision for decision in (design.decisions if design else ()) if decision.id in ids],
        requirements=[requirement for requirement in (spec.requirements if spec else ()) if requirement.id in ids],
        criteria=[item for item in (spec.acceptance_criteria if spec else ()) if item.id in ids],
    )
    paths = [item for item in task.relevant_context if item not in parts.ids]
    return "\n\n".join(filter(None, (parts.text(), f"Read first:\n{_bullet_lines(paths)}" if paths else "")))


def count_context_chars(plan: PlanOutput, spec: SpecOutput, design: DesignOutput) -> tuple[int, int]:
    """Return how many characters of the specification and the design all executors see together, and how many they
    would see if each saw everything.
    """
    whole = _ContextParts([*design.decisions], [*spec.requirements], [*spec.acceptance_criteria])
    shown = sum(len(render_task_context(task, spec, design)) for task in plan.tasks)
    everything = "\n\n".join((whole.text(), _escape_markup(design.architecture), _bullet_lines(spec.edge_cases)))
    return shown, len(everything) * len(plan.tasks)


class _ContextParts:
    """Parts of the specification and the design."""

    def __init__(
        self, decisions: list[DesignDecision], requirements: list[Requirement], criteria: list[AcceptanceCriterion]
    ) -> None:
        self._decisions, self._requirements, self._criteria = decisions, requirements, criteria

    @property
    def ids(self) -> frozenset[str]:
        spec = (
            *(requirement.id for requirement in self._requirements),
            *(criterion.id for criterion in self._criteria),
        )
        return frozenset((*spec, *(decision.id for decision in self._decisions)))

    def text(self) -> str:
        return "\n\n".join(self._sections())

    def _sections(self) -> Iterator[str]:
        if self._requirements:
            yield "Requirements:\n" + _bullet_lines(
                f"{requirement.id}: {requirement.text}" for requirement in self._requirements
            )
        if self._criteria:
            yield "What must hold, and how it is seen:\n" + _bullet_lines(
                f"{criterion.id}: {criterion.text} (seen by: {criterion.test_method})" for criterion in self._criteria
            )
        if self._decisions:
            yield "Decisions:\n" + _bullet_lines(map(_decision_text, self._decisions))


def _decision_text(decision: DesignDecision) -> str:
    chosen = next(alternative for alternative in decision.alternatives if alternative.id == decision.selected)
    return f"{decision.id}: {decision.title}: {chosen.label}. {chosen.description} Because: {decision.rationale}"


def _render_task(task: PlannedTask, ids: dict[str, str], spec: SpecOutput | None, design: DesignOutput | None) -> str:
    dependencies = ", ".join(ids[other] for other in task.depends_on)
    name = shorten_text(_one_line(task.title), _NAME_LENGTH)
    files = "\n".join(f"`{_one_line(file.path)}`" for file in task.files)
    action = "\n\n".join(
        filter(None, (_escape_markup(task.description).strip(), render_task_context(task, spec, design)))
    )
    verify = "".join(f"<verify>{_escape_markup(command).strip()}</verify>\n" for command in task.verify)
    return (
        f'<task type="auto" id="{ids[task.id]}" depends_on="{dependencies}">\n<name>{name}</name>\n'
        f"<files>\n{files}\n</files>\n<action>\n{action}\n</action>\n{verify}"
        f"<done>\n{_bullet_lines(_done_criteria(task, spec))}\n</done>\n</task>\n"
    )


def _done_criteria(task: PlannedTask, spec: SpecOutput | None) -> Iterable[str]:
    """Return the criteria of the task and those of the specification; the gate demands each. Semicolons are replaced,
    so that a criterion of the specification stays one criterion.
    """
    criteria = [
        criterion
        for criterion in (spec.acceptance_criteria if spec else ())
        if criterion.id in task.acceptance_criteria
    ]
    return dict.fromkeys((*task.done, *(_criterion_text(criterion) for criterion in criteria)))


def _criterion_text(criterion: AcceptanceCriterion) -> str:
    """Return the text of a criterion, with the commands that its test method names: the gate runs them."""
    commands = [
        command
        for command in find_criterion_commands(criterion.test_method)
        if command not in find_criterion_commands(criterion.text) and ";" not in command
    ]
    shown = f" (shown by {' and '.join(f'`{command}`' for command in commands)})" if commands else ""
    return re.sub("[;；]", ",", criterion.text) + shown


def _bullet_lines(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_one_line(text)}" for text in texts)


def _one_line(text: str) -> str:
    return _escape_markup(" ".join(text.split()))


def _escape_markup(text: str) -> str:
    """Return the text without anything that the reader of plans would take for markup."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _FENCE.sub(lambda match: "'" * len(match[0]), text)
    return _TAG_START.sub("&lt;", text)


def _escape_heading(match: re.Match[str]) -> str:
    return f"{match[1]}\\#"
