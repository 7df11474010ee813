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

from proofstone.app.pipeline import PipelineRequest, build_pipeline_run
from proofstone.cli.demo.moments import (
    Aftermath,
    DemoRecord,
    Moment,
    find_demo_problems,
    find_moments,
    inspect_aftermath,
)
from proofstone.cli.demo.stage import REQUEST, DemoStage, set_up_stage
from proofstone.cli.demo.views import (
    DemoPipelineView,
    print_aftermath,
    print_beginning,
    print_moments,
    print_next,
    print_problems,
)
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.run import run_and_write_page
from proofstone.cli.session import AgentRunSession
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
    stage = set_up_stage(directory)
    print_beginning(output.result_console(), stage)
    sys.stdout.flush()
    console = output.progress_console()
    live = DemoPipelineView(console, interactive=console.is_terminal)
    # One task at a time is easier to follow.
    request = PipelineRequest(backends=(f"script:{stage.script}",), slots=1)
    resume_command = f"PROOFSTONE_HOME={quote(str(stage.home))} proofstone resume"
    # The demo needs no network, whatever the person has configured, so it is not exported.
    session = AgentRunSession(output, "run", resume_prefix=resume_command, is_exported=False)
    return session.follow(
        build_pipeline_run(stage.repository, REQUEST, request, live, lambda _: None, home=stage.home),
        live,
        run_id=lambda run: run.run_id,
        through=run_and_write_page,
        tell=lambda report: print_demo_result(output, stage, report),
    )


def print_demo_result(output: Output, stage: DemoStage, report: RunReport) -> int:
    """Print what happened according to the ledger. Return 0 if it is what must happen."""
    found = find_moments(DemoRecord.read(stage.home, report.run_id))
    left = inspect_aftermath(stage, report)
    problems = list(find_demo_problems(report, found, left))
    sys.stderr.flush()
    console = output.result_console()
    console.rule("in short, from the ledger")
    print_moments(console, found)
    print_aftermath(console, stage, report, left)
    print_next(console, stage, report.run_id)
    if output.json:
        output.print_document(_document(stage, report, found, left, problems))
    print_problems(console, problems)
    return 1 if problems else 0


def _document(
    stage: DemoStage, report: RunReport, found: Mapping[str, Moment | None], left: Aftermath, problems: list[str]
) -> dict[str, object]:
    return {
        "directory": str(stage.folder),
        "as_it_must_be": not problems,
        "wrongs": problems,
        "moments": {name: asdict(moment) if moment else None for name, moment in found.items()},
        "commits": list(left.commits),
        "bundle": list(map(str, left.pages)),
        "ledger": left.verdict,
        "run": report.model_dump(mode="json"),
    }
