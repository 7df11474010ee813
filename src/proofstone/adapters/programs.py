"""Where Proofstone looks for the programs that it starts itself, git and bubblewrap: never inside the work tree, where
the
change decides what lies."""

from __future__ import annotations

import os
from pathlib import Path


def search_outside(directory: Path) -> str:
    """PATH without the folders of the work tree that `directory` is in."""
    top = _work_tree(directory.resolve())
    folders = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part]
    return os.pathsep.join(
        part for part in folders if Path(part).is_absolute() and not (top and Path(part).resolve().is_relative_to(top))
    )


def is_inside(path: Path, directory: Path) -> bool:
    """Whether a path leads into the work tree that `directory` is in."""
    top = _work_tree(directory.resolve())
    return top is not None and path.resolve().is_relative_to(top)


def _work_tree(directory: Path) -> Path | None:
    """Found without asking git, for which git must be found first."""
    return next((place for place in (directory, *directory.parents) if os.path.lexists(place / ".git")), None)
