"""The frozen tree as discovery sees it: names of files and their text, nothing else.

Manifests are written by anyone and may hold any bytes. One that cannot be read becomes a note, never an error: a
broken manifest must not hide the checks that other files name.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from functools import cached_property, lru_cache
from posixpath import basename, dirname

from proofstone.adapters.checks.ecosystems.jsonc import parse_jsonc
from proofstone.core.ini import parse_ini

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
