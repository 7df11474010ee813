"""A desk: a folder that an agent's tools act on, and a canary beside it that nothing may ever read or change."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofstone.agents.models import ToolCall, ToolResult
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import Toolbox

CANARY = "the-canary-that-nobody-may-see"


@dataclass
class Desk:
    folder: Path
    scope: tuple[str, ...] = ("**",)
    ground_more: Mapping[str, Any] = field(default_factory=dict)
    allowed: Collection[Tool] = tuple(Tool)
    cancel: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.files.mkdir(parents=True, exist_ok=True)
        self.canary.write_text(CANARY)
        (self.folder / "beside").mkdir(exist_ok=True)
        (self.folder / "beside" / "canary.txt").write_text(CANARY)

    @property
    def files(self) -> Path:
        return self.folder / "ground"

    @property
    def canary(self) -> Path:
        return self.folder / "canary.txt"

    @property
    def toolbox(self) -> Toolbox:
        ground = ToolContext(files=self.files, scope=self.scope, cancel=self.cancel, **self.ground_more)
        return Toolbox(ground, self.allowed)

    def put(self, name: str, content: str | bytes = "x\n") -> Path:
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def link(self, name: str, to: str | Path) -> None:
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(to)

    def call(self, tool: str, seconds: float | None = None, /, **arguments: object) -> ToolResult:
        return self.toolbox.call(ToolCall.model_validate({"id": "c1", "name": tool, "arguments": arguments}), seconds)

    def ok(self, tool: str, /, **arguments: object) -> str:
        result = self.call(tool, **arguments)
        assert result.ok and result.refused is None, result.text
        return result.text

    def failed(self, tool: str, /, **arguments: object) -> str:
        """What it says of a call that was allowed and came to nothing."""
        result = self.call(tool, **arguments)
        assert not result.ok and result.refused is None, result
        return result.text

    def refused(self, tool: str, /, **arguments: object) -> str:
        """The rule."""
        result = self.call(tool, **arguments)
        assert not result.ok and result.refused is not None, result
        return str(result.refused)

    def beside(self) -> dict[str, str]:
        """Everything that lies outside the ground."""
        found = [path for path in self.folder.rglob("*") if not path.is_relative_to(self.files) and path.is_file()]
        return {path.relative_to(self.folder).as_posix(): path.read_text() for path in found}
