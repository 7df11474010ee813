"""`proofstone status`: where a run stands, what it asks of a person, and what it has cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.context import private_home
from proofstone.app.gate import find_run, view_run
from proofstone.app.telemetry import export_run, run_agents, run_cost
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.cost import print_cost
from proofstone.cli.render.gate import print_status, state_of
from proofstone.cli.render.tables import positions_document, print_positions
from proofstone.cli.run_kinds import run_meant, show
from proofstone.cli.task_commands import plain
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.gate.rules.answers import answers, waiting
from proofstone.git.repository import repository_around
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
        typer.Option("--cost", help="What it has cost, by step, agent and model: time, tokens, money, retries."),
    ] = False,
    otlp: Annotated[
        str | None,
        typer.Option(
            "--otlp",
            metavar="URL",
            help="Send it as an OpenTelemetry trace to this collector: http://localhost:4318.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Show where a run stands: its tasks, the steps of those under way, what failed, and what you are asked.

    Each question comes with the commands that answer it. Without RUN it is the last run. Of a run of
    `proofstone run`, `proofstone verify-plan` or `proofstone solve` it shows the report. Where agents are asked
    whether they know what
    they are doing, a table tells where each of them stands.

    --cost and --otlp take any run that the ledger knows, also one that is under way or was broken off. What nobody has
    told is `unknown`: a model that reports no usage is not free.
    """
    output = Output(json=as_json, no_color=no_color)
    if cost and otlp is not None:
        raise InputError("--cost and --otlp are two things to ask for", hint="say one of them")
    if cost:
        _show_cost(output, _any_run(run))
    elif otlp is not None:
        _export(output, _any_run(run), plain("--otlp", otlp))
    elif meant := run_meant(run):
        show(output, meant, run_agents(meant.run_id))
    else:
        _show_gate(output, find_run(run))


def _show_gate(output: Output, run_id: str) -> None:
    view, agents = view_run(run_id), run_agents(run_id)
    if output.json:
        asked = [
            {
                "task": task.record.id,
                "asks": task.asks,
                "answers": [answer.command for answer in answers(view.run_id, task)],
            }
            for task in waiting(view)
        ]
        told = {**view.model_dump(mode="json"), "state": state_of(view), "asked": asked}
        output.document({**told, **positions_document(agents)})
    else:
        print_status(output.results(), view)
        print_positions(output.results(), agents)


def _show_cost(output: Output, run_id: str) -> None:
    found = run_cost(run_id)
    if output.json:
        output.document(found.model_dump(mode="json"))
    else:
        print_cost(output.results(), found)


def _export(output: Output, run_id: str, url: str) -> None:
    count = export_run(run_id, url)
    if output.json:
        output.document({"run_id": run_id, "spans": count, "sent_to": url})
    else:
        output.results().print(printable(f"{count} spans of {run_id} were sent to {url}"), soft_wrap=True)


def _any_run(text: str) -> str:
    """The run that is meant: the one that is shown without options, or else any that the ledger knows."""
    if meant := run_meant(text):
        return meant.run_id
    try:
        return find_run(text)
    except InputError:
        return find_any_run(ledger_path(private_home()), text, repository_around(Path.cwd()))
