"""`proofstone gate`: the tasks of a plan, each through executor, checks, architect and commit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.gate import gate_run
from proofstone.cli.gate_session import MinutesOption, Mode, ModeOption, NoWaitOption, Sitting, minutes
from proofstone.cli.options import BudgetOption, TokensOption, UsdOption, budget_words
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.task_commands import plain
from proofstone.gate.request import GateRequest

app = typer.Typer(add_completion=False)


class Hooks(StrEnum):
    REFUSE = "refuse"
    RUN = "run"
    SKIP = "skip"


@app.command()
def gate(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.md", help="The plan.", show_default=False)],
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor", metavar="SPEC", help="Who does the work; else gate.executor. See above.", show_default=False
        ),
    ] = None,
    architect: Annotated[
        str | None,
        typer.Option(
            "--architect",
            metavar="SPEC",
            help="Who reviews beside the rules: rules (nobody), or whoever could be an executor; else gate.architect.",
            show_default=False,
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help="Where the commits go; else proofstone/<name of the plan>.",
            show_default=False,
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            max=64,
            help="Executors at the same time; else gate.slots.",
            show_default=False,
        ),
    ] = None,
    hooks: Annotated[
        Hooks | None,
        typer.Option(
            "--hooks",
            help="Your commit hooks: refuse to start, run them before the checks, or skip them, which is recorded; "
            "else gate.hooks.",
            show_default=False,
        ),
    ] = None,
    no_sign: Annotated[
        bool, typer.Option("--no-sign", help="Do not sign commits, although git is configured to; it is recorded.")
    ] = False,
    allow_dirty: Annotated[
        bool,
        typer.Option("--allow-dirty", help="Start although the work tree has changes; the run does not see them."),
    ] = False,
    heldout_files: Annotated[
        Path | None,
        typer.Option(
            "--heldout-files",
            metavar="DIR",
            help="Files that are laid over the tree for the plan's held-out commands, and only for them.",
            show_default=False,
        ),
    ] = None,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    budget_minutes: MinutesOption = None,
    no_wait: NoWaitOption = False,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    verified: Annotated[
        bool,
        typer.Option(
            "--verified",
            help="Refuse a plan that is not through the plan gate (`proofstone verify-plan`) as it is; also "
            "gate.verified_plan.",
        ),
    ] = False,
    mode: ModeOption = Mode.AUTONOMOUS,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Have the tasks of a plan done, and commit only what passes.

    Each task goes to an executor, in a work tree of its own. What it leaves is frozen, and Proofstone runs the task's
    verify commands and every check of the project on it; then architects review it. Only what passes all of that is
    committed: one commit a task, exactly the tree that was verified. A failed attempt is tried again with what went
    wrong. STATE.md beside the plan shows where it stands; SUMMARY.md says in the end what was done.

    \b
    An executor is whoever does the work:
      --executor cli:claude           a coding agent of yours, without its screen (`proofstone backends` lists them)
      --executor acp:goose            the same, over a protocol in which it asks before it writes
      --executor api:openai:gpt-5     a model, with Proofstone's own tools
      --executor 'cmd:./agent.sh'     any other program; PROOFSTONE_TASK names its task
      --executor human                you edit, and say when you are finished
      --executor script:steps.yaml    prepared steps, for demonstrations

    Exit code: 0 every task passed; 1 failed or halted; 2 bad input; 3 waiting for a person; 4 budget exhausted;
    130 interrupted. `proofstone resume last` goes on, also after a crash.
    """
    request = GateRequest(
        executor=_text("--executor", executor),
        architect=_text("--architect", architect),
        branch=_text("--branch", branch),
        slots=slots,
        hooks=hooks.value if hooks else None,
        sign=not no_sign,
        allow_dirty=allow_dirty,
        minutes=minutes(budget_minutes),
        budget=budget_words(budget, budget_tokens, budget_usd),
        require_sandbox=require_sandbox,
        verified=verified,
        heldout_files=heldout_files,
        wait=not no_wait,
    )
    sitting = Sitting(Output(json=as_json, quiet=quiet, no_color=no_color), mode, wait=not no_wait)
    return sitting.follow(lambda watching, listen: gate_run(repo, plan, request, watching, listen=listen))


def _text(option: str, value: str | None) -> str | None:
    return None if value is None else plain(option, value)
