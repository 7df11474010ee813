"""What a round has come to, and what the controller makes of it for the next plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proofstone.contracts.solve.messages import (
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    PlanDirective,
    SubTask,
    SubTaskOutcome,
)
from proofstone.core.gradient import Reading, Row, Weights, dominant, failure_classes, gradient_of, rationale
from proofstone.core.solve.blocking import Blocks


@dataclass(frozen=True)
class Came:
    """What came of a plan. A round without one has no subtasks, and an outcome that says why."""

    subtasks: tuple[SubTask, ...] = ()
    outcomes: tuple[SubTaskOutcome, ...] = ()
    merged: tuple[CriterionVerdict, ...] = ()

    @property
    def failed(self) -> tuple[SubTaskOutcome, ...]:
        return tuple(one for one in self.outcomes if not one.matched)

    @property
    def to_blame(self) -> tuple[SubTaskOutcome, ...]:
        """What failed; all of them, if it was only the merged result that was rejected."""
        return self.failed or self.outcomes

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tool for one in self.to_blame for tool in one.tools))

    @property
    def obstacles(self) -> tuple[str, ...]:
        """What was in the way: never all that was worked on, or the very file that is wanted would be out of reach."""
        return tuple(dict.fromkeys(path for one in self.to_blame for path in one.obstacles))

    @property
    def first_criterion(self) -> str:
        """Of those that drive D."""
        return next((one.criterion for one in self._verdicts() if one.failed), "")

    def _verdicts(self) -> Iterator[CriterionVerdict]:
        for one in self.outcomes:
            yield from one.criteria_verdicts
        yield from self.merged


def blocked_after(row: Row, came: Came, blocks: Blocks, tools: tuple[str, ...]) -> Blocks:
    """What is in force for the rest of the task, now that this row holds. No row lifts what another has blocked."""
    if row.blocks:
        blocks = blocks.and_tools(came.tools, tools)
    return blocks.and_targets(came.obstacles) if _blocks_targets(row) else blocks


def directive_of(task_id: str, row: Row, it: Reading, came: Came, blocks: Blocks, weights: Weights) -> PlanDirective:
    """A directive that blocks says all that is in force; another blocks nothing itself, and lifts nothing."""
    hint = row.hint and came.obstacles
    return PlanDirective(
        task_id=task_id,
        loss=it.loss,
        gradient=gradient_of(it, weights),
        directive=row.directive,
        blocked_tools=blocks.tools if row.blocks else (),
        blocked_targets=blocks.targets if _blocks_targets(row) else (),
        failed_criterion=came.first_criterion,
        failure_class=dominant(failure_classes(came.outcomes, came.merged)),
        budget_pressure=it.loss.Omega,
        grad_l=it.grad_l,
        suggested_alternatives=(f"another target than {', '.join(came.obstacles)}",) if hint else (),
        rationale=rationale(row, it),
    )


def _blocks_targets(row: Row) -> bool:
    return row.directive is DirectiveName.CHANGE_PATH


def next_moves(directive: PlanDirective, came: Came) -> tuple[str, ...]:
    """Where nobody else says what could be done, after what came of the last round."""
    in_the_way = directive.failure_class is FailureClass.ENVIRONMENTAL
    if not came.subtasks and in_the_way:
        return "there was no plan: see why the planner gave none", "name another planner, or run it again"
    if not came.subtasks:
        return "there was no plan that could be taken: see why not", "say the goal in smaller parts, and run it again"
    blamed = directive.failed_criterion or "what was asked for"
    first = f"look at what failed first: {blamed}"
    if in_the_way:
        return first, "put right what was in the way, and run it again"
    return first, "say the goal more narrowly, or in parts, and run it again"
