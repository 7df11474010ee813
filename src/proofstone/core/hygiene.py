"""What no change may bring in, whatever the language: conflict markers, and files too large for a repository.

Only what the change itself added is said: a marker that was there before is somebody else's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from proofstone.contracts.diagnostic import Diagnostic

CONFLICT = "conflict-marker"
SIZE = "size"

# Git writes exactly seven characters. The middle line of a conflict is nothing else, the outer two carry a label,
# except that git itself may leave the label out.
_OURS = re.compile(rb"<{7}(?: .*)?")
_MIDDLE = re.compile(rb"={7}")
_THEIRS = re.compile(rb">{7}(?: .*)?")
_PROSE = (".md", ".markdown", ".rst", ".txt", ".adoc")


def conflict_markers(path: str, old: bytes | None, new: bytes) -> tuple[Diagnostic, ...]:
    """Conflicts in `new` that `old` (None for a new file) did not have."""
    if b"\0" in new[:8192]:
        return ()
    before = Counter(body for _, body in _conflicts(path, old or b""))
    found = []
    for line, body in _conflicts(path, new):
        if before[body] > 0:
            before[body] -= 1
            continue
        message = "an unresolved merge conflict starts here; keep one side and delete the three markers"
        found.append(Diagnostic(path=path, line=line, code=CONFLICT, message=message))
    return tuple(found)


def _conflicts(path: str, content: bytes) -> Iterator[tuple[int, bytes]]:
    """Line and text of each `<<<<<<<` … `=======` … `>>>>>>>` in that order, at the start of lines."""
    # In prose a row of equal signs underlines a heading: there the outer markers must carry their label.
    labelled = path.lower().endswith(_PROSE)
    start, middle = 0, False
    lines = content.splitlines()
    for number, line in enumerate(lines, 1):
        if _OURS.fullmatch(line) and (not labelled or len(line) > 8):
            start, middle = number, False
        elif start and _MIDDLE.fullmatch(line):
            middle = True
        elif start and middle and _THEIRS.fullmatch(line) and (not labelled or len(line) > 8):
            yield start, b"\n".join(lines[start - 1 : number])
            start, middle = 0, False


def oversized(path: str, old_size: int | None, new_size: int, limit: int) -> tuple[Diagnostic, ...]:
    """A file that is over the limit and is new (`old_size` None) or has grown."""
    if new_size <= limit or (old_size is not None and new_size <= old_size):
        return ()
    what = "is new" if old_size is None else f"grew from {_size(old_size)}"
    message = f"{_size(new_size)} and {what}; the limit is {_size(limit)}: keep it out of git or raise the limit"
    return (Diagnostic(path=path, code=SIZE, message=message),)


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} GiB"
