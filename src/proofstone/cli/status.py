"""`proofstone status`: show the state of a run, what it needs from a person, and its cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.check import CHECK_RUNS
from proofstone.app.context import ensure_private_home
from proofstone.app.telemetry import export_run, read_run_agents, read_run_cost
from proofstone.cli.check import write_check_files
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.cost import print_cost
from proofstone.cli.report_files import HTML, MARKDOWN, HtmlOption, MarkdownOption, ReportFiles
from proofstone.cli.run_kinds import KINDS_BY_COMMAND, RunMatch, match_run, show_run
from proofstone.cli.task_commands import require_text
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.git.repository import find_repository_root
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.query import find_any_run

app = typer.Typer(add_completion=False)


@app.command()
def status(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Its id, a unique part of it, or `last`.", show_default=False)
    ] = "last",
    cost: Annotated[
        bool,
        typer.Option("--cost", help="Show the cost by step, agent and model: time, tokens, money, retries."),
    ] = False,
    otlp: Annotated[
        str | None,
        typer.Option(
            "--otlp",
            metavar="URL",
            help="Send the run as an OpenTelemetry trace to this collector: http://localhost:4318.",
            show_default=False,
        ),
    ] = None,
    html_file: HtmlOption = None,
    md_file: MarkdownOption = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show the state of a run: its tasks, the current steps, what failed, and what it asks you.

    Each question comes with the commands that answer it. Without RUN, it shows the last run of this repository. For a
    run of `proofstone check`, `run`, `verify-plan` or `solve` it shows the report. If agents must confirm that they
    understand their task, a table shows the state of each.

    --html and --md write the report of a check as a page, like the same options of `proofstone check`.

    --cost and --otlp take any run in the ledger, even one that is under way or was interrupted. A value that was not
    reported is `unknown`: a model that reports no usage is not free.
    """
    output = Output(json=as_json, no_color=no_color)
    if cost and otlp is not None:
        raise InputError("--cost and --otlp cannot be combined", hint="give only one of them")
    if cost:
        _show_cost(output, _find_run(run))
    elif otlp is not None:
        _export(output, _find_run(run), require_text("--otlp", otlp))
    else:
        match = match_run(run, KINDS_BY_COMMAND)
        if html_file is not None or md_file is not None:
            _write_page(output, match, html_file, md_file)
            return
        show_run(output, match, read_run_agents(match.run_id))


def _write_page(output: Output, match: RunMatch, html: Path | None, markdown: Path | None) -> None:
    """Write the report of a check as a page."""
    if match.kind.command != CHECK_RUNS.command:
        raise InputError(
            f"--html and --md: {match.run_id} is a run of `proofstone {match.kind.command}`, not a check",
            hint=f"`proofstone bundle {match.run_id} --html FILE` writes the page of a run of the pipeline or the gate",
        )
    repository = Path(CHECK_RUNS.read_view(match.run_id).setup.repository)
    files = ReportFiles.check({HTML: html, MARKDOWN: markdown}, repository, as_json=output.json)
    report = CHECK_RUNS.read_report(match.run_id)
    if report is None:
        raise InputError(f"{match.run_id}: has no report, because it did not finish", hint="check again")
    write_check_files(output, files, report, repository)


def _show_cost(output: Output, run_id: str) -> None:
    run_costs = read_run_cost(run_id)
    if output.json:
        output.print_document(run_costs.model_dump(mode="json"))
    else:
        print_cost(output.result_console(), run_costs)


def _export(output: Output, run_id: str, url: str) -> None:
    count = export_run(run_id, url)
    if output.json:
        output.print_document({"run_id": run_id, "spans": count, "sent_to": url})
    else:
        output.result_console().print(escape_control(f"{count} spans of {run_id} were sent to {url}"), soft_wrap=True)


def _find_run(text: str) -> str:
    """Return the run that `text` means: one that `status` shows without options, or any in the ledger."""
    try:
        return match_run(text, KINDS_BY_COMMAND).run_id
    except InputError:
        return find_any_run(ledger_path(ensure_private_home()), text, find_repository_root(Path.cwd()))
