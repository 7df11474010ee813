"""The runs of all commands, for commands that take any run: `runs`, `status`, `resume`, `answer` and `cancel`.

A table holds what is specific to each command.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofstone.app.check import CHECK_RUNS
from proofstone.app.gate import GATE_RUNS, find_task, read_run_view, resume_gate
from proofstone.app.pipeline import PIPELINE_RUNS, PipelineRequest
from proofstone.app.plan_gate import PLAN_GATE_RUNS, PlanGateRequest
from proofstone.app.runs import RunCatalog, find_started_run
from proofstone.app.solve import SOLVE_RUNS, SolveRequest
from proofstone.cli.gate_session import GateMode, GateSession
from proofstone.cli.output import Output
from proofstone.cli.render.check import print_check_report
from proofstone.cli.render.gate import print_status
from proofstone.cli.render.pipeline import print_pipeline_report
from proofstone.cli.render.plan_gate import print_plan_report
from proofstone.cli.render.solve import print_solve_report
from proofstone.cli.render.tables import build_positions_document, print_positions
from proofstone.cli.run import resume_pipeline_run
from proofstone.cli.solve import SolveOutput, resume_solve_command
from proofstone.cli.task_commands import login_name, refuse_executors, require_text
from proofstone.cli.verify_plan import resume_plan_command
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.gate.models import RunView
from proofstone.gate.request import ResumeRequest
from proofstone.gate.rules.questions import list_answers, list_waiting_tasks
from proofstone.ledger.query import RunReference
from proofstone.runtime.run_index import CANCELLED_OUTCOME, RunSummary
from proofstone.supervision.models.ladder import AgentPosition

if TYPE_CHECKING:
    from rich.console import Console


_CHILD_STATE: Final = ("not finished", "it is a part of another run, which continues it")
"""State and reason of a child run."""


class ResumeOptions(NamedTuple):
    """The options of `proofstone resume`."""

    budget: tuple[str, ...] = ()
    minutes: float | None = None
    retry: tuple[str, ...] = ()
    note: str = ""
    seconds: float | None = None
    waits: bool = True
    mode: GateMode = GateMode.AUTONOMOUS


@dataclass(frozen=True)
class RunKind:
    """How to show and resume the runs of one command."""

    runs: RunCatalog[Any, Any]
    print_report: Callable[[Console, Any], None]
    """Prints the report."""
    resume: Callable[[Output, str, ResumeOptions], int]
    subject: Callable[[Any], Mapping[str, str]]
    """Returns what the run is about, by its setup."""
    no_retry_reason: str = "which has no tasks"
    """Why a person cannot retry a task of the run; empty if it is possible."""
    show: Callable[[Output, Any, Sequence[AgentPosition]], None] | None = None
    """Shows the report, if that is more than printing it."""

    @property
    def command(self) -> str:
        return self.runs.command


def _resume_solve(output: Output, run_id: str, more: ResumeOptions) -> int:
    if more.minutes is not None:
        raise InputError(
            f"--budget-minutes: {run_id} is a run of `proofstone solve`, whose controller decides by the time it has",
            hint=f"leave it out; or start a new run with `proofstone solve --seconds {60 * more.minutes:g}`",
        )
    return resume_solve_command(SolveOutput(output), run_id, SolveRequest(budget=more.budget, by=login_name()))


def _resume_gate(output: Output, run_id: str, more: ResumeOptions) -> int:
    if more.note and not more.retry:
        raise InputError("--note needs --retry", hint="name the task: --retry task-03")
    if more.seconds is not None and not more.retry:
        raise InputError("--timeout needs --retry", hint="name the task: --retry task-03 --timeout 20m")
    request = ResumeRequest(
        retry=_find_tasks(run_id, more.retry),
        note=require_text("--note", more.note),
        seconds=more.seconds,
        by=login_name(),
        minutes=more.minutes,
        budget=more.budget,
        waits_for_person=more.waits,
    )
    session = GateSession(output, more.mode, wait=more.waits)
    return session.follow(lambda watching, listen: resume_gate(run_id, request, watching, listen=listen))


def _find_tasks(run_id: str, names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    refuse_executors()
    view = read_run_view(run_id)
    return tuple(name if name == "all" else find_task(view, name) for name in names)


def _refuse_to_resume_check(_output: Output, run_id: str, _more: ResumeOptions) -> int:
    raise InputError(
        f"{run_id} is a check, which cannot be resumed",
        hint="run `proofstone check` again; results that still hold are taken from the cache",
    )


def _show_gate(output: Output, view: RunView, agents: Sequence[AgentPosition]) -> None:
    if output.json:
        questions = [
            {
                "task": task.record.id,
                "asks": task.asks,
                "answers": [answer.command for answer in list_answers(view.run_id, task, view.branch)],
            }
            for task in list_waiting_tasks(view)
        ]
        document = {**view.model_dump(mode="json"), "state": view.state, "asked": questions}
        output.print_document({**document, **build_positions_document(agents)})
    else:
        print_status(output.result_console(), view)
        print_positions(output.result_console(), agents)


RUN_KINDS: Final = (
    RunKind(
        runs=CHECK_RUNS,
        print_report=print_check_report,
        resume=_refuse_to_resume_check,
        subject=lambda setup: {"tree": setup.tree},
    ),
    RunKind(
        runs=GATE_RUNS,
        print_report=print_status,
        resume=_resume_gate,
        subject=lambda setup: {"plan": setup.plan_path, "branch": setup.branch},
        no_retry_reason="",
        show=_show_gate,
    ),
    RunKind(
        runs=PLAN_GATE_RUNS,
        print_report=print_plan_report,
        resume=lambda output, run_id, more: resume_plan_command(
            output, run_id, PlanGateRequest(budget=more.budget, minutes=more.minutes, by=login_name())
        ),
        subject=lambda setup: {"plan": setup.plan_path},
    ),
    RunKind(
        runs=SOLVE_RUNS,
        print_report=print_solve_report,
        resume=_resume_solve,
        subject=lambda setup: {"goal": setup.goal},
    ),
    RunKind(
        runs=PIPELINE_RUNS,
        print_report=print_pipeline_report,
        resume=lambda output, run_id, more: resume_pipeline_run(
            output, run_id, PipelineRequest(budget=more.budget, minutes=more.minutes, by=login_name())
        ),
        subject=lambda setup: {"request": setup.request, "branch": setup.branch},
        no_retry_reason="which decides itself what to retry",
    ),
)


KINDS_BY_COMMAND: Final = {kind.command: kind for kind in RUN_KINDS}
RESUMABLE_COMMANDS: Final = tuple(command for command in KINDS_BY_COMMAND if command != CHECK_RUNS.command)


class RunMatch(NamedTuple):
    """A run, and the kind of its command."""

    run: RunReference
    kind: RunKind

    @property
    def run_id(self) -> str:
        return self.run.run_id


def match_run(text: str, commands: Collection[str] = RESUMABLE_COMMANDS) -> RunMatch:
    """Return the run that `text` means, if one of these commands started it."""
    run = find_started_run(require_text("RUN", text), commands)
    return RunMatch(run, KINDS_BY_COMMAND[run.command])


def match_whole_run(text: str) -> RunMatch:
    """Return the run that `text` means, or the run that it is a part of."""
    match = match_run(text)
    return match_run(match.run.parent) if match.run.parent else match


def show_run(output: Output, match: RunMatch, agents: Sequence[AgentPosition] = ()) -> None:
    """Show the report of the run, or its state if it has none, and the state of its agents."""
    kind = match.kind
    report = kind.runs.read_report(match.run_id)
    if report is not None and kind.show is not None:
        kind.show(output, report, agents)
    elif report is None or kind.runs.read_view(match.run_id).state == CANCELLED_OUTCOME:
        _show_state(output, match, agents)  # the last report of a cancelled run would say how to continue it
    elif output.json:
        output.print_document({**report.model_dump(mode="json"), **build_positions_document(agents)})
    else:
        kind.print_report(output.result_console(), report)
        print_positions(output.result_console(), agents)


def _show_state(output: Output, match: RunMatch, agents: Sequence[AgentPosition]) -> None:
    run_id, kind = match.run_id, match.kind
    view = kind.runs.read_view(run_id)
    state, why = _CHILD_STATE if view.setup.parent else (view.state, view.reason)
    if output.json:
        document = {"run_id": run_id, "command": kind.command, "state": state, "reason": why}
        output.print_document({**document, **build_positions_document(agents)})
        return
    reason = f": {why}" if why not in ("", state) else ""
    can_resume = state != CANCELLED_OUTCOME and kind.command in RESUMABLE_COMMANDS
    more = f"; `proofstone resume {run_id}` continues it" if can_resume else ""
    output.result_console().print(escape_control(f"{run_id}  {state}{reason}{more}"), soft_wrap=True)
    print_positions(output.result_console(), agents)


def run_document(view: RunSummary[Any]) -> Mapping[str, object]:
    """Return a row of `proofstone runs --json`."""
    return {
        "run_id": view.run_id,
        "command": view.setup.command,
        "state": view.state,
        "reason": view.reason,
        **KINDS_BY_COMMAND[view.setup.command].subject(view.setup),
        **view.details,
        "repository": view.setup.repository,
        "started_at": view.started_at,
        "updated_at": view.updated_at,
    }
