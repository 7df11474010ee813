"""Print tables: the list of runs, text with figures, and the positions of agents."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proofstone.cli.render.gate import OUTCOME_STYLES, describe_state
from proofstone.common.text import escape_control
from proofstone.documents.markdown import make_visible
from proofstone.gate.models import RunView
from proofstone.gate.rules.progress import count_tasks
from proofstone.plans.fields import shorten_text
from proofstone.runtime.run_index import RunSummary
from proofstone.supervision.models.ladder import AgentPosition
from proofstone.supervision.rules.position import build_position_table

if TYPE_CHECKING:
    from rich.console import Console


_STATE_STYLES: Final = {
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
_KIND_NAMES: Final = {"verify-plan": "plan gate"}
"""Names for runs that are not called like their command."""
_MAX_TEXT: Final = 100


class _RunLine(NamedTuple):
    """A line of `proofstone runs`."""

    run_id: str
    started_at: str
    state: str
    style: str
    about: str


def print_runs(console: Console, views: Sequence[RunView | RunSummary[Any]]) -> None:
    """Print one line for each run."""
    if not views:
        console.print(
            "no runs yet; `proofstone run`, `proofstone gate`, `proofstone verify-plan` or `proofstone solve` "
            "starts one"
        )
        return
    lines = [_gate_line(view) if isinstance(view, RunView) else _run_line(view) for view in views]
    width = max(len(line.state) for line in lines)
    for line in lines:
        console.print(f"{line.run_id}  {line.started_at[:16].replace('T', ' ')}  ", end="", soft_wrap=True)
        console.print(f"{line.state:<{width}}", style=line.style, end="")
        console.print(escape_control(f"  {line.about}"), soft_wrap=True)


def _gate_line(view: RunView) -> _RunLine:
    counts = count_tasks(view)
    style = OUTCOME_STYLES.get(view.outcome, "") if view.outcome else "cyan" if view.running else "yellow"
    about = f"{counts.passed}/{counts.total}  {view.plan.title}  ({view.plan_path})"
    return _RunLine(view.run_id, view.started_at, describe_state(view), style, about)


def _run_line(view: RunSummary[Any]) -> _RunLine:
    style = _STATE_STYLES.get(view.state, "yellow")
    command, about = view.setup.command, make_visible(shorten_text(view.setup.subject, _MAX_TEXT))
    return _RunLine(view.run_id, view.started_at, view.state, style, f"{_KIND_NAMES.get(command, command)}  ({about})")


def print_table(
    console: Console, title: str, columns: Sequence[str], texts: int, rows: Sequence[Sequence[str]]
) -> None:
    """Print a table. The first `texts` columns are text, the others figures. Empty columns are left out."""
    if not rows:
        return
    shown = [[make_visible(cell) for cell in row] for row in rows]
    used = [number for number in range(len(columns)) if any(row[number] for row in shown)]
    widths = {number: max(len(row[number]) for row in (columns, *shown)) for number in used}
    console.print(f"\n{title}", style="bold")
    for style, row in (("dim", columns), *(("", row) for row in shown)):
        cells = [f"{row[n]:<{widths[n]}}" if n < texts else f"{row[n]:>{widths[n]}}" for n in used]
        console.print(escape_control(f"  {'  '.join(cells)}".rstrip()), style=style, soft_wrap=True)


def print_positions(console: Console, agents: Sequence[AgentPosition]) -> None:
    """Print the state of the agents that must confirm their understanding; nothing if there are none."""
    (first, *headings), *rows = build_position_table((agent_seen.position for agent_seen in agents), time.time())
    columns = ("part", first, "at work", *headings)
    cells = [
        (seen.part, agent, "yes" if seen.at_work else "", *rest)
        for seen, (agent, *rest) in zip(agents, rows, strict=True)
    ]
    print_table(console, "agents", columns, len(columns), cells)


def build_positions_document(agents: Sequence[AgentPosition]) -> dict[str, object]:
    """Return the state of the agents for a JSON document; empty if there are none."""
    return {"agents_seen": [agent.model_dump(mode="json") for agent in agents]} if agents else {}
