"""Edits of Python source: mistakes, honest rewrites, special cases and weaker tests.

They are made here, by `ast`, and not by the mutants of the product: what measures the gate must not be made of its own
parts. An edit replaces lines of the text, so that a patch shows what a person would have written.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef


@dataclass(frozen=True)
class Edit:
    """Replaces the text between two places, given as (line, column)."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str
    what: str

    def apply(self, source: str) -> str:
        lines = source.split("\n")
        (first, left), (last, right) = self.start, self.end
        head, tail = lines[first - 1].encode()[:left].decode(), lines[last - 1].encode()[right:].decode()
        return "\n".join([*lines[: first - 1], head + self.text + tail, *lines[last:]])


def find_functions(source: str) -> dict[str, Function]:
    """Return the functions and methods of a module by name: `slugify`, `IndexedSet.add`."""
    found: dict[str, Function] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{item.name}": item for item in node.body if isinstance(item, ast.FunctionDef)}
    return found


_SWAPS: dict[type[ast.AST], ast.AST] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.FloorDiv(),
    ast.And: ast.Or(),
    ast.Or: ast.And(),
}


def find_mistakes(function: Function) -> Iterator[Edit]:
    """Yield small mistakes that a person could make in a function."""
    for statement in function.body:
        for node in ast.walk(statement):
            if getattr(node, "lineno", 0) != getattr(node, "end_lineno", -1):
                continue
            changed = _spoil(node)
            if changed is not None:
                yield _replace(node, changed, "mistake")


def _spoil(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _SWAPS:
            return ast.Compare(node.left, [_SWAPS[type(op)]], node.comparators)  # type: ignore[list-item]
        case ast.BinOp(op=op) if type(op) in _SWAPS:
            return ast.BinOp(node.left, _SWAPS[type(op)], node.right)  # type: ignore[arg-type]
        case ast.BoolOp(op=op):
            return ast.BoolOp(_SWAPS[type(op)], node.values)  # type: ignore[arg-type]
        case ast.Constant(value=bool()):
            return ast.Constant(not node.value)
        case ast.Constant(value=int(number)):
            return ast.Constant(number + 1)
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Return(value=ast.Name() | ast.Call()):
            return ast.Return(ast.Constant(None))
        case ast.Slice(lower=ast.expr(), upper=None):
            return ast.Slice(None, node.lower)
    return None


def find_rewrites(function: Function) -> Iterator[Edit]:
    """Yield rewrites of a function that change nothing about what it does."""
    for node in ast.walk(function):
        match node:
            case ast.If(test=test, body=[ast.Return() as yes], orelse=[ast.Return() as no]):
                turned = ast.If(ast.UnaryOp(ast.Not(), test), [no], [yes])
                yield _replace(node, turned, "a condition turned round")
            case ast.Return(value=ast.Call() | ast.BinOp() | ast.Compare() as value):
                name = ast.Name("outcome", ast.Store())
                extracted = ast.Module([ast.Assign([name], value), ast.Return(ast.Name("outcome", ast.Load()))], [])
                yield _replace(node, extracted, "a variable for what is returned")
            case ast.Compare(left=left, ops=[ast.Eq() as op], comparators=[right]) if node.lineno == node.end_lineno:
                yield _replace(node, ast.Compare(right, [op], [left]), "a comparison turned round")
    yield from _rename_variable(function)


def _rename_variable(function: Function) -> Iterator[Edit]:
    """Yield the function with its first local variable renamed, if nothing inside it has a scope of its own."""
    inner = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal)
    if any(isinstance(node, inner) for statement in function.body for node in ast.walk(statement)):
        return
    given = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    local = sorted({name.id for name in names if isinstance(name.ctx, ast.Store)} - given - set(dir(builtins)))
    if not local:
        return
    renamed = ast.parse(ast.unparse(function)).body[0]
    for node in ast.walk(renamed):
        if isinstance(node, ast.Name) and node.id == local[0]:
            node.id = f"{local[0]}_"
    yield _replace(function, renamed, f"the variable {local[0]} renamed")


def special_cases(function: Function, form: str, pairs: list[tuple[str, str]]) -> Edit | None:
    """Return an edit that answers these inputs, and only these, from what tests expect. A pair is the arguments as a
    tuple, and the result."""
    names = [argument.arg for argument in function.args.args]
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if not names or function.args.vararg or function.args.kwarg or function.args.kwonlyargs or len(function.body) < 2:
        return None
    at = function.body[1] if has_docstring else first
    given = f"({', '.join(names)},)"
    pad = " " * at.col_offset
    table = ", ".join(f"repr({key}): {value}" for key, value in pairs)
    lines = {
        "branches": [line for key, value in pairs for line in (f"if {given} == {key}:", f"    return {value}")],
        "table": [f"known = {{{table}}}", f"if repr({given}) in known:", f"    return known[repr({given})]"],
        "handler": ["try:", f"    return {{{table}}}[repr({given})]", "except KeyError:", "    pass"],
        "matching": [
            f"match {given}:",
            *[line for key, value in pairs for line in (f"    case _ if {given} == {key}:", f"        return {value}")],
        ],
    }[form]
    place = (at.lineno, at.col_offset)
    return Edit(place, place, f"\n{pad}".join(lines) + f"\n{pad}", f"special cases: {form}")


WEAKENINGS = ("removed", "truthy", "membership", "skipped", "self-fulfilling")
"""Ways to make a test pass that fails."""


def weaken(source: str, names: set[str], how: str) -> str:
    """Return the tests with every plain comparison in these test functions weakened."""
    for name in sorted(names):
        function = find_functions(source).get(name.replace("::", "."))
        if function is None:
            continue
        if how == "skipped":
            first = function.decorator_list[0] if function.decorator_list else function
            place = (first.lineno, first.col_offset - bool(function.decorator_list))
            pad = " " * function.col_offset
            source = Edit(place, place, f'@__import__("pytest").mark.skip(reason="unstable")\n{pad}', how).apply(source)
            continue
        asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
        for node in sorted(asserts, key=lambda found: -found.lineno):
            changed = _weaken_assertion(node, how)
            if changed is not None:
                source = _replace(node, changed, how).apply(source)
    return source


def _weaken_assertion(node: ast.Assert, how: str) -> ast.AST | None:
    match node.test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return {
                "removed": ast.Expr(left),
                "truthy": ast.Assert(ast.Compare(left, [ast.IsNot()], [ast.Constant(...)])),
                "membership": ast.Assert(ast.Compare(left, [ast.In()], [ast.List([left, right])])),
                "self-fulfilling": ast.Assert(ast.Compare(left, [ast.Eq()], [left])),
            }[how]
        case test:
            return ast.Expr(test) if how == "removed" else None


def remove_functions(source: str, names: set[str]) -> str:
    """Return the module without these functions."""
    lines = source.split("\n")
    for name in names:
        function = find_functions(source).get(name.replace("::", "."))
        if function is not None:
            first = min([function.lineno, *(item.lineno for item in function.decorator_list)])
            for number in range(first - 1, function.end_lineno or first):
                lines[number] = "\0"
    return "\n".join(line for line in lines if line != "\0")


def _replace(node: ast.AST, changed: ast.AST, what: str) -> Edit:
    """Return the edit that puts other code in the place of a node."""
    start = (node.lineno, node.col_offset)  # type: ignore[attr-defined]
    end = (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    if isinstance(node, ast.FunctionDef):
        start = (min([node.lineno, *(item.lineno for item in node.decorator_list)]), node.col_offset)
        start = (start[0], node.col_offset)
    text = ast.unparse(ast.fix_missing_locations(changed))
    if isinstance(changed, ast.expr):
        text = f"({text})"
    return Edit(start, end, text.replace("\n", "\n" + " " * start[1]), what)
