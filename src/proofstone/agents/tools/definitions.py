"""Whether a name is defined, and where; or whether that cannot be told.

That it is defined is seen by the tool that agents have for it. That it is not is harder to be sure of: the outline
knows functions, types and the values of a file, but no fields, no members of an enumeration, no names that are bound in
a pattern. So nothing is called undefined unless the name either does not occur, or only where it is plainly used:
called, qualified, imported, or inside of a function, in a language whose grammar is sure.

Whether a text stands where somebody says that it does: to the letter, or but for its white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proofstone.agents.rules.tool_rules import RefusedError, secret, shown
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.models import Symbols
from proofstone.agents.tools.symbols import definitions, symbols
from proofstone.agents.tools.tool_context import Deadline
from proofstone.agents.tools.tree import Entry, TooLargeError, Tree, Walk
from proofstone.check.variants.views import views
from proofstone.sources.syntax import language_of, syntax_errors

_FILE_BYTES: Final = 16 << 20
_OUTLINED_BYTES: Final = 512 << 10
"""What the tool takes the time to parse."""
_DATA: Final = frozenset({"json", "toml", "yaml"})
_PROSE: Final = (".md", ".markdown", ".rst", ".adoc", ".txt", ".log", ".csv", ".tsv", ".lock", ".svg", ".xml", ".patch")
"""Files that speak of names and define none: a plan above all, which names what is not there yet."""
_IMPORTS: Final = re.compile(
    r"""^[ \t]* (?: from\b [^\n(]* \bimport\b [ \t]* \( [^)]{0,4000} \)
                  | from\b [^\n]*
                  | import\b [^\n;{(]* (?: \{ [^}]{0,4000} \} [^\n;]* )?
                  | (?:pub [ \t]+)? use\b [^;=]{0,4000} ; )""",
    re.MULTILINE | re.VERBOSE,
)
"""Bounded, so that a file made for it cannot hold up the search."""


@dataclass(frozen=True)
class Defined:
    holds: bool | None
    """None: it cannot be told."""
    where: str
    """Or why not."""


def defined(tree: Tree, name: str, path: str, deadline: Deadline) -> Defined:
    """`path`: a file or folder to stay within; empty: anywhere."""
    parts = name.replace("::", ".").split(".")
    if found := _found(tree, ".".join(parts), path, deadline):
        return Defined(True, found)
    if len(parts) > 1 and (other := _found(tree, parts[-1], path, deadline)):
        return Defined(None, f"{shown(parts[-1])} is defined, though not as {shown(name)}: {other}")
    if doubt := next(_doubts(tree, parts[-1], path, deadline), None):
        return Defined(None, doubt)
    within = f" in {shown(path)}" if path else ""
    return Defined(False, f"nothing called {shown(name)} is defined{within}")


def _found(tree: Tree, name: str, path: str, deadline: Deadline) -> str:
    """The first place; nothing if there is none."""
    first = symbols(tree, Symbols(path=path, name=name), deadline).partition("\n")[0]
    return "" if first == f"Nothing called {shown(name)} is defined." else first


def _doubts(tree: Tree, name: str, path: str, deadline: Deadline) -> Iterator[str]:
    """Why it may be defined all the same: everything that was looked for is looked at again, with less trust."""
    walk = Walk(tree, tree.readable(path), deadline)
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for entry in walk:
        content = _text(tree, entry, walk)
        if not word.search(content.decode("utf-8", "replace")):
            continue
        if entry.at != walk.start and is_prose(entry.path, content):
            continue
        if doubt := _doubt(entry.path, content, name):
            yield f"{shown(name)} occurs in {shown(entry.path)}, {doubt}"
    if walk.left_out:
        yield f"no {shown(name)} is seen, but not all was looked at: {walk.left_out[0]}"


def _text(tree: Tree, entry: Entry, walk: Walk) -> bytes:
    """Empty, if it is none that anybody would look for a definition in."""
    if not entry.file:
        return b""
    try:
        content = _read(tree, entry)
    except RefusedError:
        why = "it may hold secrets"
    except TooLargeError:
        why = "it is too large"
    except OSError as error:
        why = str(error.strerror)
    else:
        return b"" if is_binary(content) else content
    if language_of(entry.path, b"") not in (None, *_DATA):
        walk.left_out.append(f"{shown(entry.path)}: {why}")
    return b""


def _read(tree: Tree, entry: Entry) -> bytes:
    if tree.is_secret(entry.path):
        raise secret(entry.path)
    return tree.read(entry.at, _FILE_BYTES)


def is_prose(path: str, content: bytes) -> bool:
    """Whether a file defines nothing that code could use."""
    return path.lower().endswith(_PROSE) or language_of(path, content) in _DATA


def _doubt(path: str, content: bytes, name: str) -> str:
    """Why it may be defined there after all; nothing if it is plainly not."""
    if len(content) > _OUTLINED_BYTES:
        return "which is too large to be outlined"
    lines, language = views(path, content), language_of(path, content)
    if lines is None or language is None:
        return "and definitions in such a file are not known for sure"
    if syntax_errors(path, content):
        return "which cannot be parsed as a whole"
    code = [line.code for line in lines]
    attribute = re.compile(rf"(?:\b(?:self|this)\.|@){re.escape(name)}\s*(?::[^=\n]*)?=(?!=)")
    bound = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)(?!\s*(?:\(|\.|::))")
    open_code = _IMPORTS.sub("", "\n".join(_outside_functions(code, content, language)))
    if attribute.search("\n".join(code)) or bound.search(open_code):
        return "where it may be a field, a member or one of several names: the outline does not know those"
    return ""


def _outside_functions(code: list[str], content: bytes, language: str) -> Iterator[str]:
    inside: set[int] = set()
    last = 0
    for definition in definitions(content, language):
        if definition.kind == "function":  # what is nested in another has been counted with it
            inside.update(range(max(definition.first, last + 1), definition.last + 1))
            last = max(last, definition.last)
    return ("" if number in inside else line for number, line in enumerate(code, start=1))


class Quoted(Enum):
    NOT = "not"
    EXACTLY = "exactly"
    BUT_FOR_SPACE = "but for its white space"
    """Words are the same; lines were broken or indented in another way."""

    def __bool__(self) -> bool:
        return self is not Quoted.NOT


def quoted(text: str, within: str, beside: str = "") -> Quoted:
    """`beside`: the part of it in which an occurrence does not count."""
    if _count(text, within) > _count(text, beside):
        return Quoted.EXACTLY
    text, within, beside = (" ".join(item.split()) for item in (text, within, beside))
    return Quoted.BUT_FOR_SPACE if _count(text, within) > _count(text, beside) else Quoted.NOT


def _count(text: str, within: str) -> int:
    return within.count(text) if text else 0
