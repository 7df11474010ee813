"""What a test expected before, and what it expects now: the lines of the test that were edited, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

_MOST = 6
"""Lines of each side that are shown."""


def edited_lines(old: str, new: str, name: str) -> tuple[str, str]:
    """The lines that differ inside the test called `name` (its own name, without file and parameters); those of the
    whole file where the test itself is as it was, because something beside it was edited."""
    own = name.rpartition(".")[2].rpartition(" > ")[2]
    before, after = old.splitlines(), new.splitlines()
    found = _difference(_block(before, own), _block(after, own))
    return found if any(found) else _difference(before, after)


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    gone: list[str] = []
    come: list[str] = []
    for tag, old_start, old_end, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += before[old_start:old_end]
            come += after[start:end]
    return _shown(gone), _shown(come)


def _shown(lines: Sequence[str]) -> str:
    told = [line.strip() for line in lines if line.strip()]
    more = [f"… and {len(told) - _MOST} more lines"] if len(told) > _MOST else []
    return "\n".join((*told[:_MOST], *more))


def _block(lines: Sequence[str], name: str) -> list[str]:
    """From the line that names the test to the next one that is not indented further, as most languages write it."""
    start = next((at for at, line in enumerate(lines) if _defines(line, name)), None)
    if start is None:
        return []
    depth = _indent(lines[start])
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > depth):
        end += 1
    first = start
    while first and lines[first - 1].lstrip().startswith("@"):  # decorators: parameters stand there
        first -= 1
    return list(lines[first:end])


def _defines(line: str, name: str) -> bool:
    return name in line and any(word in line for word in ("def ", "test", "it(", "func ", "fn ", "Test"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
