"""The lanes, and the rules that a plan must follow. Pure.

The lane decides how deeply a change is checked; the depth follows the risk:

| lane     | for                                 | steps                       |
|----------|-------------------------------------|-----------------------------|
| docs     | documentation and nothing else      | plan, task, checks, commit  |
| fix      | one task without 🔴                 | … and one reviewer          |
| standard | everything else                     | the whole pipeline          |
| large    | the same, with 🔴                   | … with all tiers of checks   |

The files that the user names choose a lane; the plan, and then the change itself, may take it deeper, never shallower.

The planner proposes tasks; code may only raise a risk or reject the plan. A plan is rejected if
- a task changes more than 3 production files;
- tasks that may run together may change the same file;
- a task names an unknown criterion, or no task names a criterion that is not met yet;
- something that an executor should read does not exist;
- the task gate would not run it, or would read it differently;
- it is almost an earlier plan, and another approach is required;
- it uses a program or changes a file that the memory forbids, because two runs have failed with it.

The contract ensures that a task waits for at most 2 others, that ids are unique and that there are no cycles.
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
from proofstone.common.globs import may_overlap
from proofstone.common.models import ChangeKind, Lane
from proofstone.common.risk import PathChange, Risk, assess_risk, is_docs_only, is_test_path
from proofstone.common.shell import list_programs
from proofstone.pipeline.models.run import BlastRadius, ForbiddenByMemory
from proofstone.pipeline.rules.plan_pointers import find_dead_pointers, find_unknown_criteria
from proofstone.pipeline.rules.plan_text import assign_task_ids, render_tasks_text
from proofstone.plans.fields import shorten_text
from proofstone.plans.lint import MAX_PRODUCTION_FILES, find_lint_problems, select_errors
from proofstone.plans.models import Plan
from proofstone.plans.order import compute_task_waves, find_concurrent_tasks
from proofstone.plans.parser import read_plan
from proofstone.solve.rules.plan_rules import SIMILARITY_LIMIT, plan_similarity

LANES_BY_DEPTH: Final = (Lane.DOCS, Lane.FIX, Lane.STANDARD, Lane.LARGE)
"""The lanes, from the shallowest to the deepest."""


@dataclass(frozen=True)
class LaneDepth:
    """The steps of a lane, and its cost if all goes well, without the dispatches of the plan gate."""

    steps: tuple[str, ...]
    fixed_dispatches: int
    """The number of dispatches that does not depend on the tasks."""
    dispatches_per_task: int
    """The number of dispatches of every task: its executor, and its architect unless that is the rules alone."""

    def count_dispatches(self, tasks: int) -> int:
        return self.fixed_dispatches + self.dispatches_per_task * tasks


_ALL_STEPS: Final = (
    *("research ×4", "approval", "specification", "design", "design review ×3"),
    *("plan", "plan gate", "approval", "tasks", "whole cascade", "code review ×3", "knowledge", "commit"),
)
LANE_DEPTHS: Final[Mapping[Lane, LaneDepth]] = MappingProxyType(
    {
        Lane.DOCS: LaneDepth(("plan", "tasks", "whole cascade", "commit"), fixed_dispatches=1, dispatches_per_task=1),
        Lane.FIX: LaneDepth(
            ("plan", "task", "whole cascade", "code review ×1", "commit"), fixed_dispatches=2, dispatches_per_task=1
        ),
        Lane.STANDARD: LaneDepth(_ALL_STEPS, fixed_dispatches=4 + 1 + 1 + 3 + 1 + 3 + 1, dispatches_per_task=2),
        Lane.LARGE: LaneDepth(_ALL_STEPS, fixed_dispatches=4 + 1 + 1 + 3 + 1 + 3 + 1, dispatches_per_task=2),
    }
)


def choose_lane(files: Sequence[str]) -> tuple[Lane, str]:
    """Return the lane for these files, and the reason."""
    if not files:
        return Lane.STANDARD, "no files are named"
    if is_docs_only(files):
        return Lane.DOCS, "the files that are named are documentation"
    if red := [path for path in files if is_red(path)]:
        return Lane.LARGE, f"🔴 is named: {', '.join(red)}"
    if len(production_paths(files)) > MAX_PRODUCTION_FILES:
        return Lane.STANDARD, f"more than {MAX_PRODUCTION_FILES} production files are named, too many for one task"
    return Lane.FIX, "the files that are named are few, and none of them is 🔴"


def explain_lane_exit(lane: Lane, plan: PlanOutput) -> str:
    """Return why the plan leaves its lane; empty if it stays."""
    paths = [file.path for task in plan.tasks for file in task.files]
    red = [file.path for task in plan.tasks for file in task.files if file.risk == "🔴"]
    red = red or [task.title for task in plan.tasks if task.risk == "🔴"]
    if lane is Lane.DOCS and not is_docs_only(paths):
        other = next(path for path in paths if not is_docs_only([path]))
        return f"the plan changes {other}, which is not documentation"
    if lane is not Lane.LARGE and red:
        return f"the plan changes what is 🔴: {', '.join(dict.fromkeys(red))}"
    if lane is Lane.FIX and len(plan.tasks) > 1:
        return f"the plan has {len(plan.tasks)} tasks"
    return ""


def find_deeper_lane(lane: Lane, plan: PlanOutput) -> Lane:
    """Return the shallowest deeper lane that the plan does not leave."""
    beyond = LANES_BY_DEPTH[LANES_BY_DEPTH.index(lane) + 1 :]
    return next((other for other in beyond if not explain_lane_exit(other, plan)), Lane.LARGE)


def explain_outgrown_lane(lane: Lane, changed: Sequence[BlastRadius]) -> str:
    """Return why the change itself leaves its lane; empty if it stays."""
    red = [change.path for change in changed if change.risk == "🔴"]
    if lane is not Lane.LARGE and red:
        return f"the change is 🔴: {', '.join(red)}"
    other = [change.path for change in changed if not is_docs_only([change.path])]
    if lane is Lane.DOCS and other:
        return f"the change is not documentation alone: {', '.join(other)}"
    return ""


def is_red(path: str) -> bool:
    """Return whether the path alone is 🔴: only the change itself shows whether a file is new."""
    return assess_risk(PathChange(path=path, kind=ChangeKind.ADDED)).risk is Risk.RED


def production_paths(paths: Sequence[str]) -> list[str]:
    """Return the paths without tests and documentation."""
    return [path for path in paths if not is_test_path(path) and not is_docs_only([path])]


_RISK_MARKS: Final[tuple[RiskMark, ...]] = ("🟢", "🟡", "🔴")
_MAX_COMPARED_CHARS: Final = 8000
_MAX_COMPARED_FILES: Final = 40
_NOTHING_FORBIDDEN: Final = ForbiddenByMemory()
_BY_MEMORY: Final = "the memory forbids it, because earlier runs failed with it (`proofstone memory list`, run.memory)"
_QUOTING: Final = re.compile(r"^(?:\$\s+)?`*|`*$")


def raise_plan_risks(plan: PlanOutput) -> PlanOutput:
    """Return the plan with each risk raised to that of its paths, and with the waves that follow from `depends_on`."""
    edges = {task.id: task.depends_on for task in plan.tasks}
    wave = compute_task_waves(edges)
    rows = [tuple(id for id in edges if wave[id] == number) for number in range(1, max(wave.values()) + 1)]
    update = {"tasks": tuple(map(_raise_task_risk, plan.tasks)), "waves": tuple(rows), "dependency_graph": edges}
    return plan.model_copy(update=update)


def _raise_task_risk(task: PlannedTask) -> PlannedTask:
    files = tuple(file.model_copy(update={"risk": "🔴"}) if is_red(file.path) else file for file in task.files)
    risk = max((task.risk, *(file.risk for file in files)), key=_RISK_MARKS.index)
    return task.model_copy(update={"files": files, "risk": risk, "size": "Large" if risk == "🔴" else task.size})


def find_plan_problems(
    plan: PlanOutput,
    spec: SpecOutput | None,
    design: DesignOutput | None = None,
    *,
    met: Collection[str] = (),
    unlike: Sequence[PlanOutput] = (),
    forbidden: ForbiddenByMemory = _NOTHING_FORBIDDEN,
) -> tuple[str, ...]:
    """Return all reasons to reject the plan; empty if there are none. `met` are criteria that earlier tasks have met;
    `unlike` are plans that it must differ from; `forbidden` is what failed in earlier runs.
    """
    problems = (
        *_size_problems(plan),
        *_overlap_problems(plan),
        *(_criterion_problems(plan, spec, met) if spec else ()),
        *find_dead_pointers(plan, spec, design),
        *_reading_problems(plan, spec, design),
        *_similarity_problems(plan, unlike),
        *_memory_problems(plan, forbidden),
    )
    return tuple(dict.fromkeys(problems))


def _size_problems(plan: PlanOutput) -> Iterator[str]:
    for task in plan.tasks:
        count = len(production_paths([file.path for file in task.files]))
        if count > MAX_PRODUCTION_FILES:
            yield f"task {task.id} changes {count} production files; at most {MAX_PRODUCTION_FILES} may: split it"


def _overlap_problems(plan: PlanOutput) -> Iterator[str]:
    together = find_concurrent_tasks({task.id: task.depends_on for task in plan.tasks})
    for first, second in combinations(plan.tasks, 2):
        if second.id not in together[first.id]:
            continue
        if shared := [path for path in _paths_of(first) if may_overlap([path], _paths_of(second))]:
            yield (
                f"tasks {first.id} and {second.id} may run together, and both may change {', '.join(shared)}: let one "
                "depend on the other, or separate their files"
            )


def _criterion_problems(plan: PlanOutput, spec: SpecOutput, met: Collection[str]) -> Iterator[str]:
    yield from find_unknown_criteria(plan, spec)
    named = {id for task in plan.tasks for id in task.acceptance_criteria}
    known_ids = [criterion.id for criterion in spec.acceptance_criteria]
    if missing := [id for id in known_ids if id not in named and id not in met]:
        yield f"no task covers {', '.join(missing)}"


def _reading_problems(plan: PlanOutput, spec: SpecOutput | None, design: DesignOutput | None) -> Iterator[str]:
    """Yield the objections of the task gate, and the differences between the plan and how the gate would read it."""
    text = render_tasks_text(plan, spec, design)
    read, problems = read_plan(text, "the plan")
    planner_ids = {engine_id: planner_id for planner_id, engine_id in assign_task_ids(plan).items()}
    all_problems = (*problems, *(find_lint_problems(read, text) if read else ()))
    for problem in select_errors(all_problems):
        where = f"task {planner_ids[problem.task]}: " if problem.task in planner_ids else ""
        yield f"{where}{problem.message}; {problem.hint}"
    if read is None or len(read.tasks) != len(plan.tasks):
        yield "the task gate would read other tasks than planned: remove plan markup from their texts"
        return
    if not select_errors(all_problems):
        yield from _find_differences(plan, read)


def _find_differences(plan: PlanOutput, read: Plan) -> Iterator[str]:
    ids = assign_task_ids(plan)
    for task, other in zip(plan.tasks, read.tasks, strict=True):
        for path in _paths_of(task):
            if path.removeprefix("./") not in other.files:
                yield f"task {task.id}: {shorten_text(path, 60)!r} is not a plain path: name one file or glob per entry"
        for command in task.verify:
            if _strip_quoting(command) not in map(_strip_quoting, other.verify) and not proves_nothing(command):
                yield f"task {task.id}: `{shorten_text(command, 60)}` would not run as written: write a plain command"
        if other.depends_on != tuple(ids[dependency] for dependency in task.depends_on):
            yield f"task {task.id}: its title, or that of another task, reads like an id: rename it"


def _similarity_problems(plan: PlanOutput, unlike: Sequence[PlanOutput]) -> Iterator[str]:
    highest = max((plan_similarity(_to_drafts(plan), _to_drafts(other)) for other in unlike), default=0.0)
    if highest >= SIMILARITY_LIMIT:
        yield f"the plan is almost an earlier one (similarity {highest:.2f}), and another approach is required"


def _memory_problems(plan: PlanOutput, forbidden: ForbiddenByMemory) -> Iterator[str]:
    for task in plan.tasks:
        programs = [program for command in task.verify for program in list_programs(command)]
        for program in dict.fromkeys(programs):
            if program in forbidden.programs:
                yield f"task {task.id} runs {program}: {_BY_MEMORY}"
        for path in _paths_of(task):
            if path in forbidden.targets:
                yield f"task {task.id} changes {path}: {_BY_MEMORY}"


def _to_drafts(plan: PlanOutput) -> list[SubTaskDraft]:
    """Return the tasks in the form in which plans are compared: their work and their files."""
    return [
        SubTaskDraft(
            intent=f"{task.title} {task.description}"[:_MAX_COMPARED_CHARS],
            success_criteria=(Criterion(criterion=task.title),),
            sequence=1,
            files=_paths_of(task)[:_MAX_COMPARED_FILES],
        )
        for task in plan.tasks
    ]


def _paths_of(task: PlannedTask) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file.path for file in task.files))


def _strip_quoting(command: str) -> str:
    """Return the command without quoting marks around it."""
    return _QUOTING.sub("", command.strip()).strip()
