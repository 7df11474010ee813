"""`proofstone bundle`: what came of a run and what shows it, on one page."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.context import private_home
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.bundle import html
from proofstone.cli.task_commands import RunArgument
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.git.repository import repository_around
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.query import meant
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.machine.files import write_whole
from proofstone.pipeline.bundling import bundle_of
from proofstone.pipeline.models.bundle import Bundle
from proofstone.pipeline.records import bundled_runs
from proofstone.pipeline.rules.bundle_page import page

app = typer.Typer(add_completion=False)


@app.command()
def bundle(
    run: RunArgument,
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write it as a page for a browser.", show_default=False),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it as Markdown.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show the evidence bundle of a run of `proofstone run` or `proofstone gate`: how it ended and how sure that is,
    the checks
    before and after, reviews, what was overridden, what it cost, and the command that takes it back.

    It is made from the ledger and from nothing else; each line names the rows that it comes from. Without --html and
    --output it is printed as Markdown. The page for a browser is one file that loads nothing.
    """
    output = Output(json=as_json, no_color=no_color)
    found = _bundle(run)
    written: list[Path] = []
    for file, text in ((html_file, html), (into, page)):
        if file is not None:
            write_whole(file, text(found).encode("utf-8", "backslashreplace"))
            written.append(file)
    if as_json:
        output.document(found.model_dump(mode="json"))
    elif written:
        output.results().print(printable("\n".join(f"wrote {file}" for file in written)), soft_wrap=True)
    else:
        sys.stdout.write(page(found))


def _bundle(text: str) -> Bundle:
    path = ledger_path(private_home())
    nothing = InputError("there is no run to bundle yet", hint="`proofstone gate PLAN.md` starts one")
    if not path.is_file():
        raise nothing
    with closing(SqliteLedger(path, "read")) as ledger:
        runs = bundled_runs(ledger)
        if not runs:
            raise nothing
        otherwise = (
            f"a bundle is made of a run of `proofstone run` or `proofstone gate`; the last one is {runs[0].run_id}"
        )
        here = repository_around(Path.cwd())
        return bundle_of(ledger, meant(text, runs, here, "run of `proofstone run` or `proofstone gate`", otherwise))
