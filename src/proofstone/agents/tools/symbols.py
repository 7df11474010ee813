"""The `symbols` tool: the outline of a source file, and where a name is defined, with tree-sitter's grammars.

The grammars agree on most names of nodes, so one table serves all languages. A file that does not parse completely (an
unfinished edit, a dialect) is shown as far as it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from proofstone.agents.rules.tool_rules import (
    ToolFailedError,
    ToolRefusedError,
    append_notes,
    format_path,
    invalid_arguments_error,
)
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.models import MAX_MATCHES, SymbolsArguments, Tool
from proofstone.agents.tools.tool_context import ToolDeadline
from proofstone.agents.tools.tree import UNFINISHED, FileTooLargeError, FileTree, PathNames, TreeWalk
from proofstone.common.text import pluralize
from proofstone.sources.syntax import detect_language
from proofstone.sources.text import parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


_MAX_FILE_BYTES: Final = 512 << 10
_MAX_OUTLINED: Final = 1000

_DATA_LANGUAGES: Final = frozenset({"json", "toml", "yaml"})
_EXTRA_LANGUAGES: Final[dict[str, str]] = {
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
    ".cs": "csharp",
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    ".swift": "swift",
    ".scala": "scala",
    **dict.fromkeys((".sh", ".bash"), "bash"),
    **dict.fromkeys((".d.ts", ".d.mts", ".d.cts"), "typescript"),
}
"""Languages whose grammar is not reliable enough to find errors, but good enough to find names."""

_KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "function_definition", "function_declaration", "function_item", "function_signature_item",
            "generator_function_declaration", "function_signature", "method_definition", "method_declaration", "method",
            "singleton_method", "constructor_declaration", "method_signature", "abstract_method_signature",
            "method_elem", "protocol_function_declaration", "local_function_statement",
        ),
        "function",
    ),
    **dict.fromkeys(
        ("class_definition", "class_declaration", "abstract_class_declaration", "class_specifier", "class"), "class"
    ),
    **dict.fromkeys(("struct_item", "struct_specifier", "struct_declaration", "union_specifier"), "struct"),
    **dict.fromkeys(("enum_item", "enum_specifier", "enum_declaration", "enum_definition"), "enum"),
    **dict.fromkeys(("interface_declaration", "protocol_declaration"), "interface"),
    **dict.fromkeys(("trait_item", "trait_definition", "trait_declaration"), "trait"),
    **dict.fromkeys(("record_declaration",), "record"),
    **dict.fromkeys(("object_definition", "object_declaration"), "object"),
    **dict.fromkeys(("type_spec", "type_alias", "type_alias_declaration", "type_item", "type_definition"), "type"),
    **dict.fromkeys(
        ("module", "mod_item", "namespace_definition", "namespace_declaration", "internal_module"), "module"
    ),
    "impl_item": "impl",
    **dict.fromkeys(("macro_definition", "preproc_function_def", "preproc_def"), "macro"),
    **dict.fromkeys(
        ("const_item", "static_item", "const_spec", "var_spec", "variable_declarator", "assignment"), "value"
    ),
}  # fmt: skip
_NAME_FIELDS: Final = ("name", "declarator", "left", "pattern", "type")
_IDENTIFIERS: Final = frozenset({"simple_identifier", "type_identifier", "identifier"})


@dataclass(frozen=True)
class Definition:
    """A class, function or other definition in a source file."""

    kind: str
    name: tuple[str, ...]
    """The name, after the names of what it is defined in."""
    first_line: int
    last_line: int
    header: str = ""
    """The source up to the body or the value, without comments and line breaks."""
    receiver: str = ""
    """The type that a Go method belongs to."""
    is_exported: bool = False
    """Whether the definition is marked as exported."""

    @property
    def line_range(self) -> str:
        return f"{self.first_line}-{self.last_line}" if self.last_line > self.first_line else str(self.first_line)

    def has_name(self, wanted: tuple[str, ...]) -> bool:
        qualified = (*self.name[:-1], self.receiver, self.name[-1]) if self.receiver else self.name
        return self.name[-len(wanted) :] == wanted or qualified[-len(wanted) :] == wanted


def show_symbols(tree: FileTree, wanted: SymbolsArguments, deadline: ToolDeadline) -> str:
    if wanted.name:
        return _find_definitions(tree, wanted, deadline)
    if not wanted.path:
        raise invalid_arguments_error(Tool.SYMBOLS, "Give the `path` of a source file, or a `name` to look for.")
    names = tree.require_readable(wanted.path)
    if tree.get_entry(names).is_folder:
        raise ToolFailedError(
            f"{format_path(wanted.path)} is a folder. Name a file, or give a `name` to look for in it."
        )
    content = tree.read(names, _MAX_FILE_BYTES)
    language = find_language("/".join(names), content)
    if language is None:
        raise ToolFailedError(
            f"{format_path(wanted.path)} is in a language that cannot be outlined; use `read` or `grep`."
        )
    outline = list(parse_definitions(content, language))
    lines = [
        f"{definition.line_range}\t{'  ' * (len(definition.name) - 1)}{definition.kind} {definition.name[-1]}"
        for definition in outline[:_MAX_OUTLINED]
    ]
    note = (
        f"not shown: {pluralize(len(outline) - _MAX_OUTLINED, 'further definition')}"
        if len(outline) > _MAX_OUTLINED
        else ""
    )
    return append_notes(lines or ["It defines nothing."], [note])


def _find_definitions(tree: FileTree, wanted: SymbolsArguments, deadline: ToolDeadline) -> str:
    name = tuple(wanted.name.replace("::", ".").split("."))
    walk = TreeWalk(tree, tree.require_readable(wanted.path), deadline)
    places: list[str] = []
    for path, content in _find_sources(tree, walk, name[-1].encode()):
        language = find_language(path, content)
        if language is None:
            continue
        matching = (definition for definition in parse_definitions(content, language) if definition.has_name(name))
        places += (
            f"{format_path(path)}:{definition.line_range}: {definition.kind} {'.'.join(definition.name)}"
            for definition in matching
        )
        if len(places) > MAX_MATCHES:
            walk.skipped.append(f"more than {MAX_MATCHES} definitions: use `path`, or a name such as `Class.method`")
            break
    nothing = UNFINISHED if walk.is_stopped else f"Nothing called {format_path(wanted.name)} is defined."
    return append_notes(places[:MAX_MATCHES] or [nothing], walk.skipped)


def _find_sources(tree: FileTree, walk: TreeWalk, name: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files in which the name occurs: only these are worth parsing."""
    for entry in walk:
        if not entry.is_file or tree.is_secret(entry.path):
            continue
        content = _read_source(tree, entry.names, walk)
        if name in content and not is_binary(content):
            yield entry.path, content


def _read_source(tree: FileTree, names: PathNames, walk: TreeWalk) -> bytes:
    try:
        return tree.read(names, _MAX_FILE_BYTES)
    except ToolRefusedError:
        walk.skipped.append(f"skipped because it may hold secrets: {format_path('/'.join(names))}")
    except FileTooLargeError:
        if find_language("/".join(names), b""):
            walk.skipped.append(f"too large to be searched: {format_path('/'.join(names))}")
    except OSError as error:
        walk.skipped.append(f"skipped: {format_path('/'.join(names))}: {error.strerror}")
    return b""


def find_language(path: str, content: bytes) -> str | None:
    """Return the language whose definitions can be found, or None."""
    declared = next((language for suffix, language in _EXTRA_LANGUAGES.items() if path.lower().endswith(suffix)), None)
    language = declared or detect_language(path, content)
    return None if language in _DATA_LANGUAGES else language


def parse_definitions(content: bytes, language: str) -> Iterator[Definition]:
    """Yield the definitions in the order of the file."""
    root = parse_source(content, language)
    if root is None:
        return
    pending: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while pending:
        node, enclosing = pending.pop()
        kind = _KINDS.get(node.type) if node.is_named and node != root else None
        name = _find_name(node) if kind else ""
        # Only values at the top level count: those that a file defines for others.
        if kind and name and not (kind == "value" and enclosing):
            enclosing = (*enclosing, *name.replace("::", ".").split("."))
            yield Definition(
                kind,
                enclosing,
                node.start_point[0] + 1,
                _find_last_line(node),
                header=_extract_header(node, content, kind),
                receiver=_find_receiver(node),
                is_exported=_is_exported(node),
            )
        pending += ((child, enclosing) for child in reversed(node.named_children))


def _find_last_line(node: Node) -> int:
    row, column = node.end_point
    return row + 1 if column or row == node.start_point[0] else row


def _find_name(node: Node) -> str:
    """Return the name, or an empty text if the node only refers to something that is defined elsewhere."""
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return ""
    name_node = next(filter(None, map(node.child_by_field_name, _NAME_FIELDS)), None)
    if name_node is None:
        name_node = next((child for child in node.named_children if child.type in _IDENTIFIERS), None)
    if node.type == "assignment" and name_node is not None and name_node.type != "identifier":
        return ""
    while name_node is not None and (inner := name_node.child_by_field_name("declarator")) is not None:
        name_node = inner  # C: a pointer to a function of that name
    text = ((name_node.text if name_node is not None else None) or b"").decode("utf-8", "replace")
    if node.type == "impl_item":
        text = text.partition("<")[0]  # the functions of `Store<T>` are those of `Store`
    return text if "\n" not in text else ""


def _extract_header(node: Node, content: bytes, kind: str) -> str:
    candidates = (node.child_by_field_name(field) for field in ("value", "right"))
    value = next(filter(None, candidates), None) if kind == "value" else None
    arrow = value.child_by_field_name("body") if value is not None else None
    end = node.child_by_field_name("body") or arrow or value
    stop = end.start_byte if end is not None else node.end_byte
    text = b"".join(_skip_comments(node, content, stop)).decode("utf-8", "replace")
    # A struct in Go has no body of its own: it is a type that is given a name.
    return " ".join((text.partition("{")[0] if node.type == "type_spec" else text).split())


def _skip_comments(node: Node, content: bytes, stop: int) -> Iterator[bytes]:
    position, pending = node.start_byte, [node]
    while pending:
        current = pending.pop()
        if current.start_byte >= stop:
            continue
        if "comment" in current.type:
            yield content[position : current.start_byte] + b" "
            position = current.end_byte
        else:
            pending += reversed(current.children)
    yield content[position:stop]


def _find_receiver(node: Node) -> str:
    """Return the type of a Go receiver: `*Store[T]` is `Store`."""
    receiver = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    pending = [receiver] if receiver is not None else []
    while pending:
        current = pending.pop()
        if current.type == "type_identifier":
            return (current.text or b"").decode("utf-8", "replace")
        pending += reversed(current.named_children)
    return ""


def _is_exported(node: Node) -> bool:
    ancestors = [
        ancestor for ancestor in (node.parent, node.parent.parent if node.parent else None) if ancestor is not None
    ]
    return any(ancestor.type == "export_statement" for ancestor in ancestors)
