"""The private git directory: Proofstone's own objects and index, out of reach of whoever works in the repository.

It can be recreated at any time, so damage is repaired when it is opened, and reported once. It borrows the user's
objects through alternates and keeps new ones to itself. Its configuration is written each time it is opened: the
conversions that the user has configured (line endings, filters such as LFS and git-crypt), and no other user setting.

Refs (`pin`) protect objects that a run still needs from garbage collection.
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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proofstone.errors import RepositoryError
from proofstone.git.program import Git
from proofstone.git.repository import Repository
from proofstone.git.rules import quote_setting
from proofstone.machine.files import ensure_file_path, ensure_folder, remove_path, write_alternates

_CORE_SETTINGS = frozenset(
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
"""Git holds a lock for milliseconds; an older one was left by a git that was killed."""

# Folders of the user's git directory in which filters keep their data; the filters find them through $GIT_DIR.
_FILTER_FOLDERS = ("lfs", "git-crypt")


@dataclass(frozen=True)
class Store:
    """A private git directory for one repository."""

    repository: Repository
    folder: Path
    shared_objects: Path | None = None
    """The object directory of another store, if this one has none of its own."""
    repairs: list[str] = field(default_factory=list, compare=False)
    """Messages about damage that was found and repaired."""

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
        shared_variables = {"GIT_OBJECT_DIRECTORY": str(self.shared_objects)} if self.shared_objects else {}
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
                **shared_variables,
            },
        )

    def settings_without_personal_filters(self, versioned: Iterable[str]) -> tuple[str, ...]:
        """Return settings that switch off checkout filters which only the user's `info/attributes` requests.

        `versioned` holds the tree's own attributes. Without this, nobody who sees the tree would know what a checkout
        holds.
        """
        personal = self.repository.common_dir / "info" / "attributes"
        lines = os.fsdecode(personal.read_bytes()) if personal.is_file() else ""
        shared = {name for text in versioned for name in _FILTER_NAME.findall(text)}
        names = sorted(set(_FILTER_NAME.findall(lines)) - shared)
        return tuple(f"filter.{name}.{key}" for name in names for key in ("smudge=", "process=", "required=false"))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the store: only one snapshot of a repository runs at a time, because they share an index."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def open_store(repository: Repository, home: Path) -> Store:
    """Open the private directory of this repository, with a fresh configuration; create it if there is none."""
    name = hashlib.sha256(os.fsencode(repository.git_dir)).hexdigest()[:20]
    store = Store(repository, home / "repos" / name)
    ensure_folder(store.folder, store.repairs)
    ensure_file_path(store.folder / "lock", store.repairs)
    with store.lock():
        _repair(store)
        if not store.git_dir.is_dir():
            _create(store)
        settings = _read_user_settings(repository)
        _refuse_filters_in_tree(repository, settings)
        _write_config(store, settings)
        write_alternates(store.git_dir, repository.object_dirs)
        _link_filter_folders(store)
    return store


def derive_store(store: Store, folder: Path, repository: Repository) -> Store:
    """Create a store with its own index, lock and attributes, and with the settings and objects of the given store."""
    derived = Store(repository, folder, store.objects, store.repairs)
    for part in ("refs", "info"):
        (derived.git_dir / part).mkdir(mode=0o700, parents=True, exist_ok=True)
    (derived.git_dir / "HEAD").write_text("ref: refs/heads/none\n")
    with store.lock():
        shutil.copyfile(store.git_dir / "config", derived.git_dir / "config")
        shutil.copyfile(store.folder / "settings.json", folder / "settings.json")
    for name in _FILTER_FOLDERS:
        theirs, ours = store.git_dir / name, derived.git_dir / name
        if theirs.is_dir() and not os.path.lexists(ours):
            ours.symlink_to(theirs)
    return derived


def refuse_filters_in_tree(store: Store) -> None:
    """Refuse filters inside the tree as `open_store` does, for a work tree that was created later."""
    _, settings = json.loads(store.conversions)
    _refuse_filters_in_tree(store.repository, settings)


def _repair(store: Store) -> None:
    """Repair what git needs in its directory; existing objects and refs stay."""
    for name in _OWN_FILES:
        ensure_file_path(store.folder / name, store.repairs)
    git = store.git_dir
    if not os.path.lexists(git):
        return
    if not git.is_dir():
        remove_path(git)
        store.repairs.append(f"{git} was not a folder and has been recreated")
        return
    for name in _GIT_FOLDERS:
        if not os.path.lexists(git / name):
            store.repairs.append(f"{git / name} was missing and has been recreated")
        ensure_folder(git / name, store.repairs)
    for name in _GIT_FILES:
        ensure_file_path(git / name, store.repairs)
    head = git / "HEAD"
    if not head.is_file() or not _IS_HEAD(head.read_bytes()):
        head.write_bytes(_HEAD)
        store.repairs.append(f"{head} was missing or damaged and has been rewritten")
    for lock in (*git.glob("*.lock"), *git.glob("refs/**/*.lock")):
        if _is_stale(lock):
            remove_path(lock)
            store.repairs.append(f"{lock} was left by a git process that was killed and has been removed")


def _is_stale(lock: Path) -> bool:
    try:
        return time.time() - lock.lstat().st_mtime > _STALE_SECONDS
    except FileNotFoundError:
        return False  # its owner has just removed it


def _create(store: Store) -> None:
    """Create the git directory in a temporary folder and rename it, so that a crash leaves nothing incomplete."""
    temporary = store.folder / "git.new"
    remove_path(temporary)
    template = store.folder / "no-template"
    ensure_folder(template, store.repairs)
    store.repository.git_in(store.folder).run(
        "init",
        "--quiet",
        "--bare",
        f"--object-format={store.repository.object_format}",
        f"--template={template}",
        temporary,
    )
    (temporary / "info").mkdir(exist_ok=True)
    (temporary / "objects" / "info").mkdir(exist_ok=True)
    temporary.rename(store.git_dir)


def _read_user_settings(repository: Repository) -> list[tuple[str, str]]:
    """Return the user's settings that decide how bytes become blobs."""
    settings: list[tuple[str, str]] = []
    for record in repository.git.run_records("config", "--list", "-z", "--includes"):
        name, _, value = os.fsdecode(record).partition("\n")
        if name in _CORE_SETTINGS or name.startswith(("filter.", "lfs.")):
            settings.append((name, value))
    return settings


def _verify_config(store: Store, file: Path, settings: Sequence[tuple[str, str]]) -> None:
    """Verify that git reads these settings from the end of the file."""
    records = store.repository.git_in(store.folder).run_records("config", "--file", file, "--list", "-z")
    read = [tuple(os.fsdecode(record).split("\n", 1)) for record in records]
    if read[len(read) - len(settings) :] != settings:
        raise RepositoryError(
            f"{file}: git reads other settings from it than were written to it",
            hint="look for unusual values in `git config --list`, of `filter.*` and `lfs.*`",
        )


def _refuse_filters_in_tree(repository: Repository, settings: Iterable[tuple[str, str]]) -> None:
    """Raise an error for a filter inside the work tree: it would run code of the change itself,
    outside every sandbox.
    """
    for name, value in settings:
        if not name.startswith("filter.") or name.endswith(".required"):
            continue
        for word in _path_words(value):
            program = repository.root / word
            if program.is_file() and program.resolve().is_relative_to(repository.root):
                raise RepositoryError(
                    f"{repository.git_dir / 'config'}: {name} runs {word}, a file of the work tree itself, so "
                    "the change could decide what the filter does",
                    hint="install the filter outside the repository and configure that path",
                )


def _path_words(command: str) -> list[str]:
    try:
        return [word for word in shlex.split(command) if "/" in word or "." in word]
    except ValueError:
        return command.split()


def _write_config(store: Store, settings: list[tuple[str, str]]) -> None:
    """Write Proofstone's own configuration, if the user's settings have changed since."""
    settings_file = store.folder / "settings.json"
    settings_text = json.dumps([store.repository.object_format, settings])
    config = store.git_dir / "config"
    digest = store.folder / "config.sha256"
    if (
        settings_file.is_file()
        and settings_file.read_bytes() == settings_text.encode()
        and config.is_file()
        and digest.is_file()
    ):
        if digest.read_bytes() == _digest(config):
            return
        store.repairs.append(f"{config} had been changed and has been rewritten")
    settings_file.unlink(missing_ok=True)
    fresh = store.git_dir / "config.new"
    extension = "[extensions]\n\tobjectFormat = sha256\n" if store.repository.object_format == "sha256" else ""
    version = 1 if extension else 0
    own = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}"
    fresh.write_bytes(os.fsencode(own + "".join(quote_setting(name, value) for name, value in settings)))
    _verify_config(store, fresh, settings)
    digest.write_bytes(_digest(fresh))
    fresh.replace(config)
    settings_file.write_text(settings_text, "utf-8")


def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).hexdigest().encode("ascii")


def _link_filter_folders(store: Store) -> None:
    for name in _FILTER_FOLDERS:
        theirs, ours = store.repository.common_dir / name, store.git_dir / name
        if theirs.is_dir() and not ours.exists():
            ours.unlink(missing_ok=True)
            ours.symlink_to(theirs)


_HELD_REFS = "refs/proofstone/held"


def pin(store: Store, run_id: str, name: str, thing: str) -> None:
    """Protect a commit or a tree of the run from garbage collection, in place of what was held under that name."""
    store.git().run("update-ref", f"{_HELD_REFS}/{run_id}/{name}", thing)


def unpin(store: Store, run_id: str) -> None:
    """Release the objects of a run that is over: its result is in the user's repository."""
    git = store.git()
    names = git.run_line("for-each-ref", "--format=delete %(refname)", f"{_HELD_REFS}/{run_id}")
    if names:
        git.run("update-ref", "--stdin", stdin=f"{names}\n".encode())
