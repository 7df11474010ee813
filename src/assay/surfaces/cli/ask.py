"""`assay ask`: one agent, asked once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.adapters.executors.human import Terminal
from assay.adapters.executors.site import Site
from assay.ask_app import Answer, Question, asked_once, nobody_runs_here
from assay.contracts.agent import FaultKind
from assay.contracts.budget import Allowance
from assay.core.agent.budget import cost, counted, summary
from assay.errors import InputError
from assay.roles import ROLES
from assay.surfaces.cli.agent_options import BudgetOption, TokensOption, UsdOption, backend_words, budget_words
from assay.surfaces.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption, printable
from assay.surfaces.cli.words import plain

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(add_completion=False)

_BUDGET_SPENT = 4


@app.command()
def ask(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="ROLE",
            help="Whom: researcher:impact, reviewer:security, planner …; see `assay backends`.",
            show_default=False,
        ),
    ],
    request: Annotated[
        str,
        typer.Argument(
            metavar="REQUEST",
            help="What: a text, or YAML or JSON with the fields of its request; `@FILE` reads a file, `-` what is "
            "piped in.",
            show_default=False,
        ),
    ],
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="SPEC",
            help="Who serves the role, before the settings; further ones are asked where the first cannot be reached.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", min=1, help="The longest that it may take.")
    ] = 600,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Ask one agent one thing, and print its answer: to try a role, a model or a prompt.

    The agent looks at the last commit of the repository, with the tools of its role and no others; it can change
    nothing. What it is asked, what it says and what its tools answer is on the bus: `assay audit last` and
    `assay ledger show` tell, and `assay record last` writes it as a script.

    \b
      assay ask researcher:impact "where are passwords checked?" --backend api:openai:gpt-5
      assay ask reviewer:security @request.yaml

    Exit code: 0 an answer of the schema; 1 none; 2 bad input; 4 the budget is spent; 130 interrupted.
    """
    if agent.partition(":")[0] not in ROLES:
        raise InputError(f"{agent}: there is no such role", hint=f"there are: {', '.join(ROLES)}")
    question = Question(
        agent=plain("ROLE", agent),
        text=_text(request),
        backends=backend_words(backend),
        budget=budget_words(budget, budget_tokens, budget_usd),
        seconds=seconds,
    )
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    listen = Terminal() if sys.stdin.isatty() and not as_json and request != "-" else None
    answer = asked_once(repo, question, _site(output), listen=listen)
    if as_json:
        output.document(_document(answer))
    else:
        _print(output.results(), answer)
    fault = answer.asked.dispatched.fault
    return 0 if fault is None else _BUDGET_SPENT if fault.kind is FaultKind.BUDGET else 1


def _site(output: Output) -> Site:
    """What the agent says while it says it goes to where progress goes."""
    console = output.progress()

    def say(line: str) -> None:
        console.print(printable(line), soft_wrap=True)

    def hear(text: str) -> None:
        console.print(printable(text), end="", style="dim", soft_wrap=True)

    return Site(Path(), Path(), nobody_runs_here, say=say, hear=hear)


def _text(request: str) -> str:
    if request == "-":
        return sys.stdin.read()
    if not request.startswith("@"):
        return plain("REQUEST", request)
    path = Path(request[1:])
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", hint="`@FILE` names a file; a text is given as it is"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8") from error


def _document(answer: Answer) -> dict[str, object]:
    dispatched = answer.asked.dispatched
    return {
        "run_id": answer.run_id,
        "role": dispatched.occasion.agent,
        "model": dispatched.model,
        "output": dispatched.output.model_dump(mode="json") if dispatched.output else None,
        "fault": dispatched.fault.model_dump(mode="json") if dispatched.fault else None,
        "completion": dispatched.completion.model_dump(mode="json"),
        "turns": dispatched.turns,
        "tool_calls": dispatched.tool_calls,
        "refusals": dispatched.refusals,
        "repairs": dispatched.repairs,
        "cost": cost(answer.asked.spent),
    }


def _print(console: Console, answer: Answer) -> None:
    dispatched = answer.asked.dispatched
    sys.stderr.write("\n")
    sys.stderr.flush()
    if dispatched.output is not None:
        text = dispatched.output.model_dump_json(indent=2)
        console.print(printable(text), soft_wrap=True)
    if dispatched.fault is not None:
        console.print(f"{dispatched.fault.kind.value.upper()}  ", style="bold red", end="")
        console.print(printable(dispatched.fault.why), soft_wrap=True)
    spent = summary(answer.asked.spent, Allowance())
    told = f"run {answer.run_id}  {counted(dispatched.turns, 'turn')}, {counted(dispatched.tool_calls, 'tool call')}"
    refused = f", {dispatched.refusals} refused" if dispatched.refusals else ""
    console.print(printable(f"{told}{refused}{f'; {spent}' if spent else ''}"), style="dim", soft_wrap=True)
