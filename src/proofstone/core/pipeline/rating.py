"""The confidence of a whole run, why it is no higher, and so what would raise it. Pure.

| first match                                                                             | confidence |
|-----------------------------------------------------------------------------------------|------------|
| a loop was exhausted, or a critical finding about the code is open                      | low        |
| the whole cascade did not pass, or shows little; a task passed with low confidence      | low        |
| a person set the gate aside for a task                                                  | low        |
| a check or a task leaves something unproven                                             | medium     |
| nobody could say whether somebody has understood what they were asked                   | medium     |
| reviewers left something open that should be put right: minor findings may stay         | medium     |
| otherwise                                                                               | high       |

Every reason of the level is told, and none of a better one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proofstone.contracts.gate import TaskState
from proofstone.contracts.gate_report import TaskReport
from proofstone.contracts.pipeline.run import FinalChecks, GateSummary, KnownIssue
from proofstone.contracts.verdict import Confidence, Severity

_GRAVE = (Severity.BLOCKER, Severity.CRITICAL)
_SET_ASIDE = (TaskState.SKIPPED, TaskState.FORCED)


@dataclass(frozen=True)
class Grounds:
    """What the confidence rests on."""

    final: FinalChecks | None
    gates: Sequence[GateSummary] = ()
    open: Sequence[KnownIssue] = ()
    """What the last round of each review has left. A finding about the design was looked at again in the code: it
    keeps the confidence from being high, and no more."""
    exhausted: Sequence[str] = ()
    """Loops that ended because their bound was reached."""
    unsure: Sequence[str] = ()
    """What nobody could say of how those who prepared it have understood."""


def rate(grounds: Grounds) -> tuple[Confidence, tuple[str, ...]]:
    """The confidence, and why it is no higher."""
    if low := tuple(dict.fromkeys(_low(grounds))):
        return Confidence.LOW, low
    if medium := tuple(dict.fromkeys(_medium(grounds))):
        return Confidence.MEDIUM, medium
    return Confidence.HIGH, ()


def _low(grounds: Grounds) -> Iterator[str]:
    yield from grounds.exhausted
    for one in grounds.open:
        if one.severity in _GRAVE and _is_about_code(one):
            yield f"{one.severity} and open: {one.title} ({one.source})"
    final = grounds.final
    if final is None:
        yield "the whole cascade was not run on the merged tree"
    elif not final.passed:
        yield f"the whole cascade did not pass on the merged tree: {final.reason}"
    elif final.confidence is Confidence.LOW:
        yield from final.raises or ("what the checks show of the merged tree is weak",)
    for task in _tasks(grounds):
        if task.state in _SET_ASIDE:
            yield f"{task.name}: a person set the gate aside for it"
        elif task.state is TaskState.APPROVED and task.confidence is Confidence.LOW:
            yield f"{task.name}: it passed with low confidence"


def _medium(grounds: Grounds) -> Iterator[str]:
    final = grounds.final
    if final is not None and final.confidence is Confidence.MEDIUM:
        yield from final.raises or ("a check of the merged tree leaves something unproven",)
    for task in _tasks(grounds):
        if task.state is TaskState.APPROVED and task.confidence is Confidence.MEDIUM:
            yield f"{task.name}: {'; '.join(task.concerns) or 'it passed with medium confidence'}"
    yield from grounds.unsure
    for one in grounds.open:
        if one.severity is not Severity.MINOR:
            yield f"left open by a review: {one.title} ({one.severity}, {one.source})"


def _tasks(grounds: Grounds) -> Iterator[TaskReport]:
    for gate in grounds.gates:
        yield from gate.tasks


def _is_about_code(issue: KnownIssue) -> bool:
    return issue.source.startswith("review code/")
