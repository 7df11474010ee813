"""Checks while they run: a line each on a terminal, a line at the end of each elsewhere.

The report of `proofstone check` as a person reads it: the verdict, the table, each reason with what would fix it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofstone.check.models import CheckLine, CheckReport
from proofstone.common.models import Assurance, Finding, Outcome, Phase, Severity
from proofstone.common.text import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


_MARKS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "unverifiable": ("?", "yellow")}


@dataclass
class _Running:
    since: float
    said: str = ""


@dataclass
class LiveChecks:
    """Implements `check.context.Progress` for one console."""

    console: Console
    interactive: bool
    _running: dict[tuple[str, Phase], _Running] = field(default_factory=dict)
    _stage: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def step(self, text: str) -> None:
        self._stage = text
        if not self.interactive:
            self.console.print(f"{text} …")

    def started(self, check: str, phase: Phase) -> None:
        with self._lock:
            self._running[check, phase] = _Running(time.monotonic())

    def output(self, check: str, phase: Phase, data: bytes) -> None:
        if not self.interactive:
            return
        line = data[-500:].decode("utf-8", "replace").strip().rpartition("\n")[2]
        running = self._running.get((check, phase))
        if running is not None and line:
            running.said = printable(line).strip()

    def ended(self, check: str, phase: Phase, *, reused: bool) -> None:
        with self._lock:
            self._running.pop((check, phase), None)

    def judged(self, line: CheckLine) -> None:
        mark, style = _MARKS[line.verdict]
        told = f"{mark} {line.name}  {duration(line)}" + (f"  {line.reason}" if line.reason else "")
        self.console.print(printable(told), style=style, soft_wrap=True)

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Keep the lines of what runs at the bottom of the terminal."""
        if not self.interactive:
            yield
            return
        from rich.live import Live

        with Live(get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True):
            yield

    def _render(self) -> RenderableType:
        from rich.text import Text

        now = time.monotonic()
        with self._lock:
            running = sorted(self._running.items(), key=lambda item: item[1].since)
        text = Text(f"{self._stage} …\n" if self._stage and not running else "", style="dim")
        for (check, phase), state in running:
            on = "base" if phase is Phase.BASELINE else "change"
            text.append(f"  … {check} on the {on}  {now - state.since:.0f} s  ", style="cyan")
            text.append(f"{state.said[:60]}\n", style="dim")
        return text


def duration(line: CheckLine) -> str:
    """How long it took, or that it was known already."""
    if line.reused:
        return "known"
    return f"{line.duration_ms / 1000:.1f} s" if line.duration_ms else ""


_OUTCOME = {Outcome.PASSED: "bold green", Outcome.FAILED: "bold red", Outcome.UNVERIFIABLE: "bold yellow"}
_VERDICT = {"pass": "green", "fail": "red", "unverifiable": "yellow"}
_MOST = 20
"""Rows of one kind; the rest is counted, and in --json and the ledger."""


def print_report(console: Console, report: CheckReport) -> None:
    _table(console, report)
    _tests(console, "fail → pass", report.fixed, "green")
    _tests(console, "regressions", report.regressions, "red")
    _tests(console, "failed before, fail still (not held against the change)", report.standing, "dim")
    _tests(console, "pass only because they were edited", report.edited, "red")
    _tests(console, "flaky", report.flaky, "yellow")
    _tests(console, "cannot be verified in the sandbox", report.unverifiable_tests, "yellow")
    _findings(console, report.findings)
    for note in report.notes:
        console.print(f"note: {printable(note)}", style="dim", soft_wrap=True)
    _verdict(console, report)


def _table(console: Console, report: CheckReport) -> None:
    """Aligned by hand: a reason is as long as it is, and a terminal wraps it better than a column would."""
    name = max([5, *(len(line.name) for line in report.checks)])
    console.print(f"tier  {'check':<{name}}  {'base':<12}  {'now':<12}  {'time':>7}  {'tests':>6}", style="dim")
    for line in report.checks:
        tests = "" if line.tests is None else str(line.tests)
        row = f"{line.tier:>4}  {line.name:<{name}}  {_word(line.baseline):<12}  "
        console.print(printable(row), end="", soft_wrap=True)
        console.print(f"{line.verdict:<12}", style=_VERDICT[line.verdict], end="")
        console.print(printable(f"  {duration(line):>7}  {tests:>6}  {line.reason}").rstrip(), soft_wrap=True)


def _word(verdict: str | None) -> str:
    return "–" if verdict is None else verdict


def _tests(console: Console, title: str, tests: tuple[str, ...], style: str) -> None:
    if not tests:
        return
    console.print(f"\n{title}:", style="bold")
    for test in tests[:_MOST]:
        console.print(f"  {printable(test)}", style=style, soft_wrap=True)
    if len(tests) > _MOST:
        console.print(f"  … and {len(tests) - _MOST} more", style="dim")


def _findings(console: Console, findings: tuple[Finding, ...]) -> None:
    if not findings:
        return
    order = list(Severity)
    console.print("\nfindings:", style="bold")
    for finding in sorted(findings, key=lambda one: order.index(one.severity))[:_MOST]:
        where = f"{finding.path}:{finding.line}" if finding.line else finding.path or ""
        grave = finding.severity is not Severity.MINOR
        head = f"  {finding.severity} {finding.layer} {finding.rule}" + (f"  {where}" if where else "")
        console.print(printable(head), style="red" if grave else "yellow", soft_wrap=True)
        console.print(f"    {printable(finding.detail)}", soft_wrap=True)
        for mark, lines in (("-", finding.before), ("+", finding.after)):
            for line in (lines or "").splitlines():
                console.print(f"      {mark} {printable(line)}", soft_wrap=True)
        console.print(f"    fix: {printable(finding.fix)}", style="dim", soft_wrap=True)
        if finding.artifact:
            console.print(f"    evidence: proofstone ledger artifact {finding.artifact[:12]}", style="dim")
    if len(findings) > _MOST:
        console.print(f"  … and {len(findings) - _MOST} more", style="dim")


def _files(report: CheckReport) -> str:
    return "1 file changed" if len(report.changed) == 1 else f"{len(report.changed)} files changed"


def _verdict(console: Console, report: CheckReport) -> None:
    console.print()
    console.print(report.outcome.value.upper(), style=_OUTCOME[report.outcome], end="")
    console.print(f"  tree {report.tree[:12]} against {report.base_commit[:12]}, {_files(report)}")
    if report.reason:
        console.print(f"  {printable(report.reason)}", soft_wrap=True)
    if report.outcome is Outcome.PASSED:
        console.print(f"  confidence {report.confidence}", end="")
        console.print("".join(f"\n    {printable(cap)}" for cap in report.caps[:_MOST]), style="dim", soft_wrap=True)
    if report.assurance is not Assurance.BUBBLEWRAP:
        console.print(f"  assurance: {report.assurance} only; `proofstone doctor` says how to raise it", style="yellow")
    console.print(
        f"  run {report.run_id}; `proofstone ledger show {report.run_id}` shows the evidence",
        style="dim",
        soft_wrap=True,
    )
