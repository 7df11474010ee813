"""Whether the ledger bears out what the run is about to act on: gates go by rows, whatever a step's answer says. Pure.

| before                            | there must be                                                             |
|-----------------------------------|---------------------------------------------------------------------------|
| a design or a change goes on      | of this run, scope, round and tree a row of each reviewer, with their word |
| anything is learned and committed | of the merged tree, and of each accepted task by its run, task, attempt    |
|                                   | and tree, a passing row of every check that is said to have passed        |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from typing import Final

from proofstone.contracts.verdict import Severity
from proofstone.core.pipeline.reviews import Round, Word


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
    return tuple(problem for one in checked for problem in _unproven(one))


def _unproven(one: CheckTally) -> Iterator[str]:
    if not one.said:
        yield f"{one.about}: nothing is said to have passed"
    if missing := sorted(set(one.said) - set(one.rows)):
        yield f"{one.about}: no row says that {', '.join(missing)} passed"


def _gravest(word: Word) -> Severity | None:
    return next((severity for severity in Severity if severity in {one.severity for one in word.findings}), None)
