"""Build the page about a replay: what would have passed, what would have been asked and why, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from proofstone.common.text import pluralize
from proofstone.documents.model import (
    Block,
    Document,
    Inline,
    Paragraph,
    Section,
    StyledText,
    Tone,
    bullets,
    code,
    faint,
    inline,
    strong,
    table,
)
from proofstone.replay.models import HistoryCommit, ReplayedCommit, ReplayReport, ReplayVerdict
from proofstone.replay.rules.summary import (
    SharedReason,
    count_rules,
    describe_counts,
    describe_verdict,
    group_causes,
    group_doubts,
)

_SHORT: Final = 10
_MAX_NAMED: Final = 8
_TONES: Final = {
    ReplayVerdict.PASSED: Tone.GOOD,
    ReplayVerdict.ASKED: Tone.UNSURE,
    ReplayVerdict.REFUSED: Tone.BAD,
    ReplayVerdict.UNVERIFIABLE: Tone.UNSURE,
}


def build_replay_page(report: ReplayReport) -> Document:
    """Return the page."""
    causes = group_causes(report.commits)
    return Document(
        title=f"What the gate would have said about {pluralize(len(report.commits), 'commit')}",
        summary=tuple(_build_summary(report)),
        sections=(
            Section("Commits", _build_commits(report.commits, causes)),
            Section("What would have been put to a person", _build_findings(report, ReplayVerdict.ASKED)),
            Section("What would have been refused", _build_findings(report, ReplayVerdict.REFUSED)),
            Section("What could not be verified here", _build_shared(causes, is_numbered=True)),
            Section("Why the confidence was not high", _build_shared(group_doubts(report.commits))),
            Section("Notes", bullets(inline(note) for note in report.notes)),
        ),
    )


def find_replay_tone(report: ReplayReport) -> str:
    """Return the colour of the whole page: that of its worst verdict."""
    for verdict in (ReplayVerdict.REFUSED, ReplayVerdict.UNVERIFIABLE, ReplayVerdict.ASKED):
        if verdict in report.counts:
            return _TONES[verdict]
    return Tone.GOOD


def describe_cost(report: ReplayReport) -> str:
    """Return what the replay has cost, in one line."""
    spent = sum(replayed.seconds for replayed in report.commits)
    each = sorted(replayed.seconds for replayed in report.commits)
    known = f"; {pluralize(report.known, 'commit')} known from an earlier replay" if report.known else ""
    median = f", median {format_minutes(each[len(each) // 2])}" if each else ""
    return (
        f"{format_minutes(spent)} of checks{median}; this replay took {format_minutes(report.seconds)} with "
        f"{report.jobs} at a time{known}"
    )


def format_minutes(seconds: float) -> str:
    """Return a time as a person would say it."""
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"


def _build_summary(report: ReplayReport) -> Iterator[Block]:
    yield from bullets(inline(line) for line in describe_counts(report))
    yield Paragraph(inline(f"Replayed: {report.selection}, each against its first parent, by {report.settings}."))
    yield Paragraph(inline(f"Cost: {describe_cost(report)}. Sandbox: {report.sandbox}."))


def _build_commits(commits: Sequence[ReplayedCommit], causes: Sequence[SharedReason]) -> tuple[Block, ...]:
    return table(
        ("commit", "subject", "verdict", "why", "time"),
        (
            (
                code(replayed.commit.commit[:_SHORT]),
                replayed.commit.subject,
                strong(replayed.verdict.value, _TONES.get(replayed.verdict)),
                describe_verdict(replayed, causes),
                format_minutes(replayed.seconds),
            )
            for replayed in reversed(commits)
        ),
    )


def _build_findings(report: ReplayReport, verdict: ReplayVerdict) -> tuple[Block, ...]:
    rules = count_rules(report.commits, verdict)
    by_rule = bullets(inline(code(rule), f": {pluralize(count, 'commit')}") for rule, count in rules.most_common())
    rows = [
        (code(replayed.commit.commit[:_SHORT]), code(finding.rule), inline(finding.detail))
        for replayed in reversed(report.commits)
        if replayed.verdict is verdict
        for finding in replayed.findings
    ]
    reasons = [
        (code(replayed.commit.commit[:_SHORT]), faint("no finding"), inline(replayed.reason))
        for replayed in reversed(report.commits)
        if replayed.verdict is verdict and not replayed.findings
    ]
    return (*by_rule, *table(("commit", "rule", "what"), [*rows, *reasons]))


def _build_shared(reasons: Iterable[SharedReason], *, is_numbered: bool = False) -> tuple[Block, ...]:
    return bullets(
        inline(
            *((strong(f"{number}. "),) if is_numbered else ()),
            f"{pluralize(len(shared.commits), 'commit')}: {shared.reason}",
            faint(f" – {shared.remedy}") if shared.remedy else "",
            " ",
            *_name_commits(shared.commits),
        )
        for number, shared in enumerate(reasons, 1)
    )


def _name_commits(commits: Sequence[HistoryCommit]) -> Inline:
    names: list[StyledText] = [code(commit.commit[:_SHORT]) for commit in commits[:_MAX_NAMED]]
    more = len(commits) - _MAX_NAMED
    parts = [part for name in names for part in (StyledText(" "), name)]
    return (*parts, *((faint(f" and {more} more"),) if more > 0 else ()))
