"""The demonstration: a small shop with a bug, and the agents that are asked to build something in it.

`proofstone demo`: the whole pipeline on a sample repository, with scripted agents. Real git, checks and ledger.
"""

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
        typer.Option("--dir", metavar="DIR", help="A new directory for it; else a temporary one.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Watch the whole pipeline at work, with scripted agents. Needs no model, no key and no network.

    A small shop is made, with a bug, and `proofstone run` is asked to mend it and to print a receipt. Everything is
    real but
    the agents, who say what is written for them: one plan is challenged and sent back, one implementer lies and is
    caught, two plans fail until the controller turns the approach, and a reviewer wants a revision. It ends with one
    commit and its evidence, in less than a minute; all of it stays in the directory that is named.

    Exit code: 0 if all of that happened and is on record, else 1; 2 bad input; 130 interrupted.
    """
    output = Output(json=as_json, no_color=no_color)
    stage = set_up(directory)
    print_beginning(output.results(), stage)
    sys.stdout.flush()
    console = output.progress()
    live = ToldPipeline(console, interactive=console.is_terminal)
    # One task after the other: that is easier to follow.
    request = RunRequest(backends=(f"script:{stage.script}",), slots=1)
    again = f"PROOFSTONE_HOME={quote(str(stage.home))} proofstone resume"
    # It needs no network, whatever the person has set up: nobody else is told of it.
    sitting = AgentSitting(output, "run", resumes=again, exports=False)
    return sitting.follow(
        pipeline_run(stage.repository, REQUEST, request, live, lambda _: None, home=stage.home),
        live,
        run_id=lambda run: run.run_id,
        through=with_page,
        tell=lambda report: told(output, stage, report),
    )


def told(output: Output, stage: Stage, report: RunReport) -> int:
    """What happened, from the ledger; and whether it is what must happen."""
    seen = moments(Record.read(stage.home, report.run_id))
    left = look(stage, report)
    found = list(wrongs(report, seen, left))
    sys.stderr.flush()
    console = output.results()
    console.rule("in short, from the ledger")
    print_moments(console, seen)
    print_left(console, stage, report, left)
    print_next(console, stage, report.run_id)
    if output.json:
        output.document(_document(stage, report, seen, left, found))
    print_wrongs(console, found)
    return 1 if found else 0


def _document(
    stage: Stage, report: RunReport, seen: Mapping[str, Moment | None], left: Aftermath, found: list[str]
) -> dict[str, object]:
    return {
        "directory": str(stage.place),
        "as_it_must_be": not found,
        "wrongs": found,
        "moments": {name: asdict(moment) if moment else None for name, moment in seen.items()},
        "commits": list(left.commits),
        "bundle": list(map(str, left.pages)),
        "ledger": left.verdict,
        "run": report.model_dump(mode="json"),
    }
