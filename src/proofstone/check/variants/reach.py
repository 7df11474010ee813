"""Find out whether a new test file may change what the tests of other files see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from proofstone.sources.text import parse_python_text

_FUNCTIONS: Final = frozenset(
    ("setattr", "delattr", "exec", "eval", "compile", "__import__", "globals", "vars", "reload")
)
_METHODS: Final = frozenset(("start", "reload"))
_METHODS_OF_MODULES: Final = frozenset(("insert", "append", "extend", "setdefault", "update", "pop", "remove", "clear"))
_OWN: Final = frozenset(("self", "cls"))


def may_affect_other_tests(path: str, content: bytes) -> bool:
    """Return whether a new file of the tests may change anything outside of itself: it assigns to what it imports,
    edits `sys.path`, patches, or runs code that nobody can read. Only Python can be read; any other file is data."""
    if not path.endswith(".py"):
        return False
    source = parse_python_text(content)
    if source is None:
        return True
    imported = {name for node in ast.walk(source.tree) for name in _list_imported(node)}
    shared = imported | {name for node in ast.walk(source.tree) for name in _list_aliases(node, imported)}
    return any(_reaches_out(node, shared, imported) for node in ast.walk(source.tree))


def _list_imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]


def _list_aliases(node: ast.AST, imported: set[str]) -> Iterator[str]:
    """Yield the names that are assigned a part of something imported, such as `m` in `m = sys.modules["shop"]`."""
    if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call) and _root(node.value) in imported:
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id


def _reaches_out(node: ast.AST, shared: set[str], imported: set[str]) -> bool:
    if isinstance(node, ast.Assign | ast.Delete):
        return any(_is_part_of(target, shared) for target in node.targets)
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return _is_part_of(node.target, shared)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in _FUNCTIONS
    if not isinstance(node.func, ast.Attribute):
        return False
    owner = _root(node.func.value)
    return node.func.attr in _METHODS or (node.func.attr in _METHODS_OF_MODULES and owner in imported)


def _is_part_of(target: ast.expr, names: set[str]) -> bool:
    """Return whether an assignment changes a part of something that other files see too."""
    if isinstance(target, ast.Tuple | ast.List):
        return any(_is_part_of(element, names) for element in target.elts)
    return isinstance(target, ast.Attribute | ast.Subscript) and _root(target) in names - _OWN


def _root(expression: ast.expr) -> str:
    """Return the name at the beginning of `name.attribute[key]`; empty if it begins with something else."""
    node = expression
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        return _root(node.func)
    return node.id if isinstance(node, ast.Name) else ""
