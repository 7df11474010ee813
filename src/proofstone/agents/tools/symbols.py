"""The outline of a source file, and where a name is defined, by tree-sitter's grammars.

The grammars agree on most names of nodes, so one table serves all languages. A file that does not parse as a whole
(an edit half done, a dialect) is shown as far as it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from proofstone.agents.rules.tool_rules import FailedError, RefusedError, invalid, shown, with_notes
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.models import MATCHES, Symbols, Tool
from proofstone.agents.tools.tool_context import Deadline
from proofstone.agents.tools.tree import Names, TooLargeError, Tree, Walk
from proofstone.common.text import counted
from proofstone.sources.syntax import language_of
from proofstone.sources.text import parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


_FILE_BYTES: Final = 512 << 10
_OUTLINED: Final = 1000

_DATA: Final = frozenset({"json", "toml", "yaml"})
_MORE: Final[dict[str, str]] = {
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
    ".cs": "csharp",
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    ".swift": "swift",
    ".scala": "scala",
    **dict.fromkeys((".sh", ".bash"), "bash"),
    **dict.fromkeys((".d.ts", ".d.mts", ".d.cts"), "typescript"),
}
"""Languages whose grammar is not sure enough to find errors by, but good enough to find names."""

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
_NAMED_BY: Final = ("name", "declarator", "left", "pattern", "type")
_IDENTIFIERS: Final = frozenset({"simple_identifier", "type_identifier", "identifier"})


@dataclass(frozen=True)
class Definition:
    kind: str
    name: tuple[str, ...]
    """With what it is defined in."""
    first: int
    last: int
    header: str = ""
    """As it stands there up to its body or its value, without comments and line breaks."""
    receiver: str = ""
    """Of a method in Go: the type that it is a method of."""
    exported: bool = False
    """It is said in front of it that other files may import it."""

    @property
    def lines(self) -> str:
        return f"{self.first}-{self.last}" if self.last > self.first else str(self.first)

    def is_called(self, wanted: tuple[str, ...]) -> bool:
        owned = (*self.name[:-1], self.receiver, self.name[-1]) if self.receiver else self.name
        return self.name[-len(wanted) :] == wanted or owned[-len(wanted) :] == wanted


def symbols(tree: Tree, wanted: Symbols, deadline: Deadline) -> str:
    if wanted.name:
        return _defined(tree, wanted, deadline)
    if not wanted.path:
        raise invalid(Tool.SYMBOLS, "Give the `path` of a source file, or a `name` to look for.")
    at = tree.readable(wanted.path)
    if tree.entry(at).folder:
        raise FailedError(f"{shown(wanted.path)} is a folder. Name a file, or give a `name` to look for in it.")
    content = tree.read(at, _FILE_BYTES)
    language = outlined_language("/".join(at), content)
    if language is None:
        raise FailedError(f"{shown(wanted.path)} is in no language that can be outlined here; use `read` or `grep`.")
    found = list(definitions(content, language))
    lines = [f"{item.lines}\t{'  ' * (len(item.name) - 1)}{item.kind} {item.name[-1]}" for item in found[:_OUTLINED]]
    more = f"not shown: {counted(len(found) - _OUTLINED, 'further definition')}" if len(found) > _OUTLINED else ""
    return with_notes(lines or ["It defines nothing."], [more])


def _defined(tree: Tree, wanted: Symbols, deadline: Deadline) -> str:
    name = tuple(wanted.name.replace("::", ".").split("."))
    walk = Walk(tree, tree.readable(wanted.path), deadline)
    found: list[str] = []
    for path, content in _sources(tree, walk, name[-1].encode()):
        language = outlined_language(path, content)
        if language is None:
            continue
        called = (definition for definition in definitions(content, language) if definition.is_called(name))
        found += (f"{shown(path)}:{item.lines}: {item.kind} {'.'.join(item.name)}" for item in called)
        if len(found) > MATCHES:
            walk.left_out.append(f"more than {MATCHES} definitions: use `path`, or a name such as `Class.method`")
            break
    return with_notes(found[:MATCHES] or [f"Nothing called {shown(wanted.name)} is defined."], walk.left_out)


def _sources(tree: Tree, walk: Walk, name: bytes) -> Iterator[tuple[str, bytes]]:
    """The files in which the name occurs: only they are worth parsing."""
    for entry in walk:
        if not entry.file or tree.is_secret(entry.path):
            continue
        content = _content(tree, entry.at, walk)
        if name in content and not is_binary(content):
            yield entry.path, content


def _content(tree: Tree, at: Names, walk: Walk) -> bytes:
    try:
        return tree.read(at, _FILE_BYTES)
    except RefusedError:
        walk.left_out.append(f"not looked into, for it may hold secrets: {shown('/'.join(at))}")
    except TooLargeError:
        if outlined_language("/".join(at), b""):
            walk.left_out.append(f"too large to be looked into: {shown('/'.join(at))}")
    except OSError as error:
        walk.left_out.append(f"not looked into: {shown('/'.join(at))}: {error.strerror}")
    return b""


def outlined_language(path: str, content: bytes) -> str | None:
    """The language whose definitions are found; None: none that is known."""
    declared = next((language for suffix, language in _MORE.items() if path.lower().endswith(suffix)), None)
    known = declared or language_of(path, content)
    return None if known in _DATA else known


def definitions(content: bytes, language: str) -> Iterator[Definition]:
    """In the order of the file."""
    root = parse_source(content, language)
    if root is None:
        return
    waiting: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while waiting:
        node, around = waiting.pop()
        kind = _KINDS.get(node.type) if node.is_named and node != root else None
        name = _name(node) if kind else ""
        # Of values only those count that a file defines for others.
        if kind and name and not (kind == "value" and around):
            around = (*around, *name.replace("::", ".").split("."))
            yield Definition(
                kind,
                around,
                node.start_point[0] + 1,
                _last_line(node),
                header=_header(node, content, kind),
                receiver=_receiver(node),
                exported=_is_exported(node),
            )
        waiting += ((child, around) for child in reversed(node.named_children))


def _last_line(node: Node) -> int:
    row, column = node.end_point
    return row + 1 if column or row == node.start_point[0] else row


def _name(node: Node) -> str:
    """What it is called; nothing if it only mentions what is defined elsewhere."""
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return ""
    given = next(filter(None, map(node.child_by_field_name, _NAMED_BY)), None)
    if given is None:
        given = next((child for child in node.named_children if child.type in _IDENTIFIERS), None)
    if node.type == "assignment" and given is not None and given.type != "identifier":
        return ""
    while given is not None and (inner := given.child_by_field_name("declarator")) is not None:
        given = inner  # C: a pointer to a function of that name
    text = ((given.text if given is not None else None) or b"").decode("utf-8", "replace")
    if node.type == "impl_item":
        text = text.partition("<")[0]  # of `Store<T>` too the functions are those of `Store`
    return text if "\n" not in text else ""


def _header(node: Node, content: bytes, kind: str) -> str:
    given = (node.child_by_field_name(field) for field in ("value", "right"))
    value = next(filter(None, given), None) if kind == "value" else None
    arrow = value.child_by_field_name("body") if value is not None else None
    end = node.child_by_field_name("body") or arrow or value
    stop = end.start_byte if end is not None else node.end_byte
    text = b"".join(_without_comments(node, content, stop)).decode("utf-8", "replace")
    # A structure in Go has no body of its own: it is the type that is given a name.
    return " ".join((text.partition("{")[0] if node.type == "type_spec" else text).split())


def _without_comments(node: Node, content: bytes, stop: int) -> Iterator[bytes]:
    at, waiting = node.start_byte, [node]
    while waiting:
        one = waiting.pop()
        if one.start_byte >= stop:
            continue
        if "comment" in one.type:
            yield content[at : one.start_byte] + b" "
            at = one.end_byte
        else:
            waiting += reversed(one.children)
    yield content[at:stop]


def _receiver(node: Node) -> str:
    """`*Store[T]` as `Store`."""
    given = node.child_by_field_name("receiver") if node.type == "method_declaration" else None
    waiting = [given] if given is not None else []
    while waiting:
        one = waiting.pop()
        if one.type == "type_identifier":
            return (one.text or b"").decode("utf-8", "replace")
        waiting += reversed(one.named_children)
    return ""


def _is_exported(node: Node) -> bool:
    around = [item for item in (node.parent, node.parent.parent if node.parent else None) if item is not None]
    return any(item.type == "export_statement" for item in around)
