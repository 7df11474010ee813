"""Check the syntax of a changed file in many languages, without running anything of the project.

A false alarm would reject honest work, so the author gets the benefit of the doubt:
- Only languages are checked whose grammar was measured to accept published code.
- Python is wrong only if Python's own parser and the grammar both report an error: either may be older than the code.
- Errors that the file had before the change are not new (templates, generated fragments, dialects).
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
from proofstone.sources.text import MAX_PARSE_SECONDS, parse_jsonc, parse_source

if TYPE_CHECKING:
    from tree_sitter import Node


MAX_SOURCE_BYTES: Final = 2 * 1024 * 1024
"""Larger files are data or generated, not written by hand."""
MAX_ERRORS: Final = 20
"""Maximum number of errors for one file. The rest follow from the first ones."""
SYNTAX_CODE: Final = "syntax"

# Left out because their grammars fail on published code: C and C++ (68 % of files, because of macros), SQL, HTML, CSS
# (5 %), shell (4 %), Perl, XML, make, INI. C# and Kotlin are left out because too little code was available to measure.
LANGUAGE_BY_SUFFIX: Final[dict[str, str]] = {
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
LANGUAGE_BY_NAME: Final[dict[str, str]] = {
    "Rakefile": "ruby",
    "Gemfile": "ruby",
    "Pipfile": "toml",
    "Cargo.lock": "toml",
    "poetry.lock": "toml",
    "uv.lock": "toml",
}
LANGUAGE_BY_INTERPRETER: Final[dict[str, str]] = {
    "python": "python",
    "node": "javascript",
    "ruby": "ruby",
    "php": "php",
    "lua": "lua",
}
_SHEBANG = re.compile(rb"#!\s*\S*?/?(?:env\s+(?:-S\s+)?)?([a-z]+)[\d.]*(?:\s|$)")
_TEMPLATE = re.compile(rb"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)


def find_syntax_errors(path: str, content: bytes) -> tuple[Diagnostic, ...] | None:
    """Return the errors of one file; None if its language is unknown, or if it is binary or too large to be source."""
    language = detect_language(path, content)
    if language is None or len(content) > MAX_SOURCE_BYTES or b"\0" in content[:8192]:
        return None
    parser = _PARSERS.get(language)
    return parser(path, content) if parser else _grammar_errors(path, content, language)


def find_new_syntax_errors(path: str, old: bytes | None, new: bytes) -> tuple[Diagnostic, ...] | None:
    """Return the errors that a change added; none if the file had errors before the change."""
    errors = find_syntax_errors(path, new)
    if errors and old is not None and find_syntax_errors(path, old):
        return ()
    # A new file may be a template for a language, and no parser can judge that.
    is_template = old is None and not path.endswith(_NEVER_TEMPLATES) and _TEMPLATE.search(new)
    return () if errors and is_template else errors


_NEVER_TEMPLATES = (".go", ".rs", ".java")
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
"""Compilers write these files. 1.4 % of the published ones are newer than the grammar."""


def detect_language(path: str, content: bytes) -> str | None:
    """Return the language by well-known name, suffix or interpreter line."""
    name = basename(path)
    language = LANGUAGE_BY_NAME.get(name) or LANGUAGE_BY_SUFFIX.get(splitext(name)[1].lower())
    if name.endswith(_DECLARATIONS):
        return None
    if language is not None or "." in name.lstrip("."):
        return language
    shebang = _SHEBANG.match(content[:200])
    return LANGUAGE_BY_INTERPRETER.get(shebang[1].decode()) if shebang else None


def _grammar_errors(path: str, content: bytes, language: str) -> tuple[Diagnostic, ...]:
    root = parse_source(content, language)
    if root is None:
        message = f"is so far from {language} that its parser fails, or does not finish in {MAX_PARSE_SECONDS} s"
        return (Diagnostic(path=path, line=None, code=SYNTAX_CODE, message=message),)
    if not root.has_error:
        return ()
    return tuple(_build_diagnostic(path, node) for node in _find_error_nodes(root)[:MAX_ERRORS])


def _find_error_nodes(root: Node) -> list[Node]:
    """Return the outermost errors, in the order of the file."""
    errors, pending = [], [root]
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            errors.append(node)
        elif node.has_error:
            pending += reversed(node.children)
    return errors


def _build_diagnostic(path: str, node: Node) -> Diagnostic:
    line = node.start_point[0] + 1
    if node.is_missing:
        return Diagnostic(path=path, line=line, code=SYNTAX_CODE, message=f"{node.type!r} is missing here")
    text = (node.text or b"").decode("utf-8", errors="replace").strip().splitlines()
    near = text[0][:60] if text else ""
    return Diagnostic(path=path, line=line, code=SYNTAX_CODE, message=f"cannot be parsed near {near!r}")


def _check_python(path: str, content: bytes) -> tuple[Diagnostic, ...]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are left to linters
            ast.parse(content)
    except SyntaxError as error:
        if _needs_newer_python(error) or not (_grammar_errors(path, content, "python") or _is_certain(error)):
            return ()
        return (Diagnostic(path=path, line=error.lineno, code=SYNTAX_CODE, message=str(error.msg)),)
    except (ValueError, RecursionError, MemoryError):
        return ()  # if Python's parser cannot process a source, its syntax is unknown
    return ()


def _needs_newer_python(error: SyntaxError) -> bool:
    """Return whether the line has syntax that only a later Python than the running one can parse."""
    line = error.text or ""
    return any(sys.version_info < since and form.search(line) for since, form in _NEWER_PYTHON)


_NEWER_PYTHON: Final = (
    ((3, 12), re.compile(r"\b(?:def|class|type)\s+\w+\s*\[")),  # type parameters
    ((3, 13), re.compile(r"\b(?:def|class|type)\s+\w+\s*\[.*=")),  # their defaults
    ((3, 14), re.compile(r"\b(?:t|tr|rt)['\"]", re.IGNORECASE)),  # template strings
    ((3, 14), re.compile(r"\bexcept\*?\s+[\w.]+\s*,")),  # several exceptions without parentheses
)


def _is_certain(error: SyntaxError) -> bool:
    """Return whether the error is certain. Indentation is not in the grammar, and no version of Python accepts wrong
    indentation."""
    return isinstance(error, IndentationError)


def _check_json(path: str, content: bytes) -> tuple[Diagnostic, ...]:
    """Check strict JSON, or JSON with comments: the file's name does not show which of the two a tool reads."""
    text = content.decode("utf-8-sig", errors="replace")
    if not text.strip():
        return ()
    try:
        parse_jsonc(text)
    except json.JSONDecodeError as error:
        if _is_json_lines(text):
            return ()
        return (Diagnostic(path=path, line=error.lineno, code=SYNTAX_CODE, message=error.msg),)
    except (ValueError, RecursionError):
        return ()
    return ()


def _is_json_lines(text: str) -> bool:
    """Return whether each line is a document: common under the same suffix."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return False
    try:
        for line in lines:
            json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _check_toml(path: str, content: bytes) -> tuple[Diagnostic, ...]:
    try:
        tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return (Diagnostic(path=path, line=line, code=SYNTAX_CODE, message="TOML must be UTF-8"),)
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"line (\d+)", str(error))
        message = re.sub(r"\s*\(at .*\)$", "", str(error))
        return (Diagnostic(path=path, line=int(position[1]) if position else None, code=SYNTAX_CODE, message=message),)
    except RecursionError:
        return ()
    return ()


_PARSERS: Final[dict[str, Callable[[str, bytes], tuple[Diagnostic, ...]]]] = {
    "python": _check_python,
    "json": _check_json,
    "toml": _check_toml,
}
