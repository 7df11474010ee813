"""The `grep` tool. Files are read here and matched by `searcher.py`, a process that can be ended in time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from proofstone.agents.rules.tool_rules import (
    ToolFailedError,
    ToolRefusedError,
    append_notes,
    format_path,
    invalid_arguments_error,
)
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.models import GrepArguments, Tool
from proofstone.agents.tools.tool_context import ToolDeadline
from proofstone.agents.tools.tree import UNFINISHED, FileTooLargeError, FileTree, TreeWalk
from proofstone.common.globs import matches
from proofstone.common.text import pluralize

_SEARCHER: Final = Path(__file__).with_name("searcher.py")
_FILE_BYTES: Final = 4 << 20
_BATCH_BYTES: Final = 8 << 20
_BATCH_FILES: Final = 2000
_TICK: Final = 0.2


def grep(tree: FileTree, wanted: GrepArguments, deadline: ToolDeadline) -> str:
    texts = _Texts(tree, TreeWalk(tree, tree.require_readable(wanted.path), deadline), wanted.glob)
    matches_found: list[str] = []
    searched = 0
    notes: list[str] = []
    is_stopped = False
    for batch in texts.batches():
        batch_matches = _search_batch(wanted, batch, wanted.limit + 1 - len(matches_found), deadline)
        if batch_matches is None:
            notes.append("stopped: matching takes too long; use a simpler pattern, or narrow it with `path` or `glob`")
            is_stopped = True
            break
        matches_found += batch_matches
        searched += len(batch)
        if len(matches_found) > wanted.limit:
            matches_found.pop()
            notes.append(f"more than {wanted.limit} lines match: narrow the pattern, or use `path` or `glob`")
            break
    lines = matches_found or [_describe_no_match(searched, is_stopped=is_stopped or texts.walk.is_stopped)]
    return append_notes(lines, (*notes, *texts.notes()))


def _describe_no_match(searched: int, *, is_stopped: bool) -> str:
    files = pluralize(searched, "file")
    return f"{UNFINISHED} Nothing matches in the first {files}." if is_stopped else f"Nothing matches in {files}."


def find_first_line(name: str, content: bytes, pattern: str, deadline: ToolDeadline) -> str:
    """Return the first line of a text that matches, with its position, or an empty text."""
    matching = _search_batch(GrepArguments(pattern=pattern), [_Text(name, content)], 1, deadline)
    if matching is None:
        raise ToolFailedError("matching takes too long")
    return matching[0] if matching else ""


@dataclass
class _Text:
    path: str
    content: bytes


@dataclass
class _Texts:
    """The files that are searched, and notes about the others."""

    tree: FileTree
    walk: TreeWalk
    glob: str
    too_large: list[str] = field(default_factory=list)
    secret: int = 0

    def batches(self) -> Iterator[list[_Text]]:
        batch: list[_Text] = []
        size = 0
        for text in self._read_texts():
            batch.append(text)
            size += len(text.content)
            if size > _BATCH_BYTES or len(batch) == _BATCH_FILES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _read_texts(self) -> Iterator[_Text]:
        for entry in self.walk:
            if not entry.is_file or (self.glob and not matches(self.glob, entry.path)):
                continue
            if self.tree.is_secret(entry.path):
                self.secret += 1
                continue
            try:
                content = self.tree.read(entry.names, _FILE_BYTES)
            except ToolRefusedError:
                self.secret += 1
            except FileTooLargeError:
                self.too_large.append(format_path(entry.path))
            except OSError as error:
                self.walk.skipped.append(f"not searched: {format_path(entry.path)}: {error.strerror}")
            else:
                if not is_binary(content):
                    yield _Text(entry.path, content)

    def notes(self) -> Iterator[str]:
        yield from self.walk.skipped
        if self.too_large:
            more = "" if len(self.too_large) <= 3 else f" and {len(self.too_large) - 3} more"
            yield f"too large to be searched: {', '.join(self.too_large[:3])}{more}"
        if self.secret:
            yield f"not searched: {pluralize(self.secret, 'file')} that may hold secrets"


def _search_batch(wanted: GrepArguments, batch: list[_Text], limit: int, deadline: ToolDeadline) -> list[str] | None:
    """Return the matching lines, or None if there was not enough time."""
    request = {
        "pattern": wanted.pattern,
        "ignore_case": wanted.ignore_case,
        "most": limit,
        "seconds": math.ceil(deadline.remaining) + 1,
    }
    texts = (piece for text in batch for piece in (len(text.content).to_bytes(8, "big"), text.content))
    output = _run_searcher(b"".join((json.dumps(request).encode(), b"\n", *texts)), deadline)
    if output is None:
        return None
    answer: dict[str, Any] = json.loads(output) if output else {"error": "it needs too much memory or time"}
    if "error" in answer:
        raise invalid_arguments_error(
            Tool.GREP, f"pattern: {answer['error']}. Use a regular expression of Python's `re`."
        )
    return [f"{format_path(batch[number].path)}:{line}: {text}" for number, line, text in answer["found"]]


def _run_searcher(request: bytes, deadline: ToolDeadline) -> bytes | None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(_SEARCHER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
    ) as process:
        try:
            return _communicate(process, request, deadline)
        finally:
            process.kill()


def _communicate(process: subprocess.Popen[bytes], request: bytes, deadline: ToolDeadline) -> bytes | None:
    remaining: bytes | None = request
    while not deadline.is_over:
        try:
            return process.communicate(remaining, timeout=_TICK)[0]
        except subprocess.TimeoutExpired:
            remaining = None  # a further call goes on with the rest of the input
    return None
