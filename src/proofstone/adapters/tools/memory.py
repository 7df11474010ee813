"""The tool that searches the memory. What it shows is data: whatever an entry says, nobody has to follow it."""

from __future__ import annotations

from typing import Final

from proofstone.adapters.tools.ground import Deadline, Ground
from proofstone.contracts.memory import MemoryEntry
from proofstone.contracts.tools import MemorySearch
from proofstone.core.agent.tool_rules import FailedError, shown
from proofstone.errors import InputError

_MOST: Final = 10
_CONTENT: Final = 1800
"""Characters of one entry: ten of them are a page."""


def search(ground: Ground, wanted: MemorySearch, _deadline: Deadline) -> str:
    if ground.memory is None:
        raise AssertionError("a toolbox offers the memory only where there is one")
    try:
        found = ground.memory.search((wanted.query,), _MOST)
    except InputError as error:  # somebody has edited its file
        raise FailedError(f"The memory cannot be read: {error.message}") from error
    if not found:
        return f"The memory has nothing about {shown(wanted.query)}."
    return "\n\n".join(map(_entry, found))


def _entry(entry: MemoryEntry) -> str:
    more = len(entry.content) - _CONTENT
    content = entry.content if more <= 0 else f"{entry.content[:_CONTENT]}… [{more:,} more characters]"
    return f"{shown(entry.entry_id)} ({entry.type}, {shown(entry.timestamp)})\n{content}"
