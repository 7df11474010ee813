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
    GENERATED_FOLDERS,
    ToolFailedError,
    format_path,
    is_git,
    outside_project_error,
    refuse_git,
    require_scope,
    secret_file_error,
    split_path,
)
from proofstone.agents.tools.tool_context import ToolContext, ToolDeadline
from proofstone.common.secrets import is_secret_path
from proofstone.common.text import pluralize

PathNames = tuple[str, ...]

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: opening a pipe would otherwise wait for a writer.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_LINKS: Final = 40
_MAX_ENTRIES: Final = 200_000
_MAX_DEPTH: Final = 100


class FileTooLargeError(ToolFailedError):
    """The file has more bytes than the tool reads."""


@dataclass(frozen=True)
class TreeEntry:
    """An entry of a folder."""

    names: PathNames
    is_folder: bool
    link_target: str | None = None
    """The target, if this is a link. A link is never a folder, whatever it leads to."""
    is_file: bool = True

    @property
    def path(self) -> str:
        return "/".join(self.names)


UNFINISHED: Final = "The search was stopped before it had seen everything."
"""The answer of a search that found nothing and did not see everything. It never says that there is nothing."""


@dataclass
class TreeWalk:
    """Everything below a folder, in the order of the paths, as far as the limits allow."""

    tree: FileTree
    start: PathNames
    deadline: ToolDeadline
    skipped: list[str] = field(default_factory=list)
    """What was skipped, and why. Complete when the walk has ended."""
    is_stopped: bool = False
    """Whether the walk was stopped before it had seen everything, by time or by the number of files."""

    def __iter__(self) -> Iterator[TreeEntry]:
        first = self.tree.get_entry(self.start)
        pending, visited = [first], 0
        while pending:
            entry = pending.pop()
            visited += 1
            if visited > _MAX_ENTRIES or self.deadline.is_over:
                why = "time" if visited <= _MAX_ENTRIES else f"{_MAX_ENTRIES:,} files and folders"
                self.skipped.append(f"stopped after {why}, at {format_path(entry.path)}: narrow it with `path`")
                self.is_stopped = True
                return
            if not entry.is_folder:
                yield entry
            elif len(entry.names) > _MAX_DEPTH:
                self.skipped.append(f"skipped: {format_path(entry.path)[:200]}: nested too deeply")
            elif entry is first or entry.names[-1] not in GENERATED_FOLDERS:
                pending += reversed(self._list_folder(entry))

    def _list_folder(self, folder: TreeEntry) -> list[TreeEntry]:
        try:
            return self.tree.list_entries(folder.names)
        except OSError as error:
            self.skipped.append(f"skipped: {format_path(folder.path)}: {error.strerror}")
            return []


class FileTree:
    """The files that the tools of one agent may access."""

    def __init__(self, ground: ToolContext) -> None:
        self._ground = ground

    @property
    def root(self) -> Path:
        return self._ground.files

    def resolve(self, path: str) -> PathNames:
        """Return where a path really leads. Names that do not exist are kept as they are."""
        pending, resolved_names, links = list(reversed(split_path(path))), list[str](), 0
        while pending:
            name = pending.pop()
            if name == "..":  # in the target of a link
                if not resolved_names:
                    raise outside_project_error(path, "a link on the way leads out of the project")
                resolved_names.pop()
                continue
            refuse_git(name, path)
            target = self.read_link((*resolved_names, name))
            if target is None:
                resolved_names.append(name)
                continue
            links += 1
            if target.startswith("/"):
                raise outside_project_error(path, "a link on the way leads out of the project")
            if links > _MAX_LINKS:
                raise outside_project_error(path, "its links form a loop")
            pending += (part for part in reversed(target.split("/")) if part not in ("", "."))
        return tuple(resolved_names)

    def require_readable(self, path: str) -> PathNames:
        """Return the real location of a path whose contents the agent may see."""
        real = self.resolve(path)
        self._refuse_secret(path, "/".join(split_path(path)), real)
        return real

    def require_writable(self, path: str, *, itself: bool = False) -> PathNames:
        """Return the location of a path that the agent may write. `itself`: a link there is meant, not its target."""
        given_names = split_path(path)
        if not given_names:
            raise ToolFailedError("The project's root is a folder. Name a file.")
        real = (*self.resolve("/".join(given_names[:-1])), given_names[-1]) if itself else self.resolve(path)
        self._refuse_secret(path, "/".join(given_names), real)
        if real != given_names:
            raise ToolFailedError(
                f"{format_path(path)} leads through a symbolic link, and the tools do not write through links. "
                f"Its real path is {format_path('/'.join(real))}."
            )
        require_scope("/".join(real), self._ground.scope)
        return real

    def is_secret(self, path: str) -> bool:
        return is_secret_path(path, self._ground.secret)

    def _refuse_secret(self, path: str, given_path: str, real: PathNames) -> None:
        if self.is_secret(given_path) or self.is_secret("/".join(real)):
            raise secret_file_error(path)

    def get_entry(self, at: PathNames) -> TreeEntry:
        if not at:
            return TreeEntry(at, is_folder=True)
        with self._open_folder(at[:-1]) as folder:
            info = os.stat(at[-1], dir_fd=folder, follow_symlinks=False)
        return TreeEntry(at, is_folder=stat.S_ISDIR(info.st_mode), is_file=stat.S_ISREG(info.st_mode))

    def list_entries(self, at: PathNames) -> list[TreeEntry]:
        """Return the entries of a folder by name, without git's own."""
        with self._open_folder(at) as folder, os.scandir(folder) as scan:
            entries = [
                TreeEntry(
                    (*at, child.name),
                    is_folder=child.is_dir(follow_symlinks=False),
                    link_target=os.readlink(child.name, dir_fd=folder) if child.is_symlink() else None,
                    is_file=child.is_file(follow_symlinks=False),
                )
                for child in scan
                if not is_git(child.name)
            ]
        return sorted(entries, key=lambda entry: entry.names)

    def read(self, at: PathNames, limit: int) -> bytes:
        """Return the content of a file. More than `limit` bytes are an error."""
        if not at:
            raise ToolFailedError("The project's root is a folder, not a file.")
        with self.open_file(at) as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise FileTooLargeError(
                f"{format_path('/'.join(at))} is too large for this tool: {pluralize(limit, 'byte')} at most."
            )
        return content

    def write(self, at: PathNames, content: bytes) -> bool:
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

    def delete(self, at: PathNames) -> None:
        with self._open_folder(at[:-1]) as folder:
            if stat.S_ISDIR(os.stat(at[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                raise ToolFailedError(f"{format_path('/'.join(at))} is a folder. Delete its files one by one.")
            os.unlink(at[-1], dir_fd=folder)

    def read_link(self, at: PathNames) -> str | None:
        """Return the target if this is a link. The names before it must not contain links."""
        try:
            with self._open_folder(at[:-1]) as folder:
                return os.readlink(at[-1], dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    @contextmanager
    def _open_folder(self, at: PathNames, *, create: bool = False) -> Iterator[int]:
        folder = os.open(self.root, _FOLDER_FLAGS)
        try:
            for name in at:
                folder = _open_subfolder(folder, name, create=create)
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def open_file(self, at: PathNames) -> Iterator[BinaryIO]:
        with self._open_folder(at[:-1]) as folder:
            descriptor = os.open(at[-1], _FILE_FLAGS, dir_fd=folder)
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise ToolFailedError(f"{format_path('/'.join(at))} is {_describe_kind(info.st_mode)}, not a file.")
            if info.st_nlink > 1:
                self._refuse_hard_link(at, info)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)

    def _refuse_hard_link(self, at: PathNames, info: os.stat_result) -> None:
        """Refuse a hard link to a secret file, which would show it under another name."""
        path = "/".join(at)
        if not self.is_secret(path) and (
            self._secret_identities is None or (info.st_dev, info.st_ino) in self._secret_identities
        ):
            raise secret_file_error(path)

    @cached_property
    def _secret_identities(self) -> frozenset[tuple[int, int]] | None:
        """The device and inode numbers of the secret files; None: not all folders can be searched."""
        try:
            return self._find_secrets()
        except OSError:
            return None

    def _find_secrets(self) -> frozenset[tuple[int, int]] | None:
        identities: set[tuple[int, int]] = set()
        pending: list[PathNames] = [()]
        remaining = _MAX_ENTRIES
        while pending:
            at = pending.pop()
            entries = self.list_entries(at)
            remaining -= len(entries)
            if remaining < 0 or len(at) > _MAX_DEPTH:
                return None
            pending += (entry.names for entry in entries if entry.is_folder)
            identities.update(self._identify_secrets(at, [entry for entry in entries if entry.is_file]))
        return frozenset(identities)

    def _identify_secrets(self, at: PathNames, files: list[TreeEntry]) -> Iterator[tuple[int, int]]:
        secret_names = [entry.names[-1] for entry in files if self.is_secret(entry.path)]
        if not secret_names:
            return
        with self._open_folder(at) as folder:
            for name in secret_names:
                info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                yield info.st_dev, info.st_ino

    def _read_mode(self, at: PathNames, folder: int) -> int | None:
        """Return the mode of the existing file, or None if there is none."""
        try:
            mode = os.stat(at[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(mode):
            raise ToolFailedError(f"{format_path('/'.join(at))} is {_describe_kind(mode)}, not a file.")
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
