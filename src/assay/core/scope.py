"""Which paths a set of declared patterns covers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def undeclared(paths: Iterable[str], declared: Sequence[str]) -> tuple[str, ...]:
    """The paths that no declared pattern covers."""
    return tuple(path for path in paths if not any(covers(pattern, path) for pattern in declared))


def covers(pattern: str, path: str) -> bool:
    """`*` and `?` stay within a folder, `**` crosses folders; a folder covers all below it. Square brackets are nothing
    but themselves: `app/[id]/page.tsx` is the name of a file."""
    return bool(_compiled(pattern.removeprefix("./").rstrip("/")).fullmatch(path))


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    if pattern in ("", "."):
        return re.compile(".*", re.DOTALL)
    out, at = [], 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif pattern[at] == "*":
            out.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            out.append("[^/]")
            at += 1
        else:
            out.append(re.escape(pattern[at]))
            at += 1
    return re.compile("".join(out) + "(?:/.*)?", re.DOTALL)
