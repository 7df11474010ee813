"""The outline of a source file: its functions, the parts that do not run, and its imports.

Offsets are bytes of `text`. A line belongs to the innermost function that covers all of it. Code outside of functions
runs when the file is loaded.

`outline_python` uses Python's own parser.
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

from proofstone.sources.text import PythonText, TextEdit, detect_newline, insert_edit

ANONYMOUS: Final = ""
SABOTAGE_MESSAGE: Final = "sabotaged by Proofstone's sensitivity check"

_PUNCTUATION = b"()[]{},;"
"""Characters that only close or continue code on other lines."""
_NOT_NEWLINE = re.compile(rb"[^\r\n]")


@dataclass(frozen=True)
class FunctionOutline:
    """A function and how to make it raise."""

    name: tuple[str, ...]
    """The name with the classes and functions around it; `ANONYMOUS` for those without a name."""
    start: int
    end: int
    """The range includes decorators, and the name that the function is assigned to."""
    edits: tuple[TextEdit, ...]
    """Edits that make the function raise as soon as it runs; empty if that is impossible."""

    @property
    def has_name(self) -> bool:
        return ANONYMOUS not in self.name


@dataclass(frozen=True)
class CodeLine:
    """A line with code that runs. Its text has no comments, so that only code is compared."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True)
class SourceOutline:
    """The outline of one source file."""

    text: bytes
    functions: tuple[FunctionOutline, ...]
    silent_ranges: tuple[tuple[int, int], ...]
    """Comments, docstrings, types, and lists of imports and exports. They are compared by meaning or not at all."""
    load_edits: tuple[TextEdit, ...]
    """Edits that make loading the file raise; empty if the language does not support that."""
    imports: frozenset[tuple[str, str]] = frozenset()
    """Source and local name of each import. An import without a name is there for its side effects."""
    exports: frozenset[str] = frozenset()
    uses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Offsets at which imported names are used."""
    is_indented: bool = False
    """Whether indentation is significant."""

    @cached_property
    def lines(self) -> tuple[CodeLine, ...]:
        return tuple(self._lines())

    def _lines(self) -> Iterator[CodeLine]:
        code_text = bytearray(self.text)
        for start, end in self.silent_ranges:
            code_text[start:end] = _NOT_NEWLINE.sub(b" ", bytes(code_text[start:end]))
        offset = 0
        for raw in bytes(code_text).splitlines(keepends=True):
            code = raw.strip()
            if code.strip(_PUNCTUATION + b" \t"):
                start = offset + raw.index(code)
                end = start + len(code.rstrip(_PUNCTUATION + b" \t"))
                yield CodeLine(start, end, raw.rstrip() if self.is_indented else code)
            offset += len(raw)

    def find_owner(self, start: int, end: int) -> FunctionOutline | None:
        """Return the innermost function that covers these bytes: the last of those that begin before them."""
        count = bisect_right(self._sorted_functions, start, key=lambda function: function.start)
        return next((function for function in reversed(self._sorted_functions[:count]) if end <= function.end), None)

    @cached_property
    def _sorted_functions(self) -> list[FunctionOutline]:
        return sorted(self.functions, key=lambda function: (function.start, -function.end))

    def find_owner_after(self, line: CodeLine) -> FunctionOutline | None:
        """Return the innermost function that continues after this line."""
        newline = self.text.find(b"\n", line.end)
        return self.find_owner(line.end, newline + 1) if newline >= 0 else None

    def is_silent(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.silent_ranges)


# BaseException, so that `except Exception` does not hide it.
_RAISE = f'raise BaseException("{SABOTAGE_MESSAGE}")'.encode()
_EXPRESSION = f'(_ for _ in ()).throw(BaseException("{SABOTAGE_MESSAGE}"))'.encode()

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def outline_python(source: PythonText) -> SourceOutline:
    module = source.tree
    imports = [stmt for stmt in module.body if isinstance(stmt, ast.Import | ast.ImportFrom)]
    return SourceOutline(
        text=source.data,
        functions=tuple(_find_functions(source, module.body, ())),
        silent_ranges=(
            *source.comments,
            *((_find_start(source, stmt_node), source.end(stmt_node)) for stmt_node in _find_silent(module)),
        ),
        load_edits=_build_raise_edits(source, module.body),
        imports=frozenset(pair for stmt in imports for pair in _list_imports(stmt)),
        uses=_find_uses(source),
        is_indented=True,
    )


def _find_functions(
    source: PythonText, body: Sequence[ast.AST], scope: tuple[str, ...], *, in_function: bool = False
) -> Iterator[FunctionOutline]:
    for stmt in body:
        if isinstance(stmt, _Definition):
            name = (*scope, stmt.name)
            yield FunctionOutline(
                name, _find_start(source, stmt), source.end(stmt), _build_raise_edits(source, stmt.body)
            )
            yield from _find_functions(source, stmt.body, name, in_function=True)
        elif isinstance(stmt, ast.ClassDef):
            yield from _find_functions(source, stmt.body, (*scope, stmt.name), in_function=in_function)
        elif isinstance(stmt, ast.Assign | ast.AnnAssign) and isinstance(stmt.value, ast.Lambda) and not in_function:
            value = stmt.value.body
            edit = TextEdit(source.start(value), source.end(value), _EXPRESSION)
            yield FunctionOutline((*scope, _target_name(stmt)), source.start(stmt), source.end(stmt), (edit,))
        else:
            blocks = (ast.stmt, ast.excepthandler, ast.match_case)
            inner = [child for child in ast.iter_child_nodes(stmt) if isinstance(child, blocks)]
            yield from _find_functions(source, inner, scope, in_function=in_function)


def _target_name(stmt: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(stmt.targets[0] if isinstance(stmt, ast.Assign) else stmt.target)


def _build_raise_edits(source: PythonText, body: Sequence[ast.stmt]) -> tuple[TextEdit, ...]:
    """Make the body raise first. The rest stays behind that, so that a generator stays one; a docstring stays first."""
    first = next((stmt for stmt in body if not _must_come_first(stmt, body)), None)
    if first is None:
        return (insert_edit(source.end(body[-1]), b"; " + _RAISE),) if body else ()
    if not isinstance(first, ast.Match) and not hasattr(first, "body"):
        return (insert_edit(source.start(first), _RAISE + b"; "),)
    start = _find_start(source, first)
    line = source.data.rfind(b"\n", 0, start) + 1
    return (insert_edit(start, _RAISE + detect_newline(source.data) + source.data[line:start]),)


def _must_come_first(stmt: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    return (stmt is body[0] and _is_docstring(stmt)) or _is_future(stmt)


def _find_start(source: PythonText, stmt: ast.stmt) -> int:
    """Return where a statement begins. Decorators come before the position that `ast` reports."""
    decorators = getattr(stmt, "decorator_list", [])
    return source.data.rfind(b"@", 0, source.start(decorators[0])) if decorators else source.start(stmt)


def _is_docstring(stmt: ast.AST) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)


def _is_future(stmt: ast.AST) -> bool:
    return isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"


def _find_silent(module: ast.Module) -> Iterator[ast.stmt]:
    """Return statements that do nothing when they run, or whose effect is compared by name."""
    for node in ast.walk(module):
        is_typing_only = (
            isinstance(node, ast.If) and not node.orelse and _expression_names(node.test) & {"TYPE_CHECKING"}
        )
        is_overload = isinstance(node, _Definition) and any(
            _expression_names(decorator) & {"overload"} for decorator in node.decorator_list
        )
        if isinstance(node, ast.stmt) and (_is_docstring(node) or is_typing_only or is_overload):
            yield node
    for stmt in module.body:
        if isinstance(stmt, ast.Import | ast.ImportFrom) or (
            isinstance(stmt, ast.Assign) and any(_expression_names(target) & {"__all__"} for target in stmt.targets)
        ):
            yield stmt


def _expression_names(expression: ast.expr) -> set[str]:
    if isinstance(expression, ast.Name):
        return {expression.id}
    return {expression.attr} if isinstance(expression, ast.Attribute) else set()


def _list_imports(stmt: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    if _is_future(stmt):
        return
    origin = "." * stmt.level + (stmt.module or "") if isinstance(stmt, ast.ImportFrom) else ""
    for alias in stmt.names:
        yield f"{origin} {alias.name}", alias.asname or alias.name.partition(".")[0]


def _find_uses(source: PythonText) -> dict[str, tuple[int, ...]]:
    offsets: defaultdict[str, list[int]] = defaultdict(list)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name):
            offsets[node.id].append(source.start(node))
    return {name: tuple(positions) for name, positions in offsets.items()}
