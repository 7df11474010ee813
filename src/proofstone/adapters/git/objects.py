"""Whether objects are what their names say.

Git does not hash a blob when it reads it, so a file of the object store that was overwritten gives a tree other
content than its id promises. What was checked out is hashed here; only what a conversion altered is read again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from proofstone.adapters.git.program import Git, readable
from proofstone.errors import RepositoryError

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
