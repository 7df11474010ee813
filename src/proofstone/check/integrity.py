"""Find start-up files and edited test runners that were planted in a virtual environment before the check.

An environment lies outside the tree, so the tree says nothing about it. Installers record the files that they install
(`RECORD`, with hashes). Start-up files, and every file of a test runner or of its dependencies, are compared with that
record. Nothing is imported or run, and only the named files are read.

Only folders with a `pyvenv.cfg` are examined: others install the system's interpreter, and conda's, without such a
record. The following is not detected: a `RECORD` that was forged or rewritten to match, a replaced interpreter, and
edited packages that are not part of a test runner. Planted bytecode of the runner never runs, see `check.cache`. For
node_modules there is nothing to compare with, because its lock file has hashes of archives and not of files. There the
canary detects an edited runner.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from proofstone.common.models import Finding, Severity

# Distributions that run tests, or that pytest depends on (without pygments, which colours its output and has more files
# than all the others). Of any other distribution with a pytest plug-in, only the plug-in's own modules are examined.
RUNNER_DISTRIBUTIONS: Final = frozenset(
    (
        "pytest", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "py", "execnet", "coverage",
        "hypothesis", "nose", "nose2", "tox", "unittest2", "unittest-xml-reporting", "testtools", "stestr", "green",
    )
)  # fmt: skip
_RUNNER_PACKAGES = ("pytest", "_pytest", "pluggy")
"""If no record lists these, it is unknown whether the runner is what was installed."""

_CUSTOMIZE = ("sitecustomize", "usercustomize")
_CODE_PREFIXES = ("import ", "import\t")
"""How a line of a `.pth` file starts that Python executes. Any other line is a path."""
_IMPORT = re.compile(r"""(?:\bimport\s+|__import__\(['"])(\w+)""")

_NAME = r"'(?!_?pytest\b|pluggy\b)[\w.]+'"
_COVERAGE = (
    r"import coverage(?:; ?coverage\.process_startup\(\))?",
    r"coverage\.process_startup\(\)",
    r"import sys; exec\('try:\\n +import coverage\\nexcept:\\n +pass\\nelse:\\n +coverage\.process_startup\(\)\\n'\)",
)
HARMLESS_STARTUP_FILES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    # virtualenv, and uv in its earlier versions
    (r"_virtualenv\.pth", (r"import _virtualenv",)),
    # Written by the user as coverage's manual says, or by coverage for the duration of a run
    (r".*\.pth|sitecustomize\.py", _COVERAGE),
    # setuptools before `pip install -e` was recorded; virtualenvwrapper
    (
        r"easy-install\.pth|_virtualenv_path_extensions\.pth",
        (
            r"import sys; sys\.__plen = len\(sys\.path\)",
            r"import sys; new ?= ?sys\.path\[sys\.__plen:\]; del sys\.path\[sys\.__plen:\]; "
            r"p ?= ?getattr\(sys, ?'__egginsert', ?0\); sys\.path\[p:p\] ?= ?new; "
            r"sys\.__egginsert ?= ?p ?\+ ?len\(new\)",
        ),
    ),
    # setuptools, for a namespace package in development mode
    (
        r".*-nspkg\.pth",
        (
            r"import sys, ?types, ?os;(?:has_mfs = sys\.version_info > \(3, 5\);)?"
            rf"p = os\.path\.join\((?:'[^'\\]+'|sys\._getframe\(1\)\.f_locals\['sitedir'\]), \*\((?:{_NAME},? ?)+\)\);"
            r"(?:importlib = has_mfs and __import__\('importlib\.util'\);"
            r"has_mfs and __import__\('importlib\.machinery'\);"
            rf"m = has_mfs and sys\.modules\.setdefault\({_NAME}, importlib\.util\.module_from_spec\("
            rf"importlib\.machinery\.PathFinder\.find_spec\({_NAME}, \[os\.path\.dirname\(p\)\]\)\)\);)?"
            rf"m = m or sys\.modules\.setdefault\({_NAME}, types\.ModuleType\({_NAME}\)\);"
            r"mp = \(m or \[\]\) and m\.__dict__\.setdefault\('__path__', ?\[\]\);\(p not in mp\) and mp\.append\(p\)"
            rf"(?:;m and setattr\(sys\.modules\[{_NAME}\], {_NAME}, m\))?",
        ),
    ),
)
"""Start-up files that no installer records but well-known tools write: their name, and the lines that may be
executed."""
_SUSPICIOUS_CODE = re.compile(
    r"pytest|pluggy|unittest|coverage|\b(?:exec|eval|compile|chr|bytes|open)\(|__import__|_exit|subprocess"
)
"""Code that `_virtualenv.py`, which only patches distutils, has never contained."""

_HASHED_SUFFIXES = (".py", ".so", ".pth", "/entry_points.txt")
_MAX_STARTUP_BYTES = 1_000_000
"""Bytes of a start-up file that are read. Genuine ones have a few lines."""
_MAX_RECORD_BYTES = 100_000_000


@dataclass(frozen=True)
class _RecordRow:
    """What an installer recorded about one file."""

    path: str
    algorithm: str = ""
    digest: str = ""
    size: str = ""


def _read_record(record: str) -> list[list[str]]:
    try:
        return [cells for cells in csv.reader(record.replace("\0", "").splitlines()) if cells and cells[0]]
    except csv.Error:
        return []  # an unreadable record lists nothing, so its files count as unrecorded


@dataclass(frozen=True)
class _Distribution:
    """An installed distribution and its record."""

    site: str
    folder: str

    @property
    def name(self) -> str:
        stem = self.folder.rpartition(".")[0].partition("-")[0]
        return re.sub(r"[-_.]+", "-", stem).lower()

    @property
    def entry_points(self) -> str:
        return f"{self.site}/{self.folder}/entry_points.txt"

    @cached_property
    def plugins(self) -> tuple[str, ...]:
        """Modules that the distribution makes pytest load."""
        group, modules = "", []
        for line in map(str.strip, _read_text(self.entry_points).splitlines()):
            if line.startswith("["):
                group = line.strip("[]")
            elif group == "pytest11" and "=" in line:
                modules.append(line.partition("=")[2].partition(":")[0].strip())
        return tuple(modules)

    @property
    def runs_tests(self) -> bool:
        return self.name in RUNNER_DISTRIBUTIONS or self.name.startswith("pytest-")

    @cached_property
    def rows_to_compare(self) -> list[_RecordRow]:
        """The recorded files to compare: all of a runner; otherwise the pytest plug-in modules and the packages above
        them."""
        if self.runs_tests:
            return list(self.rows.values())
        paths = [self.entry_points]
        for module in self.plugins:
            parts = module.split(".")
            paths += [f"{self.site}/{'/'.join(parts[:n])}/__init__.py" for n in range(1, len(parts) + 1)]
            paths.append(f"{self.site}/{'/'.join(parts)}.py")
        return [self.rows[path] for path in dict.fromkeys(paths) if path in self.rows]

    @cached_property
    def record(self) -> str:
        name = "RECORD" if self.folder.endswith(".dist-info") else "installed-files.txt"
        return _read_text(f"{self.site}/{self.folder}/{name}", _MAX_RECORD_BYTES)

    @cached_property
    def rows(self) -> dict[str, _RecordRow]:
        """The rows of the record by absolute path."""
        start = self.site if self.folder.endswith(".dist-info") else f"{self.site}/{self.folder}"
        rows: dict[str, _RecordRow] = {}
        for cells in _read_record(self.record):
            # Some installers write absolute paths, which are wrong after the environment has moved.
            inside = cells[0].rpartition("/site-packages/")[2] if cells[0].startswith("/") else cells[0]
            path = os.path.normpath(f"{start}/{inside}")
            algorithm, _, digest = (cells[1] if len(cells) > 1 else "").partition("=")
            rows[path] = _RecordRow(path, algorithm, digest, cells[2] if len(cells) > 2 else "")
        return rows


@dataclass(frozen=True)
class _Site:
    """One site-packages folder of one virtual environment."""

    folder: str
    environment: Path
    root: Path

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(os.listdir(self.folder)))  # noqa: PTH208  strings are several times faster

    @cached_property
    def distributions(self) -> tuple[_Distribution, ...]:
        folders = (name for name in self.names if name.endswith((".dist-info", ".egg-info")))
        return tuple(_Distribution(self.folder, name) for name in folders)

    def owners(self, relative: str) -> list[_Distribution]:
        """Return the distributions whose records list a file of this folder."""
        path = f"{self.folder}/{relative}"
        return [owner for owner in self.distributions if relative in owner.record and path in owner.rows]

    def build_finding(self, rule: str, severity: Severity, path: str, detail: str) -> Finding:
        return Finding(
            layer="L7",
            rule=rule,
            severity=severity,
            path=self.display_path(path),
            detail=detail,
            fix=f"recreate the environment: remove {self.display_path(str(self.environment))} and install it again",
        )

    def display_path(self, path: str) -> str:
        return os.path.relpath(path, self.root) if Path(path).is_relative_to(self.root) else path


def find_environment_tampering(folders: Sequence[Path], root: Path) -> list[Finding]:
    """Return findings for the virtual environments among `folders`; `root` is the repository's work tree."""
    findings: list[Finding] = []
    for folder in folders:
        if not (folder / "pyvenv.cfg").is_file():
            continue
        sites = {path.resolve(): path for path in sorted(folder.glob("lib*/py*/site-packages"), reverse=True)}
        for site in sites.values():
            findings += _examine_site(_Site(str(site), folder, root))
    return findings


def _examine_site(site: _Site) -> list[Finding]:
    try:
        return [*_find_startup_files(site), *_find_tampering(site)]
    except OSError as error:
        path = str(error.filename or site.folder)
        detail = (
            f"{site.display_path(path)} cannot be read ({error.strerror}), so the environment could not be verified"
        )
        return [site.build_finding("environment-tampered", Severity.MAJOR, path, detail)]


def _find_startup_files(site: _Site) -> Iterator[Finding]:
    for name in site.names:
        if name.endswith(".pth"):
            yield from _examine_pth(site, name)
        elif name.partition(".")[0] in _CUSTOMIZE:
            path = f"{site.folder}/{name}"
            lines = [line for line in _read_text(path).splitlines() if line.strip() and not line.startswith("#")]
            inside = f"{name}/__init__.py" if Path(path).is_dir() else name
            if not site.owners(inside) and not (lines and _is_harmless(site, name, lines)):
                yield _startup_finding(
                    site, path, "Python imports it whenever it starts, but no installed package lists it"
                )


def _examine_pth(site: _Site, name: str) -> Iterator[Finding]:
    path = f"{site.folder}/{name}"
    lines = [line.rstrip() for line in _read_text(path).removeprefix("\ufeff").splitlines()]
    executed = [line for line in lines if line.startswith(_CODE_PREFIXES)]
    added = [os.path.normpath(f"{site.folder}/{line}" if line[0] != "/" else line)
             for line in lines if line and line[0] != "#" and line not in executed]  # fmt: skip
    owners = site.owners(name)
    if executed and owners:
        yield from _find_edited_startup(site, path, executed, owners)
    elif executed and not _is_harmless(site, name, executed):
        yield _startup_finding(site, path, "Python executes it whenever it starts, but no installed package lists it")
    for folder in added:
        if Path(folder).is_relative_to(site.environment):
            continue
        if Path(folder).is_relative_to(site.root):
            if not owners and not _is_egg_link(site, folder):
                detail = f"adds {site.display_path(folder)} to Python's import path, but no installed package lists it"
                yield site.build_finding("environment-startup-file", Severity.MINOR, path, f"{name} {detail}")
        elif any(Path(folder, f"{stem}.py").exists() or Path(folder, stem).exists() for stem in _CUSTOMIZE):
            yield _startup_finding(
                site, path, f"it adds {folder}, which holds a module that Python imports whenever it starts"
            )


def _startup_finding(site: _Site, path: str, why: str) -> Finding:
    return site.build_finding("environment-startup-file", Severity.MAJOR, path, f"{os.path.basename(path)}: {why}")  # noqa: PTH119


def _is_egg_link(site: _Site, folder: str) -> bool:
    """Return whether setuptools' old development mode recorded that it added this path."""
    links = (name for name in site.names if name.endswith(".egg-link"))
    return any(_read_text(f"{site.folder}/{name}").partition("\n")[0].strip() == folder for name in links)


def _is_harmless(site: _Site, name: str, lines: Sequence[str]) -> bool:
    for file, allowed in HARMLESS_STARTUP_FILES:
        if re.fullmatch(file, name) and all(
            any(re.fullmatch(line, code_line) for line in allowed) for code_line in lines
        ):
            return _imports_expected_module(site, "\n".join(lines))
    return False


def _imports_expected_module(site: _Site, code: str) -> bool:
    """Return whether the module that a harmless line imports is the genuine one."""
    if "import _virtualenv" in code:
        module = _read_text(f"{site.folder}/_virtualenv.py")
        return "_DISTUTILS_PATCH" in module and not _SUSPICIOUS_CODE.search(module)
    modules = [name for name in site.names if name.partition(".")[0] == "coverage" and not name.endswith(".pth")]
    return "import coverage" not in code or not modules or bool(site.owners("coverage/__init__.py"))


def _find_edited_startup(
    site: _Site, path: str, executed: Sequence[str], owners: Sequence[_Distribution]
) -> Iterator[Finding]:
    """Return a finding for each recorded start-up file, or module that it imports, that differs from its record."""
    modules = dict.fromkeys(name for line in executed for name in _IMPORT.findall(line))
    files = [path, *(f"{site.folder}/{name}{end}" for name in modules for end in (".py", "/__init__.py"))]
    for file in files:
        rows = [owner.rows[file] for owner in owners if file in owner.rows]
        why = min(
            (_compare_with_record(row) for row in rows), default=""
        )  # a match with one installer's record is enough
        if why:
            detail = f"{site.display_path(file)} {why}; Python executes it whenever it starts"
            yield site.build_finding("environment-tampered", Severity.MAJOR, file, detail)


def _find_tampering(site: _Site) -> Iterator[Finding]:
    runners = [distribution for distribution in site.distributions if distribution.runs_tests or distribution.plugins]
    for runner in runners:
        wrong = list(_find_differences(site, runner))
        if wrong:
            path, why = wrong[0]
            more = f", and {len(wrong) - 1} more files of it" if len(wrong) > 1 else ""
            detail = f"{site.display_path(path)} {why}{more}; {runner.name} takes part in running tests"
            yield site.build_finding("environment-tampered", Severity.MAJOR, path, detail)
    for name in _RUNNER_PACKAGES:
        if name in site.names and not any(f"{site.folder}/{name}/__init__.py" in runner.rows for runner in runners):
            detail = f"no installed package lists {name}, so it could not be compared with what was installed"
            yield site.build_finding("environment-tampered", Severity.MINOR, f"{site.folder}/{name}", detail)


def _find_differences(site: _Site, runner: _Distribution) -> Iterator[tuple[str, str]]:
    """Return each file that differs from what the installer recorded, and why."""
    folders: dict[str, set[str]] = {}
    programs = f"{site.environment}/bin/"
    for row in runner.rows_to_compare:
        is_module_file = row.path.startswith(f"{site.folder}/") and row.path.endswith(_HASHED_SUFFIXES)
        if is_module_file or row.path.startswith(programs):
            why = _compare_with_record(row)
            if why and not (row.path.startswith(programs) and _is_launcher(row.path, runner, programs)):
                yield row.path, why
        if is_module_file and row.path.endswith(".py"):
            folder, _, name = row.path.rpartition("/")
            folders.setdefault(folder, set()).add(name)
    if runner.plugins and runner.entry_points not in runner.rows:
        yield runner.entry_points, "makes pytest load a plug-in, but no installer recorded it"
    for folder, modules in folders.items():
        yield from _find_replacements(site, folder, modules, runner)


def _compare_with_record(row: _RecordRow) -> str:
    """Return how the file differs from the record; empty if it does not, or if the file is gone and so cannot run."""
    try:
        info = os.stat(row.path)  # noqa: PTH116  strings are several times faster
        if not stat.S_ISREG(info.st_mode):
            return "is not a regular file"
        if row.size.isdigit() and int(row.size) != info.st_size:
            return "differs in size from what was recorded at installation"
        if row.algorithm not in ("sha256", "sha384", "sha512"):
            return ""
        content = _read_bytes(row.path, info.st_size)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    digest = hashlib.new(row.algorithm, content)
    encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    # `flit install` writes hexadecimal digests, against the specification.
    same = row.digest.rstrip("=") in (encoded, digest.hexdigest())
    return "" if same else "differs from what was recorded at installation"


_LAUNCHER = re.compile(
    r"#!(?P<python>\S+)\n(?:# -\*- coding: utf-8 -\*-\n)?(?:import re\n)?import sys\n\n?"
    r"from (?P<module>\w+)[\w.]* import (?P<call>\w+)\n\n?if __name__ == ['\"]__main__['\"]:\n"
    r"(?: +(?:sys\.argv\[0\] = re\.sub\(r['\"]\(-script\\\.pyw\|\\\.exe\)\?\$['\"], ['\"]{2}, sys\.argv\[0\]\)"
    r"|(?:el)?if sys\.argv\[0\]\.endswith\(['\"][\w.-]+['\"]\):|sys\.argv\[0\] = sys\.argv\[0\]\[:-\d+\])\n)*"
    r" +sys\.exit\((?P=call)\(\)\)\n?"
)


def _is_launcher(path: str, runner: _Distribution, programs: str) -> bool:
    """Return whether a program is the launcher that installers write, in an environment that was moved: only its first
    line differs."""
    match = _LAUNCHER.fullmatch(_read_text(path))
    if match is None or not match["python"].startswith(programs):
        return False
    return any(f"{runner.site}/{match['module']}{end}" in runner.rows for end in (".py", "/__init__.py"))


def _find_replacements(site: _Site, folder: str, modules: set[str], runner: _Distribution) -> Iterator[tuple[str, str]]:
    """Return what Python would load instead of a recorded module of this folder."""
    present = site.names if folder == site.folder else _list_folder(folder)
    for name in present:
        path, stem = f"{folder}/{name}", name.partition(".")[0]
        if name == "__pycache__":
            yield from _find_unchecked_bytecode(path, modules)
        elif f"{stem}.py" not in modules or path in runner.rows:
            continue
        elif name.endswith(".so") or (name == f"{stem}.pyc" and f"{stem}.py" not in present):
            yield path, f"is loaded instead of {stem}.py, and was not installed with it"
        elif name == stem and (package := [file for file in _list_folder(path) if file.startswith("__init__.")]):
            relative = os.path.relpath(f"{path}/{package[0]}", site.folder)
            if not site.owners(relative):
                yield path, f"is loaded instead of {stem}.py, and was not installed with it"


def _find_unchecked_bytecode(folder: str, modules: set[str]) -> Iterator[tuple[str, str]]:
    """Return bytecode that Python loads without checking the source: its flags say hashed (1) and not checked (2)."""
    for name in _list_folder(folder):
        if name.endswith(".pyc") and f"{name.partition('.')[0]}.py" in modules:
            try:
                flags = _read_bytes(f"{folder}/{name}", 8)[4:]
            except (PermissionError, IsADirectoryError):
                continue  # Python cannot read it either and uses the source
            if int.from_bytes(flags, "little") & 0b11 == 0b01:
                yield f"{folder}/{name}", "is bytecode that Python never compares with its source"


def _list_folder(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  strings are several times faster
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_text(path: str, most: int = _MAX_STARTUP_BYTES) -> str:
    """Return the text of a regular file; empty if there is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  strings are several times faster
            return ""
        return _read_bytes(path, most).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _read_bytes(path: str, most: int) -> bytes:
    """Read a file without buffers and path objects, because this is called for some hundred small files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)
