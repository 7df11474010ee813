"""`proofstone run`: take a feature request through the whole pipeline, to one commit or a refusal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

import typer

from proofstone.agents.executors.people import ReadLine
from proofstone.app.pipeline import PIPELINE_RUNS, PipelineRequest, build_pipeline_run, resume_pipeline
from proofstone.app.report_pages import read_committed_diff
from proofstone.cli.approval_questions import ApprovalQuestions
from proofstone.cli.gate_session import GATE_EXIT_CODES, MinutesOption, check_minutes
from proofstone.cli.options import (
    BudgetOption,
    ProfileOption,
    TokensOption,
    UsdOption,
    collect_backend_specs,
    collect_budget_limits,
    read_goal,
    refuse_unquoted_words,
    use_profile,
)
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption, VerboseOption
from proofstone.cli.plan_questions import ask_plan_questions
from proofstone.cli.render.live_pipeline import LivePipeline
from proofstone.cli.render.pipeline import print_pipeline_report
from proofstone.cli.session import AgentRunSession
from proofstone.cli.task_commands import login_name, require_text
from proofstone.common.models import Lane
from proofstone.errors import InputError
from proofstone.gate.models import RunOutcome
from proofstone.machine.files import write_atomic
from proofstone.pipeline.bundle_builder import build_bundle
from proofstone.pipeline.journal import PipelineObserver
from proofstone.pipeline.models.run import ApprovalRequest, RunMode, RunReport
from proofstone.pipeline.rules.bundle_page import render_bundle_html
from proofstone.pipeline.run import AskApproval, PipelineRun
from proofstone.plan_gate.models import OpenQuestion
from proofstone.plan_gate.run import AskPlanUser

app = typer.Typer(add_completion=False)

_METAVAR: Final = "REQUEST"
_ENDED: Final = (RunOutcome.PASSED, RunOutcome.FAILED, RunOutcome.HALTED)
"""The final outcomes: nothing that a person says can change them."""

PipelineRunFactory = Callable[
    [PipelineObserver, AskApproval, AskPlanUser | None, ReadLine | None], AbstractContextManager[PipelineRun]
]


@app.command("run", context_settings={"allow_extra_args": True})
def run(
    context: typer.Context,
    request: Annotated[
        str | None,
        typer.Argument(metavar=_METAVAR, help="What you want, in your own words; `-` reads stdin.", show_default=False),
    ] = None,
    request_file: Annotated[
        Path | None,
        typer.Option("--request-file", metavar="FILE", help="Read the request from this file.", show_default=False),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="[ROLE=]SPEC",
            help="The backend; overrides the settings: `cli:claude` for all roles, or `reviewer=…` for one. Can be "
            "repeated.",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--files",
            metavar="PATH",
            help="A file that the request is about, relative to the root of the repository; decides the lane. Can be "
            "repeated.",
            show_default=False,
        ),
    ] = None,
    lane: Annotated[
        Lane | None,
        typer.Option(
            "--lane",
            help="The depth of the process, whatever the files; a change that needs more moves to a deeper lane.",
            show_default=False,
        ),
    ] = None,
    profile: ProfileOption = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help="The branch of the commit; by default proofstone/<request>.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        RunMode,
        typer.Option(
            "--mode",
            help="At approvals, `autonomous` takes the default; `interactive` asks you, here or with `proofstone "
            "approve`.",
        ),
    ] = RunMode.AUTONOMOUS,
    proceed_on_pushback: Annotated[
        bool,
        typer.Option(
            "--proceed-on-pushback", help="Continue even if an agent has serious doubts about the request; recorded."
        ),
    ] = False,
    allow_dirty: Annotated[
        bool,
        typer.Option("--allow-dirty", help="Start even if the work tree has changes; the run ignores them."),
    ] = False,
    stash: Annotated[
        bool,
        typer.Option(
            "--stash",
            help="If the work tree has changes, put them into git's stash before the run starts; it says how you get "
            "them back.",
        ),
    ] = False,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    budget_minutes: MinutesOption = None,
    slots: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            max=64,
            help="How many tasks run at the same time; by default gate.slots.",
            show_default=False,
        ),
    ] = None,
    no_sign: Annotated[
        bool, typer.Option("--no-sign", help="Do not sign the commit even if git is configured to; recorded.")
    ] = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Build a feature: research, specify, design, plan, implement, check and review it.

    \b
      research ×4 → approval → specification → design → design review ×3
        → plan → plan gate → approval → tasks, each through the task gate
        → all checks on the merged tree → code review ×3 → knowledge → one commit

    Agents do the work, but their claims decide nothing: Proofstone runs every check itself, and commits only a tree
    that passes all checks and that the reviewers accept. After a failure, code decides how the next plan must differ;
    every loop has a limit. Small changes take a short lane: `docs` (plan, task, checks) or `fix` (the same and one
    reviewer). `large`, for risky files, runs every available check.

    \b
      proofstone run "greet people by their name" --backend cli:claude
      proofstone run --request-file FEATURE.md --backend cli:claude --backend reviewer=api:openai:gpt-5
      proofstone run "fix the rounding" --files src/price.py          the fix lane: one task, one reviewer
      proofstone run "add a search" --mode interactive                 asks you at each approval
      proofstone run "greet people by their name" --backend script:team.yaml    prepared answers, to try it out

    \b
    What is written
      one commit on proofstone/<request>; your branch and your files stay as they are
        git merge --ff-only proofstone/<request>      merges it
        git branch -D proofstone/<request>            drops it
        git revert COMMIT                             reverts it once it is merged
      .proofstone/RUN/ in the repository, which git ignores: plan, documents, evidence
      the ledger: every answer, check and decision (`proofstone ledger show RUN`)

    Exit code: 0 committed; 1 failed or halted, and nothing is committed; 2 bad input; 3 waiting for a person; 4 budget
    exhausted; 130 interrupted. Nothing is lost: `proofstone status RUN` shows the questions, `proofstone approve RUN
    GATE OPTION` answers them, and `proofstone resume RUN` continues, even after a crash.
    """
    use_profile(profile)
    refuse_unquoted_words("run", request, context.args, _METAVAR)
    _require_one_request(request, request_file)
    if stash and allow_dirty:
        raise InputError("--stash and --allow-dirty: one or the other", hint="see `proofstone run --help`")
    run_request = PipelineRequest(
        backends=collect_backend_specs(backend),
        files=_git_paths(files or ()),
        lane=lane,
        branch=None if branch is None else require_text("--branch", branch),
        mode=mode,
        proceed_on_pushback=proceed_on_pushback,
        allow_dirty=allow_dirty,
        stash=stash,
        minutes=check_minutes(budget_minutes),
        slots=slots,
        budget=collect_budget_limits(budget, budget_tokens, budget_usd),
        sign=not no_sign,
        require_sandbox=require_sandbox,
        by=login_name(),
    )
    text = read_goal(request, request_file, _METAVAR)
    output = Output(json=as_json, quiet=quiet, no_color=no_color, verbose=verbose)
    return _follow(
        output,
        lambda live, ask, ask_plan, listen: build_pipeline_run(
            repo, text, run_request, live, ask, ask_plan=ask_plan, listen=listen
        ),
    )


def resume_pipeline_run(output: Output, run_id: str, request: PipelineRequest) -> int:
    """Resume a run. If it has ended, print its result."""
    report = PIPELINE_RUNS.read_report(run_id)
    if report is not None and report.outcome in _ENDED and not report.awaits_fix:
        return _print_result(output, report)
    return _follow(
        output,
        lambda live, ask, ask_plan, listen: resume_pipeline(
            run_id, request, live, ask, ask_plan=ask_plan, listen=listen
        ),
    )


def _follow(output: Output, begin: PipelineRunFactory) -> int:
    session = AgentRunSession(output, "run", resume_prefix="proofstone resume")
    console = output.progress_console()
    live = LivePipeline(console, interactive=console.is_terminal, can_ask_here=session.can_ask, verbose=output.verbose)

    def ask(request: ApprovalRequest) -> tuple[str, str] | None:
        """Ask at this terminal, if there is one."""
        if not session.can_ask:
            return None
        live.clear_rows()
        return ApprovalQuestions(session.question_console()).ask(request)

    def ask_plan(questions: Sequence[OpenQuestion]) -> Mapping[str, str]:
        live.clear_rows()
        return ask_plan_questions(session.question_console(), questions)

    return session.follow(
        begin(live, ask, ask_plan if session.can_ask else None, session.listen),
        live,
        run_id=lambda run: run.run_id,
        through=run_and_write_page,
        tell=lambda report: _print_result(output, report),
    )


def run_and_write_page(run: PipelineRun) -> RunReport:
    """Run to the end, and write the evidence as a page next to the engine's files."""
    report = run.run()
    bundle = build_bundle(run.context.ledger, run.run_id)
    page = render_bundle_html(
        bundle, read_committed_diff(bundle.subject.repository, bundle.history, bundle.changed_paths)
    )
    write_atomic(run.folder / "evidence-bundle.html", page.encode("utf-8", "backslashreplace"))
    return report


def _print_result(output: Output, report: RunReport) -> int:
    if output.json:
        output.print_document(report.model_dump(mode="json"))
    else:
        sys.stderr.flush()
        print_pipeline_report(output.result_console(), report, verbose=output.verbose)
    return GATE_EXIT_CODES[report.outcome]


# Checks of the options.


def _require_one_request(request: str | None, file: Path | None) -> None:
    if request is None and file is None:
        raise InputError(
            f"{_METAVAR} is missing: say what you want", hint='proofstone run "what you want"; or --request-file'
        )
    if request is not None and file is not None:
        raise InputError(f"{_METAVAR} and --request-file are both given", hint="give only one of them")


def _git_paths(names: Sequence[str]) -> tuple[str, ...]:
    """Return the paths as git writes them, because lanes are chosen by them."""
    paths = [PurePosixPath(require_text("--files", name)) for name in names]
    for name, path in zip(names, paths, strict=True):
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise InputError(
                f"--files {name!r}: is not a path relative to the root of the repository",
                hint="for instance --files src/price.py",
            )
    return tuple(map(str, paths))
