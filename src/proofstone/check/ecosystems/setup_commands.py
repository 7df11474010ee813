"""Find the commands that install a project's dependencies: what `environment.setup` should hold.

The commands are read off the project's own files, by the tables below; nothing is run. They write into the tree only
(`.venv`, `node_modules`, `vendor`), because that is the layer which checks see. A project without dependencies needs
none. Of several lock files in one folder, the first in the table counts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import dirname
from typing import Final

from proofstone.check.ecosystems.ecosystem import Package, ProjectTree, find_subtable, list_strings, lookup_key
from proofstone.check.models import CheckSpec


@dataclass(frozen=True)
class SetupCommand:
    """A command that installs dependencies, and the file that asks for it."""

    command: str
    evidence: str
    tool: str
    """The program that it needs."""


@dataclass(frozen=True)
class _LockFile:
    name: str
    tool: str
    command: str


_PYTHON_LOCKS: Final = (
    _LockFile("uv.lock", "uv", "uv sync --frozen"),
    _LockFile("poetry.lock", "poetry", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction"),
    _LockFile("pdm.lock", "pdm", "pdm sync"),
    _LockFile("Pipfile.lock", "pipenv", "PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev"),
)
_NODE_LOCKS: Final = (
    _LockFile("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
    _LockFile("yarn.lock", "yarn", "yarn install --frozen-lockfile"),
    _LockFile("bun.lock", "bun", "bun install --frozen-lockfile"),
    _LockFile("package-lock.json", "npm", "npm ci"),
    _LockFile("npm-shrinkwrap.json", "npm", "npm ci"),
)
_YARN_BERRY: Final = "yarn install --immutable"
_REQUIREMENTS: Final = re.compile(
    r"requirements(?:[-_.](?:dev|develop|test|tests|testing|lint))?\.txt"
    r"|(?:dev|develop|test|tests|testing)[-_]requirements\.txt"
    r"|requirements/(?:base|main|dev|develop|test|tests|testing|requirements)\.txt"
)
_DEVELOPMENT: Final = ("dev", "develop", "development", "test", "tests", "testing")
"""Extras and dependency groups that hold what tests need."""
_PYTHON_TOOLS: Final = ("pytest", "mypy", "ruff", "flake8", "pyright")
"""Tools that a project names by their configuration, and that may be in none of its lists of dependencies."""


def find_setup_commands(
    paths: Sequence[str], read: Callable[[str], bytes | None], specs: Sequence[CheckSpec] = ()
) -> tuple[SetupCommand, ...]:
    """Return the commands for a tree. `specs` are its checks, because their tools must be installed too."""
    tree = ProjectTree(sorted(paths), read)
    found: list[SetupCommand] = []
    for directory in _list_directories(tree):
        package = Package(tree, directory, _files_of(tree, directory))
        below = {command.evidence for command in found}
        for find in (_find_python, _find_node, _find_go, _find_cargo):
            command = find(package, specs)
            if command is not None and command.evidence not in below:
                found.append(_run_in(directory, command))
    return tuple(found)


def _list_directories(tree: ProjectTree) -> list[str]:
    """Return the root, and the folders at most two levels below it that have a lock file of their own."""
    locks = {lock.name for lock in (*_PYTHON_LOCKS, *_NODE_LOCKS)}
    folders = {dirname(path) or "." for path in tree.paths if path.rpartition("/")[2] in locks}
    near = {folder for folder in folders if folder.count("/") < 2 and "node_modules" not in folder.split("/")}
    return sorted({".", *near}, key=lambda folder: (folder != ".", folder))


def _files_of(tree: ProjectTree, directory: str) -> tuple[str, ...]:
    if directory == ".":
        return tuple(tree.paths)
    return tuple(path[len(directory) + 1 :] for path in tree.paths if path.startswith(f"{directory}/"))


def _run_in(directory: str, command: SetupCommand) -> SetupCommand:
    if directory == ".":
        return command
    line = f"cd {shlex.quote(directory)} && {command.command}"
    return SetupCommand(f"({line})", command.evidence, command.tool)


def _find_python(package: Package, specs: Sequence[CheckSpec]) -> SetupCommand | None:
    for lock in _PYTHON_LOCKS:
        if package.has(lock.name):
            return SetupCommand(lock.command, package.path(lock.name), lock.tool)
    if package.directory != ".":
        return None
    wanted = list(_list_pip_arguments(package))
    named = " ".join(text for _, text, _ in wanted)
    tools = [tool for tool in _list_python_tools(specs) if not re.search(rf"\b{tool}\b", named)]
    if not wanted and not tools:
        return None
    arguments = " ".join((*(argument for argument, _, _ in wanted), *tools))
    evidence = ", ".join(dict.fromkeys(file for _, _, file in wanted)) or "the tools that the checks start"
    upgrade = ".venv/bin/python -m pip install --quiet --upgrade pip && " if "--group" in arguments else ""
    line = f"python3 -m venv .venv && {upgrade}.venv/bin/python -m pip install --quiet {arguments}"
    return SetupCommand(line, evidence, "python3")


def _list_pip_arguments(package: Package) -> Iterator[tuple[str, str, str]]:
    """Yield the arguments for pip, each with the text that names its packages and the file that says so."""
    for name in sorted(package.files):
        if _REQUIREMENTS.fullmatch(name):
            yield f"-r {name}", package.text(name), package.path(name)
    project = package.table("pyproject.toml")
    if package.has("pyproject.toml") and (find_subtable(project, "project") or find_subtable(project, "build-system")):
        extras = [name for name in _DEVELOPMENT if name in find_subtable(project, "project.optional-dependencies")]
        text = " ".join(
            list_strings(lookup_key(project, "project.dependencies"))
            + [
                item
                for name in extras
                for item in list_strings(lookup_key(project, f"project.optional-dependencies.{name}"))
            ]
        )
        yield (f"-e '.[{','.join(extras)}]'" if extras else "-e ."), text, package.path("pyproject.toml")
    elif package.has("setup.py") or package.has("setup.cfg"):
        extras = [
            name for name in _DEVELOPMENT if name in find_subtable(package.table("setup.cfg"), "options.extras_require")
        ]
        file = "setup.py" if package.has("setup.py") else "setup.cfg"
        yield (f"-e '.[{','.join(extras)}]'" if extras else "-e ."), package.text("setup.cfg"), package.path(file)
    groups = find_subtable(project, "dependency-groups")
    for name in (group for group in _DEVELOPMENT if group in groups):
        yield f"--group {name}", " ".join(list_strings(groups[name])), package.path("pyproject.toml")


def _list_python_tools(specs: Sequence[CheckSpec]) -> list[str]:
    tools = {spec.tool.removeprefix("python:") for spec in specs}
    return [tool for tool in _PYTHON_TOOLS if tool in tools]


def _find_node(package: Package, _specs: Sequence[CheckSpec]) -> SetupCommand | None:
    for lock in _NODE_LOCKS:
        if package.has(lock.name):
            command = _YARN_BERRY if lock.tool == "yarn" and package.has(".yarnrc.yml") else lock.command
            return SetupCommand(command, package.path(lock.name), lock.tool)
    manifest = package.table("package.json")
    has_packages = any(find_subtable(manifest, name) for name in ("dependencies", "devDependencies"))
    return SetupCommand("npm install", package.path("package.json"), "npm") if has_packages else None


def _find_go(package: Package, _specs: Sequence[CheckSpec]) -> SetupCommand | None:
    needs_modules = package.directory == "." and package.has("go.sum") and not package.has("vendor/modules.txt")
    return SetupCommand("go mod vendor", package.path("go.sum"), "go") if needs_modules else None


def _find_cargo(package: Package, _specs: Sequence[CheckSpec]) -> SetupCommand | None:
    lock = package.table("Cargo.lock") if package.directory == "." and package.has("Cargo.lock") else {}
    packages = lock.get("package")
    has_sources = isinstance(packages, list) and any("source" in entry for entry in packages if isinstance(entry, dict))
    if not has_sources or package.has("vendor/.cargo-checksum.json") or package.has(".cargo/config.toml"):
        return None
    line = "mkdir -p .cargo && cargo vendor --locked --quiet >.cargo/config.toml"
    return SetupCommand(line, package.path("Cargo.lock"), "cargo")
