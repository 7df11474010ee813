"""Tier 3: where nothing else executes the project, the changed files are at least loaded."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename

from proofstone.contracts.check import CheckKind, CheckSpec

_IMPORT = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
_NODE = 'for file; do node --check "$file" || exit 1; done'  # node takes one file at a time
_NOT_MODULES = ("setup.py", "conftest.py", "noxfile.py", "tasks.py")


def load_check(paths: Sequence[str]) -> tuple[CheckSpec, ...]:
    """Checks that load the changed files; none where no changed file can be loaded by itself."""
    modules = sorted({name for path in paths if (name := module_name(path))})
    scripts = [path for path in paths if path.endswith((".js", ".mjs", ".cjs"))]
    specs: list[CheckSpec] = []
    if modules:
        specs.append(
            CheckSpec(
                name="import:python",
                kind=CheckKind.IMPORT,
                tier=3,
                tool="python:python",
                argv=("{python}", "-c", _IMPORT, *modules),
                env={"PYTHONPATH": "src:."},
                required=False,
                evidence="the changed files themselves",
            )
        )
    if scripts:
        specs.append(
            CheckSpec(
                name="load:node",
                kind=CheckKind.SMOKE,
                tier=3,
                tool="node",
                argv=("sh", "-c", _NODE, "sh", *scripts),
                required=False,
                evidence="the changed files themselves",
                install="install Node.js",
            )
        )
    return tuple(specs)


def module_name(path: str) -> str | None:
    """The module that a Python file is, when it can be imported by name from the root or from `src`."""
    parts = path.removeprefix("src/").removesuffix(".py").split("/")
    if not path.endswith(".py") or basename(path) in _NOT_MODULES or not all(part.isidentifier() for part in parts):
        return None
    if parts[-1] in ("__main__",) or any(part in ("tests", "test") or part.startswith("test_") for part in parts):
        return None
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or None
