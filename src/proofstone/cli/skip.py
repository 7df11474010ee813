"""`proofstone skip`: accept a task without verification, on a person's responsibility."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.task_commands import RunArgument, TaskArgument, build_override, find_subject, record_and_print
from proofstone.gate.models import OverrideAction
from proofstone.gate.rules.pass_rule import OVERRIDE_CATEGORIES

app = typer.Typer(add_completion=False)


@app.command()
def skip(
    run: RunArgument,
    task: TaskArgument,
    category: Annotated[
        str,
        typer.Option(
            "--category", metavar="|".join(OVERRIDE_CATEGORIES), help="The kind of reason.", show_default=False
        ),
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason; recorded with your name.", show_default=False)
    ],
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Skip the gate for one task. A skipped task never counts as passed.

    The task is shown as `complete (unverified)` everywhere, and Proofstone does not commit it. Tasks that depend on it
    wait until you have committed the work yourself and run `proofstone done`. Slow tests, or work that looks good, are
    not a reason to skip.
    """
    view, id = find_subject(run, task)
    command = build_override(view.get_task(id).record, OverrideAction.SKIP, reason, category)
    record_and_print(Output(json=as_json, no_color=no_color), view, id, command)
