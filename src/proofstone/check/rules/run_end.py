"""Whether a run of a check measured anything, decided from how it ended. Pure, and in one place.

| first match                                                              | the run          |
|--------------------------------------------------------------------------|------------------|
| the sandbox could not start the command                                  | died: sandbox    |
| the person interrupted the run                                           | died: cancelled  |
| the engine ended it at its deadline                                      | died: deadline   |
| a limit of memory, of disk or of processes ended it                      | died: limit      |
| its exit status says that a signal ended it                              | died: signal     |
| its runner began a report and did not finish it                          | died: unfinished |
| otherwise, whatever the exit code is                                     | was measured     |

A run that died measured nothing: it neither passes nor fails, nothing of it is kept, and it excuses nothing. A runner
that says itself that it cannot begin (a missing folder, a configuration that cannot be read) did not die: it came to
its own end.

What an agent is told when its work does not pass: short, by file and line, with the way to see more. Pure.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proofstone.check.models import CheckLine, CheckReport, Death, DeathCause, TestReport
from proofstone.common.models import Finding, Severity, Verdict

_SHELL_OFFSET: Final = 128
"""Shells and sandboxes report a process that was ended by signal `n` as the exit code 128 + n."""
_UNFINISHED: Final = "the run ended before it was finished"

_LIMIT_SETTINGS: Final = {
    "memory": "sandbox.memory_mb",
    "disk": "sandbox.disk_mb",
    "processes": "sandbox.processes",
}
"""By a word of what the sandbox says of the limit."""

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
"""Signals that end a process which does not handle them."""


@dataclass(frozen=True)
class RunEnd:
    """How a command ended, as the sandbox saw it."""

    exit_code: int | None
    seconds: float = 0.0
    timed_out: bool = False
    deadline_setting: str = ""
    """The setting that its deadline comes from."""
    cancelled: bool = False
    limit: str = ""
    setup_error: str = ""


def find_death(end: RunEnd, report: TestReport | None) -> Death | None:
    """Why the run measured nothing; None if it was measured."""
    if end.setup_error:
        return Death(cause=DeathCause.SANDBOX, detail=f"the sandbox could not start it: {end.setup_error}")
    if end.cancelled:
        return Death(cause=DeathCause.CANCELLED, detail="interrupted")
    if end.timed_out:
        detail = f"not finished after {end.seconds:.0f} s, and ended there"
        return Death(cause=DeathCause.DEADLINE, detail=detail, setting=end.deadline_setting)
    if end.limit:
        setting = next((name for word, name in _LIMIT_SETTINGS.items() if word in end.limit), "")
        return Death(cause=DeathCause.LIMIT, detail=f"ended at {end.limit}", setting=setting)
    if (name := signal_name(end.exit_code)) and not _counts_failures(end.exit_code, report):
        return Death(cause=DeathCause.SIGNAL, detail=f"{_UNFINISHED}: {name} killed it (exit code {end.exit_code})")
    if report is not None and report.began and not report.complete:
        said = f": {report.problems[0]}" if report.problems else ""
        return Death(cause=DeathCause.UNFINISHED, detail=f"{_UNFINISHED}{said} (exit code {end.exit_code})")
    return None


def signal_name(exit_code: int | None) -> str:
    """The signal that an exit status speaks of; empty if it speaks of none."""
    if exit_code is None:
        return ""
    number = -exit_code if exit_code < 0 else exit_code - _SHELL_OFFSET
    return signal.Signals(number).name if number in _FATAL else ""


def is_worth_repeating(death: Death) -> bool:
    """Whether a run that died is run once more. One that was interrupted is not wanted any more, and one that reached
    its deadline has had all the time that the settings give it."""
    return death.cause not in (DeathCause.CANCELLED, DeathCause.DEADLINE)


def describe_deaths(first: Death, second: Death) -> Death:
    """The second death, with what the first try had died of."""
    if first.detail == second.detail:
        return second.model_copy(update={"detail": f"{second.detail}, twice in a row"})
    return second.model_copy(update={"detail": f"{second.detail}; the try before that: {first.detail}"})


def _counts_failures(exit_code: int | None, report: TestReport | None) -> bool:
    """Whether the exit code is the number of failed tests, as it is with mocha: 137 failures are no signal."""
    return report is not None and report.complete and sum(test.status.bad for test in report.results) == exit_code


MOST_ROUNDS: Final = 3
"""How often one agent is sent back before it may stop all the same."""

_MOST: Final = 10
_LONGEST: Final = 400
"""Characters of one entry; an agent reads the file itself."""


def feedback(report: CheckReport) -> str:
    return "\n".join(_lines(report))


def _lines(report: CheckReport) -> Iterator[str]:
    yield f"`proofstone check` does not pass: {report.outcome}." + (
        "" if _told(report) else f" {_short(report.reason)}"
    )
    yield from _listed("Checks:", [_short(f"{item.name}: {item.verdict}: {item.reason}") for item in _bad(report)])
    yield from _listed("Tests that passed before and fail now:", report.regressions)
    yield from _listed("Tests that pass only because they were edited:", report.edited)
    yield from _listed("Findings:", [_finding(item) for item in _grave_first(report.findings)])
    for line in _bad(report)[:3]:
        if line.artifact:
            yield f"Output of {line.name}: proofstone ledger artifact {line.artifact[:12]}"
    yield "Put this right in the code, not in the checks; then run `proofstone check` to see for yourself."


def _told(report: CheckReport) -> bool:
    """Whether what follows says why."""
    return bool(_bad(report) or report.findings)


def _bad(report: CheckReport) -> list[CheckLine]:
    return [check for check in report.checks if check.verdict is not Verdict.PASS and check.decides and check.required]


def _grave_first(findings: Sequence[Finding]) -> list[Finding]:
    order = list(Severity)
    return sorted(findings, key=lambda one: order.index(one.severity))


def _finding(one: Finding) -> str:
    where = f"{one.path}:{one.line}: " if one.path and one.line else f"{one.path}: " if one.path else ""
    return _short(f"{where}{one.rule} ({one.severity}): {one.detail}; {one.fix}")


def _listed(title: str, entries: Sequence[str]) -> Iterator[str]:
    if entries:
        yield title
        yield from (f"- {entry}" for entry in entries[:_MOST])
    if len(entries) > _MOST:
        yield f"- and {len(entries) - _MOST} more"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
