"""Access the files of a ground so that no path and no link leads out of it.

A path is first resolved: links are read one by one, not followed. The result has no link in it, and is then opened name
by name from the root, each within the folder before it and never through a link. If somebody swaps in a link meanwhile,
opening fails; nothing outside is ever touched. The rules on secrets and scope are applied to the resolved path, which
is the one that is opened. A file with several names is checked as the file that it is.
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

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: opening a pipe would otherwise wait for a writer.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_LINKS: Final = 40
_MAX_ENTRIES: Final = 200_000
_MAX_DEPTH: Final = 100


class TooLargeError(FailedError):
    """The file has more bytes than the tool reads."""


@dataclass(frozen=True)
class Entry:
    """An entry of a folder."""

    at: Names
    folder: bool
    link: str | None = None
    """The target, if this is a link. A link is never a folder, whatever it leads to."""
    file: bool = True

    @property
    def path(self) -> str:
        return "/".join(self.at)


@dataclass
class Walk:
    """Everything below a folder, in the order of the paths, as far as the limits allow."""

    tree: Tree
    start: Names
    deadline: Deadline
    left_out: list[str] = field(default_factory=list)
    """What was skipped, and why. Complete when the walk has ended."""

    def __iter__(self) -> Iterator[Entry]:
        first = self.tree.entry(self.start)
        pending, visited = [first], 0
        while pending:
            entry = pending.pop()
            visited += 1
            if visited > _MAX_ENTRIES or self.deadline.over:
                why = "time" if visited <= _MAX_ENTRIES else f"{_MAX_ENTRIES:,} files and folders"
                self.left_out.append(f"stopped after {why}, at {shown(entry.path)}: narrow it with `path`")
                return
            if not entry.folder:
                yield entry
            elif len(entry.at) > _MAX_DEPTH:
                self.left_out.append(f"skipped: {shown(entry.path)[:200]}: nested too deeply")
            elif entry is first or entry.at[-1] not in OF_TOOLS:
                pending += reversed(self._list_folder(entry))

    def _list_folder(self, folder: Entry) -> list[Entry]:
        try:
            return self.tree.listed(folder.at)
        except OSError as error:
            self.left_out.append(f"skipped: {shown(folder.path)}: {error.strerror}")
            return []


class Tree:
    """The files that the tools of one agent may access."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    @property
    def root(self) -> Path:
        return self._ground.files

    def resolved(self, path: str) -> Names:
        """Return where a path really leads. Names that do not exist are kept as they are."""
        pending, resolved_names, links = list(reversed(names(path))), list[str](), 0
        while pending:
            name = pending.pop()
            if name == "..":  # in the target of a link
                if not resolved_names:
                    raise outside(path, "a link on the way leads out of the project")
                resolved_names.pop()
                continue
            refuse_git(name, path)
            target = self.link((*resolved_names, name))
            if target is None:
                resolved_names.append(name)
                continue
            links += 1
            if target.startswith("/"):
                raise outside(path, "a link on the way leads out of the project")
            if links > _MAX_LINKS:
                raise outside(path, "its links form a loop")
            pending += (part for part in reversed(target.split("/")) if part not in ("", "."))
        return tuple(resolved_names)

    def readable(self, path: str) -> Names:
        """Return the real location of a path whose contents the agent may see."""
        real = self.resolved(path)
        self._refuse_secret(path, "/".join(names(path)), real)
        return real

    def writable(self, path: str, *, itself: bool = False) -> Names:
        """Return the location of a path that the agent may write. `itself`: a link there is meant, not its target."""
        given_names = names(path)
        if not given_names:
            raise FailedError("The project's root is a folder. Name a file.")
        real = (*self.resolved("/".join(given_names[:-1])), given_names[-1]) if itself else self.resolved(path)
        self._refuse_secret(path, "/".join(given_names), real)
        if real != given_names:
            raise FailedError(
                f"{shown(path)} leads through a symbolic link, and the tools do not write through links. "
                f"Its real path is {shown('/'.join(real))}."
            )
        require_scope("/".join(real), self._ground.scope)
        return real

    def is_secret(self, path: str) -> bool:
        return is_secret(path, self._ground.secret)

    def _refuse_secret(self, path: str, given_path: str, real: Names) -> None:
        if self.is_secret(given_path) or self.is_secret("/".join(real)):
            raise secret(path)

    def entry(self, at: Names) -> Entry:
        if not at:
            return Entry(at, folder=True)
        with self._open_folder(at[:-1]) as folder:
            info = os.stat(at[-1], dir_fd=folder, follow_symlinks=False)
        return Entry(at, folder=stat.S_ISDIR(info.st_mode), file=stat.S_ISREG(info.st_mode))

    def listed(self, at: Names) -> list[Entry]:
        """Return the entries of a folder by name, without git's own."""
        with self._open_folder(at) as folder, os.scandir(folder) as scan:
            entries = [
                Entry(
                    (*at, child.name),
                    folder=child.is_dir(follow_symlinks=False),
                    link=os.readlink(child.name, dir_fd=folder) if child.is_symlink() else None,
                    file=child.is_file(follow_symlinks=False),
                )
                for child in scan
                if not is_git(child.name)
            ]
        return sorted(entries, key=lambda entry: entry.at)

    def read(self, at: Names, limit: int) -> bytes:
        """Return the content of a file. More than `limit` bytes are an error."""
        if not at:
            raise FailedError("The project's root is a folder, not a file.")
        with self.opened(at) as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise TooLargeError(f"{shown('/'.join(at))} is too large for this tool: {counted(limit, 'byte')} at most.")
        return content

    def write(self, at: Names, content: bytes) -> bool:
        """Replace a file atomically and keep its mode. Return whether it is new."""
        with self._open_folder(at[:-1], create=True) as folder:
            mode = self._read_mode(at, folder)
            temporary = f".{secrets.token_hex(8)}.new"
            try:
                _write_new(temporary, folder, content, mode)
                os.replace(temporary, at[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                _unlink_if_there(temporary, folder)
                raise
        return mode is None

    def delete(self, at: Names) -> None:
        with self._open_folder(at[:-1]) as folder:
            if stat.S_ISDIR(os.stat(at[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                raise FailedError(f"{shown('/'.join(at))} is a folder. Delete its files one by one.")
            os.unlink(at[-1], dir_fd=folder)

    def link(self, at: Names) -> str | None:
        """Return the target if this is a link. The names before it must not contain links."""
        try:
            with self._open_folder(at[:-1]) as folder:
                return os.readlink(at[-1], dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    @contextmanager
    def _open_folder(self, at: Names, *, create: bool = False) -> Iterator[int]:
        folder = os.open(self.root, _FOLDER_FLAGS)
        try:
            for name in at:
                folder = _open_subfolder(folder, name, create=create)
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def opened(self, at: Names) -> Iterator[BinaryIO]:
        with self._open_folder(at[:-1]) as folder:
            descriptor = os.open(at[-1], _FILE_FLAGS, dir_fd=folder)
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise FailedError(f"{shown('/'.join(at))} is {_describe_kind(info.st_mode)}, not a file.")
            if info.st_nlink > 1:
                self._refuse_hard_link(at, info)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)

    def _refuse_hard_link(self, at: Names, info: os.stat_result) -> None:
        """Refuse a hard link to a secret file, which would show it under another name."""
        path = "/".join(at)
        if not self.is_secret(path) and (
            self._secret_identities is None or (info.st_dev, info.st_ino) in self._secret_identities
        ):
            raise secret(path)

    @cached_property
    def _secret_identities(self) -> frozenset[tuple[int, int]] | None:
        """The device and inode numbers of the secret files; None: not all folders can be searched."""
        try:
            return self._find_secrets()
        except OSError:
            return None

    def _find_secrets(self) -> frozenset[tuple[int, int]] | None:
        identities: set[tuple[int, int]] = set()
        pending: list[Names] = [()]
        remaining = _MAX_ENTRIES
        while pending:
            at = pending.pop()
            entries = self.listed(at)
            remaining -= len(entries)
            if remaining < 0 or len(at) > _MAX_DEPTH:
                return None
            pending += (entry.at for entry in entries if entry.folder)
            identities.update(self._identify_secrets(at, [entry for entry in entries if entry.file]))
        return frozenset(identities)

    def _identify_secrets(self, at: Names, files: list[Entry]) -> Iterator[tuple[int, int]]:
        secret_names = [entry.at[-1] for entry in files if self.is_secret(entry.path)]
        if not secret_names:
            return
        with self._open_folder(at) as folder:
            for name in secret_names:
                info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                yield info.st_dev, info.st_ino

    def _read_mode(self, at: Names, folder: int) -> int | None:
        """Return the mode of the existing file, or None if there is none."""
        try:
            mode = os.stat(at[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(mode):
            raise FailedError(f"{shown('/'.join(at))} is {_describe_kind(mode)}, not a file.")
        return stat.S_IMODE(mode)


def _open_subfolder(folder: int, name: str, *, create: bool) -> int:
    """Open a subfolder and close the folder around it. On an error, that folder stays open: the caller closes it."""
    try:
        subfolder = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
        os.mkdir(name, dir_fd=folder)
        subfolder = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    os.close(folder)
    return subfolder


def _write_new(name: str, folder: int, content: bytes, mode: int | None) -> None:
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


def _describe_kind(mode: int) -> str:
    return next((description for test, description in _KINDS if test(mode)), "a device")
