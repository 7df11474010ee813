"""`assay approve`: a person's review of a task that was verified."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from assay.engine.gate.request import WordKind
from assay.errors import InputError
from assay.surfaces.cli.output import JsonOption, NoColorOption, Output
from assay.surfaces.cli.words import RunArgument, TaskArgument, speak

app = typer.Typer(add_completion=False)


class Decision(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"


@app.command()
def approve(
    run: RunArgument,
    task: TaskArgument,
    decision: Annotated[Decision, typer.Argument(metavar="approved|rejected", show_default=False)],
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="TEXT",
            help="What is wrong: the next attempt is told. For `rejected`.",
            show_default=False,
        ),
    ] = "",
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Approve or reject a task that waits for your review.

    It has been verified already: your word cannot make up for a check that failed. A rejection needs a reason, and
    goes back to the executor with it.
    """
    if decision is Decision.REJECTED and not reason.strip():
        raise InputError(
            "rejected needs a reason: the next attempt is told",
            hint='for instance --reason "an empty list is not handled"',
        )
    speak(Output(json=as_json, no_color=no_color), run, task, WordKind(decision.value), reason)
