"""Held-out checks (L9): commands that whoever made the change was never shown, run with files of their own.

What they are and what they print goes into the ledger and nowhere else: findings and reports may be read by the author.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofstone.contracts.check import CheckKind, CheckSpec
from proofstone.errors import InputError

_MOST_BYTES = 64 << 20


def held_out_specs(commands: Sequence[str]) -> tuple[CheckSpec, ...]:
    return tuple(
        CheckSpec(
            name="held-out" if len(commands) == 1 else f"held-out-{number}",
            kind=CheckKind.HELD_OUT,
            tier=2,
            tool="sh",
            shell=command,
        )
        for number, command in enumerate(commands, start=1)
    )


def held_out_files(folder: Path | None) -> dict[str, bytes]:
    """The files of the folder, by where they go in the tree."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise InputError(f"--heldout-files {folder}: not a directory", hint="name a folder with the files they need")
    found: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        size += len(content)
        if size > _MOST_BYTES:
            raise InputError(f"--heldout-files {folder}: more than {_MOST_BYTES >> 20} MiB")
        found[os.fspath(path.relative_to(folder))] = content
    return found


def write_layer(files: Mapping[str, bytes], folder: Path) -> Path:
    """The files in a folder of the run's own."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
