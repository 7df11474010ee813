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

from proofstone.agents.rules.tool_rules import FailedError, RefusedError, invalid, shown, with_notes
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.models import Grep, Tool
from proofstone.agents.tools.tool_context import Deadline
from proofstone.agents.tools.tree import TooLargeError, Tree, Walk
from proofstone.common.globs import matches
from proofstone.common.text import counted

_SEARCHER: Final = Path(__file__).with_name("searcher.py")
_FILE_BYTES: Final = 4 << 20
_BATCH_BYTES: Final = 8 << 20
_BATCH_FILES: Final = 2000
_TICK: Final = 0.2


def grep(tree: Tree, wanted: Grep, deadline: Deadline) -> str:
    texts = _Texts(tree, Walk(tree, tree.readable(wanted.path), deadline), wanted.glob)
    matches_found: list[str] = []
    searched = 0
    notes: list[str] = []
    for batch in texts.batches():
        batch_matches = _search_batch(wanted, batch, wanted.limit + 1 - len(matches_found), deadline)
        if batch_matches is None:
            notes.append("stopped: matching takes too long; use a simpler pattern, or narrow it with `path` or `glob`")
            break
        matches_found += batch_matches
        searched += len(batch)
        if len(matches_found) > wanted.limit:
            matches_found.pop()
            notes.append(f"more than {wanted.limit} lines match: narrow the pattern, or use `path` or `glob`")
            break
    lines = matches_found or [f"Nothing matches in {counted(searched, 'file')}."]
    return with_notes(lines, (*notes, *texts.notes()))


def first_line(name: str, content: bytes, pattern: str, deadline: Deadline) -> str:
    """Return the first line of a text that matches, with its position, or an empty text."""
    matching = _search_batch(Grep(pattern=pattern), [_Text(name, content)], 1, deadline)
    if matching is None:
        raise FailedError("matching takes too long")
    return matching[0] if matching else ""


@dataclass
class _Text:
    path: str
    content: bytes


@dataclass
class _Texts:
    """The files that are searched, and notes about the others."""

    tree: Tree
    walk: Walk
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
            if not entry.file or (self.glob and not matches(self.glob, entry.path)):
                continue
            if self.tree.is_secret(entry.path):
                self.secret += 1
                continue
            try:
                content = self.tree.read(entry.at, _FILE_BYTES)
            except RefusedError:
                self.secret += 1
            except TooLargeError:
                self.too_large.append(shown(entry.path))
            except OSError as error:
                self.walk.left_out.append(f"not searched: {shown(entry.path)}: {error.strerror}")
            else:
                if not is_binary(content):
                    yield _Text(entry.path, content)

    def notes(self) -> Iterator[str]:
        yield from self.walk.left_out
        if self.too_large:
            more = "" if len(self.too_large) <= 3 else f" and {len(self.too_large) - 3} more"
            yield f"too large to be searched: {', '.join(self.too_large[:3])}{more}"
        if self.secret:
            yield f"not searched: {counted(self.secret, 'file')} that may hold secrets"


def _search_batch(wanted: Grep, batch: list[_Text], limit: int, deadline: Deadline) -> list[str] | None:
    """Return the matching lines, or None if there was not enough time."""
    request = {
        "pattern": wanted.pattern,
        "ignore_case": wanted.ignore_case,
        "most": limit,
        "seconds": math.ceil(deadline.left) + 1,
    }
    texts = (piece for text in batch for piece in (len(text.content).to_bytes(8, "big"), text.content))
    output = _run_searcher(b"".join((json.dumps(request).encode(), b"\n", *texts)), deadline)
    if output is None:
        return None
    answer: dict[str, Any] = json.loads(output) if output else {"error": "it needs too much memory or time"}
    if "error" in answer:
        raise invalid(Tool.GREP, f"pattern: {answer['error']}. Use a regular expression of Python's `re`.")
    return [f"{shown(batch[number].path)}:{line}: {text}" for number, line, text in answer["found"]]


def _run_searcher(request: bytes, deadline: Deadline) -> bytes | None:
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


def _communicate(process: subprocess.Popen[bytes], request: bytes, deadline: Deadline) -> bytes | None:
    remaining: bytes | None = request
    while not deadline.over:
        try:
            return process.communicate(remaining, timeout=_TICK)[0]
        except subprocess.TimeoutExpired:
            remaining = None  # a further call goes on with the rest of the input
    return None
