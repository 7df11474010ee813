"""What decides a program's next start (settings, hooks, plug-ins) stays as the person had it.

A program that works with the person's login could leave itself orders beside it, for the day on which the person starts
it outside. What is there already is mounted read-only where mounts can be had (`home.py`). All of it is watched: what
has appeared or changed in the meantime is moved aside, put back as it was, and told.

Runs that share a login folder share its guard, a folder in Proofstone's state with a picture of how everything was:
- the first to come takes the picture, and nobody takes another while somebody runs: what one run has planted is never
  mistaken for the person's by the next;
- the last to go puts things right, and the picture goes with them;
- a picture while nobody runs is that of a run that was killed: whoever comes next puts things right first.
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
from proofstone.machine.files import remove
from proofstone.sandbox.job import OwnHome
from proofstone.sandbox.login_copies import copied, copy, measured, same

_SMALL = 16 << 20
"""Bytes of something read-only of which there is a copy all the same."""


@dataclass(frozen=True)
class Way:
    """From a shared folder to something in it that is kept."""

    top: Path
    """The shared folder, on the machine, without a link in its path."""
    seen_at: str
    """Its path from the new HOME."""
    path: Path
    """What is kept, on the machine; it need not exist."""

    @property
    def name(self) -> str:
        return self.path.relative_to(self.top).as_posix()

    @property
    def folders(self) -> list[Path]:
        """Those that are passed, below the top. A link is none."""
        return self._walked[0]

    @property
    def end(self) -> Path:
        """What is kept, or what stands in its way: a link, a file, or nothing."""
        return self._walked[1]

    @property
    def is_mountable(self) -> bool:
        """Whether there is something that can be mounted read-only on itself."""
        return self.end == self.path and self.path.exists() and not self.path.is_symlink()

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
        shared, seen_at = max(tops, key=lambda pair: len(pair[0].parts))
        top = shared.resolve()
        way = Way(top, seen_at, top / path.relative_to(shared))
        ways.append(way)
        real = way.path.resolve()
        if way.path.is_symlink() and real.is_relative_to(top):
            ways.append(Way(top, seen_at, real))
    return ways


@contextmanager
def guarded(own: OwnHome, guards: Path, say: Callable[[str], None], *, sealed: bool) -> Iterator[None]:
    """Around a run. `guards` is the folder of all guards; what is moved aside goes to `put-aside`, next to it, and
    stays there. `sealed`: what is there is read-only for this run."""
    ways = ways_to_kept(own)
    with ExitStack() as stack:
        open_folders = [path.resolve() for path, _ in own.shared if path.is_dir()] if own.renewed is not None else []
        for top in dict.fromkeys((*(way.top for way in ways), *open_folders)):
            guard = _Guard(guards / hashlib.sha256(os.fsencode(top)).hexdigest()[:32], top, say, _patterns(own, top))
            stack.enter_context(guard.on_duty([way for way in ways if way.top == top], sealed=sealed))
        yield


def _patterns(own: OwnHome, top: Path) -> tuple[str, ...] | None:
    """Of what may appear in one shared folder, by name."""
    if own.renewed is None:
        return None
    at = next(seen_at for source, seen_at in own.shared if source.resolve() == top)
    return tuple(pattern.removeprefix(f"{at}/") for pattern in own.renewed if pattern.startswith(f"{at}/"))


@dataclass(frozen=True)
class _Kept:
    """How a way ended before: at a link, at what was kept, or (where there is no mark) at nothing."""

    end: str
    """From the top."""
    link: str | None = None
    mark: str = ""
    """What tells that it is the same as before, without looking into files."""
    copy: str = ""
    """The name of its copy, where there is one."""

    @property
    def lacks_copy(self) -> bool:
        return bool(self.mark and not self.copy)


@dataclass(frozen=True)
class _Picture:
    """How everything was before anybody ran. It only grows."""

    modes: dict[str, int] = field(default_factory=dict)
    """Of the folders that are passed, by their paths from the top."""
    ends: dict[str, _Kept] = field(default_factory=dict)
    """By the paths of what is kept."""
    children: list[str] = field(default_factory=list)
    """What was there in the folder itself."""


@dataclass(frozen=True)
class _Guard:
    """Of one shared folder. All who run share the lock `running`; whoever comes or goes holds `door`."""

    folder: Path
    top: Path
    say: Callable[[str], None]
    renewed: tuple[str, ...] | None
    """Patterns of what may appear in the folder; None: anything may."""

    @contextmanager
    def on_duty(self, ways: Sequence[Way], *, sealed: bool) -> Iterator[None]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        troubles: list[str] = []
        with (self.folder / "running").open("w") as running:
            with self._at_the_door():
                if _alone(running) and (left := self._put_right()):
                    raise self._not_put_back(left)
                fcntl.flock(running, fcntl.LOCK_SH)
                self._take(ways, sealed=sealed)
            try:
                yield
            finally:
                with self._at_the_door():
                    troubles = self._put_right() if _alone(running) else []
                    fcntl.flock(running, fcntl.LOCK_UN)
        if troubles:
            raise self._not_put_back(troubles)

    @contextmanager
    def _at_the_door(self) -> Iterator[None]:
        with (self.folder / "door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            yield

    def _not_put_back(self, troubles: Sequence[str]) -> MachineError:
        return MachineError(
            f"what decides a program's next start cannot be put back: {'; '.join(troubles)}",
            hint=f"how it was is in {self.folder}: put it right by hand, and remove that folder",
        )

    def _take(self, ways: Sequence[Way], *, sealed: bool) -> None:
        """What the picture does not hold yet. It is there as a whole before anything runs."""
        picture = self._read() or _Picture(children=_names(self.top))
        for way in ways:
            for folder in (way.top, *way.folders):
                if folder.is_dir():
                    name = folder.relative_to(self.top).as_posix()
                    picture.modes.setdefault(name, stat.S_IMODE(folder.stat().st_mode))
            known = picture.ends.get(way.name)
            if known is None or (known.lacks_copy and not sealed and not self._is_changed(way, known)):
                picture.ends[way.name] = self._seen(way, sealed=sealed)
        new = self._picture.with_suffix(".new")
        new.write_text(json.dumps(asdict(picture)), "utf-8")
        new.replace(self._picture)

    def _seen(self, way: Way, *, sealed: bool) -> _Kept:
        end = way.end
        name = end.relative_to(self.top).as_posix()
        if end.is_symlink():
            return _Kept(name, link=os.fspath(end.readlink()))
        if not os.path.lexists(end) or end != way.path:
            return _Kept(name)
        mark, size = measured(end)
        copy = hashlib.sha256(way.name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        wanted = (size <= _SMALL or not sealed) and copied(end, self._copies / copy)
        return _Kept(name, mark=mark, copy=copy if wanted else "")

    def _put_right(self) -> list[str]:
        """Says what was not as before. Returns what could not be put back, and then keeps the picture."""
        picture = self._read() or _Picture()
        aside = _Aside(self.folder.parent.parent / "put-aside")
        troubles: list[str] = []
        self._set_modes(picture)  # what follows must pass there
        for name, kept in picture.ends.items():
            way = Way(self.top, "", self.top / name)
            try:
                if self._is_changed(way, kept):
                    self.say(self._put_back(way, kept, aside))
            except (OSError, subprocess.SubprocessError) as error:
                troubles.append(f"{way.path}: {error}")
                self.say(f"cannot be put back: {troubles[-1]}")
        troubles += self._set_modes(picture)
        if self._picture.exists():
            self._remove_strangers(picture, aside)
        if not troubles:
            self._picture.unlink(missing_ok=True)
            if self._copies.is_dir():
                remove(self._copies)
        return troubles

    def _remove_strangers(self, picture: _Picture, aside: _Aside) -> None:
        """What has appeared in the folder, and is none of what the program renews: whatever it is called, some program
        may start from it."""
        if self.renewed is None:
            return
        known = {*picture.children, *(Path(name).parts[0] for name in picture.ends)}
        strange = [name for name in _names(self.top) if name not in known]
        strange = [name for name in strange if not any(fnmatchcase(name, pattern) for pattern in self.renewed)]
        places = [place for name in strange if (place := aside.take(self.top / name, self.top))]
        if places:
            self.say(f"what a program has made in {self.top} is in {places[0].parent} now: {', '.join(strange)}")

    def _set_modes(self, picture: _Picture) -> list[str]:
        """The outermost first. Nothing is changed through a link that a program has put on the way."""
        troubles: list[str] = []
        for name, mode in sorted(picture.modes.items(), key=lambda item: len(Path(item[0]).parts)):
            folder = self.top / name
            try:
                if folder.is_dir() and folder.resolve() == folder and stat.S_IMODE(folder.stat().st_mode) != mode:
                    folder.chmod(mode)
            except OSError as error:
                troubles.append(f"{folder}: {error}")
        return troubles

    def _is_changed(self, way: Way, kept: _Kept) -> bool:
        end = way.end
        if kept.link is None and not kept.mark:
            return end.is_symlink() or (end == way.path and os.path.lexists(end))
        if end != self.top / kept.end:
            return True
        if kept.link is not None:
            return not end.is_symlink() or os.fspath(end.readlink()) != kept.link
        try:
            return not same(self._copies / kept.copy, end) if kept.copy else measured(end)[0] != kept.mark
        except OSError:
            return True  # what can no longer be read is not what it was

    def _put_back(self, way: Way, kept: _Kept, aside: _Aside) -> str:
        """What there is to say of it."""
        what = f"{way.path}, which decides what a program does when you start it,"
        if kept.lacks_copy:
            return f"look at {what} before you do: it has been changed, and there is no copy of how it was"
        put = aside.take(way.end, self.top)
        end = self.top / kept.end
        if kept.link is None and not kept.mark:
            return f"put back: {way.path}, which was not there before, is in {put} now"
        if kept.link is not None or kept.copy:
            end.parent.mkdir(parents=True, exist_ok=True)
        if kept.link is not None:
            end.symlink_to(kept.link)
        elif kept.copy:
            copy(self._copies / kept.copy, end)
        return f"put back: {what} had been changed" + (f"; what was there is in {put}" if put else "")

    def _read(self) -> _Picture | None:
        try:
            read = json.loads(self._picture.read_text("utf-8"))
            ends = {name: _Kept(**kept) for name, kept in read["ends"].items()}
            modes = {name: int(mode) for name, mode in read["modes"].items()}
            return _Picture(modes, ends, [str(name) for name in read["children"]])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._not_put_back([f"{self._picture} is no picture: {error}"]) from error

    @property
    def _picture(self) -> Path:
        return self.folder / "picture.json"

    @property
    def _copies(self) -> Path:
        return self.folder / "copies"


@dataclass(frozen=True)
class _Aside:
    """Where what was changed is kept, for the person to look at."""

    parent: Path

    @cached_property
    def _folder(self) -> Path:
        self.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%dT%H%M%SZ-", time.gmtime()), dir=self.parent))

    def take(self, path: Path, top: Path) -> Path | None:
        """Another file system may be in between, and anything may be in there: what cannot be moved is removed. Returns
        where it is now; None: there was nothing."""
        if not os.path.lexists(path):
            return None
        to = self._folder / top.name / path.relative_to(top)
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mv", "-T", "--", path, to], check=False, capture_output=True)
        if path.is_dir() and not path.is_symlink():
            remove(path)
        else:
            path.unlink(missing_ok=True)
        return to if os.path.lexists(to) else None


def _names(folder: Path) -> list[str]:
    return sorted(child.name for child in folder.iterdir())


def _alone(running: IO[str]) -> bool:
    """Whether nobody else runs. Our own share of the lock is lost in asking: only for who holds the door."""
    try:
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
