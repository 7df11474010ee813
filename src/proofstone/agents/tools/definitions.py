"""Check whether a name is defined, and whether a text occurs where somebody claims it does.

The `symbols` tool finds definitions. It is harder to be sure that a name is not defined: the outline contains
functions, types and the top-level values of a file, but no fields, no members of an enumeration, and no names that a
pattern binds. So a name counts as undefined only if it does not occur, or occurs only where it is clearly used: called,
qualified, imported, or inside a function, in a language with a reliable grammar.

A text may occur exactly, or with different white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proofstone.agents.rules.tool_rules import ToolRefusedError, format_path, secret_file_error
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.models import SymbolsArguments
from proofstone.agents.tools.symbols import parse_definitions, show_symbols
from proofstone.agents.tools.tool_context import ToolDeadline
from proofstone.agents.tools.tree import UNFINISHED, FileTooLargeError, FileTree, TreeEntry, TreeWalk
from proofstone.check.variants.views import split_views
from proofstone.sources.syntax import detect_language, find_syntax_errors

_MAX_FILE_BYTES: Final = 16 << 20
_MAX_OUTLINED_BYTES: Final = 512 << 10
"""The largest file that the tool parses."""
_DATA_LANGUAGES: Final = frozenset({"json", "toml", "yaml"})
_PROSE_SUFFIXES: Final = (
    ".md",
    ".markdown",
    ".rst",
    ".adoc",
    ".txt",
    ".log",
    ".csv",
    ".tsv",
    ".lock",
    ".svg",
    ".xml",
    ".patch",
)
"""Files that mention names and define none: above all a plan, which names what does not exist yet."""
_IMPORTS: Final = re.compile(
    r"""^[ \t]* (?: from\b [^\n(]* \bimport\b [ \t]* \( [^)]{0,4000} \)
                  | from\b [^\n]*
                  | import\b [^\n;{(]* (?: \{ [^}]{0,4000} \} [^\n;]* )?
                  | (?:pub [ \t]+)? use\b [^;=]{0,4000} ; )""",
    re.MULTILINE | re.VERBOSE,
)
"""The repetitions are bounded, so that a malicious file cannot slow down the search."""


@dataclass(frozen=True)
class DefinitionCheck:
    """Whether a name is defined, and where."""

    holds: bool | None
    """None: unknown."""
    where: str
    """Where it is defined, or why it is not or may not be."""


def check_definition(tree: FileTree, name: str, path: str, deadline: ToolDeadline) -> DefinitionCheck:
    """Check whether a name is defined. `path` limits the search to a file or folder; empty: no limit."""
    parts = name.replace("::", ".").split(".")
    if location := _find_definition(tree, ".".join(parts), path, deadline):
        return DefinitionCheck(None if location == UNFINISHED else True, location)
    if len(parts) > 1 and (other_location := _find_definition(tree, parts[-1], path, deadline)):
        if other_location == UNFINISHED:
            return DefinitionCheck(None, UNFINISHED)
        return DefinitionCheck(
            None, f"{format_path(parts[-1])} is defined, though not as {format_path(name)}: {other_location}"
        )
    if reason := next(_find_doubts(tree, parts[-1], path, deadline), None):
        return DefinitionCheck(None, reason)
    within = f" in {format_path(path)}" if path else ""
    return DefinitionCheck(False, f"nothing called {format_path(name)} is defined{within}")


def _find_definition(tree: FileTree, name: str, path: str, deadline: ToolDeadline) -> str:
    """Return the first location, an empty text, or UNFINISHED if there was no time to look everywhere."""
    first = show_symbols(tree, SymbolsArguments(path=path, name=name), deadline).partition("\n")[0]
    return "" if first == f"Nothing called {format_path(name)} is defined." else first


def _find_doubts(tree: FileTree, name: str, path: str, deadline: ToolDeadline) -> Iterator[str]:
    """Yield why the name may be defined after all: all files are searched again, with less trust in the outline."""
    walk = TreeWalk(tree, tree.require_readable(path), deadline)
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for entry in walk:
        content = _read_text(tree, entry, walk)
        if not word.search(content.decode("utf-8", "replace")):
            continue
        if entry.names != walk.start and is_prose(entry.path, content):
            continue
        if reason := _explain_doubt(entry.path, content, name):
            yield f"{format_path(name)} occurs in {format_path(entry.path)}, {reason}"
    if walk.skipped:
        yield f"{format_path(name)} was not found, but not everything was searched: {walk.skipped[0]}"


def _read_text(tree: FileTree, entry: TreeEntry, walk: TreeWalk) -> bytes:
    """Return the content, or nothing if the file cannot contain a definition."""
    if not entry.is_file:
        return b""
    try:
        content = _read_allowed(tree, entry)
    except ToolRefusedError:
        why = "it may hold secrets"
    except FileTooLargeError:
        why = "it is too large"
    except OSError as error:
        why = str(error.strerror)
    else:
        return b"" if is_binary(content) else content
    if detect_language(entry.path, b"") not in (None, *_DATA_LANGUAGES):
        walk.skipped.append(f"{format_path(entry.path)}: {why}")
    return b""


def _read_allowed(tree: FileTree, entry: TreeEntry) -> bytes:
    if tree.is_secret(entry.path):
        raise secret_file_error(entry.path)
    return tree.read(entry.names, _MAX_FILE_BYTES)


def is_prose(path: str, content: bytes) -> bool:
    """Return whether a file defines nothing that code could use."""
    return path.lower().endswith(_PROSE_SUFFIXES) or detect_language(path, content) in _DATA_LANGUAGES


def _explain_doubt(path: str, content: bytes, name: str) -> str:
    """Return why the name may be defined in the file after all, or an empty text if it is clearly not."""
    if len(content) > _MAX_OUTLINED_BYTES:
        return "which is too large to be outlined"
    lines, language = split_views(path, content), detect_language(path, content)
    if lines is None or language is None:
        return "and definitions in such a file cannot be found reliably"
    if find_syntax_errors(path, content):
        return "which cannot be parsed completely"
    code = [line.code for line in lines]
    attribute = re.compile(rf"(?:\b(?:self|this)\.|@){re.escape(name)}\s*(?::[^=\n]*)?=(?!=)")
    bare_name = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)(?!\s*(?:\(|\.|::))")
    top_level_code = _IMPORTS.sub("", "\n".join(_blank_functions(code, content, language)))
    if attribute.search("\n".join(code)) or bare_name.search(top_level_code):
        return "where it may be a field, a member or one of several names, which the outline does not contain"
    return ""


def _blank_functions(code: list[str], content: bytes, language: str) -> Iterator[str]:
    function_lines: set[int] = set()
    last = 0
    for definition in parse_definitions(content, language):
        if definition.kind == "function":  # a nested function has been counted with the outer one
            function_lines.update(range(max(definition.first_line, last + 1), definition.last_line + 1))
            last = max(last, definition.last_line)
    return ("" if number in function_lines else line for number, line in enumerate(code, start=1))


class QuoteMatch(Enum):
    """How a text occurs in another."""

    NOT = "not"
    EXACTLY = "exactly"
    BUT_FOR_SPACE = "but for its white space"
    """The words are the same, but lines are broken or indented differently."""

    def __bool__(self) -> bool:
        return self is not QuoteMatch.NOT


def match_quote(text: str, within: str, beside: str = "") -> QuoteMatch:
    """Return whether the text occurs in `within`. Occurrences in `beside`, a part of it, do not count."""
    if _count(text, within) > _count(text, beside):
        return QuoteMatch.EXACTLY
    text, within, beside = (" ".join(part.split()) for part in (text, within, beside))
    return QuoteMatch.BUT_FOR_SPACE if _count(text, within) > _count(text, beside) else QuoteMatch.NOT


def _count(text: str, within: str) -> int:
    return within.count(text) if text else 0
