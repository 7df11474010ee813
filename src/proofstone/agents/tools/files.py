"""The tools that show files as they are: read, list and glob.

The tools that change files: write, edit and delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from proofstone.agents.rules.tool_rules import FailedError, invalid, shown, with_notes
from proofstone.agents.tools.models import LISTED, WRITE_BYTES, Delete, Edit, Glob, List, Read, Tool, Write
from proofstone.agents.tools.tool_context import Deadline
from proofstone.agents.tools.tree import Entry, Names, Tree, Walk
from proofstone.common.globs import matches
from proofstone.common.text import counted

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


_MOST_PLACES: Final = 100
_SHOWN_PLACES: Final = 10
_NEAR_LINES: Final = 5000
_NEAR: Final = 3
_WRITING_LINE: Final = 200


def write(tree: Tree, wanted: Write, _deadline: Deadline) -> str:
    at = tree.writable(wanted.path)
    content = wanted.content.encode()
    if len(content) > WRITE_BYTES:
        raise invalid(Tool.WRITE, f"content: it has {len(content):,} bytes; {WRITE_BYTES:,} are allowed.")
    before = _before(tree, at)
    new = tree.write(at, content)
    note = "the lines of the file ended in CRLF; now they end in LF" if _lost_returns(before, content) else ""
    said = f"{'Made' if new else 'Wrote'} {shown(wanted.path)}: {counted(_lines(content), 'line')}."
    return with_notes([said], [note])


def _before(tree: Tree, at: Names) -> bytes:
    """What is there now, for a word about it; nothing where that cannot be told."""
    try:
        return tree.read(at, WRITE_BYTES)
    except (OSError, FailedError):
        return b""


def _lost_returns(before: bytes, after: bytes) -> bool:
    return b"\r\n" in before and b"\n" in after and b"\r\n" not in after


def _lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def edit(tree: Tree, wanted: Edit, _deadline: Deadline) -> str:
    at = tree.writable(wanted.path)
    if wanted.old == wanted.new:
        raise invalid(Tool.EDIT, "new: it is the same as `old`.")
    content = tree.read(at, WRITE_BYTES)
    old, new = _as_in(content, wanted.old, wanted.new)
    places = _places(content, old)
    if not places:
        raise FailedError(f"`old` is not in {shown(wanted.path)}. Nothing was changed.{_near(content, wanted.old)}")
    if len(places) > 1 and not wanted.all:
        raise FailedError(
            f"`old` is {_times(places)} in {shown(wanted.path)}: in {_line_numbers(content, places)}. "
            "Nothing was changed. Take more of the lines around it, or set `all`."
        )
    changed = content.replace(old, new) if wanted.all else content.replace(old, new, 1)
    if len(changed) > WRITE_BYTES:
        raise FailedError(
            f"The file would have {len(changed):,} bytes; {WRITE_BYTES:,} are allowed. Nothing was changed."
        )
    tree.write(at, changed)
    return f"Changed {shown(wanted.path)}: {_line_numbers(content, places)}."


def _as_in(content: bytes, old: str, new: str) -> tuple[bytes, bytes]:
    """Both as the file has them: an agent that is shown lines does not see that they end in CRLF."""
    before, after = old.encode(), new.encode()
    if before in content or b"\n" not in before + after or b"\r\n" not in content:
        return before, after
    return _with_returns(before), _with_returns(after)


def _with_returns(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _places(content: bytes, old: bytes) -> list[int]:
    """Where it begins, also where it overlaps itself; the first of many."""
    found: list[int] = []
    at = content.find(old)
    while at >= 0 and len(found) < _MOST_PLACES:
        found.append(at)
        at = content.find(old, at + 1)
    return found


def _times(places: Sequence[int]) -> str:
    return f"{_MOST_PLACES} times or more" if len(places) == _MOST_PLACES else f"{len(places)} times"


def _line_numbers(content: bytes, places: Sequence[int]) -> str:
    numbers = dict.fromkeys(content.count(b"\n", 0, at) + 1 for at in places[:_SHOWN_PLACES])
    more = " and further on" if len(places) > _SHOWN_PLACES else ""
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}{more}"


def _near(content: bytes, old: str) -> str:
    """The lines that are most like the first one of what was looked for."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")[:_WRITING_LINE]
    lines = content.decode("utf-8", "replace").splitlines()[:_NEAR_LINES]
    found = list(_alike(wanted, lines)) if wanted else []
    if not found:
        return " Read the file again: it may have changed."
    return "\n".join(
        (" Lines like its first one:", *(f"{number}\t{lines[number - 1][:_WRITING_LINE]}" for number in found))
    )


def _alike(wanted: str, lines: Sequence[str]) -> Iterator[int]:
    stripped = [line.strip()[:_WRITING_LINE] for line in lines]
    same = [number for number, line in enumerate(stripped, 1) if line == wanted]
    if same:
        yield from same[:_NEAR]
        return
    for line in get_close_matches(wanted, set(stripped), n=_NEAR, cutoff=0.6):
        yield stripped.index(line) + 1


def delete(tree: Tree, wanted: Delete, _deadline: Deadline) -> str:
    tree.delete(tree.writable(wanted.path, itself=True))
    return f"Deleted {shown(wanted.path)}."
