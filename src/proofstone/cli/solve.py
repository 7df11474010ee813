"""`proofstone solve`: pursue a goal in rounds; each plan builds on the result of the last."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from proofstone.agents.executors.people import ReadLine
from proofstone.agents.roles.models.solve_messages import FinalStatus
from proofstone.app.audit import audit_ended_run
from proofstone.app.solve import SOLVE_RUNS, SolveRequest, build_solve_run, resume_solve_run
from proofstone.auditor.models import AuditFinding
from proofstone.cli.options import (
    BudgetOption,
    ResumeOption,
    ShowOption,
    TokensOption,
    UsdOption,
    collect_backend_specs,
    collect_budget_limits,
    read_goal,
    refuse_unquoted_words,
)
from proofstone.cli.output import (
    JsonOption,
    NoColorOption,
    Output,
    QuietOption,
    RepoOption,
    VerboseOption,
    read_typed_line,
)
from proofstone.cli.render.audit import print_audit_findings
from proofstone.cli.render.live_solve import LiveSolve
from proofstone.cli.render.solve import print_solve_report
from proofstone.cli.render.solve_page import render_markdown, render_svg_plot
from proofstone.cli.session import AgentRunSession, refuse_missing_folder
from proofstone.cli.task_commands import login_name, refuse_executors, require_text
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.machine.files import write_atomic
from proofstone.solve.agents import SolveObserver
from proofstone.solve.models import SolveReport
from proofstone.solve.rules.gradient import POLICIES
from proofstone.solve.run import AskUser, SolveRun

app = typer.Typer(add_completion=False)

SOLVE_EXIT_CODES: Final = {FinalStatus.ACCEPTED: 0, FinalStatus.PARTIAL: 1, FinalStatus.ABANDONED: 1}
EXIT_WAITING: Final = 3

SolveRunFactory = Callable[[SolveObserver, AskUser, ReadLine | None], AbstractContextManager[SolveRun]]


@app.command("solve", context_settings={"allow_extra_args": True})
def solve(
    context: typer.Context,
    goal: Annotated[
        str | None,
        typer.Argument(metavar="GOAL", help="What you want, in your own words; `-` reads stdin.", show_default=False),
    ] = None,
    goal_file: Annotated[
        Path | None,
        typer.Option("--goal-file", metavar="FILE", help="Read the goal from this file.", show_default=False),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="[ROLE=]SPEC",
            help="The backend; overrides the settings: `api:openai:gpt-5` for all roles, or `executor=…` for one. "
            "Can be repeated.",
            show_default=False,
        ),
    ] = None,
    max_replans: Annotated[
        int | None,
        typer.Option("--max-replans", min=0, metavar="N", help="How often it may plan again.", show_default=False),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="N", help="How long it may take; part of Ω.", show_default=False),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help=f"The decision table: {', '.join(POLICIES)}. `proofstone simulate` compares them.",
            show_default=False,
        ),
    ] = None,
    no_memory: Annotated[
        bool, typer.Option("--no-memory", help="Neither use nor write the memory of earlier tasks.")
    ] = False,
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer", metavar="TEXT", help="Your answer to a question, asked now or later.", show_default=False
        ),
    ] = None,
    resume: ResumeOption = None,
    show: ShowOption = None,
    plot: Annotated[bool, typer.Option("--plot", help="Plot the figures of each round below the result.")] = False,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Draw the figures in this file.", show_default=False),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the full report to this file: Markdown, or JSON if it ends in .json.",
            show_default=False,
        ),
    ] = None,
    budget: BudgetOption = None,
    budget_tokens: TokensOption = None,
    budget_usd: UsdOption = None,
    repo: RepoOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Pursue a goal in rounds; each plan builds on the result of the last.

    A planner defines success and divides the work. Executors do it in a copy of your files, in the sandbox. Criteria
    that can be run or looked up are; only the rest is judged by an agent. After each round, code measures the distance
    to the goal and decides how the next plan must differ: it is not a blind retry. When the budget is exhausted, you
    get the work so far and suggestions for the next step.

    \b
      proofstone solve "make the greeting polite" --backend cli:claude
      proofstone solve --goal-file GOAL.md --max-replans 5 --seconds 900 --plot
      proofstone solve --resume last --answer "the German one"    when a question is waiting
      proofstone solve --show last --svg loss.svg                 the result, and the picture

    \b
    After each round it shows
      D   distance: how much of the goal is missing; only 0 is accepted
      P   how far the approach is to blame: 0 an obstacle was, 1 the approach is wrong
      ∇L  the change of the loss L: below 0 it approaches the goal
      Ω   how much of the budget is spent, in replans and time; from 0.8 on it stops trying

    Nothing is committed, and your files stay as they are: the changes are kept as a patch, and the report says how to
    apply it. Lessons go to the memory (`proofstone memory list`), everything else to the ledger.

    Exit code: 0 accepted; 1 partial or abandoned; 2 bad input; 3 a question is waiting; 4 the budget is exhausted;
    130 interrupted. Nothing is lost: --resume continues, even after a crash.
    """
    output = Output(json=as_json, quiet=quiet, no_color=no_color, verbose=verbose)
    telling = SolveOutput(output, plot, svg, report)
    refuse_unquoted_words("solve", goal, context.args)
    _refuse_several(goal, goal_file, resume, show)
    telling.refuse_unwritable(goal_file)
    start_options = {
        "--backend": backend,
        "--policy": policy,
        "--max-replans": max_replans,
        "--seconds": seconds,
        "--no-memory": no_memory or None,
    }
    limits = collect_budget_limits(budget, budget_tokens, budget_usd)
    if show is not None:
        _refuse_with("--show asks no agent", {**start_options, "--answer": answer, "--budget": limits or None})
        return _show(telling, SOLVE_RUNS.find(require_text("--show", show)))
    request = SolveRequest(
        backends=collect_backend_specs(backend),
        max_replans=max_replans,
        seconds=_seconds(seconds),
        policy=policy if policy is None else require_text("--policy", policy),
        uses_memory=not no_memory,
        budget=limits,
        answer=_answer(answer),
        by=login_name(),
    )
    if resume is None:
        text = read_goal(goal, goal_file)
        return _follow(
            telling, lambda live, ask, listen: build_solve_run(repo, text, request, live, ask, listen=listen)
        )
    _refuse_with("--resume keeps the options that the run was started with", start_options)
    return resume_solve_command(telling, SOLVE_RUNS.find(require_text("--resume", resume)), request)


@dataclass(frozen=True)
class SolveOutput:
    """How to print the result, and which files to write."""

    output: Output
    plot: bool = False
    svg: Path | None = None
    report: Path | None = None

    def refuse_unwritable(self, goal_file: Path | None) -> None:
        """Refuse options that conflict and files that cannot be written, before the run begins."""
        if self.plot and self.output.json:
            raise InputError("--plot cannot be combined with --json", hint="use --svg FILE instead")
        for option, file in (("--svg", self.svg), ("--report", self.report)):
            if file is None:
                continue
            refuse_missing_folder(option, file)
            if file.is_dir():
                raise InputError(f"{option} {file}: is a folder", hint="name a file in it")
            if goal_file is not None and file.resolve() == goal_file.resolve():
                raise InputError(f"{option} {file}: is the goal itself", hint="name another file")
        if self.svg is not None and self.report is not None and self.svg.resolve() == self.report.resolve():
            raise InputError(f"--svg and --report are both {self.svg}", hint="name two files")

    def print_result(self, report: SolveReport, findings: Sequence[AuditFinding] = ()) -> int:
        """Print the result, write the files, and return the exit code."""
        if self.output.json:
            self.output.print_document(report.model_dump(mode="json"))
        else:
            sys.stderr.flush()
            print_solve_report(
                self.output.result_console(), report, self.plot, self.report, verbose=self.output.verbose
            )
            print_audit_findings(self.output.result_console(), findings)
        # Write files last: if that fails, the result has been printed already.
        again = f"name another file: proofstone solve --show {report.run_id}"
        if self.svg is not None:
            write_atomic(self.svg, render_svg_plot(report).encode(), hint=f"{again} --svg FILE")
        if self.report is not None:
            write_atomic(self.report, _format_report(report, self.report).encode(), hint=f"{again} --report FILE")
        return SOLVE_EXIT_CODES[report.result.status] if report.result else EXIT_WAITING


def resume_solve_command(telling: SolveOutput, run_id: str, request: SolveRequest) -> int:
    """Resume a run. If it has ended, print its result."""
    ended = SOLVE_RUNS.read_report(run_id)
    if ended is not None and ended.result is not None:
        if request.answer:
            raise InputError(
                f"{run_id} has ended: {ended.result.status}",
                hint=f"proofstone solve --show {run_id} shows its result",
            )
        return telling.print_result(ended)
    return _follow(telling, lambda live, ask, listen: resume_solve_run(run_id, request, live, ask, listen=listen))


def _follow(telling: SolveOutput, begin: SolveRunFactory) -> int:
    session = AgentRunSession(telling.output, "solve")
    console = telling.output.progress_console()
    live = LiveSolve(console, interactive=console.is_terminal, verbose=telling.output.verbose)

    def ask(question: str) -> str:
        """Ask at this terminal; an empty line gives no answer."""
        if not session.can_ask:
            return ""
        loud = session.question_console()
        loud.print(escape_control(f"\n{question}"), style="bold yellow", soft_wrap=True)
        loud.print("answer in your own words; an empty line leaves the question", style="dim")
        return require_text("your answer", read_typed_line() or "")

    def tell(report: SolveReport) -> int:
        if report.unused_answer:
            session.warn("there was no question: your answer was not used")
        return telling.print_result(*audit_ended_run(report))

    return session.follow(
        begin(live, ask, session.listen),
        live,
        run_id=lambda run: run.run_id,
        through=lambda run: run.run(),
        tell=tell,
    )


def _show(telling: SolveOutput, run_id: str) -> int:
    report = SOLVE_RUNS.read_report(run_id)
    if report is None:
        raise InputError(
            f"{run_id}: has no result and no question yet", hint=f"`proofstone solve --resume {run_id}` continues it"
        )
    return telling.print_result(report)


def _format_report(report: SolveReport, into: Path) -> str:
    """Return the report in the format that the file name asks for."""
    if into.suffix.lower() == ".json":
        return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    return render_markdown(report)


# Checks of the options.


def _refuse_several(goal: str | None, goal_file: Path | None, resume: str | None, show: str | None) -> None:
    given = {"GOAL": goal, "--goal-file": goal_file, "--resume": resume, "--show": show}
    names = [name for name, value in given.items() if value is not None]
    if not names:
        raise InputError(
            "GOAL is missing: say what you want",
            hint='proofstone solve "what you want"; or --goal-file, --resume, --show',
        )
    if len(names) > 1:
        raise InputError(f"{' and '.join(names)} cannot be combined", hint="give only one of them")


def _refuse_with(why: str, options: Mapping[str, object]) -> None:
    names = [name for name, value in options.items() if value is not None]
    if names:
        raise InputError(why, hint=f"leave {' and '.join(names)} out")


def _seconds(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise InputError(f"--seconds {value:g}: must not be negative", hint="for instance --seconds 600")
    return value


def _answer(text: str | None) -> str:
    if text is None:
        return ""
    refuse_executors()
    if not require_text("--answer", text).strip():
        raise InputError("--answer: is empty", hint='for instance --answer "the German one"')
    return text
