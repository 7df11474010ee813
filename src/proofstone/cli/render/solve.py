"""Print the report of a run of the control loop: how it ended, the result, and the rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofstone.cli.render.solve_page import render_text_plot
from proofstone.cli.render.solve_text import (
    DIRECTIVE_STYLES,
    STATUS_STYLES,
    build_round_table,
    describe_patch,
    format_apply_command,
    format_effort,
    format_memory,
    format_solve_cost,
    format_solve_headline,
    format_solve_output,
    list_last_failures,
    list_rejected_plans,
    shorten_visibly,
)
from proofstone.common.models import ChangeKind
from proofstone.common.text import escape_control
from proofstone.documents.markdown import make_visible
from proofstone.solve.models import SolveReport

if TYPE_CHECKING:
    from rich.console import Console


_CHANGE_MARKS: Final = {ChangeKind.ADDED: "+", ChangeKind.DELETED: "-", ChangeKind.MODIFIED: "~"}
_MAX_LINES: Final = 20
"""The most lines of one kind; the rest is counted, and --json has all."""
_MAX_TEXT: Final = 400


def print_solve_report(
    console: Console, report: SolveReport, plot: bool = False, written: Path | None = None, *, verbose: bool = True
) -> None:
    """Print the result at the end of `proofstone solve`; with the figures of each round if `verbose`. `written` is the
    file of the full report."""
    _print_outcome(console, report)
    if verbose:
        _print_rounds(console, report)
    if plot:
        console.print("\nthe loss, round by round:", style="bold")
        _print_line(console, render_text_plot(report))
    _print_section(
        console,
        "what failed",
        [f"{intent}: {failure}" if intent else failure for intent, failure in list_last_failures(report)],
    )
    if verbose:
        rejected = [shorten_visibly(plan, _MAX_TEXT) for plan in list_rejected_plans(report)]
        _print_section(console, "plans that were not taken", rejected)
    _print_changes(console, report)
    _print_section(console, "notes", [make_visible(note) for note in report.notes])
    _print_end(console, report, written)


def _print_outcome(console: Console, report: SolveReport) -> None:
    status, summary = (report.result.status, report.result.summary) if report.result else (None, "")
    console.print(format_solve_headline(report), style=STATUS_STYLES[status], end="")
    summary_text = f"  {shorten_visibly(summary, _MAX_TEXT)}" if summary else ""
    _print_line(console, f"{summary_text}  ({format_effort(report)})")
    _print_line(console, f"asked for: {shorten_visibly(report.task.raw_input, _MAX_TEXT)}")
    if report.task.clarification:
        _print_line(console, f"and answered: {shorten_visibly(report.task.clarification, _MAX_TEXT)}")
    if report.question:
        _print_line(console, f"\nyou are asked: {shorten_visibly(report.question, 1000)}", "yellow")
    if output := format_solve_output(report):
        console.print("\nthe result:", style="bold")
        _print_line(console, output)
    if report.result is not None:
        _print_section(console, "done, and can be used", [make_visible(result) for result in report.result.partial])
        _print_section(console, "what you could do now", [make_visible(move) for move in report.result.next_moves])


def _print_rounds(console: Console, report: SolveReport) -> None:
    if not report.rounds:
        return
    rows = build_round_table(report)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    directives = [round_.directive.directive for round_ in report.rounds]
    styles = ["dim", *(DIRECTIVE_STYLES.get(directive, "") for directive in directives)]
    console.print()
    for row, style in zip(rows, styles, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        _print_line(console, f"  {cells.rstrip()}", style)


def _print_changes(console: Console, report: SolveReport) -> None:
    _print_section(
        console, "changed", [f"{_CHANGE_MARKS[change.kind]} {make_visible(change.path)}" for change in report.changed]
    )
    if report.patch:
        _print_line(console, f"  {describe_patch(report)}: {format_apply_command(report)}")


def _print_end(console: Console, report: SolveReport, written: Path | None) -> None:
    console.print()
    if report.next_step:
        _print_line(console, f"next: {make_visible(report.next_step)}")
    if report.remembered:
        _print_line(console, f"memory: {format_memory(report)}; `proofstone memory list` shows all of it", "dim")
    _print_line(console, f"cost: {format_solve_cost(report)}", "dim")
    if written is not None:
        _print_line(console, f"report: {written}", "dim")
    _print_line(console, f"run {report.run_id}; `proofstone ledger show {report.run_id}` shows all of it", "dim")


def _print_section(console: Console, title: str, lines: list[str]) -> None:
    if not lines:
        return
    console.print(f"\n{title}:", style="bold")
    for line in lines[:_MAX_LINES]:
        _print_line(console, f"  {line}")
    if len(lines) > _MAX_LINES:
        _print_line(console, f"  … and {len(lines) - _MAX_LINES} more", "dim")


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(escape_control(text), style=style, soft_wrap=True)
