"""`proofstone done`: tell a run that the person finished what it waits for."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.task_commands import RunArgument, TaskArgument, send_command
from proofstone.gate.request import UserCommandKind

app = typer.Typer(add_completion=False)


@app.command()
def done(
    run: RunArgument,
    task: TaskArgument,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="What you saw or decided; it is recorded.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Tell a run that you have finished: your work on a task, a checkpoint, or committing a skipped task.

    Your work on a task is verified like any other work. `proofstone status` shows what waits for you.
    """
    send_command(Output(json=as_json, no_color=no_color), run, task, UserCommandKind.DONE, note)
