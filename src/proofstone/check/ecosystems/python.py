"""Python: tests by pytest or unittest, types by mypy or pyright, lint by ruff or flake8. Nothing is built.

The test runner is chosen by evidence, the strongest first. For pytest: its configuration, a conftest.py, a dependency
on it, a test file that imports it, or test functions with bare asserts, which only pytest runs. For unittest: test
files that import it, and nothing that speaks for pytest. The start directory follows unittest's own rule that discovery
descends only into packages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from posixpath import basename, commonpath, dirname

from proofstone.check.ecosystems.ecosystem import (
    DiscoveryRule,
    Ecosystem,
    EvidenceMarker,
    Package,
    find_subtable,
    list_strings,
    lookup_key,
    make_optional_check,
    make_test_check,
)
from proofstone.check.models import CheckKind, CheckSpec, ReportFormat

TEST_FILES = ("test*.py", "*_test.py")
READ_LIMIT = 400
"""Number of test files that are opened to see what they import. A larger project has a manifest."""

_CONFIGURATION = (
    EvidenceMarker("pytest.ini"),
    EvidenceMarker(".pytest.ini"),
    EvidenceMarker("pytest.toml"),
    EvidenceMarker("pyproject.toml", "tool.pytest"),
    EvidenceMarker("setup.cfg", "tool:pytest"),
    EvidenceMarker("tox.ini", "pytest"),
)
_TEST_PATHS = (
    ("pytest.ini", "pytest.testpaths"),
    ("pyproject.toml", "tool.pytest.ini_options.testpaths"),
    ("pyproject.toml", "tool.pytest.testpaths"),
    ("tox.ini", "pytest.testpaths"),
)
_NAMED_IN_TEXT = {
    "requirements*.txt": re.compile(r"^\s*pytest\b", re.MULTILINE),
    "*requirements.txt": re.compile(r"^\s*pytest\b", re.MULTILINE),
    "*requirements*.in": re.compile(r"^\s*pytest\b", re.MULTILINE),
    "setup.py": re.compile(r"['\"]pytest\b(?!-runner)"),
    "setup.cfg": re.compile(r"^\s+pytest\b", re.MULTILINE),
    "tox.ini": re.compile(r"^\s*(?:[\w,{}.-]+:)?\s*(?:coverage run -m |python -m )?pytest\b", re.MULTILINE),
    "noxfile.py": re.compile(r"['\"]pytest\b"),
    "environment*.yml": re.compile(r"^\s*-\s*pytest\b", re.MULTILINE),
}
_IMPORTS_PYTEST = re.compile(r"^\s*(?:import|from)\s+pytest\b", re.MULTILINE)
_IMPORTS_UNITTEST = re.compile(r"^\s*(?:import\s+unittest|from\s+unittest)\b", re.MULTILINE)
_TEST_FUNCTION = re.compile(
    r"^(?:async\s+)?def\s+(test\w*)\s*\(|^class\s+Test\w*\s*(?:\(\s*(?:object)?\s*\))?\s*:(?:\n(?:[ \t]+.*)?)*?"
    r"\n[ \t]+(?:async\s+)?def\s+(test\w*)\s*\(\s*self\b",
    re.MULTILINE,
)
_ASSERT = re.compile(r"^(?:[ \t]+|[^#\n]*:[ \t]*)assert\b", re.MULTILINE)
_PYTEST_FILES = ("test_*.py", "*_test.py")
_IMPORTS_DJANGO = re.compile(r"^\s*from\s+django\.test\b|^\s*from\s+rest_framework\.test\b", re.MULTILINE)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def find_test_checks(package: Package) -> Iterable[CheckSpec]:
    """Return the test checks of a package."""
    files = package.find_named(*TEST_FILES)
    evidence = find_pytest_configuration(package) or (_find_mention(package) if files else None)
    if evidence is not None:
        yield _build_pytest_spec(evidence)
        return
    texts = {name: package.text(name) for name in files[:READ_LIMIT]}
    imports = next((name for name, text in texts.items() if _IMPORTS_PYTEST.search(text)), None)
    django = next((name for name, text in texts.items() if _IMPORTS_DJANGO.search(text)), None)
    if imports is not None:
        yield _build_pytest_spec(f"{package.path(imports)} imports pytest")
    elif django is not None and package.has("manage.py"):
        spec = make_test_check(
            *("django", "python:django", "{python}", "manage.py", "test"),
            report=ReportFormat.EXIT_CODE,
            install="python -m pip install django",
        )
        yield spec.model_copy(update={"evidence": f"{package.path('manage.py')}, {package.path(django)}"})
    elif conclusion := _find_bare_functions(package, texts):
        package.tree.notes.append(f"tests:pytest is concluded from {conclusion}; no configuration names a test runner")
        yield _build_pytest_spec(conclusion).model_copy(update={"is_concluded": True})
    else:
        yield from _build_unittest_specs(
            package, [name for name, text in texts.items() if _IMPORTS_UNITTEST.search(text)]
        )


def _find_bare_functions(package: Package, texts: Mapping[str, str]) -> str:
    """Return the first test function with bare asserts, which no other runner than pytest runs; empty if there is none.
    Functions beside unittest's classes are helpers, such as `test_suite`."""
    for name, text in texts.items():
        is_collected = any(fnmatchcase(basename(name), pattern) for pattern in _PYTEST_FILES)
        if not is_collected or _IMPORTS_UNITTEST.search(text) or not _ASSERT.search(text):
            continue
        if function := _TEST_FUNCTION.search(text):
            return f"{package.path(name)}: {function[1] or function[2]} is a test function with bare asserts"
    return ""


def find_pytest_configuration(package: Package) -> str | None:
    """Return the package's own pytest configuration; None if it has none."""
    return next(filter(None, (sign.find_evidence(package) for sign in _CONFIGURATION)), None)


def is_collected_by_pytest(package: Package, directory: str) -> bool:
    """Return whether pytest, run in this package with its configuration, reaches a directory of the repository below
    it."""
    if find_pytest_configuration(package) is None:
        return False
    paths = [path for table, key in _TEST_PATHS for path in _split_words(lookup_key(package.table(table), key))]
    paths += _split_words(find_subtable(package.table("setup.cfg"), "tool:pytest").get("testpaths"))
    test_paths = [package.path(path.rstrip("/")) for path in paths if path not in (".", "./")]
    return len(test_paths) < len(paths) or not paths or any(_overlaps(directory, path) for path in test_paths)


def _split_words(value: object) -> list[str]:
    return value.split() if isinstance(value, str) else list_strings(value)


def _overlaps(directory: str, path: str) -> bool:
    return fnmatchcase(directory, path) or path.startswith(f"{directory}/") or directory.startswith(f"{path}/")


def _build_pytest_spec(evidence: str) -> CheckSpec:
    spec = make_test_check(
        *("pytest", "python:pytest", "{python}", "-m", "pytest"),
        report=ReportFormat.PYTEST,
        install="python -m pip install pytest",
    )
    return spec.model_copy(update={"evidence": evidence})


def _find_mention(package: Package) -> str | None:
    """Return a conftest.py, or where a list of dependencies names pytest."""
    conftest = package.find_named("conftest.py")
    if conftest:
        return package.path(conftest[0])
    for manifest in ("pyproject.toml", "Pipfile"):
        for where, requirement in _list_requirements(package.table(manifest), ""):
            if _is_pytest(requirement):
                return f"{package.path(manifest)} [{where}]"
    for pattern, mention in _NAMED_IN_TEXT.items():
        for name in (*package.find_top_level(pattern), *_list_requirement_folder(package, pattern)):
            if mention.search(package.text(name)):
                return f"{package.path(name)} names pytest"
    return None


def _list_requirement_folder(package: Package, pattern: str) -> list[str]:
    if pattern != "requirements*.txt":
        return []
    return [name for name in package.files if re.fullmatch(r"requirements/[^/]+\.(?:txt|in)", name)]


def _list_requirements(node: object, where: str) -> Iterator[tuple[str, str]]:
    """Return every requirement below a key for dependencies, in the table of any tool."""
    for key, value in node.items() if isinstance(node, dict) else ():
        key_path = f"{where}.{key}" if where else str(key)
        if re.search(r"dependenc|packages|requires", key_path) and not isinstance(value, dict):
            names = value if isinstance(value, list) else [key]
            yield from (
                (key_path if isinstance(value, list) else where, name) for name in names if isinstance(name, str)
            )
            continue
        if re.search(r"dependencies$|packages$", key_path) and isinstance(value, dict):
            yield from ((key_path, str(name)) for name in value)
        yield from _list_requirements(value, key_path)


def _is_pytest(requirement: str) -> bool:
    match = _REQUIREMENT.match(requirement)
    return match is not None and re.split(r"[._-]", match[1].lower())[0] == "pytest"


def _build_unittest_specs(package: Package, files: list[str]) -> Iterable[CheckSpec]:
    """Return one run for each top-level directory and file pattern that is needed to reach all test files."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in files:
        pattern = "test*.py" if basename(name).startswith("test") else "*_test.py"
        groups[_find_top_level(package, name), pattern].append(name)
    for (top, pattern), names in sorted(groups.items()):
        start = commonpath([dirname(name) for name in names]) or "."
        suffix = "" if len(groups) == 1 else f":{top}/{pattern}"
        argv = ["{python}", "{probes}/proofstone_unittest.py", "discover", "-s", start, "-t", top]
        if pattern != "test*.py":
            argv += ["-p", pattern]
        spec = make_test_check(
            *(f"unittest{suffix}", "python:unittest", *argv),
            report=ReportFormat.UNITTEST,
            install="unittest is part of Python",
        )
        yield spec.model_copy(update={"evidence": f"{package.path(names[0])} imports unittest"})


def _find_top_level(package: Package, name: str) -> str:
    """Return the nearest directory above the test that is not itself a package. The test's imports start there."""
    directory = dirname(name)
    while directory and package.has(f"{directory}/__init__.py"):
        directory = dirname(directory)
    return directory or "."


_SOURCES = (".py", ".pyi")


def _mypy_targets(package: Package) -> tuple[str, ...]:
    """Return nothing if the configuration names the targets, as mypy itself reads it; else the project's packages."""
    tables = (
        find_subtable(package.table("mypy.ini"), "mypy"),
        find_subtable(package.table(".mypy.ini"), "mypy"),
        find_subtable(package.table("pyproject.toml"), "tool.mypy"),
        find_subtable(package.table("setup.cfg"), "mypy"),
    )
    if any(key in table for table in tables for key in ("files", "packages", "modules")):
        return ()
    return _find_source_packages(package) or (".",)


def _find_source_packages(package: Package) -> tuple[str, ...]:
    if any(name.startswith("src/") and name.endswith(_SOURCES) for name in package.files):
        return ("src",)
    tops = {name.split("/")[0] for name in package.files if name.count("/") == 1 and name.endswith("/__init__.py")}
    modules = [name for name in package.find_top_level("*.py") if name not in ("setup.py", "conftest.py", "noxfile.py")]
    return tuple(sorted(tops - {"tests", "test", "docs", "examples"})) or tuple(modules)


_RULES = (
    DiscoveryRule(
        (
            EvidenceMarker("mypy.ini"),
            EvidenceMarker(".mypy.ini"),
            EvidenceMarker("pyproject.toml", "tool.mypy"),
            EvidenceMarker("setup.cfg", "mypy"),
        ),
        make_optional_check(
            CheckKind.TYPES,
            "mypy",
            "python:mypy",
            *("{python}", "-m", "mypy", "--no-pretty"),
            install="python -m pip install mypy",
        ),
        _mypy_targets,
    ),
    DiscoveryRule(
        (EvidenceMarker("pyrightconfig.json"), EvidenceMarker("pyproject.toml", "tool.pyright")),
        make_optional_check(CheckKind.TYPES, "pyright", "pyright", "pyright", install="python -m pip install pyright"),
    ),
    DiscoveryRule(
        (EvidenceMarker("ruff.toml"), EvidenceMarker(".ruff.toml"), EvidenceMarker("pyproject.toml", "tool.ruff")),
        make_optional_check(
            CheckKind.LINT,
            "ruff",
            "ruff",
            *("ruff", "check", "--output-format=concise", "--no-cache", "--force-exclude", "{changed}"),
            install="python -m pip install ruff",
            suffixes=(*_SOURCES, ".ipynb"),
        ),
    ),
    DiscoveryRule(
        (EvidenceMarker(".flake8"), EvidenceMarker("setup.cfg", "flake8"), EvidenceMarker("tox.ini", "flake8")),
        make_optional_check(
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
"""Checks whose run at the root includes the changed files of every package below."""


def _find(package: Package) -> Iterable[CheckSpec]:
    return find_test_checks(package)


def _covers_package(above: Package, below: Package, spec: CheckSpec) -> bool:
    if spec.name in _READ_HIERARCHICALLY:
        return any(spec.name == rule.spec.name and any(rule.build_specs(above)) for rule in _RULES)
    # pytest at the root collects everything below it, unless a package below has its own configuration.
    is_collected = spec.kind is CheckKind.TESTS and is_collected_by_pytest(above, below.directory)
    return is_collected and find_pytest_configuration(below) is None


PYTHON = Ecosystem(
    name="python",
    manifests=("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini"),
    weak_manifests=(
        *("tox.ini", "requirements*.txt", "Pipfile", "manage.py", "noxfile.py", "environment.yml", "conftest.py"),
        *("mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".flake8", "pyrightconfig.json"),
    ),
    root_signs=TEST_FILES,
    rules=_RULES,
    find=_find,
    covers=_covers_package,
)
