"""`proofstone ci`: check a pull request in CI, and report to the code host."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.check import validate_commands
from proofstone.app.ci import prepare_ci_check
from proofstone.app.report_pages import require_report_file
from proofstone.check.context import CheckRequest
from proofstone.check.models import CheckReport, TestRun
from proofstone.ci.models import CiProvider
from proofstone.ci.rules.comment import list_annotations
from proofstone.cli.check import EXIT_CODES, render_report_files
from proofstone.cli.output import JsonOption, NoColorOption, Output, RepoOption
from proofstone.cli.render.check import LiveChecks, Reader, print_check_report
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.machine.files import write_atomic

app = typer.Typer(add_completion=False)

_FILES = {"--html": "report.html", "--md": "report.md", "--sarif": "report.sarif", "--junit": "junit.xml"}


@app.command()
def ci(
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="REV",
            help="The base to compare with; by default what the CI service says.",
            show_default=False,
        ),
    ] = None,
    verify: Annotated[
        list[str] | None,
        typer.Option("--verify", metavar="CMD", help="A command that must exit with 0. Can be repeated."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Write report.html, report.md, report.sarif, junit.xml, report.json and comment.md there.",
            show_default=False,
        ),
    ] = None,
    no_comment: Annotated[bool, typer.Option("--no-comment", help="Write no comment on the pull request.")] = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Check the change of this CI job, and report to the code host.

    Does what `proofstone check` does, and what a job needs around it:

    \b
      base          from the event: the merge base with the branch that the pull request is for
      settings      those of the base; what they ask for is granted, because the machine belongs to the job
      dependencies  environment.setup of the base, or else what the base's lock files and manifests ask for
      report        annotations at the lines, the summary of the job, one comment that is kept up to date
      acceptance    a maintainer's label `proofstone-accept:RULE`, or a line `proofstone accept RULE: why` in a review
                    of the newest commit; never by the author of the pull request

    On GitHub it needs GITHUB_TOKEN to comment and to read approvals; without it, as in a pull request from a fork, it
    only reports in the job. Works on GitHub Actions and GitLab CI; elsewhere name --base.

    Exit code: 0 passed, or nothing to check; 1 failed or unverifiable; 2 bad input; 3 a dispute needs a decision.
    """
    output = Output(json=as_json, no_color=no_color)
    request = CheckRequest(base=base, verify=tuple(validate_commands("--verify", verify or [])))
    files = _check_directory(directory, repo)
    prepared = prepare_ci_check(repo, request, os.environ)
    console = output.progress_console()
    for note in prepared.notes:
        console.print(escape_control(note), soft_wrap=True)
    is_github = prepared.job.provider is CiProvider.GITHUB
    live = LiveChecks(console, interactive=console.is_terminal, verbose=True)
    runs: list[TestRun] = []
    with _quote_log(is_active=is_github and not as_json):
        report = prepared.run(live, live.show_live(), runs, require_sandbox=require_sandbox)
        if not as_json:
            print_check_report(output.result_console(), report, Reader.UNKNOWN, verbose=False)
    comment = prepared.write_comment(report)
    _write_files(files, report, runs, comment, repo)
    if prepared.job.summary_file:
        with Path(prepared.job.summary_file).open("a", encoding="utf-8") as summary:
            summary.write(comment)
    if not no_comment and (done := prepared.post_comment(comment)):
        console.print(escape_control(done), soft_wrap=True)
    if as_json:
        output.print_document(report.model_dump(mode="json"))
    elif is_github:
        sys.stdout.write("".join(f"{line}\n" for line in list_annotations(report.findings)))
    return EXIT_CODES[report.outcome]


@contextmanager
def _quote_log(*, is_active: bool) -> Iterator[None]:
    """Keep GitHub from taking lines that the change printed for commands to the runner."""
    if not is_active:
        yield
        return
    word = secrets.token_hex(16)
    sys.stdout.write(f"::stop-commands::{word}\n")
    sys.stdout.flush()
    try:
        yield
    finally:
        sys.stdout.write(f"::{word}::\n")
        sys.stdout.flush()


def _check_directory(directory: Path | None, repo: Path) -> dict[str, Path]:
    """Create the folder of the reports, and return their paths. Refuse a place where they would be part of the
    change."""
    if directory is None:
        return {}
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--output {directory}: cannot be created: {error.strerror}", hint="name another DIR"
        ) from error
    names = {**_FILES, "--json": "report.json", "comment": "comment.md"}
    return {option: require_report_file("--output", directory / name, repo) for option, name in names.items()}


def _write_files(files: dict[str, Path], report: CheckReport, runs: list[TestRun], comment: str, repo: Path) -> None:
    if not files:
        return
    renderers: dict[str, Callable[[], str]] = {
        **render_report_files(report, repo, runs),
        "--json": lambda: report.model_dump_json(indent=2) + "\n",
        "comment": lambda: comment,
    }
    for option, path in files.items():
        write_atomic(path, renderers[option]().encode("utf-8", "backslashreplace"))
