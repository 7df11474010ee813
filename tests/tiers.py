"""Which tests are pure: they, and the helpers that they import, test only the pure modules of the source.

    python -m tests.tiers        prints their files, for `make test-fast`

Pure modules are rules and models, which have no clock, files, processes or network (`pyproject.toml`, import-linter). A
test module is pure by what it imports, so nobody has to keep a list. In a fast run, a test that starts a program after
all fails.
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
_IMPURE_MODULES: Final = frozenset({"multiprocessing", "socket", "sqlite3", "subprocess"})
_PURE_SOURCE: Final = re.compile(
    r"proofstone\.(?:.*\.)?(?:rules|models)(?:\..*)?|proofstone\.(?:common|documents|plans|errors|solve\.simulation)(?:\..*)?"
)
_USES_FILES: Final = re.compile(r"\btmp_path\b|\bneeds\(")
_SLOW: Final = frozenset({"tests/fuzz/test_readers.py", "tests/testing/test_model_server.py"})
"""Pure, but long: they stay out of the fast run."""
_FORBIDDEN_EVENTS: Final = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "sqlite3.connect"})


def list_pure_files() -> list[str]:
    """Return the test modules of the pure tier, as paths from the root of the repository."""
    names = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py")))
    return [name for name in names if name not in _SLOW and is_pure(name)]


@cache
def is_pure(name: str) -> bool:
    """Return whether a module of the tests, and every module of the tests that it imports, is pure."""
    text = (ROOT / name).read_text(encoding="utf-8")
    imported = set(_list_imports(text))
    if _USES_FILES.search(text) or any(module.partition(".")[0] in _IMPURE_MODULES for module in imported):
        return False
    if any(module.startswith("proofstone") and not _PURE_SOURCE.fullmatch(module) for module in imported):
        return False
    helpers = (f"{module.replace('.', '/')}.py" for module in imported if module.startswith("tests."))
    return all(is_pure(helper) for helper in helpers if helper != name and (ROOT / helper).is_file())


def _list_imports(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if node.module in ("proofstone", "tests") else (node.module, *names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


class Guard:
    """Lets a test fail that starts a program or opens a database, while `is_on`."""

    def __init__(self) -> None:
        self.is_on = False
        sys.addaudithook(self._refuse)

    def _refuse(self, event: str, _arguments: object) -> None:
        if self.is_on and event in _FORBIDDEN_EVENTS:
            raise AssertionError(f"a test of the pure tier must not do this: {event}")


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}\n" for name in list_pure_files()))
