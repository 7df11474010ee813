"""What changes when Proofstone itself is root: the sandbox then runs as a user that owns nothing on this machine.

Root of the machine inside a sandbox could write kernel settings and read every file, with or without capabilities. So
the launcher enters a user namespace whose ids stand for unused ids of the machine (`FIRST_ID` and those after it).
A check sees itself as root, and has the rights of a stranger: of everything that is not handed to it, it can read what
every user of the machine can read.

What is handed to it (its files, its dependencies, its report folder) is *staged*: mounted a second time below `STAGE`,
in a mount namespace of the launcher's own, with owners mapped in the same way. On disk nothing changes its owner.
`stage` rewrites a bubblewrap command so that it takes everything from there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

FIRST_ID: Final = 0x70010000
"""Of a range that Linux distributions and systemd leave unused."""
ID_COUNT: Final = 65_536
STAGE: Final = Path("/tmp")
HOME_ENTRIES: Final = (".cache", ".config/git", ".config/pip", ".config/uv", ".gitconfig", ".pip")
"""What checks see of root's HOME beside toolchains and package caches."""

_OPERANDS: Final = {
    "--bind": 2, "--ro-bind": 2, "--bind-try": 2, "--tmpfs": 1, "--dev": 1, "--proc": 1, "--perms": 1, "--size": 1,
    "--chdir": 1, "--cap-drop": 1,
}  # fmt: skip
"""How many words follow each option of bubblewrap; none where it is not listed."""


def is_root() -> bool:
    return os.geteuid() == 0


@dataclass
class _Stage:
    """Collects what must be mounted below `STAGE`, and says where each path is found there."""

    own: tuple[Path, ...]
    """Folders of the engine's: their files may change owner on disk where the kernel cannot map it."""
    layers: dict[Path, Path] = field(default_factory=dict)
    """Mount points of throwaway layers, and where they are instead."""
    mounts: dict[tuple[str, bool], dict[str, Any]] = field(default_factory=dict)

    def add(self, source: Path, *, recursive: bool = True) -> str:
        for at, instead in self.layers.items():
            if source.is_relative_to(at):
                return str(instead / source.relative_to(at))
        key = (str(source), recursive)
        if key not in self.mounts:
            own = any(source.is_relative_to(folder) for folder in self.own)
            target = str(STAGE / f"source-{len(self.mounts)}")
            self.mounts[key] = {"source": str(source), "target": target, "own": own, "recursive": recursive}
        return str(self.mounts[key]["target"])


def stage(spec: dict[str, Any], own: Iterable[Path]) -> dict[str, Any]:
    """Return the launcher's spec for a sandbox without the rights of root: see the module."""
    place = _Stage(tuple(own))
    layers = []
    for number, layer in enumerate(spec["layers"]):
        folder = STAGE / f"layer-{number}"
        staged = {
            "memory": layer["memory"],
            "size_mb": layer["size_mb"],
            "lower": [place.add(Path(path), recursive=False) for path in layer["lower"]],
            "scratch": str(folder / "top") if layer["memory"] else place.add(Path(layer["scratch"])),
            "at": str(folder / "at"),
        }
        layers.append(staged)
        place.layers[Path(layer["at"])] = folder / "at"
    argv = list(_staged_command(spec["argv"], place))
    return spec | {
        "layers": layers,
        "argv": argv,
        "stage": {
            "at": str(STAGE),
            "first_id": FIRST_ID,
            "id_count": ID_COUNT,
            "folders": [*(layer["at"] for layer in layers), *(layer["scratch"] for layer in layers if layer["memory"])],
            "mounts": list(place.mounts.values()),
        },
    }


def _staged_command(argv: Sequence[str], place: _Stage) -> Iterator[str]:
    options = list(split_options(argv))
    yield argv[0]
    covered = False
    for words in options:
        if not covered and words[0] not in ("--ro-bind", "--dev", "--proc"):
            # After the machine's own file system, before anything is mounted in it.
            covered = True
            for folder in _to_cover(options):
                yield from ("--tmpfs", str(folder))
        if words[0] in _BINDING and words[1] != "/":
            if words[0] == "--bind-try" and not os.path.lexists(words[1]):
                continue
            yield from (words[0], place.add(Path(words[1])), words[2])
        else:
            yield from words


def _to_cover(options: Sequence[tuple[str, ...]]) -> list[Path]:
    """Return the folders that must be covered so that what is mounted below them can be reached; not those that the
    command covers by itself."""
    empty = [Path(words[-1]) for words in options if words[0] == "--tmpfs"]
    closed = closed_folders(Path(words[-1]) for words in options if words[0] in _MOUNTING)
    return [folder for folder in closed if not any(folder.is_relative_to(above) for above in empty)]


_BINDING: Final = ("--bind", "--ro-bind", "--bind-try")
_MOUNTING: Final = (*_BINDING, "--tmpfs")


def split_options(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each option of a bubblewrap command with its operands, and last the command that it runs."""
    place = 1
    while place < len(argv) and argv[place] != "--":
        after = place + 1 + _OPERANDS.get(argv[place], 0)
        yield tuple(argv[place:after])
        place = after
    if place < len(argv):
        yield tuple(argv[place:])


def closed_folders(paths: Iterable[Path]) -> list[Path]:
    """Return the folders on the way to these paths that a stranger may not enter, the outermost of each way.

    An empty folder takes the place of each, so that what is mounted below can be reached; a check could not have looked
    into it anyway.
    """
    found = {folder for path in paths for folder in _first_closed(path)}
    return sorted(found, key=lambda folder: len(folder.parts))


def _first_closed(path: Path) -> Iterator[Path]:
    for folder in reversed(path.parents):
        try:
            mode = folder.stat().st_mode
        except OSError:
            return
        if stat.S_ISDIR(mode) and not mode & stat.S_IXOTH:
            yield folder
            return
