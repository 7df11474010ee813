"""The tools that show files (`read`, `list`, `glob`) and those that change them (`write`, `edit`, `delete`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from proofstone.agents.rules.tool_rules import ToolFailedError, append_notes, format_path, invalid_arguments_error
from proofstone.agents.tools.models import (
    MAX_LISTED,
    MAX_WRITE_BYTES,
    DeleteArguments,
    EditArguments,
    GlobArguments,
    ListArguments,
    ReadArguments,
    Tool,
    WriteArguments,
)
from proofstone.agents.tools.tool_context import ToolDeadline
from proofstone.agents.tools.tree import UNFINISHED, FileTree, PathNames, TreeEntry, TreeWalk
from proofstone.common.globs import matches
from proofstone.common.text import pluralize

_MAX_FILE_BYTES: Final = 16 << 20
_MAX_SHOWN_BYTES: Final = 64 << 10
_MAX_LINE_CHARS: Final = 2000
_BINARY_PREFIX_BYTES: Final = 8192
"""A NUL among the first bytes marks a binary file."""


def read_file(tree: FileTree, wanted: ReadArguments, _deadline: ToolDeadline) -> str:
    names = tree.require_readable(wanted.path)
    if tree.get_entry(names).is_folder:
        raise ToolFailedError(f"{format_path(wanted.path)} is a folder; use `list` to see what is in it.")
    return render_page(wanted.path, tree.read(names, _MAX_FILE_BYTES), wanted.offset, wanted.limit)


def render_page(path: str, content: bytes, offset: int, limit: int) -> str:
    """Return a part of a text with line numbers, and notes about what was left out."""
    if is_binary(content):
        return f"{format_path(path)}: a binary file of {pluralize(len(content), 'byte')}; it is not shown."
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        return f"{format_path(path)}: an empty file."
    if offset > len(lines):
        raise ToolFailedError(f"{format_path(path)} has only {pluralize(len(lines), 'line')}.")
    numbered_lines = _number_lines(lines, offset, limit)
    last = offset + len(numbered_lines) - 1
    notes = [
        f"lines {offset}-{last} of {len(lines)}; continue with offset {last + 1}" if last < len(lines) else "",
        "the lines end in CRLF" if lines[offset - 1].endswith(b"\r") else "",
        "not UTF-8: \N{REPLACEMENT CHARACTER} replaces the invalid bytes" if not _is_utf8(content) else "",
        "the last line has no newline" if last == len(lines) and not content.endswith(b"\n") else "",
    ]
    return append_notes(numbered_lines, notes)


def _number_lines(lines: Sequence[bytes], offset: int, limit: int) -> list[str]:
    """Return as many lines as fit, and at least one."""
    shown_lines: list[str] = []
    remaining = _MAX_SHOWN_BYTES
    for number, raw in enumerate(lines[offset - 1 : offset - 1 + limit], offset):
        line = f"{number}\t{_render_line(raw)}"
        remaining -= len(line.encode()) + 1
        if remaining < 0 and shown_lines:
            break
        shown_lines.append(line)
    return shown_lines


def _render_line(raw: bytes) -> str:
    text = raw.removesuffix(b"\r").decode("utf-8", "replace")
    hidden = len(text) - _MAX_LINE_CHARS
    return text if hidden <= 0 else f"{text[:_MAX_LINE_CHARS]}… [{hidden:,} more characters on this line]"


def is_binary(content: bytes) -> bool:
    return b"\0" in content[:_BINARY_PREFIX_BYTES]


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def list_folder(tree: FileTree, wanted: ListArguments, _deadline: ToolDeadline) -> str:
    names = tree.resolve(wanted.path)
    if not tree.get_entry(names).is_folder:
        raise ToolFailedError(f"{format_path(wanted.path)} is a file; use `read` to see it.")
    entries = tree.list_entries(names)
    if not entries:
        return f"{format_path(wanted.path or '.')}: an empty folder."
    hidden = len(entries) - MAX_LISTED
    note = f"not shown: {hidden:,} more of {len(entries):,}; use `glob`" if hidden > 0 else ""
    return append_notes(map(_render_entry, entries[:MAX_LISTED]), [note])


def _render_entry(entry: TreeEntry) -> str:
    name = format_path(entry.names[-1])
    if entry.link_target is not None:
        return f"{name} -> {format_path(entry.link_target)}"
    return f"{name}/" if entry.is_folder else name


def find_files(tree: FileTree, wanted: GlobArguments, deadline: ToolDeadline) -> str:
    walk = TreeWalk(tree, tree.resolve(wanted.path), deadline)
    paths: list[str] = []
    for entry in walk:
        if matches(wanted.pattern, entry.path):
            if len(paths) == MAX_LISTED:
                walk.skipped.append(f"more than {MAX_LISTED} files match: narrow the pattern, or use `path`")
                break
            paths.append(format_path(entry.path))
    if not paths:
        hint = f" `**/{wanted.pattern}` looks in all folders." if "/" not in wanted.pattern else ""
        paths = [UNFINISHED if walk.is_stopped else f"No file matches {format_path(wanted.pattern)}.{hint}"]
    return append_notes(paths, walk.skipped)


_MAX_OFFSETS: Final = 100
_MAX_SHOWN_OFFSETS: Final = 10
_MAX_COMPARED_LINES: Final = 5000
_MAX_SIMILAR: Final = 3
_MAX_COMPARED_CHARS: Final = 200


def write_file(tree: FileTree, wanted: WriteArguments, _deadline: ToolDeadline) -> str:
    names = tree.require_writable(wanted.path)
    content = wanted.content.encode()
    if len(content) > MAX_WRITE_BYTES:
        raise invalid_arguments_error(
            Tool.WRITE, f"content: it has {len(content):,} bytes; {MAX_WRITE_BYTES:,} are allowed."
        )
    before = _read_old_content(tree, names)
    new = tree.write(names, content)
    note = "the lines of the file ended in CRLF; now they end in LF" if _has_lost_crlf(before, content) else ""
    summary = f"{'Made' if new else 'Wrote'} {format_path(wanted.path)}: {pluralize(_count_lines(content), 'line')}."
    return append_notes([summary], [note])


def _read_old_content(tree: FileTree, names: PathNames) -> bytes:
    """Return the current content for the note about line endings, or nothing if it cannot be read."""
    try:
        return tree.read(names, MAX_WRITE_BYTES)
    except (OSError, ToolFailedError):
        return b""


def _has_lost_crlf(before: bytes, after: bytes) -> bool:
    return b"\r\n" in before and b"\n" in after and b"\r\n" not in after


def _count_lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def edit_file(tree: FileTree, wanted: EditArguments, _deadline: ToolDeadline) -> str:
    names = tree.require_writable(wanted.path)
    if wanted.old == wanted.new:
        raise invalid_arguments_error(Tool.EDIT, "new: it is the same as `old`.")
    content = tree.read(names, MAX_WRITE_BYTES)
    old, new = _match_line_endings(content, wanted.old, wanted.new)
    offsets = _find_offsets(content, old)
    if not offsets:
        raise ToolFailedError(
            f"`old` is not in {format_path(wanted.path)}. Nothing was changed.{_suggest_lines(content, wanted.old)}"
        )
    if len(offsets) > 1 and not wanted.all:
        raise ToolFailedError(
            f"`old` is {_render_count(offsets)} in {format_path(wanted.path)}: in "
            f"{_render_line_numbers(content, offsets)}. "
            "Nothing was changed. Include more of the surrounding lines, or set `all`."
        )
    changed = content.replace(old, new) if wanted.all else content.replace(old, new, 1)
    if len(changed) > MAX_WRITE_BYTES:
        raise ToolFailedError(
            f"The file would have {len(changed):,} bytes; {MAX_WRITE_BYTES:,} are allowed. Nothing was changed."
        )
    tree.write(names, changed)
    return f"Changed {format_path(wanted.path)}: {_render_line_numbers(content, offsets)}."


def _match_line_endings(content: bytes, old: str, new: str) -> tuple[bytes, bytes]:
    """Return both texts with the file's line endings: an agent does not see that the lines end in CRLF."""
    before, after = old.encode(), new.encode()
    if before in content or b"\n" not in before + after or b"\r\n" not in content:
        return before, after
    return _to_crlf(before), _to_crlf(after)


def _to_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _find_offsets(content: bytes, old: bytes) -> list[int]:
    """Return the offsets of the text, including overlapping ones, up to a limit."""
    offsets: list[int] = []
    offset = content.find(old)
    while offset >= 0 and len(offsets) < _MAX_OFFSETS:
        offsets.append(offset)
        offset = content.find(old, offset + 1)
    return offsets


def _render_count(offsets: Sequence[int]) -> str:
    return f"{_MAX_OFFSETS} times or more" if len(offsets) == _MAX_OFFSETS else f"{len(offsets)} times"


def _render_line_numbers(content: bytes, offsets: Sequence[int]) -> str:
    numbers = dict.fromkeys(content.count(b"\n", 0, offset) + 1 for offset in offsets[:_MAX_SHOWN_OFFSETS])
    more = " and more" if len(offsets) > _MAX_SHOWN_OFFSETS else ""
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}{more}"


def _suggest_lines(content: bytes, old: str) -> str:
    """Return the lines that are most similar to the first line of the text that was not found."""
    first_line = next((line.strip() for line in old.splitlines() if line.strip()), "")[:_MAX_COMPARED_CHARS]
    lines = content.decode("utf-8", "replace").splitlines()[:_MAX_COMPARED_LINES]
    numbers = list(_find_similar(first_line, lines)) if first_line else []
    if not numbers:
        return " Read the file again: it may have changed."
    return "\n".join(
        (" Similar to its first line:", *(f"{number}\t{lines[number - 1][:_MAX_COMPARED_CHARS]}" for number in numbers))
    )


def _find_similar(text: str, lines: Sequence[str]) -> Iterator[int]:
    stripped = [line.strip()[:_MAX_COMPARED_CHARS] for line in lines]
    equal = [number for number, line in enumerate(stripped, 1) if line == text]
    if equal:
        yield from equal[:_MAX_SIMILAR]
        return
    for line in get_close_matches(text, set(stripped), n=_MAX_SIMILAR, cutoff=0.6):
        yield stripped.index(line) + 1


def delete_file(tree: FileTree, wanted: DeleteArguments, _deadline: ToolDeadline) -> str:
    tree.delete(tree.require_writable(wanted.path, itself=True))
    return f"Deleted {format_path(wanted.path)}."
