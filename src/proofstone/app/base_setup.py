"""Find the commands that install the dependencies of a base, when its settings name none."""

from __future__ import annotations

from proofstone.check.discovery import discover
from proofstone.check.ecosystems.setup_commands import SetupCommand, find_setup_commands
from proofstone.git.objects import list_tree_files, open_blob_reader
from proofstone.git.program import decode_path
from proofstone.git.repository import Repository


def detect_setup(repository: Repository, tree: str) -> tuple[SetupCommand, ...]:
    """Return the commands that the lock files and manifests of a tree ask for. Nothing is run."""
    files = {decode_path(path): blob for path, blob in list_tree_files(repository.git, tree).items()}
    with open_blob_reader(repository.git) as blobs:

        def read(path: str) -> bytes | None:
            return blobs.read(files[path]) if path in files else None

        return find_setup_commands(list(files), read, discover(list(files), read).specs)
