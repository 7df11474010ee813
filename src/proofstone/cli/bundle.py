"""`proofstone bundle`: show the result of a run and its evidence on one page."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.context import ensure_private_home
from proofstone.app.report_pages import read_committed_diff
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.task_commands import RunArgument
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.git.repository import find_repository_root
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.query import resolve_run
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.machine.files import write_atomic
from proofstone.pipeline.bundle_builder import build_bundle
from proofstone.pipeline.models.bundle import EvidenceBundle
from proofstone.pipeline.records import list_bundled_runs
from proofstone.pipeline.rules.bundle_page import render_bundle_html, render_bundle_page

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
    Markdown. The page for a browser is one file that loads nothing; it also shows the diff that was committed, as the
    repository holds it now.
    """
    output = Output(json=as_json, no_color=no_color)
    result = _build_bundle(run)
    written: list[Path] = []
    if html_file is not None:
        page = render_bundle_html(
            result, read_committed_diff(result.subject.repository, result.history, result.changed_paths)
        )
        write_atomic(html_file, page.encode("utf-8", "backslashreplace"))
        written.append(html_file)
    if into is not None:
        write_atomic(into, render_bundle_page(result).encode("utf-8", "backslashreplace"))
        written.append(into)
    if as_json:
        output.print_document(result.model_dump(mode="json"))
    elif written:
        output.result_console().print(escape_control("\n".join(f"wrote {file}" for file in written)), soft_wrap=True)
    else:
        sys.stdout.write(render_bundle_page(result))


def _build_bundle(text: str) -> EvidenceBundle:
    path = ledger_path(ensure_private_home())
    no_runs = InputError(
        "there is no run to bundle yet", hint='start one: `proofstone gate PLAN.md` or `proofstone run "REQUEST"`'
    )
    if not path.is_file():
        raise no_runs
    with closing(SqliteLedger(path, "read")) as ledger:
        runs = list_bundled_runs(ledger)
        if not runs:
            raise no_runs
        hint = f"only runs of `proofstone run` and `proofstone gate` have a bundle; the last one is {runs[0].run_id}"
        repository = find_repository_root(Path.cwd())
        return build_bundle(
            ledger, resolve_run(text, runs, repository, "run of `proofstone run` or `proofstone gate`", hint)
        )
