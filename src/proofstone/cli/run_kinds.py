"""The runs of all commands except the gate, for commands that take any run: `runs`, `status` and `resume`.

A table holds what is specific to each command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofstone.app.gate import find_run
from proofstone.app.pipeline import RUNS as PIPELINE_RUNS
from proofstone.app.pipeline import RunRequest
from proofstone.app.plan_gate import RUNS as PLAN_RUNS
from proofstone.app.plan_gate import PlanGateRequest
from proofstone.app.runs import Runs
from proofstone.app.solve import RUNS as SOLVE_RUNS
from proofstone.app.solve import SolveRequest
from proofstone.cli.output import Output
from proofstone.cli.render.pipeline import print_run
from proofstone.cli.render.plan_gate import print_report
from proofstone.cli.render.solve import print_solve
from proofstone.cli.render.tables import positions_document, print_positions
from proofstone.cli.run import resume_run
from proofstone.cli.solve import Telling, resume_solve
from proofstone.cli.task_commands import speaker
from proofstone.cli.verify_plan import resume_plan
from proofstone.common.text import printable
from proofstone.errors import InputError
from proofstone.runtime.run_index import BegunRun
from proofstone.supervision.models.ladder import AgentSeen

if TYPE_CHECKING:
    from rich.console import Console


_LAST: Final = "last"
_CHILD_STATE: Final = ("not finished", "it is a part of another run, which continues it")
"""State and reason of a child run."""


class More(NamedTuple):
    """The budget of a resumed run."""

    budget: tuple[str, ...] = ()
    minutes: float | None = None


@dataclass(frozen=True)
class RunKind:
    """How to show and resume the runs of one command."""

    runs: Runs[Any, Any]
    shown: Callable[[Console, Any], None]
    """Prints the report."""
    resume: Callable[[Output, str, More], int]
    subject: Callable[[Any], Mapping[str, str]]
    """Returns what the run is about, by its setup."""
    resumes: str
    """The command that resumes a run."""
    answered: str
    """The options of that command that answer its questions."""
    retries: str = "which has no tasks"
    """Why a person cannot retry a task of the run."""

    @property
    def command(self) -> str:
        return self.runs.command

    def go_on(self, run_id: str) -> str:
        """Return the command that resumes the run."""
        return f"{self.resumes} {run_id}"


def _resume_solve(output: Output, run_id: str, more: More) -> int:
    if more.minutes is not None:
        raise InputError(
            f"--budget-minutes: {run_id} is a run of `proofstone solve`, whose controller decides by the time it has",
            hint=f"leave it out; or start a new run with `proofstone solve --seconds {60 * more.minutes:g}`",
        )
    return resume_solve(Telling(output), run_id, SolveRequest(budget=more.budget, by=speaker()))


KINDS: Final = (
    RunKind(
        runs=PLAN_RUNS,
        shown=print_report,
        resume=lambda output, run_id, more: resume_plan(
            output, run_id, PlanGateRequest(budget=more.budget, minutes=more.minutes, by=speaker())
        ),
        subject=lambda setup: {"plan": setup.plan_path},
        resumes="proofstone verify-plan --resume",
        answered='--answer "C1=…"',
    ),
    RunKind(
        runs=SOLVE_RUNS,
        shown=print_solve,
        resume=_resume_solve,
        subject=lambda setup: {"goal": setup.goal},
        resumes="proofstone solve --resume",
        answered='--answer "…"',
    ),
    RunKind(
        runs=PIPELINE_RUNS,
        shown=print_run,
        resume=lambda output, run_id, more: resume_run(
            output, run_id, RunRequest(budget=more.budget, minutes=more.minutes, by=speaker())
        ),
        subject=lambda setup: {"request": setup.request, "branch": setup.branch},
        resumes="proofstone resume",
        answered="",
        retries="which decides itself what to retry",
    ),
)


class Meant(NamedTuple):
    """A run, and the kind of its command."""

    run_id: str
    kind: RunKind


def run_meant(text: str) -> Meant | None:
    """Return the run that `text` means, if it is of one of these kinds; None if it is a run of the gate or unknown.
    `last` is the last run of all kinds."""
    if text == _LAST:
        last = max((Meant(_find_last(kind.runs.find), kind) for kind in KINDS), key=_run_id_of)
        return last if last.run_id > _find_last(find_run) else None
    matches = _exclude_child_runs([Meant(run_id, kind) for kind in KINDS if (run_id := kind.runs.named(text))])
    if len(matches) > 1:
        raise InputError(
            f"{text}: names several runs", hint=f"it could be: {', '.join(match.run_id for match in matches)}"
        )
    return matches[0] if matches else None


def show(output: Output, meant: Meant, agents: Sequence[AgentSeen] = ()) -> None:
    """Show the report of the run, or its state if it has none, and the state of its agents."""
    run_id, kind = meant
    report = kind.runs.report(run_id)
    if report is None:
        _show_state(output, meant, agents)
    elif output.json:
        output.document({**report.model_dump(mode="json"), **positions_document(agents)})
    else:
        kind.shown(output.results(), report)
        print_positions(output.results(), agents)


def _show_state(output: Output, meant: Meant, agents: Sequence[AgentSeen]) -> None:
    run_id, kind = meant
    view = kind.runs.view(run_id)
    state, why = _CHILD_STATE if view.setup.parent else (view.state, view.reason)
    if output.json:
        document = {"run_id": run_id, "command": kind.command, "state": state, "reason": why}
        output.document({**document, **positions_document(agents)})
        return
    reason = f": {why}" if why not in ("", state) else ""
    line = f"{run_id}  {state}{reason}; `{kind.go_on(run_id)}` continues it"
    output.results().print(printable(line), soft_wrap=True)
    print_positions(output.results(), agents)


def row(view: BegunRun[Any]) -> Mapping[str, object]:
    """Return a row of `proofstone runs --json`."""
    (kind,) = (known for known in KINDS if known.command == view.setup.command)
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


def _exclude_child_runs(matches: Sequence[Meant]) -> list[Meant]:
    """Remove runs that are parts of others in the list: their ids begin with the id of the whole run."""
    return [match for match in matches if not any(match.run_id.startswith(f"{other.run_id}-") for other in matches)]


def _run_id_of(meant: Meant) -> str:
    return meant.run_id
