"""The state of a task after a failed attempt, how the next attempt should proceed, and the confidence in a run. Pure.

Whether there is a next attempt is decided in `machine`. How it should proceed is decided by the controller of the
control loop (`solve.rules.gradient`): an attempt is a round, the requirements of the gate are the criteria, and another
attempt is a replan. The controller blocks nothing here, since the executor uses its own tools.

The confidence in a run:

    | first match                                                     | confidence                  |
    |-----------------------------------------------------------------|-----------------------------|
    | it has not ended                                                | none                        |
    | it did not pass                                                 | low                         |
    | a task was skipped or forced, or a must-have was not judged     | medium, or that of a task   |
    | otherwise                                                       | that of the weakest task    |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import AttemptFailure, FailureReason, RetryDirection, TaskState
from proofstone.agents.roles.models.solve_messages import (
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    PlanDirective,
)
from proofstone.common.models import Confidence, ConfidenceRating, ConfidenceReason, Verdict, rate_confidence
from proofstone.gate.models import MustHaveResult, RunOutcome, TaskRecord
from proofstone.gate.rules.pass_rule import rate_task_confidence
from proofstone.gate.rules.state_machine import MAX_ATTEMPTS
from proofstone.solve.rules.gradient import (
    DEFAULT_POLICY,
    LossWeights,
    Measurement,
    Policy,
    PolicyRow,
    classify_gradient,
    decide,
    dominant_class,
    failure_classes,
    format_rationale,
    measure_round,
)
from proofstone.solve.rules.subtask import ENVIRONMENTAL_EVIDENCE

APPROACH_POLICY: Final[Policy] = tuple(
    row for row in DEFAULT_POLICY if row.directive not in (DirectiveName.ACCEPT, DirectiveName.ABANDON)
)
"""The default policy without the rows that decide whether to continue."""

DIRECTIVE_TEXTS: Final[Mapping[DirectiveName, str]] = {
    DirectiveName.REFINE: "Keep the approach, and improve it where it failed.",
    DirectiveName.CHANGE_PATH: "Keep the approach, and work around the obstacle.",
    DirectiveName.CHANGE_APPROACH: "Use a clearly different approach: the last one led further away from the goal.",
    DirectiveName.BREAK_SYMMETRY: "Drop the approach and start over with another one: it gives the same result again.",
}
"""What a directive means for the executor."""


class FailureKind(NamedTuple):
    """A kind of failure, and how it counts."""

    description: str
    holds: Callable[[FailureReason], bool]
    mode: CriterionMode
    failure_class: FailureClass


_START_FAILURE: Final = re.compile(r"exit code 12[67]\b")
"""The exit codes of a shell for a command that it does not find or cannot start."""


def _could_not_start(reason: FailureReason) -> bool:
    return reason.check in ("executor", "verify") and bool(_START_FAILURE.search(reason.detail))


def _names_obstacle(reason: FailureReason) -> bool:
    return reason.check == "executor" and bool(ENVIRONMENTAL_EVIDENCE.search(reason.detail))


FAILURE_KINDS: Final[tuple[FailureKind, ...]] = (
    FailureKind(
        "what has no verdict: a tool is missing, a deadline or a limit was reached, the sandbox or an architect "
        "failed, the executor crashed or left a malformed result",
        lambda reason: reason.verdict is Verdict.UNVERIFIABLE,
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    FailureKind(
        "a conflict with what was committed meanwhile",
        lambda reason: reason.check == "merge-conflict",
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    FailureKind(
        "an executor or a verify command that cannot be started",
        _could_not_start,
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    FailureKind(
        "an executor that says it failed, and names what was in the way, such as no network",
        _names_obstacle,
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    FailureKind(
        "an architect's rejection",
        lambda reason: reason.check == "architect",
        CriterionMode.PLAUSIBLE,
        FailureClass.LOGICAL,
    ),
    FailureKind(
        "everything else: a check, a test, a verify command, a finding, a condition of the gate",
        lambda _: True,
        CriterionMode.VERIFIABLE,
        FailureClass.LOGICAL,
    ),
)
"""The kinds of failure. The first match decides."""

_SUMMARY_CONDITIONS: Final = ("signals", "regression")
"""Conditions that only depend on other reasons: how many checks passed, and whether a failing test passed before."""
_MAX_ALTERNATIVES: Final = 3


def add_direction(
    failure: AttemptFailure,
    record: TaskRecord,
    *,
    elapsed_ms: int,
    minutes: float,
    factors: Mapping[str, float] = MappingProxyType({}),
) -> AttemptFailure:
    """Return the failure with the controller's direction. `record` is from before the failure; `minutes` is the time
    budget; `factors` are the weights and thresholds that differ from the defaults.
    """
    max_replans = MAX_ATTEMPTS + record.extra_attempts - 1
    weights = LossWeights(max_replans=max_replans, time_budget_ms=round(minutes * 60_000)).with_factors(factors)
    verdicts = list_criteria(failure)
    state = measure_round(
        (),
        verdicts,
        replans=failure.attempt - 1,
        elapsed_ms=elapsed_ms,
        before=_read_previous(record.failures),
        weights=weights,
    )
    row = decide(APPROACH_POLICY, state, weights)
    direction = build_direction(row, state, verdicts, weights, suggest_alternatives(row, verdicts))
    return failure.model_copy(update={"direction": direction})


def build_direction(
    row: PolicyRow,
    state: Measurement,
    verdicts: Sequence[CriterionVerdict],
    weights: LossWeights,
    alternatives: tuple[str, ...],
) -> RetryDirection:
    """Build the direction for a failure from the controller's decision and the values behind it."""
    return RetryDirection(
        directive=row.directive,
        gradient=classify_gradient(state, weights),
        loss=state.loss,
        nabla=state.nabla,
        grad_l=state.grad_l,
        failure_class=dominant_class(failure_classes((), verdicts)),
        failed_criterion=next(verdict.criterion for verdict in verdicts if verdict.is_failed),
        suggested_alternatives=alternatives,
        rationale=format_rationale(row, state),
    )


def build_plan_directive(task_id: str, direction: RetryDirection) -> PlanDirective:
    """Return the direction as the message that the controller sends. It blocks nothing, as in `build_direction`."""
    return PlanDirective(
        task_id=task_id,
        loss=direction.loss,
        gradient=direction.gradient,
        directive=direction.directive,
        failed_criterion=direction.failed_criterion,
        failure_class=direction.failure_class,
        budget_pressure=direction.loss.Omega,
        grad_l=direction.grad_l,
        suggested_alternatives=direction.suggested_alternatives,
        rationale=direction.rationale,
    )


def list_criteria(failure: AttemptFailure) -> tuple[CriterionVerdict, ...]:
    """Return the requirements of the attempt with their verdicts. If nothing was checked, nothing passed."""
    passed = (
        CriterionVerdict(criterion=name, mode=CriterionMode.VERIFIABLE, verdict="pass") for name in failure.passed
    )
    return (*map(_make_failed_verdict, _select_distinct_reasons(failure)), *passed)


def format_figures(direction: RetryDirection) -> str:
    """Format a direction as one line: `D=0.50 P=1.00 ∇=-0.20 Ω=0.33 ↓ refine`."""
    loss = direction.loss
    change = round(direction.nabla, 2) + 0.0  # avoid -0.00
    values = f"D={loss.D:.2f} P={loss.P:.2f} ∇={change:+.2f} Ω={loss.Omega:.2f}"
    return f"{values} {direction.gradient.arrow} {direction.directive}"


def format_trajectory(failures: Iterable[AttemptFailure]) -> str:
    """Format the loss after each failed attempt: `0.90 ⊥ → 0.61 ↓`. Empty if there is none."""
    known = [failure.direction for failure in failures if failure.direction is not None]
    return " → ".join(f"{direction.loss.L:.2f} {direction.gradient.arrow}" for direction in known)


def _read_previous(failures: Sequence[AttemptFailure]) -> Measurement | None:
    """Return the reading that was recorded with the previous attempt."""
    if not failures or failures[-1].direction is None:
        return None
    last = failures[-1].direction
    return Measurement(last.loss, last.nabla, last.grad_l, replans=failures[-1].attempt - 1)


def _select_distinct_reasons(failure: AttemptFailure) -> Sequence[FailureReason]:
    """Return each failure once."""
    reasons = failure.reasons or (FailureReason(check="executor", verdict=Verdict.UNVERIFIABLE, detail=failure.error),)
    return [reason for number, reason in enumerate(reasons) if not _is_redundant(number, reasons)] or reasons


def _is_redundant(number: int, reasons: Sequence[FailureReason]) -> bool:
    """Whether a reason only repeats others.

    That is a condition that sums them up, a check that waits for a failed one, or a check whose findings are listed:
    among reasons with the same output, the first one is the check itself.
    """
    reason, before, after = reasons[number], reasons[:number], reasons[number + 1 :]
    if reason.layer == "gate" and reason.check in _SUMMARY_CONDITIONS:
        return True
    if any(reason.detail == f"{other.check} must pass first" for other in reasons):
        return True
    is_first = reason.artifact is not None and all(other.artifact != reason.artifact for other in before)
    return is_first and any(other.artifact == reason.artifact and other.check != reason.check for other in after)


def _make_failed_verdict(reason: FailureReason) -> CriterionVerdict:
    kind = next(kind for kind in FAILURE_KINDS if kind.holds(reason))
    return CriterionVerdict(
        criterion=f"{reason.check}: {reason.detail.partition(chr(10))[0]}",
        mode=kind.mode,
        verdict="fail",
        failure_class=kind.failure_class,
        evidence=reason.detail,
    )


def suggest_alternatives(row: PolicyRow, verdicts: Sequence[CriterionVerdict]) -> tuple[str, ...]:
    """Return what another path should avoid, if the row asks for one: the obstacles, or else whatever failed."""
    if not row.suggests_path:
        return ()
    failed = [verdict for verdict in verdicts if verdict.is_failed]
    obstacles = [verdict for verdict in failed if verdict.failure_class is FailureClass.ENVIRONMENTAL] or failed
    return tuple(f"a way around this: {obstacle.criterion}" for obstacle in obstacles[:_MAX_ALTERNATIVES])


def rate_task(record: TaskRecord) -> ConfidenceRating:
    """Return the confidence in a task that passed with evidence; none for any other task."""
    if record.state is not TaskState.APPROVED or record.evidence is None:
        return ConfidenceRating(None)
    return rate_task_confidence(record.evidence, record.verdicts)


def rate_run(
    outcome: RunOutcome | None, reason: str, tasks: Sequence[TaskRecord], must_haves: Sequence[MustHaveResult]
) -> ConfidenceRating:
    """Rate the confidence in a run."""
    if outcome is None:
        return ConfidenceRating(None)
    if outcome is not RunOutcome.PASSED:
        unmet = "; ".join(dict.fromkeys(_list_unmet(tasks))) or "fix the reason why it did not pass"
        return rate_confidence(
            low=[ConfidenceReason(reason=reason or f"the run ended as {outcome.value}", remedy=unmet)]
        )
    reasons: dict[Confidence, list[ConfidenceReason]] = {level: [] for level in Confidence}
    ratings = [(task, rate_task(task)) for task in tasks]
    for task, rating in ratings:
        if rating.confidence is not None:
            reasons[rating.confidence] += (_name_task(task, doubt) for doubt in rating.reasons)
        if task.override is not None:
            reasons[Confidence.MEDIUM].append(
                ConfidenceReason(
                    reason=f"{task.id} bypassed the gate ({task.override.action})",
                    remedy=f"run {task.id} through the gate",
                )
            )
    reasons[Confidence.MEDIUM] += (
        ConfidenceReason(reason=f"not judged: {have.what}", remedy="judge it yourself, or name a check that shows it")
        for have in must_haves
        if have.holds is None
    )
    if not any(rating.confidence for _, rating in ratings) and not any(reasons.values()):
        return ConfidenceRating(None)
    return rate_confidence(reasons[Confidence.LOW], reasons[Confidence.MEDIUM])


def _name_task(task: TaskRecord, reason: ConfidenceReason) -> ConfidenceReason:
    return reason.model_copy(update={"reason": f"{task.id}: {reason.reason}"})


def _list_unmet(tasks: Sequence[TaskRecord]) -> Iterator[str]:
    for task in tasks:
        if task.is_finished:
            continue
        if task.state is TaskState.BLOCKED:
            yield f"unblock {task.id}: {task.blocked_by}"
        elif task.failures:
            yield f"let {task.id} pass; it did not for this reason: {task.failures[-1].error}"
        else:
            yield f"finish {task.id}"
