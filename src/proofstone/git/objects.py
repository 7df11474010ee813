"""What a tree or an index holds, path by path.

Reading blobs, many of them, with one process.

Whether objects are what their names say.

Git does not hash a blob when it reads it, so a file of the object store that was overwritten gives a tree other
content than its id promises. What was checked out is hashed here; only what a conversion altered is read again.

Objects of a private git directory that are damaged, removed so that they are written again.

Everything in a private git directory can be made again from the person's repository and work tree, but for objects that
a run holds by a ref. So what is sound stays, and damaged objects are removed one by one: git does not write an object
whose file is there already, however damaged it is, and would never get over it by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from proofstone.errors import RepositoryError
from proofstone.git.program import Git, GitFailedError, readable, words_of
from proofstone.git.store import Store
from proofstone.machine.files import discard

GITLINK = "160000"
SYMLINK = "120000"


class Held(NamedTuple):
    mode: str
    thing: str
    """The blob; of a submodule its commit."""
    path: bytes
    mark: str = ""
    """What the index says of it."""

    @property
    def is_file(self) -> bool:
        return self.mode.startswith("100")

    @property
    def left_out(self) -> bool:
        """Whether it is marked as left out by a sparse checkout."""
        return self.mark == "S"


def in_tree(git: Git, tree: str) -> list[Held]:
    found = []
    for record in git.records_of("ls-tree", "-r", "-z", tree):
        meta, _, path = record.partition(b"\t")
        mode, _, thing = words_of(meta, 3, "ls-tree")
        found.append(Held(mode, thing, path))
    return found


def in_index(git: Git) -> list[Held]:
    found = []
    for record in git.records("ls-files", "-z", "-t", "--stage"):
        meta, _, path = record.partition(b"\t")
        mark, mode, thing, _stage = words_of(meta, 4, "ls-files")
        found.append(Held(mode, thing, path, mark))
    return found


_MOST_DIGITS = 20
LARGEST = 4 << 20
"""Blobs above this are not read into memory; nothing that looks inside files needs larger ones."""


class BlobReader:
    """`git cat-file --batch`, kept open."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, blob: str) -> bytes | None:
        """The blob's bytes; None if it is larger than `LARGEST` or no blob."""
        return self.measured(blob)[1]

    def measured(self, blob: str) -> tuple[int, bytes | None]:
        """The blob's size, which is known however large it is, and its bytes."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("opened with pipes")
        try:
            self._process.stdin.write(blob.encode("ascii") + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:  # it was killed
            raise RepositoryError("git ended while it was showing objects", hint="run it again") from error
        header = self._process.stdout.readline().split()
        if len(header) != 3:
            raise RepositoryError(f"the object {blob} is missing from the repository", hint="git fsck says more")
        size = _size(header[2])
        content = self._take(size)
        return size, content if header[1] == b"blob" and size <= LARGEST else None

    def _take(self, size: int) -> bytes:
        """Read `size` bytes and the newline after them, keeping no more than the limit."""
        stream = self._process.stdout
        if stream is None:
            raise AssertionError("opened with pipes")
        content = stream.read(size) if size <= LARGEST else b""
        left = size - len(content)
        while left:
            further = stream.read(min(left, 1 << 20))
            if not further:
                raise RepositoryError("git ended while it was showing an object", hint="git fsck says more")
            left -= len(further)
        stream.read(1)
        return content


def _size(text: bytes) -> int:
    """Return the size that git names; it names one in at most twenty digits."""
    if not (text.isdigit() and len(text) <= _MOST_DIGITS):
        raise RepositoryError(f"git names {text[:40]!r} as the size of an object", hint="git fsck says more")
    return int(text)


@contextmanager
def blob_reader(git: Git) -> Iterator[BlobReader]:
    with git.start("cat-file", "--batch") as process:
        try:
            yield BlobReader(process)
        finally:
            if process.stdin:
                with suppress(BrokenPipeError):  # it was killed; whoever asks it for more is told
                    process.stdin.close()


def gitlinks(git: Git, tree: str) -> list[bytes]:
    """The submodules of a tree, by path."""
    return [item.path for item in in_tree(git, tree) if item.mode == GITLINK]


def file_at(git: Git, commit: str, path: str) -> bytes | None:
    """A file's bytes in a commit; None if it has no such file."""
    done = git.run("cat-file", "blob", f"{commit}:{path}", accept=range(256))
    return done.stdout if done.returncode == 0 else None


def tree_files(git: Git, tree: str) -> dict[bytes, str]:
    """Every file of the tree, with its blob. Submodules have none."""
    return {item.path: item.thing for item in in_tree(git, tree) if item.mode != GITLINK}


_GITLINK, _SYMLINK = b"160000", b"120000"


def verify_objects(git: Git, files: Path, object_format: str) -> None:
    """Every blob of the index, which was just checked out to `files`, bears the name of its content."""
    for blob, path in list(_altered(git, os.fsencode(files), object_format)):
        if _name(git.out("cat-file", "blob", blob), object_format) != blob:
            raise RepositoryError(
                f"{readable(path)}: the object {blob[:12]} does not hold what its name says: it is damaged, or "
                "somebody overwrote it",
                hint="`git fsck` lists such objects; fetch them again from a clone that is sound",
            )


def _altered(git: Git, root: bytes, object_format: str) -> Iterator[tuple[str, bytes]]:
    """Files whose bytes are not their blob's: by a conversion, or because the blob is not what it says."""
    for record in git.records("ls-files", "-z", "--stage"):
        meta, _, path = record.partition(b"\t")
        mode, blob, _stage = meta.split()
        if mode == _GITLINK:
            continue
        place = os.path.join(root, path)  # noqa: PTH118  thousands of files: bytes are several times faster
        name = _name(os.readlink(place), object_format) if mode == _SYMLINK else _file_name(place, object_format)  # noqa: PTH115
        if name != blob.decode("ascii"):
            yield blob.decode("ascii"), path


def _file_name(place: bytes, object_format: str) -> str:
    """The name that a blob of the file's bytes would have; in parts, for it may be large."""
    with open(place, "rb") as file:  # noqa: PTH123
        state = _begun(os.fstat(file.fileno()).st_size, object_format)
        while part := file.read(1 << 20):
            state.update(part)
    return state.hexdigest()


def _name(content: bytes, object_format: str) -> str:
    state = _begun(len(content), object_format)
    state.update(content)
    return state.hexdigest()


def _begun(size: int, object_format: str) -> hashlib._Hash:
    return hashlib.new(object_format, b"blob %d\0" % size, usedforsecurity=False)


_LOOSE: Final = re.compile(r"[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})").fullmatch
_PART: Final = 1 << 20


def sound_tree(store: Store, base: str, write: Callable[[], str], *, forget: Callable[[], object] | None = None) -> str:
    """The tree that `write` makes, once every object in which it differs from `base` is there and is what its name
    says. Otherwise damaged objects are removed, `forget` drops what was known of them, and it is written again."""
    try:
        tree = write()
        names = _new_objects(store, base, tree)
        damaged = _remove_damaged(store, names) or _missing(store, names)
    except GitFailedError:
        damaged = _remove_damaged(store, _all_objects(store))
        if not damaged:
            raise
    else:
        if not damaged:
            return tree
        damaged += _remove_damaged(store, _all_objects(store))  # a damaged tree did not name all that is below it
    if forget is not None:
        forget()
    tree = write()
    store.repairs.append(f"{store.objects}: objects were damaged or missing ({damaged}); they were written again")
    return tree


def is_whole_index(index: Path, object_format: str) -> bool:
    """Whether the last bytes of an index are the digest of those before them, as git writes it."""
    content = index.read_bytes()
    state = hashlib.new(object_format, usedforsecurity=False)
    state.update(content[: -state.digest_size])
    return content[-state.digest_size :] == state.digest()


def _new_objects(store: Store, base: str, tree: str) -> list[str]:
    """The blobs and trees that `tree` has and `base` has not."""
    records = store.git().records("diff-tree", "-r", "-t", "-z", "--raw", "--no-renames", "--full-index", base, tree)
    fields = [words_of(record, 5, "diff-tree") for record in records[::2]]
    names = {field[3] for field in fields if field[1] != GITLINK and field[4] != "D"}
    return [*names, tree]


def _all_objects(store: Store) -> list[str]:
    return [f"{path.parent.name}{path.name}" for path in store.objects.glob("??/*")]


def _missing(store: Store, names: Iterable[str]) -> int:
    """How many of these objects neither the store nor the person's repository has."""
    asked = store.git().out("cat-file", "--batch-check", stdin="".join(f"{name}\n" for name in names).encode("ascii"))
    return sum(line.endswith(b" missing") for line in asked.splitlines())


def _remove_damaged(store: Store, names: Iterable[str]) -> int:
    """How many loose objects of the store itself were not what their names say, and are gone now."""
    damaged = 0
    for name in names:
        place = f"{name[:2]}/{name[2:]}"
        path = store.objects / place
        if _LOOSE(place) and os.path.lexists(path) and not _is_sound(path, name, store.repository.object_format):
            discard(path)
            damaged += 1
    return damaged


def _is_sound(path: Path, name: str, object_format: str) -> bool:
    state = hashlib.new(object_format, usedforsecurity=False)
    unpacked = zlib.decompressobj()
    try:
        with path.open("rb") as file:
            while part := unpacked.unconsumed_tail or file.read(_PART):
                state.update(unpacked.decompress(part, _PART))
    except (OSError, zlib.error):
        return False
    return unpacked.eof and state.hexdigest() == name
