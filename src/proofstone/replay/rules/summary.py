"""Summarise a replay: say once what many commits have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.common.text import pluralize
from proofstone.replay.models import HistoryCommit, ReplayedCommit, ReplayReport, ReplayVerdict

_VARIES: Final = re.compile(r"\b[0-9a-f]{7,40}\b|\d+(?:[.,]\d+)*")
"""What differs from commit to commit in the same reason: counts, times, hashes."""

VERDICT_WORDS: Final[Mapping[ReplayVerdict, str]] = {
    ReplayVerdict.PASSED: "would have passed",
    ReplayVerdict.ASKED: "would have been put to a person",
    ReplayVerdict.REFUSED: "would have been refused",
    ReplayVerdict.UNVERIFIABLE: "could not be verified with what is installed here",
    ReplayVerdict.UNCHANGED: "changed nothing",
}


@dataclass(frozen=True)
class SharedReason:
    """A reason that several commits share."""

    reason: str
    """As the first of them has it."""
    remedy: str
    commits: tuple[HistoryCommit, ...]


def group_causes(commits: Iterable[ReplayedCommit]) -> tuple[SharedReason, ...]:
    """Return why commits could not be verified, each cause once, the most frequent first."""
    return _group((cause.reason, cause.remedy, replayed.commit) for replayed in commits for cause in replayed.causes)


def group_doubts(commits: Iterable[ReplayedCommit]) -> tuple[SharedReason, ...]:
    """Return why commits that passed have no high confidence, each reason once, the most frequent first."""
    return _group((doubt, "", replayed.commit) for replayed in commits for doubt in replayed.doubts)


def count_rules(commits: Iterable[ReplayedCommit], verdict: ReplayVerdict) -> Counter[str]:
    """Return how many commits of a verdict each rule refuses."""
    return Counter(rule for replayed in commits if replayed.verdict is verdict for rule in replayed.rules)


def describe_counts(report: ReplayReport) -> list[str]:
    """Return one line for each verdict."""
    return [
        f"{pluralize(count, 'commit')} {VERDICT_WORDS[verdict]}{_describe_confidence(report.commits, verdict)}"
        for verdict, count in report.counts.items()
    ]


def describe_verdict(replayed: ReplayedCommit, causes: Sequence[SharedReason]) -> str:
    """Return why a commit has its verdict, in one line. A cause that other commits share is named by its number."""
    if replayed.verdict is ReplayVerdict.PASSED:
        return f"confidence {replayed.confidence}" if replayed.confidence else ""
    if replayed.verdict is ReplayVerdict.UNVERIFIABLE:
        numbers = [number for number, cause in enumerate(causes, 1) if replayed.commit in cause.commits]
        return "cause " + ", ".join(map(str, numbers))
    if replayed.verdict is ReplayVerdict.UNCHANGED:
        return ""
    return ", ".join(replayed.rules) or replayed.reason


def _describe_confidence(commits: Iterable[ReplayedCommit], verdict: ReplayVerdict) -> str:
    if verdict is not ReplayVerdict.PASSED:
        return ""
    levels = Counter(replayed.confidence for replayed in commits if replayed.verdict is verdict)
    return f" (confidence: {', '.join(f'{count} {level}' for level, count in levels.most_common() if level)})"


def _group(reasons: Iterable[tuple[str, str, HistoryCommit]]) -> tuple[SharedReason, ...]:
    groups: dict[str, list[tuple[str, str, HistoryCommit]]] = {}
    for reason, remedy, commit in reasons:
        groups.setdefault(_VARIES.sub("N", reason), []).append((reason, remedy, commit))
    shared = [
        SharedReason(members[0][0], members[0][1], tuple(dict.fromkeys(commit for _, _, commit in members)))
        for members in groups.values()
    ]
    return tuple(sorted(shared, key=lambda group: -len(group.commits)))
