"""Print the progress and the report of `proofstone check`.

On a terminal each running check has a line while it runs. The report has the findings with their fixes, the verdict,
the base and the confidence with its reasons, and the table of checks if something did not pass. In detail
(`--verbose`), each check prints a line at its end, and the report has the table and all lists of tests.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from proofstone.check.models import CheckLine, CheckReport, TestStrength
from proofstone.check.rules.acceptance import describe_acceptance, find_acceptable
from proofstone.check.rules.disputes import describe_dispute
from proofstone.check.rules.strength import describe_strength, describe_survivor
from proofstone.cli.render.confidence_text import print_confidence
from proofstone.common.models import Finding, Outcome, Phase, Severity, Verdict
from proofstone.common.text import escape_control

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


_MARKS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "unverifiable": ("?", "yellow")}


@dataclass
class _RunningCheck:
    """A check that runs, and its last line of output."""

    since: float
    last_line: str = ""


@dataclass
class LiveChecks:
    """Show checks while they run. Implements `check.context.Progress` for one console."""

    console: Console
    interactive: bool
    verbose: bool = True
    """Whether each step and each check prints a line."""
    _running: dict[tuple[str, Phase], _RunningCheck] = field(default_factory=dict)
    _stage: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _live: Live | None = None

    def on_step(self, text: str) -> None:
        self._stage = text
        if self.verbose and not self.interactive:
            self.console.print(f"{text} …")

    def on_start(self, check: str, phase: Phase) -> None:
        with self._lock:
            self._running[check, phase] = _RunningCheck(time.monotonic())

    def on_output(self, check: str, phase: Phase, data: bytes) -> None:
        if not self.interactive:
            return
        line = data[-500:].decode("utf-8", "replace").strip().rpartition("\n")[2]
        running = self._running.get((check, phase))
        if running is not None and line:
            running.last_line = escape_control(line).strip()

    def on_end(self, check: str, phase: Phase, *, reused: bool) -> None:
        with self._lock:
            self._running.pop((check, phase), None)

    def on_check_judged(self, line: CheckLine) -> None:
        if not self.verbose:
            return
        mark, style = _MARKS[line.verdict]
        text = f"{mark} {line.name}  {format_check_time(line)}" + (f"  {line.reason}" if line.reason else "")
        self.console.print(escape_control(text), style=style, soft_wrap=True)

    @contextmanager
    def show_live(self) -> Iterator[None]:
        """Keep the lines of running checks at the bottom of the terminal."""
        if not self.interactive:
            yield
            return
        from rich.live import Live

        with Live(
            get_renderable=self._render, console=self.console, refresh_per_second=8, transient=True
        ) as self._live:
            yield

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Take the lines off the terminal while the person is asked."""
        if self._live is not None:
            self._live.stop()
        yield
        if self._live is not None:
            self._live.start()

    def _render(self) -> RenderableType:
        from rich.text import Text

        now = time.monotonic()
        with self._lock:
            running = sorted(self._running.items(), key=lambda entry: entry[1].since)
        text = Text(f"{self._stage} …\n" if self._stage and not running else "", style="dim")
        for (check, phase), state in running:
            tree = "base" if phase is Phase.BASELINE else "change"
            text.append(f"  … {check} on the {tree}  {now - state.since:.0f} s  ", style="cyan")
            text.append(f"{state.last_line[:60]}\n", style="dim")
        return text


def format_check_time(line: CheckLine) -> str:
    """Return how long the check took, or `known` for a cached result."""
    if line.reused:
        return "known"
    return f"{line.duration_ms / 1000:.1f} s" if line.duration_ms else ""


_OUTCOME_STYLES = {
    Outcome.PASSED: "bold green",
    Outcome.NOTHING_TO_CHECK: "bold",
    Outcome.FAILED: "bold red",
    Outcome.UNVERIFIABLE: "bold yellow",
    Outcome.NEEDS_DECISION: "bold yellow",
}
_VERDICT_STYLES = {"pass": "green", "fail": "red", "unverifiable": "yellow"}
_MAX_LINES = 20
"""The most rows of one kind; the rest is counted, and --json and the ledger have all."""


_MAX_SURVIVORS = 5


class Reader(Enum):
    """Who reads a report. Only a person at a terminal is told how to accept a finding."""

    PERSON = "a person at a terminal"
    UNKNOWN = "a person, a program or a coding agent"


def print_check_report(
    console: Console, report: CheckReport, reader: Reader = Reader.UNKNOWN, *, verbose: bool = True
) -> None:
    """Print the report; in detail if `verbose`."""
    if report.checks and (verbose or any(line.verdict is not Verdict.PASS for line in report.checks)):
        _print_table(console, report)
    if verbose:
        _print_tests(console, "fail → pass", report.fixed, "green")
        _print_tests(console, "fail now, and did not fail on the base", report.regressions, "red")
        _print_tests(console, "failed before, fail still (not held against the change)", report.standing, "dim")
        _print_tests(console, "pass only because they were edited", report.edited, "red")
        _print_tests(console, "flaky", report.flaky, "yellow")
        _print_tests(console, "cannot be verified in the sandbox", report.unverifiable_tests, "yellow")
    _print_findings(console, report.findings)
    if report.strength is not None:
        _print_strength(console, report.strength, verbose=verbose)
    for note in report.notes:
        console.print(f"note: {escape_control(note)}", style="dim", soft_wrap=True)
    _print_verdict(console, report)
    if reader is Reader.PERSON:
        _print_acceptable(console, report)


def _print_acceptable(console: Console, report: CheckReport) -> None:
    """Print how a person accepts the findings that refuse the change."""
    for rule in dict.fromkeys(finding.rule for finding in find_acceptable(report.findings)):
        command = f'proofstone check --accept {rule}="why"'
        console.print(f"  only a person may accept {rule}; `{command}` asks you", style="dim", soft_wrap=True)


def _print_table(console: Console, report: CheckReport) -> None:
    """Print the checks. Columns are aligned by hand, because a terminal wraps a long reason better than a column."""
    name = max([5, *(len(line.name) for line in report.checks)])
    console.print(f"tier  {'check':<{name}}  {'base':<12}  {'now':<12}  {'time':>7}  {'tests':>6}", style="dim")
    for line in report.checks:
        tests = "" if line.tests is None else str(line.tests)
        row = f"{line.tier:>4}  {line.name:<{name}}  {_verdict_text(line.baseline):<12}  "
        console.print(escape_control(row), end="", soft_wrap=True)
        console.print(f"{line.verdict:<12}", style=_VERDICT_STYLES[line.verdict], end="")
        console.print(
            escape_control(f"  {format_check_time(line):>7}  {tests:>6}  {line.reason}").rstrip(), soft_wrap=True
        )


def _verdict_text(verdict: str | None) -> str:
    return "–" if verdict is None else verdict


def _print_tests(console: Console, title: str, tests: tuple[str, ...], style: str) -> None:
    if not tests:
        return
    console.print(f"\n{title}:", style="bold")
    for test in tests[:_MAX_LINES]:
        console.print(f"  {escape_control(test)}", style=style, soft_wrap=True)
    if len(tests) > _MAX_LINES:
        console.print(f"  … and {len(tests) - _MAX_LINES} more", style="dim")


def _print_findings(console: Console, findings: tuple[Finding, ...]) -> None:
    if not findings:
        return
    order = list(Severity)
    console.print("\nfindings:", style="bold")
    for finding in sorted(findings, key=lambda finding: order.index(finding.severity))[:_MAX_LINES]:
        where = f"{finding.path}:{finding.line}" if finding.line else finding.path or ""
        is_grave = finding.severity is not Severity.MINOR
        head = f"  {finding.severity} {finding.layer} {finding.rule}" + (f"  {where}" if where else "")
        console.print(escape_control(head), style="red" if is_grave else "yellow", soft_wrap=True)
        for line in finding.detail.splitlines():
            console.print(f"    {escape_control(line)}", soft_wrap=True)
        for mark, lines in (("-", finding.before), ("+", finding.after)):
            for line in (lines or "").splitlines():
                console.print(f"      {mark} {escape_control(line)}", soft_wrap=True)
        console.print(f"    fix: {escape_control(finding.fix)}", style="dim", soft_wrap=True)
        console.print(f"    more: {_build_explain_command(finding.rule)}", style="dim", soft_wrap=True)
        if finding.artifact:
            console.print(f"    evidence: proofstone ledger artifact {finding.artifact[:12]}", style="dim")
    if len(findings) > _MAX_LINES:
        console.print(f"  … and {len(findings) - _MAX_LINES} more", style="dim")


def _print_strength(console: Console, strength: TestStrength, *, verbose: bool) -> None:
    """Print how many mistakes in the changed lines the tests notice, and which they do not."""
    survivors = strength.survivors
    if not (survivors or verbose):
        return
    console.print(f"\n{escape_control(describe_strength(strength))}", style="bold", soft_wrap=True)
    shown = survivors if verbose else survivors[:_MAX_SURVIVORS]
    for survivor in shown:
        head = f"  not noticed: {describe_survivor(survivor)}"
        console.print(escape_control(head), style="yellow", soft_wrap=True)
        for mark, line in (("-", survivor.before), ("+", survivor.after)):
            console.print(f"      {mark} {escape_control(line)}", soft_wrap=True)
    if len(survivors) > len(shown):
        console.print(f"  … and {len(survivors) - len(shown)} more; --verbose and --json list them", style="dim")


def _build_explain_command(rule: str) -> str:
    """Return the command that shows the page of a rule."""
    return f"proofstone explain {escape_control(shlex.quote(rule))}"


def _count_files(report: CheckReport) -> str:
    return "1 file changed" if len(report.changed) == 1 else f"{len(report.changed)} files changed"


def _print_verdict(console: Console, report: CheckReport) -> None:
    console.print()
    console.print(report.outcome.value.upper(), style=_OUTCOME_STYLES[report.outcome], end="")
    why = f" ({report.base_reason})" if report.base_reason else ""
    against = f"  tree {report.tree[:12]} against {report.base_commit[:12]}{why}, {_count_files(report)}"
    is_empty = report.outcome is Outcome.NOTHING_TO_CHECK  # the reason names the base
    console.print("" if is_empty else escape_control(against), soft_wrap=True)
    if report.reason and not report.disputes:  # each dispute has a line of its own below
        console.print(f"  {escape_control(report.reason)}", soft_wrap=True)
    if report.outcome is Outcome.PASSED and report.confidence is not None:
        print_confidence(console, report.confidence, report.reasons)
    for dispute in report.disputes:
        console.print(f"  {escape_control(describe_dispute(dispute))}", style="yellow", soft_wrap=True)
    if report.outcome is Outcome.NEEDS_DECISION:
        command = 'proofstone dispute decide last accept|reject|amend --reason "…"'
        console.print(f"  a person decides: {command}", style="dim", soft_wrap=True)
    for acceptance in report.accepted if report.outcome is not Outcome.PASSED else ():
        console.print(f"  {escape_control(describe_acceptance(acceptance))}", style="yellow", soft_wrap=True)
    what = "record" if report.outcome is Outcome.NOTHING_TO_CHECK else "evidence"
    console.print(
        f"  run {report.run_id}; `proofstone ledger show {report.run_id}` shows the {what}",
        style="dim",
        soft_wrap=True,
    )
