"""The three tiers of the tests. A test module belongs to one by what it and its helpers import: nobody keeps a list.

    pure         rules and models, which have no clock, files, processes or network (`pyproject.toml`, import-linter)
    adapters     one thing of the machine at a time, in this process: git, SQLite, the sandbox, HTTP, a terminal
    end_to_end   `proofstone` itself, started on a repository of a workshop

Each test has its tier as a marker (`pytest -m adapters`). `python -m tests.tiers` prints the files of the pure tier,
for `make test-fast`; `python -m tests.tiers all` prints every file with its tier. In a fast run, a test that starts a
program after all fails.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_IMPURE_MODULES: Final = frozenset({"multiprocessing", "socket", "sqlite3", "subprocess", "tests.needs"})
_PURE_SOURCE: Final = re.compile(
    r"proofstone\.(?:.*\.)?(?:rules|models)(?:\..*)?|proofstone\.(?:common|documents|plans|errors|solve\.simulation)(?:\..*)?"
)
_USES_FILES: Final = re.compile(r"\btmp_path\b")
_STARTERS: Final = frozenset({"tests/forked.py"})
_SLOW: Final = frozenset({"tests/fuzz/test_readers.py", "tests/testing/test_model_server.py"})
"""Pure, but long: they stay out of the fast run."""
_FORBIDDEN_EVENTS: Final = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "sqlite3.connect"})


def list_pure_files() -> list[str]:
    """Return the test modules of the pure tier, as paths from the root of the repository."""
    return [name for name in list_test_files() if name not in _SLOW and is_pure(name)]


def list_test_files() -> list[str]:
    names = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py")))
    return [name for name in names if not name.startswith("tests/fixtures/")]


def find_tier(name: str) -> str:
    """Return the tier of a test module, by its path from the root of the repository."""
    if is_pure(name):
        return "pure"
    return "end_to_end" if _starts_proofstone(name) else "adapters"


@cache
def is_pure(name: str) -> bool:
    """Return whether a module of the tests, and every module of the tests that it imports, is pure."""
    text = (ROOT / name).read_text(encoding="utf-8")
    imported = set(_list_imports(text))
    named = imported | {module.partition(".")[0] for module in imported}
    if _USES_FILES.search(text) or not _IMPURE_MODULES.isdisjoint(named):
        return False
    if any(module.startswith("proofstone") and not _PURE_SOURCE.fullmatch(module) for module in imported):
        return False
    return all(is_pure(helper) for helper in _list_helpers(name))


@cache
def _starts_proofstone(name: str) -> bool:
    """Return whether a module of the tests, or one that it imports, has what starts `proofstone`."""
    return name in _STARTERS or any(_starts_proofstone(helper) for helper in _list_helpers(name))


@cache
def _list_helpers(name: str) -> tuple[str, ...]:
    """Return the other modules of the tests that a module imports."""
    imported = set(_list_imports((ROOT / name).read_text(encoding="utf-8")))
    paths = {f"{module.replace('.', '/')}.py" for module in imported if module.startswith("tests.")}
    return tuple(sorted(path for path in paths if path != name and (ROOT / path).is_file()))


def _list_imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if node.module in ("proofstone", "tests") else (node.module, *names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


class _WithoutTypeImports(ast.NodeTransformer):
    """Leaves out what is imported for annotations alone."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


@cache
def list_imported_files(name: str) -> tuple[str, ...]:
    """Return the files of the source and of the tests that a file imports, with the packages that they are in."""
    found = set()
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    for module in _list_imports(ast.unparse(_WithoutTypeImports().visit(tree))):
        parts = module.split(".")
        place = "src" if parts[0] == "proofstone" else "."
        for count in range(1, len(parts) + 1):
            path = ROOT / place / Path(*parts[:count])
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if parts[0] in ("proofstone", "tests") and file.is_file():
                    found.add(file.relative_to(ROOT).as_posix())
    return tuple(sorted(found))


@cache
def find_imported_files(name: str) -> frozenset[str]:
    """Return all files of the source and of the tests that importing a file can lead to."""
    found: set[str] = set()
    pending = [name]
    while pending:
        for file in list_imported_files(pending.pop()):
            if file not in found:
                found.add(file)
                pending.append(file)
    return frozenset(found)


class Guard:
    """Lets a test fail that starts a program or opens a database, while `is_on`."""

    def __init__(self) -> None:
        self.is_on = False
        sys.addaudithook(self._refuse)

    def _refuse(self, event: str, _arguments: object) -> None:
        if self.is_on and event in _FORBIDDEN_EVENTS:
            raise AssertionError(f"a test of the pure tier must not do this: {event}")


if __name__ == "__main__":
    lines = list_pure_files()
    if sys.argv[1:] == ["all"]:
        lines = [f"{find_tier(name):10} {name}" for name in list_test_files()]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
