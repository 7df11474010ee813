"""`proofstone replay`: show what the checks would have said about the commits of the past."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from proofstone.app.check import validate_commands
from proofstone.app.replay import ReplayRequest, build_replay
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.render.replay import LiveReplay, print_replay
from proofstone.cli.report_files import HTML, MARKDOWN, HtmlOption, MarkdownOption, ReportFiles
from proofstone.common.text import escape_control
from proofstone.documents.html import write_html
from proofstone.documents.markdown_page import write_markdown
from proofstone.replay.history import HistorySelection
from proofstone.replay.rules.replay_page import build_replay_page, find_replay_tone

app = typer.Typer(add_completion=False)

_DEFAULT_LAST: Final = 20


@app.command()
def replay(
    last: Annotated[
        int | None,
        typer.Option(
            "--last", metavar="N", min=1, help=f"The newest N commits; by default {_DEFAULT_LAST}.", show_default=False
        ),
    ] = None,
    commits: Annotated[
        str,
        typer.Option("--range", metavar="A..B", help="The commits that B has and A has not.", show_default=False),
    ] = "",
    merges: Annotated[
        bool, typer.Option("--merges", help="Only merges: each merged branch as one change, against its first parent.")
    ] = False,
    verify: Annotated[
        list[str] | None,
        typer.Option("--verify", metavar="CMD", help="A command that must exit with 0. Can be repeated."),
    ] = None,
    settings_at: Annotated[
        str | None,
        typer.Option(
            "--settings-at", metavar="REV", help="Check by the settings of REV; by default of HEAD.", show_default=False
        ),
    ] = None,
    own_settings: Annotated[
        bool,
        typer.Option("--use-worktree-config", help="Check by the settings of the work tree, committed or not."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            max=64,
            help="How many commits are checked at the same time; by default one per core.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--no-cache", help="Check every commit again, also those that were replayed before.")
    ] = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    html_file: HtmlOption = None,
    md_file: MarkdownOption = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Replay merged commits through the checks: see what the gate would have done before you switch it on.

    Each commit of the current branch is checked against its first parent, as `proofstone check` would have done before
    it was merged: what would have passed, what would have been put to a person and why, what would have been refused,
    and how long it took. Commits of merged branches are replayed as one change, as they were merged; to replay them one
    by one, name them: --range main..branch.

    All commits are checked by the settings of HEAD, whatever settings they had then, and with what is installed now.
    To try settings that are not committed yet, use --use-worktree-config. A commit that needs what is not installed is
    unverifiable, and each such cause is named once.

    Your work tree, index and branches are neither read nor touched. The results are no evidence for a commit, and
    `proofstone runs` does not list them. Each commit is recorded as soon as it is checked: after Ctrl-C or a crash the
    same command goes on where it was, and a larger --last checks only what is new.

    Examples: `proofstone replay --last 50 --html ../replay.html`; `proofstone replay --range v1.0..v1.1 --merges`.

    Exit code: 0 the commits were replayed, whatever was found; 2 bad input; 130 interrupted.
    """
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    pages = ReportFiles.check({HTML: html_file, MARKDOWN: md_file}, repo, as_json=as_json)
    selection = HistorySelection(last if last or commits else _DEFAULT_LAST, commits, merges)
    request = ReplayRequest(
        selection=selection,
        verify=tuple(validate_commands("--verify", verify or [])),
        settings_at=settings_at,
        use_worktree_config=own_settings,
        jobs=jobs,
        no_cache=fresh,
        require_sandbox=require_sandbox,
    )
    live = LiveReplay(output.progress_console())
    with build_replay(repo, request, live) as run, live.show_live():
        report = run.run()
    if as_json:
        output.print_document(report.model_dump(mode="json"))
    elif not pages.uses_stdout:
        sys.stderr.flush()
        print_replay(output.result_console(), report)
    if not pages.is_empty:
        page = build_replay_page(report)
        renderers = {HTML: lambda: write_html(page, find_replay_tone(report)), MARKDOWN: lambda: write_markdown(page)}
        for file in pages.write(renderers):
            output.progress_console().print(escape_control(f"wrote {file}"), soft_wrap=True)
    return 0
