"""The review gate, the evidence in the ledger, and the confidence of a run. Pure.

The review gate decides by the first row that matches:

| condition                                                                   | decision     |
|-----------------------------------------------------------------------------|--------------|
| a reviewer found a blocker                                                  | halt         |
| all have submitted, most approve, and nothing critical of theirs or of the  | pass         |
| design review is open                                                       |              |
| it is not the last round                                                    | revise       |
| all have submitted                                                          | known issues |
| otherwise                                                                   | unheard      |

A design continues with known issues, which then bind the plan; code does not. A critical finding that the design review
left open is a criterion of the code: it stays open until a code reviewer says that the change resolves it and none
finds it again. Nothing continues without a review. A
finding that is open when the gate decides is a known issue, even if its reviewer approves.

The ledger must confirm what the run is about to act on. Gates rely on rows, whatever an answer says:

| before                               | there must be                                                                |
|--------------------------------------|------------------------------------------------------------------------------|
| a design or a change continues       | a row with the verdict of each reviewer, of this run, scope, round and tree  |
| the change is learned from/committed | a passing row of every check that is reported as passed, of the merged tree  |
|                                      | and of each accepted task by its run, task, attempt and tree                 |

The confidence of a run is that of the first row that matches:

| condition                                                                            | confidence |
|--------------------------------------------------------------------------------------|------------|
| a loop was exhausted, or a critical finding about the code is open                   | low        |
| the checks did not pass, or prove little; a task passed with low confidence          | low        |
| a person forced a task past the gate                                                 | low        |
| a check or a task leaves something unproven                                          | medium     |
| a person skipped a task, whose work is then not in the commit                        | medium     |
| it is unknown whether an agent has understood its task                               | medium     |
| something was overridden, cut short, or looked at by nobody                          | medium     |
| reviewers left something open that should be fixed: minor findings may stay          | medium     |
| otherwise                                                                            | high       |

All reasons of the level are listed, and none of a better level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.roles.models.pipeline import PanelFinding, PanelOutput, ReviewFocus, ReviewScope
from proofstone.common.models import (
    Confidence,
    ConfidenceRating,
    ConfidenceReason,
    ReviewVerdict,
    Severity,
    rate_confidence,
)
from proofstone.gate.models import TaskReport
from proofstone.pipeline.models.run import FinalChecks, GateSummary, KnownIssue, ReviewerVerdict

MAX_REVIEW_ROUNDS: Final[Mapping[ReviewScope, int]] = MappingProxyType({"design": 2, "code": 2})
"""A design is revised once; in code, the findings of the first round are fixed before the second."""
FULL_PANEL: Final = tuple(ReviewFocus)
SINGLE_REVIEWER_PANEL: Final = (ReviewFocus.CORRECTNESS,)
"""The reviewer of the fix lane."""


class ReviewGateDecision(StrEnum):
    PASS = "pass"  # noqa: S105  the word, not a password
    HALT = "halt"
    REVISE = "revise"
    KNOWN_ISSUES = "known_issues"
    """The rounds are over, and every reviewer has answered."""
    UNHEARD = "unheard"
    """The rounds are over, and a reviewer has not answered."""


@dataclass(frozen=True)
class ReviewerAnswer:
    """The answer of one reviewer, if there is one."""

    focus: ReviewFocus
    output: PanelOutput | None
    why: str = ""
    """Why there is no answer."""
    model: str = ""

    @property
    def is_approval(self) -> bool:
        return self.output is not None and self.output.verdict is ReviewVerdict.APPROVE

    @property
    def is_blocker(self) -> bool:
        return self.output is not None and self.output.verdict is ReviewVerdict.BLOCKER

    @property
    def findings(self) -> tuple[PanelFinding, ...]:
        return self.output.findings if self.output else ()


@dataclass(frozen=True)
class ReviewRound:
    """All answers of one round. The whole panel was dispatched."""

    scope: ReviewScope
    number: int
    """The number of the round in the run."""
    answers: tuple[ReviewerAnswer, ...]
    is_last: bool = False
    carried: tuple[str, ...] = ()
    """Titles of critical findings that the design review left open."""

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The carried findings that no reviewer says are resolved, or that one has found again."""
        resolved = {_normalize(title) for output in self.outputs for title in output.resolved}
        found = {_normalize(finding.title) for _, finding in self.findings}
        return tuple(title for title in self.carried if _normalize(title) not in resolved or _normalize(title) in found)

    @property
    def is_complete(self) -> bool:
        return bool(self.answers) and all(word.output is not None for word in self.answers)

    @property
    def approvals(self) -> int:
        return sum(word.is_approval for word in self.answers)

    @property
    def required_approvals(self) -> int:
        """The majority: 2 of 3, 1 of 1."""
        return len(self.answers) // 2 + 1

    @property
    def is_blocked(self) -> bool:
        return any(word.is_blocker for word in self.answers)

    @property
    def criticals(self) -> tuple[PanelFinding, ...]:
        return tuple(
            finding for word in self.answers for finding in word.findings if finding.severity is Severity.CRITICAL
        )

    @property
    def is_passed(self) -> bool:
        is_approved = self.is_complete and self.approvals >= self.required_approvals
        return is_approved and not self.criticals and not self.unresolved

    @property
    def findings(self) -> tuple[tuple[ReviewFocus, PanelFinding], ...]:
        return tuple((word.focus, finding) for word in self.answers for finding in word.findings)

    @property
    def outputs(self) -> tuple[PanelOutput, ...]:
        return tuple(word.output for word in self.answers if word.output is not None)

    @property
    def is_one_model(self) -> bool:
        """Whether all reviewers of a panel were the same model with different foci."""
        models = [word.model for word in self.answers if word.output is not None]
        return len(models) > 1 and all(models) and len(set(models)) == 1


def _normalize(title: str) -> str:
    return " ".join(title.casefold().split())


class ReviewGateRow(NamedTuple):
    holds: Callable[[ReviewRound], bool]
    decision: ReviewGateDecision


REVIEW_GATE: Final[tuple[ReviewGateRow, ...]] = (
    ReviewGateRow(lambda review_round: review_round.is_blocked, ReviewGateDecision.HALT),
    ReviewGateRow(lambda review_round: review_round.is_passed, ReviewGateDecision.PASS),
    ReviewGateRow(lambda review_round: not review_round.is_last, ReviewGateDecision.REVISE),
    ReviewGateRow(lambda review_round: review_round.is_complete, ReviewGateDecision.KNOWN_ISSUES),
    ReviewGateRow(lambda _: True, ReviewGateDecision.UNHEARD),
)


@dataclass(frozen=True)
class ReviewGateResult:
    """The decision of the gate about a round, with its reasons."""

    decision: ReviewGateDecision
    reasons: tuple[str, ...]
    """Why the round does not pass; empty if it passes."""
    known_issues: tuple[KnownIssue, ...]

    @property
    def text(self) -> str:
        return f"{self.decision}: {'; '.join(self.reasons)}" if self.reasons else self.decision.value


def decide_review(review_round: ReviewRound) -> ReviewGateResult:
    row = next(row for row in REVIEW_GATE if row.holds(review_round))
    reasons = () if row.decision is ReviewGateDecision.PASS else tuple(_unmet_conditions(review_round))
    return ReviewGateResult(row.decision, reasons, tuple(_list_known_issues(review_round)))


def to_reviewer_verdicts(review_round: ReviewRound) -> tuple[ReviewerVerdict, ...]:
    """Return the verdicts as they count for the gate and are recorded."""
    return tuple(
        ReviewerVerdict(
            scope=review_round.scope,
            focus=word.focus,
            round=review_round.number,
            verdict=word.output.verdict if word.output else None,
            findings=word.output.findings_count if word.output else {},
            model=word.model,
        )
        for word in review_round.answers
    )


def describe_findings(findings: Sequence[tuple[ReviewFocus, PanelFinding]]) -> tuple[str, ...]:
    """Describe findings to a planner that has to fix them."""
    return tuple(
        f"{finding.severity} ({focus}): {finding.title}: {finding.description} Seen in {', '.join(finding.affected)}. "
        f"Recommended: {finding.recommendation}"
        for focus, finding in findings
    )


def _unmet_conditions(review_round: ReviewRound) -> Iterator[str]:
    """Yield each condition that is not met."""
    for word in review_round.answers:
        if word.is_blocker:
            titles = ", ".join(finding.title for finding in word.findings if finding.severity is Severity.BLOCKER)
            yield f"{word.focus} blocks it: {titles}"
        elif word.output is None:
            yield f"{word.focus} has not submitted: {word.why or 'no answer'}"
    if review_round.approvals < review_round.required_approvals:
        yield (
            f"{review_round.approvals} of {len(review_round.answers)} approve, and "
            f"{review_round.required_approvals} must"
        )
    if review_round.criticals:
        yield f"critical and open: {', '.join(critical.title for critical in review_round.criticals)}"
    if review_round.unresolved:
        yield f"critical in the design, and nobody says that it is resolved: {', '.join(review_round.unresolved)}"


def _list_known_issues(review_round: ReviewRound) -> Iterator[KnownIssue]:
    for focus, finding in review_round.findings:
        source = f"review {review_round.scope}/{focus}, round {review_round.number}"
        yield KnownIssue(
            severity=finding.severity,
            title=finding.title,
            where=finding.affected,
            source=source,
            evidence=finding.evidence,
            recommendation=finding.recommendation,
        )


@dataclass(frozen=True)
class ReviewTally:
    """One round of reviews, counted by distinct reviewer."""

    submitted: int = 0
    approving: int = 0
    blocking: int = 0
    critical: int = 0
    """The number of reviewers whose most severe finding is critical."""


_TALLY_PHRASES: Final = ("have submitted", "approve", "block it", "have found something critical")


@dataclass(frozen=True)
class CheckTally:
    """The checks of one tree."""

    subject: str
    reported: tuple[str, ...]
    """The checks that are reported as passed."""
    rows: tuple[str, ...]
    """The checks that have a passing row."""


def count_answers(review_round: ReviewRound) -> ReviewTally:
    """Count the answers of the round."""
    return ReviewTally(
        submitted=sum(word.output is not None for word in review_round.answers),
        approving=review_round.approvals,
        blocking=sum(word.is_blocker for word in review_round.answers),
        critical=sum(_most_severe(word) is Severity.CRITICAL for word in review_round.answers),
    )


def find_contradictions(answered: ReviewTally, rows: ReviewTally) -> tuple[str, ...]:
    """Return where the rows contradict the received answers."""
    pairs = zip(_TALLY_PHRASES, astuple(answered), astuple(rows), strict=True)
    return tuple(
        f"{by_answers} of the reviewers {word} by their answers, but {by_rows} by their rows"
        for word, by_answers, by_rows in pairs
        if by_answers != by_rows
    )


def find_unproven_checks(checked: Iterable[CheckTally]) -> tuple[str, ...]:
    """Return what no row proves; empty if everything reported as passed has a row."""
    return tuple(problem for checks in checked for problem in _find_unproven(checks))


def _find_unproven(checked: CheckTally) -> Iterator[str]:
    if not checked.reported:
        yield f"{checked.subject}: no check is reported as passed"
    if missing := sorted(set(checked.reported) - set(checked.rows)):
        yield f"{checked.subject}: no row proves that {', '.join(missing)} passed"


def _most_severe(word: ReviewerAnswer) -> Severity | None:
    return next(
        (severity for severity in Severity if severity in {finding.severity for finding in word.findings}), None
    )


_SEVERE = (Severity.BLOCKER, Severity.CRITICAL)


@dataclass(frozen=True)
class ConfidenceGrounds:
    """What the confidence is based on."""

    final: FinalChecks | None
    gates: Sequence[GateSummary] = ()
    open: Sequence[KnownIssue] = ()
    """The issues that the last round of each review has left open. A critical finding about the design was reviewed
    again in the code; the others only prevent high confidence.
    """
    exhausted: Sequence[str] = ()
    """The loops that ended at their limit."""
    gaps: Sequence[str] = ()
    """What was overridden, cut short, or looked at by nobody."""
    unsure: Sequence[str] = ()
    """What could not be determined about the understanding of the agents that prepared the change."""


def rate_pipeline_run(grounds: ConfidenceGrounds) -> ConfidenceRating:
    """Return the confidence, and why it is not higher."""
    return rate_confidence(_low_reasons(grounds), _medium_reasons(grounds))


def _low_reasons(grounds: ConfidenceGrounds) -> Iterator[str | ConfidenceReason]:
    yield from grounds.exhausted
    for issue in grounds.open:
        if issue.severity in _SEVERE and _is_about_code(issue):
            yield ConfidenceReason(
                reason=f"{issue.severity} and open: {issue.title} ({issue.source})",
                remedy="resolve what the review found",
            )
    final = grounds.final
    if final is None:
        yield "the checks were not run on the merged tree"
    elif not final.passed:
        yield f"the checks did not pass on the merged tree: {final.reason}"
    elif final.confidence is Confidence.LOW:
        yield from final.reasons or ("the checks of the merged tree prove little",)
    for task in _all_tasks(grounds):
        if task.state is TaskState.FORCED:
            yield ConfidenceReason(
                reason=f"{task.name}: a person overrode the gate for it", remedy="run the task through the gate"
            )
        elif task.state is TaskState.APPROVED and task.confidence is Confidence.LOW:
            yield from _task_reasons(task)


def _medium_reasons(grounds: ConfidenceGrounds) -> Iterator[str | ConfidenceReason]:
    final = grounds.final
    if final is not None and final.confidence is Confidence.MEDIUM:
        yield from final.reasons or ("a check of the merged tree leaves something unproven",)
    for task in _all_tasks(grounds):
        if task.state is TaskState.APPROVED and task.confidence is Confidence.MEDIUM:
            yield from _task_reasons(task)
        elif task.state is TaskState.SKIPPED:
            yield ConfidenceReason(
                reason=f"{task.name}: a person skipped it, so its work is not in the commit",
                remedy="run the task through the gate",
            )
    yield from grounds.unsure
    yield from grounds.gaps
    for issue in grounds.open:
        if issue.severity is not Severity.MINOR:
            yield ConfidenceReason(
                reason=f"left open by a review: {issue.title} ({issue.severity}, {issue.source})",
                remedy="resolve what the review found",
            )


def _task_reasons(task: TaskReport) -> Iterator[ConfidenceReason]:
    for reason in task.reasons:
        yield reason.model_copy(update={"reason": f"{task.name}: {reason.reason}"})
    if not task.reasons:
        yield ConfidenceReason(reason=f"{task.name}: it passed with {task.confidence} confidence")


def _all_tasks(grounds: ConfidenceGrounds) -> Iterator[TaskReport]:
    for gate in grounds.gates:
        yield from gate.tasks


def _is_about_code(issue: KnownIssue) -> bool:
    return issue.source.startswith("review code/")
