"""Decide which files are oracle: whatever decides what a test expects.

| first match                                                        | the file is                             |
|--------------------------------------------------------------------|-----------------------------------------|
| the base's report has tests of this file                           | oracle: it holds tests                  |
| its path says that it belongs to the tests or to their runner      | oracle: its place                       |
| a command that proves something (`--verify`, a plan) names it      | oracle: it is part of the command       |
| the product imports, reads or names it                             | product                                 |
| tests were seen to open it, and it is no source                    | oracle: tests read it                   |
| a test-side source names it                                        | oracle: tests name it                   |
| test-side sources import it, and it holds means of testing         | oracle: a helper of the tests           |

Observation (`ObservedUse`) comes first where there is one: names in sources are only a substitute. A module of the
package that tests import is usually what they test, so it is oracle only if it holds what only tests need: assertions,
fixtures, tolerances, test cases.

Data that lies outside of the tests is oracle only if the change edits source too: else the data is what it is about.
Everything else is product. A helper that both use is product too, but a change of how it compares is shown.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from posixpath import basename, dirname, normpath
from typing import Final

from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.protected import ProtectedRole, find_roles
from proofstone.common.models import Finding, Severity


class OracleReason(StrEnum):
    """Why a file decides what tests expect."""

    TESTS = "it holds tests"
    PLACE = "its path belongs to the tests"
    RUNNER = "it decides how tests run"
    COMMAND = "a command that proves the change runs it"
    OPENED = "the tests read it"
    NAMED = "the tests name it"
    HELPER = "it is a helper that only tests import"


class SourceUse(StrEnum):
    """How a source uses another file."""

    IMPORTS = "imports"
    NAMES = "names"


@dataclass(frozen=True)
class ObservedUse:
    """What was seen while the base's tests ran: files by their paths in the repository."""

    opened_by_tests: frozenset[str] = frozenset()
    opened_by_product: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OracleFacts:
    """What is known about the base, as far as it concerns the changed files."""

    test_files: Set[str] = frozenset()
    """Files of which the base's report has tests."""
    in_commands: Set[str] = frozenset()
    """Files that a command which proves something names, and what they call."""
    test_uses: Mapping[str, Set[SourceUse]] = field(default_factory=dict)
    """Changed file → how test-side sources use it."""
    product_uses: Mapping[str, Set[SourceUse]] = field(default_factory=dict)
    """Changed file → how sources of the product use it."""
    helpers: Set[str] = frozenset()
    """Changed files that hold means of testing."""
    observed: ObservedUse | None = None


def is_test_side(path: str, test_files: Set[str] = frozenset()) -> bool:
    """Return whether a file belongs to the tests by its path or by what the report says."""
    return path in test_files or bool(find_roles(path) & {ProtectedRole.TESTS, ProtectedRole.RUNNER})


def find_reason(path: str, roles: Set[ProtectedRole], facts: OracleFacts) -> OracleReason | None:
    """Return why a changed file is oracle; None if it is product. `roles` are those that the change touched."""
    if path in facts.test_files:
        return OracleReason.TESTS
    if ProtectedRole.RUNNER in roles:
        return OracleReason.RUNNER
    if ProtectedRole.TESTS in roles:
        return OracleReason.PLACE
    if path in facts.in_commands:
        return OracleReason.COMMAND
    if facts.product_uses.get(path) or (facts.observed and path in facts.observed.opened_by_product):
        return None
    if facts.observed and path in facts.observed.opened_by_tests and not is_source(path):
        return OracleReason.OPENED
    uses = facts.test_uses.get(path, frozenset())
    if path in facts.helpers:
        return OracleReason.HELPER if SourceUse.IMPORTS in uses else None
    return OracleReason.NAMED if SourceUse.NAMES in uses else None


def is_shared_helper(path: str, facts: OracleFacts) -> bool:
    """Return whether tests and product both import a module that holds means of testing."""
    both = (facts.test_uses.get(path, frozenset()), facts.product_uses.get(path, frozenset()))
    return path in facts.helpers and all(SourceUse.IMPORTS in uses for uses in both)


_SOURCES: Final = (".py", ".pyi", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_INDEX_NAMES: Final = frozenset(("__init__", "index", "__main__"))
_NEVER_NAMED: Final = re.compile(r"(?:^|/)(?:readme|changelog|changes|history|license|authors)\b[^/]*$", re.IGNORECASE)
_DECLARATIONS: Final = frozenset(
    ("pyproject.toml", "setup.cfg", "setup.py", "package.json", "package-lock.json", "tox.ini", "cargo.toml", "go.mod")
)


def is_source(path: str) -> bool:
    """Return whether other sources can import a file."""
    return path.endswith(_SOURCES)


def may_be_named(path: str) -> bool:
    """Return whether a file can be oracle because a test names it: data, and not documents about the project."""
    name = basename(path).lower()
    return not is_source(path) and name not in _DECLARATIONS and not _NEVER_NAMED.search(path)


def find_uses(text: str, path: str, user: str) -> frozenset[SourceUse]:
    """Return how a source text uses a file. `user` is the path of the source."""
    uses = set[SourceUse]()
    if is_source(path):
        if _imports(text, path, user):
            uses.add(SourceUse.IMPORTS)
    elif _names(text, path, user):
        uses.add(SourceUse.NAMES)
    return frozenset(uses)


def _imports(text: str, path: str, user: str) -> bool:
    stem = basename(path).partition(".")[0]
    name = basename(dirname(path)) if stem in _INDEX_NAMES else stem
    if not name or name not in text:
        return False
    word = re.escape(name)
    if path.endswith((".py", ".pyi")):
        return user.endswith((".py", ".pyi")) and _imports_python(text, path, user, word)
    pattern = rf"""(?:from|import|require)\s*\(?\s*['"](?:[^'"]*/)?{word}(?:\.\w+)?(?:/index(?:\.\w+)?)?['"]"""
    return re.search(pattern, text) is not None


_IMPORT: Final = re.compile(
    r"^[ \t]*(?:>>> )?(?:from\s+(?P<base>[.\w]+)\s+)?import\s+(?P<names>\([^)]*\)|[^\n]*)", re.M
)


def _imports_python(text: str, path: str, user: str, word: str) -> bool:
    """Return whether a Python source imports the module, by its full name or relative to its own package."""
    parts = path.removesuffix(".pyi").removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    for match in _IMPORT.finditer(text):
        base, names = match["base"] or "", match["names"]
        imported = [part.split()[0] for part in re.split(r"[,()\s]*,[,()\s]*|[()]", names) if part.strip(" ()\n\t\\")]
        prefix = base if not base or base.endswith(".") else f"{base}."
        targets = [f"{prefix}{target}" for target in imported]
        if any(_means(target, parts, user) for target in (base, *targets)):
            return True
    plugins = re.findall(r"""['"]([A-Za-z_][\w.]*)['"]""", text) if "pytest_plugins" in text else []
    dynamic = re.findall(rf"""import_module\(\s*['"]([\w.]*\b{word})['"]""", text)
    return any(_means(target, parts, user) for target in (*plugins, *dynamic))


def _means(target: str, parts: Sequence[str], user: str) -> bool:
    """Return whether a dotted name, as a source at `user` writes it, can mean the module at this path."""
    if not target:
        return False
    if target.startswith("."):
        level = len(target) - len(target.lstrip("."))
        package = user.split("/")[:-level]
        return [*package, *filter(None, target.lstrip(".").split("."))] == list(parts)
    wanted = target.split(".")
    if len(wanted) > len(parts) or list(parts[-len(wanted) :]) != wanted:
        return False
    # Test runners and scripts search the folder of the file that they run, and tests those above it.
    is_beside = wanted[0] not in sys.stdlib_module_names and user.startswith(
        "".join(f"{part}/" for part in parts[: -len(wanted)])
    )
    return is_beside or len(wanted) >= _min_parts(parts)


def _min_parts(parts: Sequence[str]) -> int:
    """Return how many parts of a module's name an absolute import needs at least: all below the source folder."""
    return len(parts) - 1 if parts[:1] in (["src"], ["lib"]) else min(len(parts), 2) if len(parts) > 1 else 1


def _names(text: str, path: str, user: str) -> bool:
    """Return whether a source holds the file's name as a text, or the name of its folder if a pattern is read there."""
    name, folder = basename(path), basename(dirname(path))
    if re.search(rf"""['"`/]{re.escape(name)}['"`]""", text):
        return True
    if not folder or dirname(path) == dirname(user) or not re.search(rf"""['"`/]{re.escape(folder)}[/'"`]""", text):
        return False
    suffix = re.escape(name.rpartition(".")[2]) if "." in name else ""
    has_pattern = bool(suffix) and re.search(rf"""\*\.{suffix}|['"`]\.{suffix}['"`]|\}}\.{suffix}['"`]""", text)
    stem = re.escape(name.partition(".")[0])
    return bool(has_pattern) or re.search(rf"""['"`]{stem}['"`]""", text) is not None


_MEANS: Final = re.compile(
    r"^[ \t]*@(?:pytest\.)?(?:fixture|hookimpl)\b"
    r"|^[ \t]*(?:import|from)[ \t]+(?:pytest|unittest|hypothesis|numpy\.testing|factory|faker)\b"
    r"|^[ \t]*(?:async[ \t]+)?def[ \t]+assert\w*"
    r"|^[ \t]*class[ \t]+\w*TestCase\b"
    r"|(?:from|require\()\s*['\"](?:node:assert|assert|chai|vitest|@jest/globals|node:test)\b"
    r"|export\s+(?:default\s+)?(?:async\s+)?(?:function|const)\s+assert\w*",
    re.MULTILINE,
)
"""What only tests need, in Python and JavaScript: fixtures, a test framework, assertions of one's own."""
_HELPER_NAME: Final = re.compile(
    r"(?:^|[/_.-])(?:testing|testutils?|testhelpers?|testkit|testlib|test[-_](?:utils?|helpers?|support|tools?|lib|kit)"
    r"|fixtures?|factories|factory|golden|goldens|expected|expectations?|test[-_]?cases|cases|samples|tolerances?"
    r"|comparisons?|compare|approx|almost|asserts?|assertions?|fakes?|stubs?|mocks?|pytest[-_]?plugin)(?:/|\.\w+$)",
    re.IGNORECASE,
)
"""Names that modules have which only tests need. Product code may have them too, and is then imported by product, or
has tests of its own."""


def is_named_as_helper(path: str) -> bool:
    """Return whether a source has a name of modules that only tests need."""
    return is_source(path) and _HELPER_NAME.search(path) is not None


def is_helper(path: str, text: str, test_paths: Iterable[str]) -> bool:
    """Return whether a source outside of the tests may be a helper of them: by its name, or because it holds what only
    tests need. A module that has a test file of its own is what that file tests."""
    if not is_source(path) or not (is_named_as_helper(path) or _MEANS.search(text)):
        return False
    stem = re.sub(r"\W", "_", basename(path).partition(".")[0].lower())
    own = {f"test_{stem}", f"{stem}_test", f"test{stem}", f"{stem}_spec", f"test_{stem.lstrip('_')}"}
    return not any(_stem_of_test(test) in own for test in test_paths)


def _stem_of_test(path: str) -> str:
    name = basename(path).lower()
    return re.sub(r"\W", "_", re.sub(r"\.[mc]?[jt]sx?$|\.py$", "", name))


_CHECKS_BY_NAME: Final = re.compile(
    r"(?:^|[/_.-])(?:verify|verification|check|checks|checker|test|tests|smoke|selftest|validate|acceptance|golden|ci"
    r"|expect|e2e|compare|assert)(?:[/_.-]|$)",
    re.IGNORECASE,
)
_SHELL_CHECK: Final = re.compile(
    r"^\s*(?:\[\[? |test |diff |cmp |grep )|\|\| *exit\b|&& *exit\b|\| *(?:grep|diff|cmp) |= *\"?\$\(", re.MULTILINE
)
_PYTHON_CHECK: Final = re.compile(r"^\s*assert\b|\bassert\w*\(", re.MULTILINE)
_STARTS_PROGRAMS: Final = re.compile(r"\bsubprocess\b|\bos\.system\(|\brunpy\b|\bchild_process\b")
_TOP_IMPORT: Final = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)
_WORD: Final = re.compile(r"[\w.@%+/-]+")
_MAX_DEPTH: Final = 4


def find_command_files(commands: Iterable[str], paths: Set[str], read: Callable[[str], str | None]) -> frozenset[str]:
    """Return the files of a tree that commands name, and what these scripts name in turn. `read` returns the text of a
    file of the tree; None if it has none. A program or a file that the command examines is no part of it: only what
    checks is, by its name or by what it says, and data that is named after what is expected."""
    found: dict[str, None] = {}
    texts = [(command, "") for command in commands]
    for _ in range(_MAX_DEPTH):
        named = [path for text, folder in texts for path in _list_named(text, folder, paths) if path not in found]
        found |= dict.fromkeys(named)
        scripts = [(path, text) for path in named if (text := read(path)) is not None]
        texts = [(text, dirname(path)) for path, text in scripts if not is_source(path) or _is_check(path, text, paths)]
    return frozenset(path for path in found if _EXPECTED_NAME.search(path) or _is_check(path, read(path) or "", paths))


_EXPECTED_NAME: Final = re.compile(
    r"(?:^|[/_.-])(?:expect(?:ed|ations?)?|goldens?|snapshots?|snap|baselines?|reference|approved|fixtures?|cases)"
    r"(?:[/_.-]|$)",
    re.IGNORECASE,
)


def _is_check(path: str, text: str, paths: Set[str]) -> bool:
    """Return whether a script examines something else. A program that asserts something about itself does not."""
    if _CHECKS_BY_NAME.search(path):
        return True
    if not is_source(path):
        return _SHELL_CHECK.search(text) is not None
    modules = {name for module in _TOP_IMPORT.findall(text) for name in (f"{module}.py", f"{module}/__init__.py")}
    examines = _STARTS_PROGRAMS.search(text) or any(name in paths or f"src/{name}" in paths for name in modules)
    return bool(examines) and _PYTHON_CHECK.search(text) is not None


def _list_named(text: str, folder: str, paths: Set[str]) -> Iterator[str]:
    """Yield the paths that a text names: as they are in the repository, or beside the script that holds the text."""
    for word in dict.fromkeys(_WORD.findall(text)):
        plain = normpath(word)
        module = plain.replace(".", "/")
        names = (plain, f"{module}.py", f"{module}/__main__.py") if "/" not in plain else (plain,)
        for name in names:
            for path in dict.fromkeys((name, f"{folder}/{name}" if folder else name)):
                if path in paths:
                    yield path


_COMPARISON: Final = re.compile(
    r"toleranc|epsilon|abs_tol|rel_tol|\batol\b|\brtol\b|isclose|is_close|almost|approx|\bround\(|assert|__eq__",
    re.IGNORECASE,
)


def find_shared_comparisons(
    path: str, added_lines: Iterable[tuple[int, str]], removed_lines: Iterable[str]
) -> Finding | None:
    """Return the finding about changed comparisons in a helper that tests and product both import."""
    before = [line.strip() for line in removed_lines if _COMPARISON.search(line)]
    after = [(number, line.strip()) for number, line in added_lines if _COMPARISON.search(line)]
    if not before and not after:
        return None
    return Finding(
        layer=EvidenceLayer.PROTECTED_FILES,
        rule="shared-comparison",
        severity=Severity.MINOR,
        path=path,
        line=after[0][0] if after else None,
        detail=f"{path}: tests and product both import it, so the tests cannot be run with the base's version, and the "
        "change edits how it compares",
        fix="keep what tests compare with apart from the product",
        before="\n".join(before[:6]),
        after="\n".join(line for _, line in after[:6]),
    )
