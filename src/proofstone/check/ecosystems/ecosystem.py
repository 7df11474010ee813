"""The building blocks of discovery: the files of a tree, its packages, and ecosystems as data.

Discovery sees the frozen tree as file names and their text, and nothing else. Anybody may write a manifest, and it may
hold any bytes. An unreadable manifest becomes a note and never an error, because it must not hide the checks that other
files name.

A rule applies if one of its signs is in the package; that sign is the check's evidence. What a table cannot express
(the shape of a script, the start directory of a test run) is in the ecosystem's `find`.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import cached_property, lru_cache
from posixpath import basename, dirname

from proofstone.check.models import CheckKind, CheckSpec, ReportFormat
from proofstone.common.parsing import parse_ini
from proofstone.sources.text import parse_jsonc

_NOT_A_TABLE = "is not a table of keys and values"
Table = Mapping[str, object]
EMPTY_TABLE: Table = {}


@dataclass
class ProjectTree:
    """All files of one tree. `notes` lists what could not be read."""

    paths: Sequence[str]
    read: Callable[[str], bytes | None]
    notes: list[str] = field(default_factory=list)
    _tables: dict[str, Table | None] = field(default_factory=dict)

    @cached_property
    def path_set(self) -> frozenset[str]:
        return frozenset(self.paths)

    @cached_property
    def names_and_folders(self) -> list[tuple[str, str]]:
        """Name and directory of each file, split once because every ecosystem examines all of them."""
        return [(basename(path), dirname(path) or ".") for path in self.paths]

    def read_text(self, path: str) -> str | None:
        """Return the file's text. A byte order mark is dropped, and bytes that are not UTF-8 are replaced."""
        content = self.read(path) if path in self.path_set else None
        if content is None:
            return None
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return content.decode("utf-16", errors="replace")
        return content.decode("utf-8-sig", errors="replace")

    def read_table(self, path: str) -> Table | None:
        """Return a TOML, JSON or INI file as nested tables; None if it is missing or broken. A broken file is noted
        once."""
        if path not in self._tables:
            self._tables[path] = self._parse(path)
        return self._tables[path]

    def _parse(self, path: str) -> Table | None:
        text = self.read_text(path)
        if text is None:
            return None
        try:
            value = _choose_parser(path)(text)
        except (ValueError, RecursionError, configparser.Error) as error:
            self.notes.append(f"{path}: cannot be read, so nothing was discovered from it: {_first_line(error)}")
            return None
        if not isinstance(value, dict):
            self.notes.append(f"{path}: {_NOT_A_TABLE}, so nothing was discovered from it")
            return None
        return value


@dataclass(frozen=True)
class Package:
    """A directory with a manifest, and the files below it that belong to no deeper package."""

    tree: ProjectTree
    directory: str
    files: tuple[str, ...]
    """Relative to `directory`."""

    def path(self, name: str) -> str:
        return name if self.directory == "." else f"{self.directory}/{name}"

    def has(self, name: str) -> bool:
        return self.path(name) in self.tree.path_set

    def text(self, name: str) -> str:
        return self.tree.read_text(self.path(name)) or ""

    def table(self, name: str) -> Table:
        return self.tree.read_table(self.path(name)) or EMPTY_TABLE

    def find_top_level(self, *patterns: str) -> list[str]:
        """Return files directly in the directory whose name matches one of the patterns, in the order of the
        patterns."""
        return [name for pattern in patterns for name in self._top if fnmatchcase(name, pattern)]

    @cached_property
    def _top(self) -> list[str]:
        return sorted(name for name in self.files if "/" not in name)

    def find_named(self, *patterns: str) -> list[str]:
        """Return files anywhere in the package whose name matches, shallow ones first."""
        matches = compile_matcher(patterns)
        names = [name for name in self.files if matches(basename(name))]
        return sorted(names, key=lambda name: (name.count("/"), name))


@lru_cache(maxsize=64)
def compile_matcher(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """Return one test for many patterns, because trees have tens of thousands of names."""
    return re.compile("|".join(map(translate, patterns))).match


def lookup_key(table: object, dotted: str) -> object:
    """Return the value at `a.b.c`; None if a step is missing or is not a table."""
    for key in dotted.split("."):
        if not isinstance(table, dict):
            return None
        table = table.get(key)
    return table


def list_strings(value: object) -> list[str]:
    """Return the strings of a list, or the one string. Anything else in a sloppy manifest is ignored."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def find_subtable(table: object, dotted: str) -> Table:
    value = lookup_key(table, dotted)
    return value if isinstance(value, dict) else EMPTY_TABLE


def _choose_parser(path: str) -> Callable[[str], object]:
    name = basename(path)
    if name.endswith(".toml") or name in ("Pipfile", "Cargo.lock"):
        return tomllib.loads
    return parse_jsonc if name.endswith((".json", ".jsonc", ".eslintrc")) else parse_ini


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


DISCOVERED_TIER = 2  # all discovered checks belong to the second tier

TEST_FOLDERS = frozenset({"tests", "test", "__tests__"})
IGNORED_FOLDERS = (
    TEST_FOLDERS
    | {
        "testdata",
        "test-data",
        "fixtures",
        "__fixtures__",
        "fixture",
        "examples",
        "example",
        "samples",
        "docs",
        "doc",
    }
    | {"vendor", "node_modules", "bower_components", "third_party", "third-party", "site-packages"}
)
"""A manifest below one of these folders, or below a folder that starts with a dot, describes something else."""


@dataclass(frozen=True, slots=True)
class EvidenceMarker:
    """A file directly in the package (a pattern), and optionally the table, section or key that it must have."""

    file: str
    table: str = ""

    def find_evidence(self, package: Package) -> str | None:
        """Return where the sign was found; None if the package does not have it."""
        for name in package.find_top_level(self.file):
            if not self.table:
                return package.path(name)
            if lookup_key(package.table(name), self.table) is not None or self.table in package.table(name):
                return f"{package.path(name)} [{self.table}]"
        return None


@dataclass(frozen=True, slots=True)
class DiscoveryRule:
    """A check that applies if one of the signs is found. `arguments` adds arguments that depend on the package."""

    signs: tuple[EvidenceMarker, ...]
    spec: CheckSpec
    arguments: Callable[[Package], tuple[str, ...]] | None = None

    def build_specs(self, package: Package) -> Iterable[CheckSpec]:
        evidence = next(filter(None, (sign.find_evidence(package) for sign in self.signs)), None)
        if evidence is None:
            return
        arguments = self.arguments(package) if self.arguments else ()
        yield self.spec.model_copy(update={"evidence": evidence, "argv": (*self.spec.argv, *arguments)})


def _find_nothing(package: Package) -> Iterable[CheckSpec]:
    return ()


def _covers_nothing(above: Package, below: Package, spec: CheckSpec) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """How to find packages and their checks in one ecosystem."""

    name: str
    manifests: tuple[str, ...]
    """Patterns of file names that make their directory a package."""
    rules: tuple[DiscoveryRule, ...] = ()
    find: Callable[[Package], Iterable[CheckSpec]] = _find_nothing
    covers: Callable[[Package, Package, CheckSpec], bool] = _covers_nothing
    """Returns whether a check of the package above already covers the package below. It is called only if the package
    above has a check of the same kind."""
    ignored: frozenset[str] = IGNORED_FOLDERS
    weak_manifests: tuple[str, ...] = ()
    """Names that make a package only if no directory above is one."""
    root_signs: tuple[str, ...] = ()
    """Names that make the root a package if they are found below no package at all."""

    def find_specs(self, package: Package) -> tuple[CheckSpec, ...]:
        return (*(spec for rule in self.rules for spec in rule.build_specs(package)), *self.find(package))


def make_build_check(name: str, tool: str, *argv: str, install: str, needs: tuple[str, ...] = ()) -> CheckSpec:
    """Return a build check."""
    return CheckSpec(
        name=f"build:{name}",
        kind=CheckKind.BUILD,
        tier=DISCOVERED_TIER,
        tool=tool,
        argv=argv,
        install=install,
        needs=needs,
    )


def make_test_check(name: str, tool: str, *argv: str, report: ReportFormat, install: str, needs: str = "") -> CheckSpec:
    """Return a test check."""
    return CheckSpec(
        name=f"tests:{name}",
        kind=CheckKind.TESTS,
        tier=DISCOVERED_TIER,
        tool=tool,
        argv=argv,
        report=report,
        install=install,
        needs=(needs,) if needs else (),
    )


def make_optional_check(
    kind: CheckKind, name: str, tool: str, *argv: str, install: str, suffixes: tuple[str, ...] = ()
) -> CheckSpec:
    """Return a type or lint check. A missing tool is reported but does not decide; a failure does."""
    return CheckSpec(
        name=f"{kind}:{name}",
        kind=kind,
        tier=DISCOVERED_TIER,
        tool=tool,
        argv=argv,
        install=install,
        suffixes=suffixes,
        required=False,
    )
