"""`environment.setup`: commands such as `npm ci` that make the dependencies, run once and kept.

They run from the base's files. When the change touches a manifest they run from its own files instead, with
install scripts off unless `environment.setup_scripts` says otherwise, into an environment that belongs to that tree
alone. What they write is a layer below the tree: it never hides a file of the tree. A layer is kept only when it is
whole; one that belongs to a change is kept only when the change has passed.

Held-out checks (L9): commands that whoever made the change was never shown, run with files of their own.

What they are and what they print goes into the ledger and nowhere else: findings and reports may be read by the author.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename

from proofstone.check.context import TreeUnderCheck
from proofstone.check.execution import Runner
from proofstone.check.models import CheckKind, CheckSpec
from proofstone.common.models import Verdict
from proofstone.errors import InputError, MachineError
from proofstone.machine.files import ensure_folder, ensure_place_for_file, remove

MANIFESTS = frozenset(
    (
        "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", ".npmrc",
        "pnpm-workspace.yaml", ".yarnrc.yml", "bun.lock", "pyproject.toml", "setup.py", "setup.cfg", "uv.lock",
        "poetry.lock", "Pipfile", "Pipfile.lock", "pdm.lock", "environment.yml", "go.mod", "go.sum", "Cargo.toml",
        "Cargo.lock", "Gemfile", "Gemfile.lock", "pom.xml", "build.gradle", "build.gradle.kts", "gradle.lockfile",
        "composer.json", "composer.lock", "packages.lock.json", "Directory.Packages.props", "proofstone.toml",
    )
)  # fmt: skip

_NO_SCRIPTS = {"npm_config_ignore_scripts": "true", "YARN_ENABLE_SCRIPTS": "false", "PIP_ONLY_BINARY": ":all:"}


def is_manifest(path: str) -> bool:
    name = basename(path)
    listed = name.startswith(("requirements", "constraints")) or "/requirements/" in f"/{path}"
    return name in MANIFESTS or (listed and name.endswith((".txt", ".in")))


@dataclass(frozen=True)
class Prepared:
    """The layer that the set-up wrote, and whether it still has to earn its place."""

    layer: Path
    provisional: bool

    def promote(self) -> None:
        """The change that it was made for has passed."""
        if self.provisional:
            (self.layer.parent / "provisional").unlink(missing_ok=True)


def prepare(
    runner: Runner, tree: TreeUnderCheck, files: Mapping[str, str], *, own: bool, folder: Path
) -> Prepared | None:
    """The environment for this tree, found or made now. `own`: the change touches manifests and gets its own."""
    settings = runner.environment.settings
    if not settings.setup:
        return None
    key = _key(settings.setup, files, tree.tree if own else "", scripts=settings.setup_scripts)
    place = folder / key
    ensure_folder(place, tree.store.repairs)
    ensure_place_for_file(place / "lock", tree.store.repairs)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second finds it made
        return _found_or_made(runner, tree, place, own=own)


def _found_or_made(runner: Runner, tree: TreeUnderCheck, place: Path, *, own: bool) -> Prepared:
    settings = runner.environment.settings
    layer = place / "layer"
    if layer.is_dir() and not (own and (place / "provisional").exists()):
        os.utime(place)  # used today: housekeeping leaves it alone
        return Prepared(layer, provisional=False)
    if own:
        (place / "provisional").touch()
    made = _run(runner, tree, settings.setup, scripts=settings.setup_scripts or not own)
    aside = place / f"layer.{os.getpid()}"
    shutil.move(made, aside)
    if layer.exists():
        remove(layer)
    aside.rename(layer)
    return Prepared(layer, provisional=own)


def _key(commands: Iterable[str], files: Mapping[str, str], tree: str, *, scripts: bool) -> str:
    """Every input that decides what is installed: commands, manifests and files that the commands name, with their
    content, or the tree itself."""
    said = " ".join(commands)
    state = hashlib.sha256(repr((tuple(commands), tree, scripts)).encode("utf-8", "surrogateescape"))
    for path in sorted(files):
        if is_manifest(path) or path in said:
            state.update(f"{path}={files[path]}\0".encode("utf-8", "surrogateescape"))
    return state.hexdigest()[:32]


def _run(runner: Runner, tree: TreeUnderCheck, commands: Iterable[str], *, scripts: bool) -> Path:
    """All commands in one sandbox with the network on; what they wrote into the repository."""
    spec = CheckSpec(
        name="setup",
        kind=CheckKind.BUILD,
        tier=2,
        tool="sh",
        shell=" && ".join(f"{{ {command}\n}}" for command in commands),
        env={} if scripts else _NO_SCRIPTS,
    )
    result = runner.run(spec, tree, keep=True, network=True)
    if result.verdict is not Verdict.PASS:
        raise MachineError(
            f"environment.setup failed ({result.reason}):\n{result.output[-1500:].strip()}",
            hint="make it work in a fresh clone; set environment.setup_scripts if it needs install scripts",
        )
    return tree.built.pop("setup")


_MOST_BYTES = 64 << 20


def held_out_specs(commands: Sequence[str]) -> tuple[CheckSpec, ...]:
    return tuple(
        CheckSpec(
            name="held-out" if len(commands) == 1 else f"held-out-{number}",
            kind=CheckKind.HELD_OUT,
            tier=2,
            tool="sh",
            shell=command,
        )
        for number, command in enumerate(commands, start=1)
    )


def held_out_files(folder: Path | None) -> dict[str, bytes]:
    """The files of the folder, by where they go in the tree."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise InputError(f"--heldout-files {folder}: not a directory", hint="name a folder with the files they need")
    found: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        size += len(content)
        if size > _MOST_BYTES:
            raise InputError(f"--heldout-files {folder}: more than {_MOST_BYTES >> 20} MiB")
        found[os.fspath(path.relative_to(folder))] = content
    return found


def write_layer(files: Mapping[str, bytes], folder: Path) -> Path:
    """The files in a folder of the run's own."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
