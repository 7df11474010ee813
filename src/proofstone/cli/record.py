"""`proofstone record`: a run as a script, to have it again without those who took part."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.record import script_of_run
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.task_commands import RunArgument
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.machine.files import write_whole

app = typer.Typer(add_completion=False)


@app.command()
def record(
    run: RunArgument,
    into: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write it; else standard output.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Write a run as a script: everything that its agents said, and what its programs and people left behind.

    The script takes their place: `proofstone gate PLAN.md --executor script:FILE`, from the commit that the run began
    at,
    comes to the same decisions, without a model and without paying for it. It is a text to read, to cut and to change:
    for reproductions, demonstrations and tests. docs/scripts.md describes the format.

    What was said is written as it was: look through it before you give it away.
    """
    if into is None and as_json:
        raise InputError("--json says where the script was written", hint="name a file with --output FILE")
    if into is not None and os.path.lexists(into) and not force:
        raise InputError(f"{into}: is there already", hint="--force replaces it, or name another file")
    script = script_of_run(run)
    if into is None:
        sys.stdout.write(script.text)
        return 0
    write_whole(into, script.text.encode(), mode=0o600)  # what was said is for its owner
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.document({"run_id": script.run_id, "file": str(into.absolute()), "entries": script.entries})
        return 0
    console = output.results()
    console.print(printable(f"{script.run_id}: {script.entries} entries in {into}"), soft_wrap=True)
    if script.setup is not None:
        again = f"proofstone gate {script.setup.plan_path} --executor script:{into.absolute()}"
        again += f" --architect script:{into.absolute()}" if script.setup.architect != "rules" else ""
        console.print(printable(f"again, from {script.setup.base_commit[:12]}: {again}"), style="dim", soft_wrap=True)
    return 0
