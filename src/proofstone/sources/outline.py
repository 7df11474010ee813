"""What of a source file runs, and when: its functions, what is said only to people and type checkers, its imports.

Offsets are bytes of `text`. A line belongs to the innermost function that covers all of it; what no function covers
runs when the file is loaded.

The outline of a Python file, by Python's own parser.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from proofstone.sources.text import Edit, PythonText, inserted, newline_of

ANONYMOUS: Final = ""
MESSAGE: Final = "sabotaged by Proofstone's sensitivity check"

_OPEN_OR_CLOSED = b"()[]{},;"
"""Characters that only close or continue what stands on other lines."""
_NOT_NEWLINE = re.compile(rb"[^\r\n]")


@dataclass(frozen=True)
class Function:
    name: tuple[str, ...]
    """With the classes and functions around it; `ANONYMOUS` for those without a name."""
    start: int
    end: int
    """With decorators, and with the name that it is assigned to."""
    edits: tuple[Edit, ...]
    """What makes it raise as soon as it runs; nothing where that cannot be done."""

    @property
    def named(self) -> bool:
        return ANONYMOUS not in self.name


@dataclass(frozen=True)
class Line:
    """A line with something on it that runs. Its text has no comments, so that only code is compared."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True)
class Outline:
    text: bytes
    functions: tuple[Function, ...]
    silent: tuple[tuple[int, int], ...]
    """Comments, docstrings, types, import and export lists: to be compared by meaning or not at all."""
    load: tuple[Edit, ...]
    """What makes loading the file raise; nothing where the language has no such thing."""
    imports: frozenset[tuple[str, str]] = frozenset()
    """Where from, and the name it has here. Without a name the import is there for what it does."""
    exports: frozenset[str] = frozenset()
    uses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Where imported names are used."""
    indented: bool = False
    """Whether indentation means something."""

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return tuple(self._lines())

    def _lines(self) -> Iterator[Line]:
        shown = bytearray(self.text)
        for start, end in self.silent:
            shown[start:end] = _NOT_NEWLINE.sub(b" ", bytes(shown[start:end]))
        at = 0
        for raw in bytes(shown).splitlines(keepends=True):
            code = raw.strip()
            if code.strip(_OPEN_OR_CLOSED + b" \t"):
                start = at + raw.index(code)
                end = start + len(code.rstrip(_OPEN_OR_CLOSED + b" \t"))
                yield Line(start, end, raw.rstrip() if self.indented else code)
            at += len(raw)

    def owner(self, start: int, end: int) -> Function | None:
        """The innermost function that covers these bytes: of those that begin before them, the last one."""
        begun = bisect_right(self._ordered, start, key=lambda one: one.start)
        return next((item for item in reversed(self._ordered[:begun]) if end <= item.end), None)

    @cached_property
    def _ordered(self) -> list[Function]:
        return sorted(self.functions, key=lambda one: (one.start, -one.end))

    def around_end(self, line: Line) -> Function | None:
        """The innermost function that goes on after this line."""
        newline = self.text.find(b"\n", line.end)
        return self.owner(line.end, newline + 1) if newline >= 0 else None

    def is_silent(self, at: int) -> bool:
        return any(start <= at < end for start, end in self.silent)


# BaseException, so that `except Exception` does not hide it.
_RAISE = f'raise BaseException("{MESSAGE}")'.encode()
_EXPRESSION = f'(_ for _ in ()).throw(BaseException("{MESSAGE}"))'.encode()

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def python_outline(source: PythonText) -> Outline:
    module = source.tree
    imports = [stmt for stmt in module.body if isinstance(stmt, ast.Import | ast.ImportFrom)]
    return Outline(
        text=source.data,
        functions=tuple(_functions(source, module.body, ())),
        silent=(*source.comments, *((_first(source, item), source.end(item)) for item in _silent(module))),
        load=_raising(source, module.body),
        imports=frozenset(pair for stmt in imports for pair in _imported(stmt)),
        uses=_uses(source),
        indented=True,
    )


def _functions(
    source: PythonText, body: Sequence[ast.AST], around: tuple[str, ...], *, inside: bool = False
) -> Iterator[Function]:
    for stmt in body:
        if isinstance(stmt, _Definition):
            name = (*around, stmt.name)
            yield Function(name, _first(source, stmt), source.end(stmt), _raising(source, stmt.body))
            yield from _functions(source, stmt.body, name, inside=True)
        elif isinstance(stmt, ast.ClassDef):
            yield from _functions(source, stmt.body, (*around, stmt.name), inside=inside)
        elif isinstance(stmt, ast.Assign | ast.AnnAssign) and isinstance(stmt.value, ast.Lambda) and not inside:
            value = stmt.value.body
            edit = Edit(source.start(value), source.end(value), _EXPRESSION)
            yield Function((*around, _target(stmt)), source.start(stmt), source.end(stmt), (edit,))
        else:
            blocks = (ast.stmt, ast.excepthandler, ast.match_case)
            inner = [child for child in ast.iter_child_nodes(stmt) if isinstance(child, blocks)]
            yield from _functions(source, inner, around, inside=inside)


def _target(stmt: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(stmt.targets[0] if isinstance(stmt, ast.Assign) else stmt.target)


def _raising(source: PythonText, body: Sequence[ast.stmt]) -> tuple[Edit, ...]:
    """The body raises first. It is kept behind that, so that a generator stays one; so is the docstring."""
    first = next((stmt for stmt in body if not _must_come_first(stmt, body)), None)
    if first is None:
        return (inserted(source.end(body[-1]), b"; " + _RAISE),) if body else ()
    if not isinstance(first, ast.Match) and not hasattr(first, "body"):
        return (inserted(source.start(first), _RAISE + b"; "),)
    at = _first(source, first)
    line = source.data.rfind(b"\n", 0, at) + 1
    return (inserted(at, _RAISE + newline_of(source.data) + source.data[line:at]),)


def _must_come_first(stmt: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    return (stmt is body[0] and _is_text(stmt)) or _is_future(stmt)


def _first(source: PythonText, stmt: ast.stmt) -> int:
    """Where a statement begins: decorators stand before what `ast` takes for the beginning."""
    decorators = getattr(stmt, "decorator_list", [])
    return source.data.rfind(b"@", 0, source.start(decorators[0])) if decorators else source.start(stmt)


def _is_text(stmt: ast.AST) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)


def _is_future(stmt: ast.AST) -> bool:
    return isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"


def _silent(module: ast.Module) -> Iterator[ast.stmt]:
    """Statements that do nothing when they run, or whose effect is judged by name."""
    for node in ast.walk(module):
        typing_only = isinstance(node, ast.If) and not node.orelse and _names(node.test) & {"TYPE_CHECKING"}
        overload = isinstance(node, _Definition) and any(_names(item) & {"overload"} for item in node.decorator_list)
        if isinstance(node, ast.stmt) and (_is_text(node) or typing_only or overload):
            yield node
    for stmt in module.body:
        if isinstance(stmt, ast.Import | ast.ImportFrom) or (
            isinstance(stmt, ast.Assign) and any(_names(target) & {"__all__"} for target in stmt.targets)
        ):
            yield stmt


def _names(expression: ast.expr) -> set[str]:
    if isinstance(expression, ast.Name):
        return {expression.id}
    return {expression.attr} if isinstance(expression, ast.Attribute) else set()


def _imported(stmt: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    if _is_future(stmt):
        return
    origin = "." * stmt.level + (stmt.module or "") if isinstance(stmt, ast.ImportFrom) else ""
    for alias in stmt.names:
        yield f"{origin} {alias.name}", alias.asname or alias.name.partition(".")[0]


def _uses(source: PythonText) -> dict[str, tuple[int, ...]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name):
            found[node.id].append(source.start(node))
    return {name: tuple(places) for name, places in found.items()}
