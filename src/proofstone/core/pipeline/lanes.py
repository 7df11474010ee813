"""How deep a change is looked into: depth follows risk. Pure.

| lane     | for                                                        | steps                                     |
|----------|------------------------------------------------------------|-------------------------------------------|
| docs     | documentation and nothing else                             | plan, task, checks, commit                |
| fix      | one task, nothing of it 🔴                                 | … and one reviewer                        |
| standard | everything else                                            | the whole pipeline                        |
| large    | the same, with something 🔴                                | … and the whole cascade                   |

The files that the person names choose a lane; the plan, and then the change itself, may take it deeper. No lane is ever
left for a shallower one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from proofstone.contracts.change import ChangeKind
from proofstone.contracts.lane import Lane
from proofstone.contracts.pipeline.plan import PlanOutput
from proofstone.contracts.pipeline.run import BlastRadius
from proofstone.core.plan.lint import MOST_PRODUCTION_FILES
from proofstone.core.risk import PathChange, Risk, docs_only, is_test, risk_of

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
    red = [one.path for one in changed if one.risk == "🔴"]
    if lane is not Lane.LARGE and red:
        return f"the change is 🔴: {', '.join(red)}"
    other = [one.path for one in changed if not docs_only([one.path])]
    if lane is Lane.DOCS and other:
        return f"the change is not documentation alone: {', '.join(other)}"
    return ""


def is_red(path: str) -> bool:
    """By the path alone: whether a file is new or not, only the change itself shows."""
    return risk_of(PathChange(path=path, kind=ChangeKind.ADDED)).risk is Risk.RED


def production(paths: Sequence[str]) -> list[str]:
    """Without tests and documentation."""
    return [path for path in paths if not is_test(path) and not docs_only([path])]
