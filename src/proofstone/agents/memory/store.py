"""Entries in a file, one JSON object a line, oldest first.

Rules:
- an entry is remembered when `write` has returned, whatever crashes afterwards; half a line that a crash left counts
  as nothing and is cut off by the next writer;
- an id is there once: who writes it again replaces it, and it is the newest then;
- forgetting, and any other revision, puts a new file in the place of the old one, all or nothing; what a crash left of
  one is removed by the next;
- several processes take turns at a lock, and the folder is for its owner only;
- the file is bounded: when it has grown too large, the oldest entries go.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from proofstone.agents.memory.models import MemoryEntry, Revision
from proofstone.agents.memory.rules.consolidation import words_in
from proofstone.errors import InputError, MachineError
from proofstone.ledger.rules.chain import canonical_json

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_ENTRY_BYTES: Final = 64 * 1024
_ASIDE: Final = "tmp-"


def memory_path(home: Path) -> Path:
    return home / "memory" / "entries.jsonl"


class FileMemory:
    """Implements `proofstone.agents.memory.models.Memory`."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max = max_bytes

    def write(self, entry: MemoryEntry) -> None:
        line = self._fitting(entry)
        with self._locked():
            kept = len(self._read())
            if kept + len(line) > self._max:
                self._replace(_newest([*self._entries(), entry], self._max // 2))
                return
            with self.path.open("r+b" if self.path.exists() else "xb") as file:
                file.truncate(kept)
                file.seek(kept)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if kept == 0:
                self._sync_folder()  # the file may be new

    def entries(self) -> tuple[MemoryEntry, ...]:
        return tuple(self._entries())

    def search(self, words: tuple[str, ...], limit: int = 10) -> tuple[MemoryEntry, ...]:
        """The entries that share the most words with these, newest first among equals; those that share none are not
        found. Without words: the newest."""
        wanted = words_in(words)
        found = [(len(wanted & words_in((entry.content, *entry.tags))), entry) for entry in reversed(self._entries())]
        if wanted:
            found = [(shared, entry) for shared, entry in found if shared]
        return tuple(entry for _, entry in sorted(found, key=lambda one: -one[0])[:limit])

    def forget(self, entry_id: str) -> bool:
        def without(entries: tuple[MemoryEntry, ...]) -> Revision:
            return Revision(superseded=tuple(entry.entry_id for entry in entries if entry.entry_id == entry_id))

        return bool(self.revise(without).superseded)

    def revise(self, rule: Callable[[tuple[MemoryEntry, ...]], Revision]) -> Revision:
        with self._locked():
            entries = self.entries()
            revision = rule(entries)
            if revision.new or revision.superseded:
                for entry in revision.new:
                    self._fitting(entry)
                gone = {*revision.superseded, *(entry.entry_id for entry in revision.new)}
                kept = [entry for entry in entries if entry.entry_id not in gone]
                self._replace(_newest([*kept, *revision.new], self._max))
            return revision

    def _fitting(self, entry: MemoryEntry) -> bytes:
        """The line, if it is not too large."""
        line = _line(entry)
        if len(line) > min(MAX_ENTRY_BYTES, self._max):
            raise InputError(
                f"{self.path}: entry {entry.entry_id} has {len(line)} bytes", hint=f"at most {MAX_ENTRY_BYTES}"
            )
        return line

    def _entries(self) -> list[MemoryEntry]:
        """Oldest first. A file that somebody has edited is read as far as it is ours, and named where it is not."""
        entries: dict[str, MemoryEntry] = {}
        for number, line in enumerate(self._read().split(b"\n")[:-1], start=1):
            try:
                entry = MemoryEntry.model_validate(json.loads(line))
            except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, or not of the schema
                raise InputError(
                    f"{self.path}, line {number}: not a memory entry ({_what(error)})",
                    hint="put the line right, or remove it",
                ) from error
            entries.pop(entry.entry_id, None)
            entries[entry.entry_id] = entry
        return list(entries.values())

    def _read(self) -> bytes:
        """The whole lines: what comes after the last line break was never acknowledged."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        return data[: data.rfind(b"\n") + 1]

    def _replace(self, entries: Iterable[MemoryEntry]) -> None:
        for left in self.path.parent.glob(f"{_ASIDE}*"):
            left.unlink()  # nobody else is at work: we hold the lock
        temporary = self.path.with_name(f"{_ASIDE}{secrets.token_hex(8)}")
        try:
            with temporary.open("xb") as file:
                file.writelines(map(_line, entries))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
            self._sync_folder()
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
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


def _line(entry: MemoryEntry) -> bytes:
    return canonical_json(entry.model_dump()).encode() + b"\n"


def _what(error: ValueError | RecursionError) -> str:
    """In one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _newest(entries: list[MemoryEntry], most: int) -> list[MemoryEntry]:
    """As many as fit, and the very newest in any case."""
    kept: list[MemoryEntry] = []
    size = 0
    for entry in reversed(entries):
        size += len(_line(entry))
        if kept and size > most:
            break
        kept.append(entry)
    return kept[::-1]
