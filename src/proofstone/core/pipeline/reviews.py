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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.contracts.pipeline.review import PanelFinding, PanelOutput, ReviewFocus, Scope
from proofstone.contracts.pipeline.run import KnownIssue, Reviewed
from proofstone.contracts.verdict import ReviewVerdict, Severity

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
        return tuple(one for word in self.words for one in word.findings if one.severity is Severity.CRITICAL)

    @property
    def passes(self) -> bool:
        return self.all_submitted and self.approvals >= self.needed and not self.criticals

    @property
    def findings(self) -> tuple[tuple[ReviewFocus, PanelFinding], ...]:
        return tuple((word.focus, one) for word in self.words for one in word.findings)

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
            titles = ", ".join(one.title for one in word.findings if one.severity is Severity.BLOCKER)
            yield f"{word.focus} blocks it: {titles}"
        elif word.output is None:
            yield f"{word.focus} has not submitted: {word.why or 'no answer'}"
    if it.approvals < it.needed:
        yield f"{it.approvals} of {len(it.words)} approve, and {it.needed} must"
    if it.criticals:
        yield f"critical and open: {', '.join(one.title for one in it.criticals)}"


def _known(it: Round) -> Iterator[KnownIssue]:
    for focus, one in it.findings:
        source = f"review {it.scope}/{focus}, round {it.number}"
        yield KnownIssue(severity=one.severity, title=one.title, where=one.affected, source=source)
