"""`proofstone runs`: list the runs of all commands, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from proofstone.app.runs import list_recent_runs
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.tables import print_runs
from proofstone.cli.run_kinds import KINDS_BY_COMMAND, run_document
from proofstone.common.text import escape_control
from proofstone.errors import InputError, LedgerCorruptError
from proofstone.git.repository import find_repository_root
from proofstone.runtime.run_index import RunSummary

_MAX_UNREADABLE = 3

app = typer.Typer(add_completion=False)


@app.command()
def runs(
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="COMMAND",
            help="List only the runs of this command: check, gate, verify-plan, solve or run. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="List only the runs of this repository.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="The most runs to list.")] = 50,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """List the runs of `proofstone check`, `run`, `gate`, `verify-plan` and `solve`, newest first, with their outcomes.

    `proofstone status RUN` shows one of them.
    """
    commands = tuple(kind or KINDS_BY_COMMAND)
    for command in commands:
        if command not in KINDS_BY_COMMAND:
            raise InputError(f"--kind {command}: no such kind of run", hint=f"one of {', '.join(KINDS_BY_COMMAND)}")
    repository = _require_repository() if here else None
    references = list_recent_runs(commands, limit + 1, repository)
    views: list[RunSummary[Any]] = []
    unreadable: dict[str, LedgerCorruptError] = {}
    for run in references[:limit]:
        try:
            views.append(KINDS_BY_COMMAND[run.command].runs.read_view(run.run_id))
        except LedgerCorruptError as error:
            unreadable[run.run_id] = error
    more = len(references) > limit
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        problems = [{"run_id": run_id, "reason": error.message} for run_id, error in unreadable.items()]
        output.print_document({"runs": [run_document(view) for view in views], "unreadable": problems, "more": more})
        return
    if views or not unreadable:
        print_runs(output.result_console(), views, show_repository=not here)
    _print_unreadable(output, tuple(unreadable.values()))
    if more:
        output.result_console().print("there are more runs: raise --limit")


def _print_unreadable(output: Output, errors: Sequence[LedgerCorruptError]) -> None:
    """Print the first errors on stderr, and how many more there are."""
    console = output.progress_console()
    for error in errors[:_MAX_UNREADABLE]:
        console.print(escape_control(f"proofstone: {error.message}"), soft_wrap=True)
    if len(errors) > _MAX_UNREADABLE:
        console.print(f"proofstone: {len(errors) - _MAX_UNREADABLE} more runs cannot be read", soft_wrap=True)
    if errors:
        console.print(f"hint: {errors[0].hint}", soft_wrap=True)


def _require_repository() -> Path:
    repository = find_repository_root(Path.cwd())
    if repository is None:
        raise InputError(f"--here: {Path.cwd()} is not in a git repository", hint="leave --here out to list all runs")
    return repository
