"""Count how often an executor corrects itself within one attempt, and end that after the second time.

A correction is a change of a file after a verify command of the task, run by the executor itself, has failed. When the
command fails again after the second correction, the executor may look and run commands, but change no more files: it
answers, and the gate decides what the next attempt is told. Only calls of Proofstone's own tools can be counted, and an
attempt that was interrupted is counted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.models import RefusalRule, ToolCall, ToolResult, ToolSpec
from proofstone.agents.tools.models import Tool
from proofstone.agents.tools.services import PASSED_TEXT
from proofstone.agents.tools.toolbox import Tools

MAX_CORRECTIONS: Final = 2
_CHANGING_TOOLS: Final = frozenset({Tool.WRITE.value, Tool.EDIT.value, Tool.DELETE.value})
_EXHAUSTED: Final = (
    f"You have corrected your work {MAX_CORRECTIONS} times in this attempt, and a verify command still fails: no more "
    "files can be changed. Answer now with `failure`, and say what fails and what you would do next."
)


@dataclass
class CorrectionCount:
    """The corrections of one attempt so far."""

    made: int = 0
    has_failed: bool = False
    """Whether a verify command has failed since the last change."""
    _commands: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, commands: Sequence[str]) -> CorrectionCount:
        return cls(_commands=frozenset(map(_normalize, commands)))

    def note_run(self, command: str, *, passed: bool) -> None:
        """Note how a command of the executor ended."""
        if _normalize(command) in self._commands:
            self.has_failed = not passed

    def note_change(self) -> bool:
        """Note that the executor wants to change a file. Return whether it may."""
        if not self.has_failed:
            return True
        if self.made >= MAX_CORRECTIONS:
            return False
        self.made, self.has_failed = self.made + 1, False
        return True


@dataclass(frozen=True)
class CountedTools:
    """The tools of an executor, with its corrections counted. Implements `Tools`."""

    tools: Tools
    count: CorrectionCount

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self.tools.specs

    def with_scope(self, scope: tuple[str, ...]) -> CountedTools:
        return CountedTools(self.tools.with_scope(scope), self.count)

    def call(self, call: ToolCall, seconds: float | None = None) -> ToolResult:
        if call.name in _CHANGING_TOOLS and not self.count.note_change():
            return ToolResult(call_id=call.id, name=call.name, text=_EXHAUSTED, ok=False, refused=RefusalRule.BUDGET)
        result = self.tools.call(call, seconds)
        command = call.arguments.get("command")
        if call.name == Tool.RUN.value and isinstance(command, str) and result.refused is None:
            self.count.note_run(command, passed=result.text.startswith(PASSED_TEXT))
        return result


def _normalize(command: str) -> str:
    return " ".join(command.split())
