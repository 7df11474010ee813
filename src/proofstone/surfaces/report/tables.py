"""Tables of text and figures, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proofstone.core.gate.page_text import visible
from proofstone.surfaces.cli.text import printable

if TYPE_CHECKING:
    from rich.console import Console


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
