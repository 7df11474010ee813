"""What a tool call may ask for, and how a refusal reads. Pure: links and what is really there are `agents.tools`'s.

A refusal tells the agent what it may do instead.

Who may use the memory: whoever has a route to it. Perceiver, executor, agent validator and controller have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from pydantic import ValidationError

from proofstone.agents.memory.models import MemoryEntry
from proofstone.agents.models import RefusalRule
from proofstone.agents.rules.routes import allowed, role_of
from proofstone.agents.tools.models import Tool
from proofstone.common.globs import matches

_NAME_BYTES: Final = 255
_PATH_BYTES: Final = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_REVISION = re.compile(r"[0-9A-Za-z_@][0-9A-Za-z_./+^~-]*")
_MOST_ERRORS: Final = 5
_MOST_TEXT: Final = 2000

OF_TOOLS: Final = frozenset(
    {
        "node_modules", "bower_components", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".nox",
        ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".gradle", ".hg", ".svn",
    }
)  # fmt: skip
"""Folders that nobody's own work lies in: a search does not go into them by itself."""


class RefusedError(Exception):
    """The call is not carried out."""

    def __init__(self, rule: RefusalRule, text: str) -> None:
        super().__init__(text)
        self.rule = rule
        self.text = text


class FailedError(Exception):
    """The call was carried out, and nothing came of it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def unlisted(name: str, has: Collection[str]) -> RefusedError:
    tools = ", ".join(sorted(has)) or "none"
    return RefusedError(RefusalRule.UNLISTED, f"You do not have a tool {shown(name[:100])}. Your tools: {tools}.")


def invalid(tool: Tool, why: str) -> RefusedError:
    return RefusedError(RefusalRule.ARGUMENTS, f"{tool}: the arguments are not right. {why}")


def outside(path: str, why: str) -> RefusedError:
    text = f"{shown(path[:200])}: {why}. Name files of the project by their path from its root: `src/app.py`."
    return RefusedError(RefusalRule.OUTSIDE, text)


def secret(path: str) -> RefusedError:
    text = (
        f"{shown(path)} may hold secrets: it is neither shown nor changed. "
        "Work without it; if the task cannot be done so, say that in your answer."
    )
    return RefusedError(RefusalRule.SECRET, text)


def require_scope(path: str, scope: Sequence[str]) -> None:
    if any(matches(pattern, path) for pattern in scope):
        return
    allowed = ", ".join(map(shown, scope))
    said = f"You may change: {allowed}." if scope else "You may not change any file."
    text = f"{shown(path)} is not yours to change. {said} If it must change too, say so in your answer."
    raise RefusedError(RefusalRule.SCOPE, text)


def names(path: str) -> tuple[str, ...]:
    """The names on the way to a path, from the project's root; none for the root itself."""
    if "\0" in path:
        raise outside(path.replace("\0", "\\0"), "no name holds a NUL")
    if path.startswith("/"):
        raise outside(path, "it is an absolute path")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise outside(path, "`..` is not followed")
    if len(path.encode()) > _PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in parts):
        raise outside(path, "it is too long to be the name of a file")
    for part in parts:
        refuse_git(part, path)
    return parts


def refuse_git(name: str, path: str) -> None:
    """What git keeps for itself is no file of the project."""
    if is_git(name):
        raise outside(path, "`.git` is not part of the project's files; use the git tools")


def is_git(name: str) -> bool:
    return name.casefold() == ".git"


def require_revision(tool: Tool, revision: str) -> None:
    """Nothing that git would take for an option, a range, a search or a path."""
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise invalid(tool, f"revision: {shown(revision)} is not the name of one commit, such as `HEAD~2` or an id.")


def shown(path: str) -> str:
    """A path in one piece of one line, as it must be given back in JSON. Bytes that are not UTF-8 appear as `\\xNN`."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return json.dumps(text) if text != text.strip() or not text or _CONTROL.search(text) else text


def in_words(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_input=False)
    said = [f"{_place(item['loc'])}: {shortened(item['msg'], 200)}" for item in errors[:_MOST_ERRORS]]
    left = len(errors) - len(said)
    return shortened("; ".join((*said, *((f"and {left} more",) if left else ()))), _MOST_TEXT) + "."


def _place(names: Sequence[str | int]) -> str:
    """Where in the arguments. What they call a field is theirs, of any length and with anything in it."""
    return shortened(".".join(shown(shortened(str(name), 60)) for name in names), 200) or "all"


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def with_notes(lines: Iterable[str], notes: Iterable[str]) -> str:
    """What was found, and in square brackets what was not shown."""
    return "\n".join((*lines, *(f"[{note}]" for note in notes if note)))


ON_ACCEPTANCE: Final = frozenset({"meta_validator"})
"""Roles that remember nothing but what was accepted."""


def may_search(role: str) -> bool:
    return allowed(role, "memory", "MemoryQuery")


def may_write(role: str, entry: MemoryEntry) -> bool:
    return allowed(role, "memory", "MemoryEntry") and (entry.criteria_met or role_of(role) not in ON_ACCEPTANCE)
