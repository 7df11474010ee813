"""Bytecode for virtual environments, compiled once and shown to checks as a layer.

Some installers (uv) write no bytecode. A check's own writes are thrown away, so every run would compile every imported
package again. Where there is bytecode, that of the test runner is compiled all the same: whoever may write into the
environment can leave bytecode there that bears the time of its source and says something else. The compiler runs with
the environment's interpreter, isolated and without site: nothing of the project's or of its dependencies' is executed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from proofstone.adapters.environment import stat_tree
from proofstone.adapters.rebuilding import discard, ensure_folder, ensure_place_for_file

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
