"""A commit as `git_show` shows it, taken apart: what it says, what it changes, and what was not shown.

Lines of a difference bear a sign, those of a message are indented, and a line that begins with a square bracket is a
note of the tool's: none can be taken for another, whatever a commit holds. A text is changed by a commit when it
stands in a line that was added or taken away; the lines around those were there before and are there still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from proofstone.adapters.tools.history import History
from proofstone.adapters.tools.quoted import Quoted, quoted
from proofstone.contracts.tools import GitShow

_HEAD: Final = 4
"""Lines before the message: id, author, date, and an empty one."""
_INDENT: Final = "    "
_EMPTY: Final = "Nothing differs."
_BREAK: Final = "\0"
"""Between lines that do not follow each other: a text that goes across is none."""


@dataclass(frozen=True)
class CommitText:
    message: str
    change: tuple[str, ...]
    """The lines of the difference to its first parent."""
    left_out: tuple[str, ...]
    """What was not shown, and why."""

    def says(self, text: str) -> Quoted:
        return quoted(text, self.message)

    def changes(self, text: str) -> Quoted:
        """As it was before, as it is now, or as it is shown, with the signs."""
        readings = (_without("-"), _without("+"), _as_shown)
        return next((found for reading in readings if (found := self._read(text, reading))), Quoted.NOT)

    def _read(self, text: str, reading: Callable[[str], str | None]) -> Quoted:
        lines = [(line, reading(line)) for line in self.change]
        whole = _joined(read for _, read in lines)
        around = _joined(read if line.startswith(" ") or read is None else _BREAK for line, read in lines)
        return quoted(text, whole, beside=around)


def commit_text(history: History, revision: str) -> CommitText:
    lines = history.show(GitShow(revision=revision)).split("\n")
    message = list(takewhile(lambda line: not line.strip() or line.startswith(_INDENT), lines[_HEAD:]))
    rest = lines[_HEAD + len(message) :]
    return CommitText(
        message="\n".join(line.removeprefix(_INDENT) for line in message).strip(),
        change=tuple(line for line in rest if line != _EMPTY and not line.startswith("[")),
        left_out=tuple(line.strip("[]") for line in rest if line.startswith("[")),
    )


def _joined(lines: Iterable[str | None]) -> str:
    return "\n".join(line for line in lines if line is not None)


def _without(sign: str) -> Callable[[str], str | None]:
    """The file of one side: lines of the other are not there, and what is no line of a file parts those around it."""

    def read(line: str) -> str | None:
        if line.startswith((sign, "\\")):
            return None
        return line[1:] if line.startswith((" ", "+", "-")) or not line else _BREAK

    return read


def _as_shown(line: str) -> str:
    """But not where a part begins: behind that stands a line from further up, which git takes for a heading."""
    return _BREAK if line.startswith("@@") else line
