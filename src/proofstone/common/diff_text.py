"""Split a unified diff into files, and shorten it so that no file is missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from proofstone.common.text import escape_control

HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MAX_BYTES_SHOWN: Final = 2000
"""Characters that are shown of a file that is not text."""
_MIN_SHOWN: Final = 300
"""Characters that are shown of each file, however many there are."""


def split_files(text: str) -> Iterable[list[str]]:
    """Yield the lines of each file. Only a line outside of a hunk begins another file."""
    part: list[str] = []
    old = new = 0
    for line in text.split("\n"):
        if old <= 0 and new <= 0:
            if line.startswith("diff --git "):
                if part:
                    yield part
                part = []
            elif match := HUNK.match(line):
                old, new = int(match[2] or 1), int(match[4] or 1)
        elif line[:1] in ("+", "-", " ", ""):
            old -= line[:1] != "+"
            new -= line[:1] != "-"
        part.append(line)
    if part and part[0].startswith("diff --git "):
        yield part


def fit_diff(text: str, most: int) -> str:
    """Return a diff of at most about `most` characters in which no file is missing. Long files give way to short ones;
    what is cut is said. Of a file that is not text, the beginning is shown with its bytes escaped."""
    parts = ["\n".join(lines) for lines in split_files(text)]
    parts = [_show_bytes(part) if "\0" in part else part for part in parts]
    if sum(map(len, parts)) <= most:
        return "\n".join(parts)
    room, share = most, dict.fromkeys(range(len(parts)), 0)
    for rank, number in enumerate(sorted(share, key=lambda index: len(parts[index]))):
        share[number] = min(len(parts[number]), room // (len(parts) - rank))
        room -= share[number]
    return "\n".join(_cut_middle(part, max(share[number], _MIN_SHOWN)) for number, part in enumerate(parts))


def _cut_middle(part: str, most: int) -> str:
    if len(part) <= most:
        return part
    head, tail = part[: most - most // 3], part[len(part) - most // 3 :]
    left_out = len(part) - len(head) - len(tail)
    return f"{head}\n[... {left_out:,} characters of this file's diff are not shown ...]\n{tail}"


def _show_bytes(part: str) -> str:
    """Return the part of a file that is not text as a header and an excerpt in which nothing is hidden."""
    lines = part.split("\n")
    start = next((index for index, line in enumerate(lines) if HUNK.match(line)), len(lines))
    header = [line for line in lines[:start] if not line.startswith(("--- ", "+++ "))]
    sides = lines[0].removeprefix("diff --git ")
    body = escape_control("\n".join(lines[start + 1 :]))
    excerpt = [f"  {line}" for line in body[:_MAX_BYTES_SHOWN].split("\n")]
    cut = [f"[{len(body) - _MAX_BYTES_SHOWN:,} more characters are not shown]"] if len(body) > _MAX_BYTES_SHOWN else []
    return "\n".join([*header, f"Binary files {sides} differ; as text:", *excerpt, *cut])
