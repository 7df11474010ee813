"""What became of a plan at the gate, as a person reads it: what stands against it, what they are asked, the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofstone.contracts.plan_gate.record import Challenge
from proofstone.contracts.plan_gate.report import OpenQuestion, PlanReport, PlanVerdict
from proofstone.core.gate.page_text import visible
from proofstone.core.plan_gate.mitigations import to_take_in
from proofstone.core.plan_gate.report_page import STRONGLY, answer_command, claim_of, headline, mitigation, standing
from proofstone.surfaces.cli.text import printable
from proofstone.surfaces.live.plan_gate import SEVERITY_STYLE

if TYPE_CHECKING:
    from rich.console import Console

_VERDICT: Final = {
    PlanVerdict.PROCEED: "bold green",
    PlanVerdict.REVISE: "bold yellow",
    PlanVerdict.RETHINK: "bold red",
    None: "bold yellow",
}


def print_report(console: Console, report: PlanReport, written: Path | None = None) -> None:
    """The end of `proofstone verify-plan`. `written`: where the whole report is."""
    if stands := standing(report):
        console.print("what stands against it:", style="bold")
        for challenge in stands:
            _challenge(console, report, challenge)
    if report.verdict is PlanVerdict.PROCEED and (taken_in := to_take_in(report.challenges)):
        console.print("to be taken into the plan:", style="bold")
        for challenge in taken_in:
            _line(console, f"  {challenge.id}  {visible(challenge.mitigation)}")
    if report.questions:
        console.print("\nyou are asked:", style="bold")
        for question in report.questions:
            _question(console, report, question)
    if report.debt_warning:
        _line(console, "\ntechnical debt: five challenges or more were deferred; the report lists them", "yellow")
    _verdict(console, report, written)


def _challenge(console: Console, report: PlanReport, challenge: Challenge) -> None:
    line = report.lines.get(challenge.id)
    where = "" if line is None else f"  {visible(report.plan or report.plan_path)}:{line}"
    head = f"  {challenge.id} {challenge.severity} {challenge.status}{where}  {visible(claim_of(report, challenge))}"
    _line(console, head, SEVERITY_STYLE[challenge.severity])
    _line(console, f"    {visible(challenge.concern)}")
    _line(console, f"    {visible(mitigation(challenge))}", "dim")


def _question(console: Console, report: PlanReport, question: OpenQuestion) -> None:
    _line(console, f"  {visible(question.challenge)}: {visible(question.question)}", "yellow")
    for number, option in enumerate(question.options, start=1):
        _line(console, f"    {number}. {visible(option)}")
    _line(console, f"    {answer_command(report, question.challenge)}")


def _verdict(console: Console, report: PlanReport, written: Path | None) -> None:
    console.print()
    console.print(headline(report), style=_VERDICT[report.verdict], end="")
    _line(console, f"  {visible(report.reason)}".rstrip())
    if report.strong:
        _line(console, f"  {STRONGLY}", "yellow")
    if report.next_step:
        _line(console, f"  next: {visible(report.next_step)}")
    if written is not None:
        _line(console, f"  report: {written}", "dim")
    _line(console, f"  run {report.run_id}; `proofstone ledger show {report.run_id}` shows all of it", "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(printable(text), style=style, soft_wrap=True)
