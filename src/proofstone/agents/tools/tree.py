"""The files of a ground, reached so that no path and no link leads out of it.

A path is first resolved: link by link, by reading them and not by following. What comes of that has no link in it, and
is then opened name by name from the root, each within the folder before it and never through a link. Whoever swaps a
link in between makes the opening fail; nothing outside is ever touched. The rules on secrets and scope are asked about
the resolved path, which is the one that is opened; a file that bears several names is asked about as what it is.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Final

from proofstone.agents.rules.tool_rules import (
    OF_TOOLS,
    FailedError,
    is_git,
    names,
    outside,
    refuse_git,
    require_scope,
    secret,
    shown,
)
from proofstone.agents.tools.tool_context import Deadline, Ground
from proofstone.common.secrets import is_secret
from proofstone.common.text import counted

Names = tuple[str, ...]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: opening a pipe would wait for somebody to write to it.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_LINKS: Final = 40
_MOST_ENTRIES: Final = 200_000
_DEEPEST: Final = 100


class TooLargeError(FailedError):
    """The file has more bytes than were asked for."""


@dataclass(frozen=True)
class Entry:
    """One of a folder's."""

    at: Names
    folder: bool
    link: str | None = None
    """Where it leads, if it is a link; then it is not a folder, whatever it leads to."""
    file: bool = True

    @property
    def path(self) -> str:
        return "/".join(self.at)


@dataclass
class Walk:
    """Everything below a place, in the order of the paths, as far as the bounds allow."""

    tree: Tree
    start: Names
    deadline: Deadline
    left_out: list[str] = field(default_factory=list)
    """What was not looked at, and why. Complete when the walk has ended."""

    def __iter__(self) -> Iterator[Entry]:
        first = self.tree.entry(self.start)
        waiting, seen = [first], 0
        while waiting:
            entry = waiting.pop()
            seen += 1
            if seen > _MOST_ENTRIES or self.deadline.over:
                why = "time" if seen <= _MOST_ENTRIES else f"{_MOST_ENTRIES:,} files and folders"
                self.left_out.append(f"stopped after {why}, at {shown(entry.path)}: narrow it with `path`")
                return
            if not entry.folder:
                yield entry
            elif len(entry.at) > _DEEPEST:
                self.left_out.append(f"not looked into: {shown(entry.path)[:200]}: nested too deeply")
            elif entry is first or entry.at[-1] not in OF_TOOLS:
                waiting += reversed(self._listed(entry))

    def _listed(self, folder: Entry) -> list[Entry]:
        try:
            return self.tree.listed(folder.at)
        except OSError as error:
            self.left_out.append(f"not looked into: {shown(folder.path)}: {error.strerror}")
            return []


class Tree:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    @property
    def root(self) -> Path:
        return self._ground.files

    def resolved(self, path: str) -> Names:
        """Where a path really leads; beyond what is there, the names as they are."""
        waiting, at, links = list(reversed(names(path))), list[str](), 0
        while waiting:
            name = waiting.pop()
            if name == "..":  # of a link
                if not at:
                    raise outside(path, "a link on the way leads out of the project")
                at.pop()
                continue
            refuse_git(name, path)
            target = self.link((*at, name))
            if target is None:
                at.append(name)
                continue
            links += 1
            if target.startswith("/"):
                raise outside(path, "a link on the way leads out of the project")
            if links > _MOST_LINKS:
                raise outside(path, "its links have no end")
            waiting += (part for part in reversed(target.split("/")) if part not in ("", "."))
        return tuple(at)

    def readable(self, path: str) -> Names:
        """A place whose contents an agent may see."""
        at = self.resolved(path)
        self._refuse_secret(path, "/".join(names(path)), at)
        return at

    def writable(self, path: str, *, itself: bool = False) -> Names:
        """A place that an agent may write. `itself`: a link there is meant, and not what it leads to."""
        given = names(path)
        if not given:
            raise FailedError("The project's root is a folder. Name a file.")
        real = (*self.resolved("/".join(given[:-1])), given[-1]) if itself else self.resolved(path)
        self._refuse_secret(path, "/".join(given), real)
        if real != given:
            raise FailedError(
                f"{shown(path)} leads through a symbolic link, and nothing is written through one. "
                f"Its real path is {shown('/'.join(real))}."
            )
        require_scope("/".join(real), self._ground.scope)
        return real

    def is_secret(self, path: str) -> bool:
        return is_secret(path, self._ground.secret)

    def _refuse_secret(self, path: str, given: str, real: Names) -> None:
        if self.is_secret(given) or self.is_secret("/".join(real)):
            raise secret(path)

    def entry(self, at: Names) -> Entry:
        if not at:
            return Entry(at, folder=True)
        with self._folder(at[:-1]) as folder:
            info = os.stat(at[-1], dir_fd=folder, follow_symlinks=False)
        return Entry(at, folder=stat.S_ISDIR(info.st_mode), file=stat.S_ISREG(info.st_mode))

    def listed(self, at: Names) -> list[Entry]:
        """What a folder holds, by name. What git keeps for itself is not there."""
        with self._folder(at) as folder, os.scandir(folder) as found:
            entries = [
                Entry(
                    (*at, item.name),
                    folder=item.is_dir(follow_symlinks=False),
                    link=os.readlink(item.name, dir_fd=folder) if item.is_symlink() else None,
                    file=item.is_file(follow_symlinks=False),
                )
                for item in found
                if not is_git(item.name)
            ]
        return sorted(entries, key=lambda entry: entry.at)

    def read(self, at: Names, most: int) -> bytes:
        """All of a file. One with more than `most` bytes is an error."""
        if not at:
            raise FailedError("The project's root is a folder, not a file.")
        with self.opened(at) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise TooLargeError(f"{shown('/'.join(at))} is too large for this tool: {counted(most, 'byte')} at most.")
        return content

    def write(self, at: Names, content: bytes) -> bool:
        """Put a file there, in one step; its mode stays. Whether it is new."""
        with self._folder(at[:-1], make=True) as folder:
            mode = self._mode(at, folder)
            aside = f".{secrets.token_hex(8)}.new"
            try:
                _write(aside, folder, content, mode)
                os.replace(aside, at[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                _unlink_if_there(aside, folder)
                raise
        return mode is None

    def delete(self, at: Names) -> None:
        with self._folder(at[:-1]) as folder:
            if stat.S_ISDIR(os.stat(at[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                raise FailedError(f"{shown('/'.join(at))} is a folder. Delete its files one by one.")
            os.unlink(at[-1], dir_fd=folder)

    def link(self, at: Names) -> str | None:
        """Where it leads, if it is a link. The names before it hold none."""
        try:
            with self._folder(at[:-1]) as folder:
                return os.readlink(at[-1], dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    @contextmanager
    def _folder(self, at: Names, *, make: bool = False) -> Iterator[int]:
        folder = os.open(self.root, _FOLDER)
        try:
            for name in at:
                folder = _into(folder, name, make=make)
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def opened(self, at: Names) -> Iterator[BinaryIO]:
        with self._folder(at[:-1]) as folder:
            descriptor = os.open(at[-1], _FILE, dir_fd=folder)
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise FailedError(f"{shown('/'.join(at))} is {_kind(info.st_mode)}, not a file.")
            if info.st_nlink > 1:
                self._refuse_hard_link(at, info)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)

    def _refuse_hard_link(self, at: Names, info: os.stat_result) -> None:
        """A secret file is not shown under another name that is the file itself."""
        path = "/".join(at)
        if not self.is_secret(path) and (self._secrets is None or (info.st_dev, info.st_ino) in self._secrets):
            raise secret(path)

    @cached_property
    def _secrets(self) -> frozenset[tuple[int, int]] | None:
        """What the secret files are, by device and number; None: not all can be looked through."""
        try:
            return self._looked_through()
        except OSError:
            return None

    def _looked_through(self) -> frozenset[tuple[int, int]] | None:
        found: set[tuple[int, int]] = set()
        waiting: list[Names] = [()]
        left = _MOST_ENTRIES
        while waiting:
            at = waiting.pop()
            entries = self.listed(at)
            left -= len(entries)
            if left < 0 or len(at) > _DEEPEST:
                return None
            waiting += (entry.at for entry in entries if entry.folder)
            found.update(self._identities(at, [entry for entry in entries if entry.file]))
        return frozenset(found)

    def _identities(self, at: Names, files: list[Entry]) -> Iterator[tuple[int, int]]:
        hidden = [entry.at[-1] for entry in files if self.is_secret(entry.path)]
        if not hidden:
            return
        with self._folder(at) as folder:
            for name in hidden:
                info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                yield info.st_dev, info.st_ino

    def _mode(self, at: Names, folder: int) -> int | None:
        """The mode of the file that is there; None: nothing is."""
        try:
            mode = os.stat(at[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(mode):
            raise FailedError(f"{shown('/'.join(at))} is {_kind(mode)}, not a file.")
        return stat.S_IMODE(mode)


def _into(folder: int, name: str, *, make: bool) -> int:
    """The folder of that name, in place of the one around it. On an error that one stays open: it is the caller's."""
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
        os.mkdir(name, dir_fd=folder)
        inner = os.open(name, _FOLDER, dir_fd=folder)
    os.close(folder)
    return inner


def _write(name: str, folder: int, content: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(name, "wb", opener=lambda path, _flags: os.open(path, flags, 0o666, dir_fd=folder)) as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content)


def _unlink_if_there(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def _kind(mode: int) -> str:
    return next((word for test, word in _KINDS if test(mode)), "a device")
