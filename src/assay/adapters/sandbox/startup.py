"""What decides a program's next start (settings, hooks, plug-ins) stays as the person had it.

A program that works with the person's login could leave itself orders beside it, for the day on which the person starts
it outside. What is there already is mounted read-only where mounts can be had (`home.py`). The rest is watched: what
has appeared or changed in the meantime is moved aside, put back as it was, and told.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.adapters.sandbox.job import OwnHome
from assay.adapters.scratch import remove


@dataclass(frozen=True)
class Way:
    """From a shared folder to something in it that is kept."""

    top: Path
    """The shared folder, on the machine."""
    seen_at: str
    """Its path from the new HOME."""
    path: Path
    """What is kept, on the machine; it need not exist."""

    @property
    def folders(self) -> list[Path]:
        """Those that are passed, below the top. A link is none."""
        return self._walked[0]

    @property
    def end(self) -> Path:
        """What is kept, or what stands in its way: a link, a file, or nothing."""
        return self._walked[1]

    def inside(self, path: Path) -> Path:
        """Where something on the way is, from the new HOME."""
        return Path(self.seen_at) / path.relative_to(self.top)

    @property
    def _walked(self) -> tuple[list[Path], Path]:
        folders, at = list[Path](), self.top
        for part in self.path.relative_to(self.top).parts:
            at /= part
            if at == self.path or at.is_symlink() or not at.is_dir():
                break
            folders.append(at)
        return folders, at


def ways_to_kept(own: OwnHome) -> list[Way]:
    """To all that is kept in what is shared; and where that is a link, to what it leads to there."""
    ways = []
    for path, _ in own.kept:
        tops = [pair for pair in own.shared if path.is_relative_to(pair[0])]
        if not tops:
            continue
        top, seen_at = max(tops, key=lambda pair: len(pair[0].parts))
        ways.append(Way(top, seen_at, path))
        real = path.resolve()
        if path.is_symlink() and real.is_relative_to(top.resolve()):
            ways.append(Way(top, seen_at, top / real.relative_to(top.resolve())))
    return ways


@contextmanager
def guarded(own: OwnHome, scratch: Path, say: Callable[[str], None], *, sealed: bool) -> Iterator[None]:
    """Around a run. `sealed`: whatever is there cannot be changed, so that only what is not there need be watched. What
    is moved aside goes to `scratch`."""
    copies, aside = scratch / "kept", scratch / "aside"
    ways = ways_to_kept(own)
    modes = {folder: folder.stat().st_mode for way in ways for folder in (way.top, *way.folders) if folder.is_dir()}
    watched = [one for number, way in enumerate(ways) if (one := _watch(way, copies / str(number), sealed=sealed))]
    try:
        yield
    finally:
        for folder, mode in modes.items():
            if folder.is_dir() and folder.stat().st_mode != mode:
                folder.chmod(stat.S_IMODE(mode))
        for number, one in enumerate(watched):
            if one.is_changed():
                one.put_back(aside / str(number))
                say(f"put back: {one.way.path}, which decides what a program does when you start it, had been changed")
        if copies.is_dir():
            remove(copies)


@dataclass(frozen=True)
class _Watched:
    """How a way ended before: at a link, at what was kept, of which there is a copy, or at nothing."""

    way: Way
    end: Path
    link: Path | None = None
    copy: Path | None = None

    def is_changed(self) -> bool:
        end = self.way.end
        if self.link:
            return end != self.end or not end.is_symlink() or end.readlink() != self.link
        if self.copy:
            return end != self.end or not _same(self.copy, end)
        return end.is_symlink() or (end == self.way.path and os.path.lexists(end))

    def put_back(self, aside: Path) -> None:
        _move(self.way.end, aside)
        if self.link or self.copy:
            self.end.parent.mkdir(parents=True, exist_ok=True)
        if self.link:
            self.end.symlink_to(self.link)
        elif self.copy:
            _copy(self.copy, self.end)


def _watch(way: Way, copy: Path, *, sealed: bool) -> _Watched | None:
    """None: nothing can happen to it."""
    end = way.end
    if end.is_symlink():
        return _Watched(way, end, link=end.readlink())
    if not os.path.lexists(end) or end != way.path:
        return _Watched(way, end)
    if sealed:
        return None
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    _copy(end, copy)
    return _Watched(way, end, copy=copy)


def _copy(path: Path, to: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, to, symlinks=True, ignore=lambda folder, _: _odd(Path(folder)))
    else:
        shutil.copy2(path, to)


def _odd(folder: Path) -> set[str]:
    """Pipes and sockets: they hold nothing, and cannot be copied."""
    return {path.name for path in folder.iterdir() if not (path.is_symlink() or path.is_file() or path.is_dir())}


def _same(copy: Path, path: Path) -> bool:
    """Only what the copy has is looked into: a program cannot make this long."""
    if not os.path.lexists(path) or copy.lstat().st_mode != path.lstat().st_mode:
        return False
    if copy.is_symlink():
        return copy.readlink() == path.readlink()
    if copy.is_file():
        return filecmp.cmp(copy, path, shallow=False)
    names = {child.name for child in copy.iterdir()}
    return names == {child.name for child in path.iterdir()} - _odd(path) and all(
        _same(copy / name, path / name) for name in names
    )


def _move(path: Path, aside: Path) -> None:
    """Another file system may be in between, and anything may be in there: what cannot be moved is removed."""
    if not os.path.lexists(path):
        return
    aside.mkdir(mode=0o700, parents=True)
    subprocess.run(["mv", "--", path, aside], check=False, capture_output=True)
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink(missing_ok=True)
