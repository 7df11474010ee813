"""What was planted in a virtual environment before the check: start-up files, and an edited test runner.

An environment lies outside the tree, so the tree says nothing about it. Installers write down what they install
(`RECORD`, with hashes); what runs at start-up, and every file of a test runner or of what it stands on, is compared
with that. Nothing is imported or run, and only what is named is read.

Only folders with a `pyvenv.cfg` are looked at: the system's interpreter, and conda's, are installed by others and keep
no such record. What this does not see: a `RECORD` made up or rewritten to match, an exchanged interpreter, and edited
packages that are no part of a test runner; planted bytecode of the runner never runs, see `bytecode`. For node_modules
there is nothing to compare with: its lock file has hashes of archives and none of files. There the canary tells.
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

# Distributions that run tests, or that pytest stands on (without pygments, which colours its output and has more files
# than all the others). Of any other that registers a plug-in of pytest's the plug-in's own modules are looked at.
RUNNERS: Final = frozenset(
    (
        "pytest", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "py", "execnet", "coverage",
        "hypothesis", "nose", "nose2", "tox", "unittest2", "unittest-xml-reporting", "testtools", "stestr", "green",
    )
)  # fmt: skip
_UNOWNED = ("pytest", "_pytest", "pluggy")
"""Without a record of these nobody can say whether the runner is what was installed."""

_CUSTOMIZE = ("sitecustomize", "usercustomize")
_EXECUTED = ("import ", "import\t")
"""How a line of a `.pth` file starts that Python executes; any other is a path."""
_IMPORTED = re.compile(r"""(?:\bimport\s+|__import__\(['"])(\w+)""")

_NAME = r"'(?!_?pytest\b|pluggy\b)[\w.]+'"
_COVERAGE = (
    r"import coverage(?:; ?coverage\.process_startup\(\))?",
    r"coverage\.process_startup\(\)",
    r"import sys; exec\('try:\\n +import coverage\\nexcept:\\n +pass\\nelse:\\n +coverage\.process_startup\(\)\\n'\)",
)
HARMLESS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    # virtualenv, and uv in its earlier versions
    (r"_virtualenv\.pth", (r"import _virtualenv",)),
    # Written by the person as coverage's manual says, or by coverage for the time of a run
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
"""Start-up files that no installer records and honest tools write: name, and the lines that may be executed."""
_FOREIGN = re.compile(
    r"pytest|pluggy|unittest|coverage|\b(?:exec|eval|compile|chr|bytes|open)\(|__import__|_exit|subprocess"
)
"""What `_virtualenv.py`, which only patches distutils, has never held."""

_HASHED = (".py", ".so", ".pth", "/entry_points.txt")
_MOST = 1_000_000
"""Bytes of a start-up file that are read; honest ones have a few lines."""
_LONGEST_RECORD = 100_000_000


@dataclass(frozen=True)
class _Row:
    """What an installer wrote down of one file."""

    path: str
    algorithm: str = ""
    digest: str = ""
    size: str = ""


def _cells(record: str) -> list[list[str]]:
    try:
        return [cells for cells in csv.reader(record.replace("\0", "").splitlines()) if cells and cells[0]]
    except csv.Error:
        return []  # it records nothing, and what it should have recorded is seen to be unrecorded


@dataclass(frozen=True)
class _Distribution:
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
        """Modules that it makes pytest load."""
        group, found = "", []
        for line in map(str.strip, _text(self.entry_points).splitlines()):
            if line.startswith("["):
                group = line.strip("[]")
            elif group == "pytest11" and "=" in line:
                found.append(line.partition("=")[2].partition(":")[0].strip())
        return tuple(found)

    @property
    def runs_tests(self) -> bool:
        return self.name in RUNNERS or self.name.startswith("pytest-")

    @cached_property
    def looked_at(self) -> list[_Row]:
        """Of a runner all, of others what pytest loads as a plug-in: its module, and the packages above it."""
        if self.runs_tests:
            return list(self.rows.values())
        wanted = [self.entry_points]
        for module in self.plugins:
            parts = module.split(".")
            wanted += [f"{self.site}/{'/'.join(parts[:n])}/__init__.py" for n in range(1, len(parts) + 1)]
            wanted.append(f"{self.site}/{'/'.join(parts)}.py")
        return [self.rows[path] for path in dict.fromkeys(wanted) if path in self.rows]

    @cached_property
    def record(self) -> str:
        name = "RECORD" if self.folder.endswith(".dist-info") else "installed-files.txt"
        return _text(f"{self.site}/{self.folder}/{name}", _LONGEST_RECORD)

    @cached_property
    def rows(self) -> dict[str, _Row]:
        """By absolute path."""
        start = self.site if self.folder.endswith(".dist-info") else f"{self.site}/{self.folder}"
        rows: dict[str, _Row] = {}
        for cells in _cells(self.record):
            # Some installers write absolute paths, which are wrong once the environment has moved.
            inside = cells[0].rpartition("/site-packages/")[2] if cells[0].startswith("/") else cells[0]
            path = os.path.normpath(f"{start}/{inside}")
            algorithm, _, digest = (cells[1] if len(cells) > 1 else "").partition("=")
            rows[path] = _Row(path, algorithm, digest, cells[2] if len(cells) > 2 else "")
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

    def owners(self, inside: str) -> list[_Distribution]:
        """The distributions that say they installed a file of this folder."""
        path = f"{self.folder}/{inside}"
        return [owner for owner in self.distributions if inside in owner.record and path in owner.rows]

    def finding(self, rule: str, severity: Severity, path: str, detail: str) -> Finding:
        return Finding(
            layer="L7",
            rule=rule,
            severity=severity,
            path=self.shown(path),
            detail=detail,
            fix=f"recreate the environment: remove {self.shown(str(self.environment))} and install its packages again",
        )

    def shown(self, path: str) -> str:
        return os.path.relpath(path, self.root) if Path(path).is_relative_to(self.root) else path


def environment_findings(folders: Sequence[Path], root: Path) -> list[Finding]:
    """What does not belong into the virtual environments among `folders`; `root` is the repository's work tree."""
    found: list[Finding] = []
    for folder in folders:
        if not (folder / "pyvenv.cfg").is_file():
            continue
        places = {path.resolve(): path for path in sorted(folder.glob("lib*/py*/site-packages"), reverse=True)}
        for place in places.values():
            found += _findings(_Site(str(place), folder, root))
    return found


def _findings(site: _Site) -> list[Finding]:
    try:
        return [*_startup_findings(site), *_tampered_findings(site)]
    except OSError as error:
        path = str(error.filename or site.folder)
        detail = f"{site.shown(path)} cannot be read ({error.strerror}), so nobody can tell what the environment holds"
        return [site.finding("environment-tampered", Severity.MAJOR, path, detail)]


def _startup_findings(site: _Site) -> Iterator[Finding]:
    for name in site.names:
        if name.endswith(".pth"):
            yield from _pth_findings(site, name)
        elif name.partition(".")[0] in _CUSTOMIZE:
            path = f"{site.folder}/{name}"
            lines = [line for line in _text(path).splitlines() if line.strip() and not line.startswith("#")]
            inside = f"{name}/__init__.py" if Path(path).is_dir() else name
            if not site.owners(inside) and not (lines and _harmless(site, name, lines)):
                yield _planted(site, path, "Python imports it whenever it starts, and no installed package recorded it")


def _pth_findings(site: _Site, name: str) -> Iterator[Finding]:
    path = f"{site.folder}/{name}"
    lines = [line.rstrip() for line in _text(path).removeprefix("\ufeff").splitlines()]
    executed = [line for line in lines if line.startswith(_EXECUTED)]
    added = [os.path.normpath(f"{site.folder}/{line}" if line[0] != "/" else line)
             for line in lines if line and line[0] != "#" and line not in executed]  # fmt: skip
    owners = site.owners(name)
    if executed and owners:
        yield from _edited_startup(site, path, executed, owners)
    elif executed and not _harmless(site, name, executed):
        yield _planted(site, path, "Python executes it whenever it starts, and no installed package recorded it")
    for place in added:
        if Path(place).is_relative_to(site.environment):
            continue
        if Path(place).is_relative_to(site.root):
            if not owners and not _linked(site, place):
                detail = f"adds {site.shown(place)} to what Python imports from, and no installed package recorded it"
                yield site.finding("environment-startup-file", Severity.MINOR, path, f"{name} {detail}")
        elif any(Path(place, f"{stem}.py").exists() or Path(place, stem).exists() for stem in _CUSTOMIZE):
            yield _planted(site, path, f"it adds {place}, where a module lies that Python imports whenever it starts")


def _planted(site: _Site, path: str, why: str) -> Finding:
    return site.finding("environment-startup-file", Severity.MAJOR, path, f"{os.path.basename(path)}: {why}")  # noqa: PTH119


def _linked(site: _Site, place: str) -> bool:
    """Whether setuptools' old development mode says that it added this place."""
    links = (name for name in site.names if name.endswith(".egg-link"))
    return any(_text(f"{site.folder}/{name}").partition("\n")[0].strip() == place for name in links)


def _harmless(site: _Site, name: str, lines: Sequence[str]) -> bool:
    for file, allowed in HARMLESS:
        if re.fullmatch(file, name) and all(any(re.fullmatch(line, said) for line in allowed) for said in lines):
            return _imports_what_it_says(site, "\n".join(lines))
    return False


def _imports_what_it_says(site: _Site, code: str) -> bool:
    """Whether the module behind a harmless line is the one that the line means."""
    if "import _virtualenv" in code:
        module = _text(f"{site.folder}/_virtualenv.py")
        return "_DISTUTILS_PATCH" in module and not _FOREIGN.search(module)
    modules = [name for name in site.names if name.partition(".")[0] == "coverage" and not name.endswith(".pth")]
    return "import coverage" not in code or not modules or bool(site.owners("coverage/__init__.py"))


def _edited_startup(
    site: _Site, path: str, executed: Sequence[str], owners: Sequence[_Distribution]
) -> Iterator[Finding]:
    """A recorded start-up file, or a module that it imports, which is not as it was installed."""
    modules = dict.fromkeys(name for line in executed for name in _IMPORTED.findall(line))
    files = [path, *(f"{site.folder}/{name}{end}" for name in modules for end in (".py", "/__init__.py"))]
    for file in files:
        rows = [owner.rows[file] for owner in owners if file in owner.rows]
        why = min((_difference(row) for row in rows), default="")  # one installer's word for it is enough
        if why:
            detail = f"{site.shown(file)} {why}; Python executes it whenever it starts"
            yield site.finding("environment-tampered", Severity.MAJOR, file, detail)


def _tampered_findings(site: _Site) -> Iterator[Finding]:
    runners = [distribution for distribution in site.distributions if distribution.runs_tests or distribution.plugins]
    for runner in runners:
        wrong = list(_differences(site, runner))
        if wrong:
            path, why = wrong[0]
            more = f", and {len(wrong) - 1} more files of it" if len(wrong) > 1 else ""
            detail = f"{site.shown(path)} {why}{more}; {runner.name} takes part in running tests"
            yield site.finding("environment-tampered", Severity.MAJOR, path, detail)
    for name in _UNOWNED:
        if name in site.names and not any(f"{site.folder}/{name}/__init__.py" in runner.rows for runner in runners):
            detail = f"no installed package recorded {name}: nobody can tell whether it is what was installed"
            yield site.finding("environment-tampered", Severity.MINOR, f"{site.folder}/{name}", detail)


def _differences(site: _Site, runner: _Distribution) -> Iterator[tuple[str, str]]:
    """Each file that is not as the installer left it, and why."""
    folders: dict[str, set[str]] = {}
    programs = f"{site.environment}/bin/"
    for row in runner.looked_at:
        ours = row.path.startswith(f"{site.folder}/") and row.path.endswith(_HASHED)
        if ours or row.path.startswith(programs):
            why = _difference(row)
            if why and not (row.path.startswith(programs) and _is_launcher(row.path, runner, programs)):
                yield row.path, why
        if ours and row.path.endswith(".py"):
            folder, _, name = row.path.rpartition("/")
            folders.setdefault(folder, set()).add(name)
    if runner.plugins and runner.entry_points not in runner.rows:
        yield runner.entry_points, "makes pytest load a plug-in, and no installer recorded it"
    for folder, modules in folders.items():
        yield from _stand_ins(site, folder, modules, runner)


def _difference(row: _Row) -> str:
    """Why the file is not what the record says; empty if it is, or is gone: then nothing of it can run."""
    try:
        info = os.stat(row.path)  # noqa: PTH116  strings are several times faster
        if not stat.S_ISREG(info.st_mode):
            return "is no ordinary file"
        if row.size.isdigit() and int(row.size) != info.st_size:
            return "has another size than the one that was recorded when it was installed"
        if row.algorithm not in ("sha256", "sha384", "sha512"):
            return ""
        content = _content(row.path, info.st_size)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    digest = hashlib.new(row.algorithm, content)
    encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    # `flit install` writes hexadecimal digits, against the specification.
    same = row.digest.rstrip("=") in (encoded, digest.hexdigest())
    return "" if same else "is not what was recorded when it was installed"


_LAUNCHER = re.compile(
    r"#!(?P<python>\S+)\n(?:# -\*- coding: utf-8 -\*-\n)?(?:import re\n)?import sys\n\n?"
    r"from (?P<module>\w+)[\w.]* import (?P<call>\w+)\n\n?if __name__ == ['\"]__main__['\"]:\n"
    r"(?: +(?:sys\.argv\[0\] = re\.sub\(r['\"]\(-script\\\.pyw\|\\\.exe\)\?\$['\"], ['\"]{2}, sys\.argv\[0\]\)"
    r"|(?:el)?if sys\.argv\[0\]\.endswith\(['\"][\w.-]+['\"]\):|sys\.argv\[0\] = sys\.argv\[0\]\[:-\d+\])\n)*"
    r" +sys\.exit\((?P=call)\(\)\)\n?"
)


def _is_launcher(path: str, runner: _Distribution, programs: str) -> bool:
    """Whether it is what installers write, for an environment that was moved: only its first line is another."""
    match = _LAUNCHER.fullmatch(_text(path))
    if match is None or not match["python"].startswith(programs):
        return False
    return any(f"{runner.site}/{match['module']}{end}" in runner.rows for end in (".py", "/__init__.py"))


def _stand_ins(site: _Site, folder: str, modules: set[str], runner: _Distribution) -> Iterator[tuple[str, str]]:
    """What Python would load instead of a recorded module of this folder."""
    there = site.names if folder == site.folder else _listed(folder)
    for name in there:
        path, stem = f"{folder}/{name}", name.partition(".")[0]
        if name == "__pycache__":
            yield from _unchecked_bytecode(path, modules)
        elif f"{stem}.py" not in modules or path in runner.rows:
            continue
        elif name.endswith(".so") or (name == f"{stem}.pyc" and f"{stem}.py" not in there):
            yield path, f"is loaded instead of {stem}.py, and was not installed with it"
        elif name == stem and (package := [file for file in _listed(path) if file.startswith("__init__.")]):
            inside = os.path.relpath(f"{path}/{package[0]}", site.folder)
            if not site.owners(inside):
                yield path, f"is loaded instead of {stem}.py, and was not installed with it"


def _unchecked_bytecode(folder: str, modules: set[str]) -> Iterator[tuple[str, str]]:
    """Bytecode that Python takes without looking at the source: its flags say hashed (1) and not checked (2)."""
    for name in _listed(folder):
        if name.endswith(".pyc") and f"{name.partition('.')[0]}.py" in modules:
            try:
                flags = _content(f"{folder}/{name}", 8)[4:]
            except (PermissionError, IsADirectoryError):
                continue  # Python cannot read it either, and takes the source
            if int.from_bytes(flags, "little") & 0b11 == 0b01:
                yield f"{folder}/{name}", "is bytecode that Python never compares with its source"


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  strings are several times faster
    except (FileNotFoundError, NotADirectoryError):
        return []


def _text(path: str, most: int = _MOST) -> str:
    """Of an ordinary file; empty if there is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  strings are several times faster
            return ""
        return _content(path, most).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _content(path: str, most: int) -> bytes:
    """Without buffers and path objects: this is called for some hundred small files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)
