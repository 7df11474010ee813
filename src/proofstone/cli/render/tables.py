"""`proofstone runs`: one line each.

Tables of text and figures, for a terminal.

Where agents stand that are asked whether they know what they are doing: the position table.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofstone.cli.render.gate import OUTCOME, state_of
from proofstone.common.text import printable
from proofstone.documents.markdown import visible
from proofstone.gate.models import RunView
from proofstone.gate.rules.position import statistics
from proofstone.plans.fields import shortened
from proofstone.runtime.run_index import BegunRun
from proofstone.supervision.models.ladder import AgentSeen
from proofstone.supervision.rules.position import table

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


def print_table(
    console: Console, title: str, columns: Sequence[str], texts: int, rows: Sequence[Sequence[str]]
) -> None:
    """The first columns are text, the others figures; a column in which nobody has anything is left out."""
    if not rows:
        return
    shown = [[visible(cell) for cell in row] for row in rows]
    kept = [number for number in range(len(columns)) if any(row[number] for row in shown)]
    widths = {number: max(len(row[number]) for row in (columns, *shown)) for number in kept}
    console.print(f"\n{title}", style="bold")
    for style, row in (("dim", columns), *(("", row) for row in shown)):
        cells = [f"{row[n]:<{widths[n]}}" if n < texts else f"{row[n]:>{widths[n]}}" for n in kept]
        console.print(printable(f"  {'  '.join(cells)}".rstrip()), style=style, soft_wrap=True)


def print_positions(console: Console, agents: Sequence[AgentSeen]) -> None:
    """Nothing, where nobody is asked."""
    (first, *headings), *rows = table((item.position for item in agents), time.time())
    columns = ("part", first, "at work", *headings)
    cells = [
        (one.part, agent, "yes" if one.at_work else "", *rest) for one, (agent, *rest) in zip(agents, rows, strict=True)
    ]
    print_table(console, "agents", columns, len(columns), cells)


def positions_document(agents: Sequence[AgentSeen]) -> dict[str, object]:
    """For a document that tells of a run; empty, where nobody is asked."""
    return {"agents_seen": [agent.model_dump(mode="json") for agent in agents]} if agents else {}
