"""Python: tests by pytest or unittest, types by mypy or pyright, lint by ruff or flake8. Nothing is built."""

from __future__ import annotations

from collections.abc import Iterable

from proofstone.adapters.checks.ecosystems import python_tests
from proofstone.adapters.checks.ecosystems.rule import Ecosystem, Rule, Sign, optional
from proofstone.adapters.checks.ecosystems.tree import Package, subtable
from proofstone.contracts.check import CheckKind, CheckSpec

_SOURCES = (".py", ".pyi")


def _mypy_targets(package: Package) -> tuple[str, ...]:
    """None when the configuration says what to look at, as mypy itself reads it; else the project's packages."""
    tables = (
        subtable(package.table("mypy.ini"), "mypy"),
        subtable(package.table(".mypy.ini"), "mypy"),
        subtable(package.table("pyproject.toml"), "tool.mypy"),
        subtable(package.table("setup.cfg"), "mypy"),
    )
    if any(key in table for table in tables for key in ("files", "packages", "modules")):
        return ()
    return _packages(package) or (".",)


def _packages(package: Package) -> tuple[str, ...]:
    if any(name.startswith("src/") and name.endswith(_SOURCES) for name in package.files):
        return ("src",)
    tops = {name.split("/")[0] for name in package.files if name.count("/") == 1 and name.endswith("/__init__.py")}
    modules = [name for name in package.top("*.py") if name not in ("setup.py", "conftest.py", "noxfile.py")]
    return tuple(sorted(tops - {"tests", "test", "docs", "examples"})) or tuple(modules)


_RULES = (
    Rule(
        (
            Sign("mypy.ini"),
            Sign(".mypy.ini"),
            Sign("pyproject.toml", "tool.mypy"),
            Sign("setup.cfg", "mypy"),
        ),
        optional(
            CheckKind.TYPES,
            "mypy",
            "python:mypy",
            *("{python}", "-m", "mypy", "--no-pretty"),
            install="python -m pip install mypy",
        ),
        _mypy_targets,
    ),
    Rule(
        (Sign("pyrightconfig.json"), Sign("pyproject.toml", "tool.pyright")),
        optional(CheckKind.TYPES, "pyright", "pyright", "pyright", install="python -m pip install pyright"),
    ),
    Rule(
        (Sign("ruff.toml"), Sign(".ruff.toml"), Sign("pyproject.toml", "tool.ruff")),
        optional(
            CheckKind.LINT,
            "ruff",
            "ruff",
            *("ruff", "check", "--output-format=concise", "--no-cache", "--force-exclude", "{changed}"),
            install="python -m pip install ruff",
            suffixes=(*_SOURCES, ".ipynb"),
        ),
    ),
    Rule(
        (Sign(".flake8"), Sign("setup.cfg", "flake8"), Sign("tox.ini", "flake8")),
        optional(
            CheckKind.LINT,
            "flake8",
            "python:flake8",
            *("{python}", "-m", "flake8", "{changed}"),
            install="python -m pip install flake8",
            suffixes=(".py",),
        ),
    ),
)

_READ_HIERARCHICALLY = ("lint:ruff", "lint:flake8")
"""The changed files of every package below are in the root's own run."""


def _find(package: Package) -> Iterable[CheckSpec]:
    return python_tests.find(package)


def _covers(above: Package, below: Package, spec: CheckSpec) -> bool:
    if spec.name in _READ_HIERARCHICALLY:
        return any(spec.name == rule.spec.name and any(rule.specs(above)) for rule in _RULES)
    # pytest at the root collects everything below it, unless a package below is configured on its own.
    collected = spec.kind is CheckKind.TESTS and python_tests.collects(above, below.directory)
    return collected and python_tests.configuration(below) is None


PYTHON = Ecosystem(
    name="python",
    manifests=("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini"),
    weak_manifests=(
        *("tox.ini", "requirements*.txt", "Pipfile", "manage.py", "noxfile.py", "environment.yml", "conftest.py"),
        *("mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".flake8", "pyrightconfig.json"),
    ),
    root_signs=python_tests.TEST_FILES,
    rules=_RULES,
    find=_find,
    covers=_covers,
)
