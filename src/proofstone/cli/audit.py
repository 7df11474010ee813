"""`proofstone audit`: what the auditor has seen. It reads the ledger over a connection that cannot write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proofstone.auditor.rules.report import audit as audited
from proofstone.auditor.rules.report import is_grave
from proofstone.auditor.tap import Tap
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.audit import print_audit
from proofstone.config.home import proofstone_home
from proofstone.errors import InputError
from proofstone.git.repository import repository_around
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.query import find_any_run, known_runs

app = typer.Typer(add_completion=False)


@app.command()
def audit(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Its id, a unique part of it, or `last`.", show_default=False)
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="All runs that the ledger knows of.")] = False,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home", metavar="DIR", help="Where the ledger is; else PROOFSTONE_HOME, else the state directory."
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Show what the auditor sees in a run: who tried what they may not, claims that were not true, roles that never
    answered, work that drifts or comes to no good end, and how the tools fared.

    The auditor reads every message and event, and can write none. Without RUN it is the last run.

    Exits with 0 when nobody overstepped, 1 when there are boundary violations or claim mismatches, 2 when there is no
    such run. Other anomalies are reported and change nothing.
    """
    if every and run:
        raise InputError(
            f"--all and {run}: one or the other", hint="`proofstone audit --all`, or `proofstone audit RUN`"
        )
    path = ledger_path(home or proofstone_home())
    with Tap(path) as tap:
        if every:
            report = audited((tap.run(run_id) for run_id in reversed(known_runs(path))), "all")
        else:
            run_id = find_any_run(path, run or "last", repository_around(Path.cwd()))
            report = audited([tap.run(run_id)], run_id)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.document(report.model_dump(mode="json"))
    else:
        print_audit(output.results(), report)
    return 1 if is_grave(report) else 0
