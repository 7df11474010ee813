"""`proofstone runs`: list the runs of the pipeline, the gate, the plan gate and the control loop, newest first."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from proofstone.app.gate import list_runs
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.gate import describe_state
from proofstone.cli.render.tables import print_runs
from proofstone.cli.run_kinds import RUN_KINDS, run_document
from proofstone.gate.models import RunView
from proofstone.gate.rules.progress import count_tasks
from proofstone.runtime.run_index import RunSummary

app = typer.Typer(add_completion=False)


@app.command()
def runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="The most runs to list.")] = 50,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """List the runs of `proofstone run`, `gate`, `verify-plan` and `solve`, newest first, with their outcomes.

    `proofstone status RUN` shows one of them.
    """
    views: list[RunView | RunSummary[Any]] = [
        *list_runs(limit=limit + 1),
        *(view for kind in RUN_KINDS for view in kind.runs.list_views(limit=limit + 1)),
    ]
    views.sort(key=lambda view: view.run_id, reverse=True)
    shown, more = views[:limit], len(views) > limit
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        rows = [_row(view) if isinstance(view, RunView) else run_document(view) for view in shown]
        output.print_document({"runs": rows, "more": more})
        return
    print_runs(output.result_console(), shown)
    if more:
        output.result_console().print("there are more runs: raise --limit")


def _row(view: RunView) -> dict[str, object]:
    counts = count_tasks(view)
    return {
        "run_id": view.run_id,
        "command": "gate",
        "state": describe_state(view),
        "outcome": view.outcome.value if view.outcome else None,
        "reason": view.reason,
        "title": view.plan.title,
        "plan": view.plan_path,
        "repository": view.repository,
        "branch": view.branch,
        "started_at": view.started_at,
        "updated_at": view.updated_at,
        "tasks": counts.total,
        "passed": counts.passed,
        "failed": counts.failed,
    }
