"""Edits that an agent writes into its text: how they are read, and when they count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.agents.models import (
    Conversation,
    DispatchKey,
    EngineMessage,
    Fault,
    FaultKind,
    ToolCall,
    ToolResult,
    Turn,
)
from proofstone.agents.roles.models.gate import ExecutorResult
from proofstone.agents.rules.conversation import ConversationEnd, RequestTurn, UseTool, run_conversation
from proofstone.agents.rules.edit_blocks import SHOWN_HEADING, find_shown_files, read_edit_calls

OLD, NEW = "    return a - b", "    return a + b"
BLOCK = f"<<<<<<< SEARCH\n{OLD}\n=======\n{NEW}\n>>>>>>> REPLACE"
EDIT = ("edit", {"path": "shop/cart.py", "old": OLD, "new": NEW})
WRITE = ("write", {"path": "shop/cart.py", "content": "def add(a, b):\n    return a + b\n"})
WHOLE = "```python\ndef add(a, b):\n    return a + b\n```"

READ: dict[str, tuple[str, list[tuple[str, dict[str, str]]]]] = {
    "a replacement": (f"FILE: shop/cart.py\n{BLOCK}\nDone.", [EDIT]),
    "a replacement in a fence": (f"shop/cart.py\n```python\n{BLOCK}\n```", [EDIT]),
    "its path as a heading": (f"### `shop/cart.py`\n\n{BLOCK}", [EDIT]),
    "two replacements of one file": (f"**File: shop/cart.py**\n{BLOCK}\n\n{BLOCK}", [EDIT, EDIT]),
    "a whole file": (f"FILE: shop/cart.py\n{WHOLE}\nThat is all.", [WRITE]),
    "a file and a replacement": (
        f"FILE: a.py\n```\nx = 1\n```\n\nFILE: shop/cart.py\n{BLOCK}",
        [("write", {"path": "a.py", "content": "x = 1\n"}), EDIT],
    ),
    "a fence inside a longer fence": (
        "FILE: README.md\n````markdown\n```\nx\n```\n````",
        [("write", {"path": "README.md", "content": "```\nx\n```\n"})],
    ),
    "nothing to delete it with": (
        "FILE: a.py\n<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE",
        [("edit", {"path": "a.py", "old": "x", "new": ""})],
    ),
    "a block without a path": (BLOCK, []),
    "a block that does not end": (f"FILE: a.py\n{BLOCK[:40]}", []),
    "a fence that does not end": ("FILE: a.py\n```python\nx = 1", []),
    "code that belongs to no file": (f"This is how it works:\n{WHOLE}", []),
    "a command and an answer": ('FILE: a.py\n```bash\nmake\n```\nb.py\n```json\n{"status": "success"}\n```', []),
    "an old text that is empty": ("FILE: a.py\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE", []),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_what_is_read_as_an_edit(text: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    calls = read_edit_calls(Turn(text=text), 3)
    assert [(call.name, dict(call.arguments)) for call in calls] == expected
    assert [call.id for call in calls] == [f"block-3-{number}" for number in range(1, len(expected) + 1)]


SHOWN = f"# Task\n\n{SHOWN_HEADING}\n\nFILE: shop/cart.py\n```\ndef add(a, b):\n{OLD}\n```\n"


def test_code_without_a_path_is_meant_for_the_only_file_that_is_shown() -> None:
    shown = find_shown_files(SHOWN)
    assert shown == {"shop/cart.py": f"def add(a, b):\n{OLD}"}
    (call,) = read_edit_calls(Turn(text=f"add is wrong.\n{WHOLE}"), 1, shown)
    assert (call.name, dict(call.arguments)) == WRITE
    (call,) = read_edit_calls(Turn(text=BLOCK), 1, shown)
    assert (call.name, dict(call.arguments)) == EDIT


def test_code_without_a_path_is_no_edit_where_it_may_be_a_piece_or_meant_for_another_file() -> None:
    longer = {"shop/cart.py": "\n".join(f"line {number}" for number in range(10))}
    assert read_edit_calls(Turn(text=WHOLE), 1, longer) == ()
    assert read_edit_calls(Turn(text=WHOLE), 1, {**find_shown_files(SHOWN), "other.py": "x"}) == ()
    assert find_shown_files("FILE: a.py\n```\nx\n```") == {}


def test_a_turn_that_calls_tools_or_answers_has_no_blocks() -> None:
    text = f"FILE: a.py\n{BLOCK}"
    assert read_edit_calls(Turn(text=text, calls=(ToolCall(id="1", name="read"),)), 1) == ()
    assert read_edit_calls(Turn(text=text, answer={"status": "success"}), 1) == ()


@given(st.text(alphabet="<>=SEARCHREPLACE `\nFILE:a.py/", max_size=200))
def test_any_text_gives_calls_with_a_path(text: str) -> None:
    assert all(call.arguments["path"] for call in read_edit_calls(Turn(text=text), 1))


DONE = '{"status": "success", "evidence": "it adds"}'


def converse(edits: str, *turns: Turn, ok: bool = True, allowance: int = 9) -> tuple[ConversationEnd, list[ToolCall]]:
    """Return how the conversation ended, and the calls that were carried out."""
    opening = Conversation.model_validate(
        {
            "occasion": DispatchKey(run_id="r", role="executor"),
            "instructions": "Do it.",
            "tools": (),
            "output_schema": {},
            "entries": (EngineMessage(text="please"),),
            "edits": edits,
        }
    )
    says: Iterator[Turn] = iter(turns)
    used: list[ToolCall] = []
    talk = run_conversation(opening, ExecutorResult, allowance)
    sent: Turn | ToolResult | None = None
    while True:
        try:
            effect = talk.send(sent)
        except StopIteration as stop:
            assert isinstance(stop.value, ConversationEnd)
            return stop.value, used
        sent = None
        if isinstance(effect, RequestTurn):
            sent = next(says)
        elif isinstance(effect, UseTool):
            used.append(effect.call)
            sent = ToolResult(call_id=effect.call.id, name=effect.call.name, text="changed", ok=ok)


def test_edits_and_the_answer_in_one_turn_end_the_work() -> None:
    ended, used = converse("blocks", Turn(text=f"FILE: shop/cart.py\n{BLOCK}\n\n{DONE}"))
    assert isinstance(ended.output, ExecutorResult) and ended.output.evidence == "it adds"
    assert [call.name for call in used] == ["edit"] and (ended.turns, ended.tool_calls) == (1, 1)


def test_an_answer_beside_an_edit_that_failed_is_not_taken() -> None:
    again = Turn(text='{"status": "failure", "error": "the text is not there"}')
    ended, _ = converse("blocks", Turn(text=f"FILE: shop/cart.py\n{BLOCK}\n\n{DONE}"), again, ok=False)
    assert isinstance(ended.output, ExecutorResult) and ended.output.status == "failure"
    assert ended.turns == 2


def test_without_an_answer_the_agent_is_shown_what_was_changed() -> None:
    ended, used = converse("blocks", Turn(text=f"FILE: a.py\n{WHOLE}"), Turn(text=DONE))
    assert isinstance(ended.output, ExecutorResult) and len(used) == 1 and ended.turns == 2


def test_where_tools_change_files_code_in_a_text_is_only_text() -> None:
    ended, used = converse("tool", Turn(text=f"FILE: shop/cart.py\n{BLOCK}\n\n{DONE}"))
    assert isinstance(ended.output, ExecutorResult) and used == []


def test_whoever_is_stopped_leaves_a_summary_of_what_was_tried() -> None:
    def turn(path: str) -> Turn:
        return Turn(calls=(ToolCall(id=path, name="edit", arguments={"path": path, "old": "x", "new": "y"}),))

    ended, _ = converse("tool", *(turn(path) for path in ("a.py", "b.py", "a.py", *"cdefgh")), ok=False, allowance=3)
    assert isinstance(ended.output, Fault) and ended.output.kind is FaultKind.LOOPING
    assert (
        "its 3 calls are spent; tried: edit a.py, which failed (2 times), edit b.py, which failed" in ended.output.why
    )
