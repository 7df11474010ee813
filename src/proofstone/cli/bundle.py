"""`proofstone bundle`: show the result of a run and its evidence on one page."""

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
        typer.Option("--html", metavar="FILE", help="Write the bundle as a page for a browser.", show_default=False),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the bundle as Markdown.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show the evidence bundle of a run of `proofstone run` or `proofstone gate`: how it ended and how confident that
    is, the checks before and after, reviews, overrides, the cost, and the command that reverts it.

    The bundle is built from the ledger alone; each line names its rows. Without --html and --output it is printed as
    Markdown. The page for a browser is one file that loads nothing.
    """
    output = Output(json=as_json, no_color=no_color)
    result = _build_bundle(run)
    written: list[Path] = []
    for file, text in ((html_file, html), (into, page)):
        if file is not None:
            write_whole(file, text(result).encode("utf-8", "backslashreplace"))
            written.append(file)
    if as_json:
        output.document(result.model_dump(mode="json"))
    elif written:
        output.results().print(printable("\n".join(f"wrote {file}" for file in written)), soft_wrap=True)
    else:
        sys.stdout.write(page(result))


def _build_bundle(text: str) -> Bundle:
    path = ledger_path(private_home())
    no_runs = InputError("there is no run to bundle yet", hint="`proofstone gate PLAN.md` starts one")
    if not path.is_file():
        raise no_runs
    with closing(SqliteLedger(path, "read")) as ledger:
        runs = bundled_runs(ledger)
        if not runs:
            raise no_runs
        hint = f"only runs of `proofstone run` and `proofstone gate` have a bundle; the last one is {runs[0].run_id}"
        repository = repository_around(Path.cwd())
        return bundle_of(ledger, meant(text, runs, repository, "run of `proofstone run` or `proofstone gate`", hint))
