"""Keep the files that decide a program's next start (settings, hooks, plug-ins) as the user had them.

A program that works with the user's login could leave itself instructions beside the login, for the day on which the
user starts it outside the sandbox. Existing files are mounted read-only where mounts are available (`mounts.py`). All
of them are watched: a file that has appeared or changed meanwhile is moved aside, restored and reported.

Runs that share a login folder share its guard, a folder in Proofstone's state with a record of the original state:
- The first run records the state, and nobody records it again while a run is active: what one run has planted is never
  mistaken for the user's by the next.
- The last run restores the state and removes the record.
- A record without an active run was left by a run that was killed: the next run restores the state first.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import IO

from proofstone.errors import MachineError
from proofstone.machine.files import remove_folder
from proofstone.sandbox.job import PrivateHome
from proofstone.sandbox.login_copies import copy_path, is_same_as_copy, measure, try_copy

_MAX_SEALED_COPY_BYTES = 16 << 20
"""The maximum size of a read-only file that is copied all the same, in bytes."""


@dataclass(frozen=True)
class ProtectedPath:
    """The path from a shared folder to a protected file in it."""

    top: Path
    """The shared folder on the machine, with links resolved."""
    home_path: str
    """The folder's path relative to the new HOME."""
    path: Path
    """The protected file on the machine; it need not exist."""

    @property
    def name(self) -> str:
        return self.path.relative_to(self.top).as_posix()

    @property
    def folders(self) -> list[Path]:
        """The folders on the path, below the top, without links."""
        return self._walk[0]

    @property
    def endpoint(self) -> Path:
        """The protected file, or what is in its place: a link, a file, or nothing."""
        return self._walk[1]

    @property
    def is_mountable(self) -> bool:
        """Whether the file exists and can be mounted read-only on itself."""
        return self.endpoint == self.path and self.path.exists() and not self.path.is_symlink()

    def path_in_home(self, path: Path) -> Path:
        """Return where something on the path is, relative to the new HOME."""
        return Path(self.home_path) / path.relative_to(self.top)

    @property
    def _walk(self) -> tuple[list[Path], Path]:
        folders, current = list[Path](), self.top
        for part in self.path.relative_to(self.top).parts:
            current /= part
            if current == self.path or current.is_symlink() or not current.is_dir():
                break
            folders.append(current)
        return folders, current


def find_protected_paths(own: PrivateHome) -> list[ProtectedPath]:
    """Return the paths to all protected files in shared folders; for a link, also the path to its target there."""
    protected_paths = []
    for path, _ in own.read_only:
        tops = [pair for pair in own.shared if path.is_relative_to(pair[0])]
        if not tops:
            continue
        shared, seen_at = max(tops, key=lambda pair: len(pair[0].parts))
        top = shared.resolve()
        protected = ProtectedPath(top, seen_at, top / path.relative_to(shared))
        protected_paths.append(protected)
        real = protected.path.resolve()
        if protected.path.is_symlink() and real.is_relative_to(top):
            protected_paths.append(ProtectedPath(top, seen_at, real))
    return protected_paths


@contextmanager
def guard_logins(own: PrivateHome, guards: Path, say: Callable[[str], None], *, sealed: bool) -> Iterator[None]:
    """Guard the login folders during a run.

    `guards` is the folder of all guards. Files that are moved aside go to `put-aside` next to it, and stay there.
    `sealed` says that existing files are read-only for this run.
    """
    protected_paths = find_protected_paths(own)
    with ExitStack() as stack:
        open_folders = [path.resolve() for path, _ in own.shared if path.is_dir()] if own.renewable is not None else []
        for top in dict.fromkeys((*(protected.top for protected in protected_paths), *open_folders)):
            guard = _Guard(
                guards / hashlib.sha256(os.fsencode(top)).hexdigest()[:32], top, say, _renewable_patterns(own, top)
            )
            stack.enter_context(
                guard.on_duty([protected for protected in protected_paths if protected.top == top], sealed=sealed)
            )
        yield


def _renewable_patterns(private_home: PrivateHome, top: Path) -> tuple[str, ...] | None:
    """Return the patterns of names that may appear in one shared folder, or None for any."""
    if private_home.renewable is None:
        return None
    home_path = next(seen_at for source, seen_at in private_home.shared if source.resolve() == top)
    return tuple(
        pattern.removeprefix(f"{home_path}/")
        for pattern in private_home.renewable
        if pattern.startswith(f"{home_path}/")
    )


@dataclass(frozen=True)
class _OriginalEnd:
    """How a path ended before the run: at a link, at the protected file, or (without a mark) at nothing."""

    end: str
    """The path relative to the top."""
    link: str | None = None
    mark: str = ""
    """A mark that tells whether the file is unchanged, without reading its content."""
    copy: str = ""
    """The name of its copy, if there is one."""

    @property
    def lacks_copy(self) -> bool:
        return bool(self.mark and not self.copy)


@dataclass(frozen=True)
class _OriginalState:
    """The state before any run. Entries are only added to it."""

    modes: dict[str, int] = field(default_factory=dict)
    """The modes of the folders on the paths, by their paths relative to the top."""
    ends: dict[str, _OriginalEnd] = field(default_factory=dict)
    """The original ends, by the paths of the protected files."""
    children: list[str] = field(default_factory=list)
    """The names in the folder itself."""


@dataclass(frozen=True)
class _Guard:
    """The guard of one shared folder.

    All active runs share the lock `running`; a run that starts or ends holds the lock `door`.
    """

    folder: Path
    top: Path
    say: Callable[[str], None]
    renewed: tuple[str, ...] | None
    """Patterns of names that may appear in the folder; None allows any."""

    @contextmanager
    def on_duty(self, protected_paths: Sequence[ProtectedPath], *, sealed: bool) -> Iterator[None]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        problems: list[str] = []
        with (self.folder / "running").open("w") as running:
            with self._hold_door():
                if _is_alone(running) and (remaining := self._restore_all()):
                    raise self._restore_error(remaining)
                fcntl.flock(running, fcntl.LOCK_SH)
                self._record_state(protected_paths, sealed=sealed)
            try:
                yield
            finally:
                with self._hold_door():
                    problems = self._restore_all() if _is_alone(running) else []
                    fcntl.flock(running, fcntl.LOCK_UN)
        if problems:
            raise self._restore_error(problems)

    @contextmanager
    def _hold_door(self) -> Iterator[None]:
        with (self.folder / "door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            yield

    def _restore_error(self, problems: Sequence[str]) -> MachineError:
        return MachineError(
            f"files that decide a program's next start cannot be restored: {'; '.join(problems)}",
            hint=f"the original state is in {self.folder}; restore it by hand, then remove that folder",
        )

    def _record_state(self, protected_paths: Sequence[ProtectedPath], *, sealed: bool) -> None:
        """Add what the record does not hold yet. The record is complete before anything runs."""
        state = self._read_state() or _OriginalState(children=_list_names(self.top))
        for protected in protected_paths:
            for folder in (protected.top, *protected.folders):
                if folder.is_dir():
                    name = folder.relative_to(self.top).as_posix()
                    state.modes.setdefault(name, stat.S_IMODE(folder.stat().st_mode))
            known = state.ends.get(protected.name)
            if known is None or (known.lacks_copy and not sealed and not self._is_changed(protected, known)):
                state.ends[protected.name] = self._record_end(protected, sealed=sealed)
        new_file = self._state_file.with_suffix(".new")
        new_file.write_text(json.dumps(asdict(state)), "utf-8")
        new_file.replace(self._state_file)

    def _record_end(self, protected: ProtectedPath, *, sealed: bool) -> _OriginalEnd:
        end = protected.endpoint
        name = end.relative_to(self.top).as_posix()
        if end.is_symlink():
            return _OriginalEnd(name, link=os.fspath(end.readlink()))
        if not os.path.lexists(end) or end != protected.path:
            return _OriginalEnd(name)
        mark, size = measure(end)
        copy = hashlib.sha256(protected.name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        has_copy = (size <= _MAX_SEALED_COPY_BYTES or not sealed) and try_copy(end, self._copies / copy)
        return _OriginalEnd(name, mark=mark, copy=copy if has_copy else "")

    def _restore_all(self) -> list[str]:
        """Restore the original state and report what had changed. Return what could not be restored, and then keep the
        record.
        """
        state = self._read_state() or _OriginalState()
        aside_folder = _AsideFolder(self.folder.parent.parent / "put-aside")
        problems: list[str] = []
        self._set_modes(state)  # the following steps need access to these folders
        for name, original in state.ends.items():
            protected = ProtectedPath(self.top, "", self.top / name)
            try:
                if self._is_changed(protected, original):
                    self.say(self._restore(protected, original, aside_folder))
            except (OSError, subprocess.SubprocessError) as error:
                problems.append(f"{protected.path}: {error}")
                self.say(f"cannot be restored: {problems[-1]}")
        problems += self._set_modes(state)
        if self._state_file.exists():
            self._move_unknown_files(state, aside_folder)
        if not problems:
            self._state_file.unlink(missing_ok=True)
            if self._copies.is_dir():
                remove_folder(self._copies)
        return problems

    def _move_unknown_files(self, state: _OriginalState, aside_folder: _AsideFolder) -> None:
        """Move away new files that the program does not renew: whatever their name, some program may
        start from them.
        """
        if self.renewed is None:
            return
        known = {*state.children, *(Path(name).parts[0] for name in state.ends)}
        unknown = [name for name in _list_names(self.top) if name not in known]
        unknown = [name for name in unknown if not any(fnmatchcase(name, pattern) for pattern in self.renewed)]
        moved = [target for name in unknown if (target := aside_folder.take(self.top / name, self.top))]
        if moved:
            self.say(f"files that a program created in {self.top} are now in {moved[0].parent}: {', '.join(unknown)}")

    def _set_modes(self, state: _OriginalState) -> list[str]:
        """Restore the modes of folders, the outermost first. Nothing is changed through a link that a program has
        created.
        """
        problems: list[str] = []
        for name, mode in sorted(state.modes.items(), key=lambda item: len(Path(item[0]).parts)):
            folder = self.top / name
            try:
                if folder.is_dir() and folder.resolve() == folder and stat.S_IMODE(folder.stat().st_mode) != mode:
                    folder.chmod(mode)
            except OSError as error:
                problems.append(f"{folder}: {error}")
        return problems

    def _is_changed(self, protected: ProtectedPath, original: _OriginalEnd) -> bool:
        end = protected.endpoint
        if original.link is None and not original.mark:
            return end.is_symlink() or (end == protected.path and os.path.lexists(end))
        if end != self.top / original.end:
            return True
        if original.link is not None:
            return not end.is_symlink() or os.fspath(end.readlink()) != original.link
        try:
            return (
                not is_same_as_copy(self._copies / original.copy, end)
                if original.copy
                else measure(end)[0] != original.mark
            )
        except OSError:
            return True  # a file that can no longer be read has changed

    def _restore(self, protected: ProtectedPath, original: _OriginalEnd, aside_folder: _AsideFolder) -> str:
        """Restore one protected file, and return a message about it."""
        description = f"{protected.path}, which decides what a program does when you start it,"
        if original.lacks_copy:
            return f"check {description} before you do: it has been changed, and there is no copy of the original"
        moved_to = aside_folder.take(protected.endpoint, self.top)
        end = self.top / original.end
        if original.link is None and not original.mark:
            return f"restored: {protected.path} did not exist before and is now in {moved_to}"
        if original.link is not None or original.copy:
            end.parent.mkdir(parents=True, exist_ok=True)
        if original.link is not None:
            end.symlink_to(original.link)
        elif original.copy:
            copy_path(self._copies / original.copy, end)
        return f"restored: {description} had been changed" + (
            f"; the changed version is in {moved_to}" if moved_to else ""
        )

    def _read_state(self) -> _OriginalState | None:
        try:
            record = json.loads(self._state_file.read_text("utf-8"))
            ends = {name: _OriginalEnd(**original) for name, original in record["ends"].items()}
            modes = {name: int(mode) for name, mode in record["modes"].items()}
            return _OriginalState(modes, ends, [str(name) for name in record["children"]])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._restore_error([f"{self._state_file} is not a valid record: {error}"]) from error

    @property
    def _state_file(self) -> Path:
        return self.folder / "picture.json"

    @property
    def _copies(self) -> Path:
        return self.folder / "copies"


@dataclass(frozen=True)
class _AsideFolder:
    """A folder for changed files, which the user can examine."""

    parent: Path

    @cached_property
    def _folder(self) -> Path:
        self.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%dT%H%M%SZ-", time.gmtime()), dir=self.parent))

    def take(self, path: Path, top: Path) -> Path | None:
        """Move the path here, and return its new place; None if there was nothing.

        It may be on another file system, and may contain anything: what cannot be moved is removed.
        """
        if not os.path.lexists(path):
            return None
        target = self._folder / top.name / path.relative_to(top)
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mv", "-T", "--", path, target], check=False, capture_output=True)
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)
        else:
            path.unlink(missing_ok=True)
        return target if os.path.lexists(target) else None


def _list_names(folder: Path) -> list[str]:
    return sorted(child.name for child in folder.iterdir())


def _is_alone(running: IO[str]) -> bool:
    """Return whether no other run is active. This gives up our share of the lock, so the caller must hold the door."""
    try:
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
