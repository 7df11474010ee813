"""`proofstone gate`: run the tasks of a plan through executor, checks, architect and commit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.gate import build_gate_run
from proofstone.cli.gate_session import GateMode, GateSession, MinutesOption, ModeOption, NoWaitOption, check_minutes
from proofstone.cli.options import (
    BudgetOption,
    ProfileOption,
    TokensOption,
    UsdOption,
    collect_budget_limits,
    use_profile,
)
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption, VerboseOption
from proofstone.cli.task_commands import require_text
from proofstone.gate.request import GateRequest

app = typer.Typer(add_completion=False)


class HookPolicy(StrEnum):
    """What to do with the person's commit hooks."""

    REFUSE = "refuse"
    RUN = "run"
    SKIP = "skip"


@app.command()
def gate(
    plan: Annotated[Path, typer.Argument(metavar="PLAN.md", help="The plan.", show_default=False)],
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor", metavar="SPEC", help="The executor, see above; by default gate.executor.", show_default=False
        ),
    ] = None,
    architect: Annotated[
        str | None,
        typer.Option(
            "--architect",
            metavar="SPEC",
            help="Who reviews in addition to the rules: `rules` (nobody), or any executor; by default gate.architect.",
            show_default=False,
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help="The branch for the commits; by default proofstone/<name of the plan>.",
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
            help="How many executors work at the same time; by default gate.slots.",
            show_default=False,
        ),
    ] = None,
    profile: ProfileOption = None,
    hooks: Annotated[
        HookPolicy | None,
        typer.Option(
            "--hooks",
            help="If you have commit hooks: refuse to start, run them before the checks, or skip them, which is "
            "recorded; by default gate.hooks.",
            show_default=False,
        ),
    ] = None,
    no_sign: Annotated[
        bool, typer.Option("--no-sign", help="Do not sign commits even if git is configured to; recorded.")
    ] = False,
    allow_dirty: Annotated[
        bool,
        typer.Option("--allow-dirty", help="Start even if the work tree has changes; the run ignores them."),
    ] = False,
    heldout_files: Annotated[
        Path | None,
        typer.Option(
            "--heldout-files",
            metavar="DIR",
            help="Files that are copied over the tree for the plan's held-out commands only.",
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
            help="Refuse a plan that has not passed the plan gate (`proofstone verify-plan`) as it is; also set by "
            "gate.verified_plan.",
        ),
    ] = False,
    mode: ModeOption = GateMode.AUTONOMOUS,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Run the tasks of a plan, and commit only what passes.

    Each task goes to an executor, in its own work tree. Proofstone freezes the result and runs the task's verify
    commands and every check of the project on it; then architects review it. Only a result that passes all of this is
    committed: one commit for each task, with exactly the tree that was verified. A failed attempt is repeated with the
    findings. STATE.md next to the plan shows the progress; SUMMARY.md shows the result.

    \b
    An executor does the work. It is one of:
      --executor cli:claude           one of your coding agents, without its user interface; see `proofstone backends`
      --executor acp:goose            the same, over a protocol in which it asks before it writes
      --executor api:openai:gpt-5     a model, with Proofstone's own tools
      --executor 'cmd:./agent.sh'     any other program; PROOFSTONE_TASK names its task
      --executor human                you edit, and say when you have finished
      --executor script:steps.yaml    prepared steps, for demonstrations

    Exit code: 0 every task passed; 1 failed or halted; 2 bad input; 3 waiting for a person; 4 budget exhausted;
    130 interrupted. `proofstone resume last` continues, even after a crash.
    """
    use_profile(profile)
    request = GateRequest(
        executor=_text("--executor", executor),
        architect=_text("--architect", architect),
        branch=_text("--branch", branch),
        slots=slots,
        hooks=hooks.value if hooks else None,
        sign=not no_sign,
        allow_dirty=allow_dirty,
        minutes=check_minutes(budget_minutes),
        budget=collect_budget_limits(budget, budget_tokens, budget_usd),
        require_sandbox=require_sandbox,
        requires_verified_plan=verified,
        heldout_files=heldout_files,
        waits_for_person=not no_wait,
    )
    session = GateSession(Output(json=as_json, quiet=quiet, no_color=no_color, verbose=verbose), mode, wait=not no_wait)
    return session.follow(lambda watching, listen: build_gate_run(repo, plan, request, watching, listen=listen))


def _text(option: str, value: str | None) -> str | None:
    return None if value is None else require_text(option, value)
