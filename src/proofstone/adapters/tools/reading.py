"""The tools that show files as they are: read, list and glob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proofstone.adapters.tools.ground import Deadline
from proofstone.adapters.tools.tree import Entry, Tree, Walk
from proofstone.contracts.tools import LISTED, Glob, List, Read
from proofstone.core.agent.tool_rules import FailedError, shown, with_notes
from proofstone.core.counted import counted
from proofstone.core.globs import matches

_FILE_BYTES: Final = 16 << 20
_SHOWN_BYTES: Final = 64 << 10
_LINE: Final = 2000
_LOOKED_AT: Final = 8192
"""Bytes in which a NUL says that a file is binary."""


def read(tree: Tree, wanted: Read, _deadline: Deadline) -> str:
    at = tree.readable(wanted.path)
    if tree.entry(at).folder:
        raise FailedError(f"{shown(wanted.path)} is a folder; `list` shows what it holds.")
    return page(wanted.path, tree.read(at, _FILE_BYTES), wanted.offset, wanted.limit)


def page(path: str, content: bytes, offset: int, limit: int) -> str:
    """A part of a text, with line numbers, and what was left out of it."""
    if is_binary(content):
        return f"{shown(path)}: a binary file of {counted(len(content), 'byte')}; it is not shown."
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        return f"{shown(path)}: an empty file."
    if offset > len(lines):
        raise FailedError(f"{shown(path)} has only {counted(len(lines), 'line')}.")
    numbered = _numbered(lines, offset, limit)
    last = offset + len(numbered) - 1
    notes = [
        f"lines {offset}-{last} of {len(lines)}; go on with offset {last + 1}" if last < len(lines) else "",
        "the lines end in CRLF" if lines[offset - 1].endswith(b"\r") else "",
        "not UTF-8: \N{REPLACEMENT CHARACTER} stands for what is not" if not _is_utf8(content) else "",
        "the last line has no newline" if last == len(lines) and not content.endswith(b"\n") else "",
    ]
    return with_notes(numbered, notes)


def _numbered(lines: Sequence[bytes], offset: int, limit: int) -> list[str]:
    """As many as fit; at least one."""
    shown_lines: list[str] = []
    left = _SHOWN_BYTES
    for number, raw in enumerate(lines[offset - 1 : offset - 1 + limit], offset):
        line = f"{number}\t{_line(raw)}"
        left -= len(line.encode()) + 1
        if left < 0 and shown_lines:
            break
        shown_lines.append(line)
    return shown_lines


def _line(raw: bytes) -> str:
    text = raw.removesuffix(b"\r").decode("utf-8", "replace")
    more = len(text) - _LINE
    return text if more <= 0 else f"{text[:_LINE]}… [{more:,} more characters on this line]"


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:_LOOKED_AT]


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def list_folder(tree: Tree, wanted: List, _deadline: Deadline) -> str:
    at = tree.resolved(wanted.path)
    if not tree.entry(at).folder:
        raise FailedError(f"{shown(wanted.path)} is a file; `read` shows it.")
    entries = tree.listed(at)
    if not entries:
        return f"{shown(wanted.path or '.')}: an empty folder."
    left = len(entries) - LISTED
    note = f"not shown: {left:,} more of {len(entries):,}; use `glob`" if left > 0 else ""
    return with_notes(map(_entry_line, entries[:LISTED]), [note])


def _entry_line(entry: Entry) -> str:
    name = shown(entry.at[-1])
    if entry.link is not None:
        return f"{name} -> {shown(entry.link)}"
    return f"{name}/" if entry.folder else name


def glob(tree: Tree, wanted: Glob, deadline: Deadline) -> str:
    walk = Walk(tree, tree.resolved(wanted.path), deadline)
    found: list[str] = []
    for entry in walk:
        if matches(wanted.pattern, entry.path):
            if len(found) == LISTED:
                walk.left_out.append(f"more than {LISTED} files match: narrow the pattern, or use `path`")
                break
            found.append(shown(entry.path))
    if not found:
        hint = f" `**/{wanted.pattern}` looks in all folders." if "/" not in wanted.pattern else ""
        found = [f"No file matches {shown(wanted.pattern)}.{hint}"]
    return with_notes(found, walk.left_out)
