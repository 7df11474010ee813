"""What came of a goal, as a person reads it: how it ended, the result, and how it came about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofstone.cli.render.solve_page import text_plot
from proofstone.cli.render.solve_words import (
    DIRECTIVE_STYLE,
    STATUS_STYLE,
    apply_command,
    cost,
    effort,
    headline,
    last_failures,
    memory,
    one_line,
    output_text,
    rejected_plans,
    table,
    taking_in,
)
from proofstone.common.models import ChangeKind
from proofstone.common.text import printable
from proofstone.documents.markdown import visible
from proofstone.solve.models import SolveReport

if TYPE_CHECKING:
    from rich.console import Console


_CHANGES: Final = {ChangeKind.ADDED: "+", ChangeKind.DELETED: "-", ChangeKind.MODIFIED: "~"}
_MOST: Final = 20
"""Of one kind; the rest is counted, and in --json."""
_GOAL: Final = 400


def print_solve(console: Console, report: SolveReport, plot: bool = False, written: Path | None = None) -> None:
    """The end of `proofstone solve`. `written`: where the whole report is."""
    _outcome(console, report)
    _rounds(console, report)
    if plot:
        console.print("\nthe loss, round by round:", style="bold")
        _line(console, text_plot(report))
    _section(
        console, "what failed", [f"{intent}: {said}" if intent else said for intent, said in last_failures(report)]
    )
    _section(console, "plans that were not taken", [one_line(plan, _GOAL) for plan in rejected_plans(report)])
    _changed(console, report)
    _section(console, "notes", [visible(note) for note in report.notes])
    _end(console, report, written)


def _outcome(console: Console, report: SolveReport) -> None:
    status, summary = (report.result.status, report.result.summary) if report.result else (None, "")
    console.print(headline(report), style=STATUS_STYLE[status], end="")
    said = f"  {one_line(summary, _GOAL)}" if summary else ""
    _line(console, f"{said}  ({effort(report)})")
    _line(console, f"asked for: {one_line(report.task.raw_input, _GOAL)}")
    if report.task.clarification:
        _line(console, f"and answered: {one_line(report.task.clarification, _GOAL)}")
    if report.question:
        _line(console, f"\nyou are asked: {one_line(report.question, 1000)}", "yellow")
    if output := output_text(report):
        console.print("\nthe result:", style="bold")
        _line(console, output)
    if report.result is not None:
        _section(console, "done, and can be used", [visible(item) for item in report.result.partial])
        _section(console, "what you could do now", [visible(move) for move in report.result.next_moves])


def _rounds(console: Console, report: SolveReport) -> None:
    if not report.rounds:
        return
    rows = table(report)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    directives = [item.directive.directive for item in report.rounds]
    styles = ["dim", *(DIRECTIVE_STYLE.get(directive, "") for directive in directives)]
    console.print()
    for row, style in zip(rows, styles, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        _line(console, f"  {cells.rstrip()}", style)


def _changed(console: Console, report: SolveReport) -> None:
    _section(console, "changed", [f"{_CHANGES[item.kind]} {visible(item.path)}" for item in report.changed])
    if report.patch:
        _line(console, f"  {taking_in(report)}: {apply_command(report)}")


def _end(console: Console, report: SolveReport, written: Path | None) -> None:
    console.print()
    if report.next_step:
        _line(console, f"next: {visible(report.next_step)}")
    if report.remembered:
        _line(console, f"memory: {memory(report)}; `proofstone memory list` shows all of it", "dim")
    _line(console, f"cost: {cost(report)}", "dim")
    if written is not None:
        _line(console, f"report: {written}", "dim")
    _line(console, f"run {report.run_id}; `proofstone ledger show {report.run_id}` shows all of it", "dim")


def _section(console: Console, title: str, lines: list[str]) -> None:
    if not lines:
        return
    console.print(f"\n{title}:", style="bold")
    for line in lines[:_MOST]:
        _line(console, f"  {line}")
    if len(lines) > _MOST:
        _line(console, f"  … and {len(lines) - _MOST} more", "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(printable(text), style=style, soft_wrap=True)
