"""Outline a file by its tree-sitter grammar: JavaScript, TypeScript, Go and Rust.

The table `LANGUAGES` holds the differences between the languages. A statement in front of a function's body makes it
raise. The body stays, because unused imports, or a return type that can no longer be inferred, would break the build of
everything else.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from proofstone.sources.outline import ANONYMOUS, SABOTAGE_MESSAGE, FunctionOutline, SourceOutline
from proofstone.sources.text import TextEdit, insert_edit, parse_valid

if TYPE_CHECKING:
    from tree_sitter import Node


_Pair = tuple[str, str]


@dataclass(frozen=True)
class OutlineLanguage:
    """How to outline and sabotage one language."""

    raise_statement: bytes
    """A statement that raises. Type checkers and linters that complain about unreachable code accept it."""
    functions: frozenset[str]
    wrappers: frozenset[str]
    """Nodes that give a name to an anonymous function, if they contain nothing but the function."""
    containers: frozenset[str] = frozenset()
    """Other nodes that give their name to the functions in them."""
    silent: frozenset[str] = frozenset()
    introductions: frozenset[str] = frozenset()
    """Nodes before a function or member that belong to it."""
    prologue: frozenset[str] = frozenset()
    """Nodes that must stay at the beginning of a body."""
    runs_on_load: bool = False
    """Whether loading the file runs it."""
    imports: Callable[[Node], Iterator[_Pair] | None] = lambda node: None
    """Returns the names that a statement imports; None if it is no import."""
    exports: Callable[[Node], Iterator[str] | None] = lambda node: None


def outline_by_grammar(text: bytes, name: str) -> SourceOutline | None:
    """Outline a text; return None if it does not parse."""
    language, root = OUTLINE_LANGUAGES[name], parse_valid(text, name)
    if root is None:
        return None
    functions: list[FunctionOutline] = []
    silent: list[tuple[int, int]] = []
    imports: set[_Pair] = set()
    exports: set[str] = set()
    uses: defaultdict[str, list[int]] = defaultdict(list)
    pending: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while pending:
        node, scope = pending.pop()
        is_top_level = node.parent == root
        imported = language.imports(node) if is_top_level else None
        exported = language.exports(node) if is_top_level else None
        if imported is not None or exported is not None:
            imports.update(imported or ())
            exports.update(exported or ())
            silent.append((node.start_byte, node.end_byte))
            continue
        if node.type in language.silent or is_test_only(node):
            statement = node.parent if node.parent and node.parent.type == "export_statement" else node
            silent.append((_find_start(statement, language), statement.end_byte))
        elif node.type in language.functions and (body := node.child_by_field_name("body")):
            wrapper = _find_wrapper(node, language)
            scope = (*scope, _find_name(node, wrapper))
            start = _find_start(wrapper, language)
            functions.append(FunctionOutline(scope, start, wrapper.end_byte, _build_raise_edits(node, body, language)))
        elif node.type in language.containers:
            scope = (*scope, _find_name(node, node))
        if not node.child_count and node.type.endswith("identifier") and node.type not in _PROPERTIES:
            uses[_node_text(node)].append(node.start_byte)
        pending += ((child, scope) for child in node.children)
    return SourceOutline(
        text=text,
        functions=tuple(functions),
        silent_ranges=tuple(silent),
        load_edits=_build_load_edits(root, language) if language.runs_on_load else (),
        imports=frozenset(imports),
        exports=frozenset(exports),
        uses={name: tuple(offsets) for name, offsets in uses.items()},
    )


def _node_text(node: Node | None) -> str:
    return ((node.text if node else None) or b"").decode(errors="replace")


def _find_wrapper(node: Node, language: OutlineLanguage) -> Node:
    """Return the widest statement that only gives the function its name."""
    while (parent := node.parent) is not None and parent.type in language.wrappers:
        is_alone = parent.named_child_count == 1 if parent.type in _LISTS else parent.named_children[-1] == node
        if not is_alone:
            break
        node = parent
    return node


def _find_name(node: Node, wrapper: Node) -> str:
    """Return the function's own name, with the receiver in Go; or the name of the innermost wrapper."""
    own_name = node.child_by_field_name("name") or node.child_by_field_name("type")
    if own_name is not None:
        return _node_text(node.child_by_field_name("receiver")) + _node_text(own_name)
    parent = node.parent
    while node != wrapper and parent is not None:
        for field in ("name", "left", "key", "property"):
            if (name_node := parent.child_by_field_name(field)) is not None:
                return _node_text(name_node)
        node, parent = parent, parent.parent
    return ANONYMOUS


def _find_start(node: Node, language: OutlineLanguage) -> int:
    start, before = node.start_byte, node.prev_sibling
    while before is not None and (before.type in language.introductions or "comment" in before.type):
        if before.type in language.introductions:
            start = before.start_byte
        before = before.prev_sibling
    return start


def _build_raise_edits(node: Node, body: Node, language: OutlineLanguage) -> tuple[TextEdit, ...]:
    if any(child.type == "function_modifiers" and "const" in _node_text(child) for child in node.children):
        return ()  # a constant function may run in the compiler and would break the build
    if node.type == "arrow_function" and body.type != "statement_block":
        start = insert_edit(body.start_byte, b"{ " + language.raise_statement + b" return ")
        return (start, insert_edit(body.end_byte, b" }"))
    offset = body.start_byte + 1
    for child in body.named_children:
        if child.type in language.prologue:
            offset = child.end_byte
    return (insert_edit(offset, b" " + language.raise_statement),)


def _build_load_edits(root: Node, language: OutlineLanguage) -> tuple[TextEdit, ...]:
    for child in root.named_children:
        is_prologue = child.type in _PROLOGUE or (
            child.named_child_count == 1 and child.named_children[0].type == "string"
        )
        if not is_prologue:
            return (insert_edit(child.start_byte, language.raise_statement + b" "),)
    return ()


def is_test_only(node: Node) -> bool:
    """Return whether a node is a unit test in Rust, which has them next to the code."""
    before = node.prev_sibling
    while before is not None and (before.type == "attribute_item" or "comment" in before.type):
        if before.type == "attribute_item" and _TEST_ATTRIBUTE.fullmatch(_node_text(before)):
            return True
        before = before.prev_sibling
    return False


_PROPERTIES: Final = frozenset({"property_identifier", "field_identifier", "private_property_identifier"})
_LISTS: Final = frozenset({"lexical_declaration", "variable_declaration", "expression_list", "var_declaration"})
_PROLOGUE: Final = frozenset({"hash_bang_line", "comment", "import_statement"})
_TEST_ATTRIBUTE: Final = re.compile(r"#\[\s*(?:cfg\(\s*test\s*\)|(?:\w+::)*test(?:\(.*\))?)\s*\]", re.DOTALL)


# Imports and exports


def _javascript_imports(node: Node) -> Iterator[_Pair] | None:
    if node.type == "import_statement":
        return _import_names(node)
    if node.type in ("lexical_declaration", "variable_declaration") and all(
        map(_find_required_source, node.named_children)
    ):
        return (
            (_find_required_source(child), name)
            for child in node.named_children
            for name in _bound_names(child.named_children[0])
        )
    return None


def _import_names(node: Node) -> Iterator[_Pair]:
    if any(child.type == "type" for child in node.children):
        return
    source = _node_text(node.child_by_field_name("source"))
    names = [name for child in node.named_children if child.type == "import_clause" for name in _bound_names(child)]
    yield from ((source, name) for name in names or [""])


def _bound_names(node: Node) -> Iterator[str]:
    """Return the names that a pattern or an import clause binds."""
    if node.type == "import_specifier":
        if not any(child.type == "type" for child in node.children):
            yield _node_text(node.child_by_field_name("alias") or node.child_by_field_name("name"))
    elif node.type == "pair_pattern":
        yield from _bound_names(node.named_children[-1])
    elif node.type in ("identifier", "shorthand_property_identifier_pattern"):
        yield _node_text(node)
    else:
        for child in node.named_children:
            yield from _bound_names(child)


def _find_required_source(declarator: Node) -> str:
    """Return the source of a declaration `x = require(source)`; empty for any other."""
    value = declarator.child_by_field_name("value")
    if (
        value is None
        or value.type != "call_expression"
        or _node_text(value.child_by_field_name("function")) != "require"
    ):
        return ""
    return _node_text(value.child_by_field_name("arguments"))


def _javascript_exports(node: Node) -> Iterator[str] | None:
    if node.type == "export_statement" and node.child_by_field_name("source") is None:
        clause = next((child for child in node.named_children if child.type == "export_clause"), None)
        return (
            (_node_text(specifier.child_by_field_name("name")) for specifier in clause.named_children)
            if clause
            else None
        )
    if node.type != "expression_statement" or node.named_children[0].type != "assignment_expression":
        return None
    left, right = (node.named_children[0].child_by_field_name(side) for side in ("left", "right"))
    if left is None or right is None or not _EXPORTS.match(_node_text(left)):
        return None
    if right.type == "identifier":
        return iter([_node_text(right)])
    names = [child for child in right.named_children if child.type == "shorthand_property_identifier"]
    is_plain_list = right.type == "object" and names and len(names) == right.named_child_count
    return map(_node_text, names) if is_plain_list else None


_EXPORTS: Final = re.compile(r"(?:module\.)?exports\b")


def _go_imports(node: Node) -> Iterator[_Pair] | None:
    if node.type != "import_declaration":
        return None
    specs = [
        spec_node
        for child in node.named_children
        for spec_node in (child, *child.named_children)
        if spec_node.type == "import_spec"
    ]
    return (
        (path, _node_text(spec.child_by_field_name("name")) or _package_name(path))
        for spec in specs
        for path in [_node_text(spec.child_by_field_name("path"))]
    )


def _package_name(path: str) -> str:
    """Return the likely name of a package: the last part of its path that is not a version."""
    parts = [part for part in path.strip('"`').split("/") if not re.fullmatch(r"v\d+", part)]
    return parts[-1].partition(".")[0] if parts else ""


def _rust_imports(node: Node) -> Iterator[_Pair] | None:
    return _use_names(node, "") if node.type == "use_declaration" else None


def _use_names(node: Node, path: str) -> Iterator[_Pair]:
    path += _node_text(node.child_by_field_name("path"))
    if node.type == "use_wildcard":
        yield _node_text(node), ""
    elif node.type in ("identifier", "self"):
        yield path, _node_text(node)
    elif node.type == "use_as_clause":
        yield path, _node_text(node.child_by_field_name("alias"))
    else:
        path_node = node.child_by_field_name("path")
        for child in node.named_children:
            if child != path_node:
                yield from _use_names(child, path)


# Languages

_JAVASCRIPT: Final = OutlineLanguage(
    # Not plain `throw`: a compiler that refuses unreachable code would refuse the file.
    raise_statement=f'if (typeof 1 === "number") throw new Error("{SABOTAGE_MESSAGE}");'.encode(),
    functions=frozenset(
        {
            "function_declaration",
            "generator_function_declaration",
            "function_expression",
            "generator_function",
            "arrow_function",
            "method_definition",
        }
    ),
    wrappers=frozenset(
        {
            "variable_declarator",
            "lexical_declaration",
            "variable_declaration",
            "assignment_expression",
            "expression_statement",
            "pair",
            "field_definition",
            "public_field_definition",
            "export_statement",
        }
    ),
    containers=frozenset({"class_declaration", "class", "abstract_class_declaration"}),
    silent=frozenset(
        {
            "comment",
            "interface_declaration",
            "type_alias_declaration",
            "ambient_declaration",
            "function_signature",
            "method_signature",
            "abstract_method_signature",
        }
    ),
    introductions=frozenset({"decorator"}),
    runs_on_load=True,
    imports=_javascript_imports,
    exports=_javascript_exports,
)

OUTLINE_LANGUAGES: Final[dict[str, OutlineLanguage]] = {
    **dict.fromkeys(("javascript", "typescript", "tsx"), _JAVASCRIPT),
    "go": OutlineLanguage(
        raise_statement=f'panic("{SABOTAGE_MESSAGE}");'.encode(),
        functions=frozenset({"function_declaration", "method_declaration", "func_literal"}),
        wrappers=frozenset({"expression_list", "var_spec", "var_declaration"}),
        silent=frozenset({"comment", "package_clause"}),
        imports=_go_imports,
    ),
    "rust": OutlineLanguage(
        raise_statement=f'if true {{ panic!("{SABOTAGE_MESSAGE}"); }}'.encode(),
        functions=frozenset({"function_item"}),
        wrappers=frozenset(),
        containers=frozenset({"impl_item", "mod_item", "trait_item"}),
        silent=frozenset({"line_comment", "block_comment"}),
        introductions=frozenset({"attribute_item"}),
        prologue=frozenset({"inner_attribute_item"}),
        imports=_rust_imports,
    ),
}
