"""What an impact analysis speaks of, looked up in the files: which paths are there, which symbols stand in them with
which signature; and the definitions of a file before and after a change.

Files are read as the tools of agents read them. Definitions are found as the tool `symbols` finds them, and that
something is not defined is said only where `defined` is sure of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from proofstone.agents.models import ChangedSignature
from proofstone.agents.rules.tool_rules import FailedError, RefusedError
from proofstone.agents.tools.definitions import defined, is_prose
from proofstone.agents.tools.files import is_binary
from proofstone.agents.tools.symbols import Definition, definitions, outlined_language
from proofstone.agents.tools.tool_context import Deadline
from proofstone.agents.tools.tree import Tree
from proofstone.sources.grammar_outline import LANGUAGES as OUTLINED
from proofstone.sources.grammar_outline import grammar_outline
from proofstone.sources.syntax import syntax_errors
from proofstone.supervision.rules.evidence import Facts, Outlined, Seen, Standing, Wanted, changed_interfaces
from proofstone.supervision.rules.signatures import STYLES

_FILE_BYTES: Final = 512 << 10
_CONSTRUCTORS: Final[Mapping[str, str]] = {
    "python": "__init__", "javascript": "constructor", "typescript": "constructor", "tsx": "constructor",
}  # fmt: skip
"""Java calls it as the class."""


def look_up(tree: Tree, wanted: Wanted, deadline: Deadline) -> Facts:
    outlines = _Outlines(tree)
    return Facts(
        paths={path: _is_there(tree, path, deadline) for path in wanted.paths},
        symbols={(path, name): _seen(outlines, path, name, deadline) for path, name in wanted.symbols},
    )


def changed_signatures(
    path: str, before: bytes | None, after: bytes | None, impact: Iterable[str] = ()
) -> tuple[ChangedSignature, ...] | None:
    """The interfaces of a file that are not what they were; None: that cannot be told, for its language is not known
    here, or it is only half written. `impact`: what plans said about interfaces before the work."""
    if before is None or is_binary(before) or is_prose(path, before):
        return ()
    old, new = outlined(path, before), outlined(path, after) if after is not None else None
    if old is None or (after is not None and new is None):
        return None
    return changed_interfaces(path, old, new, impact)


def outlined(path: str, content: bytes) -> Outlined | None:
    """The definitions of a file; None: they cannot be compared with those of another version of it."""
    language = outlined_language(path, content) or ""
    if language not in STYLES or len(content) > _FILE_BYTES or is_binary(content) or syntax_errors(path, content):
        return None
    found = tuple(definitions(content, language))
    is_public = _PUBLIC[language](content, language)
    local = {item.name for item in found if item.kind == "function"}
    return Outlined(
        language,
        tuple(
            _standing(item, public=is_public(item) and not _is_within(item, local))
            for item in found
            if item.kind != "impl"
        ),
    )


class _Outlines:
    """The definitions of each file, read once."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._kept: dict[str, tuple[str, tuple[Definition, ...]]] = {}

    def of(self, path: str) -> tuple[str, tuple[Definition, ...]]:
        """The language, empty if it is not known; and what is defined."""
        if path not in self._kept:
            content = self.tree.read(self.tree.readable(path), _FILE_BYTES)
            language = "" if is_binary(content) else outlined_language(path, content) or ""
            self._kept[path] = language, tuple(definitions(content, language)) if language else ()
        return self._kept[path]


def _is_there(tree: Tree, path: str, deadline: Deadline) -> bool | None:
    if deadline.over:
        return None
    try:
        tree.entry(tree.readable(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (RefusedError, FailedError, OSError):
        return None
    return True


def _seen(outlines: _Outlines, path: str, name: str, deadline: Deadline) -> Seen:
    if deadline.over:
        return Seen(unknown="there was no time to look")
    try:
        language, found = outlines.of(path)
        if not language:
            return Seen(unknown="it is in no language whose definitions are known here")
        if standing := tuple(_called(found, name, language)):
            return Seen(standing, language)
        absent = defined(outlines.tree, name, path, deadline)
    except (FileNotFoundError, NotADirectoryError):
        return Seen()
    except (RefusedError, FailedError) as refused:
        return Seen(unknown=refused.text)
    except OSError as error:
        return Seen(unknown=str(error.strerror))
    return Seen(language=language, unknown="" if absent.holds is False else absent.where)


def _called(found: tuple[Definition, ...], name: str, language: str) -> Iterator[Standing]:
    """What has that name, and how it is made if it is a class."""
    wanted = tuple(name.split("."))
    for item in found:
        if item.kind != "impl" and item.is_called(wanted):
            yield _standing(item)
    for entry in found:
        made_by = (*entry.name, _CONSTRUCTORS.get(language, entry.name[-1]))
        if entry.kind in ("class", "record", "enum") and entry.is_called(wanted):
            yield from (_standing(other, called=(entry.name[-1],)) for other in found if other.name == made_by)


def _standing(one: Definition, *, public: bool = True, called: tuple[str, ...] = ()) -> Standing:
    name = (*one.name[:-1], one.receiver, one.name[-1]) if one.receiver else one.name
    function = one.kind == "function" or one.header.endswith("=>") or "= function" in one.header
    return Standing(".".join(name), one.header, function, public, called)


def _is_within(one: Definition, functions: set[tuple[str, ...]]) -> bool:
    """Whether it is defined inside of a function: nobody outside of it can use it."""
    return any(one.name[:length] in functions for length in range(1, len(one.name)))


# Who may use it, by language


def _python(_content: bytes, _language: str) -> Callable[[Definition], bool]:
    return lambda one: not any(part.startswith("_") and not part.endswith("__") for part in one.name)


def _script(content: bytes, language: str) -> Callable[[Definition], bool]:
    """What a file exports, with its members; all of a file that exports nothing."""
    outline = grammar_outline(content, language) if language in OUTLINED else None
    listed = outline.exports if outline else frozenset[str]()
    shown = {definition.name[0] for definition in definitions(content, language) if definition.exported} | listed

    def is_public(one: Definition) -> bool:
        hidden = one.name[-1].startswith("#") or one.header.split(maxsplit=1)[:1] == ["private"]
        return not hidden and (not shown or one.name[0] in shown)

    return is_public


def _go(_content: bytes, _language: str) -> Callable[[Definition], bool]:
    return lambda one: all(part[:1].isupper() for part in (*one.name, one.receiver) if part)


def _rust(content: bytes, _language: str) -> Callable[[Definition], bool]:
    """Members of a trait are as public as it is. What the crate may use counts: other tasks work in it too."""
    traits = {
        definition.name
        for definition in definitions(content, "rust")
        if definition.kind == "trait" and _is_pub(definition)
    }
    return lambda one: _is_pub(one) or one.name[:-1] in traits


def _is_pub(one: Definition) -> bool:
    return one.header.startswith("pub")


def _java(content: bytes, _language: str) -> Callable[[Definition], bool]:
    interfaces = {definition.name for definition in definitions(content, "java") if definition.kind == "interface"}

    def is_public(one: Definition) -> bool:
        words = set(re.findall(r"\w+", one.header))
        return "private" not in words and (bool(words & {"public", "protected"}) or one.name[:-1] in interfaces)

    return is_public


_PUBLIC: Final[Mapping[str, Callable[[bytes, str], Callable[[Definition], bool]]]] = {
    "python": _python,
    **dict.fromkeys(("javascript", "typescript", "tsx"), _script),
    "go": _go,
    "rust": _rust,
    "java": _java,
}
