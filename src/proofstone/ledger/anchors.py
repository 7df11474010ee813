"""Anchors: where a ledger's chain stood at a moment, kept outside of it.

A chain alone does not see that its tail was cut or that all of it was hashed anew. An anchor does: the ledger
must still hold an entry with that number and that hash. An anchor is one line of JSON; a file may hold many.

Anchors in the state directory, outside of the database: a file for each repository, to which lines are added.

A ref alone can be removed with the ledger's rows. So every anchor is kept here as well, and synced to the disk. Nothing
here is ever rewritten; what a crash left of a last line is passed over.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from pydantic import ValidationError

from proofstone.errors import InputError, LedgerCorruptError, LedgerError
from proofstone.faults import fault_point
from proofstone.ledger.rules.anchors import Anchor, KeptAnchor
from proofstone.ledger.rules.chain import Break, canonical_json

__all__ = ["Anchor", "check_anchors", "read_anchors", "write_anchors"]


def write_anchors(anchors: Iterable[Anchor]) -> bytes:
    return b"".join(anchor.to_bytes() for anchor in anchors)


def read_anchors(data: bytes, *, source: str) -> tuple[Anchor, ...]:
    """`source` names where the bytes are from, for the message when a line is not an anchor."""
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


def check_anchors(anchors: Sequence[Anchor], head: Anchor, hash_at: Callable[[int], str | None]) -> tuple[Break, ...]:
    """The anchors that the ledger no longer agrees with. `hash_at` gives an entry's hash, for 0 the start."""
    found, good = [], 0
    for anchor in sorted(anchors, key=lambda item: item.seq):
        if anchor.ledger_id != head.ledger_id:
            found.append(Break(1, f"anchor {anchor.seq} is of ledger {anchor.ledger_id}, this is {head.ledger_id}"))
        elif anchor.seq > head.seq:
            reason = f"cut after entry {head.seq}: an anchor saw the chain at entry {anchor.seq}"
            found.append(Break(head.seq + 1, reason))
        elif hash_at(anchor.seq) != anchor.hash:
            reason = f"not the entry that was anchored: entries {good + 1} to {anchor.seq} were written anew"
            found.append(Break(anchor.seq, reason))
        else:
            good = anchor.seq
    return tuple(found)


_TAIL: Final = 64 * 1024
_RAW: Final = "bytes:"
"""Before a path that is no text. Other paths begin with a slash."""


class KeptAnchors:
    def __init__(self, home: Path) -> None:
        self.folder = home / "anchors"

    def of(self, git_directory: Path) -> KeptAnchor | None:
        """The last anchor of this very repository: a new clone at the same path is another one."""
        found = self._last(self._file(git_directory))
        return found if found is not None and found.identity == identity_of(git_directory) else None

    def all(self) -> Iterator[KeptAnchor]:
        """The last anchor of each repository, also of those that are gone."""
        try:
            files = sorted(self.folder.glob("*.jsonl"))
        except OSError as error:
            raise _failed(self.folder, "read", error) from error
        for file in files:
            found = self._last(file)
            if found is not None:
                yield found

    def keep(self, git_directory: Path, anchor: Anchor) -> None:
        identity = identity_of(git_directory)
        self.keep_again(KeptAnchor(anchor=anchor, repository=path_to_text(git_directory), identity=identity))

    def keep_again(self, kept: KeptAnchor) -> None:
        """Add it to the file of its repository, which need not be there any more."""
        file = self._file(text_to_path(kept.repository))
        line = canonical_json(kept.model_dump()).encode() + b"\n"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_new = not file.exists()
            with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "rb+") as opened:
                size = opened.seek(0, os.SEEK_END)
                torn = size > 0 and os.pread(opened.fileno(), 1, size - 1) != b"\n"
                fault_point("anchor.before-file")
                os.write(opened.fileno(), (b"\n" if torn else b"") + line)
                os.fsync(opened.fileno())
            if is_new:
                _sync(self.folder)
            fault_point("anchor.after-file")
        except OSError as error:
            raise _failed(file, "written", error) from error

    def _file(self, git_directory: Path) -> Path:
        name = hashlib.sha256(os.fsencode(git_directory)).hexdigest()[:32]
        return self.folder / f"{name}.jsonl"

    def _last(self, file: Path) -> KeptAnchor | None:
        try:
            with file.open("rb") as opened:
                size = opened.seek(0, os.SEEK_END)
                opened.seek(max(0, size - _TAIL))
                data = opened.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(file, "read", error) from error
        lines = [line for line in data[: data.rfind(b"\n") + 1].splitlines() if line.strip()]
        for line in reversed(lines):
            try:
                return KeptAnchor.model_validate_json(line)
            except ValidationError:
                continue  # what a crash left of a line: the next writer ended it, and wrote its own behind it
        if lines:
            raise LedgerCorruptError(
                f"{file}: holds no anchor that can be read", hint="restore it from a copy, or remove it if you know why"
            )
        return None


def path_to_text(path: Path) -> str:
    """Return the path as text that can be encoded, also where a file name is not valid UTF-8."""
    raw = os.fsencode(path)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _RAW + quote_from_bytes(raw)


def text_to_path(text: str) -> Path:
    """Return the path that `path_to_text` has written."""
    return Path(os.fsdecode(unquote_to_bytes(text.removeprefix(_RAW)))) if text.startswith(_RAW) else Path(text)


def identity_of(git_directory: Path) -> str:
    try:
        status = git_directory.stat()
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def _failed(path: Path, what: str, error: OSError) -> LedgerError:
    return LedgerError(f"{path}: anchors cannot be {what} ({error.strerror})", hint="see PROOFSTONE_HOME")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
