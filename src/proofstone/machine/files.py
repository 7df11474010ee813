"""Files and folders on this machine.

- `write_atomic` writes a file completely or not at all.
- `seconds_since_use` is the age of a file by its time stamp. A wrong clock leaves time stamps in the future, which
  would keep a file, or stop the housekeeping, until then. Such a file counts as used now, and ages from there.
- `path_too_long_error` explains which limit a path exceeds, and which part of it does.
- `scratch_folder` is a run's temporary folder: removed when the run ends, or by the next run if it was killed.
- `repair_state` and `ensure_…` repair state that can be rebuilt: caches, indexes, folders and locks. They remove
  whatever is in the way and add a sentence to `repairs`, for the user to read once. The ledger, its artifacts, keys and
  the journals of runs cannot be rebuilt, and are never touched.
- `read_plan_file` reads a plan, and refuses a file that cannot be one.
- `write_alternates` and `read_alternates` handle `objects/info/alternates`, which lists where a git directory borrows
  objects: one path on each line, quoted if necessary.
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


def write_atomic(
    path: Path, data: bytes, *, mode: int | None = None, durable: bool = True, hint: str = "name another file"
) -> None:
    """Replace the file atomically, keeping its mode unless another is given. A symlink is replaced, not followed.

    Without `durable`, this does not wait for the disk, so the file may be empty after a power failure.
    """
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=".proofstone-", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.chmod(_default_mode(path) if mode is None else mode)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}", hint=hint) from error


def sync_to_disk(path: Path) -> None:
    """Wait until the file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _default_mode(path: Path) -> int:
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
"""NAME_MAX and PATH_MAX of Linux, the latter without its terminating zero."""
_SHOWN_CHARS: Final = 60
"""The number of characters shown of each end of a path that is too long."""


def path_too_long_error(path: str | bytes | os.PathLike[str]) -> InputError:
    """Return the error for a path that the system rejected as too long."""
    encoded = os.fsencode(path)
    text = os.fsdecode(encoded)
    shortened = text if len(text) <= 2 * _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…{text[-_SHOWN_CHARS:]}"
    longest = max(encoded.split(b"/"), key=len)
    if len(longest) > _NAME_BYTES:
        name = os.fsdecode(longest)[:_SHOWN_CHARS]
        limit = f"the name {name}… has {len(longest)} bytes, and the system allows {_NAME_BYTES} between two slashes"
    else:
        limit = f"the path has {len(encoded)} bytes, and the system allows {PATH_BYTES}"
    return InputError(
        f"{shortened}: too long: {limit}",
        hint="use shorter names, or put the repository or PROOFSTONE_HOME nearer to the root",
    )


@contextmanager
def scratch_folder(home: Path, run_id: str) -> Iterator[Path]:
    """Create `home/scratch/<run>`, lock it while the run lives, and remove it at the end."""
    parent = home / "scratch"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = parent / run_id
    with (parent / "lock").open("w") as sweep_lock:
        # Held while removing old folders and creating this one, so that nobody removes a folder that is not locked yet.
        fcntl.flock(sweep_lock, fcntl.LOCK_EX)
        _remove_stale(parent)
        folder.mkdir(mode=0o700)
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        try:
            yield folder
        finally:
            remove_folder(folder)


def _remove_stale(parent: Path) -> None:
    """Remove the folders of killed runs: their locks are free."""
    for folder in parent.iterdir():
        if not folder.is_dir():
            continue
        try:
            lock = (folder / "lock").open("r+")
        except OSError:  # no lock, or something else in its place: no run holds it
            remove_folder(folder)
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Delete a folder, even if a check or overlayfs has removed its permissions."""

    def retry(function: object, path: str, _error: object) -> None:
        parent = os.path.dirname(path)  # noqa: PTH120  shutil passes strings
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
        # The folders are nested deeper than Python or a path can go: rm descends one by one.
        subprocess.run(["rm", "-rf", "--", folder], check=True)


_FOLDERS: Final = ("repos", "cache", "cache/results", "cache/bytecode", "environments", "scratch")
_FILES: Final = ("cache/sandbox.json", "cache/tidied", "cache/bytecode.lock", "scratch/lock")


def repair_state(home: Path) -> list[str]:
    """Repair the state directory, and return a message for each repair."""
    repairs: list[str] = []
    for name in _FOLDERS:
        if os.path.lexists(home / name):
            ensure_folder(home / name, repairs)
    for name in _FILES:
        ensure_file_path(home / name, repairs)
    return repairs


def ensure_folder(path: Path, repairs: list[str]) -> None:
    """Make sure that a usable folder exists here; remove anything else at this path."""
    if not path.is_dir() and os.path.lexists(path):
        remove_path(path)
        repairs.append(f"{path} was not a folder and has been recreated")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        _set_mode(path, 0o700)
        repairs.append(f"{path} was not usable; its permissions have been corrected")


def ensure_file_path(path: Path, repairs: list[str]) -> None:
    """Make sure that this path is either a readable and writable file, or free."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        remove_path(path)
        repairs.append(f"{path} was not a file and has been removed")
    elif not os.access(path, os.R_OK | os.W_OK):
        _set_mode(path, 0o600)
        repairs.append(f"{path} was not readable; its permissions have been corrected")


def remove_path(path: Path) -> None:
    """Remove a file, a link or a whole folder."""
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def _set_mode(path: Path, mode: int) -> None:
    try:
        path.chmod(mode)
    except OSError as error:
        raise MachineError(
            f"{path}: cannot be used ({error.strerror})",
            hint="it must belong to you; remove it and it will be recreated",
        ) from error


MAX_PLAN_BYTES = 2 * 1024 * 1024


def read_plan_file(path: Path) -> tuple[bytes, str]:
    """Return the bytes of the file, and its text without byte order mark and with plain line ends."""
    raw = _read_plan_bytes(path)
    if b"\0" in raw:
        raise InputError(f"{path} is not text", hint="a plan is a Markdown file, in UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        hint = f"save it as UTF-8; byte 0x{raw[error.start]:02x} on that line is not valid"
        raise InputError(f"{path}:{line}: this is not UTF-8", hint=hint) from error
    if not text.strip():
        raise InputError(f"{path} is empty", hint="write the plan in it; `proofstone manual plan` shows how")
    return raw, text.replace("\r\n", "\n").replace("\r", "\n")


def _read_plan_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_PLAN_BYTES + 1)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file", hint="name an existing Markdown file") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise InputError(f"{path} is not a file", hint=f"name the plan in it: {path / 'PLAN.md'}") from error
    except PermissionError as error:
        raise InputError(f"{path} may not be read", hint=f"`chmod u+r {path}`") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="name a Markdown file") from error
    if len(raw) > MAX_PLAN_BYTES:
        raise InputError(f"{path} is larger than 2 MiB", hint="a plan is a few pages; split it, or name another file")
    return raw


_ALTERNATES = Path("objects") / "info" / "alternates"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def write_alternates(git_dir: Path, stores: Iterable[Path | str]) -> None:
    """Replace the file atomically: another process may be reading objects through it."""
    file, content = git_dir / _ALTERNATES, os.fsencode("".join(f"{_quote_line(str(store))}\n" for store in stores))
    if file.is_file() and file.read_bytes() == content:
        return
    temporary = file.with_name(f"alternates.{os.getpid()}.{threading.get_ident()}")
    temporary.write_bytes(content)
    temporary.replace(file)


def read_alternates(objects: Path) -> list[Path]:
    """Return the stores that this object store borrows from directly."""
    file = objects / "info" / "alternates"
    if not file.is_file():
        return []
    lines = os.fsdecode(file.read_bytes()).split("\n")
    try:
        return [(objects / _unquote_line(line)).resolve() for line in lines if line and not line.startswith("#")]
    except (ValueError, SyntaxError, OSError, RuntimeError) as error:  # wrong quotes, a NUL, or a cycle of links
        reason = str(error).partition("\n")[0]
        raise RepositoryError(
            f"{file}: a line names no path: {reason}", hint="correct the line or remove it"
        ) from error


def _quote_line(path: str) -> str:
    if "\n" not in path and not path.startswith(('"', "#")):
        return path
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in path) + '"'


def _unquote_line(line: str) -> str:
    """Read a path that git has quoted like C, with bytes above 127 as octal numbers; Python reads the same syntax."""
    if not (line.startswith('"') and line.endswith('"')):
        return line
    ascii_only = "".join(chr(b) if b < 128 else f"\\x{b:02x}" for b in os.fsencode(line))
    return os.fsdecode(ast.literal_eval(f"b{ascii_only}"))
