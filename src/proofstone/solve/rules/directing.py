"""The outcome of a round, and the directive for the next plan. Pure.

The outcomes of the subtasks become one result in three steps: the fan-in gate, the merge, and its verification.

| condition, checked by code | consequence |
|---|---|
| an outcome is missing, or does not prove its claim | the subtask has failed |
| a subtask has failed | nothing is merged |
| the engine finds that a criterion is not met | rejected, and no model is asked, because none could argue it away |
| the meta-validator gives no answer, or is in doubt | rejected |
| the engine finds that the merged output does not meet a criterion | rejected |
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
from proofstone.solve.rules.effects import (
    AskMetaValidator,
    CheckCriteria,
    CriteriaVerdicts,
    SolveAgentFailure,
    SolveAgentReply,
    SolveEffect,
    SolveEffectResult,
)
from proofstone.solve.rules.gradient import (
    LossWeights,
    Measurement,
    PolicyRow,
    classify_gradient,
    dominant_class,
    failure_classes,
    format_rationale,
)
from proofstone.solve.rules.plan_rules import Blocks
from proofstone.solve.rules.subtask import (
    crash_verdicts,
    failed_verdict,
    unjudged_verdicts,
    verdicts_from_engine,
    verdicts_from_model,
)

_MAX_EVIDENCE: Final = 200


@dataclass(frozen=True)
class RoundResult:
    """The result of a plan. A round without a plan has no subtasks, and one outcome with the reason."""

    subtasks: tuple[SubTask, ...] = ()
    outcomes: tuple[SubTaskOutcome, ...] = ()
    merged: tuple[CriterionVerdict, ...] = ()

    @property
    def failed_outcomes(self) -> tuple[SubTaskOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if not outcome.is_matched)

    @property
    def blamed_outcomes(self) -> tuple[SubTaskOutcome, ...]:
        """The failed outcomes; all outcomes, if only the merged result was rejected."""
        return self.failed_outcomes or self.outcomes

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tool for outcome in self.blamed_outcomes for tool in outcome.tools))

    @property
    def obstacles(self) -> tuple[str, ...]:
        """The targets that were in the way, not all targets: otherwise the wanted file itself would be blocked."""
        return tuple(dict.fromkeys(path for outcome in self.blamed_outcomes for path in outcome.obstacles))

    @property
    def first_failed_criterion(self) -> str:
        """The first failed criterion that counts towards D."""
        return next((verdict.criterion for verdict in self.verdicts() if verdict.is_failed), "")

    def verdicts(self) -> Iterator[CriterionVerdict]:
        """Yield the verdicts of all outcomes, and then those on the merged result."""
        for outcome in self.outcomes:
            yield from outcome.criteria_verdicts
        yield from self.merged


def update_blocks(row: PolicyRow, result: RoundResult, blocks: Blocks, tools: tuple[str, ...]) -> Blocks:
    """Return the blocks for the rest of the task after this decision. No decision lifts earlier blocks."""
    if row.blocks_tools:
        blocks = blocks.block_tools(result.tools, tools)
    return blocks.block_targets(result.obstacles) if _blocks_targets(row) else blocks


def build_directive(
    task_id: str, row: PolicyRow, measured: Measurement, result: RoundResult, blocks: Blocks, weights: LossWeights
) -> PlanDirective:
    """Return the directive. If it blocks, it lists all current blocks; otherwise it blocks nothing and lifts
    nothing.
    """
    return PlanDirective(
        task_id=task_id,
        loss=measured.loss,
        gradient=classify_gradient(measured, weights),
        directive=row.directive,
        blocked_tools=blocks.tools if row.blocks_tools else (),
        blocked_targets=blocks.targets if _blocks_targets(row) else (),
        failed_criterion=result.first_failed_criterion,
        failure_class=dominant_class(failure_classes(result.outcomes, result.merged)),
        budget_pressure=measured.loss.Omega,
        grad_l=measured.grad_l,
        suggested_alternatives=_suggest_alternatives(result) if row.suggests_path else (),
        rationale=format_rationale(row, measured),
    )


def _suggest_alternatives(result: RoundResult) -> tuple[str, ...]:
    """Return hints for another path: the obstacles to avoid, or else the first failed criterion and its evidence."""
    if result.obstacles:
        return (f"another target than {', '.join(result.obstacles)}",)
    failed = next((verdict for verdict in result.verdicts() if verdict.is_failed), None)
    if failed is None:
        return tuple(f"a way around this: {outcome.failure_reason}" for outcome in result.failed_outcomes[:1])
    seen = f" ({' '.join(failed.evidence.split())[:_MAX_EVIDENCE]})" if failed.evidence else ""
    return (f"a way around this: {failed.criterion}{seen}",)


def _blocks_targets(row: PolicyRow) -> bool:
    return row.directive is DirectiveName.CHANGE_PATH


def suggest_next_moves(directive: PlanDirective, result: RoundResult) -> tuple[str, ...]:
    """Return suggestions for the user, for the case that no agent makes any."""
    is_environmental = directive.failure_class is FailureClass.ENVIRONMENTAL
    if not result.subtasks and is_environmental:
        return "there was no plan: see why the planner failed", "choose another planner, or run it again"
    if not result.subtasks:
        return "every plan was rejected: see the reasons", "split the goal into smaller parts, and run it again"
    cause = directive.failed_criterion or "the goal"
    first = f"look at the first failure: {cause}"
    if is_environmental:
        return first, "remove the obstacle, and run it again"
    return first, "narrow the goal or split it, and run it again"


_REQUEST_CRITERION: Final = Criterion(criterion="the result is what the user asked for, in their own words")
_CHECK_BEFORE_MERGE, _CHECK_AFTER_MERGE = 1, 2
"""The number of the check around the merge, for the journal."""


@dataclass(frozen=True)
class MergedResult:
    """The merged output, with the verdicts on it; empty if nothing was merged."""

    output: JsonValue = None
    summary: str = ""
    verdicts: tuple[CriterionVerdict, ...] = ()

    @property
    def is_verified(self) -> bool:
        return bool(self.verdicts) and not any(verdict.is_failed for verdict in self.verdicts)


# Fan-in.


def fan_in(subtasks: Sequence[SubTask], outcomes: Sequence[SubTaskOutcome]) -> tuple[SubTaskOutcome, ...]:
    """Return one outcome for each subtask: a missing outcome has failed, and an unexpected outcome is dropped. So a
    lost outcome can neither block the task nor pass.
    """
    by_id = {outcome.subtask_id: outcome for outcome in reversed(outcomes)}
    return tuple(_validate_outcome(subtask, by_id.get(subtask.subtask_id)) for subtask in subtasks)


def _validate_outcome(subtask: SubTask, outcome: SubTaskOutcome | None) -> SubTaskOutcome:
    """Return the outcome of a subtask. A match must be proven by each of its criteria, otherwise the subtask has
    failed.
    """
    if outcome is None:
        reason = "its outcome is missing"
    elif outcome.is_matched and _passed_criteria(outcome) != [
        criterion.criterion for criterion in subtask.success_criteria
    ]:
        reason = "its outcome claims a match without proof"
    else:
        return outcome
    return SubTaskOutcome(
        subtask_id=subtask.subtask_id,
        parent_task_id=subtask.parent_task_id,
        status=OutcomeStatus.FAILED,
        failure_reason=reason,
        criteria_verdicts=crash_verdicts(subtask.success_criteria, reason),
    )


def _passed_criteria(outcome: SubTaskOutcome) -> list[str]:
    return [verdict.criterion for verdict in outcome.criteria_verdicts if not verdict.is_failed]


# Merge.


def merge_outcomes(
    round: int, manifest: DispatchManifest, outcomes: tuple[SubTaskOutcome, ...]
) -> Generator[SolveEffect, SolveEffectResult, MergedResult]:
    """Merge outcomes that have all matched. In doubt, the result is rejected."""
    where = f"{manifest.task_id}-r{round}"
    plausible, of_files, of_output = _sort_criteria(manifest.task_criteria)
    checked = yield from _check_criteria(where, _CHECK_BEFORE_MERGE, of_files, "")
    if any(verdict.is_failed for verdict in checked):
        # Criteria that nobody has checked or judged have no verdict: D counts the checked ones, and is not 0 here.
        return MergedResult(verdicts=checked)
    answer = yield AskMetaValidator(round, manifest, outcomes, plausible, checked)
    if not isinstance(answer, SolveAgentReply) or not isinstance(answer.output, MergeOutput):
        reason = (
            "the result could not be verified: "
            f"{answer.why if isinstance(answer, SolveAgentFailure) else 'there is no answer'}"
        )
        return MergedResult(
            verdicts=(*checked, *unjudged_verdicts((*plausible, *of_output, _REQUEST_CRITERION), reason))
        )
    merged = answer.output
    judgements = verdicts_from_model(plausible, merged.verdicts)
    output_checks = yield from _check_criteria(where, _CHECK_AFTER_MERGE, of_output, merged.output)
    return MergedResult(
        merged.output, merged.summary, (*checked, *judgements, *_request_verdict(merged), *output_checks)
    )


def _sort_criteria(criteria: Sequence[Criterion]) -> tuple[tuple[Criterion, ...], ...]:
    """Split the criteria into those that are judged, those that the engine can check before the merge, and those that
    need the merged output.
    """
    groups: tuple[list[Criterion], ...] = ([], [], [])
    for criterion in criteria:
        of_output = criterion.predicate is not None and criterion.predicate.kind is PredicateKind.OUTPUT_CONTAINS
        groups[0 if criterion.mode is CriterionMode.PLAUSIBLE else 2 if of_output else 1].append(criterion)
    return tuple(map(tuple, groups))


def _check_criteria(
    where: str, attempt: int, criteria: tuple[Criterion, ...], output: str
) -> Generator[SolveEffect, SolveEffectResult, tuple[CriterionVerdict, ...]]:
    if not criteria:
        return ()
    result = yield CheckCriteria(where, attempt, criteria, output)
    return verdicts_from_engine(criteria, result.verdicts if isinstance(result, CriteriaVerdicts) else ())


def _request_verdict(merged: MergeOutput) -> tuple[CriterionVerdict, ...]:
    """Return the verdict on the user's own words, if the meta-validator is in doubt."""
    if merged.meets_the_request == "yes":
        return ()
    return (failed_verdict(_REQUEST_CRITERION, f"{merged.meets_the_request}: {merged.why}", FailureClass.LOGICAL),)
