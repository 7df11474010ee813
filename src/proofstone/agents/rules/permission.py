"""What a program with tools of its own may do when it asks: by the kind of what it wants and the files it names. Pure.

| wanted             | allowed                                                                              |
|--------------------|--------------------------------------------------------------------------------------|
| read, search       | if every file it names lies in the project and holds no secret; none named: all of it |
| edit, delete, move | if it names files, and each is one that the task may change                          |
| execute            | if the role may run commands: the sandbox and the diff bound them                    |
| think              | always                                                                               |
| fetch              | never: nothing but the model can be reached                                          |
| switch_mode        | never: the mode in which it asks was set on purpose                                  |
| anything else      | by the name of its tool; else by what it was given: a command, an address, files (as  |
|                    | an edit, the worst that it could be); what tells nothing is refused                  |

A permission is not what keeps files as they are: a program that does not ask is bounded by the sandbox, and its work by
the diff. It tells the program while it works, and puts on record what it tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.tool_rules import RefusedError, names, outside, require_scope, secret, shortened, shown
from proofstone.common.secrets import is_secret

_LONGEST_PATH: Final = 4096
_MOST_PATHS: Final = 1000


class Kind(StrEnum):
    """As the Agent Client Protocol tells tools apart."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SWITCH_MODE = "switch_mode"


@dataclass(frozen=True)
class Wish:
    """What a program wants to do, as it says."""

    kind: Kind | None
    """None: it does not say, or in a word that nobody knows."""
    tool: str = ""
    """The name of its tool, if it tells."""
    paths: tuple[str, ...] = ()
    """As the program sees them."""
    given: frozenset[str] = frozenset()
    """What else it was given that has a meaning: `command`, `url`."""


@dataclass(frozen=True)
class Bounds:
    root: str
    """The project, as the program sees it."""
    scope: tuple[str, ...]
    """Paths and patterns that may be changed; empty: none."""
    may_run: bool
    secret: tuple[str, ...] = ()
    """Further patterns of files that hold secrets."""


@dataclass(frozen=True)
class Allowed:
    pass


@dataclass(frozen=True)
class Refused:
    rule: RefusalRule
    why: str


# What a word in a tool's name says of it, the worst first: `search_replace` edits.
_WORDS: Final[tuple[tuple[Kind, frozenset[str]], ...]] = (
    (Kind.FETCH, frozenset({"fetch", "web", "http", "browse", "browser", "url"})),
    (
        Kind.EDIT,
        frozenset(
            {"write", "edit", "editor", "create", "replace", "patch", "insert", "append", "delete", "remove", "move"}
            | {"rename", "undo", "save"}
        ),
    ),
    (Kind.EXECUTE, frozenset({"shell", "bash", "exec", "execute", "run", "command", "terminal"})),
    (Kind.READ, frozenset({"read", "view", "list", "ls", "tree", "glob", "grep", "search", "find", "cat", "analyze"})),
    (Kind.THINK, frozenset({"think", "todo", "plan"})),
)
_PATHS: Final = frozenset(
    {
        "path", "paths", "file", "files", "filepath", "filepaths", "filename", "filenames", "absolutepath",
        "relativepath", "notebookpath", "targetfile", "target", "oldpath", "newpath", "sourcepath", "destinationpath",
        "destination", "source", "directory", "directories", "dir", "dirpath", "folder", "uri",
    }
)  # fmt: skip
"""Arguments that name files, without `_`, in small letters."""
_KEYED: Final = frozenset({"changes", "filechanges"})
"""Arguments whose keys name files."""
_MEANINGS: Final[Mapping[str, str]] = {
    "command": "command", "commands": "command", "cmd": "command", "script": "command", "url": "url", "urls": "url",
}  # fmt: skip


def wish_of(kind: str, tool: str, named: Sequence[str], arguments: JsonValue) -> Wish:
    """`named`: files that the program points out itself; those among the arguments count too."""
    given = arguments if isinstance(arguments, Mapping) else {}
    paths = dict.fromkeys((*named, *_paths_in(given)))
    known = Kind(kind) if kind in set(Kind) else None
    return Wish(known, tool, tuple(paths)[:_MOST_PATHS], frozenset(_MEANINGS[key] for key in given if key in _MEANINGS))


def decide(wish: Wish, bounds: Bounds) -> Allowed | Refused:
    try:
        _require(_kind(wish), wish, bounds)
    except RefusedError as refused:
        return Refused(refused.rule, refused.text)
    return Allowed()


def from_root(path: str, root: str) -> str:
    """A path as the program sees it, from the root of the project. RefusedError: it is not below it."""
    plain = path.removeprefix("file://")
    if plain.startswith("~"):
        raise outside(path, "it is not in the project")
    if plain.startswith("/"):
        folder = root.rstrip("/")
        if plain != folder and not plain.startswith(f"{folder}/"):
            raise outside(path, "it is not in the project")
        plain = plain[len(folder) :].lstrip("/")
    return "/".join(names(plain))


def _kind(wish: Wish) -> Kind | None:
    if wish.kind is not None:
        return wish.kind
    words = set(re.findall(r"[a-z]+", _own_name(wish.tool).casefold()))
    by_name = next((kind for kind, known in _WORDS if words & known), None)
    if by_name is not None:
        return by_name
    if "command" in wish.given:
        return Kind.EXECUTE
    if "url" in wish.given:
        return Kind.FETCH
    return Kind.EDIT if wish.paths else None


def _own_name(tool: str) -> str:
    """Without the name of the extension that it is of, and in words: `developer__textEditor` → `text Editor`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tool.rpartition("__")[2])


def _require(kind: Kind | None, wish: Wish, bounds: Bounds) -> None:
    match kind:
        case Kind.READ | Kind.SEARCH:
            for path in wish.paths:
                _require_readable(path, bounds)
        case Kind.EDIT | Kind.DELETE | Kind.MOVE:
            _require_named(wish)
            for path in wish.paths:
                _require_writable(path, bounds)
        case Kind.EXECUTE:
            if not bounds.may_run:
                raise RefusedError(RefusalRule.UNLISTED, "You may not run commands here.")
        case Kind.FETCH:
            raise RefusedError(RefusalRule.UNLISTED, "There is no network here: work with what is in the project.")
        case Kind.SWITCH_MODE:
            raise RefusedError(RefusalRule.UNLISTED, "The mode of the session stays as it is.")
        case Kind.THINK:
            return
        case None:
            tool = shown(shortened(wish.tool, 100)) if wish.tool else "this tool"
            raise RefusedError(RefusalRule.UNLISTED, f"Nothing tells what {tool} would do: it is not allowed here.")


def _require_named(wish: Wish) -> None:
    if not wish.paths:
        raise RefusedError(RefusalRule.ARGUMENTS, "It does not say which files it would change.")


def _require_readable(path: str, bounds: Bounds) -> None:
    at = from_root(path, bounds.root)
    if is_secret(at, bounds.secret):
        raise secret(at)


def _require_writable(path: str, bounds: Bounds) -> None:
    at = from_root(path, bounds.root)
    if not at:
        raise RefusedError(RefusalRule.ARGUMENTS, "It names the project's root, which is a folder.")
    if is_secret(at, bounds.secret):
        raise secret(at)
    require_scope(at, bounds.scope)


def _paths_in(arguments: Mapping[str, JsonValue]) -> Iterator[str]:
    for key, value in arguments.items():
        folded = re.sub(r"[_-]", "", key).casefold()
        if folded in _PATHS:
            yield from _texts(value)
        elif folded in _KEYED and isinstance(value, Mapping):
            yield from value


def _texts(value: JsonValue) -> Iterator[str]:
    """What can be a path: one, or several."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item and "\n" not in item and len(item) <= _LONGEST_PATH:
            yield item
