"""The runs of all commands except the gate, for commands that take any run: `runs`, `status` and `resume`.

A table holds what is specific to each command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofstone.app.gate import find_run
from proofstone.app.pipeline import PIPELINE_RUNS, PipelineRequest
from proofstone.app.plan_gate import PLAN_GATE_RUNS, PlanGateRequest
from proofstone.app.runs import RunCatalog
from proofstone.app.solve import SOLVE_RUNS, SolveRequest
from proofstone.cli.output import Output
from proofstone.cli.render.pipeline import print_pipeline_report
from proofstone.cli.render.plan_gate import print_plan_report
from proofstone.cli.render.solve import print_solve_report
from proofstone.cli.render.tables import build_positions_document, print_positions
from proofstone.cli.run import resume_pipeline_run
from proofstone.cli.solve import SolveOutput, resume_solve_command
from proofstone.cli.task_commands import login_name
from proofstone.cli.verify_plan import resume_plan_command
from proofstone.common.text import escape_control
from proofstone.errors import InputError
from proofstone.runtime.run_index import RunSummary
from proofstone.supervision.models.ladder import AgentPosition

if TYPE_CHECKING:
    from rich.console import Console


_LAST: Final = "last"
_CHILD_STATE: Final = ("not finished", "it is a part of another run, which continues it")
"""State and reason of a child run."""


class ResumeBudget(NamedTuple):
    """The budget of a resumed run."""

    budget: tuple[str, ...] = ()
    minutes: float | None = None


@dataclass(frozen=True)
class RunKind:
    """How to show and resume the runs of one command."""

    runs: RunCatalog[Any, Any]
    print_report: Callable[[Console, Any], None]
    """Prints the report."""
    resume: Callable[[Output, str, ResumeBudget], int]
    subject: Callable[[Any], Mapping[str, str]]
    """Returns what the run is about, by its setup."""
    resume_prefix: str
    """The command that resumes a run."""
    answer_options: str
    """The options of that command that answer its questions."""
    no_retry_reason: str = "which has no tasks"
    """Why a person cannot retry a task of the run."""

    @property
    def command(self) -> str:
        return self.runs.command

    def resume_command(self, run_id: str) -> str:
        """Return the command that resumes the run."""
        return f"{self.resume_prefix} {run_id}"


def _resume_solve(output: Output, run_id: str, more: ResumeBudget) -> int:
    if more.minutes is not None:
        raise InputError(
            f"--budget-minutes: {run_id} is a run of `proofstone solve`, whose controller decides by the time it has",
            hint=f"leave it out; or start a new run with `proofstone solve --seconds {60 * more.minutes:g}`",
        )
    return resume_solve_command(SolveOutput(output), run_id, SolveRequest(budget=more.budget, by=login_name()))


RUN_KINDS: Final = (
    RunKind(
        runs=PLAN_GATE_RUNS,
        print_report=print_plan_report,
        resume=lambda output, run_id, more: resume_plan_command(
            output, run_id, PlanGateRequest(budget=more.budget, minutes=more.minutes, by=login_name())
        ),
        subject=lambda setup: {"plan": setup.plan_path},
        resume_prefix="proofstone verify-plan --resume",
        answer_options='--answer "C1=…"',
    ),
    RunKind(
        runs=SOLVE_RUNS,
        print_report=print_solve_report,
        resume=_resume_solve,
        subject=lambda setup: {"goal": setup.goal},
        resume_prefix="proofstone solve --resume",
        answer_options='--answer "…"',
    ),
    RunKind(
        runs=PIPELINE_RUNS,
        print_report=print_pipeline_report,
        resume=lambda output, run_id, more: resume_pipeline_run(
            output, run_id, PipelineRequest(budget=more.budget, minutes=more.minutes, by=login_name())
        ),
        subject=lambda setup: {"request": setup.request, "branch": setup.branch},
        resume_prefix="proofstone resume",
        answer_options="",
        no_retry_reason="which decides itself what to retry",
    ),
)


class RunMatch(NamedTuple):
    """A run, and the kind of its command."""

    run_id: str
    kind: RunKind


def match_run(text: str) -> RunMatch | None:
    """Return the run that `text` means, if it is of one of these kinds; None if it is a run of the gate or unknown.
    `last` is the last run of all kinds."""
    if text == _LAST:
        last = max((RunMatch(_find_last(kind.runs.find), kind) for kind in RUN_KINDS), key=_run_id_of)
        return last if last.run_id > _find_last(find_run) else None
    matches = _exclude_child_runs(
        [RunMatch(run_id, kind) for kind in RUN_KINDS if (run_id := kind.runs.find_named(text))]
    )
    if len(matches) > 1:
        raise InputError(
            f"{text}: names several runs", hint=f"it could be: {', '.join(match.run_id for match in matches)}"
        )
    return matches[0] if matches else None


def show_run(output: Output, meant: RunMatch, agents: Sequence[AgentPosition] = ()) -> None:
    """Show the report of the run, or its state if it has none, and the state of its agents."""
    run_id, kind = meant
    report = kind.runs.read_report(run_id)
    if report is None:
        _show_state(output, meant, agents)
    elif output.json:
        output.print_document({**report.model_dump(mode="json"), **build_positions_document(agents)})
    else:
        kind.print_report(output.result_console(), report)
        print_positions(output.result_console(), agents)


def _show_state(output: Output, meant: RunMatch, agents: Sequence[AgentPosition]) -> None:
    run_id, kind = meant
    view = kind.runs.read_view(run_id)
    state, why = _CHILD_STATE if view.setup.parent else (view.state, view.reason)
    if output.json:
        document = {"run_id": run_id, "command": kind.command, "state": state, "reason": why}
        output.print_document({**document, **build_positions_document(agents)})
        return
    reason = f": {why}" if why not in ("", state) else ""
    line = f"{run_id}  {state}{reason}; `{kind.resume_command(run_id)}` continues it"
    output.result_console().print(escape_control(line), soft_wrap=True)
    print_positions(output.result_console(), agents)


def run_document(view: RunSummary[Any]) -> Mapping[str, object]:
    """Return a row of `proofstone runs --json`."""
    (kind,) = (known for known in RUN_KINDS if known.command == view.setup.command)
    return {
        "run_id": view.run_id,
        "command": view.setup.command,
        "state": view.state,
        "reason": view.reason,
        **kind.subject(view.setup),
        "repository": view.setup.repository,
        "started_at": view.started_at,
        "updated_at": view.updated_at,
    }


def _find_last(find: Callable[[str], str]) -> str:
    """Return the id of the last run; empty if there is none. Ids begin with the time, so the last run has the largest
    id."""
    try:
        return find(_LAST)
    except InputError:
        return ""


def _exclude_child_runs(matches: Sequence[RunMatch]) -> list[RunMatch]:
    """Remove runs that are parts of others in the list: their ids begin with the id of the whole run."""
    return [match for match in matches if not any(match.run_id.startswith(f"{other.run_id}-") for other in matches)]


def _run_id_of(meant: RunMatch) -> str:
    return meant.run_id
