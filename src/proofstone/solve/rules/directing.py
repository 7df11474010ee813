"""What a round has come to, and what the controller makes of it for the next plan. Pure.

From what came of the subtasks to one result: the fan-in gate, the merge, and whether it is verified. Pure.

| gate, in code | then |
|---|---|
| an outcome is lost, or does not show what it says | the subtask has failed |
| a subtask has failed | nothing is merged |
| the engine looks, and something is not so | rejected: nobody is asked, for nobody could talk it right |
| the meta-validator cannot be heard, or is in doubt | rejected |
| the engine looks at the merged output, and something is not so | rejected |
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.roles.models.solve import MergeOutput
from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    DispatchManifest,
    FailureClass,
    OutcomeStatus,
    PlanDirective,
    PredicateKind,
    SubTask,
    SubTaskOutcome,
)
from proofstone.solve.rules.effects import AskMetaValidator, Failed, Heard, Look, Looked, Need, Sent
from proofstone.solve.rules.gradient import Reading, Row, Weights, dominant, failure_classes, gradient_of, rationale
from proofstone.solve.rules.plan_rules import Blocks
from proofstone.solve.rules.subtask import crashed, failed, judged, looked_at, unjudged


@dataclass(frozen=True)
class Came:
    """What came of a plan. A round without one has no subtasks, and an outcome that says why."""

    subtasks: tuple[SubTask, ...] = ()
    outcomes: tuple[SubTaskOutcome, ...] = ()
    merged: tuple[CriterionVerdict, ...] = ()

    @property
    def failed(self) -> tuple[SubTaskOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if not outcome.matched)

    @property
    def to_blame(self) -> tuple[SubTaskOutcome, ...]:
        """What failed; all of them, if it was only the merged result that was rejected."""
        return self.failed or self.outcomes

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tool for item in self.to_blame for tool in item.tools))

    @property
    def obstacles(self) -> tuple[str, ...]:
        """What was in the way: never all that was worked on, or the very file that is wanted would be out of reach."""
        return tuple(dict.fromkeys(path for item in self.to_blame for path in item.obstacles))

    @property
    def first_criterion(self) -> str:
        """Of those that drive D."""
        return next((verdict.criterion for verdict in self._verdicts() if verdict.failed), "")

    def _verdicts(self) -> Iterator[CriterionVerdict]:
        for outcome in self.outcomes:
            yield from outcome.criteria_verdicts
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


_REQUEST: Final = Criterion(criterion="the result is what the person asked for, in their own words")
_BEFORE, _AFTER = 1, 2
"""The merge: which look it is, for the record."""


@dataclass(frozen=True)
class Merged:
    """What was made of what matched, and what was seen and said of it; nothing, if it never came to that."""

    output: JsonValue = None
    summary: str = ""
    verdicts: tuple[CriterionVerdict, ...] = ()

    @property
    def verified(self) -> bool:
        return bool(self.verdicts) and not any(verdict.failed for verdict in self.verdicts)


# Fan-in.


def fanned_in(wanted: Sequence[SubTask], came: Sequence[SubTaskOutcome]) -> tuple[SubTaskOutcome, ...]:
    """One outcome for each subtask, whatever came: one that is missing has failed, and one that nobody asked for is
    left out. So nothing that is lost on the way can hang the task, or pass."""
    found = {item.subtask_id: item for item in reversed(came)}
    return tuple(_outcome_of(item, found.get(item.subtask_id)) for item in wanted)


def _outcome_of(subtask: SubTask, came: SubTaskOutcome | None) -> SubTaskOutcome:
    """What matched shows it, by each of its criteria: else it has not."""
    if came is None:
        why = "its outcome never came"
    elif came.matched and _passed(came) != [item.criterion for item in subtask.success_criteria]:
        why = "its outcome says that it matched, and does not show it"
    else:
        return came
    return SubTaskOutcome(
        subtask_id=subtask.subtask_id,
        parent_task_id=subtask.parent_task_id,
        status=OutcomeStatus.FAILED,
        failure_reason=why,
        criteria_verdicts=crashed(subtask.success_criteria, why),
    )


def _passed(came: SubTaskOutcome) -> list[str]:
    return [verdict.criterion for verdict in came.criteria_verdicts if not verdict.failed]


# Merge.


def merge(
    round: int, manifest: DispatchManifest, outcomes: tuple[SubTaskOutcome, ...]
) -> Generator[Need, Sent, Merged]:
    """Of outcomes that have all matched. If in doubt, it is rejected."""
    where = f"{manifest.task_id}-r{round}"
    plausible, of_files, of_output = _sorted(manifest.task_criteria)
    seen = yield from _look(where, _BEFORE, of_files, "")
    if any(item.failed for item in seen):
        # What nobody has looked at or judged has no verdict: D counts what was seen, and that is not 0 here.
        return Merged(verdicts=seen)
    answer = yield AskMetaValidator(round, manifest, outcomes, plausible, seen)
    if not isinstance(answer, Heard) or not isinstance(answer.output, MergeOutput):
        why = f"it could not be verified: {answer.why if isinstance(answer, Failed) else 'there is no answer'}"
        return Merged(verdicts=(*seen, *unjudged((*plausible, *of_output, _REQUEST), why)))
    merged = answer.output
    said = judged(plausible, merged.verdicts)
    shown = yield from _look(where, _AFTER, of_output, merged.output)
    return Merged(merged.output, merged.summary, (*seen, *said, *_doubt(merged), *shown))


def _sorted(criteria: Sequence[Criterion]) -> tuple[tuple[Criterion, ...], ...]:
    """What is judged; what the engine can see before there is a merged output; and what it can only see in that."""
    sorts: tuple[list[Criterion], ...] = ([], [], [])
    for item in criteria:
        of_output = item.predicate is not None and item.predicate.kind is PredicateKind.OUTPUT_CONTAINS
        sorts[0 if item.mode is CriterionMode.PLAUSIBLE else 2 if of_output else 1].append(item)
    return tuple(map(tuple, sorts))


def _look(
    where: str, attempt: int, criteria: tuple[Criterion, ...], output: str
) -> Generator[Need, Sent, tuple[CriterionVerdict, ...]]:
    if not criteria:
        return ()
    looked = yield Look(where, attempt, criteria, output)
    return looked_at(criteria, looked.verdicts if isinstance(looked, Looked) else ())


def _doubt(merged: MergeOutput) -> tuple[CriterionVerdict, ...]:
    """Against the person's own words."""
    if merged.meets_the_request == "yes":
        return ()
    return (failed(_REQUEST, f"{merged.meets_the_request}: {merged.why}", FailureClass.LOGICAL),)
