"""The caches of Proofstone's own home: check results, and bytecode for virtual environments.

Results are cached by everything that decides them: tree, command, environment, sandbox level. The result of a run that
died is never cached, and a damaged entry is removed. An entry is used only if the ledger confirms it: it names its row,
and the row must exist, be authentic, and have the digest of exactly this result. An edited entry is not used, and a
note reports that. Results of the change are cached only if they passed. Results of a base are cached as they are, and
its failures are reproduced before they excuse anything (see `check.derived_runs`).

Bytecode is compiled once and shown to checks as a layer, because some installers (uv) write none, and a check's own
writes are discarded, so every run would compile every imported package again. The test runner is always compiled:
anybody who can write into the environment could leave bytecode there that has the time stamp of its source and does
something else. The compiler runs with the environment's interpreter, isolated and without site, so nothing of the
project or its dependencies is executed.

Once a day, `clean_caches` removes what can be made again and was not used lately. It never removes evidence. Cached
results, environments and bytecode are trimmed to `limits.cache_gb`, least recently used first. Objects of the private
git directory that no run has needed for two weeks are pruned, and half-written files of killed runs are removed.
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

from proofstone.check.environment import digest_tree
from proofstone.check.models import CheckResult
from proofstone.common.models import FrozenModel
from proofstone.faults import fault_point
from proofstone.git.store import Store
from proofstone.ledger import Ledger
from proofstone.ledger.models import CheckRow
from proofstone.machine.files import ensure_file_path, ensure_folder, remove_folder, remove_path, seconds_since_use

_FORMAT = 5
"""Raise this when the meaning of a result changes, so that old entries are not found."""


class CacheEntry(FrozenModel):
    """A cached result with the ledger row that confirms it."""

    seq: int = Field(ge=1)
    row_hash: str
    result: CheckResult


def digest_result(result: CheckResult) -> str:
    """Return the digest that binds a cached result to its row. It ignores whether the result was reused."""
    text = json.dumps(result.model_dump(exclude={"reused_from"}), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class ResultCache:
    """Cached check results, confirmed by the ledger."""

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger
        self.repairs: list[str] = []
        """What was found damaged and is computed again, in words."""

    @staticmethod
    def build_key(**parts: object) -> str:
        text = json.dumps({"format": _FORMAT, **parts}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def lookup(self, key: str) -> CheckResult | None:
        """Return the cached result, marked as reused; None if there is none that the ledger confirms."""
        try:
            entry = CacheEntry.model_validate_json(self._path(key).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError):
            self._discard_damaged(key)
            return None
        if objection := self._find_objection(entry):
            self._note_repair(
                f"a cached result of {entry.result.name} was not used, and the check was run again: {objection}"
            )
            return None
        os.utime(self._path(key))  # mark as used, so that housekeeping keeps it
        return entry.result.model_copy(update={"reused_from": entry.seq})

    def _note_repair(self, repair: str) -> None:
        """Add a message unless it is there already."""
        if repair not in self.repairs:
            self.repairs.append(repair)

    def _find_objection(self, entry: CacheEntry) -> str:
        """Return why the ledger does not confirm the entry; empty if it does."""
        rows = self._ledger.read(CheckRow, after=entry.seq - 1, limit=1)
        if not rows or rows[0].seq != entry.seq or rows[0].link.hash != entry.row_hash:
            return f"the ledger has no such row {entry.seq}"
        if rows[0].values["result_digest"] != digest_result(entry.result):
            return f"it is not the result that row {entry.seq} of the ledger is about"
        if not self._ledger.is_authentic(rows[0]):
            return f"row {entry.seq} of the ledger is not authentic"
        return ""

    def store(self, key: str, result: CheckResult, seq: int) -> None:
        """Cache a result whose row is `seq`."""
        stored = self._ledger.read(CheckRow, after=seq - 1, limit=1)[0]
        entry = CacheEntry(seq=seq, row_hash=stored.link.hash, result=result)
        path = self._path(key)
        ensure_folder(path.parent, self.repairs)
        ensure_file_path(path, self.repairs)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        temporary.write_text(entry.model_dump_json(), "utf-8")
        fault_point("cache.before-publish")
        temporary.replace(path)

    def _discard_damaged(self, key: str) -> None:
        """Remove an entry that cannot be read, and whatever is in place of its folder."""
        ensure_folder(self._path(key).parent, self.repairs)
        remove_path(self._path(key))
        self.repairs.append(f"{self._folder}: cached results were damaged; they are computed again")

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key[2:]}.json"


RUNNER_PACKAGES = ("_pytest", "pytest", "pluggy", "iniconfig", "xdist", "execnet", "nose2", "pytest_asyncio")
_MIN_MODULES = 40
"""Compiling fewer modules than this is too cheap to cache."""


def ensure_bytecode_layer(environment: Path, cache: Path, repairs: list[str]) -> Path | None:
    """Return a directory to lay over the environment; None if it has no test runner, and either few modules or bytecode
    already. A layer that changed since it was made is made again, because half a module would fail tests."""
    sites = [path for path in environment.glob("lib/python3*/site-packages") if path.is_dir()]
    python = environment / "bin" / "python"
    packages = sites if any(_lacks_bytecode(path) for path in sites) else _find_runners(sites)
    if not python.exists() or not packages:
        return None
    state = hashlib.sha256()
    for path in packages:
        digest_tree(path, state.update)
    layer = cache / state.hexdigest()[:32]
    ensure_folder(cache, repairs)
    with (cache.parent / "bytecode.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # layer and mark must match
        _ensure_layer(layer, repairs, lambda: _compile_layer(python, environment, packages, layer))
    for used in (layer, layer.with_name(f"{layer.name}.mark")):
        os.utime(used)  # mark as used, so that housekeeping keeps it
    return layer


def _ensure_layer(layer: Path, repairs: list[str], make: Callable[[], None]) -> None:
    """Make the layer unless it exists as it was made."""
    mark = layer.with_name(f"{layer.name}.mark")
    if layer.is_dir() and mark.is_file() and mark.read_bytes() == _digest_layer(layer):
        return
    if os.path.lexists(layer):
        remove_path(layer)
        repairs.append(f"{layer} was damaged; it was made again")
    make()
    ensure_file_path(mark, repairs)
    mark.write_bytes(_digest_layer(layer))


def _digest_layer(layer: Path) -> bytes:
    """Return a digest of every file below, by size and time."""
    state = hashlib.sha256()
    for path in sorted(layer.rglob("*")):
        info = path.lstat()
        facts = (info.st_size, info.st_mtime_ns) if path.is_file() else ()
        state.update(f"{path.relative_to(layer)}\0{facts}\n".encode("utf-8", "surrogateescape"))
    return state.hexdigest().encode("ascii")


def _find_runners(sites: list[Path]) -> list[Path]:
    """Return the packages that decide the results of tests. Links are skipped: they lead to what is installed
    elsewhere."""
    candidates = [site / name for site in sites for name in RUNNER_PACKAGES]
    return [path for path in candidates if path.is_dir() and not path.is_symlink()]


def _lacks_bytecode(packages: Path) -> bool:
    modules = 0
    for folder, names, files in os.walk(packages):
        if "__pycache__" in names and any(Path(folder, "__pycache__").glob("*.pyc")):
            return False
        modules += sum(name.endswith(".py") for name in files)
        if modules > _MIN_MODULES:
            return True
    return False


def _compile_layer(python: Path, environment: Path, packages: list[Path], layer: Path) -> None:
    """Compile into a temporary folder, under the names that the interpreter looks for, and move that into place."""
    layer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = layer.with_name(f"{layer.name}.{secrets.token_hex(4)}")
    prefix = temporary / "prefix"
    command = [str(python), "-I", "-S", "-X", f"pycache_prefix={prefix}", "-m", "compileall", "-q", "-j", "0"]
    # Exit code 1 means that some file does not compile, such as templates inside packages. The others are compiled.
    subprocess.run([*command, *map(str, packages)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    ready = temporary / "layer"
    ready.mkdir(parents=True)
    mirrored = prefix / environment.relative_to("/")
    for compiled in mirrored.rglob("*.pyc"):
        target = ready / compiled.parent.relative_to(mirrored) / "__pycache__" / compiled.name
        target.parent.mkdir(parents=True, exist_ok=True)
        compiled.rename(target)
    if layer.is_dir():
        shutil.rmtree(temporary)  # another run made it first
        return
    try:
        ready.rename(layer)
    except OSError:
        if not layer.is_dir():
            raise
    shutil.rmtree(temporary)


_DAY = 24 * 3600.0
_FOLDERS = ("cache/results", "cache/bytecode", "environments")


def clean_caches(home: Path, store: Store, gigabytes: int, *, now: float | None = None) -> bool:
    """Clean up unless that was done within a day; return whether it was done now."""
    now = time.time() if now is None else now
    stamp = home / "cache" / "tidied"
    if stamp.is_file() and 0 <= now - stamp.stat().st_mtime < _DAY:  # ignore a time in the future
        return False
    stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp.touch()
    os.utime(stamp, (now, now))
    _trim(home, gigabytes << 30, now)
    for leftover in (*(home / "artifacts").glob("tmp-*"), *(home / "cache" / "results").glob("*/*.json.*")):
        if seconds_since_use(leftover, now) > _DAY:
            leftover.unlink(missing_ok=True)
    with store.lock():
        for object_path in store.objects.glob("??/*"):
            seconds_since_use(object_path, now)  # resets a time in the future, because git prunes by the time stamp
        store.git().run("prune", "--expire=14.days.ago")
    return True


def _trim(home: Path, max_bytes: int, now: float) -> None:
    """Remove the least recently used entries first, but nothing that a run of today may be using."""
    entries = sorted(
        ((seconds_since_use(path, now), _size_of(path), path) for path in _list_entries(home)), reverse=True
    )
    total = sum(size for _, size, _ in entries)
    for age, size, path in entries:
        if total <= max_bytes or age < _DAY:
            return
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink(missing_ok=True)
        total -= size


def _list_entries(home: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        folder = home / name
        if folder.is_dir():
            yield from folder.glob("*/*.json") if name == "cache/results" else folder.iterdir()


def _size_of(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(os.lstat(f"{folder}/{name}").st_size for folder, _, names in os.walk(path) for name in names)
