"""Set up the environment of the checks.

`environment.setup` names commands such as `npm ci` that install the dependencies. They run once, and the result is
kept. They run on the base's files. If the change touches a manifest, they run on the change's files instead, with
install scripts off unless `environment.setup_scripts` is set, and the result belongs to that tree alone. Their output
is a layer below the tree, so it never hides a file of the tree. Only a complete layer is kept, and the layer of a
change is kept only if the change passed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from posixpath import basename

from proofstone.check.context import TreeUnderCheck
from proofstone.check.execution import CheckRunner
from proofstone.check.models import CheckKind, CheckSpec
from proofstone.common.models import Verdict
from proofstone.errors import MachineError
from proofstone.machine.files import ensure_file_path, ensure_folder, remove_folder

MANIFESTS = frozenset(
    (
        "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", ".npmrc",
        "pnpm-workspace.yaml", ".yarnrc.yml", "bun.lock", "pyproject.toml", "setup.py", "setup.cfg", "uv.lock",
        "poetry.lock", "Pipfile", "Pipfile.lock", "pdm.lock", "environment.yml", "go.mod", "go.sum", "Cargo.toml",
        "Cargo.lock", "Gemfile", "Gemfile.lock", "pom.xml", "build.gradle", "build.gradle.kts", "gradle.lockfile",
        "composer.json", "composer.lock", "packages.lock.json", "Directory.Packages.props", "proofstone.toml",
    )
)  # fmt: skip

_ONLINE = {"UV_OFFLINE": "0", "UV_NO_SYNC": "0", "GOPROXY": "https://proxy.golang.org,direct"}
"""Undoes what keeps the tools of checks from downloading. The user's own GOPROXY counts, if there is one."""
_NO_SCRIPTS = {"npm_config_ignore_scripts": "true", "YARN_ENABLE_SCRIPTS": "false", "PIP_ONLY_BINARY": ":all:"}


def is_manifest(path: str) -> bool:
    """Return whether a file declares dependencies or configures their installation."""
    name = basename(path)
    is_requirements = name.startswith(("requirements", "constraints")) or "/requirements/" in f"/{path}"
    return name in MANIFESTS or (is_requirements and name.endswith((".txt", ".in")))


@dataclass(frozen=True)
class PreparedEnvironment:
    """The layer that the set-up wrote, and whether it is kept only if the change passes."""

    layer: Path
    provisional: bool

    def promote(self) -> None:
        """Keep the layer, because the change that it was made for has passed."""
        if self.provisional:
            (self.layer.parent / "provisional").unlink(missing_ok=True)


def prepare_environment(
    runner: CheckRunner, tree: TreeUnderCheck, files: Mapping[str, str], *, own: bool, folder: Path
) -> PreparedEnvironment | None:
    """Return the environment for this tree, and make it if there is none. Pass `own` if the change touches manifests
    and needs an environment of its own."""
    settings = runner.environment.settings
    if not settings.setup:
        return None
    key = _environment_key(settings.setup, files, tree.tree if own else "", scripts=settings.setup_scripts)
    environment = folder / key
    ensure_folder(environment, tree.store.repairs)
    ensure_file_path(environment / "lock", tree.store.repairs)
    with (environment / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a parallel run waits here and then finds the layer
        return _find_or_make(runner, tree, environment, own=own)


def _find_or_make(runner: CheckRunner, tree: TreeUnderCheck, environment: Path, *, own: bool) -> PreparedEnvironment:
    settings = runner.environment.settings
    layer = environment / "layer"
    if layer.is_dir() and not (own and (environment / "provisional").exists()):
        os.utime(environment)  # mark as used, so that housekeeping keeps it
        return PreparedEnvironment(layer, provisional=False)
    if own:
        (environment / "provisional").touch()
    written = _run_commands(runner, tree, settings.setup, scripts=settings.setup_scripts or not own)
    temporary = environment / f"layer.{os.getpid()}"
    shutil.move(written, temporary)
    if layer.exists():
        remove_folder(layer)
    temporary.rename(layer)
    return PreparedEnvironment(layer, provisional=own)


def _environment_key(commands: Iterable[str], files: Mapping[str, str], tree: str, *, scripts: bool) -> str:
    """Return a digest of everything that decides what is installed: the commands, and the content of manifests and of
    files that the commands name, or the tree itself."""
    command_text = " ".join(commands)
    state = hashlib.sha256(repr((tuple(commands), tree, scripts)).encode("utf-8", "surrogateescape"))
    for path in sorted(files):
        if is_manifest(path) or path in command_text:
            state.update(f"{path}={files[path]}\0".encode("utf-8", "surrogateescape"))
    return state.hexdigest()[:32]


def _run_commands(runner: CheckRunner, tree: TreeUnderCheck, commands: Iterable[str], *, scripts: bool) -> Path:
    """Run all commands in one sandbox with the network on; return the folder with what they wrote."""
    spec = CheckSpec(
        name="setup",
        kind=CheckKind.BUILD,
        tier=2,
        tool="sh",
        shell=" && ".join(f"{{ {command}\n}}" for command in commands),
        env=_ONLINE | runner.environment.select_variables(("GOPROXY",)) | ({} if scripts else _NO_SCRIPTS),
    )
    result = runner.run(spec, tree, keep=True, network=True)
    if result.verdict is not Verdict.PASS:
        raise MachineError(
            f"environment.setup failed ({result.reason}):\n{result.output[-1500:].strip()}",
            hint="make it work in a fresh clone; set environment.setup_scripts if it needs install scripts",
        )
    return tree.built.pop("setup")
