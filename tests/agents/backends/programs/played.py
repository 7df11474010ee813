"""What a program once printed, read again by its stream, as the backend would read it."""

from __future__ import annotations

from pathlib import Path

from proofstone.agents.backends.programs.preset import OutputReader, ProgramResult
from proofstone.agents.models import Activity, ActivityKind

_STREAMS = Path(__file__).parent / "streams"

HOSTILE = (
    "", " ", "{", "[]", "null", "12", '"text"', "\x00", "\ud800", "{" * 5000, "[" * 100_000, '{"type": 5}',
    '{"type": "message"}', '{"type": "message", "message": 5, "role": "assistant", "content": {}}',
    '{"type": "message", "message": {"content": [1, {"type": "toolRequest", "toolCall": []}]}}',
    '{"type": "tool_use", "parameters": []}', '{"type": "tool_result", "error": "x"}', '{"type": "error"}',
    '{"type": "assistant", "message": {"content": [{"type": "tool_use", "input": null}, {"type": "text"}]}}',
    '{"type": "user", "message": {"content": [{"type": "tool_result"}]}}', '{"type": "system"}',
    '{"type": "result", "stats": {"models": {"m": 5}}, "usage": {"input_tokens": -1}, "num_turns": "x"}',
    '{"type": "complete", "input_tokens": 1e400}', "Tokens: . sent, . received.", "Tokens: 1.2.3k sent, 7 received.",
    "Applied edit to ", "mini-swe-agent (step 99, $1.2.3):", "Tool:", "Exit:", "```", "error: ",
)  # fmt: skip
"""Lines that no program should print."""


def played(stream: OutputReader, name: str, exit_code: int | None = 0) -> tuple[list[Activity], ProgramResult]:
    lines = (_STREAMS / name).read_text("utf-8").split("\n")
    activities = [activity for line in lines if line.strip() for activity in stream.line(line)]
    return activities, stream.is_final(exit_code)


def brief(activities: list[Activity]) -> list[tuple[ActivityKind, str, tuple[str, ...], bool | None]]:
    return [(one.kind, one.name, one.paths, one.ok) for one in activities]


def survives(stream: OutputReader) -> ProgramResult:
    """Nothing that a program prints makes its stream raise."""
    for line in HOSTILE:
        list(stream.line(line))
    return stream.is_final(None)
