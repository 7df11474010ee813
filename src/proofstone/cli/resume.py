"""`proofstone resume`: go on with a run that stopped, for whatever reason."""

from __future__ import annotations

from typing import Annotated

import typer

from proofstone.app.gate import find_run, find_task, resumed_gate, view_run, whole_of
from proofstone.cli.gate_session import MinutesOption, Mode, ModeOption, NoWaitOption, Sitting, minutes
from proofstone.cli.options import BudgetOption, TokensOption, UsdOption, budget_words
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption
from proofstone.cli.run_kinds import Meant, More, run_meant
from proofstone.cli.task_commands import RunArgument, plain, refuse_executors, speaker
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
            help="Try this task again although it has no attempts left, or `all` that failed; may be given several "
            "times.",
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
    mode: ModeOption = Mode.AUTONOMOUS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Go on with a run: after an answer, an interruption, a crash, a failure, or when its budget ran out.

    What is recorded is not done again; an attempt that was cut off is made anew, and what a model has said in it is
    not paid for twice. The plan is the one that the run was started with, also if the file has changed since. Where
    a budget ran out, give more: --budget counts from the beginning of the run, so it must be more than was spent.

    A run of `proofstone run`, `proofstone verify-plan` or `proofstone solve` goes on too. What `proofstone run` asks
    is answered with
    `proofstone approve`, or here at a terminal; what the others ask, with their own `--resume RUN --answer …`.

    Exit code: as of the command that began it.
    """
    words = budget_words(budget, budget_tokens, budget_usd)
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    if meant := run_meant(run) or _whole_meant(run, retry):
        other, kind = meant
        if retry or note:
            raise InputError(
                f"{other} is of `proofstone {kind.command}`, {kind.retries}",
                hint=f"{kind.go_on(other)} {kind.answered}".rstrip(),
            )
        return kind.resume(output, other, More(words, minutes(budget_minutes)))
    run_id = find_run(run)
    if note and not retry:
        raise InputError("--note: there is no --retry that it is about", hint="name the task: --retry task-03")
    request = ResumeRequest(
        retry=_tasks(run_id, retry or []),
        note=plain("--note", note),
        by=speaker(),
        minutes=minutes(budget_minutes),
        budget=words,
        wait=not no_wait,
    )
    sitting = Sitting(output, mode, wait=not no_wait)
    return sitting.follow(lambda watching, listen: resumed_gate(run_id, request, watching, listen=listen))


def _whole_meant(run: str, retry: list[str] | None) -> Meant | None:
    """A part goes on with the run that it belongs to; only a task of it can be tried again by itself."""
    run_id = find_run(run)
    return run_meant(whole_of(run_id)) if not retry else None


def _tasks(run_id: str, named: list[str]) -> tuple[str, ...]:
    if not named:
        return ()
    refuse_executors()
    view = view_run(run_id)
    return tuple(name if name == _ALL else find_task(view, name) for name in named)
