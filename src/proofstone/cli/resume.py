"""`proofstone resume`: resume a run that stopped, for whatever reason."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.cli.gate_session import GateMode, MinutesOption, ModeOption, NoWaitOption, check_minutes, check_timeout
from proofstone.cli.options import BudgetOption, TokensOption, UsdOption, collect_budget_limits
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, VerboseOption
from proofstone.cli.run_kinds import ResumeOptions, match_run, match_whole_run
from proofstone.cli.task_commands import RunArgument
from proofstone.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def resume(
    run: RunArgument,
    retry: Annotated[
        list[str] | None,
        typer.Option(
            "--retry",
            "--task",
            metavar="TASK",
            help="Retry this task even if it has no attempts left, or `all` failed tasks. Can be repeated.",
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout",
            metavar="TIME",
            help="With --retry: the deadline of the task's steps from now on, as 20m, 90s or 1h.",
            show_default=False,
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
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Resume a run after an answer, an interruption, a crash, a failure, or when its budget was exhausted.

    Recorded work is not repeated. An interrupted attempt starts again, but you do not pay twice for what a model has
    already answered. The run keeps the plan that it started with, even if the file has changed. If a budget was
    exhausted, raise it: --budget counts from the beginning of the run, so it must be more than was spent.

    Every kind of run can be resumed: `proofstone run`, `gate`, `verify-plan` and `solve`. Answer its questions first
    with `proofstone answer`, or here at a terminal.

    Exit code: that of the command that started the run.
    """
    output = Output(json=as_json, quiet=quiet, no_color=no_color, verbose=verbose)
    match = match_run(run) if retry else match_whole_run(run)
    if (retry or note or timeout) and match.kind.no_retry_reason:
        raise InputError(
            f"{match.run_id} is a run of `proofstone {match.kind.command}`, {match.kind.no_retry_reason}",
            hint=f"proofstone resume {match.run_id}",
        )
    options = ResumeOptions(
        budget=collect_budget_limits(budget, budget_tokens, budget_usd),
        minutes=check_minutes(budget_minutes),
        retry=tuple(retry or ()),
        note=note,
        seconds=check_timeout("--timeout", timeout),
        waits=not no_wait,
        mode=mode,
    )
    return match.kind.resume(output, match.run_id, options)
