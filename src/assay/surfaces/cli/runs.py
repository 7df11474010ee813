"""`assay runs`: the runs of the gate and of the plan gate, newest first."""

from __future__ import annotations

import typer

from assay.contracts.gate_report import RunView
from assay.core.gate.position import statistics
from assay.engine.plan_gate.looking import PlanRunView
from assay.gate_app import list_runs
from assay.surfaces.cli.output import JsonOption, NoColorOption, Output
from assay.surfaces.report.gate import state_of
from assay.surfaces.report.runs import print_runs
from assay.verify_plan_app import list_plan_runs

app = typer.Typer(add_completion=False)


@app.command()
def runs(as_json: JsonOption = False, no_color: NoColorOption = False) -> None:
    """List the runs of `assay gate` and `assay verify-plan`, newest first, and what became of each.

    `assay status RUN` shows one of them.
    """
    views: list[RunView | PlanRunView] = [*list_runs(), *list_plan_runs()]
    views.sort(key=lambda one: one.run_id, reverse=True)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.document({"runs": [_row(view) if isinstance(view, RunView) else _plan_row(view) for view in views]})
    else:
        print_runs(output.results(), views)


def _plan_row(view: PlanRunView) -> dict[str, object]:
    return {
        "run_id": view.run_id,
        "command": "verify-plan",
        "state": view.state,
        "reason": view.reason,
        "plan": view.setup.plan_path,
        "repository": view.setup.repository,
        "started_at": view.started_at,
        "updated_at": view.updated_at,
    }


def _row(view: RunView) -> dict[str, object]:
    counted = statistics(view)
    return {
        "run_id": view.run_id,
        "command": "gate",
        "state": state_of(view),
        "outcome": view.outcome.value if view.outcome else None,
        "reason": view.reason,
        "title": view.plan.title,
        "plan": view.plan_path,
        "repository": view.repository,
        "branch": view.branch,
        "started_at": view.started_at,
        "updated_at": view.updated_at,
        "tasks": counted.total,
        "passed": counted.passed,
        "failed": counted.failed,
    }
