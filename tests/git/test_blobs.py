"""Reading blobs with one process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from proofstone.errors import RepositoryError
from proofstone.git.objects import MAX_BLOB_BYTES, BlobReader, open_blob_reader
from proofstone.git.program import Git
from tests.workshop import Workshop


@pytest.mark.parametrize("size", [10, MAX_BLOB_BYTES + 10])
def test_a_git_that_ends_within_an_object_is_an_error_and_no_endless_wait(size: int) -> None:
    shell = f"read asked; printf 'abc blob {size}\\n123'"
    with subprocess.Popen(["sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        with pytest.raises(RepositoryError, match="git ended"):
            BlobReader(process).read_with_size("abc")
        assert process.stdin is not None
        process.stdin.close()


def test_a_git_that_was_killed_is_named_and_leaves_no_broken_pipe(tmp_path: Path) -> None:
    workshop = Workshop.apart(tmp_path)
    root = workshop.repo({"a.txt": "a\n"})
    blob = workshop.git(root, "rev-parse", "HEAD:a.txt")
    with pytest.raises(RepositoryError, match=r"git ended|is missing"), open_blob_reader(Git(root)) as reader:
        assert reader.read(blob) == b"a\n"
        reader._process.kill()
        reader._process.wait()
        reader.read(blob)
