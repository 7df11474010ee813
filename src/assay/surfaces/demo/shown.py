"""The end of the demo as a person reads it: what was said, what was seen, and where the evidence is."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from assay.adapters.script_file import Script, read_script, task_facts
from assay.contracts.gate_report import GateReport, RunView, TaskReport
from assay.surfaces.cli.text import printable
from assay.surfaces.demo.deserved import AGENTS, Agent
from assay.surfaces.demo.evidence import Evidence
from assay.surfaces.demo.stage import Stage
from assay.surfaces.report.gate import print_tasks

if TYPE_CHECKING:
    from rich.console import Console


def print_judged(console: Console, stage: Stage, report: GateReport, view: RunView) -> None:
    """The table of tasks; then each agent, with what it said and why that was refused."""
    print_tasks(console, view)
    console.print(f"\nthe run: {printable(report.reason or report.outcome.value)}", style="bold")
    for note in report.notes:
        console.print(f"note: {printable(note)}", style="yellow", soft_wrap=True)
    script = read_script(stage.script)
    for agent, task in zip(AGENTS, report.tasks, strict=True):
        ended = f"attempt {task.attempts} is committed" if task.commit else f"nothing is committed, {task.asks}"
        console.print(f"{task.id}, {agent.name}: {ended}", style="bold", soft_wrap=True)
        for failure in task.failures:
            _print_refused(console, _said(script, task, failure.attempt), _seen(agent, task, failure.attempt))


def print_evidence(console: Console, stage: Stage, evidence: Evidence) -> None:
    """What was looked up afterwards, and how the person can look for themselves."""
    for exhibit in evidence.exhibits:
        console.print(f"\n{printable(exhibit.what)}", style="bold", soft_wrap=True)
        for line in printable(exhibit.says).splitlines():
            console.print(f"  {line}", soft_wrap=True)
    console.print(f"\nAll of it is in {stage.place}. Look further there, or run it again:", soft_wrap=True)
    for line in (
        f"export ASSAY_HOME={quote(str(stage.home))}",
        "assay status; assay ledger show",
        "assay gate PLAN.md --repo shop --executor script:agents.yaml",
    ):
        console.print(f"  {line}", style="dim", soft_wrap=True)


def _print_refused(console: Console, said: str, seen: str) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_row("  said", Text(printable(said)))
    table.add_row("  seen", Text(printable(seen), style="red"))
    console.print(table)


def _said(script: Script, task: TaskReport, attempt: int) -> str:
    steps = script.entry("executor", task_facts(task.id, task.name, attempt)).steps
    return " ".join(step.given["text"] for step in steps if step.name == "say")


def _seen(agent: Agent, task: TaskReport, attempt: int) -> str:
    """The reason that it deserves; if that was not given, what was said instead."""
    reason = agent.caught(task, attempt)
    if reason is not None:
        return f"{reason.check}: {reason.detail}"
    return next(failure.error for failure in task.failures if failure.attempt == attempt)
