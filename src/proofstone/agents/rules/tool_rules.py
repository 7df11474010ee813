"""The rules for tool calls and the texts of refusals, and who may use the memory. Pure.

A refusal tells the agent what it may do instead. Links and the existence of files are checked in `agents.tools`. A role
may use the memory if it has a route to it; perceiver, executor, agent validator and controller have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from pydantic import ValidationError

from proofstone.agents.models import RefusalRule
from proofstone.agents.tools.models import Tool
from proofstone.common.globs import matches

_NAME_BYTES: Final = 255
_PATH_BYTES: Final = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_REVISION = re.compile(r"[0-9A-Za-z_@][0-9A-Za-z_./+^~-]*")
_MOST_ERRORS: Final = 5
_MOST_TEXT: Final = 2000

GENERATED_FOLDERS: Final = frozenset(
    {
        "node_modules", "bower_components", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".nox",
        ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".gradle", ".hg", ".svn",
    }
)  # fmt: skip
"""Folders that tools generate. A search skips them unless it names them."""


class ToolRefusedError(Exception):
    """Raised when a call is refused and not carried out."""

    def __init__(self, rule: RefusalRule, text: str) -> None:
        super().__init__(text)
        self.rule = rule
        self.text = text


class ToolFailedError(Exception):
    """Raised when a call was carried out and failed."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def unlisted_tool_error(name: str, has: Collection[str]) -> ToolRefusedError:
    tools = ", ".join(sorted(has)) or "none"
    return ToolRefusedError(
        RefusalRule.UNLISTED, f"You do not have a tool {format_path(name[:100])}. Your tools: {tools}."
    )


def invalid_arguments_error(tool: Tool, why: str) -> ToolRefusedError:
    return ToolRefusedError(RefusalRule.ARGUMENTS, f"{tool}: the arguments are invalid. {why}")


def outside_project_error(path: str, why: str) -> ToolRefusedError:
    text = f"{format_path(path[:200])}: {why}. Name files of the project by their path from its root: `src/app.py`."
    return ToolRefusedError(RefusalRule.OUTSIDE, text)


def secret_file_error(path: str) -> ToolRefusedError:
    text = (
        f"{format_path(path)} may hold secrets: it is neither shown nor changed. "
        "Work without it; if the task cannot be done without it, say so in your answer."
    )
    return ToolRefusedError(RefusalRule.SECRET, text)


def require_scope(path: str, scope: Sequence[str]) -> None:
    if any(matches(pattern, path) for pattern in scope):
        return
    allowed = ", ".join(map(format_path, scope))
    permission = f"You may change: {allowed}." if scope else "You may not change any file."
    text = f"{format_path(path)} is not yours to change. {permission} If it must change too, say so in your answer."
    raise ToolRefusedError(RefusalRule.SCOPE, text)


def split_path(path: str) -> tuple[str, ...]:
    """Return the components of a path from the project's root; none for the root itself."""
    if "\0" in path:
        raise outside_project_error(path.replace("\0", "\\0"), "a name cannot contain NUL")
    if path.startswith("/"):
        raise outside_project_error(path, "it is an absolute path")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise outside_project_error(path, "`..` is not followed")
    if len(path.encode()) > _PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in parts):
        raise outside_project_error(path, "it is too long to be the name of a file")
    for part in parts:
        refuse_git(part, path)
    return parts


def refuse_git(name: str, path: str) -> None:
    """Refuse the files of git, which are not part of the project."""
    if is_git(name):
        raise outside_project_error(path, "`.git` is not part of the project's files; use the git tools")


def is_git(name: str) -> bool:
    return name.casefold() == ".git"


def require_revision(tool: Tool, revision: str) -> None:
    """Refuse a revision that git would read as an option, a range, a search or a path."""
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise invalid_arguments_error(
            tool, f"revision: {format_path(revision)} is not the name of one commit, such as `HEAD~2` or an id."
        )


def format_path(path: str) -> str:
    """Return a path on one line, as it must be written in JSON. Bytes that are not UTF-8 appear as `\\xNN`."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return json.dumps(text) if text != text.strip() or not text or _CONTROL.search(text) else text


def format_validation_error(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_input=False)
    reasons = [
        f"{_format_location(detail['loc'])}: {shorten_text(detail['msg'], 200)}" for detail in errors[:_MOST_ERRORS]
    ]
    remaining = len(errors) - len(reasons)
    return shorten_text("; ".join((*reasons, *((f"and {remaining} more",) if remaining else ()))), _MOST_TEXT) + "."


def _format_location(names: Sequence[str | int]) -> str:
    """Return a location in the arguments. The names come from the agent, so their length is limited."""
    return shorten_text(".".join(format_path(shorten_text(str(name), 60)) for name in names), 200) or "all"


def shorten_text(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def append_notes(lines: Iterable[str], notes: Iterable[str]) -> str:
    """Return the lines, followed by the notes in square brackets."""
    return "\n".join((*lines, *(f"[{note}]" for note in notes if note)))
