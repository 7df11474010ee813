"""Find the tools that the checks of a repository need, as `proofstone check` would, without running any of its code."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.check.discovery import discover
from proofstone.check.environment import CheckEnvironment, list_package_folders
from proofstone.check.models import CheckSpec
from proofstone.config.loader import load_settings
from proofstone.git.program import decode_path
from proofstone.git.repository import find_repository_root, open_repository

_MAX_READ: Final = 1 << 20
_SECONDS: Final = 20


@dataclass(frozen=True)
class ProjectTool:
    """The tool of one check."""

    check: str
    is_found: bool
    detail: str
    fix: str = ""


def find_project_tools(directory: Path) -> list[ProjectTool]:
    """Return the tool of each check that the files of the repository name; empty outside of a repository."""
    root = find_repository_root(directory)
    if root is None:
        return []
    repository = open_repository(root)
    records = repository.git.run_records("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = [decode_path(record) for record in records]
    specs = discover(paths, build_reader(root)).specs
    folders = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)}
    environment = CheckEnvironment(
        root=root,
        home=None,
        settings=load_settings(root).environment,
        packages=list_package_folders(spec.cwd for spec in specs),
        tracked=frozenset(folders),
    )
    return [_look_for(spec, environment) for spec in specs]


def build_reader(root: Path) -> Callable[[str], bytes | None]:
    """Return a function that reads the beginning of a file of the work tree; None if it cannot be read."""

    def read(path: str) -> bytes | None:
        file = root / path
        try:
            if file.is_symlink() or not file.is_file():
                return None
            with file.open("rb") as stream:
                return stream.read(_MAX_READ)
        except OSError:
            return None  # discovery treats what cannot be read as absent

    return read


def _look_for(spec: CheckSpec, environment: CheckEnvironment) -> ProjectTool:
    kind, _, name = spec.tool.rpartition(":")
    if environment.settings.setup:
        return ProjectTool(spec.name, True, f"{name}: environment.setup installs it before a check")
    path = environment.find_tool(spec.tool, spec.cwd)
    fix = "`proofstone init` writes environment.setup, which installs what checks need"
    if path is None:
        return ProjectTool(spec.name, False, f"{name} is not installed", spec.install or fix)
    if kind == "python" and not _has_module(Path(path), name, environment.root):
        return ProjectTool(spec.name, False, f"{name} is not installed for {path}, the interpreter of checks", fix)
    return ProjectTool(spec.name, True, f"{name}: {path}")


def _has_module(python: Path, module: str, root: Path) -> bool:
    """Return whether an interpreter has a module. One in the repository is not run, because it may be part of the
    change."""
    folders = [*(python.parent.parent / "lib").glob("python3*/site-packages")]
    if any((folder / name).exists() for folder in folders for name in (module, f"{module}.py")):
        return True
    if python.is_relative_to(root):
        return False
    command = [
        str(python),
        "-I",
        "-c",
        "import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))",
    ]
    variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
    if shutil.which(command[0]) is None:
        return False
    try:
        done = subprocess.run(
            [*command, module], cwd="/", env=variables, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
