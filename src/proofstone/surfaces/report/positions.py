"""Where agents stand that are asked whether they know what they are doing: the position table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proofstone.contracts.reverify.position import AgentSeen
from proofstone.core.reverify.position import table
from proofstone.surfaces.report.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console


def print_positions(console: Console, agents: Sequence[AgentSeen]) -> None:
    """Nothing, where nobody is asked."""
    (first, *headings), *rows = table((one.position for one in agents), time.time())
    columns = ("part", first, "at work", *headings)
    cells = [
        (one.part, agent, "yes" if one.at_work else "", *rest) for one, (agent, *rest) in zip(agents, rows, strict=True)
    ]
    print_table(console, "agents", columns, len(columns), cells)


def positions_document(agents: Sequence[AgentSeen]) -> dict[str, object]:
    """For a document that tells of a run; empty, where nobody is asked."""
    return {"agents_seen": [one.model_dump(mode="json") for one in agents]} if agents else {}
