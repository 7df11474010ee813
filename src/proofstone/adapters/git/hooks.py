"""What the person's own git would do on a commit: their hooks, and whether it would be signed.

Proofstone's git runs no hooks at all, so they are looked up here, and it is said which of them cannot be honoured.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from proofstone.adapters.git.repository import Repository
from proofstone.adapters.git.user_hooks import hooks_folder, persons_hook

_RUNNABLE = ("pre-commit", "prepare-commit-msg", "commit-msg")
_IGNORED = ("post-commit", "post-index-change", "reference-transaction")


@dataclass(frozen=True)
class Hooks:
    runnable: tuple[str, ...]
    """Those that decide about a commit or its message, in the order in which git runs them."""
    ignored: tuple[str, ...]
    """Those that a commit would have triggered as well, and that Proofstone does not run."""
    folder: Path | None
    """Where they are, as an absolute path; None if there is no such folder."""


def hooks_of(repository: Repository) -> Hooks:
    folder = Path(os.path.normpath(hooks_folder(repository)))
    if not folder.is_dir():
        return Hooks((), (), None)
    return Hooks(_executable(folder, _RUNNABLE), _executable(folder, _IGNORED), folder)


def wants_signature(repository: Repository) -> bool:
    """Whether the person's git signs every commit."""
    return repository.git.maybe("config", "--type=bool", "--get", "commit.gpgSign") == "true"


def _executable(folder: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Proofstone's own hook is none: it asks for evidence, which the gate brings."""
    return tuple(name for name in names if persons_hook(folder, name))
