"""Artifacts: complete outputs, stored under their SHA-256 as `ab/cdef…`.

A file appears under its name only when all of its bytes are on the disk: temporary file, fsync, rename, fsync of the
directory. Writing the same bytes twice is harmless. A writer has a maximum size: it counts and drops the bytes beyond.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedWriter
from pathlib import Path
from typing import Final, Self

from proofstone.errors import InputError, LedgerCorruptError, LedgerError
from proofstone.faults import fault_point
from proofstone.ledger.models import ArtifactRow

MAX_BYTES: Final = 64 * 1024 * 1024
_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True)
class ArtifactRef:
    hash: str
    size: int
    """The number of stored bytes, which the hash covers."""
    truncated: bool

    def to_row(self, media_type: str = "text/plain; charset=utf-8") -> ArtifactRow:
        return ArtifactRow(artifact=self.hash, size=self.size, media_type=media_type, truncated=self.truncated)


class ArtifactStore:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def open_writer(self, max_bytes: int = MAX_BYTES) -> ArtifactWriter:
        return ArtifactWriter(self, max_bytes)

    def put(self, data: bytes, max_bytes: int = MAX_BYTES) -> ArtifactRef:
        with self.open_writer(max_bytes) as writer:
            writer.write(data)
            return writer.finish()

    def path_of(self, digest: str) -> Path:
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise LedgerError(f"{digest!r} is not the hash of an artifact", hint="64 lower-case hex digits")
        return self.directory / digest[:2] / digest[2:]

    def find(self, start: str) -> str:
        """Return the only artifact whose hash begins with `start`."""
        if len(start) < 4 or not set(start) <= set("0123456789abcdef"):
            raise InputError(f"{start!r} is not the beginning of an artifact's hash", hint="at least 4 hex digits")
        names = [path.name for path in (self.directory / start[:2]).glob(f"{start[2:]}*")]
        if len(names) != 1:
            problem = "no artifact" if not names else f"{len(names)} artifacts"
            raise InputError(f"{self.directory}: {problem} whose hash begins with {start}")
        return start[:2] + names[0]

    def read(self, digest: str) -> bytes:
        """Return the bytes, after checking that they match the hash."""
        path = self.path_of(digest)
        with _translate_os_errors(path):
            data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise LedgerCorruptError(
                f"{path}: its content does not match the hash in its name", hint="restore it from a backup"
            )
        return data

    def find_problem(self, digest: str) -> str | None:
        """Return what is wrong with the artifact; None if it exists and is unchanged."""
        path = self.path_of(digest)
        if not path.is_file():
            return f"artifact {digest} is missing"
        actual = hashlib.sha256()
        with _translate_os_errors(path), path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                actual.update(chunk)
        return None if actual.hexdigest() == digest else f"artifact {digest} was changed"


class ArtifactWriter:
    """Write an artifact piece by piece. `finish` publishes it; leaving the `with` block without `finish` leaves
    nothing.
    """

    def __init__(self, store: ArtifactStore, max_bytes: int) -> None:
        self._store = store
        self._max = max_bytes
        self._stored_bytes = 0
        self._written_bytes = 0
        self._published = False
        self._hash = hashlib.sha256()
        self._temporary = store.directory / f"tmp-{secrets.token_hex(8)}"

    @cached_property
    def _file(self) -> BufferedWriter:
        """The temporary file, created on the first write: most agents write nothing."""
        with _translate_os_errors(self._temporary):
            self._store.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            return os.fdopen(os.open(self._temporary, flags, 0o600), "wb")

    @property
    def is_unpublished(self) -> bool:
        """Whether bytes were written that are not published yet."""
        return self._written_bytes > 0 and not self._published

    def write(self, data: bytes) -> None:
        stored = data[: self._max - self._stored_bytes]
        self._written_bytes += len(data)
        self._stored_bytes += len(stored)
        self._hash.update(stored)
        with _translate_os_errors(self._temporary):
            self._file.write(stored)

    def finish(self) -> ArtifactRef:
        digest = self._hash.hexdigest()
        target = self._store.path_of(digest)
        with _translate_os_errors(target):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if not target.parent.is_dir():
                target.parent.mkdir(mode=0o700, exist_ok=True)
                _sync_directory(self._store.directory)
            fault_point("artifact.before-rename")
            self._temporary.replace(target)
            fault_point("artifact.after-rename")
            _sync_directory(target.parent)
        self._published = True
        return ArtifactRef(digest, self._stored_bytes, self._written_bytes > self._stored_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove everything unpublished, even when the disk refuses the buffered rest."""
        if "_file" not in self.__dict__:
            return
        try:
            with _translate_os_errors(self._temporary):
                self._file.close()
        finally:
            self._temporary.unlink(missing_ok=True)


@contextmanager
def _translate_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"{path}: {error.strerror}", hint="the artifact was not stored; check PROOFSTONE_HOME"
        ) from error


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
