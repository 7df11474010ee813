"""`proofstone ask`: ask one agent once. Its answer goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from proofstone.agents.executors.context import ExecutionContext
from proofstone.agents.executors.people import Terminal
from proofstone.agents.models import FaultKind
from proofstone.agents.roles.requests import build_example, build_role_schemas
from proofstone.agents.rules.budget import build_cost_fields, summarize_spending
from proofstone.app.ask import (
    AskRequest,
    AskResult,
    Explanation,
    OnInterrupt,
    ask_once,
    explain_question,
    find_role,
    refuse_to_run,
)
from proofstone.cli.options import (
    BudgetOption,
    ProfileOption,
    TokensOption,
    UsdOption,
    collect_backend_specs,
    collect_budget_limits,
    use_profile,
)
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption, RepoOption
from proofstone.cli.session import export_on_exit
from proofstone.cli.task_commands import require_text
from proofstone.common.models import Allowance, BudgetUsage
from proofstone.common.text import escape_control, pluralize
from proofstone.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console


app = typer.Typer(add_completion=False)

_EXIT_CODES: Final[Mapping[FaultKind, int]] = {
    FaultKind.DENIED: 2,
    FaultKind.BUDGET: 4,
    FaultKind.CANCELLED: 130,
}
"""The same exit codes as at the gate. Every other fault is 1."""


@app.command()
def ask(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="ROLE",
            help="The role: researcher:impact, reviewer:security, planner …; see `proofstone backends`.",
            show_default=False,
        ),
    ],
    request: Annotated[
        str | None,
        typer.Argument(
            metavar="REQUEST",
            help="The request: a text, or YAML or JSON with its fields; `@FILE` reads a file, `-` reads stdin.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schemas of the request and the answer; ask no agent.")
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Print a request to fill in, as YAML; ask no agent.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Print what the agent would be sent, with token counts; ask no agent."),
    ] = False,
    profile: ProfileOption = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="SPEC",
            help="The backend of the role; overrides the settings. Repeat it to add fallbacks.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=1, help="Stop after S seconds.")] = 600,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Ask one agent one question and print its answer, to try a role, a model or a prompt.

    The agent sees the last commit of the repository, has only the tools of its role, and can change nothing. The
    question, its messages and the results of its tools are recorded: see `proofstone audit last` and
    `proofstone ledger show`. `proofstone record last` writes them as a script.

    \b
      proofstone ask researcher:impact "where are passwords checked?" --backend api:openai:gpt-5
      proofstone ask reviewer:security --example >request.yaml
      proofstone ask reviewer:security @request.yaml
      proofstone ask planner @request.yaml --explain

    stdout has only the answer, as JSON. stderr shows what the agent says and does; -q turns that off.

    Exit code: 0 a valid answer; 1 no valid answer; 2 bad input, or the provider denies access; 4 the budget is
    exhausted; 130 interrupted.
    """
    use_profile(profile)
    role, focus = find_role(require_text("ROLE", agent))
    output = Output(json=as_json, quiet=quiet, no_color=no_color)
    if schema:
        output.print_document(build_role_schemas(role))
        return 0
    if example:
        sys.stdout.write(build_example(role, focus))
        return 0
    if request is None:
        raise InputError(
            "REQUEST is missing: what do you want to ask", hint=f"`proofstone ask {agent} --example` shows one"
        )
    text, source = _read_request(request)
    question = AskRequest(
        agent=agent,
        text=text,
        source=source,
        backends=collect_backend_specs(backend),
        budget=collect_budget_limits(budget, budget_tokens, budget_usd),
        seconds=seconds,
    )
    if explain:
        _print_explanation(output, explain_question(repo, question))
        return 0
    listen = Terminal() if sys.stdin.isatty() and not as_json and request != "-" else None
    live = _LiveAnswer(output.progress_console())
    with export_on_exit(output) as note_run:
        answer = ask_once(repo, question, live.site, _on_interrupt(output, live), listen=listen)
        live.end_line()
        note_run(answer.run_id)
        if as_json:
            output.print_document(_document(answer))
        else:
            _print(output, answer)
    fault = answer.reply.dispatched.fault
    return 0 if fault is None else _EXIT_CODES.get(fault.kind, 1)


def _print_explanation(output: Output, explanation: Explanation) -> None:
    """Print the parts of a prompt, each under its name and its tokens."""
    total = sum(part.tokens for part in explanation.parts)
    if output.json:
        parts = [{"name": part.name, "tokens": part.tokens, "text": part.text} for part in explanation.parts]
        head = {"role": explanation.agent, "backend": explanation.backend or None}
        output.print_document({**head, "tokens": total, "parts": parts})
        return
    for part in explanation.parts:
        sys.stdout.write(f"--- {part.name}: about {pluralize(part.tokens, 'token')}\n\n{_show_text(part.text)}\n\n")
    who = explanation.backend or "no backend is configured; this is what a program would be sent"
    sys.stdout.write(f"--- together: about {pluralize(total, 'token')} for {explanation.agent} ({who})\n")


def _show_text(text: str) -> str:
    """Return the text with characters escaped that could control the terminal."""
    return "\n".join(escape_control(line) for line in text.rstrip().splitlines())


class _LiveAnswer:
    """Show what the agent says and does, where progress goes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_within_line = False

    @property
    def site(self) -> ExecutionContext:
        return ExecutionContext(
            Path(), Path(), refuse_to_run, say=self._show_line, on_text=self._show_text, on_progress=self._show_action
        )

    def end_line(self) -> None:
        """End the line if the agent's last text did not."""
        if self._is_within_line:
            self._console.print()
        self._is_within_line = False

    def _show_line(self, line: str) -> None:
        self.end_line()
        self._console.print(escape_control(line), soft_wrap=True)

    def _show_text(self, text: str) -> None:
        if text:
            self._console.print(escape_control(text), end="", style="dim", soft_wrap=True)
            self._is_within_line = not text.endswith("\n")

    def _show_action(self, line: str) -> None:
        self.end_line()
        self._console.print(escape_control(line.replace("\n", " ")), style="cyan", soft_wrap=True)


def _on_interrupt(output: Output, live: _LiveAnswer) -> OnInterrupt:
    """Return a function that names an interrupted run and its cost, even with `--quiet`."""

    def report(run_id: str, spent: BudgetUsage) -> None:
        live.end_line()
        _print_run(replace(output, quiet=False).progress_console(), run_id, "interrupted", spent)

    return report


def _read_request(request: str) -> tuple[str, str]:
    """Return the request and the name of its source."""
    if request == "-":
        return require_text("stdin", sys.stdin.read()), "stdin"
    if not request.startswith("@"):
        return require_text("REQUEST", request), "REQUEST"
    path = Path(request[1:])
    try:
        return path.read_text("utf-8-sig"), str(path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", hint="`@FILE` names a file; write a text without the `@`"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8") from error


def _document(answer: AskResult) -> dict[str, object]:
    dispatched = answer.reply.dispatched
    return {
        "run_id": answer.run_id,
        "role": dispatched.occasion.agent,
        "model": dispatched.model,
        "output": dispatched.output.model_dump(mode="json") if dispatched.output else None,
        "fault": dispatched.fault.model_dump(mode="json") if dispatched.fault else None,
        "completion": dispatched.completion.model_dump(mode="json"),
        "dispatches": dispatched.occasion.dispatch,
        "turns": dispatched.turns,
        "tool_calls": dispatched.tool_calls,
        "refusals": dispatched.refusals,
        "repairs": dispatched.repairs,
        "mended": list(dispatched.mended),
        "cost": build_cost_fields(answer.reply.spent),
    }


def _safe_json(value: object) -> str:
    """Return readable JSON in which characters that could control the terminal are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def _print(output: Output, answer: AskResult) -> None:
    """Print the answer, the fault (even with `--quiet`), and the cost."""
    dispatched = answer.reply.dispatched
    if dispatched.output is not None:
        sys.stdout.write(_safe_json(dispatched.output.model_dump(mode="json")) + "\n")
        sys.stdout.flush()
    if dispatched.fault is not None:
        console = replace(output, quiet=False).progress_console()
        console.print(f"{dispatched.fault.kind.value.upper()}  ", style="bold red", end="")
        console.print(escape_control(dispatched.fault.why), soft_wrap=True)
    for note in dispatched.mended:
        output.progress_console().print(escape_control(f"mended  {note}"), style="yellow", soft_wrap=True)
    facts = [pluralize(dispatched.turns, "turn"), pluralize(dispatched.tool_calls, "tool call")]
    facts += [f"{dispatched.refusals} refused"] if dispatched.refusals else []
    facts += [pluralize(dispatched.repairs, "repair")] if dispatched.repairs else []
    facts += ["asked twice"] if dispatched.occasion.dispatch > 1 else []
    _print_run(output.progress_console(), answer.run_id, ", ".join(facts), answer.reply.spent)


def _print_run(console: Console, run_id: str, facts: str, spent: BudgetUsage) -> None:
    used = summarize_spending(spent, Allowance())
    console.print(
        escape_control(f"run {run_id}  {'; '.join(part for part in (facts, used) if part)}"),
        style="dim",
        soft_wrap=True,
    )
