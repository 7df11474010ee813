"""What is on this machine: programs and their versions, the distribution, the kernel's switches.

Programs are data. `look` runs a program's version command in `/`, with a deadline and only from absolute entries
of PATH, so that a repository one happens to stand in cannot have its own code run by asking.

Where Proofstone looks for the programs that it starts itself, git and bubblewrap: never inside the work tree, where
the
change decides what lies.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

VERSION_SECONDS: Final = 20
FAMILIES: Final = ("apt", "dnf", "pacman", "brew")
_INSTALL: Final[Mapping[str, str]] = {
    "apt": "sudo apt install {}",
    "dnf": "sudo dnf install {}",
    "pacman": "sudo pacman -S {}",
    "brew": "brew install {}",
}


class Program(NamedTuple):
    name: str
    group: str
    why: str
    version: tuple[str, ...] = ("--version",)
    """Arguments that make it print its version; empty if that may download something."""
    minimum: tuple[int, ...] = ()
    packages: Mapping[str, str] = {}
    """The package's name in each family of distributions; a family that lacks it is not here."""
    install: str = ""
    """How to get it anywhere, where the distribution's package is not the usual way."""
    essential: bool = False


def _everywhere(name: str) -> dict[str, str]:
    return dict.fromkeys(FAMILIES, name)


PROGRAMS: Final[tuple[Program, ...]] = (
    Program(
        "git",
        "Proofstone itself",
        "freezes the tree under test",
        minimum=(2, 31),
        packages=_everywhere("git"),
        essential=True,
    ),
    Program(
        "bwrap",
        "Proofstone itself",
        "runs checks in a sandbox of their own",
        minimum=(0, 4),
        packages={"apt": "bubblewrap", "dnf": "bubblewrap", "pacman": "bubblewrap"},
        install="bubblewrap exists on Linux only",
    ),
    Program(
        "python3",
        "Python",
        "runs Python projects that have no environment of their own",
        minimum=(3, 8),
        packages={"apt": "python3", "dnf": "python3", "pacman": "python", "brew": "python"},
    ),
    Program(
        "pytest",
        "Python",
        "tests; the project's own environment comes first",
        packages={
            "apt": "python3-pytest",
            "dnf": "python3-pytest",
            "pacman": "python-pytest",
        },
        install="pip install pytest",
    ),
    Program("ruff", "Python", "lint; the project's own environment comes first", install="pip install ruff"),
    Program("mypy", "Python", "types; the project's own environment comes first", install="pip install mypy"),
    Program("uv", "Python", "sets up environments that a uv.lock describes", install="pip install uv"),
    Program(
        "node",
        "Node",
        "runs JavaScript and TypeScript projects",
        minimum=(18,),
        packages={"apt": "nodejs", "dnf": "nodejs", "pacman": "nodejs", "brew": "node"},
    ),
    Program(
        "npm",
        "Node",
        "runs the scripts of package.json",
        packages={"apt": "npm", "dnf": "npm", "pacman": "npm", "brew": "node"},
    ),
    # Their shims download a release when they are asked for a version.
    Program("pnpm", "Node", "runs projects with a pnpm-lock.yaml", version=(), install="npm install -g pnpm"),
    Program("yarn", "Node", "runs projects with a yarn.lock", version=(), install="npm install -g yarn"),
    Program(
        "go",
        "Go",
        "builds, vets and tests Go modules",
        version=("version",),
        packages={"apt": "golang-go", "dnf": "golang", "pacman": "go", "brew": "go"},
    ),
    Program(
        "cargo",
        "Rust",
        "builds and tests Rust crates",
        packages={"apt": "cargo", "dnf": "cargo", "pacman": "rust", "brew": "rust"},
    ),
    Program("mvn", "Java", "builds and tests Maven projects", packages=_everywhere("maven")),
    Program(
        "gradle",
        "Java",
        "builds and tests Gradle projects that have no wrapper",
        packages={"apt": "gradle", "pacman": "gradle", "brew": "gradle"},
        install="install Gradle, or add its wrapper to the project",
    ),
    Program(
        "dotnet",
        ".NET",
        "builds and tests .NET projects",
        packages={"dnf": "dotnet-sdk-8.0", "pacman": "dotnet-sdk", "brew": "dotnet"},
        install="install the .NET SDK from Microsoft's packages",
    ),
    Program("ruby", "Ruby", "runs Ruby projects", packages=_everywhere("ruby")),
    Program(
        "bundle",
        "Ruby",
        "runs the tools that a Gemfile names",
        packages={"apt": "bundler", "dnf": "rubygem-bundler", "pacman": "ruby-bundler"},
        install="gem install bundler",
    ),
    Program("cmake", "C and C++", "configures, builds and tests CMake projects", packages=_everywhere("cmake")),
    Program("make", "C and C++", "runs the targets of a Makefile", packages=_everywhere("make")),
    Program(
        "strace",
        "Proofstone's own tests",
        "injects failures of the disk; checks do not need it",
        packages={"apt": "strace", "dnf": "strace", "pacman": "strace"},
        install="strace exists on Linux only",
    ),
)


class State(StrEnum):
    OK = "ok"
    MISSING = "missing"
    OLD = "too old"
    BROKEN = "does not run"


class Found(NamedTuple):
    """What came of looking for one program."""

    program: Program
    state: State
    path: str | None = None
    version: str | None = None
    detail: str = ""
    install: str = ""


def look_for_all(programs: Sequence[Program], search: str | None = None) -> list[Found]:
    """Look for each, at the same time: some take a second to say their version."""
    family = distribution_family()
    places = absolute_path(os.environ.get("PATH", os.defpath) if search is None else search)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda program: look(program, places, family), programs))


def look(program: Program, places: str, family: str | None) -> Found:
    install = how_to_install(program, family)
    path = shutil.which(program.name, path=places) if places else None
    if path is None:
        return Found(program, State.MISSING, install=install)
    if not program.version:
        return Found(program, State.OK, path)
    try:
        said = _ask(path, program.version, places)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found(program, State.BROKEN, path, detail=str(error), install=install)
    version = version_in(said.stdout) or version_in(said.stderr)
    if said.returncode != 0 or version is None:
        detail = (said.stderr or said.stdout).strip().partition("\n")[0] or f"exit code {said.returncode}"
        return Found(program, State.BROKEN, path, detail=detail, install=install)
    if _numbers(version) < program.minimum:
        needed = ".".join(str(part) for part in program.minimum)
        return Found(program, State.OLD, path, version, f"{needed} or later is needed", install)
    return Found(program, State.OK, path, version)


def _ask(path: str, arguments: Sequence[str], places: str) -> subprocess.CompletedProcess[str]:
    """Some look into the directory they stand in, some fetch what it asks for: `/`, and nothing fetched."""
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [path, *arguments],
        cwd="/",
        env=kept | {"PATH": places, "GOTOOLCHAIN": "local", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=VERSION_SECONDS,
        check=False,
    )


def version_in(text: str) -> str | None:
    """The first thing in `text` that reads like a version: `git version 2.39.5` says `2.39.5`."""
    found = re.search(r"(?<![\w.])v?(?:go)?(\d+(?:\.\d+)+)", text)
    return found[1] if found else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def absolute_path(path: str) -> str:
    """PATH without relative entries, which would mean whatever directory one stands in."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))


def how_to_install(program: Program, family: str | None) -> str:
    if family is not None and family in program.packages:
        return _INSTALL[family].format(program.packages[family])
    return program.install or f"install {program.name} with your system's package manager"


def distribution_family(release: Path = Path("/etc/os-release")) -> str | None:
    """Which package manager's names to use, from os-release; `brew` on macOS; None if it cannot be told."""
    if platform.system() == "Darwin":
        return "brew"
    known = {"debian": "apt", "ubuntu": "apt", "fedora": "dnf", "rhel": "dnf", "centos": "dnf", "arch": "pacman"}
    values = os_release(release)
    names = [values.get("ID", ""), *values.get("ID_LIKE", "").split()]
    return next((known[name] for name in names if name in known), None)


def os_release(path: Path = Path("/etc/os-release")) -> dict[str, str]:
    """The pairs in os-release, empty where there is no such file."""
    if not path.is_file():
        return {}
    pairs = (line.partition("=") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs if value}


def kernel_switch(name: str, root: Path = Path("/proc/sys")) -> int | None:
    """The value of a sysctl such as `user.max_user_namespaces`; None if this kernel lacks it."""
    file = root / name.replace(".", "/")
    try:
        return int(file.read_text(encoding="ascii").strip())
    except (FileNotFoundError, PermissionError, NotADirectoryError, ValueError):
        return None


def cgroup_version(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Which cgroup hierarchy is mounted, if one is."""
    if (root / "cgroup.controllers").exists():
        return 2
    return 1 if (root / "memory").is_dir() or (root / "pids").is_dir() else None


def container() -> str | None:
    """The kind of container we are in, if there are its marks."""
    marks = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}
    return next((kind for mark, kind in marks.items() if Path(mark).exists()), os.environ.get("container"))  # noqa: SIM112  systemd's spelling


def search_outside(directory: Path) -> str:
    """PATH without the folders of the work tree that `directory` is in."""
    top = _work_tree(directory.resolve())
    folders = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part]
    return os.pathsep.join(
        part for part in folders if Path(part).is_absolute() and not (top and Path(part).resolve().is_relative_to(top))
    )


def is_inside(path: Path, directory: Path) -> bool:
    """Whether a path leads into the work tree that `directory` is in."""
    top = _work_tree(directory.resolve())
    return top is not None and path.resolve().is_relative_to(top)


def _work_tree(directory: Path) -> Path | None:
    """Found without asking git, for which git must be found first."""
    return next((place for place in (directory, *directory.parents) if os.path.lexists(place / ".git")), None)
