"""`proofstone runs`: one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofstone.contracts.gate_report import RunView
from proofstone.core.gate.page_text import visible
from proofstone.core.gate.position import statistics
from proofstone.core.plan.problems import shortened
from proofstone.engine.begun import BegunRun
from proofstone.surfaces.cli.text import printable
from proofstone.surfaces.report.gate import OUTCOME, state_of

if TYPE_CHECKING:
    from rich.console import Console

_STATES: Final = {
    "PROCEED": "green",
    "REVISE": "yellow",
    "RETHINK": "red",
    "accepted": "green",
    "partial": "yellow",
    "abandoned": "red",
    "passed": "green",
    "failed": "red",
    "halted": "red",
    "running": "cyan",
}
_CALLED: Final = {"verify-plan": "plan gate"}
"""Where a command's runs are not called like the command."""
_LONG: Final = 100


class _Line(NamedTuple):
    run_id: str
    started_at: str
    state: str
    style: str
    about: str


def print_runs(console: Console, views: Sequence[RunView | BegunRun[Any]]) -> None:
    if not views:
        console.print(
            "no runs yet; `proofstone run`, `proofstone gate`, `proofstone verify-plan` or `proofstone solve` "
            "starts one"
        )
        return
    lines = [_of_gate(view) if isinstance(view, RunView) else _of_other(view) for view in views]
    width = max(len(line.state) for line in lines)
    for line in lines:
        console.print(f"{line.run_id}  {line.started_at[:16].replace('T', ' ')}  ", end="", soft_wrap=True)
        console.print(f"{line.state:<{width}}", style=line.style, end="")
        console.print(printable(f"  {line.about}"), soft_wrap=True)


def _of_gate(view: RunView) -> _Line:
    counted = statistics(view)
    style = OUTCOME.get(view.outcome, "") if view.outcome else "cyan" if view.running else "yellow"
    about = f"{counted.passed}/{counted.total}  {view.plan.title}  ({view.plan_path})"
    return _Line(view.run_id, view.started_at, state_of(view), style, about)


def _of_other(view: BegunRun[Any]) -> _Line:
    style = _STATES.get(view.state, "yellow")
    command, about = view.setup.command, visible(shortened(view.setup.about, _LONG))
    return _Line(view.run_id, view.started_at, view.state, style, f"{_CALLED.get(command, command)}  ({about})")
