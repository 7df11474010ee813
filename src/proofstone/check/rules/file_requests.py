"""Decide requests of executors for files that their task did not declare, if a rule gives a clear answer.

| requested                                     | granted if                                                     |
|-----------------------------------------------|----------------------------------------------------------------|
| a lock file                                   | the manifest that it belongs to, beside it, is declared         |
| `__init__.py`                                 | a declared file lies in its folder                             |
| a snapshot (`.snap`, `.ambr`) of tests        | a declared test lies beside its folder                         |

The plan's author decides all other requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import basename, dirname, join
from typing import Final

from proofstone.check.rules.protected import ProtectedRole, find_roles
from proofstone.common.globs import matches

_LOCK_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "package-lock.json": ("package.json",),
    "npm-shrinkwrap.json": ("package.json",),
    "yarn.lock": ("package.json",),
    "pnpm-lock.yaml": ("package.json",),
    "bun.lock": ("package.json",),
    "uv.lock": ("pyproject.toml",),
    "poetry.lock": ("pyproject.toml",),
    "pdm.lock": ("pyproject.toml",),
    "Pipfile.lock": ("Pipfile",),
    "go.sum": ("go.mod",),
    "Cargo.lock": ("Cargo.toml",),
    "Gemfile.lock": ("Gemfile",),
    "composer.lock": ("composer.json",),
}
_SNAPSHOT_FOLDER: Final = "__snapshots__"


def grant_files(requested: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Return those of the requested files that the executor may change."""
    paths = dict.fromkeys(path.removeprefix("./") for path in requested)
    return tuple(path for path in paths if _is_plain_path(path) and _is_covered_by(path, declared))


def _is_plain_path(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/") and not set("*?[") & set(path)


def _is_covered_by(path: str, declared: Sequence[str]) -> bool:
    name, folder = basename(path), dirname(path)
    if name in _LOCK_FILES:
        return any(matches(pattern, join(folder, manifest)) for manifest in _LOCK_FILES[name] for pattern in declared)
    if name == "__init__.py":
        return any(dirname(pattern) == folder for pattern in declared)
    if basename(folder) == _SNAPSHOT_FOLDER and name.endswith((".snap", ".ambr")):
        return any(dirname(path) == dirname(folder) and ProtectedRole.TESTS in find_roles(path) for path in declared)
    return False
