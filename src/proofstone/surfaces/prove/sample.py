"""A sample project as a repository, put back to its beginning before each trial.

It always stands at the same path, and what no trial touched is left alone, so that what Proofstone learned about the
base
and its dependencies stays true. The time of the last change of a file's inode tells what was touched: no program can
set it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofstone.adapters.scratch import remove
from proofstone.surfaces.prove.errand import Errands
from proofstone.surfaces.prove.tricks import Act, Project

_FIRST_COMMIT: Final = "git init --quiet .\ngit add --all\ngit commit --quiet --message 'As it was'\n"
_SECONDS: Final = 600

Stamp = tuple[int, ...]


class SampleError(Exception):
    """A project that cannot be made here, or an act whose own lines fail; the message says why."""


@dataclass
class Sample:
    root: Path
    pristine: Path
    base: str = ""
    """The first commit."""
    _stamps: dict[Path, Stamp] = field(default_factory=dict)

    def make(self, project: Project, errands: Errands, env: Mapping[str, str]) -> None:
        """The project with one commit, and its set-up done."""
        self.root.mkdir(parents=True)
        write(self.root, project.files)
        for lines in (_FIRST_COMMIT, project.setup):
            if lines:
                _run(lines, self.root, errands, env)
        self.base = errands.shell("git rev-parse HEAD", self.root, env, seconds=_SECONDS).output.strip()
        shutil.copytree(self.root, self.pristine, symlinks=True)
        self._stamps = {path: _stamp(path) for path in _below(self.root)}

    def reset(self) -> None:
        """As it was made: what a trial touched or added is taken away, and put back from the copy."""
        self.root.chmod(0o755)
        for path in _below(self.root):
            if _stamp(path) != self._stamps.get(path):
                _take_away(path)
        for path in self._stamps:
            if os.path.lexists(path):
                continue
            source = self.pristine / path.relative_to(self.root)
            if source.is_dir() and not source.is_symlink():
                path.mkdir()
                path.chmod(stat.S_IMODE(source.stat().st_mode))
            else:
                shutil.copy2(source, path, follow_symlinks=False)
            self._stamps[path] = _stamp(path)


def perform(act: Act, root: Path, errands: Errands, env: Mapping[str, str]) -> None:
    """What somebody does to the project: the same on disk as `Act.of` says."""
    write(root, act.write)
    for edit in act.edit:
        file = root / edit.path
        file.write_bytes(edit.of(file.read_bytes().decode("utf-8")).encode("utf-8"))
    for name in act.delete:
        _take_away(root / name)
    if act.run:
        _run(act.run, root, errands, env)


def _take_away(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink()


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))


def _run(lines: str, root: Path, errands: Errands, env: Mapping[str, str]) -> None:
    done = errands.shell(lines, root, env, seconds=_SECONDS)
    if done.code != 0:
        ended = "were ended" if done.code is None else f"end with exit code {done.code}"
        raise SampleError(f"its own lines {ended}: {done.last_words}")


def _stamp(path: Path) -> Stamp:
    """What differs when a file was touched. Of a folder only that it is one, and its mode: files come and go in it."""
    info = path.lstat()
    if stat.S_ISDIR(info.st_mode):
        return (info.st_mode,)
    return (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def _below(root: Path) -> Iterator[Path]:
    """Everything below, parents first; what is taken away when it is told is not entered."""
    waiting = [root]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            yield path
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)
