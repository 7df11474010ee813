"""The review gate: what follows from the words of the reviewers. Pure.

| first match                                                                       | decision     |
|-----------------------------------------------------------------------------------|--------------|
| a blocker, whoever found it                                                       | halt         |
| all have submitted, most of them approve, and no critical finding is open          | pass         |
| it is not the last round                                                          | revise       |
| all have submitted                                                                | known issues |
| otherwise                                                                         | unheard      |

A design goes on with known issues, which then bind the plan; code does not. What nobody has reviewed goes on in
neither case. A finding that stands when the gate has decided is a known issue, also one of those who approve.

Whether the ledger bears out what the run is about to act on: gates go by rows, whatever a step's answer says. Pure.

| before                            | there must be                                                             |
|-----------------------------------|---------------------------------------------------------------------------|
| a design or a change goes on      | of this run, scope, round and tree a row of each reviewer, with their word |
| anything is learned and committed | of the merged tree, and of each accepted task by its run, task, attempt    |
|                                   | and tree, a passing row of every check that is said to have passed        |

The confidence of a whole run, why it is no higher, and so what would raise it. Pure.

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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.roles.models.pipeline import PanelFinding, PanelOutput, ReviewFocus, Scope
from proofstone.common.models import Confidence, ReviewVerdict, Severity
from proofstone.gate.models import TaskReport
from proofstone.pipeline.models.run import FinalChecks, GateSummary, KnownIssue, Reviewed

ROUNDS: Final[Mapping[Scope, int]] = MappingProxyType({"design": 2, "code": 2})
"""A design is revised once; of code, what the first round found is put right before the second."""
PANEL: Final = tuple(ReviewFocus)
ALONE: Final = (ReviewFocus.CORRECTNESS,)
"""Who reviews in the fix lane."""


class Decision(StrEnum):
    PASS = "pass"  # noqa: S105  the word, not a password
    HALT = "halt"
    REVISE = "revise"
    KNOWN_ISSUES = "known_issues"
    """The rounds are over, and everybody was heard."""
    UNHEARD = "unheard"
    """The rounds are over, and somebody was not."""


@dataclass(frozen=True)
class Word:
    """What one reviewer has said; nothing, if they were not heard."""

    focus: ReviewFocus
    output: PanelOutput | None
    why: str = ""
    """They were not heard."""
    model: str = ""

    @property
    def approves(self) -> bool:
        return self.output is not None and self.output.verdict is ReviewVerdict.APPROVE

    @property
    def blocks(self) -> bool:
        return self.output is not None and self.output.verdict is ReviewVerdict.BLOCKER

    @property
    def findings(self) -> tuple[PanelFinding, ...]:
        return self.output.findings if self.output else ()


@dataclass(frozen=True)
class Round:
    """All words of one round. Who was asked is the whole panel."""

    scope: Scope
    number: int
    """In the run."""
    words: tuple[Word, ...]
    is_last: bool = False

    @property
    def all_submitted(self) -> bool:
        return bool(self.words) and all(word.output is not None for word in self.words)

    @property
    def approvals(self) -> int:
        return sum(word.approves for word in self.words)

    @property
    def needed(self) -> int:
        """Most of them: 2 of 3, 1 of 1."""
        return len(self.words) // 2 + 1

    @property
    def blocked(self) -> bool:
        return any(word.blocks for word in self.words)

    @property
    def criticals(self) -> tuple[PanelFinding, ...]:
        return tuple(
            finding for word in self.words for finding in word.findings if finding.severity is Severity.CRITICAL
        )

    @property
    def passes(self) -> bool:
        return self.all_submitted and self.approvals >= self.needed and not self.criticals

    @property
    def findings(self) -> tuple[tuple[ReviewFocus, PanelFinding], ...]:
        return tuple((word.focus, finding) for word in self.words for finding in word.findings)

    @property
    def outputs(self) -> tuple[PanelOutput, ...]:
        return tuple(word.output for word in self.words if word.output is not None)

    @property
    def one_model(self) -> bool:
        """Whether a panel was one model that looked for different things."""
        models = [word.model for word in self.words if word.output is not None]
        return len(models) > 1 and all(models) and len(set(models)) == 1


class Row(NamedTuple):
    holds: Callable[[Round], bool]
    decision: Decision


GATE: Final[tuple[Row, ...]] = (
    Row(lambda it: it.blocked, Decision.HALT),
    Row(lambda it: it.passes, Decision.PASS),
    Row(lambda it: not it.is_last, Decision.REVISE),
    Row(lambda it: it.all_submitted, Decision.KNOWN_ISSUES),
    Row(lambda _: True, Decision.UNHEARD),
)


@dataclass(frozen=True)
class Gate:
    """What the gate has decided about a round, and why."""

    decision: Decision
    reasons: tuple[str, ...]
    """Why it does not pass; none, if it does."""
    known_issues: tuple[KnownIssue, ...]

    @property
    def text(self) -> str:
        return f"{self.decision}: {'; '.join(self.reasons)}" if self.reasons else self.decision.value


def decide(it: Round) -> Gate:
    row = next(row for row in GATE if row.holds(it))
    reasons = () if row.decision is Decision.PASS else tuple(_reasons(it))
    return Gate(row.decision, reasons, tuple(_known(it)))


def counted(it: Round) -> tuple[Reviewed, ...]:
    """The words, as they count for the gate and stand on record."""
    return tuple(
        Reviewed(
            scope=it.scope,
            focus=word.focus,
            round=it.number,
            verdict=word.output.verdict if word.output else None,
            findings=word.output.findings_count if word.output else {},
            model=word.model,
        )
        for word in it.words
    )


def told(found: Sequence[tuple[ReviewFocus, PanelFinding]]) -> tuple[str, ...]:
    """Findings, as a planner is told what is to be put right."""
    return tuple(
        f"{one.severity} ({focus}): {one.title}: {one.description} Seen in {', '.join(one.affected)}. "
        f"Recommended: {one.recommendation}"
        for focus, one in found
    )


def _reasons(it: Round) -> Iterator[str]:
    """Each condition that is not met."""
    for word in it.words:
        if word.blocks:
            titles = ", ".join(finding.title for finding in word.findings if finding.severity is Severity.BLOCKER)
            yield f"{word.focus} blocks it: {titles}"
        elif word.output is None:
            yield f"{word.focus} has not submitted: {word.why or 'no answer'}"
    if it.approvals < it.needed:
        yield f"{it.approvals} of {len(it.words)} approve, and {it.needed} must"
    if it.criticals:
        yield f"critical and open: {', '.join(critical.title for critical in it.criticals)}"


def _known(it: Round) -> Iterator[KnownIssue]:
    for focus, one in it.findings:
        source = f"review {it.scope}/{focus}, round {it.number}"
        yield KnownIssue(severity=one.severity, title=one.title, where=one.affected, source=source)


@dataclass(frozen=True)
class ReviewTally:
    """One round of reviews, counted by distinct reviewer."""

    submitted: int = 0
    approving: int = 0
    blocking: int = 0
    critical: int = 0
    """Those whose gravest finding is critical."""


_WORDS: Final = ("have submitted", "approve", "block it", "have found something critical")


@dataclass(frozen=True)
class CheckTally:
    """What was checked on one tree."""

    about: str
    said: tuple[str, ...]
    """Checks that are said to have passed."""
    rows: tuple[str, ...]
    """Checks of which a row says so."""


def tally(it: Round) -> ReviewTally:
    """As the words of the round have it."""
    return ReviewTally(
        submitted=sum(word.output is not None for word in it.words),
        approving=it.approvals,
        blocking=sum(word.blocks for word in it.words),
        critical=sum(_gravest(word) is Severity.CRITICAL for word in it.words),
    )


def not_borne_out(said: ReviewTally, rows: ReviewTally) -> tuple[str, ...]:
    """Where the rows say something else than was heard."""
    pairs = zip(_WORDS, astuple(said), astuple(rows), strict=True)
    return tuple(
        f"{heard} of the reviewers {word}, as was heard, and {found} as their rows have it"
        for word, heard, found in pairs
        if heard != found
    )


def unproven(checked: Iterable[CheckTally]) -> tuple[str, ...]:
    """What no row says; nothing, if everything that is said to have passed has."""
    return tuple(problem for item in checked for problem in _unproven(item))


def _unproven(one: CheckTally) -> Iterator[str]:
    if not one.said:
        yield f"{one.about}: nothing is said to have passed"
    if missing := sorted(set(one.said) - set(one.rows)):
        yield f"{one.about}: no row says that {', '.join(missing)} passed"


def _gravest(word: Word) -> Severity | None:
    return next(
        (severity for severity in Severity if severity in {finding.severity for finding in word.findings}), None
    )


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
    for item in grounds.open:
        if item.severity in _GRAVE and _is_about_code(item):
            yield f"{item.severity} and open: {item.title} ({item.source})"
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
    for item in grounds.open:
        if item.severity is not Severity.MINOR:
            yield f"left open by a review: {item.title} ({item.severity}, {item.source})"


def _tasks(grounds: Grounds) -> Iterator[TaskReport]:
    for gate in grounds.gates:
        yield from gate.tasks


def _is_about_code(issue: KnownIssue) -> bool:
    return issue.source.startswith("review code/")
