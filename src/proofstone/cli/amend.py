"""`proofstone amend`: a requirement that comes while a run is under way."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.app.gate import find_run, whole_of
from proofstone.app.pipeline import RUNS, amend_run
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.run_kinds import run_meant
from proofstone.cli.task_commands import RunArgument, plain, refuse_executors, speaker
from proofstone.common.text import printable
from proofstone.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def amend(
    run: RunArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is wanted as well.", show_default=False)],
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--files",
            metavar="PATH",
            help="Whom it concerns: whoever may change this file. May be repeated; without it, everybody at work.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Add a requirement to a run that is under way, or that waits.

    Whoever is at work on what it concerns is told at their next turn boundary, must acknowledge it, and is asked what
    it changes; what they need beyond their task is added to the plan, if it belongs to nobody else. What no task takes
    in is planned, goes through the plan gate and is done like any other work, before anything is committed.

    \b
      proofstone amend last "limit the rate of login attempts" --files src/auth/handler.py

    A run that is over takes nothing in.
    """
    refuse_executors()
    output = Output(json=as_json, no_color=no_color)
    run_id = _whole(plain("RUN", run))
    said = [plain("--files", path) for path in files or ()]
    added = amend_run(run_id, plain("TEXT", text), said, speaker())
    version = added.number + 1
    if output.json:
        output.document({"run_id": run_id, "number": added.number, "version": f"GC-v{version}", "text": added.text})
    else:
        told = f"requirement {added.number} of {run_id}: GC-v{version - 1} → GC-v{version}"
        output.results().print(
            printable(f"{told}; `proofstone status {run_id}` shows who has taken it in"), soft_wrap=True
        )


def _whole(run: str) -> str:
    """A part of a run is amended with the whole."""
    meant = run_meant(run)
    if meant is None:
        return whole_of(find_run(run))
    if meant.kind.command != RUNS.command:
        raise InputError(
            f"{meant.run_id} is of `proofstone {meant.kind.command}`, to which nothing can be added",
            hint="runs of `proofstone run` and `proofstone gate` take something in; `proofstone runs` lists them",
        )
    return meant.run_id
