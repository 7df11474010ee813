"""Files as they are now, compared with a commit.

Git makes the difference, and never sees the files: it would read attributes that an agent wrote, and run the person's
filters on them. So every file is read through `Tree`, what is not its blob's is put into a scratch store as it is, and
git compares with that. Line endings that a checkout may have converted are taken back; a file that a filter of the
person's, or an encoding, converts by the base's attributes cannot be compared without it, and that is said.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from proofstone.agents.rules.tool_rules import FailedError, RefusedError, shown
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.tool_context import Deadline
from proofstone.agents.tools.tree import Tree
from proofstone.git.objects import GITLINK, SYMLINK, BlobReader, Held, blob_reader
from proofstone.git.program import Git
from proofstone.git.snapshot import set_entries
from proofstone.machine.files import write_alternates

_FILE_BYTES: Final = 4 << 20
_ALL_BYTES: Final = 64 << 20
_MOST_CHANGED: Final = 1000
_PART: Final = 1 << 20
_LISTED: Final = 20
_GONE: Final = "0"
_CONVERTING: Final = ("filter", "working-tree-encoding", "ident")


class _Now(NamedTuple):
    mode: str
    blob: str
    content: bytes | None
    """None: too large to be shown, or nobody's to see."""


@dataclass
class Compared:
    """Which files differ, and what is said of those that cannot be shown."""

    git: Git
    """See `scratch_git`."""
    tree: Tree
    deadline: Deadline
    changed: dict[bytes, _Now | None] = field(default_factory=dict)
    """None: it is gone."""
    secret: list[str] = field(default_factory=list)
    too_large: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    converted: list[str] = field(default_factory=list)
    other_endings: list[str] = field(default_factory=list)
    stopped: str = ""

    def look(self, base: Iterable[Held]) -> None:
        """Compare these with the files. A path that the commit does not have has no thing."""
        size = 0
        for item in base:
            if self.deadline.over or size > _ALL_BYTES or len(self.changed) == _MOST_CHANGED:
                why = "time" if self.deadline.over else "too many changes"
                self.stopped = f"stopped after {why}, at {shown(os.fsdecode(item.path))}: narrow it with `path`"
                return
            if item.mode != GITLINK:
                size += self._one(item)

    def _one(self, base: Held) -> int:
        path = os.fsdecode(base.path)
        try:
            now = self._now(path, base)
        except RefusedError:
            self.secret.append(path)
            return 0
        except OSError as error:
            self.unreadable.append(f"{path}: {error.strerror}")
            return 0
        if (now.mode, now.blob) == (base.mode, base.thing) if now else not base.thing:
            return 0
        if self.tree.is_secret(path):
            self.secret.append(path)
        elif now and now.content is None:
            self.too_large.append(path)
        else:
            self.changed[base.path] = now
        return len(now.content or b"") if now else 0

    def _now(self, path: str, base: Held) -> _Now | None:
        at = tuple(path.split("/"))
        algorithm = "sha256" if len(base.thing) == 64 else "sha1"
        target = self.tree.link(at)
        if target is not None:
            content = os.fsencode(target)
            return _Now(SYMLINK, _blob(algorithm, len(content), [content]), content)
        try:
            with self.tree.opened(at) as file:
                return self._read(file, algorithm, base.thing)
        except FailedError:  # a folder, a pipe
            return None
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def _read(self, file: BinaryIO, algorithm: str, before: str) -> _Now:
        info = os.fstat(file.fileno())
        mode = "100755" if info.st_mode & stat.S_IXUSR else "100644"
        if info.st_size > _FILE_BYTES:
            same_size = self.git.maybe("cat-file", "-s", before) == str(info.st_size)
            return _Now(mode, _blob(algorithm, info.st_size, self._parts(file)) if same_size else "", None)
        content = file.read(_FILE_BYTES + 1)
        return _Now(mode, _blob(algorithm, len(content), [content]), content)

    def _parts(self, file: BinaryIO) -> Iterator[bytes]:
        while not self.deadline.over and (part := file.read(_PART)):
            yield part

    def take_back_conversions(self, base: Mapping[bytes, Held]) -> None:
        """By the attributes in git's index."""
        for path in _converting(self.git, [path for path, now in self.changed.items() if now and base[path].thing]):
            self.converted.append(os.fsdecode(path))
            del self.changed[path]
        with blob_reader(self.git) as reader:
            for path, now in list(self.changed.items()):
                if now and now.content and b"\r\n" in now.content and base[path].is_file:
                    self._as_in_base(reader, base[path], now, now.content)

    def _as_in_base(self, reader: BlobReader, base: Held, now: _Now, content: bytes) -> None:
        before = reader.read(base.thing)
        if before is None or b"\r\n" in before or b"\n" not in before or is_binary(content):
            return
        self.other_endings.append(os.fsdecode(base.path))
        self.changed[base.path] = now._replace(content=content.replace(b"\r\n", b"\n"))

    def put_into_index(self, scratch: Path, base: Mapping[bytes, Held]) -> None:
        """Git's index holds the commit; after this, the files."""
        there = {path: now for path, now in self.changed.items() if now}
        places = [_written(scratch / f"{number}", now) for number, now in enumerate(there.values())]
        listed = "".join(f"{place}\n" for place in places).encode()
        # --no-filters: the bytes as they are.
        blobs = self.git.out("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=listed).decode("ascii").split()
        entries = [(now.mode, blob, path) for (path, now), blob in zip(there.items(), blobs, strict=True)]
        gone = [(_GONE, "0" * len(base[path].thing), path) for path, now in self.changed.items() if not now]
        set_entries(self.git, [*gone, *entries])  # in this order: what was a file may be a folder now

    def notes(self) -> Iterator[str]:
        yield self.stopped
        yield _listed("not shown, for they may hold secrets", self.secret)
        yield _listed("not shown, for they are too large", self.too_large)
        yield _listed("they cannot be read", self.unreadable)
        yield _listed("not compared, for git converts them on their way into a commit", self.converted)
        yield _listed("not shown: the lines end in CRLF here, and in LF in the commit", self.other_endings)


def scratch_git(git: Git, scratch: Path) -> Git:
    """The same store to read from; the index, and whatever is written, in the scratch folder. There is no work tree."""
    objects = git.directory / git.line("rev-parse", "--git-path", "objects")
    (scratch / "objects" / "info").mkdir(parents=True)
    write_alternates(scratch, [str(objects.resolve())])
    variables = {**git.variables, "GIT_OBJECT_DIRECTORY": str(scratch / "objects")}
    return replace(git, index=scratch / "index", variables=variables)


def _converting(git: Git, paths: Iterable[bytes]) -> list[bytes]:
    """Those that the attributes in the index let something convert, beside the line endings."""
    asked = b"".join(path + b"\0" for path in paths)
    records = git.records("check-attr", "--cached", "-z", "--stdin", *_CONVERTING, stdin=asked)
    filters = _filters(git)
    triples = zip(records[::3], records[1::3], records[2::3], strict=True)
    found = (path for path, name, value in triples if _converts(name, value, filters))
    return list(dict.fromkeys(found))


def _converts(name: bytes, value: bytes, filters: set[bytes]) -> bool:
    return value in filters if name == b"filter" else value not in (b"unspecified", b"unset")


def _filters(git: Git) -> set[bytes]:
    """Those that the person has set up: any other converts nothing."""
    named = git.maybe("config", "--name-only", "--get-regexp", r"^filter\.") or ""
    return {os.fsencode(name.split(".", 1)[1].rpartition(".")[0]) for name in named.split("\n") if name}


def _blob(algorithm: str, size: int, parts: Iterable[bytes]) -> str:
    """The name that git has for such a blob."""
    state = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def _written(place: Path, now: _Now) -> Path:
    place.write_bytes(now.content or b"")
    return place


def _listed(what: str, paths: list[str]) -> str:
    if not paths:
        return ""
    more = f" and {len(paths) - _LISTED} more" if len(paths) > _LISTED else ""
    return f"{what}: {', '.join(map(shown, paths[:_LISTED]))}{more}"
