"""Modules that a change registers as plug-ins of pytest. They run in the tests only, and may do what a conftest may."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from posixpath import basename
from typing import Final

from proofstone.common.risk import is_test_path

_CONFIGURATION: Final = frozenset(
    {"pyproject.toml", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pytest.toml"}
)
_OPTION: Final = re.compile(r"(?<![\w-])-p[ =]*(?!no:)([A-Za-z_][\w.]*)")
_VARIABLE: Final = re.compile(r"^pytest_plugins\s*=\s*([\[(][^\])]*[\])]|[^\n]*)", re.MULTILINE)
_NAME: Final = re.compile(r"['\"]([A-Za-z_][\w.]*)['\"]")


def find_runner_plugins(files: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the dotted names of the modules that these files, given as path and text, register."""
    return frozenset(name for path, text in files for name in _list_names(path, text))


def _list_names(path: str, text: str) -> Iterator[str]:
    if basename(path) in _CONFIGURATION:
        yield from _OPTION.findall(text)
    elif basename(path) == "conftest.py":
        for value in _VARIABLE.findall(text):
            yield from _NAME.findall(value)


def drop_imported(plugins: frozenset[str], files: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the plug-ins that no changed file of the product imports: what the product imports is product."""
    products = [(path, text) for path, text in files if path.endswith(".py") and not is_test_path(path)]
    return frozenset(
        name
        for name in plugins
        if not any(_imports(text, name) for path, text in products if not is_runner_plugin(path, frozenset({name})))
    )


def _imports(text: str, name: str) -> bool:
    last = re.escape(name.rpartition(".")[2])
    return re.search(rf"^\s*(?:from|import)\b[^\n]*\b{last}\b", text, re.MULTILINE) is not None


def is_runner_plugin(path: str, plugins: frozenset[str]) -> bool:
    """Return whether a file is one of these modules, whatever folder the search path begins at."""
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return path.endswith(".py") and any(dotted == name or dotted.endswith(f".{name}") for name in plugins)
