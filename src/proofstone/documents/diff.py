"""Read the text of a unified diff into lines with their numbers, bounded in size. Pure.

The text comes from git, but the file names and lines in it are anybody's. A line that does not fit the format is taken
for text of the file it stands in; nothing is lost silently: `left_out` says what is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from proofstone.common.diff_text import HUNK, split_files
from proofstone.common.text import pluralize

MAX_DIFF_LINES: Final = 3000
MAX_FILE_LINES: Final = 800
MAX_LINE_LENGTH: Final = 500


class DiffLineKind(StrEnum):
    CONTEXT = "context"
    ADDED = "added"
    REMOVED = "removed"
    NOTE = "note"
    """A line of git itself, such as `\\ No newline at end of file`."""


@dataclass(frozen=True)
class DiffLine:
    kind: DiffLineKind
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True)
class DiffHunk:
    """Lines that follow each other."""

    lines: tuple[DiffLine, ...]


@dataclass(frozen=True)
class FileDiff:
    """The changes of one file."""

    path: str
    change: str
    """`added`, `modified`, `deleted`, `renamed from …`, or what git says about a file that is not text."""
    hunks: tuple[DiffHunk, ...] = ()
    hidden: int = 0
    """Lines of this file that are not shown."""

    @property
    def added(self) -> int:
        return sum(line.kind is DiffLineKind.ADDED for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind is DiffLineKind.REMOVED for hunk in self.hunks for line in hunk.lines)


@dataclass(frozen=True)
class ShownDiff:
    """What a page shows of a diff."""

    files: tuple[FileDiff, ...] = ()
    left_out: str = ""
    """What is not shown because the diff is too long; empty if everything is."""
    problem: str = ""
    """Why there is no diff; empty if there is one."""


def parse_diff(text: str, hidden: Iterable[str] = ()) -> tuple[tuple[FileDiff, ...], str]:
    """Return the files of a diff, and what was left out because it is too long. Of the files in `hidden`, which the
    text does not contain, only the names are shown."""
    files = [FileDiff(path, "changed; it may hold secrets and is not shown") for path in hidden]
    room = MAX_DIFF_LINES
    hidden_files = hidden_lines = 0
    for part in split_files(text):
        file, used = _parse_file(part, min(room, MAX_FILE_LINES))
        if room <= 0 and file.hidden:
            hidden_files += 1
        files.append(file)
        hidden_lines += file.hidden
        room -= used
    if not hidden_lines:
        return tuple(files), ""
    more = f"; of {pluralize(hidden_files, 'file')} nothing but the name is shown" if hidden_files else ""
    return tuple(files), f"{pluralize(hidden_lines, 'line')} of the diff are left out{more}"


def _parse_file(lines: list[str], room: int) -> tuple[FileDiff, int]:
    start = next((index for index, line in enumerate(lines) if HUNK.match(line)), len(lines))
    path, change = _read_header(lines[:start])
    hunks: list[list[DiffLine]] = []
    old = new = left_old = left_new = used = hidden = 0
    for line in lines[start:]:
        match = HUNK.match(line) if left_old <= 0 and left_new <= 0 else None
        if match:
            old, left_old, new, left_new = (int(number or 1) for number in match.groups())
            hunks.append([])
            continue
        kind = _KINDS.get(line[:1], DiffLineKind.NOTE)
        if kind is DiffLineKind.NOTE or (left_old <= 0 and left_new <= 0):
            if line.startswith("\\"):
                hunks[-1].append(DiffLine(DiffLineKind.NOTE, line[2:]))
            continue
        is_old, is_new = kind is not DiffLineKind.ADDED, kind is not DiffLineKind.REMOVED
        if used < room:
            hunks[-1].append(DiffLine(kind, _cut(line[1:]), old if is_old else None, new if is_new else None))
            used += 1
        else:
            hidden += 1
        old, left_old = old + is_old, left_old - is_old
        new, left_new = new + is_new, left_new - is_new
    shown = tuple(DiffHunk(tuple(hunk)) for hunk in hunks if hunk)
    return FileDiff(path, change, shown, hidden), used


_KINDS: Final = {
    " ": DiffLineKind.CONTEXT,
    "": DiffLineKind.CONTEXT,
    "+": DiffLineKind.ADDED,
    "-": DiffLineKind.REMOVED,
}


def _read_header(lines: list[str]) -> tuple[str, str]:
    """Return the path and what happened to the file."""
    values = {
        key: line[len(key) :]
        for line in lines[1:]
        for key in ("--- ", "+++ ", "rename from ", "rename to ", "Binary files ")
        if line.startswith(key)
    }
    is_new = any(line.startswith("new file mode") for line in lines)
    is_deleted = any(line.startswith("deleted file mode") for line in lines)
    path = values.get("rename to ") or _strip_side(values.get("--- " if is_deleted else "+++ ", ""))
    if not path:  # a file without lines, or one that is not text
        sides = lines[0].removeprefix("diff --git ")
        path = _strip_side(sides[: len(sides) // 2] if '"' not in sides else sides.rpartition(' "')[2].strip('"'))
    change = "added" if is_new else "deleted" if is_deleted else "modified"
    if "rename from " in values:
        change = f"renamed from {_unquote(values['rename from '])}"
    if "Binary files " in values:
        change += ", not a text file"
    return _unquote(path), change


def _strip_side(path: str) -> str:
    quote = '"' if path.startswith('"') else ""
    bare = path.removeprefix('"')
    return quote + (bare[2:] if bare[:2] in ("a/", "b/") else bare).rstrip("\t")


def _unquote(path: str) -> str:
    """Return a path that git wrote in quotes, with octal escapes of bytes, as text."""
    if not path.startswith('"'):
        return path
    body = path.strip('"').encode("utf-8", "surrogateescape")
    plain = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8) & 0xFF]), body)
    plain = plain.replace(rb"\"", b'"').replace(rb"\t", b"\t").replace(rb"\n", b"\n").replace(rb"\\", b"\\")
    return plain.decode("utf-8", "backslashreplace")


def _cut(text: str) -> str:
    text = text.rstrip("\r")
    return text if len(text) <= MAX_LINE_LENGTH else f"{text[:MAX_LINE_LENGTH]}… ({len(text):,} characters)"
