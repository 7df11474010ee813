"""`proofstone check`: verify the change in a work tree."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.check import (
    parse_accept,
    require_reason,
    require_text,
    resolve_heldout_files,
    run_check,
    validate_commands,
)
from proofstone.check.context import CheckRequest
from proofstone.check.models import CheckReport
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.render.check import LiveChecks, print_check_report
from proofstone.common.models import Outcome
from proofstone.git.program import decode_path

app = typer.Typer(add_completion=False)

_EXIT_CODES = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.UNVERIFIABLE: 1}


@app.command()
def check(
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="REV", help="The base to compare with; by default check.base or HEAD.", show_default=False
        ),
    ] = None,
    verify: Annotated[
        list[str] | None,
        typer.Option("--verify", metavar="CMD", help="A command that must exit with 0. Can be repeated."),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--files", metavar="GLOB", help="Files that the change may touch; any other file is a finding."),
    ] = None,
    must_pass: Annotated[
        list[str] | None,
        typer.Option("--must-pass", metavar="TESTID", help="A test that must exist, run and pass."),
    ] = None,
    staged: Annotated[bool, typer.Option("--staged", help="Check only what is staged.")] = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--no-cache", help="Run everything again; use no cached result.")] = False,
    compare_bare: Annotated[
        bool,
        typer.Option(
            "--rerun-unsandboxed",
            help="Run tests that fail on the base once outside the sandbox, to see whether the sandbox is the cause.",
        ),
    ] = False,
    own_settings: Annotated[
        bool,
        typer.Option("--use-worktree-config", help="Use the settings of the work tree instead of the base's."),
    ] = False,
    accept_test_changes: Annotated[
        str | None,
        typer.Option(
            "--accept-test-changes",
            metavar="REASON",
            help="Accept removed, skipped and edited tests as intended; recorded with your reason.",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="RULE=REASON", help="Accept a finding, by its rule; recorded with your reason."
        ),
    ] = None,
    heldout: Annotated[
        list[str] | None,
        typer.Option(
            "--heldout",
            metavar="CMD",
            help="Like --verify, but hidden from the author of the change: it does not appear in the report.",
        ),
    ] = None,
    heldout_files: Annotated[
        Path | None,
        typer.Option(
            "--heldout-files",
            metavar="DIR",
            help="Files that are copied over the tree for the --heldout commands only.",
        ),
    ] = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Check the change in your work tree, and report what passed, what failed and what could not be verified.

    Proofstone freezes the work tree as a git tree and runs every check in a sandbox, on a fresh checkout of that tree
    and on the base. Failures that the base has too do not count against the change; regressions are named. Results
    are recorded in the ledger.

    Exit code: 0 passed; 1 failed or unverifiable; 2 bad input.
    """
    request = CheckRequest(
        base=base,
        verify=tuple(validate_commands("--verify", verify or [])),
        files=tuple(decode_path(os.fsencode(glob)) for glob in files or ()),
        must_pass=tuple(require_text("--must-pass", name) for name in must_pass or ()),
        staged=staged,
        no_cache=fresh,
        rerun_unsandboxed=compare_bare,
        use_worktree_config=own_settings,
        accept_test_changes=require_reason("--accept-test-changes", accept_test_changes),
        accept=dict(parse_accept(option) for option in accept or ()),
        heldout=tuple(validate_commands("--heldout", heldout or [])),
        heldout_files=resolve_heldout_files(heldout_files, heldout or []),
    )
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    report = _run_check(repo, request, output, require_sandbox=require_sandbox)
    if as_json:
        output.print_document(report.model_dump(mode="json"))
    else:
        sys.stderr.flush()
        print_check_report(output.result_console(), report)
    return _EXIT_CODES[report.outcome]


def _run_check(repo: Path, request: CheckRequest, output: Output, *, require_sandbox: bool) -> CheckReport:
    """Run the check, with its progress on stderr unless the output is quiet."""
    if output.quiet:
        return run_check(repo, request, require_sandbox=require_sandbox)
    console = output.progress_console()
    live = LiveChecks(console, interactive=console.is_terminal)
    return run_check(repo, request, live, live.show_live(), require_sandbox=require_sandbox)
