"""A memory in a file: one JSON object per line, the oldest first.

Rules:
- an entry is durable when `write` has returned; an incomplete line after a crash is ignored, and the next writer
  removes it;
- an id occurs once: writing it again replaces the entry, which is then the newest;
- forgetting, and any other revision, replaces the file atomically; the next revision removes temporary files that a
  crash left behind;
- several processes take turns with a lock, and only the owner can access the folder;
- the file is bounded: when it grows too large, the oldest entries are dropped.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proofstone.agents.memory.models import MemoryEntry, MemoryRevision, MemoryStore
from proofstone.agents.memory.rules.words import extract_stems
from proofstone.errors import InputError, MachineError
from proofstone.ledger.rules.chain import canonical_json

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRY_BYTES: Final = 64 * 1024
_TEMPORARY_PREFIX: Final = "tmp-"


def memory_path(home: Path) -> Path:
    return home / "memory" / "entries.jsonl"


class FileMemory:
    """Implements `proofstone.agents.memory.models.MemoryStore`."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> None:
        self.path = path
        self._max = max_bytes

    def write(self, entry: MemoryEntry) -> None:
        line = self._encode_checked(entry)
        with self._lock():
            size = len(self._read())
            if size + len(line) > self._max:
                self._replace(_keep_newest([*self._entries(), entry], self._max // 2))
                return
            with self.path.open("r+b" if self.path.exists() else "xb") as file:
                file.truncate(size)
                file.seek(size)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if size == 0:
                self._sync_folder()  # the file may be new

    def entries(self) -> tuple[MemoryEntry, ...]:
        return tuple(self._entries())

    def search(self, words: tuple[str, ...], limit: int = 10) -> tuple[MemoryEntry, ...]:
        """Return the entries that share the most words with these, by their stems, the newest first among equals.
        Entries that share none are left out. Without words, return the newest entries."""
        return _search(self._entries(), words, limit)

    def revise(self, rule: Callable[[tuple[MemoryEntry, ...]], MemoryRevision]) -> MemoryRevision:
        with self._lock():
            entries = self.entries()
            revision = rule(entries)
            if revision.new or revision.superseded:
                for entry in revision.new:
                    self._encode_checked(entry)
                removed_ids = {*revision.superseded, *(entry.entry_id for entry in revision.new)}
                remaining = [entry for entry in entries if entry.entry_id not in removed_ids]
                self._replace(_keep_newest([*remaining, *revision.new], self._max))
            return revision

    def _encode_checked(self, entry: MemoryEntry) -> bytes:
        """Return the line of an entry. Raise InputError if it is too large."""
        line = _encode_entry(entry)
        if len(line) > min(MAX_ENTRY_BYTES, self._max):
            raise InputError(
                f"{self.path}: entry {entry.entry_id} has {len(line)} bytes", hint=f"at most {MAX_ENTRY_BYTES}"
            )
        return line

    def _entries(self) -> list[MemoryEntry]:
        """Return the entries, the oldest first. Raise InputError for the first line that is not an entry."""
        entries: dict[str, MemoryEntry] = {}
        for number, line in enumerate(self._read().split(b"\n")[:-1], start=1):
            try:
                entry = MemoryEntry.model_validate(json.loads(line))
            except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or not an entry
                raise InputError(
                    f"{self.path}, line {number}: not a memory entry ({_describe_error(error)})",
                    hint="correct the line, or remove it",
                ) from error
            entries.pop(entry.entry_id, None)
            entries[entry.entry_id] = entry
        return list(entries.values())

    def _read(self) -> bytes:
        """Return the complete lines. Text after the last line break was never acknowledged."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        return data[: data.rfind(b"\n") + 1]

    def _replace(self, entries: Iterable[MemoryEntry]) -> None:
        for leftover in self.path.parent.glob(f"{_TEMPORARY_PREFIX}*"):
            leftover.unlink()  # safe, because this process holds the lock
        temporary = self.path.with_name(f"{_TEMPORARY_PREFIX}{secrets.token_hex(8)}")
        try:
            with temporary.open("xb") as file:
                file.writelines(map(_encode_entry, entries))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
            self._sync_folder()
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        folder = self.path.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (folder / "lock").open("w")
        except OSError as error:
            raise MachineError(
                f"{folder}: cannot be written to ({error.strerror})", hint="set PROOFSTONE_HOME to a folder of your own"
            ) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _sync_folder(self) -> None:
        descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _encode_entry(entry: MemoryEntry) -> bytes:
    return canonical_json(entry.model_dump()).encode() + b"\n"


def _describe_error(error: ValueError | RecursionError) -> str:
    """Return the error in one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _keep_newest(entries: list[MemoryEntry], most: int) -> list[MemoryEntry]:
    """Return as many of the newest entries as fit, and at least the newest one."""
    kept: list[MemoryEntry] = []
    size = 0
    for entry in reversed(entries):
        size += len(_encode_entry(entry))
        if kept and size > most:
            break
        kept.append(entry)
    return kept[::-1]


@dataclass(frozen=True)
class ScopedMemory:
    """The memory as a run in one repository uses it: it reads and combines what runs in this repository have stored.
    With `is_shared`, it also reads what runs in other repositories have stored. Implements
    `proofstone.agents.memory.models.MemoryStore`.
    """

    memory: MemoryStore
    repository: str
    is_shared: bool = False

    def write(self, entry: MemoryEntry) -> None:
        self.memory.write(entry.model_copy(update={"repository": self.repository}))

    def entries(self) -> tuple[MemoryEntry, ...]:
        entries = self.memory.entries()
        return entries if self.is_shared else self._select_own(entries)

    def search(self, words: tuple[str, ...], limit: int = 10) -> tuple[MemoryEntry, ...]:
        return _search(self.entries(), words, limit)

    def revise(self, rule: Callable[[tuple[MemoryEntry, ...]], MemoryRevision]) -> MemoryRevision:
        return self.memory.revise(lambda entries: rule(self._select_own(entries)))

    def _select_own(self, entries: Iterable[MemoryEntry]) -> tuple[MemoryEntry, ...]:
        return tuple(entry for entry in entries if entry.repository == self.repository)


def _search(entries: Sequence[MemoryEntry], words: tuple[str, ...], limit: int) -> tuple[MemoryEntry, ...]:
    wanted = extract_stems(words)
    scored = [(len(wanted & extract_stems((entry.content, *entry.tags))), entry) for entry in reversed(entries)]
    if wanted:
        scored = [(shared, entry) for shared, entry in scored if shared]
    return tuple(entry for _, entry in sorted(scored, key=lambda pair: -pair[0])[:limit])
