"""Words of the pages of a run, in Markdown: whatever an agent or a person wrote stays text there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from proofstone.core.gate.page_text import code, prose

_MARKER: Final = re.compile(r"^(?:[-+=:]|\d+(?=[.)]))")
"""What could begin a list, a rule or an underlined heading; the rest, `prose` has seen to."""


def quoted(text: str) -> str:
    """The text line by line as a block quote. No line of it begins anything, and none ends the quote."""
    lines = (prose(line) for line in text.strip().splitlines())
    return "\n".join(f"> {_begins_nothing(line)}".rstrip() for line in lines) or ">"


def listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {_begins_nothing(prose(text))}" for text in texts)


def named(names: Iterable[str], otherwise: str = "none") -> str:
    """Names of files, commands and the like, in a line."""
    return ", ".join(map(code, names)) or otherwise


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Of cells that are Markdown already. An empty one is a dash, and nothing at all no table."""
    filled = [f"| {' | '.join(cell or '–' for cell in row)} |" for row in rows]
    if filled:
        yield f"| {' | '.join(head)} |"
        yield f"|{'---|' * len(head)}"
        yield from filled


def shortened(text: str, most: int) -> str:
    """In one line, and no longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def ranges(numbers: Iterable[int]) -> str:
    """`3, 7, 31–34`."""
    apart = groupby(enumerate(sorted(set(numbers))), key=lambda one: one[1] - one[0])
    runs = ([number for _, number in group] for _, group in apart)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _begins_nothing(line: str) -> str:
    found = _MARKER.match(line)
    if found is None:
        return line
    return f"\\{line}" if not found[0].isdigit() else f"{found[0]}\\{line[found.end() :]}"
