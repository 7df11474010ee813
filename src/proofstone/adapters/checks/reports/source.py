"""What a reader may look at: the report directory, the output, and how paths were seen by the check.

The checked project wrote all of it. Files are opened without following links and without waiting on pipes, and are
refused when they are too large; JSON is decoded so that nothing in it can raise anything but `UnreadableError`.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE_LIMIT: Final = 64 * 1024 * 1024
FILE_COUNT_LIMIT: Final = 10_000
ENTRY_LIMIT: Final = 100_000
DEPTH_LIMIT: Final = 20
TOTAL_LIMIT: Final = 4 * FILE_LIMIT

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class UnreadableError(Exception):
    """This piece of a report cannot be read; the text says which and why. Never leaves the readers."""


class MissingReportError(UnreadableError):
    """There is no such file: no runner wrote one."""


@dataclass(frozen=True)
class Source:
    directory: Path
    output: bytes
    root: str
    """The repository's path as the check saw it."""
    cwd: str
    """The check's directory, relative to the root."""
    exit_code: int | None
    """None when the command was killed."""
    mask: Callable[[bytes], bytes] = bytes
    """Takes secrets out of what is read. The output is masked already."""

    def files(self, pattern: str) -> list[str]:
        """Names of report files, relative to the directory, that match; sorted. Links are not followed."""
        matches = re.compile(pattern)
        found = [name for name in _names_below(self.directory) if matches.fullmatch(posixpath.basename(name))]
        if len(found) > FILE_COUNT_LIMIT:
            raise UnreadableError(f"more than {FILE_COUNT_LIMIT:,} report files")
        return sorted(found)

    def read(self, name: str) -> bytes:
        """The bytes of one report file."""
        try:
            descriptor = os.open(self.directory / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise MissingReportError(f"{name}: there is none") from error
        except (OSError, ValueError) as error:
            raise UnreadableError(f"{name}: cannot be opened: {error}") from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError(f"{name}: is not a regular file")
            if status.st_size > FILE_LIMIT:
                raise UnreadableError(f"{name}: {status.st_size:,} bytes, larger than the {FILE_LIMIT:,} that are read")
            try:
                return self.mask(file.read(FILE_LIMIT))
            except OSError as error:
                raise UnreadableError(f"{name}: cannot be read: {error}") from error

    def output_lines(self) -> Iterator[str]:
        """The output as text, line by line, without colours."""
        if len(self.output) > FILE_LIMIT:
            raise UnreadableError(f"output: {len(self.output):,} bytes, larger than the {FILE_LIMIT:,} that are read")
        return text_lines(self.output)

    def relative(self, path: str, base: str | None = None) -> str | None:
        """`path` relative to the repository, or None when it lies outside. Relative paths start at `base`,
        or at the check's directory. No file system is asked: the paths are those of the sandbox."""
        start = base if base is not None else posixpath.join(self.root, self.cwd)
        whole = posixpath.normpath(posixpath.join(start, path.removeprefix("file://")))
        root = posixpath.normpath(self.root)
        if whole == root:
            return "."
        prefix = root if root.endswith("/") else f"{root}/"
        return whole[len(prefix) :] if whole.startswith(prefix) else None


def _names_below(directory: Path) -> Iterator[str]:
    """Everything that is not a directory. By hand, for `os.walk` recurses and these may be deep on purpose."""
    seen = 0
    folders = [("", 0)]
    while folders:
        folder, depth = folders.pop()
        try:
            entries = list(os.scandir(directory / folder))
        except OSError:  # no such directory, or one that closed itself: there is nothing to be read in it
            continue
        seen += len(entries)
        if seen > ENTRY_LIMIT or depth > DEPTH_LIMIT:
            raise UnreadableError(f"report directory: more than {ENTRY_LIMIT:,} entries, or deeper than {DEPTH_LIMIT}")
        for entry in entries:
            name = f"{folder}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                folders.append((f"{name}/", depth + 1))
            else:
                yield name


def text_lines(data: bytes) -> Iterator[str]:
    for line in data.split(b"\n"):
        yield _ANSI.sub("", line.decode("utf-8", "replace")).rstrip("\r")


def decode_json(data: bytes | str, where: str) -> Json:
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{where}: not JSON: {error}") from error
    return value


def text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def number(value: Json) -> float | None:
    """A number as a float; None for anything else, also for one too large to be a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def sequence(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
