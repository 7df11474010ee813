"""Anchors: the position of a ledger's chain at one moment, stored outside of the ledger.

A chain alone cannot show that its tail was cut off or that all of it was hashed again. An anchor can: the ledger must
still hold an entry with that number and that hash. An anchor is one line of JSON, and a file may hold many.

Every anchor is a ref of the repository. A ref can be removed together with the rows of the ledger, so every anchor is
also appended to a file in the state directory, one file per repository, and synced to the disk. These files are never
rewritten. An incomplete last line, left by a crash, is ignored.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import ValidationError

from proofstone.errors import InputError, LedgerCorruptError, LedgerError
from proofstone.faults import fault_point
from proofstone.ledger.rules.anchors import Anchor, StoredAnchor
from proofstone.ledger.rules.chain import ChainBreak, canonical_json

__all__ = ["Anchor", "check_anchors", "parse_anchors"]


def parse_anchors(data: bytes, *, source: str) -> tuple[Anchor, ...]:
    """Parse anchors, one per line. `source` says where the bytes come from, for the error message."""
    anchors = []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            anchors.append(Anchor.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "line"
            raise InputError(
                f"{source}, line {number}: not an anchor ({where}: {first['msg']})",
                hint='a line is {"hash":"<64 hex digits>","ledger_id":"…","seq":<number>}',
            ) from error
    return tuple(anchors)


def check_anchors(
    anchors: Sequence[Anchor], head: Anchor, hash_at: Callable[[int], str | None]
) -> tuple[ChainBreak, ...]:
    """Return the anchors that the ledger contradicts. `hash_at` returns the hash of an entry, the genesis hash
    for 0.
    """
    breaks, last_good = [], 0
    for anchor in sorted(anchors, key=lambda anchor: anchor.seq):
        if anchor.ledger_id != head.ledger_id:
            breaks.append(
                ChainBreak(1, f"anchor {anchor.seq} is of ledger {anchor.ledger_id}, this is {head.ledger_id}")
            )
        elif anchor.seq > head.seq:
            reason = f"cut after entry {head.seq}: an anchor names entry {anchor.seq}"
            breaks.append(ChainBreak(head.seq + 1, reason))
        elif hash_at(anchor.seq) != anchor.hash:
            reason = f"not the anchored entry: entries {last_good + 1} to {anchor.seq} were rewritten"
            breaks.append(ChainBreak(anchor.seq, reason))
        else:
            last_good = anchor.seq
    return tuple(breaks)


_TAIL_BYTES: Final = 64 * 1024
_RAW_PREFIX: Final = "bytes:"
"""The prefix of a path that is not valid UTF-8. Other paths begin with a slash."""


class AnchorFiles:
    def __init__(self, home: Path) -> None:
        self.folder = home / "anchors"

    def find_last(self, git_directory: Path) -> StoredAnchor | None:
        """Return the last anchor of exactly this repository: a new clone at the same path is another repository."""
        stored = self._read_last(self._file_of(git_directory))
        return stored if stored is not None and stored.identity == directory_identity(git_directory) else None

    def list_last(self) -> Iterator[StoredAnchor]:
        """Yield the last anchor of each repository, including repositories that no longer exist."""
        try:
            files = sorted(self.folder.glob("*.jsonl"))
        except OSError as error:
            raise _access_error(self.folder, "read", error) from error
        for file in files:
            stored = self._read_last(file)
            if stored is not None:
                yield stored

    def append_anchor(self, git_directory: Path, anchor: Anchor) -> None:
        identity = directory_identity(git_directory)
        self.append_stored(StoredAnchor(anchor=anchor, repository=path_to_text(git_directory), identity=identity))

    def append_stored(self, stored: StoredAnchor) -> None:
        """Append the anchor to the file of its repository, which may no longer exist."""
        file = self._file_of(text_to_path(stored.repository))
        line = canonical_json(stored.model_dump()).encode() + b"\n"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_new = not file.exists()
            with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "rb+") as opened:
                size = opened.seek(0, os.SEEK_END)
                is_incomplete = size > 0 and os.pread(opened.fileno(), 1, size - 1) != b"\n"
                fault_point("anchor.before-file")
                os.write(opened.fileno(), (b"\n" if is_incomplete else b"") + line)
                os.fsync(opened.fileno())
            if is_new:
                _sync(self.folder)
            fault_point("anchor.after-file")
        except OSError as error:
            raise _access_error(file, "written", error) from error

    def _file_of(self, git_directory: Path) -> Path:
        name = hashlib.sha256(os.fsencode(git_directory)).hexdigest()[:32]
        return self.folder / f"{name}.jsonl"

    def _read_last(self, file: Path) -> StoredAnchor | None:
        try:
            with file.open("rb") as opened:
                size = opened.seek(0, os.SEEK_END)
                opened.seek(max(0, size - _TAIL_BYTES))
                data = opened.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _access_error(file, "read", error) from error
        lines = [line for line in data[: data.rfind(b"\n") + 1].splitlines() if line.strip()]
        for line in reversed(lines):
            try:
                return StoredAnchor.model_validate_json(line)
            except ValidationError:
                continue  # an incomplete line from a crash: the next writer ended it and appended its own
        if lines:
            raise LedgerCorruptError(
                f"{file}: contains no readable anchor",
                hint="restore it from a backup, or remove it if you know the reason",
            )
        return None


def path_to_text(path: Path) -> str:
    """Return the path as text that can be encoded, even if a file name is not valid UTF-8."""
    raw = os.fsencode(path)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _RAW_PREFIX + quote_from_bytes(raw)


def text_to_path(text: str) -> Path:
    """Return the path that `path_to_text` has written."""
    return (
        Path(os.fsdecode(unquote_to_bytes(text.removeprefix(_RAW_PREFIX))))
        if text.startswith(_RAW_PREFIX)
        else Path(text)
    )


def directory_identity(git_directory: Path) -> str:
    try:
        status = git_directory.stat()
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def _access_error(path: Path, action: str, error: OSError) -> LedgerError:
    return LedgerError(f"{path}: anchors cannot be {action} ({error.strerror})", hint="check PROOFSTONE_HOME")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
