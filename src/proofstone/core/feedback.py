"""What an agent is told when its work does not pass: short, by file and line, with the way to see more. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from proofstone.contracts.finding import Finding
from proofstone.contracts.report import CheckLine, CheckReport
from proofstone.contracts.verdict import Severity, Verdict

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
    yield from _listed("Checks:", [_short(f"{one.name}: {one.verdict}: {one.reason}") for one in _bad(report)])
    yield from _listed("Tests that passed before and fail now:", report.regressions)
    yield from _listed("Tests that pass only because they were edited:", report.edited)
    yield from _listed("Findings:", [_finding(one) for one in _grave_first(report.findings)])
    for line in _bad(report)[:3]:
        if line.artifact:
            yield f"Output of {line.name}: proofstone ledger artifact {line.artifact[:12]}"
    yield "Put this right in the code, not in the checks; then run `proofstone check` to see for yourself."


def _told(report: CheckReport) -> bool:
    """Whether what follows says why."""
    return bool(_bad(report) or report.findings)


def _bad(report: CheckReport) -> list[CheckLine]:
    return [one for one in report.checks if one.verdict is not Verdict.PASS and one.decides and one.required]


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
