"""`assay status`: where a run stands, and what it asks of a person."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.core.gate.answers import answers, waiting
from assay.gate_app import find_run, view_run
from assay.surfaces.cli.output import JsonOption, NoColorOption, Output
from assay.surfaces.cli.run_kinds import run_meant, show
from assay.surfaces.report.gate import print_status, state_of

app = typer.Typer(add_completion=False)


@app.command()
def status(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Its id, a unique part of it, or `last`.", show_default=False)
    ] = "last",
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show where a run stands: its tasks, the steps of those under way, what failed, and what you are asked.

    Each question comes with the commands that answer it. Without RUN it is the last run. Of a run of
    `assay run`, `assay verify-plan` or `assay solve` it shows the report.
    """
    output = Output(json=as_json, no_color=no_color)
    if meant := run_meant(run):
        show(output, meant)
        return
    view = view_run(find_run(run))
    if as_json:
        asked = [
            {"task": task.record.id, "asks": task.asks, "answers": [one.command for one in answers(view.run_id, task)]}
            for task in waiting(view)
        ]
        output.document({**view.model_dump(mode="json"), "state": state_of(view), "asked": asked})
    else:
        print_status(output.results(), view)
