"""Read the objects of trees and indexes, and make sure that they are undamaged.

*Verification.* Git does not hash a blob when it reads it, so an overwritten file of the object store gives a tree other
content than its id promises. Checked-out files are hashed here; a blob is read again only if a conversion changed its
file.

*Repair.* Everything in a private git directory can be created again from the user's repository and work tree, except
objects that a run holds by a ref. So intact objects stay, and damaged ones are removed one by one: git does not write
an object whose file exists already, however damaged it is, and would never recover by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from proofstone.errors import RepositoryError
from proofstone.git.program import Git, GitCommandError, decode_path, split_record
from proofstone.git.store import Store
from proofstone.machine.files import remove_path

GITLINK = "160000"
SYMLINK = "120000"


class GitEntry(NamedTuple):
    """An entry of a tree or an index."""

    mode: str
    object_id: str
    """The id of the blob; for a submodule, of its commit."""
    path: bytes
    status: str = ""
    """The status letter of `git ls-files -t`."""

    @property
    def is_file(self) -> bool:
        return self.mode.startswith("100")

    @property
    def is_left_out(self) -> bool:
        """Whether the entry is marked as left out by a sparse checkout."""
        return self.status == "S"


def list_tree(git: Git, tree: str) -> list[GitEntry]:
    """Return the entries of a tree, recursively."""
    entries = []
    for record in git.run_cached_records("ls-tree", "-r", "-z", tree):
        meta, _, path = record.partition(b"\t")
        mode, _, object_id = split_record(meta, 3, "ls-tree")
        entries.append(GitEntry(mode, object_id, path))
    return entries


def list_index(git: Git) -> list[GitEntry]:
    """Return the entries of git's index."""
    entries = []
    for record in git.run_records("ls-files", "-z", "-t", "--stage"):
        meta, _, path = record.partition(b"\t")
        mark, mode, object_id, _stage = split_record(meta, 4, "ls-files")
        entries.append(GitEntry(mode, object_id, path, mark))
    return entries


_MAX_DIGITS = 20
MAX_BLOB_BYTES = 4 << 20
"""Larger blobs are not read into memory; nothing that looks inside files needs them."""


class BlobReader:
    """A running `git cat-file --batch`, which reads many blobs with one process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, blob: str) -> bytes | None:
        """Return the blob's bytes, or None if it is larger than `MAX_BLOB_BYTES` or not a blob."""
        return self.read_with_size(blob)[1]

    def read_with_size(self, blob: str) -> tuple[int, bytes | None]:
        """Return the blob's size, however large it is, and its bytes."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("opened with pipes")
        try:
            self._process.stdin.write(blob.encode("ascii") + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:  # git was killed
            raise RepositoryError("git ended while it was reading objects", hint="run the command again") from error
        header = self._process.stdout.readline().split()
        if len(header) != 3:
            raise RepositoryError(f"the object {blob} is missing from the repository", hint="run `git fsck`")
        size = _parse_size(header[2])
        content = self._read_content(size)
        return size, content if header[1] == b"blob" and size <= MAX_BLOB_BYTES else None

    def _read_content(self, size: int) -> bytes:
        """Read `size` bytes and the newline after them, but keep no more than the limit."""
        stream = self._process.stdout
        if stream is None:
            raise AssertionError("opened with pipes")
        content = stream.read(size) if size <= MAX_BLOB_BYTES else b""
        remaining = size - len(content)
        while remaining:
            chunk = stream.read(min(remaining, 1 << 20))
            if not chunk:
                raise RepositoryError("git ended while it was reading an object", hint="run `git fsck`")
            remaining -= len(chunk)
        stream.read(1)
        return content


def _parse_size(text: bytes) -> int:
    """Parse the size of an object, which has at most twenty digits."""
    if not (text.isdigit() and len(text) <= _MAX_DIGITS):
        raise RepositoryError(f"git reports {text[:40]!r} as the size of an object", hint="run `git fsck`")
    return int(text)


@contextmanager
def open_blob_reader(git: Git) -> Iterator[BlobReader]:
    """Open a reader of blobs and close it at the end."""
    with git.start("cat-file", "--batch") as process:
        try:
            yield BlobReader(process)
        finally:
            if process.stdin:
                with suppress(BrokenPipeError):  # git was killed; the next read reports it
                    process.stdin.close()


def list_submodules(git: Git, tree: str) -> list[bytes]:
    """Return the paths of the submodules of a tree."""
    return [entry.path for entry in list_tree(git, tree) if entry.mode == GITLINK]


def read_file_at(git: Git, commit: str, path: str) -> bytes | None:
    """Return a file's bytes in a commit, or None if the commit has no such file."""
    result = git.run("cat-file", "blob", f"{commit}:{path}", accept=range(256))
    return result.stdout if result.returncode == 0 else None


def read_files_at(git: Git, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of those files that a commit, named by its id, has; by one call of git."""
    names = "".join(f"{commit}:{path}\n" for path in paths)
    output = git.run_cached_input("cat-file", "--batch", stdin=names.encode())
    files: dict[str, bytes] = {}
    for path in paths:
        header, _, output = output.partition(b"\n")
        words = header.split()
        if len(words) == 3 and words[0] != f"{commit}:{path}".encode():
            size = _parse_size(words[2])
            if words[1] == b"blob":
                files[path] = output[:size]
            output = output[size + 1 :]
    return files


def list_tree_files(git: Git, tree: str) -> dict[bytes, str]:
    """Return every file of the tree with its blob. Submodules are left out."""
    return {entry.path: entry.object_id for entry in list_tree(git, tree) if entry.mode != GITLINK}


_GITLINK, _SYMLINK = b"160000", b"120000"


def verify_objects(git: Git, files: Path, object_format: str) -> None:
    """Verify that every blob of the index, which was just checked out to `files`, has the content
    that its id promises.
    """
    for blob, path in list(_find_altered(git, os.fsencode(files), object_format)):
        if _blob_id(git.run_output("cat-file", "blob", blob), object_format) != blob:
            raise RepositoryError(
                f"{decode_path(path)}: the object {blob[:12]} does not hold what its name promises: it is damaged, or "
                "somebody overwrote it",
                hint="`git fsck` lists such objects; fetch them again from an intact clone",
            )


def _find_altered(git: Git, root: bytes, object_format: str) -> Iterator[tuple[str, bytes]]:
    """Yield files whose bytes differ from their blob: because of a conversion, or because the blob is damaged."""
    for record in git.run_records("ls-files", "-z", "--stage"):
        meta, _, path = record.partition(b"\t")
        mode, blob, _stage = meta.split()
        if mode == _GITLINK:
            continue
        place = os.path.join(root, path)  # noqa: PTH118  thousands of files: bytes are several times faster
        name = _blob_id(os.readlink(place), object_format) if mode == _SYMLINK else _file_id(place, object_format)  # noqa: PTH115
        if name != blob.decode("ascii"):
            yield blob.decode("ascii"), path


def _file_id(place: bytes, object_format: str) -> str:
    """Return the id of a blob with the file's bytes; the file is read in chunks, because it may be large."""
    with open(place, "rb") as file:  # noqa: PTH123
        state = _start_hash(os.fstat(file.fileno()).st_size, object_format)
        while chunk := file.read(1 << 20):
            state.update(chunk)
    return state.hexdigest()


def _blob_id(content: bytes, object_format: str) -> str:
    state = _start_hash(len(content), object_format)
    state.update(content)
    return state.hexdigest()


def _start_hash(size: int, object_format: str) -> hashlib._Hash:
    return hashlib.new(object_format, b"blob %d\0" % size, usedforsecurity=False)


_is_loose_path: Final = re.compile(r"[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})").fullmatch
_CHUNK_BYTES: Final = 1 << 20


def write_intact_tree(
    store: Store, base: str, write: Callable[[], str], *, forget: Callable[[], object] | None = None
) -> str:
    """Return the tree that `write` creates, with every object in which it differs from `base` present and intact.

    If an object is missing or damaged, damaged objects are removed, `forget` drops cached state about them, and `write`
    is called again.
    """
    try:
        tree = write()
        names = _list_new_objects(store, base, tree)
        damaged = _remove_damaged(store, names) or _count_missing(store, names)  # what is there is intact
    except GitCommandError:
        damaged = _remove_damaged(store, _list_all_objects(store))
        if not damaged:
            raise
    else:
        if not damaged:
            return tree
        damaged += _remove_damaged(store, _list_all_objects(store))  # a damaged tree did not list all objects below it
    if forget is not None:
        forget()
    tree = write()
    store.repairs.append(f"{store.objects}: {damaged} damaged or missing objects were written again")
    return tree


def is_intact_index(index: Path, object_format: str) -> bool:
    """Return whether an index ends with the digest of its content, as git writes it."""
    content = index.read_bytes()
    state = hashlib.new(object_format, usedforsecurity=False)
    state.update(content[: -state.digest_size])
    return content[-state.digest_size :] == state.digest()


def _list_new_objects(store: Store, base: str, tree: str) -> list[str]:
    """Return the blobs and trees that `tree` has and `base` has not."""
    records = store.git().run_records(
        "diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--full-index", base, tree
    )
    fields = [split_record(record, 5, "diff-tree") for record in records[::2]]
    names = {field[3] for field in fields if field[1] != GITLINK and field[4] != "D"}
    return [*names, tree]


def _list_all_objects(store: Store) -> list[str]:
    return [f"{path.parent.name}{path.name}" for path in store.objects.glob("??/*")]


def _count_missing(store: Store, names: Iterable[str]) -> int:
    """Count the objects that neither the store nor the user's repository has. Git is asked for those that are no files
    of the store.
    """
    absent = [name for name in names if not (store.objects / name[:2] / name[2:]).is_file()]
    if not absent:
        return 0
    output = store.git().run_output(
        "cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in absent).encode("ascii")
    )
    return sum(line.endswith(b" missing") for line in output.splitlines())


def _remove_damaged(store: Store, names: Iterable[str]) -> int:
    """Remove loose objects of the store itself whose content does not match their id, and return how
    many there were.
    """
    damaged = 0
    for name in names:
        relative = f"{name[:2]}/{name[2:]}"
        path = store.objects / relative
        if (
            _is_loose_path(relative)
            and os.path.lexists(path)
            and not _is_intact(path, name, store.repository.object_format)
        ):
            remove_path(path)
            damaged += 1
    return damaged


def _is_intact(path: Path, name: str, object_format: str) -> bool:
    state = hashlib.new(object_format, usedforsecurity=False)
    decompressor = zlib.decompressobj()
    try:
        with path.open("rb") as file:
            while chunk := decompressor.unconsumed_tail or file.read(_CHUNK_BYTES):
                state.update(decompressor.decompress(chunk, _CHUNK_BYTES))
    except (OSError, zlib.error):
        return False
    return decompressor.eof and state.hexdigest() == name
