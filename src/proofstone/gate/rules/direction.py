"""Where a task stands after an attempt that did not pass, and how the next one should go about it. Pure.

Whether there is a next one is for `retry.py` to say. How it goes about it, the controller of the control loop says
(`solve.rules.gradient`): an attempt is a round, what the gate asked of it are the criteria, and another attempt is a
replan.
Nothing is blocked, since the tools are the executor's own.

How sure one may be of a run of the task gate, why no surer, and what would change that. Pure.

| first match                                                     | confidence                  |
|-----------------------------------------------------------------|-----------------------------|
| it has not ended                                                | not said                    |
| it did not pass                                                 | low                         |
| a task was set aside, or a must-have was judged by nobody       | medium, or that of a task   |
| otherwise                                                       | that of the weakest task    |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import Direction, Failure, Reason, TaskState
from proofstone.agents.roles.models.solve_messages import CriterionMode, CriterionVerdict, DirectiveName, FailureClass
from proofstone.common.models import Confidence, Verdict
from proofstone.gate.models import MustHaveResult, RunOutcome, TaskRecord
from proofstone.gate.rules.machine import MAX_ATTEMPTS
from proofstone.gate.rules.passing import confidence
from proofstone.solve.rules.gradient import (
    DEFAULT_POLICY,
    Policy,
    Reading,
    Row,
    Weights,
    decide,
    dominant,
    failure_classes,
    gradient_of,
    rationale,
    reading,
)
from proofstone.solve.rules.subtask import ENVIRONMENTAL

HOW: Final[Policy] = tuple(
    row for row in DEFAULT_POLICY if row.directive not in (DirectiveName.ACCEPT, DirectiveName.ABANDON)
)
"""The default policy without the rows that say whether to go on."""

MEANS: Final[Mapping[DirectiveName, str]] = {
    DirectiveName.REFINE: "Keep the approach, and tighten it where it failed.",
    DirectiveName.CHANGE_PATH: "Keep the approach, and go around what was in the way.",
    DirectiveName.CHANGE_APPROACH: "Take an approach that is plainly another one: the last led further away.",
    DirectiveName.BREAK_SYMMETRY: "Leave the approach and begin anew with another one: more of it gives the same.",
}
"""What a directive means to whoever does the work."""


class Kind(NamedTuple):
    what: str
    holds: Callable[[Reason], bool]
    mode: CriterionMode
    failure_class: FailureClass


_NOT_STARTED: Final = re.compile(r"exit code 12[67]\b")
"""What a shell says of a command that it does not find, or cannot start."""


def _not_started(reason: Reason) -> bool:
    return reason.check in ("executor", "verify") and bool(_NOT_STARTED.search(reason.detail))


def _names_obstacle(reason: Reason) -> bool:
    return reason.check == "executor" and bool(ENVIRONMENTAL.search(reason.detail))


KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        "what has no verdict: a tool is missing, a deadline or a limit was reached, the sandbox or an architect "
        "failed, the executor crashed or left a malformed result",
        lambda reason: reason.verdict is Verdict.UNVERIFIABLE,
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    Kind(
        "a conflict with what was committed meanwhile",
        lambda reason: reason.check == "merge-conflict",
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    Kind(
        "an executor or a verify command that cannot be started",
        _not_started,
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    Kind(
        "an executor that says it failed, and names what was in the way, such as no network",
        _names_obstacle,
        CriterionMode.VERIFIABLE,
        FailureClass.ENVIRONMENTAL,
    ),
    Kind(
        "an architect's rejection",
        lambda reason: reason.check == "architect",
        CriterionMode.PLAUSIBLE,
        FailureClass.LOGICAL,
    ),
    Kind(
        "everything else: a check, a test, a verify command, a finding, a condition of the gate",
        lambda _: True,
        CriterionMode.VERIFIABLE,
        FailureClass.LOGICAL,
    ),
)
"""What did not pass, and what it counts as. The first match decides."""

_SUMS_UP: Final = ("signals", "regression")
"""Conditions of the gate that depend on what other reasons are about: how many checks passed, and whether a test that
fails now passed on the base."""
_MOST_ALTERNATIVES: Final = 3


def directed(failure: Failure, record: TaskRecord, *, elapsed_ms: int, minutes: float) -> Failure:
    """The failure with what the controller says to it. `record` is from before it; `minutes` may the run take."""
    most = MAX_ATTEMPTS + record.extra_attempts - 1
    weights = Weights(max_replans=most, time_budget_ms=round(minutes * 60_000))
    verdicts = criteria(failure)
    it = reading(
        (),
        verdicts,
        replans=failure.attempt - 1,
        elapsed_ms=elapsed_ms,
        before=_reading_before(record.failures),
        weights=weights,
    )
    row = decide(HOW, it, weights)
    direction = direction_of(row, it, verdicts, weights, tuple(_alternatives(row, verdicts)))
    return failure.model_copy(update={"direction": direction})


def direction_of(
    row: Row, it: Reading, verdicts: Sequence[CriterionVerdict], weights: Weights, alternatives: tuple[str, ...]
) -> Direction:
    """The word of the controller, with what it rests on. Something has failed."""
    return Direction(
        directive=row.directive,
        gradient=gradient_of(it, weights),
        loss=it.loss,
        nabla=it.nabla,
        grad_l=it.grad_l,
        failure_class=dominant(failure_classes((), verdicts)),
        failed_criterion=next(verdict.criterion for verdict in verdicts if verdict.failed),
        suggested_alternatives=alternatives,
        rationale=rationale(row, it),
    )


def criteria(failure: Failure) -> tuple[CriterionVerdict, ...]:
    """What was asked of the attempt, and what came of it. Where nothing was looked at, nothing passed."""
    passed = (
        CriterionVerdict(criterion=name, mode=CriterionMode.VERIFIABLE, verdict="pass") for name in failure.passed
    )
    return (*map(_failed, _counted(failure)), *passed)


def figures(direction: Direction) -> str:
    """In one line: `D=0.50 P=1.00 ∇=-0.20 Ω=0.33 ↓ refine`."""
    loss = direction.loss
    change = round(direction.nabla, 2) + 0.0  # what is nothing has one sign
    told = f"D={loss.D:.2f} P={loss.P:.2f} ∇={change:+.2f} Ω={loss.Omega:.2f}"
    return f"{told} {direction.gradient.arrow} {direction.directive}"


def trajectory(failures: Iterable[Failure]) -> str:
    """The loss after each attempt that did not pass: `0.90 ⊥ → 0.61 ↓`. Empty where there is none on record."""
    known = [failure.direction for failure in failures if failure.direction is not None]
    return " → ".join(f"{item.loss.L:.2f} {item.gradient.arrow}" for item in known)


def _reading_before(failures: Sequence[Failure]) -> Reading | None:
    """As it was recorded with the attempt before."""
    if not failures or failures[-1].direction is None:
        return None
    last = failures[-1].direction
    return Reading(last.loss, last.nabla, last.grad_l, replans=failures[-1].attempt - 1)


def _counted(failure: Failure) -> Sequence[Reason]:
    """Each thing that failed, once."""
    told = failure.reasons or (Reason(check="executor", verdict=Verdict.UNVERIFIABLE, detail=failure.error),)
    return [reason for number, reason in enumerate(told) if not _says_again(number, told)] or told


def _says_again(number: int, told: Sequence[Reason]) -> bool:
    """Whether a reason only says what others say: a condition that sums them up, a check that waits for one that
    failed, or a check whose findings are told: of reasons that rest on the same output, the first is its own."""
    reason, before, after = told[number], told[:number], told[number + 1 :]
    if reason.layer == "gate" and reason.check in _SUMS_UP:
        return True
    if any(reason.detail == f"{item.check} must pass first" for item in told):
        return True
    first = reason.artifact is not None and all(item.artifact != reason.artifact for item in before)
    return first and any(item.artifact == reason.artifact and item.check != reason.check for item in after)


def _failed(reason: Reason) -> CriterionVerdict:
    kind = next(kind for kind in KINDS if kind.holds(reason))
    return CriterionVerdict(
        criterion=f"{reason.check}: {reason.detail.partition(chr(10))[0]}",
        mode=kind.mode,
        verdict="fail",
        failure_class=kind.failure_class,
        evidence=reason.detail,
    )


def _alternatives(row: Row, verdicts: Sequence[CriterionVerdict]) -> Iterator[str]:
    """Where the path is to be another: what was in its way."""
    obstacles = (
        [verdict for verdict in verdicts if verdict.failure_class is FailureClass.ENVIRONMENTAL] if row.hint else []
    )
    yield from (f"a way around this: {obstacle.criterion}" for obstacle in obstacles[:_MOST_ALTERNATIVES])


class Doubt(NamedTuple):
    why: str
    settled_by: str


class Rated(NamedTuple):
    confidence: Confidence | None
    reasons: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()


def of_task(record: TaskRecord) -> Confidence | None:
    """Of a task that passed by its evidence."""
    sure = record.state is TaskState.APPROVED and record.evidence is not None
    return confidence(record.evidence, record.verdicts) if sure and record.evidence else None


def rated(
    outcome: RunOutcome | None, reason: str, tasks: Sequence[TaskRecord], must_haves: Sequence[MustHaveResult]
) -> Rated:
    if outcome is None:
        return Rated(None, ("the run has not ended",), ("the run goes on to its end",))
    if outcome is not RunOutcome.PASSED:
        unmet = tuple(dict.fromkeys(_unmet(tasks))) or ("whatever keeps it from passing is put right",)
        return Rated(Confidence.LOW, (reason or f"the run ended as {outcome.value}",), unmet)
    doubts = list(dict.fromkeys(doubt for doubts in (*map(_doubts, tasks), _unjudged(must_haves)) for doubt in doubts))
    levels = [level for task in tasks if (level := of_task(task)) is not None]
    if any(have.holds is None for have in must_haves) or any(task.override for task in tasks):
        levels.append(Confidence.MEDIUM)
    reasons, raises = (tuple(doubt[part] for doubt in doubts) for part in (0, 1))
    return Rated(Confidence.weakest(levels), reasons, raises)


def _unmet(tasks: Sequence[TaskRecord]) -> Iterator[str]:
    for task in tasks:
        if task.finished:
            continue
        if task.state is TaskState.BLOCKED:
            yield f"{task.id} is unblocked: {task.blocked_by}"
        elif task.failures:
            yield f"{task.id} passes; it did not for this reason: {task.failures[-1].error}"
        else:
            yield f"{task.id} is finished"


def _doubts(task: TaskRecord) -> Iterator[Doubt]:
    if task.override is not None:
        yield Doubt(f"{task.id} was set aside ({task.override.action})", f"{task.id} goes through the gate")
    if task.evidence is None:
        return
    for cap in task.evidence.caps:
        yield Doubt(f"{task.id}: {cap}", f"{task.id}: proof, where there is none: {cap}")
    for link in task.evidence.criteria:
        if link.is_prose:
            yield Doubt(
                f"{task.id}: only an architect's word shows this: {link.criterion}",
                f"{task.id}: a check that shows this: {link.criterion}",
            )
    for run in task.evidence.verify:
        if run.flaky:
            yield Doubt(f"{task.id}: {run.command} is flaky", f"{task.id}: {run.command} passes every time")
    for verdict in task.verdicts:
        if verdict.confidence is not Confidence.HIGH:
            by = verdict.by or "the architect"
            answered = "; ".join(verdict.concerns) or "the architect is sure"
            yield Doubt(f"{task.id}: the confidence of {by} is {verdict.confidence}", f"{task.id}: settled: {answered}")


def _unjudged(must_haves: Sequence[MustHaveResult]) -> Iterator[Doubt]:
    for have in must_haves:
        if have.holds is None:
            yield Doubt(f"nobody has judged this: {have.what}", f"somebody judges this: {have.what}")
