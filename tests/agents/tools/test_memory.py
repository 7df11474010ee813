"""What an agent is shown of the memory."""

from __future__ import annotations

from pathlib import Path

from proofstone.agents.memory.models import MemoryEntry, MemoryType
from proofstone.agents.memory.store import FileMemory
from proofstone.agents.models import RefusalRule
from tests.agents.tools.desk import Desk


def remembered(tmp_path: Path, *contents: str) -> Desk:
    memory = FileMemory(tmp_path / "memory" / "entries.jsonl")
    for number, content in enumerate(contents):
        memory.write(
            MemoryEntry(
                entry_id=f"m-{number}",
                task_id="t",
                type=MemoryType.PROCEDURAL,
                content=content,
                criteria_met=True,
                timestamp=f"2025-01-{number + 1:02}T00:00:00Z",
            )
        )
    return Desk(tmp_path, ground_more={"memory": memory})


def test_entries_are_shown_with_id_type_and_time(tmp_path: Path) -> None:
    desk = remembered(tmp_path, "The queue retries thrice.", "Nothing of the kind.")
    assert desk.ok("memory_search", query="queue retries") == (
        "m-0 (procedural, 2025-01-01T00:00:00Z)\nThe queue retries thrice."
    )


def test_what_nobody_remembers_is_said(tmp_path: Path) -> None:
    assert remembered(tmp_path).ok("memory_search", query="queue") == "The memory has nothing about queue."


def test_at_most_ten_are_shown_and_not_all_of_a_long_one(tmp_path: Path) -> None:
    desk = remembered(tmp_path, *(f"queue {'x' * 5000}" for _ in range(12)))
    text = desk.ok("memory_search", query="queue")
    assert text.count("(procedural,") == 10 and len(text) < 20_000
    assert "… [3,206 more characters]" in text


def test_a_damaged_memory_is_a_failed_call(tmp_path: Path) -> None:
    desk = remembered(tmp_path, "queue")
    (tmp_path / "memory" / "entries.jsonl").write_text("not JSON\n")
    assert "line 1: not a memory entry" in desk.failed("memory_search", query="queue")


def test_without_a_memory_there_is_no_such_tool(desk: Desk) -> None:
    assert "memory_search" not in {spec.name for spec in desk.toolbox.specs}
    assert desk.refused("memory_search", query="queue") == RefusalRule.UNLISTED


def test_a_query_must_say_something(tmp_path: Path) -> None:
    assert remembered(tmp_path).refused("memory_search", query="") == RefusalRule.ARGUMENTS
