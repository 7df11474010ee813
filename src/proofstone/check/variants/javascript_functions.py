"""Find the functions that a JavaScript or TypeScript file exports, and wrap them so that their calls are recorded.

A wrapped function hands itself over to the recorder, `probes/proofstone_recorder.cjs`:

    function total(price, count) { return RECORDER("shop.js", "total", arguments, () => { BODY }) }
    const total = (...given) => RECORDER("shop.js", "total", given, () => (ARROW)(...given))

An arrow function keeps `this`, `arguments` and `super`. Lines keep their numbers. Where no recorder is loaded, the body
is called. Left out: generators, constructors, getters and setters, methods of classes that extend another or
have private members, because their objects cannot be copied, and functions whose body declares one of their parameters
once more, because that would be another variable in the wrapped body.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from proofstone.check.variants.javascript_expectations import read_node_text
from proofstone.sources.syntax import MAX_SOURCE_BYTES, detect_language
from proofstone.sources.text import TextEdit, apply_edits, insert_edit, parse_valid, split_bom

if TYPE_CHECKING:
    from tree_sitter import Node

JAVASCRIPT: Final = ("javascript", "typescript", "tsx")
RECORDER_KEY: Final = "proofstone recorder 8c41d7e2"
"""The name of the symbol under which the recorder is a property of `process`, which all contexts of a runner share."""
_FUNCTIONS: Final = ("function_declaration", "function_expression", "arrow_function", "method_definition")
_CLASSES: Final = ("class_declaration", "class", "abstract_class_declaration")
_IDENTIFIERS: Final = ("identifier", "type_identifier", "shorthand_property_identifier")
_SCOPES: Final = (*_FUNCTIONS, "generator_function", "generator_function_declaration", *_CLASSES)


@dataclass(frozen=True)
class ExportedFunction:
    """A function that other files can call by the name under which it is exported."""

    name: str
    """With its class: `Cart.total`. `default` is the name of a default export, and of the whole of `module.exports`."""
    node: Node
    owner: str = ""
    """The name by which the file itself knows the class, for a method."""


@dataclass(frozen=True)
class RecordedSource:
    """A file whose exported functions are recorded."""

    content: bytes
    names: tuple[str, ...]


def record_functions(path: str, content: bytes, lines: Collection[int]) -> RecordedSource | None:
    """Return the file with the functions wrapped that have one of these lines; None if there is no such function. If a
    line belongs to no exported function, any of them may depend on it, and all are wrapped."""
    language = detect_language(path, content)
    if language not in JAVASCRIPT or path.endswith(".d.ts") or len(content) > MAX_SOURCE_BYTES:
        return None
    mark, text = split_bom(content)
    root = parse_valid(text, language)
    if root is None:
        return None
    functions = [function for function in find_exported_functions(root) if _can_be_wrapped(function.node)]
    chosen = _select_changed(functions, text, lines)
    if not chosen:
        return None
    is_typed = language != "javascript"
    edits = [edit for function in chosen for edit in _wrap(path, function, is_typed=is_typed)]
    wrapped = apply_edits(text, edits)
    if parse_valid(wrapped, language) is None:
        return None
    return RecordedSource(mark + wrapped, tuple(sorted({function.name for function in chosen})))


def _select_changed(functions: list[ExportedFunction], text: bytes, lines: Collection[int]) -> list[ExportedFunction]:
    filled = {number for number, line in enumerate(text.splitlines(), start=1) if line.strip()}
    by_line = {
        line: [each for each in functions if each.node.start_point[0] < line <= each.node.end_point[0] + 1]
        for line in filled.intersection(lines)
    }
    if any(not owners for owners in by_line.values()):
        return functions
    return [each for each in functions if any(each in owners for owners in by_line.values())]


def find_exported_functions(root: Node) -> list[ExportedFunction]:
    """Return the exported functions of a module, and the methods of its exported classes. Each is named once."""
    local = dict(_list_local(root))
    found: dict[int, ExportedFunction] = {}
    for name, node in _list_exports(root):
        local_name = read_node_text(node) if node.type in _IDENTIFIERS else ""
        target = local.get(local_name) if local_name else node
        if target is None:
            continue
        for function in _list_functions(name, target, local_name):
            found.setdefault(function.node.id, function)
    return sorted(found.values(), key=lambda function: function.node.start_byte)


def _list_functions(name: str, node: Node, local_name: str) -> Iterator[ExportedFunction]:
    if node.type in _FUNCTIONS:
        yield ExportedFunction(name, node)
    elif node.type in _CLASSES and _can_be_copied(node) and (body := node.child_by_field_name("body")):
        owner = local_name or read_node_text(node.child_by_field_name("name"))
        for member in body.named_children:
            key = member.child_by_field_name("name")
            if owner and member.type == "method_definition" and key and key.type == "property_identifier":
                yield ExportedFunction(f"{name}.{read_node_text(key)}", member, owner)
    elif node.type == "object":
        for entry_name, value in _list_entries(node):
            yield from (replace(each, name=f"{name}.{each.name}") for each in _list_functions(entry_name, value, ""))


def _can_be_copied(node: Node) -> bool:
    """Return whether the objects of a class hold nothing but their properties."""
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type in ("class_heritage", "private_property_identifier"):
            return False
        pending += current.named_children
    return True


def _list_local(root: Node) -> Iterator[tuple[str, Node]]:
    """Yield the functions and classes that the module's top level names."""
    for statement in root.named_children:
        declaration = statement
        if statement.type == "export_statement":
            declaration = statement.child_by_field_name("declaration") or statement
        yield from _list_declared(declaration)


def _list_declared(declaration: Node) -> Iterator[tuple[str, Node]]:
    if declaration.type in ("function_declaration", *_CLASSES):
        yield read_node_text(declaration.child_by_field_name("name")), declaration
    elif declaration.type in ("lexical_declaration", "variable_declaration"):
        for declarator in declaration.named_children:
            name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
            if name is not None and name.type == "identifier" and value is not None:
                yield read_node_text(name), value


def _list_exports(root: Node) -> Iterator[tuple[str, Node]]:
    """Yield what the module exports by name: an identifier, or the thing itself."""
    for statement in root.named_children:
        if statement.type == "export_statement":
            yield from _list_export_statement(statement)
        elif statement.type == "expression_statement" and statement.named_children:
            yield from _list_assigned(statement.named_children[0])


def _list_export_statement(statement: Node) -> Iterator[tuple[str, Node]]:
    if statement.child_by_field_name("source") is not None:
        return
    is_default = any(child.type == "default" for child in statement.children)
    declaration = statement.child_by_field_name("declaration")
    value = statement.child_by_field_name("value") or declaration
    if is_default:
        if value is not None:
            yield "default", value
    elif declaration is not None:
        yield from _list_declared(declaration)
    for clause in statement.named_children:
        for specifier in clause.named_children if clause.type == "export_clause" else ():
            own = specifier.child_by_field_name("name")
            alias = specifier.child_by_field_name("alias") or own
            if own is not None:
                yield read_node_text(alias), own


def _list_assigned(expression: Node) -> Iterator[tuple[str, Node]]:
    """Yield what an assignment to `module.exports` or `exports.name` exports."""
    value = expression.child_by_field_name("right")
    if expression.type != "assignment_expression" or value is None:
        return
    target = read_node_text(expression.child_by_field_name("left"))
    if value.type == "assignment_expression":  # module.exports = exports = …
        yield from _list_assigned(value)
        value = value.child_by_field_name("right") or value
    if target == "module.exports":
        if value.type == "object":
            yield from _list_entries(value)
        else:
            yield "default", value
        return
    for prefix in ("module.exports.", "exports."):
        if target.startswith(prefix) and "." not in target.removeprefix(prefix):
            yield target.removeprefix(prefix), value
            return


def _list_entries(node: Node) -> Iterator[tuple[str, Node]]:
    for entry in node.named_children:
        if entry.type == "shorthand_property_identifier":
            yield read_node_text(entry), entry
        elif entry.type == "pair":
            key, value = entry.child_by_field_name("key"), entry.child_by_field_name("value")
            if key is not None and key.type == "property_identifier" and value is not None:
                yield read_node_text(key), value
        elif entry.type == "method_definition":
            key = entry.child_by_field_name("name")
            if key is not None and key.type == "property_identifier":
                yield read_node_text(key), entry


# Wrapping


def _can_be_wrapped(node: Node) -> bool:
    body = node.child_by_field_name("body")
    if body is None or read_node_text(node.child_by_field_name("name")) == "constructor":
        return False
    if any(child.type in ("get", "set", "*") for child in node.children):
        return False
    if node.type == "arrow_function":
        return True
    parameters = node.child_by_field_name("parameters")
    return not set(_list_names(parameters)) & set(_list_redeclared(body))


def _list_names(node: Node | None) -> Iterator[str]:
    """Yield all names in the parameters of a function: those that it binds, and those of its defaults."""
    pending = [node] if node is not None else []
    while pending:
        current = pending.pop()
        if current.type in ("identifier", "shorthand_property_identifier_pattern"):
            yield read_node_text(current)
        pending += current.named_children


def _list_redeclared(body: Node) -> Iterator[str]:
    """Yield the names that `var` or a function declaration binds in the body of this function."""
    pending = list(body.named_children)
    while pending:
        current = pending.pop()
        if current.type in ("function_declaration", "generator_function_declaration"):
            yield read_node_text(current.child_by_field_name("name"))
        if current.type == "variable_declarator" and current.parent and current.parent.type == "variable_declaration":
            yield from _list_names(current.child_by_field_name("name"))
        if current.type not in _SCOPES:
            pending += current.named_children


def _wrap(path: str, function: ExportedFunction, *, is_typed: bool) -> tuple[TextEdit, ...]:
    node, process = function.node, "(globalThis as any).process" if is_typed else "globalThis.process"
    recorder = f"({process}[Symbol.for({json.dumps(RECORDER_KEY)})] || ((p, n, g, body) => body()))"
    if is_typed:
        recorder = recorder.replace("(p, n, g, body)", "(p: any, n: any, g: any, body: any)")
    names = f"{json.dumps(path)}, {json.dumps(function.name)}"
    is_async = "async " if any(child.type == "async" for child in node.children) else ""
    if node.type == "arrow_function":
        given = "given_8c41d7e2"
        types = (": any[]", ": any") if is_typed else ("", "")
        before = f"(...{given}{types[0]}){types[1]} => {recorder}({names}, {given}, () => ("
        after = f")(...{given}))"
        if is_typed:
            before, after = f"{before}(", f") as any{after}"
        return insert_edit(node.start_byte, before.encode()), insert_edit(node.end_byte, after.encode())
    body = node.child_by_field_name("body")
    if body is None:
        return ()
    is_static = any(child.type == "static" for child in node.children)
    this = f", this, {function.owner}, {'true' if is_static else 'false'}" if function.owner else ""
    before = f" return {recorder}({names}, arguments, {is_async}() => {{"
    return insert_edit(body.start_byte + 1, before.encode()), insert_edit(body.end_byte - 1, f"}}{this});".encode())
