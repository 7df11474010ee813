"""`assay demo`: scripted agents on a sample repository; those that lie are caught. Real git, checks and ledger."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.app import check_run
from assay.contracts.gate_report import GateReport, RunView
from assay.contracts.report import CheckReport
from assay.contracts.verdict import Outcome
from assay.engine.gate.request import GateRequest
from assay.engine.progress import Silent
from assay.engine.world import CheckRequest
from assay.gate_app import gate_run
from assay.surfaces.cli.output import JsonOption, NoColorOption, Output
from assay.surfaces.demo.deserved import AGENTS, wrongs
from assay.surfaces.demo.evidence import Evidence, gather
from assay.surfaces.demo.shop import CARELESS, CLAIM, FILES
from assay.surfaces.demo.shown import print_evidence, print_judged
from assay.surfaces.demo.stage import Stage, set_up
from assay.surfaces.live.gate import LiveGate
from assay.surfaces.report.check import print_report

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(add_completion=False)

_SAID = {"run_id", "outcome", "reason", "assurance", "fixed", "edited", "regressions", "findings"}


@app.command()
def demo(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="A new directory for it; else a temporary one.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Watch scripted agents work, and the ones that lie be caught. Needs no model, no key and no network.

    A small shop is made, with a bug. First `assay check` looks at one careless change. Then `assay gate` takes four
    agents through a plan: one is honest, one weakens a test, one changes files that are not its own, one keeps lying.
    Only what passes is committed. In the end you see the evidence; all of it stays in the directory that is named.

    Exit code: 0 if every agent was judged as it deserves, else 1.
    """
    output = Output(json=as_json, no_color=no_color)
    console = output.results()
    stage = set_up(directory, FILES)
    console.rule("1. assay check: one change")
    checked = _careless(stage, console)
    console.rule("2. assay gate: four agents, one plan")
    report, view = _gate(stage, output.progress())
    evidence = gather(stage, report, refused=AGENTS[-1].task)
    console.rule("3. the evidence")
    print_judged(console, stage, report, view)
    print_evidence(console, stage, evidence)
    found = [*_careless_wrongs(checked), *wrongs(report, evidence)]
    if as_json:
        output.document(_document(stage, checked, report, evidence, found))
    for wrong in found:
        console.print(f"not as it deserves: {wrong}", style="bold red", soft_wrap=True)
    if not found:
        console.print("\nEvery agent was judged as it deserves.", style="bold green")
    return 1 if found else 0


def _careless(stage: Stage, console: Console) -> CheckReport:
    console.print(f'An agent says: "{CLAIM}"\n')
    for path, old, new in CARELESS:
        stage.edit(path, old, new)
    with check_run(stage.repository, CheckRequest(), Silent(), home=stage.home) as run:
        report = run.run()
    stage.undo()
    print_report(console, report)
    console.print("\nThe failing test passes now. What it broke is named.\n", style="italic")
    return report


def _gate(stage: Stage, progress: Console) -> tuple[GateReport, RunView]:
    live = LiveGate(progress, interactive=progress.is_terminal)
    request = GateRequest(executor=f"script:{stage.script.name}")
    with gate_run(stage.repository, stage.plan, request, live, home=stage.home) as run, live.showing():
        report = run.run()
        sys.stderr.flush()
        return report, run.view().model_copy(update={"running": False})


def _careless_wrongs(report: CheckReport) -> Iterator[str]:
    if report.outcome is not Outcome.FAILED or not report.fixed or not report.regressions:
        yield f"the careless change: {report.outcome.value}, not failed for what it broke"


def _document(
    stage: Stage, checked: CheckReport, report: GateReport, evidence: Evidence, found: list[str]
) -> dict[str, object]:
    return {
        "directory": str(stage.place),
        "as_they_deserve": not found,
        "wrongs": found,
        "check": checked.model_dump(mode="json", include=_SAID),
        "agents": [
            {"agent": agent.name, "task": task.id, "as_it_deserves": not list(agent.wrongs(task))}
            for agent, task in zip(AGENTS, report.tasks, strict=True)
        ],
        "gate": report.model_dump(mode="json"),
        "evidence": [asdict(exhibit) for exhibit in evidence.exhibits],
    }
