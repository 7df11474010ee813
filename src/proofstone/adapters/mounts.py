"""What is mounted where, as the kernel tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_TABLE: Final = Path("/proc/self/mountinfo")
_ESCAPES: Final = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))


def mount_table() -> str | None:
    """The kernel's own table; None where there is no such thing."""
    return _TABLE.read_text(encoding="utf-8", errors="surrogateescape") if _TABLE.exists() else None


def mounts(mountinfo: str) -> list[tuple[Path, str]]:
    """Each mount point and its type, in the order of mounting: a later one covers an earlier one on the same point."""
    found = []
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if separator and len(fields) >= 5:
            found.append((Path(_unescaped(fields[4])), right.split(" ")[0]))
    return found


def _unescaped(text: str) -> str:
    for code, character in _ESCAPES:
        text = text.replace(code, character)
    return text
