"""Facts about this machine: programs and their versions, the distribution, kernel settings.

Programs are data. `look_for_program` runs a program's version command in `/`, with a deadline and only from absolute
entries of PATH, so that the repository in the current directory cannot have its own code run.

Proofstone looks for the programs that it starts itself, git and bubblewrap, outside the work tree only: what is inside
is part of the change.
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


class MachineProgram(NamedTuple):
    """A program that Proofstone or a check may need."""

    name: str
    group: str
    why: str
    version: tuple[str, ...] = ("--version",)
    """The arguments that print the version; empty if they may cause a download."""
    minimum: tuple[int, ...] = ()
    packages: Mapping[str, str] = {}
    """The name of the package in each family of distributions; families without a package are missing."""
    install: str = ""
    """How to install it anywhere, where a package of the distribution is not the usual way."""
    essential: bool = False


def _same_package_name(name: str) -> dict[str, str]:
    return dict.fromkeys(FAMILIES, name)


PROGRAMS: Final[tuple[MachineProgram, ...]] = (
    MachineProgram(
        "git",
        "Proofstone itself",
        "freezes the tree under test",
        minimum=(2, 31),
        packages=_same_package_name("git"),
        essential=True,
    ),
    MachineProgram(
        "bwrap",
        "Proofstone itself",
        "runs checks in a sandbox of their own",
        minimum=(0, 4),
        packages={"apt": "bubblewrap", "dnf": "bubblewrap", "pacman": "bubblewrap"},
        install="bubblewrap exists on Linux only",
    ),
    MachineProgram(
        "python3",
        "Python",
        "runs Python projects that have no environment of their own",
        minimum=(3, 8),
        packages={"apt": "python3", "dnf": "python3", "pacman": "python", "brew": "python"},
    ),
    MachineProgram(
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
    MachineProgram("ruff", "Python", "lint; the project's own environment comes first", install="pip install ruff"),
    MachineProgram("mypy", "Python", "types; the project's own environment comes first", install="pip install mypy"),
    MachineProgram("uv", "Python", "sets up environments that a uv.lock describes", install="pip install uv"),
    MachineProgram(
        "node",
        "Node",
        "runs JavaScript and TypeScript projects",
        minimum=(18,),
        packages={"apt": "nodejs", "dnf": "nodejs", "pacman": "nodejs", "brew": "node"},
    ),
    MachineProgram(
        "npm",
        "Node",
        "runs the scripts of package.json",
        packages={"apt": "npm", "dnf": "npm", "pacman": "npm", "brew": "node"},
    ),
    # The shims of these programs download a release when they are asked for their version.
    MachineProgram("pnpm", "Node", "runs projects with a pnpm-lock.yaml", version=(), install="npm install -g pnpm"),
    MachineProgram("yarn", "Node", "runs projects with a yarn.lock", version=(), install="npm install -g yarn"),
    MachineProgram(
        "go",
        "Go",
        "builds, vets and tests Go modules",
        version=("version",),
        packages={"apt": "golang-go", "dnf": "golang", "pacman": "go", "brew": "go"},
    ),
    MachineProgram(
        "cargo",
        "Rust",
        "builds and tests Rust crates",
        packages={"apt": "cargo", "dnf": "cargo", "pacman": "rust", "brew": "rust"},
    ),
    MachineProgram("mvn", "Java", "builds and tests Maven projects", packages=_same_package_name("maven")),
    MachineProgram(
        "gradle",
        "Java",
        "builds and tests Gradle projects that have no wrapper",
        packages={"apt": "gradle", "pacman": "gradle", "brew": "gradle"},
        install="install Gradle, or add its wrapper to the project",
    ),
    MachineProgram(
        "dotnet",
        ".NET",
        "builds and tests .NET projects",
        packages={"dnf": "dotnet-sdk-8.0", "pacman": "dotnet-sdk", "brew": "dotnet"},
        install="install the .NET SDK from Microsoft's packages",
    ),
    MachineProgram("ruby", "Ruby", "runs Ruby projects", packages=_same_package_name("ruby")),
    MachineProgram(
        "bundle",
        "Ruby",
        "runs the tools that a Gemfile names",
        packages={"apt": "bundler", "dnf": "rubygem-bundler", "pacman": "ruby-bundler"},
        install="gem install bundler",
    ),
    MachineProgram(
        "cmake", "C and C++", "configures, builds and tests CMake projects", packages=_same_package_name("cmake")
    ),
    MachineProgram("make", "C and C++", "runs the targets of a Makefile", packages=_same_package_name("make")),
    MachineProgram(
        "strace",
        "Proofstone's own tests",
        "injects failures of the disk; checks do not need it",
        packages={"apt": "strace", "dnf": "strace", "pacman": "strace"},
        install="strace exists on Linux only",
    ),
)


class ProgramState(StrEnum):
    """Whether a program can be used."""

    OK = "ok"
    MISSING = "missing"
    OLD = "too old"
    BROKEN = "does not run"


class ProgramSearchResult(NamedTuple):
    """The result of looking for one program."""

    program: MachineProgram
    state: ProgramState
    path: str | None = None
    version: str | None = None
    detail: str = ""
    install: str = ""


def look_for_programs(programs: Sequence[MachineProgram], search: str | None = None) -> list[ProgramSearchResult]:
    """Look for all programs in parallel, because some take a second to print their version."""
    family = detect_distribution()
    places = drop_relative_entries(os.environ.get("PATH", os.defpath) if search is None else search)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda program: look_for_program(program, places, family), programs))


def look_for_program(program: MachineProgram, places: str, family: str | None) -> ProgramSearchResult:
    """Look for one program and run its version command."""
    install = describe_install(program, family)
    path = shutil.which(program.name, path=places) if places else None
    if path is None:
        return ProgramSearchResult(program, ProgramState.MISSING, install=install)
    if not program.version:
        return ProgramSearchResult(program, ProgramState.OK, path)
    try:
        result = _run_version_command(path, program.version, places)
    except (OSError, subprocess.TimeoutExpired) as error:
        return ProgramSearchResult(program, ProgramState.BROKEN, path, detail=str(error), install=install)
    version = find_version(result.stdout) or find_version(result.stderr)
    if result.returncode != 0 or version is None:
        detail = (result.stderr or result.stdout).strip().partition("\n")[0] or f"exit code {result.returncode}"
        return ProgramSearchResult(program, ProgramState.BROKEN, path, detail=detail, install=install)
    if _parse_version(version) < program.minimum:
        needed = ".".join(str(part) for part in program.minimum)
        return ProgramSearchResult(program, ProgramState.OLD, path, version, f"{needed} or later is needed", install)
    return ProgramSearchResult(program, ProgramState.OK, path, version)


def _run_version_command(path: str, arguments: Sequence[str], places: str) -> subprocess.CompletedProcess[str]:
    """Run the version command in `/` and without downloads: some programs read the current directory or fetch what it
    needs.
    """
    inherited = {name: os.environ[name] for name in ("HOME", "JAVA_HOME", "LANG") if name in os.environ}
    return subprocess.run(
        [path, *arguments],
        cwd="/",
        env=inherited | {"PATH": places, "GOTOOLCHAIN": "local", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=VERSION_SECONDS,
        check=False,
    )


def find_version(text: str) -> str | None:
    """Return the first version in `text`: for `git version 2.39.5` it is `2.39.5`."""
    match = re.search(r"(?<![\w.])v?(?:go)?(\d+(?:\.\d+)+)", text)
    return match[1] if match else None


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def drop_relative_entries(path: str) -> str:
    """Return PATH without relative entries, which would depend on the current directory."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if entry.startswith("/"))


def describe_install(program: MachineProgram, family: str | None) -> str:
    """Return a command or a sentence that says how to install the program."""
    if family is not None and family in program.packages:
        return _INSTALL[family].format(program.packages[family])
    return program.install or f"install {program.name} with your system's package manager"


def detect_distribution(release: Path = Path("/etc/os-release")) -> str | None:
    """Return the package manager that os-release implies, `brew` on macOS, or None if it is unknown."""
    if platform.system() == "Darwin":
        return "brew"
    known = {"debian": "apt", "ubuntu": "apt", "fedora": "dnf", "rhel": "dnf", "centos": "dnf", "arch": "pacman"}
    values = read_os_release(release)
    names = [values.get("ID", ""), *values.get("ID_LIKE", "").split()]
    return next((known[name] for name in names if name in known), None)


def read_os_release(path: Path = Path("/etc/os-release")) -> dict[str, str]:
    """Return the pairs in os-release, or nothing if there is no such file."""
    if not path.is_file():
        return {}
    pairs = (line.partition("=") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs if value}


def read_kernel_setting(name: str, root: Path = Path("/proc/sys")) -> int | None:
    """Return the value of a sysctl such as `user.max_user_namespaces`, or None if this kernel lacks it."""
    file = root / name.replace(".", "/")
    try:
        return int(file.read_text(encoding="ascii").strip())
    except (FileNotFoundError, PermissionError, NotADirectoryError, ValueError):
        return None


def find_cgroup_version(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the version of the mounted cgroup hierarchy, or None."""
    if (root / "cgroup.controllers").exists():
        return 2
    return 1 if (root / "memory").is_dir() or (root / "pids").is_dir() else None


def detect_container() -> str | None:
    """Return the kind of container that this process runs in, or None if there is no sign of one."""
    marks = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}
    return next((kind for mark, kind in marks.items() if Path(mark).exists()), os.environ.get("container"))  # noqa: SIM112  systemd's spelling


def path_outside_work_tree(directory: Path) -> str:
    """Return PATH without the folders of the work tree that contains `directory`."""
    top = _find_work_tree(directory.resolve())
    folders = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part]
    return os.pathsep.join(
        part for part in folders if Path(part).is_absolute() and not (top and Path(part).resolve().is_relative_to(top))
    )


def is_in_work_tree(path: Path, directory: Path) -> bool:
    """Return whether a path leads into the work tree that contains `directory`."""
    top = _find_work_tree(directory.resolve())
    return top is not None and path.resolve().is_relative_to(top)


def _find_work_tree(directory: Path) -> Path | None:
    """Find the work tree without calling git, because git itself must be found first."""
    return next((place for place in (directory, *directory.parents) if os.path.lexists(place / ".git")), None)
