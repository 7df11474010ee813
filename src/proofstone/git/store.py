"""The private git directory: objects and index of our own, beyond the reach of whoever works in the repository.

It can be made again at any time, so whatever is found damaged in it is put right on opening, and said once.

It borrows the user's objects through alternates and keeps new ones to itself. Its configuration is written by the
engine on every opening: the conversions that the user had configured (line endings, filters such as LFS and
git-crypt), and nothing else of theirs.

Objects of the private store that a run still needs, kept from being tidied away: refs hold them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proofstone.errors import RepositoryError
from proofstone.git.program import Git
from proofstone.git.repository import Repository
from proofstone.machine.files import discard, ensure_folder, ensure_place_for_file, write_alternates

_KEPT_CORE = frozenset(
    f"core.{name}"
    for name in (
        "autocrlf", "eol", "ignorecase", "precomposeunicode", "symlinks", "filemode", "bigfilethreshold",
        "checkroundtripencoding", "attributesfile",
    )
)  # fmt: skip

_FILTER_NAME = re.compile(r"(?<!\S)filter=(\S+)")

_OWN_FILES = ("settings.json", "config.sha256", "index", "index.new", "index.new.lock", "ignore.rules")
_GIT_FOLDERS = ("objects", "objects/info", "refs", "info")
_GIT_FILES = ("HEAD", "config", "config.new", "config.new.lock", "objects/info/alternates", "info/attributes")
_HEAD = b"ref: refs/heads/none\n"
_IS_HEAD = re.compile(rb"(?:ref: refs/[!-~]+|[0-9a-f]{40,64})\n?").fullmatch
_STALE_SECONDS = 10.0
"""Git holds a lock for milliseconds; one that is older was left by a git that was killed."""

# Folders of the user's git directory in which filters keep what they need: found through $GIT_DIR by the filters.
_FILTER_FOLDERS = ("lfs", "git-crypt")


@dataclass(frozen=True)
class Store:
    """A private git directory for one repository."""

    repository: Repository
    folder: Path
    shared_objects: Path | None = None
    """The object directory of another store, if this one has none of its own."""
    repairs: list[str] = field(default_factory=list, compare=False)
    """What was found damaged and put right, in words."""

    @property
    def git_dir(self) -> Path:
        return self.folder / "git"

    @property
    def objects(self) -> Path:
        return self.shared_objects or self.git_dir / "objects"

    @property
    def conversions(self) -> str:
        """The user's settings that decide how blobs become files, as one text."""
        return (self.folder / "settings.json").read_text("utf-8")

    def git(self, *, work_tree: Path | None = None, index: Path | None = None) -> Git:
        elsewhere = {"GIT_OBJECT_DIRECTORY": str(self.shared_objects)} if self.shared_objects else {}
        return Git(
            directory=work_tree or self.git_dir,
            git_dir=self.git_dir,
            work_tree=work_tree,
            index=index,
            variables={
                "PATH": self.repository.search,
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_SYSTEM": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_ATTR_NOSYSTEM": "1",
                **elsewhere,
            },
        )

    def without_personal_smudge(self, versioned: Iterable[str]) -> tuple[str, ...]:
        """Settings that keep filters from altering checkouts, if only `info/attributes` asks for them and none of the
        tree's own attributes, which are given: nobody who sees the tree would know what a checkout of it holds."""
        personal = self.repository.common_dir / "info" / "attributes"
        lines = os.fsdecode(personal.read_bytes()) if personal.is_file() else ""
        shared = {name for text in versioned for name in _FILTER_NAME.findall(text)}
        names = sorted(set(_FILTER_NAME.findall(lines)) - shared)
        return tuple(f"filter.{name}.{key}" for name in names for key in ("smudge=", "process=", "required=false"))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One snapshot of a repository at a time: they share an index."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def open_store(repository: Repository, home: Path) -> Store:
    """The private directory of this repository, made if there is none, its configuration fresh."""
    name = hashlib.sha256(os.fsencode(repository.git_dir)).hexdigest()[:20]
    store = Store(repository, home / "repos" / name)
    ensure_folder(store.folder, store.repairs)
    ensure_place_for_file(store.folder / "lock", store.repairs)
    with store.locked():
        _mend(store)
        if not store.git_dir.is_dir():
            _create(store)
        settings = _user_settings(repository)
        _refuse_filters_in_tree(repository, settings)
        _write_config(store, settings)
        write_alternates(store.git_dir, repository.object_dirs)
        _link_filter_folders(store)
    return store


def store_beside(store: Store, folder: Path, repository: Repository) -> Store:
    """A store with an index, a lock and attributes of its own, the settings of this one, and this one's objects."""
    beside = Store(repository, folder, store.objects, store.repairs)
    for part in ("refs", "info"):
        (beside.git_dir / part).mkdir(mode=0o700, parents=True, exist_ok=True)
    (beside.git_dir / "HEAD").write_text("ref: refs/heads/none\n")
    with store.locked():
        shutil.copyfile(store.git_dir / "config", beside.git_dir / "config")
        shutil.copyfile(store.folder / "settings.json", folder / "settings.json")
    for name in _FILTER_FOLDERS:
        theirs, ours = store.git_dir / name, beside.git_dir / name
        if theirs.is_dir() and not os.path.lexists(ours):
            ours.symlink_to(theirs)
    return beside


def refuse_filters_in_tree(store: Store) -> None:
    """The same as on every opening, for a work tree that came about later."""
    _, settings = json.loads(store.conversions)
    _refuse_filters_in_tree(store.repository, settings)


def _mend(store: Store) -> None:
    """Put right what git needs of its directory; objects and refs that are there stay."""
    for name in _OWN_FILES:
        ensure_place_for_file(store.folder / name, store.repairs)
    git = store.git_dir
    if not os.path.lexists(git):
        return
    if not git.is_dir():
        discard(git)
        store.repairs.append(f"{git} was no folder; it was made anew")
        return
    for name in _GIT_FOLDERS:
        if not os.path.lexists(git / name):
            store.repairs.append(f"{git / name} was missing; it was made anew")
        ensure_folder(git / name, store.repairs)
    for name in _GIT_FILES:
        ensure_place_for_file(git / name, store.repairs)
    head = git / "HEAD"
    if not head.is_file() or not _IS_HEAD(head.read_bytes()):
        head.write_bytes(_HEAD)
        store.repairs.append(f"{head} was missing or damaged; it was written anew")
    for lock in (*git.glob("*.lock"), *git.glob("refs/**/*.lock")):
        if _is_stale(lock):
            discard(lock)
            store.repairs.append(f"{lock} was left by a git that was killed; it was removed")


def _is_stale(lock: Path) -> bool:
    try:
        return time.time() - lock.lstat().st_mtime > _STALE_SECONDS
    except FileNotFoundError:
        return False  # its owner is done


def _create(store: Store) -> None:
    """Made aside and moved in, so that a crash leaves nothing half made."""
    aside = store.folder / "git.new"
    discard(aside)
    template = store.folder / "no-template"
    ensure_folder(template, store.repairs)
    store.repository.git_in(store.folder).run(
        "init",
        "--quiet",
        "--bare",
        f"--object-format={store.repository.object_format}",
        f"--template={template}",
        aside,
    )
    (aside / "info").mkdir(exist_ok=True)
    (aside / "objects" / "info").mkdir(exist_ok=True)
    aside.rename(store.git_dir)


def _user_settings(repository: Repository) -> list[tuple[str, str]]:
    """The user's own settings that decide how bytes become blobs."""
    kept: list[tuple[str, str]] = []
    for record in repository.git.records("config", "--list", "-z", "--includes"):
        name, _, value = os.fsdecode(record).partition("\n")
        if name in _KEPT_CORE or name.startswith(("filter.", "lfs.")):
            kept.append((name, value))
    return kept


def _refuse_filters_in_tree(repository: Repository, settings: Iterable[tuple[str, str]]) -> None:
    """A filter that lies in the work tree would run code of the change itself, outside every sandbox."""
    for name, value in settings:
        if not name.startswith("filter.") or name.endswith(".required"):
            continue
        for word in _words(value):
            program = repository.root / word
            if program.is_file() and program.resolve().is_relative_to(repository.root):
                raise RepositoryError(
                    f"{repository.git_dir / 'config'}: {name} runs {word}, a file of the work tree itself; "
                    "the change could decide what it does",
                    hint="install the filter outside the repository and name it there",
                )


def _words(command: str) -> list[str]:
    try:
        return [word for word in shlex.split(command) if "/" in word or "." in word]
    except ValueError:
        return command.split()


def _write_config(store: Store, settings: list[tuple[str, str]]) -> None:
    """Ours and nothing else. Written anew only when the user's settings have changed since: git does the quoting."""
    said = store.folder / "settings.json"
    wanted = json.dumps([store.repository.object_format, settings])
    config = store.git_dir / "config"
    digest = store.folder / "config.sha256"
    if said.is_file() and said.read_bytes() == wanted.encode() and config.is_file() and digest.is_file():
        if digest.read_bytes() == _digest(config):
            return
        store.repairs.append(f"{config} was not what was written there; it was written anew")
    said.unlink(missing_ok=True)
    fresh = store.git_dir / "config.new"
    extension = "[extensions]\n\tobjectFormat = sha256\n" if store.repository.object_format == "sha256" else ""
    version = 1 if extension else 0
    fresh.write_text(f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}", "utf-8")
    plain = store.repository.git_in(store.folder)
    for name, value in settings:
        plain.run("config", "--file", fresh, "--add", name, value)
    digest.write_bytes(_digest(fresh))
    fresh.replace(config)
    said.write_text(wanted, "utf-8")


def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).hexdigest().encode("ascii")


def _link_filter_folders(store: Store) -> None:
    for name in _FILTER_FOLDERS:
        theirs, ours = store.repository.common_dir / name, store.git_dir / name
        if theirs.is_dir() and not ours.exists():
            ours.unlink(missing_ok=True)
            ours.symlink_to(theirs)


_REFS = "refs/proofstone/held"


def hold(store: Store, run_id: str, name: str, thing: str) -> None:
    """Keep a commit or a tree of the run, in place of what was held under that name."""
    store.git().run("update-ref", f"{_REFS}/{run_id}/{name}", thing)


def let_go(store: Store, run_id: str) -> None:
    """The run is over, and what counts of it is in the person's repository."""
    git = store.git()
    names = git.line("for-each-ref", "--format=delete %(refname)", f"{_REFS}/{run_id}")
    if names:
        git.run("update-ref", "--stdin", stdin=f"{names}\n".encode())
