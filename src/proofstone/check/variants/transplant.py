"""Put the base's tests that live in a source file into its new version.

Such a file cannot be restored like other tests, because that would undo the change. So the new version is kept, and
only what tests it is as it was: docstrings with examples and test functions in Python, `#[cfg(test)]` modules and
documented examples in Rust.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from doctest import DocTestParser
from typing import TYPE_CHECKING, Final

from proofstone.sources.text import PythonText, TextEdit, apply_edits, insert_edit, parse_python_text, parse_valid

if TYPE_CHECKING:
    from tree_sitter import Node

_EXAMPLE: Final = re.compile(rb"^\s*>>>", re.MULTILINE)
_TEST_NAME: Final = re.compile(r"test", re.IGNORECASE)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def transplant_tests(path: str, old: bytes, new: bytes) -> bytes | None:
    """Return the new version of a source file with the base's tests in it; None if that changes nothing, or if the file
    cannot be read."""
    if path.endswith(".py"):
        return _transplant_python(old, new)
    return _transplant_rust(old, new) if path.endswith(".rs") else None


@dataclass(frozen=True)
class _Part:
    """The text of a test in a source file."""

    start: int
    end: int
    text: bytes


def _transplant_python(old: bytes, new: bytes) -> bytes | None:
    before, after = parse_python_text(old), parse_python_text(new)
    if before is None or after is None:
        return None
    edits = [
        TextEdit(now.start, now.end, then.text)
        for parts in (_find_docstrings, _find_tests)
        for then, now in _pair(dict(parts(before, before.tree, "")), dict(parts(after, after.tree, "")))
    ]
    return after.encode_edited(apply_edits(after.data, edits)) if edits else None


def _pair(before: dict[str, _Part], after: dict[str, _Part]) -> Iterator[tuple[_Part, _Part]]:
    """Yield the parts that both versions have and that say something else."""
    for name, part in before.items():
        if name in after and not _is_kept(part.text, after[name].text):
            yield part, after[name]


def _is_kept(old: bytes, new: bytes) -> bool:
    """Return whether the new text has everything that the old one tests. The prose around examples tests nothing."""
    if old == new:
        return True
    examples, still = _list_examples(old), _list_examples(new)
    return bool(examples) and all(example in still for example in examples)


def _list_examples(text: bytes) -> list[tuple[str, str]]:
    """Return the doctest examples of a docstring, as what is run and what is expected."""
    try:
        examples = DocTestParser().get_examples(text.decode("utf-8", "replace").strip("\"'"))
    except ValueError:
        return []  # an example that doctest itself refuses
    return [(example.source.strip(), example.want.strip()) for example in examples]


def _find_docstrings(source: PythonText, owner: ast.Module | _Definition, name: str) -> Iterator[tuple[str, _Part]]:
    """Yield the docstrings with examples, by the dotted name of what they describe."""
    first = owner.body[0] if owner.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        part = _cut(source, first.value)
        if _EXAMPLE.search(part.text):
            yield name, part
    for child in _find_definitions(owner.body):
        if not _is_test(child):
            yield from _find_docstrings(source, child, f"{name}.{child.name}")


def _find_tests(source: PythonText, owner: ast.Module, name: str) -> Iterator[tuple[str, _Part]]:
    """Yield the test functions and test classes of a module that is no test module."""
    for child in _find_definitions(owner.body):
        if _is_test(child):
            yield child.name, _cut(source, child, *child.decorator_list)


def _find_definitions(body: Sequence[ast.stmt]) -> Iterator[_Definition]:
    for statement in body:
        if isinstance(statement, _Definition):
            yield statement


def _is_test(node: _Definition) -> bool:
    return _TEST_NAME.match(node.name) is not None


def _cut(source: PythonText, node: ast.stmt | ast.expr, *decorators: ast.expr) -> _Part:
    start = min((source.start(decorator) - 1 for decorator in decorators), default=source.start(node))
    end = source.end(node)
    return _Part(start, end, source.data[start:end])


_TEST_ATTRIBUTE: Final = re.compile(rb"cfg\s*\(\s*(?:test\b|all\s*\([^)]*\btest\b)")
_DOC_COMMENT: Final = (b"///", b"//!")


def _transplant_rust(old: bytes, new: bytes) -> bytes | None:
    before, after = parse_valid(old, "rust"), parse_valid(new, "rust")
    if before is None or after is None:
        return None
    then, now = dict(_find_rust_tests(before, old)), dict(_find_rust_tests(after, new))
    edits = [TextEdit(part.start, part.end, past.text) for past, part in _pair(then, now)]
    missing = [part.text for name, part in then.items() if name not in now and name.startswith("mod ")]
    edits += [insert_edit(len(new), b"\n" + b"\n".join(missing) + b"\n")] if missing else []
    return apply_edits(new, edits) if edits else None


def _find_rust_tests(root: Node, content: bytes) -> Iterator[tuple[str, _Part]]:
    """Yield the test modules with their attributes, and the documented examples by the item that they describe."""
    attributes: list[Node] = []
    comments: list[Node] = []
    for node in root.children:
        text = content[node.start_byte : node.end_byte]
        if node.type == "attribute_item":
            attributes.append(node)
            continue
        if node.type == "line_comment" and text.startswith(_DOC_COMMENT):
            comments.append(node)
            continue
        name_node = node.child_by_field_name("name")
        name = name_node.text.decode() if name_node is not None and name_node.text else node.type
        if node.type == "mod_item" and any(
            _TEST_ATTRIBUTE.search(content[attribute.start_byte : attribute.end_byte]) for attribute in attributes
        ):
            yield f"mod {name}", _Part(node.start_byte, node.end_byte, text)
        elif comments and b"```" in content[comments[0].start_byte : comments[-1].end_byte]:
            start, end = comments[0].start_byte, comments[-1].end_byte
            yield f"doc {name}", _Part(start, end, content[start:end])
        if node.type != "line_comment":
            attributes, comments = [], []
