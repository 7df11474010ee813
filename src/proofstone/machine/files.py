"""A file in a person's own folder: all of it is written, or nothing, whatever happens meanwhile.

How long ago a file was used, by its time stamp.

A clock that was once wrong leaves time stamps in the future. They say nothing, so they are put right: the file counts
as used now, and ages from there. Left as they are, they would keep a file, or stop the housekeeping, for that long.

Paths that are longer than the system takes: which limit they are over, and by which part.

Scratch folders of a run: gone when the run ends, and swept by the next run if it was killed.

State that can be rebuilt, put right where it is damaged: caches, indices, folders and locks.

Nothing here is evidence. Whatever stands in the way of rebuilding is removed, and a sentence about it is added to
`repairs`, for the person to read once. The ledger, its artifacts, keys and the journals of runs cannot be rebuilt, and
are never touched.

A plan's bytes, from disk. What cannot be a plan is refused before anybody tries to read it.

`objects/info/alternates`: where a git directory borrows objects. One path a line, quoted if it would not fit one.
"""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from proofstone.errors import InputError, MachineError, RepositoryError


def write_whole(
    path: Path, data: bytes, *, mode: int | None = None, durable: bool = True, hint: str = "name another file"
) -> None:
    """In the place of what is there, with its mode unless another is given. A link there is replaced, not followed.
    Not `durable`: the disk is not waited for, so that after a power cut it may be empty."""
    aside: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=".proofstone-", dir=path.parent)
        aside = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        aside.chmod(_mode(path) if mode is None else mode)
        aside.replace(path)
    except OSError as error:
        if aside is not None:
            aside.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}", hint=hint) from error


def on_disk(path: Path) -> None:
    """Wait until the disk has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int:
    if path.is_file():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def seconds_since_use(path: Path, now: float) -> float:
    """Return the age of a file or folder, which is never negative."""
    age = now - path.stat().st_mtime
    if age >= 0:
        return age
    os.utime(path, (now, now))
    return 0.0


_NAME_BYTES: Final = 255
PATH_BYTES: Final = 4095
"""NAME_MAX and PATH_MAX of Linux, the latter without its closing zero."""
_SHOWN: Final = 60
"""Characters of either end of a path that is too long to be shown."""


def path_too_long(path: str | bytes | os.PathLike[str]) -> InputError:
    """Return the error for a path of which the system said that it is too long."""
    encoded = os.fsencode(path)
    text = os.fsdecode(encoded)
    shown = text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]}…{text[-_SHOWN:]}"
    longest = max(encoded.split(b"/"), key=len)
    if len(longest) > _NAME_BYTES:
        name = os.fsdecode(longest)[:_SHOWN]
        limit = f"the name {name}… has {len(longest)} bytes, and the system allows {_NAME_BYTES} between two slashes"
    else:
        limit = f"the path has {len(encoded)} bytes, and the system allows {PATH_BYTES}"
    return InputError(
        f"{shown}: too long: {limit}",
        hint="use shorter names, or put the repository or PROOFSTONE_HOME nearer to the root",
    )


@contextmanager
def scratch_folder(home: Path, run_id: str) -> Iterator[Path]:
    """`home/scratch/<run>`, held by a lock for as long as the run lives."""
    parent = home / "scratch"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = parent / run_id
    with (parent / "lock").open("w") as gate:
        # Held while sweeping and while making our own, so that nobody sweeps a folder that is not locked yet.
        fcntl.flock(gate, fcntl.LOCK_EX)
        _sweep(parent)
        folder.mkdir(mode=0o700)
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        try:
            yield folder
        finally:
            remove(folder)


def _sweep(parent: Path) -> None:
    """Remove what killed runs left: their locks are free."""
    for folder in parent.iterdir():
        if not folder.is_dir():
            continue
        try:
            lock = (folder / "lock").open("r+")
        except OSError:  # no lock, or something else in its place: nobody holds it
            remove(folder)
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            remove(folder)


def remove(folder: Path) -> None:
    """Delete a tree, also where a check or overlayfs took its permissions away."""

    def retry(function: object, path: str, _error: object) -> None:
        parent = os.path.dirname(path)  # noqa: PTH120  shutil speaks in strings
        for place in (parent, path):
            if os.path.lexists(place) and not stat.S_ISLNK(os.lstat(place).st_mode):
                os.chmod(place, 0o700)  # noqa: PTH101
        if os.path.isdir(path):  # noqa: PTH112
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    try:
        if sys.version_info >= (3, 12):
            shutil.rmtree(folder, onexc=retry)
        else:
            shutil.rmtree(folder, onerror=retry)
    except (RecursionError, OSError):
        # Folders nested deeper than Python or a path can go: rm walks them one by one.
        subprocess.run(["rm", "-rf", "--", folder], check=True)


_FOLDERS: Final = ("repos", "cache", "cache/results", "cache/bytecode", "environments", "scratch")
_FILES: Final = ("cache/sandbox.json", "cache/tidied", "cache/bytecode.lock", "scratch/lock")


def mend_state(home: Path) -> list[str]:
    """What of the state directory had to be put right, in words."""
    repairs: list[str] = []
    for name in _FOLDERS:
        if os.path.lexists(home / name):
            ensure_folder(home / name, repairs)
    for name in _FILES:
        ensure_place_for_file(home / name, repairs)
    return repairs


def ensure_folder(path: Path, repairs: list[str]) -> None:
    """A folder that we may use stands here afterwards; whatever else stood here is gone."""
    if not path.is_dir() and os.path.lexists(path):
        discard(path)
        repairs.append(f"{path} was no folder; it was made anew")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        _allow(path, 0o700)
        repairs.append(f"{path} could not be used; its permissions were put right")


def ensure_place_for_file(path: Path, repairs: list[str]) -> None:
    """Nothing stands here afterwards but a file of ours that can be read and written, or nothing at all."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        discard(path)
        repairs.append(f"{path} was no file; it was removed")
    elif not os.access(path, os.R_OK | os.W_OK):
        _allow(path, 0o600)
        repairs.append(f"{path} could not be read; its permissions were put right")


def discard(path: Path) -> None:
    """Remove a file, a link or a whole folder."""
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink(missing_ok=True)


def _allow(path: Path, mode: int) -> None:
    try:
        path.chmod(mode)
    except OSError as error:
        raise MachineError(
            f"{path}: cannot be used ({error.strerror})", hint="it must belong to you: remove it, and it is made anew"
        ) from error


MOST_BYTES = 2 * 1024 * 1024


def load_plan(path: Path) -> tuple[bytes, str]:
    """The file as it is, and its text without byte order mark and with plain line ends."""
    raw = _bytes(path)
    if b"\0" in raw:
        raise InputError(f"{path} is not text", hint="a plan is a Markdown file, in UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        hint = f"save it as UTF-8; byte 0x{raw[error.start]:02x} on that line is none"
        raise InputError(f"{path}:{line}: this is not UTF-8", hint=hint) from error
    if not text.strip():
        raise InputError(f"{path} is empty", hint="write the plan in it; docs/plan.md tells how")
    return raw, text.replace("\r\n", "\n").replace("\r", "\n")


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file", hint="name a Markdown file that is there") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise InputError(f"{path} is not a file", hint=f"name the plan in it: {path / 'PLAN.md'}") from error
    except PermissionError as error:
        raise InputError(f"{path} may not be read", hint=f"`chmod u+r {path}`") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="name a Markdown file") from error
    if len(raw) > MOST_BYTES:
        raise InputError(f"{path} is larger than 2 MiB", hint="a plan is a few pages; split it, or name another file")
    return raw


_PLACE = Path("objects") / "info" / "alternates"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def write_alternates(git_dir: Path, stores: Iterable[Path | str]) -> None:
    """Whole or not at all: another process may be reading objects through it just now."""
    file, content = git_dir / _PLACE, os.fsencode("".join(f"{_line(str(store))}\n" for store in stores))
    if file.is_file() and file.read_bytes() == content:
        return
    aside = file.with_name(f"alternates.{os.getpid()}.{threading.get_ident()}")
    aside.write_bytes(content)
    aside.replace(file)


def read_alternates(objects: Path) -> list[Path]:
    """What this object store borrows from directly."""
    file = objects / "info" / "alternates"
    if not file.is_file():
        return []
    lines = os.fsdecode(file.read_bytes()).split("\n")
    try:
        return [(objects / _path(line)).resolve() for line in lines if line and not line.startswith("#")]
    except (ValueError, SyntaxError, OSError, RuntimeError) as error:  # quoted wrongly, a NUL, links in a ring
        why = str(error).partition("\n")[0]
        raise RepositoryError(
            f"{file}: a line names no path: {why}", hint="put the line right, or remove it"
        ) from error


def _line(path: str) -> str:
    if "\n" not in path and not path.startswith(('"', "#")):
        return path
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in path) + '"'


def _path(line: str) -> str:
    """Git quotes as C does, bytes above 127 as octal numbers; Python reads the same."""
    if not (line.startswith('"') and line.endswith('"')):
        return line
    ascii_only = "".join(chr(b) if b < 128 else f"\\x{b:02x}" for b in os.fsencode(line))
    return os.fsdecode(ast.literal_eval(f"b{ascii_only}"))
