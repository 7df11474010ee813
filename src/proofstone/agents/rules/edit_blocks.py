"""Read edits that an agent writes into its text, as calls of the tools `write` and `edit`. Pure.

Small models seldom call a tool, and hardly ever with the exact text of a file as an argument. They do write code into
their answers. Where a conversation says so (`Conversation.edits`), two forms are read:

    FILE: shop/cart.py
    <<<<<<< SEARCH
    return sum(map(round, prices))
    =======
    return round(sum(prices), 2)
    >>>>>>> REPLACE

    FILE: shop/money.py
    ```python
    CENTS = 2
    ```

The first replaces a piece of a file, the second writes a whole file. Both become calls like any other: the tools check
the path and the scope, and the agent is shown the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from proofstone.agents.models import ToolCall, Turn

MAX_BLOCKS: Final = 32
_PATH_LINE: Final = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]*)?(?:\*\*)?(?:FILE|File|Path|PATH)?(?:\*\*)?[ \t]*:?[ \t]*(?:\*\*)?`?"
    r"(?P<path>[\w@.+-]+(?:/[\w@.+-]+)*\.?[\w-]+)`?(?:\*\*)?[ \t]*:?[ \t]*$"
)
_SEARCH: Final = re.compile(r"^[ \t]*<{5,9} ?SEARCH[ \t]*$")
_DIVIDER: Final = re.compile(r"^[ \t]*={5,9}[ \t]*$")
_REPLACE: Final = re.compile(r"^[ \t]*>{5,9} ?REPLACE[ \t]*$")
_FENCE: Final = re.compile(r"^[ \t]*(?P<marks>`{3,})(?P<language>[\w+-]*)[ \t]*$")
_NO_CODE: Final = frozenset({"json", "diff", "console", "bash", "sh", "shell", "text", "output"})
"""Languages of fences that hold no file."""


def read_edit_calls(turn: Turn, number: int) -> tuple[ToolCall, ...]:
    """Return the edits in the text of a turn as calls. `number` makes their ids unique in the conversation."""
    if turn.calls or turn.answer is not None:
        return ()
    edits = list(_iterate_edits(turn.text.splitlines()))[:MAX_BLOCKS]
    return tuple(
        ToolCall(id=f"block-{number}-{index}", name=name, arguments=arguments)
        for index, (name, arguments) in enumerate(edits, start=1)
    )


def _iterate_edits(lines: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    path, at = "", 0
    while at < len(lines):
        line = lines[at]
        if match := _PATH_LINE.match(line):
            path = match["path"] if _is_path(match["path"]) else path
            at += 1
        elif _SEARCH.match(line):
            old, new, at = _read_replacement(lines, at + 1)
            if path and old is not None:
                yield "edit", {"path": path, "old": old, "new": new}
        elif (fence := _FENCE.match(line)) is not None:
            end = _find_end(lines, at + 1, fence["marks"])
            body = lines[at + 1 : end]
            if any(map(_SEARCH.match, body)):
                at += 1  # the replacements inside the fence follow
            else:
                if path and end < len(lines) and fence["language"].lower() not in _NO_CODE:
                    yield "write", {"path": path, "content": "".join(f"{part}\n" for part in body)}
                path, at = "", end + 1
        else:
            at += 1


def _is_path(text: str) -> bool:
    """Return whether a word names a file: it has a suffix or a folder, or is a common name without one."""
    return "/" in text or "." in text.strip(".") or text in ("Makefile", "Dockerfile")


def _read_replacement(lines: list[str], at: int) -> tuple[str | None, str, int]:
    """Return the old and the new text of a block, and the line after it. None if the block does not end."""
    divider = next((number for number in range(at, len(lines)) if _DIVIDER.match(lines[number])), None)
    if divider is None:
        return None, "", len(lines)
    end = next((number for number in range(divider + 1, len(lines)) if _REPLACE.match(lines[number])), None)
    if end is None:
        return None, "", len(lines)
    old, new = lines[at:divider], lines[divider + 1 : end]
    return "\n".join(old) or None, "\n".join(new), end + 1


def _find_end(lines: list[str], at: int, marks: str) -> int:
    """Return the line that closes the fence, or the number of lines if none does."""
    closing = re.compile(rf"^[ \t]*{re.escape(marks)}[ \t]*$")
    return next((number for number in range(at, len(lines)) if closing.match(lines[number])), len(lines))
