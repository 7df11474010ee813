"""Files of Proofstone's own in the person's work tree, kept out of git's sight by the repository's `info/exclude`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from proofstone.adapters.git.repository import Repository
from proofstone.errors import RepositoryError

OWN_FILES = "/.proofstone/"
"""The folder at the root of a work tree in which each run has one of its own."""
_MARK = "# Written by Proofstone: its own files, derived from the ledger."


def own_folder(root: Path, run_id: str) -> Path:
    """The folder of a run in the work tree. Nothing is written through a link: it may lead anywhere."""
    own = root / OWN_FILES.strip("/")
    if own.is_symlink() or (own.exists() and not own.is_dir()):
        raise RepositoryError(
            f"{own}: is no folder of this repository, and nothing is written through it", hint="take it away"
        )
    return own / run_id


def exclude(repository: Repository, patterns: Iterable[str]) -> None:
    """Add what is not there yet. What is tracked stays tracked: git looks at this file for untracked files only."""
    own_folder(repository.root, "")  # what is kept out of sight is ours
    file = repository.common_dir / "info" / "exclude"
    text = file.read_text("utf-8", "surrogateescape") if file.is_file() else ""
    missing = [pattern for pattern in patterns if pattern not in text.splitlines()]
    if not missing:
        return
    head = [] if _MARK in text else [_MARK]
    lines = "".join(f"{line}\n" for line in (*head, *missing))
    file.parent.mkdir(exist_ok=True)
    aside = file.with_name("exclude.proofstone")
    aside.write_text(
        f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}", "utf-8", "surrogateescape"
    )
    aside.replace(file)
