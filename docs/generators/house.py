"""Measures the layout and the vocabulary of the source. Run `python docs/check.py` to compare with the limits."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from generators.page import ROOT, table

SOURCE = ROOT / "src"
PACKAGE = "proofstone"

# Past participles that do not end in -ed, and words in -ed or -ing that are nouns or verbs.
_IRREGULAR_WORDS = """
told met held kept seen heard sent made given taken begun shown written known said done gone come came felt lost meant
paid spoken stood taught thought understood won drawn driven fallen forgotten hidden chosen broken built bought
brought caught dealt fed fought frozen got grown laid led lent thrown torn spent stolen struck withdrawn overridden
undone outgrown borne proven learnt spelt
"""
_IRREGULAR = frozenset(_IRREGULAR_WORDS.split())
_NOT_A_PARTICIPLE_WORDS = """
need seed feed speed embed exceed proceed succeed shed bed hundred string thing nothing something anything everything
ring king spring bring during setting settings warning timing rating building meaning heading encoding listing mapping
binding padding spacing
"""
_NOT_A_PARTICIPLE = frozenset(_NOT_A_PARTICIPLE_WORDS.split())


class Limit(NamedTuple):
    what: str
    most: float
    unit: str = ""


LIMITS: Mapping[str, Limit] = {
    "files": Limit("files", 660),
    "lines": Limit("lines", 135_000),
    "participles": Limit("functions, methods and classes whose name begins with a participle", 3, " %"),
    "ones": Limit("loop variables called `one`", 0),
    "classes": Limit("class names that exist more than once", 7),
    "basenames": Limit("file names that exist in several folders (besides those that every feature has)", 58),
    "cycles": Limit("import cycles", 0),
    "check": Limit("folders that `proofstone check` imports from", 24),
    "run": Limit("folders that `proofstone run` imports from", 50),
}
SHARED_BASENAMES = frozenset({"__init__.py", "models.py", "rules.py", "run.py", "effects.py", "view.py", "context.py"})


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    text: str
    tree: ast.Module


@cache
def modules() -> Mapping[str, Module]:
    """Return every module of the package by its dotted name. Probes run in other interpreters and are left out."""
    found = {}
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        relative = path.relative_to(SOURCE)
        if "probes" in relative.parts:
            continue
        name = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, path, text, ast.parse(text))
    return found


def begins_with_participle(name: str) -> bool:
    """Tell whether the first word of a name is a past or present participle."""
    first = name.strip("_").split("_")[0]
    word = re.sub(r"(?<=[a-z0-9])[A-Z].*", "", first).lower()
    if word in _NOT_A_PARTICIPLE:
        return False
    return word in _IRREGULAR or (word.endswith("ed") and len(word) > 3) or (word.endswith("ing") and len(word) > 4)


@cache
def measure() -> Mapping[str, float]:
    """Return each figure of the source under the key of its limit."""
    definitions = list(_definitions())
    participles = sum(begins_with_participle(node.name) for node in definitions)
    classes = Counter(node.name for node in definitions if isinstance(node, ast.ClassDef))
    basenames = Counter(module.path.name for module in modules().values())
    repeated = [name for name, count in basenames.items() if count > 1 and name not in SHARED_BASENAMES]
    return {
        "files": len(modules()),
        "lines": sum(module.text.count("\n") for module in modules().values()),
        "participles": round(100 * participles / len(definitions), 1),
        "ones": sum(name == "one" for name in _loop_variables()),
        "classes": sum(count > 1 for count in classes.values()),
        "basenames": len(repeated),
        "cycles": len(import_cycles()),
        "check": len(_folders_behind("proofstone.cli.check")),
        "run": len(_folders_behind("proofstone.cli.run")),
    }


def metrics() -> str:
    """Return the figures as a table. Files and lines are rounded, so that not every change renews the page."""
    figures = dict(measure())
    figures["files"] = round(figures["files"], -1)
    figures["lines"] = round(figures["lines"], -3)
    rows = [
        (limit.what, f"{figures[key]:g}{limit.unit}", f"{limit.most:g}{limit.unit}") for key, limit in LIMITS.items()
    ]
    return table(("measure", "now", "at most"), rows)


def exceeded() -> Iterator[str]:
    """Yield a problem for each figure that is above its limit."""
    for key, figure in measure().items():
        if figure > LIMITS[key].most:
            yield f"src: {LIMITS[key].what}: {figure:g} is more than {LIMITS[key].most:g} (docs/generators/house.py)"


def _definitions() -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node


def _loop_variables() -> Iterator[str]:
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.For | ast.comprehension):
                yield from (name.id for name in ast.walk(node.target) if isinstance(name, ast.Name))


@cache
def _imports(name: str, *, lazy: bool) -> frozenset[str]:
    """Return the modules of the package that a module imports; with `lazy`, also those inside functions."""
    found: set[str] = set()
    pending: list[ast.AST] = [modules()[name].tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {_module_of(f"{node.module}.{alias.name}") or _module_of(node.module) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {_module_of(alias.name) for alias in node.names}
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (lazy or not inside) and not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            pending.extend(ast.iter_child_nodes(node))
    return frozenset(found - {"", name})


def _module_of(name: str) -> str:
    return name if name in modules() else ""


def import_cycles() -> list[list[str]]:
    """Return groups of modules that import each other when they are loaded (Tarjan's algorithm)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(name: str) -> None:
        numbers[name] = lowest[name] = len(numbers)
        stack.append(name)
        for other in _imports(name, lazy=False):
            if other not in numbers:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == numbers[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                cycles.append(sorted(group))

    for name in modules():
        if name not in numbers:
            visit(name)
    return cycles


def _folders_behind(name: str) -> set[Path]:
    """Return the folders of all modules that a module imports, directly or not."""
    seen: set[str] = set()
    pending: list[str] = [name]
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            pending.extend(_imports(current, lazy=True))
    return {modules()[module].path.parent for module in seen}
