"""`proofstone run`: a feature request goes through the whole pipeline, to one commit or an honest refusal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

import typer

from proofstone.agents.executors.people import Listen
from proofstone.app.pipeline import RUNS, RunRequest, pipeline_run, resumed_pipeline
from proofstone.cli.approval_questions import ApprovalQuestions
from proofstone.cli.gate_session import EXIT, MinutesOption, minutes
from proofstone.cli.options import (
    BudgetOption,
    TokensOption,
    UsdOption,
    backend_words,
    budget_words,
    goal_from,
    refuse_loose_words,
)
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.render.bundle import html
from proofstone.cli.render.live_pipeline import LivePipeline
from proofstone.cli.render.pipeline import print_run
from proofstone.cli.session import AgentSitting
from proofstone.cli.task_commands import plain, speaker
from proofstone.common.models import Lane
from proofstone.errors import InputError
from proofstone.gate.models import RunOutcome
from proofstone.machine.files import write_whole
from proofstone.pipeline.bundling import bundle_of
from proofstone.pipeline.journal import Watching
from proofstone.pipeline.models.run import ApprovalRequest, RunMode, RunReport
from proofstone.pipeline.run import Ask, PipelineRun

app = typer.Typer(add_completion=False)

_CALLED: Final = "REQUEST"
_OVER: Final = (RunOutcome.PASSED, RunOutcome.FAILED, RunOutcome.HALTED)
"""Nothing that anybody could say now changes these."""

Begin = Callable[[Watching, Ask, Listen | None], AbstractContextManager[PipelineRun]]


@app.command("run", context_settings={"allow_extra_args": True})
def run(
    context: typer.Context,
    request: Annotated[
        str | None,
        typer.Argument(metavar=_CALLED, help="What you want, in your own words; `-` reads it.", show_default=False),
    ] = None,
    request_file: Annotated[
        Path | None,
        typer.Option("--request-file", metavar="FILE", help="What you want is in this file.", show_default=False),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="[ROLE=]SPEC",
            help="Who is asked, before the settings: `cli:claude` for all, or `reviewer=…` for one; may be given "
            "several times.",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--files",
            metavar="PATH",
            help="A file that it is about, from the repository's root; may be given several times. They choose the "
            "lane.",
            show_default=False,
        ),
    ] = None,
    lane: Annotated[
        Lane | None,
        typer.Option(
            "--lane",
            help="How deep it is looked into, whatever the files; a change that needs more is taken deeper all the "
            "same.",
            show_default=False,
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch", metavar="NAME", help="Where the commit goes; else proofstone/<request>.", show_default=False
        ),
    ] = None,
    mode: Annotated[
        RunMode,
        typer.Option(
            "--mode",
            help="Approvals: `autonomous` takes the default, `interactive` asks you, here or with `proofstone "
            "approve`.",
        ),
    ] = RunMode.AUTONOMOUS,
    proceed_on_pushback: Annotated[
        bool,
        typer.Option(
            "--proceed-on-pushback", help="Go on although somebody has grave doubts about the request; it is recorded."
        ),
    ] = False,
    allow_dirty: Annotated[
        bool,
        typer.Option("--allow-dirty", help="Start although the work tree has changes; the run does not see them."),
    ] = False,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    budget_minutes: MinutesOption = None,
    slots: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, max=64, help="Tasks at the same time; else gate.slots.", show_default=False
        ),
    ] = None,
    no_sign: Annotated[
        bool, typer.Option("--no-sign", help="Do not sign the commit, although git is configured to; it is recorded.")
    ] = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Have a feature built: researched, specified, designed, planned, done, checked and reviewed.

    \b
      research ×4 → approval → specification → design → design review ×3
        → plan → plan gate → approval → tasks, each through the task gate
        → all checks on the merged tree → code review ×3 → knowledge → one commit

    Agents do the work, and their word decides nothing: Proofstone runs every check itself, and commits only a tree on
    which
    all of them passed and which the reviewers let through. What fails is planned anew, and code decides how the next
    plan must differ; every loop has a bound. Small things take a short lane: `docs` (plan, task, checks) and `fix` (and
    one reviewer); `large`, for risky files, runs every check there is.

    \b
      proofstone run "greet people by their name" --backend cli:claude
      proofstone run --request-file FEATURE.md --backend cli:claude --backend reviewer=api:openai:gpt-5
      proofstone run "mend the rounding" --files src/price.py          the fix lane: one task, one reviewer
      proofstone run "add a search" --mode interactive                 be asked at each approval
      proofstone run "greet people by their name" --backend script:team.yaml    prepared answers, to try it out

    \b
    What is written
      one commit on proofstone/<request>; your branch and your files stay as they are
        git merge --ff-only proofstone/<request>      takes it over
        git branch -D proofstone/<request>            drops it
        git revert COMMIT                        takes it back once it is merged
      .proofstone/RUN/ in the repository, which git does not see: plan, documents, evidence
      the ledger: every answer, check and decision (`proofstone ledger show RUN`)

    Exit code: 0 committed; 1 failed or halted, and nothing is committed; 2 bad input; 3 waiting for a person; 4 budget
    exhausted; 130 interrupted. Everything is kept: `proofstone status RUN` tells what is asked, `proofstone approve
    RUN GATE
    OPTION` answers, `proofstone resume RUN` goes on, also after a crash.
    """
    refuse_loose_words("run", request, context.args, _CALLED)
    _refuse_none_or_both(request, request_file)
    asked = RunRequest(
        backends=backend_words(backend),
        files=_paths(files or ()),
        lane=lane,
        branch=None if branch is None else plain("--branch", branch),
        mode=mode,
        proceed_on_pushback=proceed_on_pushback,
        allow_dirty=allow_dirty,
        minutes=minutes(budget_minutes),
        slots=slots,
        budget=budget_words(budget, budget_tokens, budget_usd),
        sign=not no_sign,
        require_sandbox=require_sandbox,
        by=speaker(),
    )
    wanted = goal_from(request, request_file, _CALLED)
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    return _follow(output, lambda live, ask, listen: pipeline_run(repo, wanted, asked, live, ask, listen=listen))


def resume_run(output: Output, run_id: str, request: RunRequest) -> int:
    """Go on with a run; of one that is over, tell how it ended."""
    report = RUNS.report(run_id)
    if report is not None and report.outcome in _OVER:
        return _tell(output, report)
    return _follow(output, lambda live, ask, listen: resumed_pipeline(run_id, request, live, ask, listen=listen))


def _follow(output: Output, begin: Begin) -> int:
    sitting = AgentSitting(output, "run", resumes="proofstone resume")
    console = output.progress()
    live = LivePipeline(console, interactive=console.is_terminal, asks_here=sitting.asks)

    def ask(request: ApprovalRequest) -> tuple[str, str] | None:
        """At this terminal, if there is one."""
        if not sitting.asks:
            return None
        live.clear()
        return ApprovalQuestions(sitting.loud()).ask(request)

    return sitting.follow(
        begin(live, ask, sitting.listen),
        live,
        run_id=lambda run: run.run_id,
        through=with_page,
        tell=lambda report: _tell(output, report),
    )


def with_page(run: PipelineRun) -> RunReport:
    """To its end, and the evidence as a page beside what the engine has written."""
    report = run.run()
    bundle = bundle_of(run.world.ledger, run.run_id)
    write_whole(run.folder / "evidence-bundle.html", html(bundle).encode())
    return report


def _tell(output: Output, report: RunReport) -> int:
    if output.json:
        output.document(report.model_dump(mode="json"))
    else:
        sys.stderr.flush()
        print_run(output.results(), report)
    return EXIT[report.outcome]


# What was asked for.


def _refuse_none_or_both(request: str | None, file: Path | None) -> None:
    if request is None and file is None:
        raise InputError(
            f"{_CALLED} is missing: what you want", hint='proofstone run "what you want"; or --request-file'
        )
    if request is not None and file is not None:
        raise InputError(f"{_CALLED} and --request-file are both given", hint="say one of them")


def _paths(named: Sequence[str]) -> tuple[str, ...]:
    """As git calls them: lanes are chosen by that."""
    paths = [PurePosixPath(plain("--files", name)) for name in named]
    for name, path in zip(named, paths, strict=True):
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise InputError(
                f"--files {name!r}: is no path from the repository's root", hint="for instance --files src/price.py"
            )
    return tuple(map(str, paths))
