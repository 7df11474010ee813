"""Look up the paths, symbols and signatures that an impact analysis mentions, and compare the definitions of a file
before and after a change.

Files are read with the same rules as the tools of agents. Definitions are found as the tool `symbols` finds them. A
symbol counts as undefined only if `check_definition` is sure of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from proofstone.agents.models import SignatureChange
from proofstone.agents.rules.tool_rules import ToolFailedError, ToolRefusedError
from proofstone.agents.tools.definitions import check_definition, is_prose
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.symbols import Definition, find_language, parse_definitions
from proofstone.agents.tools.tool_context import ToolDeadline
from proofstone.agents.tools.tree import FileTree
from proofstone.sources.grammar_outline import OUTLINE_LANGUAGES, outline_by_grammar
from proofstone.sources.syntax import find_syntax_errors
from proofstone.supervision.rules.evidence import (
    FileDefinition,
    FileOutline,
    LookupFacts,
    LookupRequest,
    SymbolLookup,
    find_changed_interfaces,
)
from proofstone.supervision.rules.signatures import STYLE_BY_LANGUAGE

_FILE_BYTES: Final = 512 << 10
_CONSTRUCTORS: Final[Mapping[str, str]] = {
    "python": "__init__", "javascript": "constructor", "typescript": "constructor", "tsx": "constructor",
}  # fmt: skip
"""The name of the constructor by language. In Java it is the name of the class."""


def look_up_facts(tree: FileTree, wanted: LookupRequest, deadline: ToolDeadline) -> LookupFacts:
    outlines = _Outlines(tree)
    return LookupFacts(
        paths={path: _path_exists(tree, path, deadline) for path in wanted.paths},
        symbols={(path, name): _look_up_symbol(outlines, path, name, deadline) for path, name in wanted.symbols},
    )


def find_changed_signatures(
    path: str, before: bytes | None, after: bytes | None, impact: Iterable[str] = ()
) -> tuple[SignatureChange, ...] | None:
    """Return the interfaces of a file whose signature changed. None if that is unknown: the language is not
    supported, or the file has syntax errors. `impact` is what plans said about interfaces before the work.
    """
    if before is None or is_binary(before) or is_prose(path, before):
        return ()
    old, new = build_outline(path, before), build_outline(path, after) if after is not None else None
    if old is None or (after is not None and new is None):
        return None
    return find_changed_interfaces(path, old, new, impact)


def build_outline(path: str, content: bytes) -> FileOutline | None:
    """Return the definitions of a file. None if they cannot be compared with those of another version."""
    language = find_language(path, content) or ""
    if (
        language not in STYLE_BY_LANGUAGE
        or len(content) > _FILE_BYTES
        or is_binary(content)
        or find_syntax_errors(path, content)
    ):
        return None
    all_definitions = tuple(parse_definitions(content, language))
    is_public = _VISIBILITY_RULES[language](content, language)
    function_names = {definition.name for definition in all_definitions if definition.kind == "function"}
    return FileOutline(
        language,
        tuple(
            _describe(definition, is_public=is_public(definition) and not _is_local(definition, function_names))
            for definition in all_definitions
            if definition.kind != "impl"
        ),
    )


class _Outlines:
    """Cache the definitions of each file."""

    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self._outlines: dict[str, tuple[str, tuple[Definition, ...]]] = {}

    def of(self, path: str) -> tuple[str, tuple[Definition, ...]]:
        """Return the language (empty if unknown) and the definitions of the file."""
        if path not in self._outlines:
            content = self.tree.read(self.tree.require_readable(path), _FILE_BYTES)
            language = "" if is_binary(content) else find_language(path, content) or ""
            self._outlines[path] = language, tuple(parse_definitions(content, language)) if language else ()
        return self._outlines[path]


def _path_exists(tree: FileTree, path: str, deadline: ToolDeadline) -> bool | None:
    if deadline.is_over:
        return None
    try:
        tree.get_entry(tree.require_readable(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (ToolRefusedError, ToolFailedError, OSError):
        return None
    return True


def _look_up_symbol(outlines: _Outlines, path: str, name: str, deadline: ToolDeadline) -> SymbolLookup:
    if deadline.is_over:
        return SymbolLookup(unknown_reason="there was no time to look")
    try:
        language, file_definitions = outlines.of(path)
        if not language:
            return SymbolLookup(unknown_reason="it is in no language whose definitions are known here")
        if matches := tuple(_find_definitions(file_definitions, name, language)):
            return SymbolLookup(matches, language)
        absent = check_definition(outlines.tree, name, path, deadline)
    except (FileNotFoundError, NotADirectoryError):
        return SymbolLookup()
    except (ToolRefusedError, ToolFailedError) as refused:
        return SymbolLookup(unknown_reason=refused.text)
    except OSError as error:
        return SymbolLookup(unknown_reason=str(error.strerror))
    return SymbolLookup(language=language, unknown_reason="" if absent.holds is False else absent.where)


def _find_definitions(candidates: tuple[Definition, ...], name: str, language: str) -> Iterator[FileDefinition]:
    """Yield the definitions with that name, and the constructors of the classes among them."""
    parts = tuple(name.split("."))
    for definition in candidates:
        if definition.kind != "impl" and definition.has_name(parts):
            yield _describe(definition)
    for class_definition in candidates:
        constructor_name = (*class_definition.name, _CONSTRUCTORS.get(language, class_definition.name[-1]))
        if class_definition.kind in ("class", "record", "enum") and class_definition.has_name(parts):
            yield from (
                _describe(constructor, aliases=(class_definition.name[-1],))
                for constructor in candidates
                if constructor.name == constructor_name
            )


def _describe(definition: Definition, *, is_public: bool = True, aliases: tuple[str, ...] = ()) -> FileDefinition:
    name = (*definition.name[:-1], definition.receiver, definition.name[-1]) if definition.receiver else definition.name
    is_function = definition.kind == "function" or definition.header.endswith("=>") or "= function" in definition.header
    return FileDefinition(".".join(name), definition.header, is_function, is_public, aliases)


def _is_local(definition: Definition, functions: set[tuple[str, ...]]) -> bool:
    """Return whether it is defined inside a function, where no other code can use it."""
    return any(definition.name[:length] in functions for length in range(1, len(definition.name)))


# Visibility of a definition, by language


def _python_visibility(_content: bytes, _language: str) -> Callable[[Definition], bool]:
    return lambda definition: not any(part.startswith("_") and not part.endswith("__") for part in definition.name)


def _script_visibility(content: bytes, language: str) -> Callable[[Definition], bool]:
    """Public is what a file exports, with its members. In a file without exports, everything is public."""
    outline = outline_by_grammar(content, language) if language in OUTLINE_LANGUAGES else None
    export_list = outline.exports if outline else frozenset[str]()
    exported_names = {
        definition.name[0] for definition in parse_definitions(content, language) if definition.is_exported
    } | export_list

    def is_public(candidate: Definition) -> bool:
        is_hidden = candidate.name[-1].startswith("#") or candidate.header.split(maxsplit=1)[:1] == ["private"]
        return not is_hidden and (not exported_names or candidate.name[0] in exported_names)

    return is_public


def _go_visibility(_content: bytes, _language: str) -> Callable[[Definition], bool]:
    return lambda definition: all(part[:1].isupper() for part in (*definition.name, definition.receiver) if part)


def _rust_visibility(content: bytes, _language: str) -> Callable[[Definition], bool]:
    """Members of a trait are as public as the trait. `pub(crate)` counts: other tasks work in the crate too."""
    traits = {
        definition.name
        for definition in parse_definitions(content, "rust")
        if definition.kind == "trait" and _is_pub(definition)
    }
    return lambda candidate: _is_pub(candidate) or candidate.name[:-1] in traits


def _is_pub(definition: Definition) -> bool:
    return definition.header.startswith("pub")


def _java_visibility(content: bytes, _language: str) -> Callable[[Definition], bool]:
    interfaces = {
        definition.name for definition in parse_definitions(content, "java") if definition.kind == "interface"
    }

    def is_public(candidate: Definition) -> bool:
        words = set(re.findall(r"\w+", candidate.header))
        return "private" not in words and (bool(words & {"public", "protected"}) or candidate.name[:-1] in interfaces)

    return is_public


_VISIBILITY_RULES: Final[Mapping[str, Callable[[bytes, str], Callable[[Definition], bool]]]] = {
    "python": _python_visibility,
    **dict.fromkeys(("javascript", "typescript", "tsx"), _script_visibility),
    "go": _go_visibility,
    "rust": _rust_visibility,
    "java": _java_visibility,
}
