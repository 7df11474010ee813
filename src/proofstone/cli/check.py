"""`proofstone check`: proof instead of opinion about the change in a work tree."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.context import check_run
from proofstone.check.context import CheckRequest, Silent
from proofstone.check.models import CheckReport
from proofstone.check.rules.outcome import ACCEPTABLE
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.render.check import LiveChecks, print_report
from proofstone.common.commands import VACUOUS, is_vacuous
from proofstone.common.models import Outcome
from proofstone.errors import InputError
from proofstone.git.program import readable

app = typer.Typer(add_completion=False)

_EXIT = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.UNVERIFIABLE: 1}


@app.command()
def check(
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="REV", help="What to compare with; else check.base, HEAD.", show_default=False),
    ] = None,
    verify: Annotated[
        list[str] | None,
        typer.Option("--verify", metavar="CMD", help="A command that must exit 0; may be given several times."),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--files", metavar="GLOB", help="Files the change may touch; anything else is a finding."),
    ] = None,
    must_pass: Annotated[
        list[str] | None,
        typer.Option("--must-pass", metavar="TESTID", help="A test that must be there, be executed, and pass."),
    ] = None,
    staged: Annotated[bool, typer.Option("--staged", help="Check what is staged, not the whole work tree.")] = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--no-cache", help="Run everything again; use no kept result.")] = False,
    compare_bare: Annotated[
        bool,
        typer.Option(
            "--rerun-unsandboxed",
            help="Agree to run tests that fail on the base once outside the sandbox, to tell whether it is the cause.",
        ),
    ] = False,
    own_settings: Annotated[
        bool,
        typer.Option("--use-worktree-config", help="Use the settings of the work tree, although the base has others."),
    ] = False,
    accept_test_changes: Annotated[
        str | None,
        typer.Option(
            "--accept-test-changes",
            metavar="REASON",
            help="Your word that tests which are gone, skipped or edited are meant to be; it is recorded.",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="RULE=REASON", help="Take a finding upon yourself, by its rule; it is recorded."
        ),
    ] = None,
    heldout: Annotated[
        list[str] | None,
        typer.Option(
            "--heldout",
            metavar="CMD",
            help="A command that must exit 0 and that whoever made the change never saw; it stays out of the report.",
        ),
    ] = None,
    heldout_files: Annotated[
        Path | None,
        typer.Option(
            "--heldout-files",
            metavar="DIR",
            help="Files that are laid over the tree for the --heldout commands, and only for them.",
        ),
    ] = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Check the change in your work tree, and say what passed, what failed and what could not be verified.

    The work tree is frozen as a git tree; every check runs on a fresh checkout of it, in a sandbox, and on the base
    as well. Failures that stood in the base are not held against the change; regressions are named. Results go into
    the ledger.

    Exit code: 0 passed; 1 failed or unverifiable; 2 bad input.
    """
    request = CheckRequest(
        base=base,
        verify=tuple(_commands("--verify", verify or [])),
        files=tuple(readable(os.fsencode(glob)) for glob in files or ()),
        must_pass=tuple(_text("--must-pass", name) for name in must_pass or ()),
        staged=staged,
        fresh=fresh,
        compare_bare=compare_bare,
        own_settings=own_settings,
        accept_test_changes=_reason(accept_test_changes),
        accept=dict(_accepted(item) for item in accept or ()),
        heldout=tuple(_commands("--heldout", heldout or [])),
        heldout_files=_heldout_files(heldout_files, heldout or []),
    )
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    report = _watched(repo, request, output, require_sandbox=require_sandbox)
    if as_json:
        output.document(report.model_dump(mode="json"))
    else:
        sys.stderr.flush()
        print_report(output.results(), report)
    return _EXIT[report.outcome]


def _text(option: str, value: str) -> str:
    """What was typed, if it is text: anything else cannot be recorded as it was."""
    if value.isascii() or value.encode("utf-8", "ignore").decode("utf-8") == value:
        return value
    raise InputError(f"{option} {value!r}: not valid UTF-8", hint="put it into a script, and name the script")


def _watched(repo: Path, request: CheckRequest, output: Output, *, require_sandbox: bool) -> CheckReport:
    """The run, with its progress on stderr unless nobody wants to see it."""
    if output.quiet:
        with check_run(repo, request, Silent(), require_sandbox=require_sandbox) as run:
            return run.run()
    console = output.progress()
    live = LiveChecks(console, interactive=console.is_terminal)
    with check_run(repo, request, live, require_sandbox=require_sandbox) as run, live.showing():
        return run.run()


def _commands(option: str, commands: list[str]) -> list[str]:
    for command in commands:
        _text(option, command)
        if not command.strip():
            raise InputError(f"{option}: the command is empty", hint=f"for instance {option} 'pytest -q'")
        if is_vacuous(command):
            raise InputError(
                f"{option} {command!r}: {VACUOUS}",
                hint="name a command that fails when the change is wrong, for instance 'pytest -q'",
            )
        if "\0" in command:
            raise InputError(f"{option}: the command contains a NUL character")
    return commands


def _heldout_files(folder: Path | None, commands: list[str]) -> Path | None:
    if folder is not None and not commands:
        raise InputError(f"--heldout-files {folder}: there is no --heldout command that would use them")
    return folder.absolute() if folder else None


def _accepted(text: str) -> tuple[str, str]:
    """`rule=reason`; only what a person may take upon themselves."""
    rule, _, reason = _text("--accept", text).partition("=")
    if rule not in ACCEPTABLE:
        raise InputError(
            f"--accept {rule}: no finding of that rule can be accepted", hint=f"one of {', '.join(sorted(ACCEPTABLE))}"
        )
    if len(reason.strip()) < 8:
        raise InputError(
            f"--accept {rule}: say why in a few words; the reason is recorded",
            hint=f"for instance --accept {rule}='the daemon must not run exit handlers'",
        )
    return rule, reason


def _reason(text: str | None) -> str:
    if text is not None and len(_text("--accept-test-changes", text).strip()) < 8:
        raise InputError(
            "--accept-test-changes: say why in a few words; the reason is recorded",
            hint="for instance --accept-test-changes 'the CSV export was removed on purpose'",
        )
    return text or ""
