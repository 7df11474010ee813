"""Decide from its end whether a run measured anything, and write the feedback for an agent whose work does not pass.

| first match                                                              | the run          |
|--------------------------------------------------------------------------|------------------|
| the sandbox could not start the command                                  | died: sandbox    |
| the user interrupted the run                                             | died: cancelled  |
| the engine ended it at its deadline                                      | died: deadline   |
| a limit of memory, of disk or of processes ended it                      | died: limit      |
| its exit status says that a signal ended it                              | died: signal     |
| its runner began a report and did not finish it                          | died: unfinished |
| otherwise, whatever the exit code is                                     | was measured     |

A run that died measured nothing: it neither passes nor fails, it is not cached, and it excuses nothing. A runner that
reports that it cannot begin (a missing folder, an unreadable configuration) did not die: it ended by itself.

The feedback is short. It names files and lines, and says how to see more.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.models import CheckLine, CheckReport, DeathCause, RunDeath, TestReport
from proofstone.common.models import Finding, Severity, Verdict

_SHELL_OFFSET: Final = 128
"""Shells and sandboxes report a process that was ended by signal `n` as exit code 128 + n."""
_UNFINISHED: Final = "the run ended before it was finished"

_LIMIT_SETTINGS: Final = {
    "memory": "sandbox.memory_mb",
    "disk": "sandbox.disk_mb",
    "processes": "sandbox.processes",
}
"""Settings by a word in the sandbox's description of the limit."""

_FATAL: Final = frozenset(
    number
    for number in signal.Signals
    if number.name
    in (
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
        "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGXCPU", "SIGXFSZ", "SIGVTALRM",
        "SIGPROF", "SIGIO", "SIGPWR", "SIGSYS",
    )
)  # fmt: skip
"""Signals that end a process that does not handle them."""


@dataclass(frozen=True)
class RunEnd:
    """How a command ended, as the sandbox observed it."""

    exit_code: int | None
    seconds: float = 0.0
    timed_out: bool = False
    deadline_setting: str = ""
    """The setting that defines the deadline."""
    cancelled: bool = False
    limit: str = ""
    setup_error: str = ""


def find_death(end: RunEnd, report: TestReport | None) -> RunDeath | None:
    """Return why the run measured nothing; None if it was measured."""
    if end.setup_error:
        return RunDeath(cause=DeathCause.SANDBOX, detail=f"the sandbox could not start it: {end.setup_error}")
    if end.cancelled:
        return RunDeath(cause=DeathCause.CANCELLED, detail="interrupted")
    if end.timed_out:
        detail = f"not finished after {end.seconds:.0f} s, and ended there"
        return RunDeath(cause=DeathCause.DEADLINE, detail=detail, setting=end.deadline_setting)
    if end.limit:
        setting = next((name for word, name in _LIMIT_SETTINGS.items() if word in end.limit), "")
        return RunDeath(cause=DeathCause.LIMIT, detail=f"ended at {end.limit}", setting=setting)
    if (name := find_signal_name(end.exit_code)) and not _counts_failures(end.exit_code, report):
        return RunDeath(cause=DeathCause.SIGNAL, detail=f"{_UNFINISHED}: {name} killed it (exit code {end.exit_code})")
    if report is not None and report.began and not report.complete:
        problem = f": {report.problems[0]}" if report.problems else ""
        return RunDeath(cause=DeathCause.UNFINISHED, detail=f"{_UNFINISHED}{problem} (exit code {end.exit_code})")
    return None


def find_signal_name(exit_code: int | None) -> str:
    """Return the signal that an exit status stands for; empty if none."""
    if exit_code is None:
        return ""
    number = -exit_code if exit_code < 0 else exit_code - _SHELL_OFFSET
    return signal.Signals(number).name if number in _FATAL else ""


def is_worth_repeating(death: RunDeath) -> bool:
    """Return whether a run that died is repeated. An interrupted run is no longer wanted, and a run that reached its
    deadline had all the time that the settings give it."""
    return death.cause not in (DeathCause.CANCELLED, DeathCause.DEADLINE)


def describe_deaths(first: RunDeath, second: RunDeath) -> RunDeath:
    """Return the second death with the cause of the first one."""
    if first.detail == second.detail:
        return second.model_copy(update={"detail": f"{second.detail}, twice in a row"})
    return second.model_copy(update={"detail": f"{second.detail}; the first try: {first.detail}"})


def _counts_failures(exit_code: int | None, report: TestReport | None) -> bool:
    """Return whether the exit code is the number of failed tests, as with mocha: 137 failures are no signal."""
    return (
        report is not None and report.complete and sum(test.status.is_failure for test in report.results) == exit_code
    )


MAX_FEEDBACK_ROUNDS: Final = 3
"""How often an agent is sent back before it may stop anyway."""

_MAX_ENTRIES: Final = 10
_MAX_CHARS: Final = 400
"""Characters of one entry. The agent can read the file itself."""


def write_feedback(report: CheckReport) -> str:
    """Return the feedback for an agent whose work does not pass."""
    return "\n".join(_feedback_lines(report))


def _feedback_lines(report: CheckReport) -> Iterator[str]:
    yield f"`proofstone check` does not pass: {report.outcome}." + (
        "" if _has_details(report) else f" {_shorten(report.reason)}"
    )
    findings = _sort_by_severity(report.findings)
    named = {test for finding in findings for test in finding.tests}
    yield from _list_entries("Findings:", [_format_finding(finding) for finding in findings])
    yield from _list_entries(
        "Checks:",
        [_shorten(f"{check.name}: {check.verdict}: {check.reason}") for check in _list_failing_checks(report)],
    )
    unnamed = [test for test in report.regressions if test not in named]
    yield from _list_entries("Tests that fail now and did not fail on the base:", unnamed)
    yield from _list_entries("Tests that pass only because they were edited:", report.edited)
    if rules := dict.fromkeys(finding.rule for finding in findings):
        yield f"What a rule means: {', '.join(f'`proofstone explain {rule}`' for rule in [*rules][:_MAX_ENTRIES])}"
    for line in _list_failing_checks(report)[:3]:
        if line.artifact:
            yield f"Output of {line.name}: proofstone ledger artifact {line.artifact[:12]}"
    yield "Fix this in the code, not in the checks. Then run `proofstone check` to verify it."
    yield (
        "If a test or a requirement is wrong or contradicts another, do not change it to make the check pass. "
        'Dispute it: `proofstone dispute SUBJECT --because "why"`. A person decides, and you may stop.'
    )


def _has_details(report: CheckReport) -> bool:
    """Return whether the checks or findings explain the outcome."""
    return bool(_list_failing_checks(report) or report.findings)


def _list_failing_checks(report: CheckReport) -> list[CheckLine]:
    return [check for check in report.checks if check.verdict is not Verdict.PASS and check.decides and check.required]


def _sort_by_severity(findings: Sequence[Finding]) -> list[Finding]:
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def _format_finding(finding: Finding) -> str:
    where = (
        f"{finding.path}:{finding.line}: "
        if finding.path and finding.line
        else f"{finding.path}: "
        if finding.path
        else ""
    )
    return _shorten(f"{where}{finding.rule} ({finding.severity}): {finding.detail}; {finding.fix}")


def _list_entries(title: str, entries: Sequence[str]) -> Iterator[str]:
    if entries:
        yield title
        yield from (f"- {entry}" for entry in entries[:_MAX_ENTRIES])
    if len(entries) > _MAX_ENTRIES:
        yield f"- and {len(entries) - _MAX_ENTRIES} more"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_CHARS else line[: _MAX_CHARS - 1] + "…"
