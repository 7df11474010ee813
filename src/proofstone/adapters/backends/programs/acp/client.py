"""What an agent of the Agent Client Protocol may ask of us: for permission, and for files to be read and written.

Both are answered by the task's scope, so that an undeclared write is refused while it happens. Nothing else is served:
commands run in the sandbox, where the agent is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pydantic import JsonValue

from proofstone.adapters.backends.programs.acp.heard import Heard
from proofstone.adapters.backends.programs.acp.wire import Message
from proofstone.adapters.backends.programs.lines import count_at, objects_at, text_at, value_at
from proofstone.adapters.executors.site import Site
from proofstone.adapters.tools import Ground, Toolbox
from proofstone.adapters.tools.tree import Tree
from proofstone.contracts.agent import ToolCall
from proofstone.contracts.tools import Tool
from proofstone.core.agent.permission import Allowed, Bounds, decide, from_root
from proofstone.core.agent.tool_rules import FailedError, RefusedError, shown

METHOD_NOT_FOUND: Final = -32601
INVALID: Final = -32602
NOT_FOUND: Final = -32002
"""Agents that write through us ask for a file first, and take this for a new one: some by the code, some by its
usual words."""
_FILE_BYTES: Final = 16 << 20
_CHOICES: Final = {True: "allow_once", False: "reject_once"}


class NotServedError(Exception):
    """The agent gets an error for an answer."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Client:
    def __init__(self, site: Site, heard: Heard, bounds: Bounds) -> None:
        self._heard = heard
        self._bounds = bounds
        ground = Ground(
            files=site.work_tree, scope=bounds.scope, secret=site.secret, cancel=site.cancel, mask=site.mask
        )
        self._tree = Tree(ground)
        self._toolbox = Toolbox(ground, {Tool.WRITE})
        self._served: Mapping[str, Callable[[Message], Message]] = {
            "session/request_permission": self._permission,
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
        }

    def answer(self, method: str, parameters: JsonValue) -> Message:
        """Result or error, as a message carries it."""
        asked = parameters if isinstance(parameters, Mapping) else {}
        try:
            serve = self._served.get(method)
            if serve is None:
                raise NotServedError(METHOD_NOT_FOUND, f"{shown(method[:100])} is not served here.")
            return {"result": dict(serve(asked))}
        except NotServedError as error:
            return {"error": {"code": error.code, "message": error.text}}

    def told(self, method: str, parameters: JsonValue) -> None:
        """What it only tells."""
        update = value_at(parameters, "update")
        if method == "session/update" and isinstance(update, Mapping):
            self._heard.update(update)

    def _permission(self, asked: Message) -> Message:
        told = value_at(asked, "toolCall")
        if not isinstance(told, Mapping):
            raise NotServedError(INVALID, "There is no tool call to be permitted.")
        call = self._heard.asked(told)
        wish = call.wish
        decision = decide(wish, self._bounds)
        if not isinstance(decision, Allowed):
            self._heard.refused(call.name, decision.why, wish.paths)
        return {"outcome": _outcome(asked, allowed=isinstance(decision, Allowed))}

    def _read(self, asked: Message) -> Message:
        given = text_at(asked, "path")
        try:
            at = self._tree.readable(from_root(given, self._bounds.root))
            content = self._tree.read(at, _FILE_BYTES).decode()
        except RefusedError as refused:
            self._heard.refused("read", refused.text, (given,))
            raise NotServedError(INVALID, refused.text) from refused
        except FailedError as failed:
            raise NotServedError(INVALID, failed.text) from failed
        except FileNotFoundError as error:
            raise NotServedError(NOT_FOUND, f"Resource not found: {shown(given)} does not exist.") from error
        except UnicodeDecodeError as error:
            raise NotServedError(INVALID, f"{shown(given)} is not UTF-8.") from error
        except OSError as error:
            raise NotServedError(INVALID, f"{shown(given)}: {error.strerror}.") from error
        return {"content": _part(content, count_at(asked, "line"), count_at(asked, "limit"))}

    def _write(self, asked: Message) -> Message:
        given, content = text_at(asked, "path"), value_at(asked, "content")
        if not isinstance(content, str):
            raise NotServedError(INVALID, "There is no content to be written.")
        try:
            path = from_root(given, self._bounds.root)
        except RefusedError as refused:
            self._heard.refused("write", refused.text, (given,))
            raise NotServedError(INVALID, refused.text) from refused
        arguments = {"path": path, "content": content}
        result = self._toolbox.call(ToolCall(id="write", name=Tool.WRITE, arguments=arguments))
        if result.refused is not None:
            self._heard.refused("write", result.text, (given,))
        if not result.ok:
            raise NotServedError(INVALID, result.text)
        return {}


def _outcome(asked: Message, *, allowed: bool) -> dict[str, JsonValue]:
    """Once, and never for always: the next one may be another file."""
    for option in objects_at(asked, "options"):
        if text_at(option, "kind") == _CHOICES[allowed]:
            return {"outcome": "selected", "optionId": text_at(option, "optionId")}
    return {"outcome": "cancelled"}


def _part(content: str, line: int, limit: int) -> str:
    """The lines that are wanted, counted from 1; all, if none are named."""
    if line <= 1 and not limit:
        return content
    first = max(line, 1) - 1
    lines = content.splitlines(keepends=True)
    return "".join(lines[first : first + limit] if limit else lines[first:])
