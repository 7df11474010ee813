"""Compare the files as they are now with a commit.

Git computes the difference but never sees the files: it would read attributes that an agent wrote, and run the user's
filters on them. So every file is read through `Tree`. A file that differs from its blob is put into a scratch store
unchanged, and git compares with that. Line endings that a checkout may have converted are restored. A file that a
filter of the user or an encoding converts, by the attributes of the base, cannot be compared; a note says so.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError, format_path
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.tool_context import ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.git.objects import GITLINK, SYMLINK, BlobReader, GitEntry, open_blob_reader
from proofstone.git.program import Git
from proofstone.git.snapshot import write_index_entries
from proofstone.machine.files import write_alternates

_MAX_FILE_BYTES: Final = 4 << 20
_MAX_TOTAL_BYTES: Final = 64 << 20
_MAX_CHANGED: Final = 1000
_CHUNK_BYTES: Final = 1 << 20
_MAX_LISTED: Final = 20
_NO_MODE: Final = "0"
_CONVERTING_ATTRIBUTES: Final = ("filter", "working-tree-encoding", "ident")


class _CurrentFile(NamedTuple):
    mode: str
    blob: str
    content: bytes | None
    """None: too large to be shown, or secret."""


@dataclass
class FileComparison:
    """The files that differ, and notes about those that cannot be shown."""

    git: Git
    """See `build_scratch_git`."""
    tree: FileTree
    deadline: ToolDeadline
    changed: dict[bytes, _CurrentFile | None] = field(default_factory=dict)
    """None: the file was deleted."""
    secret: list[str] = field(default_factory=list)
    too_large: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    converted_paths: list[str] = field(default_factory=list)
    other_endings: list[str] = field(default_factory=list)
    stop_note: str = ""

    def compare(self, base: Iterable[GitEntry]) -> None:
        """Compare these entries with the files. A path that is not in the commit has an empty `thing`."""
        size = 0
        for held in base:
            if self.deadline.is_over or size > _MAX_TOTAL_BYTES or len(self.changed) == _MAX_CHANGED:
                why = "time" if self.deadline.is_over else "too many changes"
                self.stop_note = f"stopped after {why}, at {format_path(os.fsdecode(held.path))}: narrow it with `path`"
                return
            if held.mode != GITLINK:
                size += self._compare_file(held)

    def _compare_file(self, base: GitEntry) -> int:
        path = os.fsdecode(base.path)
        try:
            current = self._read_current(path, base)
        except ToolRefusedError:
            self.secret.append(path)
            return 0
        except OSError as error:
            self.unreadable.append(f"{path}: {error.strerror}")
            return 0
        if (current.mode, current.blob) == (base.mode, base.object_id) if current else not base.object_id:
            return 0
        if self.tree.is_secret(path):
            self.secret.append(path)
        elif current and current.content is None:
            self.too_large.append(path)
        else:
            self.changed[base.path] = current
        return len(current.content or b"") if current else 0

    def _read_current(self, path: str, base: GitEntry) -> _CurrentFile | None:
        names = tuple(path.split("/"))
        algorithm = "sha256" if len(base.object_id) == 64 else "sha1"
        target = self.tree.read_link(names)
        if target is not None:
            content = os.fsencode(target)
            return _CurrentFile(SYMLINK, _compute_blob_id(algorithm, len(content), [content]), content)
        try:
            with self.tree.open_file(names) as file:
                return self._read(file, algorithm, base.object_id)
        except ToolFailedError:  # a folder, a pipe
            return None
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def _read(self, file: BinaryIO, algorithm: str, before: str) -> _CurrentFile:
        info = os.fstat(file.fileno())
        mode = "100755" if info.st_mode & stat.S_IXUSR else "100644"
        if info.st_size > _MAX_FILE_BYTES:
            same_size = self.git.try_line("cat-file", "-s", before) == str(info.st_size)
            return _CurrentFile(
                mode, _compute_blob_id(algorithm, info.st_size, self._read_chunks(file)) if same_size else "", None
            )
        content = file.read(_MAX_FILE_BYTES + 1)
        return _CurrentFile(mode, _compute_blob_id(algorithm, len(content), [content]), content)

    def _read_chunks(self, file: BinaryIO) -> Iterator[bytes]:
        while not self.deadline.is_over and (part := file.read(_CHUNK_BYTES)):
            yield part

    def undo_conversions(self, base: Mapping[bytes, GitEntry]) -> None:
        """Undo the conversions of a checkout, by the attributes in git's index."""
        for path in _find_converted(
            self.git, [path for path, current in self.changed.items() if current and base[path].object_id]
        ):
            self.converted_paths.append(os.fsdecode(path))
            del self.changed[path]
        with open_blob_reader(self.git) as reader:
            for path, current in list(self.changed.items()):
                if current and current.content and b"\r\n" in current.content and base[path].is_file:
                    self._restore_line_endings(reader, base[path], current, current.content)

    def _restore_line_endings(self, reader: BlobReader, base: GitEntry, current: _CurrentFile, content: bytes) -> None:
        before = reader.read(base.object_id)
        if before is None or b"\r\n" in before or b"\n" not in before or is_binary(content):
            return
        self.other_endings.append(os.fsdecode(base.path))
        self.changed[base.path] = current._replace(content=content.replace(b"\r\n", b"\n"))

    def update_index(self, scratch: Path, base: Mapping[bytes, GitEntry]) -> None:
        """Replace the commit in git's index by the files."""
        present = {path: current for path, current in self.changed.items() if current}
        files = [_write_content(scratch / f"{number}", current) for number, current in enumerate(present.values())]
        file_list = "".join(f"{file}\n" for file in files).encode()
        # --no-filters: take the bytes unchanged.
        blobs = (
            self.git.run_output("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=file_list)
            .decode("ascii")
            .split()
        )
        entries = [(current.mode, blob, path) for (path, current), blob in zip(present.items(), blobs, strict=True)]
        deleted = [
            (_NO_MODE, "0" * len(base[path].object_id), path) for path, current in self.changed.items() if not current
        ]
        write_index_entries(self.git, [*deleted, *entries])  # deletions first: a file may have become a folder

    def notes(self) -> Iterator[str]:
        yield self.stop_note
        yield _render_note("not shown because they may hold secrets", self.secret)
        yield _render_note("not shown because they are too large", self.too_large)
        yield _render_note("these cannot be read", self.unreadable)
        yield _render_note("not compared because git converts them when they are committed", self.converted_paths)
        yield _render_note("not shown: the lines end in CRLF here, and in LF in the commit", self.other_endings)


def build_scratch_git(git: Git, scratch: Path) -> Git:
    """Return git with the same store to read from. The index and all writes are in the scratch folder; no work tree."""
    objects = git.directory / git.run_line("rev-parse", "--git-path", "objects")
    (scratch / "objects" / "info").mkdir(parents=True)
    write_alternates(scratch, [str(objects.resolve())])
    variables = {**git.variables, "GIT_OBJECT_DIRECTORY": str(scratch / "objects")}
    return replace(git, index=scratch / "index", variables=variables)


def _find_converted(git: Git, paths: Iterable[bytes]) -> list[bytes]:
    """Return the paths that the attributes in the index convert, apart from line endings."""
    input_paths = b"".join(path + b"\0" for path in paths)
    records = git.run_records("check-attr", "--cached", "-z", "--stdin", *_CONVERTING_ATTRIBUTES, stdin=input_paths)
    filters = _list_filters(git)
    triples = zip(records[::3], records[1::3], records[2::3], strict=True)
    converted_paths = (path for path, name, value in triples if _converts(name, value, filters))
    return list(dict.fromkeys(converted_paths))


def _converts(name: bytes, value: bytes, filters: set[bytes]) -> bool:
    return value in filters if name == b"filter" else value not in (b"unspecified", b"unset")


def _list_filters(git: Git) -> set[bytes]:
    """Return the filters that the user has configured. Others convert nothing."""
    settings = git.try_line("config", "--name-only", "--get-regexp", r"^filter\.") or ""
    return {os.fsencode(name.split(".", 1)[1].rpartition(".")[0]) for name in settings.split("\n") if name}


def _compute_blob_id(algorithm: str, size: int, parts: Iterable[bytes]) -> str:
    """Return git's id of the blob."""
    state = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def _write_content(path: Path, current: _CurrentFile) -> Path:
    path.write_bytes(current.content or b"")
    return path


def _render_note(note: str, paths: list[str]) -> str:
    if not paths:
        return ""
    more = f" and {len(paths) - _MAX_LISTED} more" if len(paths) > _MAX_LISTED else ""
    return f"{note}: {', '.join(map(format_path, paths[:_MAX_LISTED]))}{more}"
