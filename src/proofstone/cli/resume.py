"""`proofstone resume`: resume a run that stopped, for whatever reason."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.app.gate import find_parent_run, find_run, find_task, read_run_view, resume_gate
from proofstone.cli.gate_session import GateMode, GateSession, MinutesOption, ModeOption, NoWaitOption, check_minutes
from proofstone.cli.options import BudgetOption, TokensOption, UsdOption, collect_budget_limits
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption
from proofstone.cli.run_kinds import ResumeBudget, RunMatch, match_run
from proofstone.cli.task_commands import RunArgument, login_name, refuse_executors, require_text
from proofstone.errors import InputError
from proofstone.gate.request import ResumeRequest

app = typer.Typer(add_completion=False)

_ALL = "all"


@app.command()
def resume(
    run: RunArgument,
    retry: Annotated[
        list[str] | None,
        typer.Option(
            "--retry",
            metavar="TASK",
            help="Retry this task even if it has no attempts left, or `all` failed tasks. Can be repeated.",
        ),
    ] = None,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="With --retry: what to do differently.", show_default=False)
    ] = "",
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    budget_minutes: MinutesOption = None,
    no_wait: NoWaitOption = False,
    mode: ModeOption = GateMode.AUTONOMOUS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Resume a run after an answer, an interruption, a crash, a failure, or when its budget was exhausted.

    Recorded work is not repeated. An interrupted attempt starts again, but you do not pay twice for what a model has
    already answered. The run keeps the plan that it started with, even if the file has changed. If a budget was
    exhausted, raise it: --budget counts from the beginning of the run, so it must be more than was spent.

    You can also resume runs of `proofstone run`, `proofstone verify-plan` and `proofstone solve`. Answer the questions
    of `proofstone run` with `proofstone approve`, or here at a terminal; those of the others with their own
    `--resume RUN --answer …`.

    Exit code: that of the command that started the run.
    """
    limits = collect_budget_limits(budget, budget_tokens, budget_usd)
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    if match := match_run(run) or _find_whole_run(run, retry):
        other_id, kind = match
        if retry or note:
            raise InputError(
                f"{other_id} is a run of `proofstone {kind.command}`, {kind.no_retry_reason}",
                hint=f"{kind.resume_command(other_id)} {kind.answer_options}".rstrip(),
            )
        return kind.resume(output, other_id, ResumeBudget(limits, check_minutes(budget_minutes)))
    run_id = find_run(run)
    if note and not retry:
        raise InputError("--note needs --retry", hint="name the task: --retry task-03")
    request = ResumeRequest(
        retry=_tasks(run_id, retry or []),
        note=require_text("--note", note),
        by=login_name(),
        minutes=check_minutes(budget_minutes),
        budget=limits,
        waits_for_person=not no_wait,
    )
    session = GateSession(output, mode, wait=not no_wait)
    return session.follow(lambda watching, listen: resume_gate(run_id, request, watching, listen=listen))


def _find_whole_run(run: str, retry: list[str] | None) -> RunMatch | None:
    """Return the run that this run is a part of: a part resumes with it, unless one of its tasks is retried."""
    run_id = find_run(run)
    return match_run(find_parent_run(run_id)) if not retry else None


def _tasks(run_id: str, named: list[str]) -> tuple[str, ...]:
    if not named:
        return ()
    refuse_executors()
    view = read_run_view(run_id)
    return tuple(name if name == _ALL else find_task(view, name) for name in named)
