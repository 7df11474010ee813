"""Reading blobs with one process."""

from __future__ import annotations

import subprocess

import pytest

from assay.adapters.git.blobs import LARGEST, BlobReader
from assay.errors import RepositoryError


@pytest.mark.parametrize("size", [10, LARGEST + 10])
def test_a_git_that_ends_within_an_object_is_an_error_and_no_endless_wait(size: int) -> None:
    shell = f"read asked; printf 'abc blob {size}\\n123'"
    with subprocess.Popen(["sh", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        with pytest.raises(RepositoryError, match="git ended"):
            BlobReader(process).measured("abc")
        assert process.stdin is not None
        process.stdin.close()
