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
from collections.abc import Iterator, Mapping
from typing import Final

from proofstone.agents.models import ToolCall, Turn

MAX_BLOCKS: Final = 32
SHOWN_HEADING: Final = "## The files as they are"
_SHOWN: Final = re.compile(r"FILE: (?P<path>.+)")
_MIN_SHARE: Final = 0.8
"""How many of a file's lines code without a path must at least have to be the whole file."""
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


def read_edit_calls(turn: Turn, number: int, shown: Mapping[str, str] | None = None) -> tuple[ToolCall, ...]:
    """Return the edits in the text of a turn as calls. `number` makes their ids unique in the conversation.

    `shown` are the files that the request shows. If there is only one, code without a path is meant for it, unless it
    is so much shorter that it can only be a piece of the file.
    """
    if turn.calls or turn.answer is not None:
        return ()
    only = next(iter(shown.items())) if shown and len(shown) == 1 else ("", "")
    edits = list(_iterate_edits(turn.text.splitlines(), *only))[:MAX_BLOCKS]
    return tuple(
        ToolCall(id=f"block-{number}-{index}", name=name, arguments=arguments)
        for index, (name, arguments) in enumerate(edits, start=1)
    )


def find_shown_files(request: str) -> dict[str, str]:
    """Return the files that a request shows as they are, by path (`agents.tools.current_files`)."""
    lines = request.partition(SHOWN_HEADING)[2].splitlines()
    files: dict[str, str] = {}
    at = 0
    while at < len(lines):
        match, at = _SHOWN.fullmatch(lines[at]), at + 1
        fence = _FENCE.match(lines[at]) if match and at < len(lines) else None
        if match and fence:
            end = _find_end(lines, at + 1, fence["marks"])
            files[match["path"]] = "\n".join(lines[at + 1 : end])
            at = end + 1
    return files


def _iterate_edits(lines: list[str], only: str, content: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the edits. `only` is the path of code that names none, `content` what that file holds."""
    path, at = "", 0
    while at < len(lines):
        line = lines[at]
        if match := _PATH_LINE.match(line):
            path = match["path"] if _is_path(match["path"]) else path
            at += 1
        elif _SEARCH.match(line):
            old, new, at = _read_replacement(lines, at + 1)
            if (path or only) and old is not None:
                yield "edit", {"path": path or only, "old": old, "new": new}
        elif (fence := _FENCE.match(line)) is not None:
            end = _find_end(lines, at + 1, fence["marks"])
            body = lines[at + 1 : end]
            if any(map(_SEARCH.match, body)):
                at += 1  # the replacements inside the fence follow
            else:
                target = path or (only if len(body) >= _MIN_SHARE * len(content.splitlines()) else "")
                if target and body and end < len(lines) and fence["language"].lower() not in _NO_CODE:
                    yield "write", {"path": target, "content": "".join(f"{part}\n" for part in body)}
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
