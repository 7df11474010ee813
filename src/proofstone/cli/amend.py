"""`proofstone amend`: add a requirement to a run that is under way."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.app.gate import GATE_RUNS
from proofstone.app.pipeline import PIPELINE_RUNS, record_amendment
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.run_kinds import match_whole_run
from proofstone.cli.task_commands import RunArgument, login_name, refuse_executors, require_text
from proofstone.common.text import escape_control
from proofstone.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def amend(
    run: RunArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The additional requirement.", show_default=False)],
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--files",
            metavar="PATH",
            help="A file that the requirement is about: only the tasks that declare one of them get it as a criterion, "
            "and they may then change those that no task declares. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Add a requirement to a run that is under way or waits for you.

    The agents whose work it concerns receive it at their next turn. They must acknowledge it and say what it changes.
    Further work that they need is added to the plan, unless it belongs to another task. A requirement that no task
    takes on is planned, goes through the plan gate and is implemented before anything is committed.

    \b
      proofstone amend last "limit the rate of login attempts" --files src/auth/handler.py

    You cannot add a requirement to a run that has ended.
    """
    refuse_executors()
    output = Output(json=as_json, no_color=no_color)
    run_id = _find_whole_run(require_text("RUN", run))
    paths = [require_text("--files", path) for path in files or ()]
    added = record_amendment(run_id, require_text("TEXT", text), paths, login_name())
    version = added.number + 1
    if output.json:
        output.print_document(
            {"run_id": run_id, "number": added.number, "version": f"GC-v{version}", "text": added.text}
        )
    else:
        change = f"requirement {added.number} of {run_id}: GC-v{version - 1} → GC-v{version}"
        output.result_console().print(
            escape_control(f"{change}; `proofstone status {run_id}` shows which agents have acknowledged it"),
            soft_wrap=True,
        )


def _find_whole_run(run: str) -> str:
    """Return the id of the run, or of the run that it is a part of."""
    match = match_whole_run(run)
    if match.kind.command not in (PIPELINE_RUNS.command, GATE_RUNS.command):
        raise InputError(
            f"{match.run_id} is a run of `proofstone {match.kind.command}`, which cannot be amended",
            hint="you can amend runs of `proofstone run` and `proofstone gate`; `proofstone runs` lists them",
        )
    return match.run_id
