"""Runs of other commands than the gate, where any run may be meant: `proofstone runs`, `proofstone status` and
`proofstone resume`
take all of them. What each of these commands has of its own stands in one table.
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
_OF_A_PART: Final = ("not finished", "it is a part of another run, which goes on with it")
"""Parts are not listed."""


class More(NamedTuple):
    """What a run that goes on may spend."""

    budget: tuple[str, ...] = ()
    minutes: float | None = None


@dataclass(frozen=True)
class RunKind:
    runs: Runs[Any, Any]
    shown: Callable[[Console, Any], None]
    """Prints what `report` gives."""
    resume: Callable[[Output, str, More], int]
    subject: Callable[[Any], Mapping[str, str]]
    """What the run is about, by what its setup says."""
    resumes: str
    """The command that goes on with it."""
    answered: str
    """The options of that command that answer what it asks."""
    retries: str = "which has no tasks"
    """Why a person has no task of it tried again."""

    @property
    def command(self) -> str:
        return self.runs.command

    def go_on(self, run_id: str) -> str:
        return f"{self.resumes} {run_id}"


def _resume_solve(output: Output, run_id: str, more: More) -> int:
    if more.minutes is not None:
        raise InputError(
            f"--budget-minutes: {run_id} is of `proofstone solve`, whose time is a part of what its controller "
            f"decides by",
            hint=f"go on without it; or begin anew with `proofstone solve --seconds {60 * more.minutes:g}`",
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
        retries="which decides itself what is tried again",
    ),
)


class Meant(NamedTuple):
    run_id: str
    kind: RunKind


def run_meant(text: str) -> Meant | None:
    """The run that is meant, if it is of one of these kinds; None: a run of the gate is, or none. `last` is the last of
    all of them."""
    if text == _LAST:
        last = max((Meant(_last(kind.runs.find), kind) for kind in KINDS), key=_begun)
        return last if last.run_id > _last(find_run) else None
    found = _whole([Meant(run_id, kind) for kind in KINDS if (run_id := kind.runs.named(text))])
    if len(found) > 1:
        raise InputError(f"{text}: names several runs", hint=f"it could be: {', '.join(item.run_id for item in found)}")
    return found[0] if found else None


def show(output: Output, meant: Meant, agents: Sequence[AgentSeen] = ()) -> None:
    """Where it stands: its report, if it has come to that; and where its agents stand."""
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
    state, said = _OF_A_PART if view.setup.parent else (view.state, view.reason)
    if output.json:
        told = {"run_id": run_id, "command": kind.command, "state": state, "reason": said}
        output.document({**told, **positions_document(agents)})
        return
    reason = f": {said}" if said not in ("", state) else ""
    line = f"{run_id}  {state}{reason}; `{kind.go_on(run_id)}` goes on"
    output.results().print(printable(line), soft_wrap=True)
    print_positions(output.results(), agents)


def row(view: BegunRun[Any]) -> Mapping[str, object]:
    """Of `proofstone runs --json`."""
    (kind,) = (item for item in KINDS if item.command == view.setup.command)
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


def _last(find: Callable[[str], str]) -> str:
    """Ids begin with the time, so that the last one is the largest; where there is none, nothing is less than any."""
    try:
        return find(_LAST)
    except InputError:
        return ""


def _whole(found: Sequence[Meant]) -> list[Meant]:
    """Without the parts of others among them: their ids begin with the id of the whole."""
    return [item for item in found if not any(item.run_id.startswith(f"{other.run_id}-") for other in found)]


def _begun(meant: Meant) -> str:
    return meant.run_id
