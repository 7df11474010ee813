"""Syntax of a changed file in any language, without running anything of the project's.

A false alarm here would reject honest work, so doubt is decided for the author:
- a file is asked about only in languages whose grammar was measured to be quiet on published code;
- Python is wrong only when Python's own parser and the grammar both say so: either may be older than the code;
- what was already wrong before the change is not new (templates, generated fragments, dialects).
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
import warnings
from collections.abc import Callable
from posixpath import basename, splitext
from typing import TYPE_CHECKING, Final

from proofstone.common.models import Diagnostic
from proofstone.sources.text import SECONDS, parse_jsonc, parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


LIMIT: Final = 2 * 1024 * 1024
"""Larger files are data or generated: nobody wrote them by hand."""
MOST: Final = 20
"""Errors reported for one file. The rest follow from the first ones."""
CODE: Final = "syntax"

# Left out because their grammars fail on published code: C and C++ (68 % of files, for macros), SQL, HTML, CSS
# (5 %), shell (4 %), Perl, XML, make, INI; and C# and Kotlin, of which too little was at hand to measure.
LANGUAGES: Final[dict[str, str]] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".rb": "ruby",
    ".php": "php",
    ".lua": "lua",
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    ".json": "json",
    ".toml": "toml",
}
NAMES: Final[dict[str, str]] = {
    "Rakefile": "ruby",
    "Gemfile": "ruby",
    "Pipfile": "toml",
    "Cargo.lock": "toml",
    "poetry.lock": "toml",
    "uv.lock": "toml",
}
INTERPRETERS: Final[dict[str, str]] = {
    "python": "python",
    "node": "javascript",
    "ruby": "ruby",
    "php": "php",
    "lua": "lua",
}
_SHEBANG = re.compile(rb"#!\s*\S*?/?(?:env\s+(?:-S\s+)?)?([a-z]+)[\d.]*(?:\s|$)")
_TEMPLATE = re.compile(rb"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)


def syntax_errors(path: str, content: bytes) -> tuple[Diagnostic, ...] | None:
    """The errors of one file; None when its language is not known, or it is binary or too large to be source."""
    language = language_of(path, content)
    if language is None or len(content) > LIMIT or b"\0" in content[:8192]:
        return None
    special = _PARSERS.get(language)
    return special(path, content) if special else _grammar_errors(path, content, language)


def new_syntax_errors(path: str, old: bytes | None, new: bytes) -> tuple[Diagnostic, ...] | None:
    """The errors that a change brought in: none where the file was not readable before the change either."""
    errors = syntax_errors(path, new)
    if errors and old is not None and syntax_errors(path, old):
        return ()
    # A new file may be a template for a language rather than a text in it; no parser can judge that.
    template = old is None and not path.endswith(_NEVER_TEMPLATES) and _TEMPLATE.search(new)
    return () if errors and template else errors


_NEVER_TEMPLATES = (".go", ".rs", ".java")
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
"""Written by compilers, newer than the grammar in 1.4 % of published ones."""


def language_of(path: str, content: bytes) -> str | None:
    """By well-known name, suffix, or interpreter line."""
    name = basename(path)
    known = NAMES.get(name) or LANGUAGES.get(splitext(name)[1].lower())
    if name.endswith(_DECLARATIONS):
        return None
    if known is not None or "." in name.lstrip("."):
        return known
    shebang = _SHEBANG.match(content[:200])
    return INTERPRETERS.get(shebang[1].decode()) if shebang else None


def _grammar_errors(path: str, content: bytes, language: str) -> tuple[Diagnostic, ...]:
    root = parse_source(content, language)
    if root is None:
        message = f"is so far from {language} that its parser breaks down, or does not come to the end in {SECONDS} s"
        return (Diagnostic(path=path, line=None, code=CODE, message=message),)
    if not root.has_error:
        return ()
    return tuple(_diagnostic(path, node) for node in _wrong_nodes(root)[:MOST])


def _wrong_nodes(root: Node) -> list[Node]:
    """The outermost errors, in the order of the file."""
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            found.append(node)
        elif node.has_error:
            waiting += reversed(node.children)
    return found


def _diagnostic(path: str, node: Node) -> Diagnostic:
    line = node.start_point[0] + 1
    if node.is_missing:
        return Diagnostic(path=path, line=line, code=CODE, message=f"{node.type!r} is missing here")
    text = (node.text or b"").decode("utf-8", errors="replace").strip().splitlines()
    near = text[0][:60] if text else ""
    return Diagnostic(path=path, line=line, code=CODE, message=f"cannot be parsed near {near!r}")


def _python(path: str, content: bytes) -> tuple[Diagnostic, ...]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is the linter's business
            ast.parse(content)
    except SyntaxError as error:
        if _newer(error) or not (_grammar_errors(path, content, "python") or _sure(error)):
            return ()
        return (Diagnostic(path=path, line=error.lineno, code=CODE, message=str(error.msg)),)
    except (ValueError, RecursionError, MemoryError):
        return ()  # a source that Python's parser cannot even take in says nothing about its syntax
    return ()


def _newer(error: SyntaxError) -> bool:
    """Whether the line holds what only a later Python than the one that runs Proofstone can parse."""
    line = error.text or ""
    return any(sys.version_info < since and form.search(line) for since, form in _NEWER_PYTHON)


_NEWER_PYTHON: Final = (
    ((3, 12), re.compile(r"\b(?:def|class|type)\s+\w+\s*\[")),  # type parameters
    ((3, 13), re.compile(r"\b(?:def|class|type)\s+\w+\s*\[.*=")),  # their defaults
    ((3, 14), re.compile(r"\b(?:t|tr|rt)['\"]", re.IGNORECASE)),  # template strings
    ((3, 14), re.compile(r"\bexcept\*?\s+[\w.]+\s*,")),  # several exceptions without parentheses
)


def _sure(error: SyntaxError) -> bool:
    """Indentation is not in the grammar, and no version of Python has made wrong indentation right."""
    return isinstance(error, IndentationError)


def _json(path: str, content: bytes) -> tuple[Diagnostic, ...]:
    """Strict JSON, or JSON with comments: which of the two a tool reads cannot be told from the file's name."""
    text = content.decode("utf-8-sig", errors="replace")
    if not text.strip():
        return ()
    try:
        parse_jsonc(text)
    except json.JSONDecodeError as error:
        if _lines_of_json(text):
            return ()
        return (Diagnostic(path=path, line=error.lineno, code=CODE, message=error.msg),)
    except (ValueError, RecursionError):
        return ()
    return ()


def _lines_of_json(text: str) -> bool:
    """One document a line: common under the same suffix."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return False
    try:
        for line in lines:
            json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _toml(path: str, content: bytes) -> tuple[Diagnostic, ...]:
    try:
        tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return (Diagnostic(path=path, line=line, code=CODE, message="TOML must be UTF-8"),)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+)", str(error))
        message = re.sub(r"\s*\(at .*\)$", "", str(error))
        return (Diagnostic(path=path, line=int(place[1]) if place else None, code=CODE, message=message),)
    except RecursionError:
        return ()
    return ()


_PARSERS: Final[dict[str, Callable[[str, bytes], tuple[Diagnostic, ...]]]] = {
    "python": _python,
    "json": _json,
    "toml": _toml,
}
