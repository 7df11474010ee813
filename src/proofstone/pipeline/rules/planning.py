"""How deep a change is looked into: depth follows risk. Pure.

| lane     | for                                                        | steps                                     |
|----------|------------------------------------------------------------|-------------------------------------------|
| docs     | documentation and nothing else                             | plan, task, checks, commit                |
| fix      | one task, nothing of it 🔴                                 | … and one reviewer                        |
| standard | everything else                                            | the whole pipeline                        |
| large    | the same, with something 🔴                                | … and the whole cascade                   |

The files that the person names choose a lane; the plan, and then the change itself, may take it deeper. No lane is ever
left for a shallower one.

A planner's tasks, held against the rules: the planner proposes, and code may only raise a risk or refuse. Pure.

| a plan is not taken                                                        |
|----------------------------------------------------------------------------|
| if a task changes more than 3 production files                             |
| if tasks that may run together may change the same file                    |
| if a task names a criterion that there is not, or no task names one that is not met yet |
| if what a task's executor is to read leads nowhere                         |
| if the task gate would not run it, or would read something else out of it  |
| if it is nearly the plan before, and another approach is asked for         |

That a task waits for at most 2 others, that ids are unique and that no tasks wait for each other, the contract holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final

from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import DesignOutput, PlannedTask, PlanOutput, SpecOutput
from proofstone.agents.roles.models.solve import SubTaskDraft
from proofstone.agents.roles.models.solve_messages import Criterion
from proofstone.common.commands import proves_nothing
from proofstone.common.globs import overlap
from proofstone.common.models import ChangeKind, Lane
from proofstone.common.risk import PathChange, Risk, docs_only, is_test, risk_of
from proofstone.pipeline.models.run import BlastRadius
from proofstone.pipeline.rules.plan_text import task_ids, tasks_text
from proofstone.plans.fields import shortened
from proofstone.plans.lint import MOST_PRODUCTION_FILES, errors, lint
from proofstone.plans.models import Plan
from proofstone.plans.order import may_run_together, waves
from proofstone.plans.reading import read_plan
from proofstone.solve.rules.plan_rules import NEARLY_THE_SAME, similarity

DEEPER: Final = (Lane.DOCS, Lane.FIX, Lane.STANDARD, Lane.LARGE)
"""From the shallowest on."""


@dataclass(frozen=True)
class Depth:
    """What a lane does, and what it costs where all goes well. The plan gate's own dispatches come on top."""

    steps: tuple[str, ...]
    once: int
    """Dispatches, however many tasks there are."""
    each: int
    """Dispatches of every task: its executor, and its architect where that is not the rules alone."""

    def dispatches(self, tasks: int) -> int:
        return self.once + self.each * tasks


_WHOLE: Final = (
    *("research ×4", "approval", "specification", "design", "design review ×3"),
    *("plan", "plan gate", "approval", "tasks", "whole cascade", "code review ×3", "knowledge", "commit"),
)
DEPTHS: Final[Mapping[Lane, Depth]] = MappingProxyType(
    {
        Lane.DOCS: Depth(("plan", "tasks", "whole cascade", "commit"), once=1, each=1),
        Lane.FIX: Depth(("plan", "task", "whole cascade", "code review ×1", "commit"), once=2, each=1),
        Lane.STANDARD: Depth(_WHOLE, once=4 + 1 + 1 + 3 + 1 + 3 + 1, each=2),
        Lane.LARGE: Depth(_WHOLE, once=4 + 1 + 1 + 3 + 1 + 3 + 1, each=2),
    }
)


def lane_for(files: Sequence[str]) -> tuple[Lane, str]:
    """The lane that these files ask for, and why."""
    if not files:
        return Lane.STANDARD, "no files are named"
    if docs_only(files):
        return Lane.DOCS, "the files that are named are documentation"
    if red := [path for path in files if is_red(path)]:
        return Lane.LARGE, f"🔴 is named: {', '.join(red)}"
    if len(production(files)) > MOST_PRODUCTION_FILES:
        return Lane.STANDARD, f"more than {MOST_PRODUCTION_FILES} production files are named, too many for one task"
    return Lane.FIX, "the files that are named are few, and none of them is 🔴"


def left(lane: Lane, plan: PlanOutput) -> str:
    """Why the plan leaves its lane; empty if it stays."""
    paths = [file.path for task in plan.tasks for file in task.files]
    red = [file.path for task in plan.tasks for file in task.files if file.risk == "🔴"]
    red = red or [task.title for task in plan.tasks if task.risk == "🔴"]
    if lane is Lane.DOCS and not docs_only(paths):
        other = next(path for path in paths if not docs_only([path]))
        return f"the plan changes {other}, which is no documentation"
    if lane is not Lane.LARGE and red:
        return f"the plan changes what is 🔴: {', '.join(dict.fromkeys(red))}"
    if lane is Lane.FIX and len(plan.tasks) > 1:
        return f"the plan has {len(plan.tasks)} tasks"
    return ""


def deeper(lane: Lane, plan: PlanOutput) -> Lane:
    """The shallowest lane beyond this one that the plan does not leave."""
    beyond = DEEPER[DEEPER.index(lane) + 1 :]
    return next((other for other in beyond if not left(other, plan)), Lane.LARGE)


def outgrown(lane: Lane, changed: Sequence[BlastRadius]) -> str:
    """Why the change itself leaves its lane; empty if it stays."""
    red = [item.path for item in changed if item.risk == "🔴"]
    if lane is not Lane.LARGE and red:
        return f"the change is 🔴: {', '.join(red)}"
    other = [item.path for item in changed if not docs_only([item.path])]
    if lane is Lane.DOCS and other:
        return f"the change is not documentation alone: {', '.join(other)}"
    return ""


def is_red(path: str) -> bool:
    """By the path alone: whether a file is new or not, only the change itself shows."""
    return risk_of(PathChange(path=path, kind=ChangeKind.ADDED)).risk is Risk.RED


def production(paths: Sequence[str]) -> list[str]:
    """Without tests and documentation."""
    return [path for path in paths if not is_test(path) and not docs_only([path])]


_MARKS: Final[tuple[RiskMark, ...]] = ("🟢", "🟡", "🔴")
_PATH: Final = re.compile(r"(?!/)(?!.*(?:^|/)\.\.(?:/|$))[^\s`<>]*[./][^\s`<>]*")
_COMPARED: Final = 8000
_COMPARED_FILES: Final = 40
_WRAPPING: Final = re.compile(r"^(?:\$\s+)?`*|`*$")


def raised(plan: PlanOutput) -> PlanOutput:
    """The plan with each risk at least what its paths say, and with what follows from `depends_on`."""
    edges = {task.id: task.depends_on for task in plan.tasks}
    wave = waves(edges)
    rows = [tuple(id for id in edges if wave[id] == number) for number in range(1, max(wave.values()) + 1)]
    update = {"tasks": tuple(map(_raised, plan.tasks)), "waves": tuple(rows), "dependency_graph": edges}
    return plan.model_copy(update=update)


def _raised(task: PlannedTask) -> PlannedTask:
    files = tuple(file.model_copy(update={"risk": "🔴"}) if is_red(file.path) else file for file in task.files)
    risk = max((task.risk, *(file.risk for file in files)), key=_MARKS.index)
    return task.model_copy(update={"files": files, "risk": risk, "size": "Large" if risk == "🔴" else task.size})


def why_not(
    plan: PlanOutput,
    spec: SpecOutput | None,
    design: DesignOutput | None = None,
    *,
    met: Collection[str] = (),
    unlike: Sequence[PlanOutput] = (),
) -> tuple[str, ...]:
    """Everything that keeps the plan from being taken; nothing if it is. `met`: criteria that earlier tasks have met;
    `unlike`: plans that it must not be nearly the same as."""
    found = (
        *_sizes(plan),
        *_overlaps(plan),
        *(_criteria(plan, spec, met) if spec else ()),
        *_pointers(plan, spec, design),
        *_as_read(plan, spec, design),
        *_again(plan, unlike),
    )
    return tuple(dict.fromkeys(found))


def _sizes(plan: PlanOutput) -> Iterator[str]:
    for task in plan.tasks:
        count = len(production([file.path for file in task.files]))
        if count > MOST_PRODUCTION_FILES:
            yield f"task {task.id} changes {count} production files, and {MOST_PRODUCTION_FILES} are the most: split it"


def _overlaps(plan: PlanOutput) -> Iterator[str]:
    together = may_run_together({task.id: task.depends_on for task in plan.tasks})
    for one, other in combinations(plan.tasks, 2):
        if other.id not in together[one.id]:
            continue
        if shared := [path for path in _paths(one) if overlap([path], _paths(other))]:
            yield (
                f"tasks {one.id} and {other.id} may run together, and both may change {', '.join(shared)}: let one "
                "depend on the other, or part their files"
            )


def _criteria(plan: PlanOutput, spec: SpecOutput, met: Collection[str]) -> Iterator[str]:
    there = [item.id for item in spec.acceptance_criteria]
    for task in plan.tasks:
        for id in task.acceptance_criteria:
            if id not in there:
                yield f"task {task.id} names the criterion {id}, which there is not; there are {', '.join(there)}"
    named = {id for task in plan.tasks for id in task.acceptance_criteria}
    if missing := [id for id in there if id not in named and id not in met]:
        yield f"no task is to meet {', '.join(missing)}"


def _pointers(plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None) -> Iterator[str]:
    """Where there is no specification the planner has ids of nobody, and only paths can be meant."""
    ids = {requirement.id for requirement in (spec.requirements if spec else ())}
    ids |= {item.id for item in (spec.acceptance_criteria if spec else ())}
    ids |= {decision.id for decision in (design.decisions if design else ())}
    own = {path for task in plan.tasks for path in _paths(task)}
    for task in plan.tasks:
        for pointer in task.relevant_context:
            if pointer not in ids and pointer not in own and not _PATH.fullmatch(pointer):
                yield (
                    f"task {task.id} points to {shortened(pointer, 60)!r}: it is neither the id of a requirement, a "
                    "criterion or a decision, nor a path in the repository"
                )


def _as_read(plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None) -> Iterator[str]:
    """What the task gate would say to it, and where it would read something else than was planned."""
    text = tasks_text(plan, spec, design)
    read, problems = read_plan(text, "the plan")
    names = {engines: planners for planners, engines in task_ids(plan).items()}
    found = (*problems, *(lint(read, text) if read else ()))
    for problem in errors(found):
        where = f"task {names[problem.task]}: " if problem.task in names else ""
        yield f"{where}{problem.message}; {problem.hint}"
    if read is None or len(read.tasks) != len(plan.tasks):
        yield "the tasks do not come out as they were planned: their texts hold marks of a plan"
        return
    if not errors(found):
        yield from _differences(plan, read)


def _differences(plan: PlanOutput, read: Plan) -> Iterator[str]:
    ids = task_ids(plan)
    for task, other in zip(plan.tasks, read.tasks, strict=True):
        for path in _paths(task):
            if path.removeprefix("./") not in other.files:
                yield f"task {task.id}: {shortened(path, 60)!r} is no plain path: name one file or glob each"
        for command in task.verify:
            if _bare(command) not in map(_bare, other.verify) and not proves_nothing(command):
                yield f"task {task.id}: `{shortened(command, 60)}` would not be run as it stands: write a plain command"
        if other.depends_on != tuple(ids[item] for item in task.depends_on):
            yield f"task {task.id}: its title, or that of another, is taken for an id: give it another"


def _again(plan: PlanOutput, unlike: Sequence[PlanOutput]) -> Iterator[str]:
    near = max((similarity(_drafts(plan), _drafts(other)) for other in unlike), default=0.0)
    if near >= NEARLY_THE_SAME:
        yield f"it is nearly an earlier plan (similarity {near:.2f}), and another approach is asked for"


def _drafts(plan: PlanOutput) -> list[SubTaskDraft]:
    """The tasks, as plans are compared: by what is to be done, and by their files."""
    return [
        SubTaskDraft(
            intent=f"{task.title} {task.description}"[:_COMPARED],
            success_criteria=(Criterion(criterion=task.title),),
            sequence=1,
            files=_paths(task)[:_COMPARED_FILES],
        )
        for task in plan.tasks
    ]


def _paths(task: PlannedTask) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file.path for file in task.files))


def _bare(command: str) -> str:
    """Without what people put around a command."""
    return _WRAPPING.sub("", command.strip()).strip()
