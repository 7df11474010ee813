"""`proofstone check`: verify the change in a work tree."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from proofstone import __version__
from proofstone.app.caller import demand_acceptance, find_login_name, gather_facts
from proofstone.app.check import (
    parse_accept,
    require_reason,
    require_text,
    resolve_heldout_files,
    run_check,
    validate_commands,
)
from proofstone.app.report_pages import load_check_page
from proofstone.check.context import CheckRequest
from proofstone.check.models import CheckReport, StrengthLevel, TestRun
from proofstone.check.rules.acceptance import build_acceptances, expand_test_changes, rule_on_acceptance
from proofstone.check.rules.report_page import find_page_tone
from proofstone.cli.acceptance_questions import AcceptanceQuestions
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption, VerboseOption
from proofstone.cli.render.check import LiveChecks, Reader, print_check_report
from proofstone.cli.report_files import (
    HTML,
    JUNIT,
    MARKDOWN,
    SARIF,
    HtmlOption,
    JunitOption,
    MarkdownOption,
    ReportFiles,
    SarifOption,
)
from proofstone.common.models import Acceptance, AcceptanceMethod, Outcome
from proofstone.common.text import escape_control
from proofstone.documents.html import write_html
from proofstone.documents.markdown_page import write_markdown
from proofstone.errors import InputError
from proofstone.git.program import decode_path

app = typer.Typer(add_completion=False)

EXIT_CODES = {
    Outcome.PASSED: 0,
    Outcome.NOTHING_TO_CHECK: 0,
    Outcome.FAILED: 1,
    Outcome.UNVERIFIABLE: 1,
    Outcome.NEEDS_DECISION: 3,
}


@app.command()
def check(
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REV",
            help="The base to compare with; by default check.base, else chosen: see below.",
            show_default=False,
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
            help="Accept removed, skipped and edited tests. A person confirms it; recorded with the reason.",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="RULE=REASON",
            help="Accept a finding, by its rule. A person confirms it; recorded with the reason.",
        ),
    ] = None,
    accepted_by: Annotated[
        str | None,
        typer.Option(
            "--accepted-by",
            metavar="NAME",
            help="The person who approved what --accept names, where nobody can be asked, as in CI.",
            show_default=False,
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
    strength: Annotated[
        StrengthLevel | None,
        typer.Option(
            "--strength",
            help="How thoroughly to measure whether the tests notice mistakes in the changed lines; by default "
            "check.strength.",
            show_default=False,
        ),
    ] = None,
    html_file: HtmlOption = None,
    md_file: MarkdownOption = None,
    sarif_file: SarifOption = None,
    junit_file: JunitOption = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Check the change in your work tree, and report what passed, what failed and what could not be verified.

    Proofstone freezes the work tree as a git tree and runs every check in a sandbox, on a fresh checkout of that tree
    and on the base. Failures that the base has too do not count against the change; regressions are named. Results
    are recorded in the ledger.

    The base is, in this order: --base; the setting check.base; in a coding agent's session, the commit at which the
    session began; the merge base of HEAD with its upstream, the remote's default branch, or the local main or master;
    HEAD. Commits between the base and HEAD are part of the change. The report names the base and why it was chosen.

    Only a person can accept a finding: they are asked at the terminal, after the checks. --accept and
    --accept-test-changes give the reason in advance; without a terminal they need --accepted-by. The confidence is then
    at most medium.

    Exit code: 0 passed, or nothing to check; 1 failed or unverifiable; 2 bad input; 3 a dispute needs a decision.
    """
    output = Output(json=as_json, quiet=quiet, no_color=no_color, verbose=verbose)
    files_by_option = {HTML: html_file, MARKDOWN: md_file, SARIF: sarif_file, JUNIT: junit_file}
    report_files = ReportFiles.check(files_by_option, repo, as_json=as_json)
    reasons = {
        **expand_test_changes(require_reason("--accept-test-changes", accept_test_changes)),
        **dict(parse_accept(option) for option in accept or ()),
    }
    option = "--accept" if accept else "--accept-test-changes"
    accepted, is_person = _rule_on_options(option, reasons, accepted_by)
    can_ask = is_person and (bool(reasons) or not quiet)
    request = CheckRequest(
        base=base,
        verify=tuple(validate_commands("--verify", verify or [])),
        files=tuple(decode_path(os.fsencode(glob)) for glob in files or ()),
        must_pass=tuple(require_text("--must-pass", name) for name in must_pass or ()),
        staged=staged,
        no_cache=fresh,
        rerun_unsandboxed=compare_bare,
        use_worktree_config=own_settings,
        accepted=accepted,
        strength=strength,
        heldout=tuple(validate_commands("--heldout", heldout or [])),
        heldout_files=resolve_heldout_files(heldout_files, heldout or []),
    )
    runs: list[TestRun] = []
    report = _run_check(repo, request, output, reasons if can_ask else None, runs, require_sandbox=require_sandbox)
    if as_json:
        output.print_document(report.model_dump(mode="json"))
    elif not report_files.uses_stdout:
        sys.stderr.flush()
        reader = Reader.PERSON if is_person else Reader.UNKNOWN
        print_check_report(output.result_console(), report, reader, verbose=verbose)
    write_check_files(output, report_files, report, repo, runs)
    return EXIT_CODES[report.outcome]


def write_check_files(
    output: Output, files: ReportFiles, report: CheckReport, repo: Path, runs: Sequence[TestRun] = ()
) -> None:
    """Write the report of a check to the files that were asked for, and name them on stderr. `runs` are its test
    results."""
    written = files.write(render_report_files(report, repo, runs))
    for file in written:
        output.progress_console().print(escape_control(f"wrote {file}"), soft_wrap=True)


def render_report_files(report: CheckReport, repo: Path, runs: Sequence[TestRun]) -> Mapping[str, Callable[[], str]]:
    """Return for each option of a report what writes its text."""
    page = cache(lambda: load_check_page(report, repo))
    return {
        HTML: lambda: write_html(page(), find_page_tone(report)),
        MARKDOWN: lambda: write_markdown(page()),
        SARIF: lambda: _write_sarif(report),
        JUNIT: lambda: _write_junit(runs),
    }


def _write_sarif(report: CheckReport) -> str:
    from proofstone.check.rules.sarif import build_sarif

    return build_sarif(report, __version__)


def _write_junit(runs: Sequence[TestRun]) -> str:
    from proofstone.check.rules.junit import build_junit

    return build_junit(runs)


def _rule_on_options(
    option: str, reasons: Mapping[str, str], accepted_by: str | None
) -> tuple[tuple[Acceptance, ...], bool]:
    """Return what an approver accepted, and whether a person at this terminal can be asked after the checks. Refuse
    options that accept something where no person can have given them; `option` is the option that gave the reasons."""
    facts = gather_facts(accepted_by)
    if not reasons:
        if accepted_by is not None:
            raise InputError(
                "--accepted-by: nothing is accepted", hint="say what and why with --accept or --accept-test-changes"
            )
        return (), rule_on_acceptance(facts).method is AcceptanceMethod.INTERACTIVE
    method = demand_acceptance(option, facts)
    if method is AcceptanceMethod.INTERACTIVE:
        return (), True
    return build_acceptances(reasons, facts.approver, method), False


def _run_check(
    repo: Path,
    request: CheckRequest,
    output: Output,
    reasons: Mapping[str, str] | None,
    runs: list[TestRun],
    *,
    require_sandbox: bool,
) -> CheckReport:
    """Run the check, with its progress on stderr unless the output is quiet, and add its test results to `runs`.
    `reasons` are those that the person gave on the command line, by rule; None if nobody is asked about findings."""
    console = Output(no_color=output.no_color).progress_console()
    live = LiveChecks(console, interactive=console.is_terminal, verbose=output.verbose)
    if reasons is not None:
        questions = AcceptanceQuestions(console, find_login_name(), reasons, pause=live.pause)
        request = replace(request, ask_acceptance=questions.ask)
    progress, display = (None, None) if output.quiet else (live, live.show_live())
    return run_check(repo, request, progress, display, require_sandbox=require_sandbox, test_runs=runs)
