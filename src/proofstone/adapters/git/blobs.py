"""Reading blobs, many of them, with one process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from proofstone.adapters.git.listing import GITLINK, in_tree
from proofstone.adapters.git.program import Git
from proofstone.errors import RepositoryError

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
    return [one.path for one in in_tree(git, tree) if one.mode == GITLINK]


def file_at(git: Git, commit: str, path: str) -> bytes | None:
    """A file's bytes in a commit; None if it has no such file."""
    done = git.run("cat-file", "blob", f"{commit}:{path}", accept=range(256))
    return done.stdout if done.returncode == 0 else None


def tree_files(git: Git, tree: str) -> dict[bytes, str]:
    """Every file of the tree, with its blob. Submodules have none."""
    return {one.path: one.thing for one in in_tree(git, tree) if one.mode != GITLINK}
