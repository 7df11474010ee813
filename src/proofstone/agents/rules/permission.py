"""Decide what a program with its own tools may do when it asks for permission. Pure.

| action             | allowed                                                                               |
|--------------------|---------------------------------------------------------------------------------------|
| read, search       | if every named file is in the project and holds no secrets, or if no file is named    |
| edit, delete, move | if files are named and the task may change each of them                               |
| execute            | if the role may run commands: the sandbox and the diff limit what they can do         |
| think              | always                                                                                |
| fetch              | never: only the model can be reached                                                  |
| switch_mode        | never: the mode that asks for permission was set on purpose                           |
| anything else      | by the name of the tool; else by its arguments: a command, a URL, or files (treated   |
|                    | as an edit, the worst case); refused if nothing shows what the tool does              |

Permissions do not protect files: the sandbox limits a program that does not ask, and the diff shows its work. They give
the program feedback while it works, and record what it tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.tool_rules import (
    ToolRefusedError,
    format_path,
    outside_project_error,
    require_scope,
    secret_file_error,
    shorten_text,
    split_path,
)
from proofstone.common.secrets import is_secret_path

_LONGEST_PATH: Final = 4096
_MOST_PATHS: Final = 1000


class ActionKind(StrEnum):
    """The kinds of tools in the Agent Client Protocol."""

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
class PermissionRequest:
    """What a program asks permission for."""

    kind: ActionKind | None
    """None if the program names no kind or an unknown one."""
    tool: str = ""
    """The name of the tool, if the program gives it."""
    paths: tuple[str, ...] = ()
    """The paths as the program sees them."""
    argument_kinds: frozenset[str] = frozenset()
    """Other arguments that show what the tool does: `command`, `url`."""


@dataclass(frozen=True)
class PermissionLimits:
    root: str
    """The root of the project as the program sees it."""
    scope: tuple[str, ...]
    """Paths and patterns that may be changed; empty if there are none."""
    can_run: bool
    secret: tuple[str, ...] = ()
    """Further patterns of files that hold secrets."""


@dataclass(frozen=True)
class PermissionGranted:
    pass


@dataclass(frozen=True)
class PermissionRefused:
    rule: RefusalRule
    why: str


# What a word in the name of a tool says about it, the most dangerous kinds first: `search_replace` edits.
_WORDS: Final[tuple[tuple[ActionKind, frozenset[str]], ...]] = (
    (ActionKind.FETCH, frozenset({"fetch", "web", "http", "browse", "browser", "url"})),
    (
        ActionKind.EDIT,
        frozenset(
            {"write", "edit", "editor", "create", "replace", "patch", "insert", "append", "delete", "remove", "move"}
            | {"rename", "undo", "save"}
        ),
    ),
    (ActionKind.EXECUTE, frozenset({"shell", "bash", "exec", "execute", "run", "command", "terminal"})),
    (
        ActionKind.READ,
        frozenset({"read", "view", "list", "ls", "tree", "glob", "grep", "search", "find", "cat", "analyze"}),
    ),
    (ActionKind.THINK, frozenset({"think", "todo", "plan"})),
)
_PATHS: Final = frozenset(
    {
        "path", "paths", "file", "files", "filepath", "filepaths", "filename", "filenames", "absolutepath",
        "relativepath", "notebookpath", "targetfile", "target", "oldpath", "newpath", "sourcepath", "destinationpath",
        "destination", "source", "directory", "directories", "dir", "dirpath", "folder", "uri",
    }
)  # fmt: skip
"""Arguments that name files, in lower case and without `_`."""
_KEYED: Final = frozenset({"changes", "filechanges"})
"""Arguments whose keys name files."""
_MEANINGS: Final[Mapping[str, str]] = {
    "command": "command", "commands": "command", "cmd": "command", "script": "command", "url": "url", "urls": "url",
}  # fmt: skip


def build_permission_request(kind: str, tool: str, named: Sequence[str], arguments: JsonValue) -> PermissionRequest:
    """Build the wish. `named` lists files that the program reports; files in the arguments count too."""
    parameters = arguments if isinstance(arguments, Mapping) else {}
    paths = dict.fromkeys((*named, *_find_paths(parameters)))
    known_kind = ActionKind(kind) if kind in set(ActionKind) else None
    return PermissionRequest(
        known_kind,
        tool,
        tuple(paths)[:_MOST_PATHS],
        frozenset(_MEANINGS[key] for key in parameters if key in _MEANINGS),
    )


def decide_permission(wish: PermissionRequest, bounds: PermissionLimits) -> PermissionGranted | PermissionRefused:
    try:
        _require_allowed(_infer_kind(wish), wish, bounds)
    except ToolRefusedError as refused:
        return PermissionRefused(refused.rule, refused.text)
    return PermissionGranted()


def resolve_from_root(path: str, root: str) -> str:
    """Return a path of the program relative to the root of the project. Raise RefusedError if it is outside."""
    plain = path.removeprefix("file://")
    if plain.startswith("~"):
        raise outside_project_error(path, "it is not in the project")
    if plain.startswith("/"):
        folder = root.rstrip("/")
        if plain != folder and not plain.startswith(f"{folder}/"):
            raise outside_project_error(path, "it is not in the project")
        plain = plain[len(folder) :].lstrip("/")
    return "/".join(split_path(plain))


def _infer_kind(wish: PermissionRequest) -> ActionKind | None:
    if wish.kind is not None:
        return wish.kind
    words = set(re.findall(r"[a-z]+", _split_name(wish.tool).casefold()))
    by_name = next((kind for kind, kind_words in _WORDS if words & kind_words), None)
    if by_name is not None:
        return by_name
    if "command" in wish.argument_kinds:
        return ActionKind.EXECUTE
    if "url" in wish.argument_kinds:
        return ActionKind.FETCH
    return ActionKind.EDIT if wish.paths else None


def _split_name(tool: str) -> str:
    """Return the name without its extension, split into words: `developer__textEditor` → `text Editor`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tool.rpartition("__")[2])


def _require_allowed(kind: ActionKind | None, wish: PermissionRequest, bounds: PermissionLimits) -> None:
    match kind:
        case ActionKind.READ | ActionKind.SEARCH:
            for path in wish.paths:
                _require_readable(path, bounds)
        case ActionKind.EDIT | ActionKind.DELETE | ActionKind.MOVE:
            _require_named(wish)
            for path in wish.paths:
                _require_writable(path, bounds)
        case ActionKind.EXECUTE:
            if not bounds.can_run:
                raise ToolRefusedError(RefusalRule.UNLISTED, "You may not run commands here.")
        case ActionKind.FETCH:
            raise ToolRefusedError(RefusalRule.UNLISTED, "There is no network here. Work with what is in the project.")
        case ActionKind.SWITCH_MODE:
            raise ToolRefusedError(RefusalRule.UNLISTED, "You cannot change the mode of the session.")
        case ActionKind.THINK:
            return
        case None:
            tool = format_path(shorten_text(wish.tool, 100)) if wish.tool else "this tool"
            raise ToolRefusedError(
                RefusalRule.UNLISTED, f"It is not clear what {tool} would do, so it is not allowed here."
            )


def _require_named(wish: PermissionRequest) -> None:
    if not wish.paths:
        raise ToolRefusedError(RefusalRule.ARGUMENTS, "The call does not name the files that it would change.")


def _require_readable(path: str, bounds: PermissionLimits) -> None:
    at = resolve_from_root(path, bounds.root)
    if is_secret_path(at, bounds.secret):
        raise secret_file_error(at)


def _require_writable(path: str, bounds: PermissionLimits) -> None:
    at = resolve_from_root(path, bounds.root)
    if not at:
        raise ToolRefusedError(RefusalRule.ARGUMENTS, "The call names the project's root, which is a folder.")
    if is_secret_path(at, bounds.secret):
        raise secret_file_error(at)
    require_scope(at, bounds.scope)


def _find_paths(arguments: Mapping[str, JsonValue]) -> Iterator[str]:
    for key, value in arguments.items():
        folded = re.sub(r"[_-]", "", key).casefold()
        if folded in _PATHS:
            yield from _iterate_paths(value)
        elif folded in _KEYED and isinstance(value, Mapping):
            yield from value


def _iterate_paths(value: JsonValue) -> Iterator[str]:
    """Yield the texts of an argument that can be paths."""
    for path in value if isinstance(value, list) else [value]:
        if isinstance(path, str) and path and "\n" not in path and len(path) <= _LONGEST_PATH:
            yield path
