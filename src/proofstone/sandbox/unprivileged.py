"""Run the sandbox without root's rights when Proofstone itself is root.

Root of the machine inside a sandbox could write kernel settings and read every file, with or without capabilities. So
the launcher enters a user namespace whose ids stand for unused ids of the machine (`FIRST_ID` and those after it). A
check sees itself as root, but has the rights of an unknown user: apart from its own files, it can read only what every
user of the machine can read.

The check's own files (its checkout, its dependencies, its report folder) are *staged*: mounted a second time below
`STAGE`, in the launcher's own mount namespace, with owners mapped in the same way. On disk no owner changes.
`stage_spec` rewrites a bubblewrap command so that it takes everything from there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FIRST_ID: Final = 0x70010000
"""The first id of a range that Linux distributions and systemd leave unused."""
ID_COUNT: Final = 65_536
STAGE: Final = Path("/tmp")
HOME_ENTRIES: Final = (".cache", ".config/git", ".config/pip", ".config/uv", ".gitconfig", ".pip")
"""What checks see of root's HOME in addition to toolchains and package caches."""

_OPERANDS: Final = {
    "--bind": 2, "--ro-bind": 2, "--bind-try": 2, "--tmpfs": 1, "--dev": 1, "--proc": 1, "--perms": 1, "--size": 1,
    "--chdir": 1, "--cap-drop": 1,
}  # fmt: skip
"""How many words follow each option of bubblewrap; options that are not listed have none."""


def runs_as_root() -> bool:
    return os.geteuid() == 0


@dataclass
class _Stage:
    """Collects the mounts below `STAGE`, and tells where each path is found there."""

    own: tuple[Path, ...]
    """Folders of the engine: their files may change owner on disk where the kernel cannot map it."""
    layers: dict[Path, Path] = field(default_factory=dict)
    """Mount points of throwaway layers, and the paths that replace them."""
    mounts: dict[tuple[str, bool], dict[str, Any]] = field(default_factory=dict)

    def add(self, source: Path, *, recursive: bool = True) -> str:
        for at, instead in self.layers.items():
            if source.is_relative_to(at):
                return str(instead / source.relative_to(at))
        key = (str(source), recursive)
        if key not in self.mounts:
            is_own = any(source.is_relative_to(folder) for folder in self.own)
            target = str(STAGE / f"source-{len(self.mounts)}")
            self.mounts[key] = {"source": str(source), "target": target, "own": is_own, "recursive": recursive}
        return str(self.mounts[key]["target"])


def stage_spec(spec: dict[str, Any], own: Iterable[Path]) -> dict[str, Any]:
    """Return the launcher's spec for a sandbox without root's rights; see the module's docstring."""
    mounts_stage = _Stage(tuple(own))
    layers = []
    for number, layer in enumerate(spec["layers"]):
        folder = STAGE / f"layer-{number}"
        staged = {
            "memory": layer["memory"],
            "size_mb": layer["size_mb"],
            "lower": [mounts_stage.add(Path(path), recursive=False) for path in layer["lower"]],
            "scratch": str(folder / "top") if layer["memory"] else mounts_stage.add(Path(layer["scratch"])),
            "at": str(folder / "at"),
        }
        layers.append(staged)
        mounts_stage.layers[Path(layer["at"])] = folder / "at"
    argv = list(_build_staged_command(spec["argv"], mounts_stage))
    return spec | {
        "layers": layers,
        "argv": argv,
        "stage": {
            "at": str(STAGE),
            "first_id": FIRST_ID,
            "id_count": ID_COUNT,
            "folders": [*(layer["at"] for layer in layers), *(layer["scratch"] for layer in layers if layer["memory"])],
            "mounts": list(mounts_stage.mounts.values()),
        },
    }


def _build_staged_command(argv: Sequence[str], mounts_stage: _Stage) -> Iterator[str]:
    options = list(split_options(argv))
    yield argv[0]
    is_covered = False
    for words in options:
        if not is_covered and words[0] not in ("--ro-bind", "--dev", "--proc"):
            # After the machine's own file system, before anything is mounted in it.
            is_covered = True
            for folder in _find_folders_to_cover(options):
                yield from ("--tmpfs", str(folder))
        if words[0] in _BIND_OPTIONS and words[1] != "/":
            if words[0] == "--bind-try" and not os.path.lexists(words[1]):
                continue
            yield from (words[0], mounts_stage.add(Path(words[1])), words[2])
        else:
            yield from words


def _find_folders_to_cover(options: Sequence[tuple[str, ...]]) -> list[Path]:
    """Return the folders to cover so that mounts below them can be reached, without those that the command covers
    itself.
    """
    empty = [Path(words[-1]) for words in options if words[0] == "--tmpfs"]
    closed = find_closed_folders(Path(words[-1]) for words in options if words[0] in _MOUNT_OPTIONS)
    return [folder for folder in closed if not any(folder.is_relative_to(above) for above in empty)]


_BIND_OPTIONS: Final = ("--bind", "--ro-bind", "--bind-try")
_MOUNT_OPTIONS: Final = (*_BIND_OPTIONS, "--tmpfs")


def split_options(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each option of a bubblewrap command with its operands, and last the command that it runs."""
    index = 1
    while index < len(argv) and argv[index] != "--":
        after = index + 1 + _OPERANDS.get(argv[index], 0)
        yield tuple(argv[index:after])
        index = after
    if index < len(argv):
        yield tuple(argv[index:])


def find_closed_folders(paths: Iterable[Path]) -> list[Path]:
    """Return the folders on these paths that an unknown user may not enter, the outermost of each path.

    Each is replaced by an empty folder, so that mounts below it can be reached; a check could not have read it anyway.
    """
    folders = {folder for path in paths for folder in _find_first_closed(path)}
    return sorted(folders, key=lambda folder: len(folder.parts))


def _find_first_closed(path: Path) -> Iterator[Path]:
    for folder in reversed(path.parents):
        try:
            mode = folder.stat().st_mode
        except OSError:
            return
        if stat.S_ISDIR(mode) and not mode & stat.S_IXOTH:
            yield folder
            return
