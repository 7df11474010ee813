"""`proofstone force`: skip every check of one task, in an emergency."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.task_commands import RunArgument, TaskArgument, build_override, find_subject, record_and_print
from proofstone.gate.models import OverrideAction
from proofstone.gate.rules.pass_rule import OVERRIDE_CONFIRMATION

app = typer.Typer(add_completion=False)


@app.command()
def force(
    run: RunArgument,
    task: TaskArgument,
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="The reason; it is recorded with your name.", show_default=False),
    ],
    confirm: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar=OVERRIDE_CONFIRMATION,
            help="The confirmation; without it you are asked.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Skip every check of one task. It is better to fix the task or its verification.

    You must confirm with the word OVERRIDE. The task is shown as `(forced)` everywhere, with a warning in the summary,
    and Proofstone neither commits nor attests it. You cannot force a task with a security finding.
    """
    view, id = find_subject(run, task)
    if confirm is None and sys.stdin.isatty() and not as_json:
        sys.stderr.write(f"This bypasses quality checks. Type '{OVERRIDE_CONFIRMATION}' to confirm: ")
        sys.stderr.flush()
        confirm = sys.stdin.readline().strip()
    command = build_override(view.get_task(id).record, OverrideAction.FORCE, reason, confirmed=confirm)
    record_and_print(Output(json=as_json, no_color=no_color), view, id, command)
