"""`proofstone cancel`: stop a run for good."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.app.runs import cancel_run
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.run_kinds import KINDS_BY_COMMAND, RESUMABLE_COMMANDS, match_run
from proofstone.cli.task_commands import RunArgument, login_name, refuse_executors, require_text
from proofstone.common.text import escape_control

app = typer.Typer(add_completion=False)


@app.command()
def cancel(
    run: RunArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Cancel a run that is under way, waits for you, or was interrupted. It cannot be resumed.

    If a process works on the run, it is asked to stop, and saves what it has. Commits that the run has made stay, and
    the ledger keeps its record. To stop a run only for now, press Ctrl-C in its terminal: `proofstone resume`
    continues it.

    \b
      proofstone cancel last
      proofstone cancel 20260101T120000Z-a1b2c3 --reason "the request has changed"
    """
    refuse_executors()
    text = require_text("--reason", reason).strip()
    match = match_run(run, RESUMABLE_COMMANDS if run == "last" else KINDS_BY_COMMAND)
    done = cancel_run(match.run, login_name(), text)
    output = Output(json=as_json, no_color=no_color)
    if output.json:
        output.print_document({"run_id": match.run_id, "command": match.kind.command, "state": "cancelled"})
    else:
        output.result_console().print(escape_control(f"{match.run_id}: {done}"), soft_wrap=True)
