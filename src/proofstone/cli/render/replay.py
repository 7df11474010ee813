"""Show the progress of a replay and print its table."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from proofstone.common.text import escape_control, pluralize
from proofstone.replay.models import HistoryCommit, ReplayedCommit, ReplayReport, ReplayVerdict
from proofstone.replay.rules.replay_page import describe_cost, format_minutes
from proofstone.replay.rules.summary import describe_counts, describe_verdict, group_causes, group_doubts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_MARKS: Final = {
    ReplayVerdict.PASSED: ("✓", "green"),
    ReplayVerdict.ASKED: ("?", "yellow"),
    ReplayVerdict.REFUSED: ("✗", "red"),
    ReplayVerdict.UNVERIFIABLE: ("·", "yellow"),
    ReplayVerdict.UNCHANGED: ("=", "dim"),
}
_SUBJECT: Final = 56
_SHORT: Final = 10
_MAX_DOUBTS: Final = 8


class LiveReplay:
    """Shows a bar while commits are checked, or a line for each where there is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._running: dict[str, HistoryCommit] = {}
        self._lock = threading.Lock()

    @contextmanager
    def show_live(self) -> Iterator[None]:
        """Show the bar in the meantime, on a terminal."""
        if not self._console.is_terminal:
            yield
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=self._console) as self._progress:
            self._progress.add_task("", total=None)
            yield

    def on_begin(self, total: int, known: int) -> None:
        if known:
            self._console.print(f"{pluralize(known, 'commit')} known from an earlier replay")
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], total=total, completed=known)

    def on_start(self, commit: HistoryCommit) -> None:
        with self._lock:
            self._running[commit.commit] = commit
            self._describe()

    def on_end(self, replayed: ReplayedCommit) -> None:
        with self._lock:
            self._running.pop(replayed.commit.commit, None)
            mark, style = _MARKS[replayed.verdict]
            self._console.print(f"{mark} {_describe_commit(replayed)}", style=style, soft_wrap=True)
            if self._progress is not None:
                self._progress.advance(self._progress.task_ids[0])
            self._describe()

    def _describe(self) -> None:
        if self._progress is not None:
            names = ", ".join(commit[:_SHORT] for commit in self._running)
            self._progress.update(self._progress.task_ids[0], description=names)


def print_replay(console: Console, report: ReplayReport) -> None:
    """Print the table of commits, what they have in common, and the counts."""
    causes = group_causes(report.commits)
    for replayed in reversed(report.commits):
        mark, style = _MARKS[replayed.verdict]
        console.print(f"{mark} {replayed.commit.commit[:_SHORT]}  ", style=style, end="", soft_wrap=True)
        subject = escape_control(replayed.commit.subject)[:_SUBJECT]
        why = escape_control(describe_verdict(replayed, causes))
        time = format_minutes(replayed.seconds)
        console.print(f"{subject:<{_SUBJECT}}  {replayed.verdict:<12}  {time:>8}  {why}".rstrip(), soft_wrap=True)
    if causes:
        console.print("\ncould not be verified here:")
        for number, cause in enumerate(causes, 1):
            remedy = f"; {cause.remedy}" if cause.remedy else ""
            text = f"  {number}. {pluralize(len(cause.commits), 'commit')}: {cause.reason}{remedy}"
            console.print(escape_control(text), soft_wrap=True)
    if doubts := group_doubts(report.commits):
        console.print("\nwhy the confidence was not high:")
        for doubt in doubts[:_MAX_DOUBTS]:
            text = f"  {pluralize(len(doubt.commits), 'commit')}: {doubt.reason}"
            console.print(escape_control(text), soft_wrap=True)
        if len(doubts) > _MAX_DOUBTS:
            console.print(f"  and {len(doubts) - _MAX_DOUBTS} more reasons; --html FILE has all of them")
    console.print(f"\nreplayed: {report.selection}, by {report.settings}", soft_wrap=True)
    for line in describe_counts(report):
        console.print(f"  {line}", soft_wrap=True)
    console.print(f"  {describe_cost(report)}", soft_wrap=True)
    for note in report.notes:
        console.print(escape_control(f"note: {note}"), soft_wrap=True)


def _describe_commit(replayed: ReplayedCommit) -> str:
    subject = escape_control(replayed.commit.subject)[:_SUBJECT]
    return f"{replayed.commit.commit[:_SHORT]}  {replayed.verdict}  {format_minutes(replayed.seconds)}  {subject}"
