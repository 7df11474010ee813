"""Print tables: the list of runs, text with figures, and the positions of agents."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofstone.common.text import escape_control
from proofstone.documents.markdown import make_visible
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
    "unverifiable": "yellow",
}
_MAX_TEXT: Final = 100


def print_runs(console: Console, views: Sequence[RunSummary[Any]], *, show_repository: bool = True) -> None:
    """Print one line for each run: when it started, its kind, its state, and what it is about."""
    if not views:
        console.print("no runs yet; `proofstone check`, `gate`, `verify-plan`, `solve` and `run` start one")
        return
    kinds, states = (max(len(text) for text in texts) for texts in zip(*map(_kind_and_state, views), strict=True))
    for view in views:
        kind, state = _kind_and_state(view)
        started = view.started_at[:16].replace("T", " ")
        console.print(f"{view.run_id}  {started}  {kind:<{kinds}}  ", end="", soft_wrap=True)
        console.print(f"{state:<{states}}", style=_STATE_STYLES.get(state, "yellow"), end="")
        where = f"  {Path(view.setup.repository).name}" if show_repository else ""
        console.print(escape_control(f"{where}  {_describe_subject(view)}"), soft_wrap=True)


def _kind_and_state(view: RunSummary[Any]) -> tuple[str, str]:
    return view.setup.command, view.state


def _describe_subject(view: RunSummary[Any]) -> str:
    subject = make_visible(shorten_text(view.setup.subject, _MAX_TEXT))
    if "tasks" in view.details:
        return f"{view.details['passed']}/{view.details['tasks']}  {view.details['title']}  ({subject})"
    return subject


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
