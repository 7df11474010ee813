"""What checks need from outside the tree: interpreter, tools, dependencies and variables, with a digest of them.

Everything is used as the user had it when Proofstone started. Dependencies are directories that the tree does not
contain (a virtual environment, node_modules). Checks see them below a throwaway layer. Nothing of the project is
executed here: the digest uses stat, with the change time that no program can set.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from proofstone.config.settings import EnvironmentSettings
from proofstone.errors import ConfigError
from proofstone.sandbox.job import BindMount

VIRTUAL_ENVIRONMENTS = (".venv", "venv", ".env", "env")
DEPENDENCY_FOLDERS = (*VIRTUAL_ENVIRONMENTS, "node_modules", "vendor", ".bundle", ".yarn", ".pnp.cjs")

DigestUpdate = Callable[[bytes], None]

TEMPORARY_HOME = Path("/tmp")  # noqa: S108  private in every sandbox

# Variables that decide how tools behave and hold no secret. `environment.pass` names further ones.
PASSED_VARIABLES = frozenset(
    (
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES",
        "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "LC_ADDRESS",
        "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE",
        "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH", "PYTHONUTF8",
        "NVM_DIR", "NODE_PATH", "VOLTA_HOME", "FNM_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR",
        "GOPATH", "GOROOT", "GOFLAGS", "GOTOOLCHAIN", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS",
        "JAVA_HOME", "M2_HOME", "MAVEN_OPTS", "GRADLE_HOME", "GRADLE_USER_HOME", "DOTNET_ROOT", "GEM_HOME", "GEM_PATH",
        "RBENV_ROOT", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH",
    )
)  # fmt: skip

# Settings that keep tools from downloading, writing next to their dependencies or asking questions.
PRESET_VARIABLES: Mapping[str, str] = {
    "UV_NO_SYNC": "1",
    "UV_OFFLINE": "1",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_update_notifier": "false",
    "npm_config_fund": "false",
    "npm_config_audit": "false",
    "GOPROXY": "off",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}

# Credentials below HOME, masked in every sandbox.
CREDENTIAL_PATHS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".kube", ".docker",
    ".netrc", ".pypirc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".git-credentials", ".config/git/credentials",
    ".vault-token", ".password-store", ".local/share/keyrings", ".claude", ".claude.json", ".codex", ".gemini", ".qwen",
    ".config/github-copilot", ".copilot", ".local/share/opencode", ".config/goose", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".config/containers/auth.json", ".terraform.d",
    ".config/opencode", ".local/state/opencode", ".local/share/goose", ".config/mini-swe-agent", ".config/gh-copilot",
    ".aider", ".aider.conf.yml",
)  # fmt: skip

_PYENV_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""The name of a version in the folder of pyenv: a single file name."""


@dataclass(frozen=True)
class CheckEnvironment:
    """The environment of all checks of one run in one repository."""

    root: Path
    home: Path | None
    """The user's home; without one, checks get a temporary one."""
    settings: EnvironmentSettings
    packages: tuple[str, ...]
    """Directories of the tree that hold a package. Each may contain dependencies."""
    tracked: frozenset[str]
    """Folders that the tree itself contains. A committed vendor folder is not an outside dependency."""
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    prepared: list[Path] = field(default_factory=list)
    """Layers of `environment.setup`. Checks see their content below the root."""

    @cached_property
    def dependencies(self) -> tuple[Path, ...]:
        """Directories that checks see at their own path, below a throwaway layer."""
        candidates = [*self._find_declared(), *self._find_by_convention()]
        active = self.variables.get("VIRTUAL_ENV") or self.variables.get("CONDA_PREFIX")
        if active and Path(active).is_dir() and os.access(active, os.W_OK):
            candidates.append(Path(active).resolve())
        outermost = sorted(set(candidates), key=lambda path: len(path.parts))
        outer: list[Path] = []
        for path in outermost:
            if not any(path.is_relative_to(above) for above in outer):
                outer.append(path)
        return tuple(outer)

    def _find_declared(self) -> Iterator[Path]:
        for name in self.settings.dependencies:
            path = (self.root / name).absolute()
            if not path.is_dir():
                raise ConfigError(
                    f"environment.dependencies: {name} is not a directory of {self.root}",
                    hint="name a directory that exists, or remove it from the list",
                )
            yield path

    def _find_by_convention(self) -> Iterator[Path]:
        if self.settings.setup:
            return  # use what the set-up installs and not what happens to be in the work tree
        for package in self.packages:
            for name in DEPENDENCY_FOLDERS:
                path = self.root / package / name
                inside = path.relative_to(self.root).as_posix()
                if inside in self.tracked or not path.is_dir():
                    continue
                if name in VIRTUAL_ENVIRONMENTS and not (path / "pyvenv.cfg").is_file():
                    continue
                yield path

    def python(self, package: str) -> Path | None:
        """Return the project's interpreter for one of its packages."""
        active = self.variables.get("VIRTUAL_ENV") or self.variables.get("CONDA_PREFIX")
        prefixes = [Path(active)] if active else []
        for folder in dict.fromkeys((self.root / package, self.root)):
            prefixes += [folder / name for name in VIRTUAL_ENVIRONMENTS]
        for prefix in prefixes:
            if self._is_visible(prefix / "bin" / "python"):
                return prefix / "bin" / "python"
        executable = shutil.which("python3", path=self.path) or shutil.which("python", path=self.path)
        return self._find_behind_shim(Path(executable), package) if executable else None

    def _find_behind_shim(self, program: Path, package: str) -> Path:
        """Return the interpreter that a shim of pyenv starts, or the program itself. The shim starts dozens of programs
        every time, and its own file says nothing about the installed packages. A project that chooses its version
        with `.python-version` keeps the shim, because the base may choose another version than the change."""
        folder = self.root / package
        chooses = any((above / ".python-version").exists() for above in (folder, *folder.parents))
        if program.parent.name != "shims" or chooses:
            return program
        manager = program.parent.parent
        chosen = self.variables.get("PYENV_VERSION") or _read_first_line(manager / "version")
        real = manager / "versions" / chosen / "bin" / program.name
        return real if _PYENV_VERSION.fullmatch(chosen) and os.access(real, os.X_OK) else program

    def _is_visible(self, path: Path) -> bool:
        """Return whether checks will see the path: it is on the machine, or the set-up made it."""
        if self.settings.setup and path.is_relative_to(self.root):
            inside = path.relative_to(self.root)
            return any(os.path.lexists(layer / inside) for layer in self.prepared)
        return path.exists()

    @cached_property
    def path(self) -> str:
        """PATH as the user had it, except that folders of the work tree come last: the change decides what is in
        them."""
        folders = [part for part in self.variables.get("PATH", os.defpath).split(os.pathsep) if part]
        return os.pathsep.join(sorted(folders, key=self._in_work_tree))

    def _in_work_tree(self, folder: str) -> bool:
        inside = Path(folder).resolve().is_relative_to(self.root) or not Path(folder).is_absolute()
        return inside and not any(Path(folder).is_relative_to(dependency) for dependency in self.dependencies)

    def search_path(self, package: str) -> str:
        """Return PATH for a check: the project's own environment first, then the user's PATH."""
        python = self.python(package)
        is_chosen = python is not None and (self._is_virtual(python) or python.parent.parent.parent.name == "versions")
        project_folders = [str(python.parent)] if python and is_chosen else []
        for folder in dict.fromkeys((self.root / package, self.root)):
            project_folders.append(str(folder / "node_modules" / ".bin"))
        user_folders = [part for part in self.path.split(os.pathsep) if part and Path(part).is_absolute()]
        return os.pathsep.join(dict.fromkeys((*project_folders, *user_folders)))

    def _is_virtual(self, python: Path) -> bool:
        return self._is_visible(python.parent.parent / "pyvenv.cfg")

    def find_tool(self, tool: str, package: str) -> str | None:
        """Return the absolute path of the program behind a check's `tool`; None if it is not installed."""
        kind, _, name = tool.rpartition(":")
        if kind == "python":
            python = self.python(package)
            return str(python) if python else None
        path = self.search_path(package)
        candidates = [
            Path(folder) / name for folder in path.split(os.pathsep) if Path(folder).is_relative_to(self.root)
        ]
        by_setup = [str(program) for program in candidates if self.settings.setup and self._is_visible(program)]
        return by_setup[0] if by_setup else shutil.which(name, path=path)

    def check_variables(self, package: str) -> dict[str, str]:
        """Return the environment variables of a check, without those that the check itself adds."""
        inherited = {
            name: value
            for name, value in self.variables.items()
            if name in PASSED_VARIABLES or name in self.settings.pass_through
        }
        overrides = {"PATH": self.search_path(package), "HOME": str(self.home or TEMPORARY_HOME)}
        return inherited | dict(PRESET_VARIABLES) | overrides | dict(self.settings.set)

    def select_variables(self, names: Iterable[str]) -> dict[str, str]:
        """Return further variables of the user, by name."""
        return {name: self.variables[name] for name in names if name in self.variables}

    @cached_property
    def includes(self) -> tuple[BindMount, ...]:
        """Ignored but needed files that `environment.include` names."""
        binds: list[BindMount] = []
        for pattern in self.settings.include:
            paths = sorted(self.root.glob(pattern))
            if not paths:
                raise ConfigError(f"environment.include: {pattern} matches no file in {self.root}")
            binds += [BindMount(path, path) for path in paths if path.is_file()]
        return tuple(binds)

    @cached_property
    def masked_paths(self) -> tuple[Path, ...]:
        """Existing credential files below HOME, which checks must not see."""
        home = self.home
        return tuple(home / name for name in CREDENTIAL_PATHS if (home / name).exists()) if home else ()

    @cached_property
    def visible_folders(self) -> tuple[Path, ...]:
        """Folders outside the repository that PATH and the interpreters lead to."""
        folders: list[Path] = []
        for package in self.packages:
            python = self.python(package)
            if python:
                folders += [self._resolve(python).parent.parent, python.parent.parent]
        for part in self.path.split(os.pathsep):
            if part and Path(part).is_dir():
                folders.append(Path(part))
        return tuple(dict.fromkeys(path for path in folders if not path.is_relative_to(self.root)))

    def _resolve(self, python: Path) -> Path:
        """Return the program behind an interpreter. That of a set-up is a link in a layer, and not in the work tree."""
        if python.is_relative_to(self.root):
            inside = python.relative_to(self.root)
            made = next((layer / inside for layer in self.prepared if os.path.lexists(layer / inside)), python)
            return made.resolve()
        return python.resolve()

    @cached_property
    def digest(self) -> str:
        """A digest that changes when anything outside the tree that a check can use has changed."""
        state = hashlib.sha256()
        for name, value in sorted(self.check_variables(".").items()):
            state.update(f"{name}={value}\0".encode("utf-8", "surrogateescape"))
        for bind in self.includes:
            state.update(os.fsencode(bind.at) + b"\0" + hashlib.sha256(bind.source.read_bytes()).digest())
        for folder in self.dependencies:
            digest_tree(folder, state.update)
        for python in dict.fromkeys(self.python(package) for package in self.packages):
            if python:
                _stat_interpreter(python, self.home, state.update)
        for path_folder in dict.fromkeys(self.path.split(os.pathsep)):
            _stat_programs(path_folder, state.update)
        return state.hexdigest()

    def tool_digest(self, tools: Sequence[str], package: str) -> str:
        """Return a digest of the programs that a check starts."""
        state = hashlib.sha256()
        for tool in tools:
            program = self.find_tool(tool, package)
            state.update(os.fsencode(f"{tool}={program}\0"))
            if program:
                _stat(os.path.realpath(program), state.update)
        return state.hexdigest()


def _stat(path: str, update: DigestUpdate) -> None:
    try:
        info = os.stat(path)  # noqa: PTH116  millions of calls: strings are several times faster
    except OSError as error:
        update(f"{error.errno}\0".encode())
        return
    update(
        os.fsencode(path)
        + f"\0{info.st_mode}:{info.st_size}:{info.st_mtime_ns}:{info.st_ctime_ns}:{info.st_ino}\n".encode()
    )


def digest_tree(folder: Path, update: DigestUpdate) -> None:
    """Digest every file below a folder by stat. Bytecode is left out, because any import may write it."""
    pending = [str(folder)]
    while pending:
        current = pending.pop()
        lines: list[str] = []
        below: list[str] = []
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != "__pycache__":
                            below.append(entry.path)
                        continue
                    info = entry.stat(follow_symlinks=False)
                    lines.append(f"{entry.name}\0{info.st_size}:{info.st_mtime_ns}:{info.st_ctime_ns}:{info.st_ino}")
        except OSError as error:
            lines.append(f"{error.errno}")
        pending += sorted(below)
        lines.sort()
        update("\n".join((current, *lines)).encode("utf-8", "surrogateescape"))


def _read_first_line(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").split("\n", 1)[0].strip()
    except OSError:
        return ""


def _stat_interpreter(python: Path, home: Path | None, update: DigestUpdate) -> None:
    """Digest the interpreter and every folder from which it imports installed modules: its virtual environment's, its
    own, the distribution's and the user's."""
    real = python.resolve()
    _stat(str(real), update)
    sites = [*python.parent.parent.glob("lib/python3*/site-packages")]
    config = python.parent.parent / "pyvenv.cfg"
    if config.is_file() and "include-system-site-packages = true" not in config.read_text("utf-8", "replace"):
        for site in sites:
            digest_tree(site, update)
        return
    user_prefix = (home / ".local",) if home else ()
    for prefix in (real.parent.parent, *user_prefix, Path("/usr"), Path("/usr/local")):
        sites += [*prefix.glob("lib/python3*/site-packages"), *prefix.glob("lib/python3*/dist-packages")]
    for site in dict.fromkeys(path.resolve() for path in sorted(sites)):
        digest_tree(site, update)


def _stat_programs(folder: str, update: DigestUpdate) -> None:
    """Digest the programs in a folder of PATH, because a command may start any of them."""
    try:
        names = sorted(os.listdir(folder)) if folder else []  # noqa: PTH208  strings are several times faster
    except OSError:
        return
    for name in names:
        _stat(f"{folder}/{name}", update)


def list_package_folders(cwds: Iterable[str]) -> tuple[str, ...]:
    """Return the root and every directory in which a check runs."""
    return tuple(dict.fromkeys((".", *cwds)))
