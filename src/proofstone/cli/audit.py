"""`proofstone audit`: show the findings of the auditor. It reads the ledger through a read-only connection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proofstone.auditor.rules.report import audit_runs, has_severe_findings
from proofstone.auditor.tap import LedgerTap
from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.audit import print_audit
from proofstone.config.home import find_proofstone_home
from proofstone.errors import InputError
from proofstone.git.repository import find_repository_root
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.query import find_any_run, list_run_ids

app = typer.Typer(add_completion=False)


@app.command()
def audit(
    run: Annotated[
        str,
        typer.Argument(metavar="[RUN]", help="Its id, a unique part of it, or `last`.", show_default=False),
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Audit all runs in the ledger.")] = False,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home",
            metavar="DIR",
            help="The folder of the ledger; by default PROOFSTONE_HOME or the state directory.",
        ),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Show what the auditor finds in a run: boundary violations, false claims, roles that never answered, work that
    drifts or fails, and how the tools performed.

    The auditor reads every message and event of the run and of its parts, and writes none. Without RUN, it audits the
    last run. What the engine stopped is shown as caught.

    Exit code: 0 no violations; 1 boundary violations or claim mismatches; 2 there is no such run. Other anomalies are
    reported but do not change the exit code.
    """
    if every and run:
        raise InputError(
            f"--all and {run}: one or the other", hint="`proofstone audit --all`, or `proofstone audit RUN`"
        )
    path = ledger_path(home or find_proofstone_home())
    with LedgerTap(path) as tap:
        if every:
            report = audit_runs((tap.read_run(run_id) for run_id in reversed(list_run_ids(path))), "all")
        else:
            run_id = find_any_run(path, run or "last", find_repository_root(Path.cwd()))
            run_id = tap.find_whole_run(run_id) if run in ("", "last") else run_id
            report = audit_runs(tap.read_with_parts(run_id), run_id)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document(report.model_dump(mode="json"))
    else:
        print_audit(output.result_console(), report)
    return 1 if has_severe_findings(report) else 0
