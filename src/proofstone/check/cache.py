"""Results of checks, kept by everything that decided them: tree, command, environment, sandbox level.

A run that died is never kept, and an entry that is damaged is removed.

Only what the ledger vouches for is used: an entry names its row, and the row must be there, authentic, with the digest
of exactly this result. An entry that was edited is not used, and that is said. Results of the change are kept only if
they passed; results of a base are kept as they are, and their failures are asked again before they excuse anything (see
`check.derived_runs`).

Bytecode for virtual environments, compiled once and shown to checks as a layer.

Some installers (uv) write no bytecode. A check's own writes are thrown away, so every run would compile every imported
package again. Where there is bytecode, that of the test runner is compiled all the same: whoever may write into the
environment can leave bytecode there that bears the time of its source and says something else. The compiler runs with
the environment's interpreter, isolated and without site: nothing of the project's or of its dependencies' is executed.

Once a day, what can be made again and was not used lately is thrown away. Evidence never is.

Kept results, environments and bytecode are trimmed to `limits.cache_gb`, least recently used first; objects of the
private git directory that no run has needed for two weeks are pruned; what a killed run left half-written is removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from proofstone.check.environment import stat_tree
from proofstone.check.models import CheckResult
from proofstone.common.models import Contract
from proofstone.faults import fault_point
from proofstone.git.store import Store
from proofstone.ledger import Ledger
from proofstone.ledger.models import CheckRow
from proofstone.machine.files import discard, ensure_folder, ensure_place_for_file, remove, seconds_since_use

_FORMAT = 2
"""Raised when a result means something else than before: old entries are then not found."""


class Entry(Contract):
    seq: int = Field(ge=1)
    row_hash: str
    result: CheckResult


def digest_of(result: CheckResult) -> str:
    """What binds a kept result to its row. Whether it was reused is no part of it."""
    text = json.dumps(result.model_dump(exclude={"reused_from"}), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class ResultCache:
    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger
        self.repairs: list[str] = []
        """What was found damaged and is computed again, in words."""

    @staticmethod
    def key(**parts: object) -> str:
        text = json.dumps({"format": _FORMAT, **parts}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def find(self, key: str) -> CheckResult | None:
        """The kept result, marked as reused; None if there is none that the ledger vouches for."""
        try:
            entry = Entry.model_validate_json(self._path(key).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError):
            self._discard_damaged(key)
            return None
        if why := self._why_not(entry):
            self._note(f"a kept result of {entry.result.name} was not used, and it was run again: {why}")
            return None
        os.utime(self._path(key))  # used today: housekeeping leaves it alone
        return entry.result.model_copy(update={"reused_from": entry.seq})

    def _note(self, repair: str) -> None:
        """Each thing is said once."""
        if repair not in self.repairs:
            self.repairs.append(repair)

    def _why_not(self, entry: Entry) -> str:
        """Why the ledger does not vouch for it; empty: it does."""
        rows = self._ledger.read(CheckRow, after=entry.seq - 1, limit=1)
        if not rows or rows[0].seq != entry.seq or rows[0].link.hash != entry.row_hash:
            return f"the ledger has no such row {entry.seq}"
        if rows[0].values["result_digest"] != digest_of(entry.result):
            return f"it is not the result that row {entry.seq} of the ledger is about"
        if not self._ledger.is_authentic(rows[0]):
            return f"row {entry.seq} of the ledger is not authentic"
        return ""

    def keep(self, key: str, result: CheckResult, seq: int) -> None:
        stored = self._ledger.read(CheckRow, after=seq - 1, limit=1)[0]
        entry = Entry(seq=seq, row_hash=stored.link.hash, result=result)
        path = self._path(key)
        ensure_folder(path.parent, self.repairs)
        ensure_place_for_file(path, self.repairs)
        aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        aside.write_text(entry.model_dump_json(), "utf-8")
        fault_point("cache.before-publish")
        aside.replace(path)

    def _discard_damaged(self, key: str) -> None:
        """Remove an entry that cannot be read, and what stands in its folder's place."""
        ensure_folder(self._path(key).parent, self.repairs)
        discard(self._path(key))
        self.repairs.append(f"{self._folder}: kept results were damaged; what they held is computed again")

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"


RUNNER_PACKAGES = ("_pytest", "pytest", "pluggy", "iniconfig", "xdist", "execnet", "nose2", "pytest_asyncio")
_FEW = 40
"""Below so many modules compiling again costs nothing worth keeping."""


def bytecode_layer(environment: Path, cache: Path, repairs: list[str]) -> Path | None:
    """A directory to lay over the environment; None where it has no runner of tests, and next to no modules or
    bytecode already. A layer that is not as it was when it was made is made anew: half a module would fail tests."""
    sites = [path for path in environment.glob("lib/python3*/site-packages") if path.is_dir()]
    python = environment / "bin" / "python"
    packages = sites if any(_lacks_bytecode(path) for path in sites) else _runners(sites)
    if not python.exists() or not packages:
        return None
    state = hashlib.sha256()
    for path in packages:
        stat_tree(path, state.update)
    layer = cache / state.hexdigest()[:32]
    ensure_folder(cache, repairs)
    with (cache.parent / "bytecode.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # layer and mark belong together
        _ensure_layer(layer, repairs, lambda: _compile(python, environment, packages, layer))
    for used in (layer, layer.with_name(f"{layer.name}.mark")):
        os.utime(used)  # today: housekeeping leaves it alone
    return layer


def _ensure_layer(layer: Path, repairs: list[str], make: Callable[[], None]) -> None:
    """The layer is there afterwards, as it was when it was made."""
    mark = layer.with_name(f"{layer.name}.mark")
    if layer.is_dir() and mark.is_file() and mark.read_bytes() == _mark(layer):
        return
    if os.path.lexists(layer):
        discard(layer)
        repairs.append(f"{layer} was damaged; it was made anew")
    make()
    ensure_place_for_file(mark, repairs)
    mark.write_bytes(_mark(layer))


def _mark(layer: Path) -> bytes:
    """A digest of every file below, by size and time."""
    state = hashlib.sha256()
    for path in sorted(layer.rglob("*")):
        info = path.lstat()
        facts = (info.st_size, info.st_mtime_ns) if path.is_file() else ()
        state.update(f"{path.relative_to(layer)}\0{facts}\n".encode("utf-8", "surrogateescape"))
    return state.hexdigest().encode("ascii")


def _runners(sites: list[Path]) -> list[Path]:
    """What decides the results of tests. Links are left alone: they lead to what is installed elsewhere."""
    found = [site / name for site in sites for name in RUNNER_PACKAGES]
    return [path for path in found if path.is_dir() and not path.is_symlink()]


def _lacks_bytecode(packages: Path) -> bool:
    modules = 0
    for folder, names, files in os.walk(packages):
        if "__pycache__" in names and any(Path(folder, "__pycache__").glob("*.pyc")):
            return False
        modules += sum(name.endswith(".py") for name in files)
        if modules > _FEW:
            return True
    return False


def _compile(python: Path, environment: Path, packages: list[Path], layer: Path) -> None:
    """Into a folder aside, under the names that the interpreter looks for, and then into place."""
    layer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = layer.with_name(f"{layer.name}.{secrets.token_hex(4)}")
    prefix = aside / "prefix"
    command = [str(python), "-I", "-S", "-X", f"pycache_prefix={prefix}", "-m", "compileall", "-q", "-j", "0"]
    # Exit code 1 says that some file does not compile, as templates inside packages do not: the others are there.
    subprocess.run([*command, *map(str, packages)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    ready = aside / "layer"
    ready.mkdir(parents=True)
    mirrored = prefix / environment.relative_to("/")
    for compiled in mirrored.rglob("*.pyc"):
        target = ready / compiled.parent.relative_to(mirrored) / "__pycache__" / compiled.name
        target.parent.mkdir(parents=True, exist_ok=True)
        compiled.rename(target)
    if layer.is_dir():
        shutil.rmtree(aside)  # another run was faster
        return
    try:
        ready.rename(layer)
    except OSError:
        if not layer.is_dir():
            raise
    shutil.rmtree(aside)


_DAY = 24 * 3600.0
_FOLDERS = ("cache/results", "cache/bytecode", "environments")


def keep_house(home: Path, store: Store, gigabytes: int, *, now: float | None = None) -> bool:
    """Tidy up if it was not done within a day; whether it was."""
    now = time.time() if now is None else now
    stamp = home / "cache" / "tidied"
    if stamp.is_file() and 0 <= now - stamp.stat().st_mtime < _DAY:  # a time in the future says nothing
        return False
    stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp.touch()
    os.utime(stamp, (now, now))
    _trim(home, gigabytes << 30, now)
    for left in (*(home / "artifacts").glob("tmp-*"), *(home / "cache" / "results").glob("*/*.json.*")):
        if seconds_since_use(left, now) > _DAY:
            left.unlink(missing_ok=True)
    with store.locked():
        for thing in store.objects.glob("??/*"):
            seconds_since_use(thing, now)  # git prunes by the time stamp, too
        store.git().run("prune", "--expire=14.days.ago")
    return True


def _trim(home: Path, most: int, now: float) -> None:
    """Least recently used first, but nothing that a run of today may be using."""
    entries = sorted(((seconds_since_use(path, now), _size(path), path) for path in _entries(home)), reverse=True)
    total = sum(size for _, size, _ in entries)
    for age, size, path in entries:
        if total <= most or age < _DAY:
            return
        if path.is_dir():
            remove(path)
        else:
            path.unlink(missing_ok=True)
        total -= size


def _entries(home: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        folder = home / name
        if folder.is_dir():
            yield from folder.glob("*/*.json") if name == "cache/results" else folder.iterdir()


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(os.lstat(f"{folder}/{name}").st_size for folder, _, names in os.walk(path) for name in names)
