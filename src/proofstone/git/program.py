"""Run git: the only way Proofstone calls it, with everything hostile switched off.

A repository can make git run programs: hooks, fsmonitor, external diff, filters, pagers, credential helpers; and its
replace refs can swap one object for another. Nothing that an executor wrote into a repository may run or mislead git
here, so every call states its own environment and overrides. Filters are the exception that users need (LFS,
git-crypt); they run only from the private directory's own configuration, see `store.py`.

What git reports about objects is cached while the process lives, because an object that is named by its id never
changes. Each call costs a process, and a gate reads the same trees dozens of times.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from proofstone.errors import MachineError, RepositoryError

CACHE_BYTES: Final = 64 << 20
CACHE_KEY_BYTES: Final = 500
"""The approximate size of a cache key."""
_IS_ID: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})(?:\^\{tree\})?").fullmatch


def is_object_id(word: str) -> bool:
    """Return whether the word is a full object id, or the tree of one: neither a branch nor an abbreviation."""
    return _IS_ID(word) is not None


class AnswerCache:
    """A cache of git's answers, up to a maximum size; the least recently used go first."""

    def __init__(self, most: int = CACHE_BYTES) -> None:
        self._most = most
        self._size = 0
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def lookup(self, question: Hashable, ask: Callable[[], bytes]) -> bytes:
        """Return the cached answer, or call `ask` and cache its result. A failure is not cached."""
        with self._lock:
            if question in self._answers:
                self._answers.move_to_end(question)
                return self._answers[question]
        answer = ask()
        with self._lock:
            if question not in self._answers:
                self._answers[question] = answer
                self._size += len(answer) + CACHE_KEY_BYTES
            while self._size > self._most:
                _, oldest = self._answers.popitem(last=False)
                self._size -= len(oldest) + CACHE_KEY_BYTES
        return answer


_OVERRIDES: tuple[str, ...] = (
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=ssh -o BatchMode=yes",
    "core.quotePath=false",
    "diff.external=",
    "diff.renames=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "advice.detachedHead=false",
)

_INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SSH_AUTH_SOCK",
)


def git_environment() -> dict[str, str]:
    """Return git's environment: no GIT_* variable of the caller, and no way to prompt."""
    inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    return inherited | {
        "LC_ALL": "C.UTF-8",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_ASKPASS": "true",
        "GIT_LITERAL_PATHSPECS": "1",
    }


class GitCommandError(RepositoryError):
    """Git ended with an error; `stderr` is its output."""

    def __init__(self, args: Sequence[str], code: int, stderr: str) -> None:
        self.code = code
        self.stderr = stderr.strip()
        reason = self.stderr.splitlines()[-1] if self.stderr else f"exit code {code}"
        super().__init__(f"git {args[0] if args else ''} failed: {reason}", hint=_hint(self.stderr))


def _hint(stderr: str) -> str | None:
    if "dubious ownership" in stderr:
        return "the repository belongs to another user: git config --global --add safe.directory <path>"
    if "No space left" in stderr:
        return "free some space, or set PROOFSTONE_HOME to a folder on another disk"
    if "Permission denied" in stderr:
        return "make the file readable, or list it in .gitignore"
    return None


@dataclass(frozen=True)
class Git:
    """Git, called in one place: a directory, or a git directory with its own work tree and index."""

    directory: Path
    git_dir: Path | None = None
    work_tree: Path | None = None
    index: Path | None = None
    settings: tuple[str, ...] = ()
    """Additional `-c` values."""
    variables: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _environment(self) -> dict[str, str]:
        places = {"GIT_DIR": self.git_dir, "GIT_WORK_TREE": self.work_tree, "GIT_INDEX_FILE": self.index}
        located = {name: str(path) for name, path in places.items() if path is not None}
        return git_environment() | located | dict(self.variables)

    @cached_property
    def _program(self) -> list[str]:
        return ["git", *(word for setting in (*_OVERRIDES, *self.settings) for word in ("-c", setting))]

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """Start a git process whose input and output are pipes."""
        return subprocess.Popen(
            [*self._program, *args],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def run(
        self, *args: str | bytes | Path, stdin: bytes | None = None, accept: Iterable[int] = (0,)
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git; raise `GitCommandError` with git's message for an exit code outside `accept`."""
        try:
            result = subprocess.run(
                [*self._program, *args],
                cwd=self.directory,
                env=self._environment,
                input=stdin if stdin is not None else b"",
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            if error.filename and os.fsdecode(error.filename) != "git":
                raise RepositoryError(f"{self.directory}: there is no such directory") from error
            raise MachineError("git is not installed", hint="apt install git, or see `proofstone doctor`") from error
        if result.returncode not in accept:
            raise GitCommandError([_text(a) for a in args], result.returncode, _text(result.stderr))
        return result

    def run_output(self, *args: str | bytes | Path, stdin: bytes | None = None) -> bytes:
        return self.run(*args, stdin=stdin).stdout

    def run_line(self, *args: str | bytes | Path) -> str:
        """Return the output as one line of text. Paths keep bytes that are not UTF-8 as surrogates."""
        return os.fsdecode(self.run_output(*args)).removesuffix("\n")

    def try_line(self, *args: str | bytes | Path) -> str | None:
        """Return the same as `line`, or None if git fails."""
        result = self.run(*args, accept=range(256))
        return os.fsdecode(result.stdout).removesuffix("\n") if result.returncode == 0 else None

    def run_records(self, *args: str | bytes | Path, stdin: bytes | None = None) -> list[bytes]:
        """Return the NUL-terminated records of a `-z` command."""
        return _split_records(self.run_output(*args, stdin=stdin))

    # Cached calls about objects.

    def find_objects(self, *names: str) -> list[str] | None:
        """Return the ids of objects, by one call of git; None if one of them does not exist."""
        if any("\n" in name for name in names):
            return None
        lines = "".join(f"{name}\n" for name in names)
        output = self.run_output("cat-file", "--batch-check=%(objectname)", stdin=os.fsencode(lines))
        ids = output.decode("utf-8", "replace").splitlines()
        return ids if len(ids) == len(names) and all(map(is_object_id, ids)) else None

    def find_tree(self, commit: str) -> str:
        return self._run_cached("rev-parse", f"{commit}^{{tree}}").decode("ascii").strip()

    def read_blob(self, blob: str) -> bytes:
        return self._run_cached("cat-file", "blob", blob)

    def run_cached_records(self, *args: str) -> list[bytes]:
        """Return the records of a `-z` command whose last words name objects and whose output depends on
        nothing else.
        """
        return _split_records(self._run_cached(*args))

    def _run_cached(self, *args: str) -> bytes:
        """Run the command once and cache the output, if the objects are named by their ids."""
        revisions = [word for word in args[1:] if not word.startswith("-") and word != "blob"]
        if not all(map(is_object_id, revisions)):
            return self.run_output(*args)
        return _CACHE.lookup((self._object_place, args), lambda: self.run_output(*args))

    def run_cached_input(self, *args: str, stdin: bytes) -> bytes:
        """Run the command once and cache the output. Every line of the input begins with the id of an object."""
        return _CACHE.lookup((self._object_place, args, stdin), lambda: self.run_output(*args, stdin=stdin))

    @cached_property
    def _object_place(self) -> Hashable:
        """Everything that decides which objects git finds. A git directory of its own does not depend on the folder."""
        place = self.directory if self.git_dir is None else self.git_dir
        return place, self.settings, tuple(sorted(self.variables.items()))


_CACHE: Final = AnswerCache()


def _split_records(output: bytes) -> list[bytes]:
    return output.removesuffix(b"\0").split(b"\0") if output else []


def _text(value: str | bytes | Path) -> str:
    return os.fsdecode(value) if not isinstance(value, bytes) else value.decode("utf-8", "backslashreplace")


def split_record(record: bytes, count: int, command: str) -> list[str]:
    """Split a record of `git <command>` into exactly `count` words. Raise `RepositoryError` for any other record."""
    words = record.split()
    if len(words) != count or not record.isascii():
        raise RepositoryError(f"git {command} returned an unreadable record: {record[:80]!r}", hint="run `git fsck`")
    return [word.decode("ascii") for word in words]


def decode_path(path: bytes) -> str:
    r"""Return a path for people and JSON: bytes that are not UTF-8 appear as `\\xNN`."""
    return path.decode("utf-8", "backslashreplace")
