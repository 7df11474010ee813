"""`proofstone demo`: run the whole pipeline on a sample repository, with scripted agents and real git, checks and
ledger."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from proofstone.app.pipeline import RunRequest, pipeline_run
from proofstone.cli.demo.moments import Aftermath, Moment, Record, look, moments, wrongs
from proofstone.cli.demo.shown import ToldPipeline, print_beginning, print_left, print_moments, print_next, print_wrongs
from proofstone.cli.demo.stage import REQUEST, Stage, set_up
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.run import with_page
from proofstone.cli.session import AgentSitting
from proofstone.pipeline.models.run import RunReport

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="A new directory for the demo; by default a temporary one.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Watch the whole pipeline with scripted agents. It needs no model, no key and no network.

    The demo creates a small shop with a bug, and asks `proofstone run` to fix it and to print a receipt. Everything is
    real except the agents, which follow a script: one plan is challenged and sent back, one implementer lies and is
    caught, two plans fail until the controller changes the approach, and a reviewer asks for a revision. It ends with
    one commit and its evidence, in less than a minute. Everything stays in the directory that it names.

    Exit code: 0 all of that happened and is recorded; 1 otherwise; 2 bad input; 130 interrupted.
    """
    output = Output(json=as_json, no_color=no_color)
    stage = set_up(directory)
    print_beginning(output.results(), stage)
    sys.stdout.flush()
    console = output.progress()
    live = ToldPipeline(console, interactive=console.is_terminal)
    # One task at a time is easier to follow.
    request = RunRequest(backends=(f"script:{stage.script}",), slots=1)
    resume_command = f"PROOFSTONE_HOME={quote(str(stage.home))} proofstone resume"
    # The demo needs no network, whatever the person has configured, so it is not exported.
    session = AgentSitting(output, "run", resumes=resume_command, exports=False)
    return session.follow(
        pipeline_run(stage.repository, REQUEST, request, live, lambda _: None, home=stage.home),
        live,
        run_id=lambda run: run.run_id,
        through=with_page,
        tell=lambda report: told(output, stage, report),
    )


def told(output: Output, stage: Stage, report: RunReport) -> int:
    """Print what happened according to the ledger. Return 0 if it is what must happen."""
    found = moments(Record.read(stage.home, report.run_id))
    left = look(stage, report)
    problems = list(wrongs(report, found, left))
    sys.stderr.flush()
    console = output.results()
    console.rule("in short, from the ledger")
    print_moments(console, found)
    print_left(console, stage, report, left)
    print_next(console, stage, report.run_id)
    if output.json:
        output.document(_document(stage, report, found, left, problems))
    print_wrongs(console, problems)
    return 1 if problems else 0


def _document(
    stage: Stage, report: RunReport, found: Mapping[str, Moment | None], left: Aftermath, problems: list[str]
) -> dict[str, object]:
    return {
        "directory": str(stage.place),
        "as_it_must_be": not problems,
        "wrongs": problems,
        "moments": {name: asdict(moment) if moment else None for name, moment in found.items()},
        "commits": list(left.commits),
        "bundle": list(map(str, left.pages)),
        "ledger": left.verdict,
        "run": report.model_dump(mode="json"),
    }
