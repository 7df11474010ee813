"""`proofstone record`: write a run as a script that repeats it without its agents."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.record import record_script
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.task_commands import RunArgument
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.machine.files import write_atomic

app = typer.Typer(add_completion=False)


@app.command()
def record(
    run: RunArgument,
    into: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file; by default standard output.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Write a run as a script: everything that its agents said, and the changes that its programs and people made.

    The script replaces them: `proofstone gate PLAN.md --executor script:FILE`, from the commit that the run began at,
    comes to the same decisions, without a model and its cost. The script is text that you can read, cut and change, for
    reproductions, demonstrations and tests. `proofstone manual scripts` describes the format.

    The script contains the messages as they were. Read it before you share it.
    """
    if into is None and as_json:
        raise InputError(
            "--json needs --output: it reports the file of the script", hint="name a file with --output FILE"
        )
    if into is not None and os.path.lexists(into) and not force:
        raise InputError(f"{into}: exists already", hint="--force replaces it; or name another file")
    script = record_script(run)
    if into is None:
        sys.stdout.write(script.text)
        return 0
    write_atomic(into, script.text.encode(), mode=0o600)  # the messages are for their owner
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document({"run_id": script.run_id, "file": str(into.absolute()), "entries": script.entry_count})
        return 0
    console = output.result_console()
    console.print(escape_control(f"{script.run_id}: {script.entry_count} entries in {into}"), soft_wrap=True)
    if script.setup is not None:
        command = f"proofstone gate {script.setup.plan_path} --executor script:{into.absolute()}"
        command += f" --architect script:{into.absolute()}" if script.setup.architect != "rules" else ""
        console.print(
            escape_control(f"repeat it from {script.setup.base_commit[:12]}: {command}"), style="dim", soft_wrap=True
        )
    return 0
