"""The frozen tree as discovery sees it: names of files and their text, nothing else.

Manifests are written by anyone and may hold any bytes. One that cannot be read becomes a note, never an error: a
broken manifest must not hide the checks that other files name.

How an ecosystem is said as data: which files are signs of which check.

A rule holds when one of its signs is in the package; the sign found is the check's evidence. What a table cannot
say (the shape of a script, the start directory of a test run) is the ecosystem's `find`.
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
EMPTY: Table = {}


@dataclass
class Tree:
    """All files of one tree, with what was unreadable gathered in `notes`."""

    paths: Sequence[str]
    read: Callable[[str], bytes | None]
    notes: list[str] = field(default_factory=list)
    _tables: dict[str, Table | None] = field(default_factory=dict)

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.paths)

    @cached_property
    def places(self) -> list[tuple[str, str]]:
        """Name and directory of each file: split once, since every ecosystem looks at all of them."""
        return [(basename(path), dirname(path) or ".") for path in self.paths]

    def text(self, path: str) -> str | None:
        """The file's text; a byte order mark is dropped and bytes that are not UTF-8 are replaced."""
        content = self.read(path) if path in self.known else None
        if content is None:
            return None
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return content.decode("utf-16", errors="replace")
        return content.decode("utf-8-sig", errors="replace")

    def table(self, path: str) -> Table | None:
        """A TOML, JSON or INI file as nested tables; None when it is missing, or broken, which is noted once."""
        if path not in self._tables:
            self._tables[path] = self._parse(path)
        return self._tables[path]

    def _parse(self, path: str) -> Table | None:
        text = self.text(path)
        if text is None:
            return None
        try:
            value = _parser(path)(text)
        except (ValueError, RecursionError, configparser.Error) as error:
            self.notes.append(f"{path}: cannot be read, so nothing was discovered from it: {_one_line(error)}")
            return None
        if not isinstance(value, dict):
            self.notes.append(f"{path}: {_NOT_A_TABLE}, so nothing was discovered from it")
            return None
        return value


@dataclass(frozen=True)
class Package:
    """A directory with a manifest, and the files below it that belong to no deeper package."""

    tree: Tree
    directory: str
    files: tuple[str, ...]
    """Relative to `directory`."""

    def path(self, name: str) -> str:
        return name if self.directory == "." else f"{self.directory}/{name}"

    def has(self, name: str) -> bool:
        return self.path(name) in self.tree.known

    def text(self, name: str) -> str:
        return self.tree.text(self.path(name)) or ""

    def table(self, name: str) -> Table:
        return self.tree.table(self.path(name)) or EMPTY

    def top(self, *patterns: str) -> list[str]:
        """Files directly in the directory whose name matches one of the patterns, in the patterns' order."""
        return [name for pattern in patterns for name in self._top if fnmatchcase(name, pattern)]

    @cached_property
    def _top(self) -> list[str]:
        return sorted(name for name in self.files if "/" not in name)

    def named(self, *patterns: str) -> list[str]:
        """Files anywhere in the package whose last part matches, shallow ones first."""
        wanted = matcher(patterns)
        found = [name for name in self.files if wanted(basename(name))]
        return sorted(found, key=lambda name: (name.count("/"), name))


@lru_cache(maxsize=64)
def matcher(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """One test for many patterns: trees have tens of thousands of names."""
    return re.compile("|".join(map(translate, patterns))).match


def lookup(table: object, dotted: str) -> object:
    """The value at `a.b.c`, or None where a step is missing or is not a table."""
    for key in dotted.split("."):
        if not isinstance(table, dict):
            return None
        table = table.get(key)
    return table


def strings(value: object) -> list[str]:
    """The strings of a list, or the one string; anything else a sloppy manifest holds is nothing."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def subtable(table: object, dotted: str) -> Table:
    value = lookup(table, dotted)
    return value if isinstance(value, dict) else EMPTY


def _parser(path: str) -> Callable[[str], object]:
    name = basename(path)
    if name.endswith(".toml") or name in ("Pipfile", "Cargo.lock"):
        return tomllib.loads
    return parse_jsonc if name.endswith((".json", ".jsonc", ".eslintrc")) else parse_ini


def _one_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


TIER = 2  # everything discovered belongs to the cascade's second tier

TEST_FOLDERS = frozenset({"tests", "test", "__tests__"})
IGNORED = (
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
"""A manifest below one of these, or below a folder that starts with a dot, describes something else."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A file directly in the package (a pattern), and the table, section or key in it that says so."""

    file: str
    table: str = ""

    def evidence(self, package: Package) -> str | None:
        for name in package.top(self.file):
            if not self.table:
                return package.path(name)
            if lookup(package.table(name), self.table) is not None or self.table in package.table(name):
                return f"{package.path(name)} [{self.table}]"
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """`argv` with its last arguments from `arguments` where they depend on the package."""

    signs: tuple[Sign, ...]
    spec: CheckSpec
    arguments: Callable[[Package], tuple[str, ...]] | None = None

    def specs(self, package: Package) -> Iterable[CheckSpec]:
        evidence = next(filter(None, (sign.evidence(package) for sign in self.signs)), None)
        if evidence is None:
            return
        more = self.arguments(package) if self.arguments else ()
        yield self.spec.model_copy(update={"evidence": evidence, "argv": (*self.spec.argv, *more)})


def _nothing(package: Package) -> Iterable[CheckSpec]:
    return ()


def _separate(above: Package, below: Package, spec: CheckSpec) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Ecosystem:
    name: str
    manifests: tuple[str, ...]
    """Patterns of file names that make their directory a package."""
    rules: tuple[Rule, ...] = ()
    find: Callable[[Package], Iterable[CheckSpec]] = _nothing
    covers: Callable[[Package, Package, CheckSpec], bool] = _separate
    """Whether a check of the package above already looks at the package below; asked only when the one above has a
    check of the same kind."""
    ignored: frozenset[str] = IGNORED
    weak_manifests: tuple[str, ...] = ()
    """Names that make a package only where no directory above is one."""
    root_signs: tuple[str, ...] = ()
    """Names that, found below no package at all, make the root one."""

    def specs(self, package: Package) -> tuple[CheckSpec, ...]:
        return (*(spec for rule in self.rules for spec in rule.specs(package)), *self.find(package))


def build(name: str, tool: str, *argv: str, install: str, needs: tuple[str, ...] = ()) -> CheckSpec:
    return CheckSpec(
        name=f"build:{name}", kind=CheckKind.BUILD, tier=TIER, tool=tool, argv=argv, install=install, needs=needs
    )


def tests(name: str, tool: str, *argv: str, report: ReportFormat, install: str, needs: str = "") -> CheckSpec:
    return CheckSpec(
        name=f"tests:{name}",
        kind=CheckKind.TESTS,
        tier=TIER,
        tool=tool,
        argv=argv,
        report=report,
        install=install,
        needs=(needs,) if needs else (),
    )


def optional(
    kind: CheckKind, name: str, tool: str, *argv: str, install: str, suffixes: tuple[str, ...] = ()
) -> CheckSpec:
    """Types and lint: a missing tool is said but does not decide, a failure does."""
    return CheckSpec(
        name=f"{kind}:{name}",
        kind=kind,
        tier=TIER,
        tool=tool,
        argv=argv,
        install=install,
        suffixes=suffixes,
        required=False,
    )
