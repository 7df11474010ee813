"""What may not be used again in a task, and for how long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proofstone.solve.rules.plan_rules import Blocks, has_working_tools
from tests.rows import each_row
from tests.solve.talk import TOOLS

READING = ("read", "glob", "grep")


@each_row(
    ("tools", "blocked", "enough"),
    [
        (TOOLS, (), True),
        (TOOLS, READING, True),
        (TOOLS, ("run", "write"), True),
        (TOOLS, ("run", "write", "edit"), False),
        (TOOLS, TOOLS, False),
        (("run",), ("run",), False),
        (READING, ("read", "glob"), True),
        (READING, READING, False),
        ((), (), False),
    ],
)
def test_the_work_can_be_done_while_a_tool_that_changes_something_is_left_if_there_is_any(
    tools: tuple[str, ...], blocked: tuple[str, ...], enough: bool
) -> None:
    assert has_working_tools(tools, blocked) == enough


@each_row(
    ("rounds", "held"),
    [
        ([("run",)], ("run",)),
        ([("run",), ("read", "write")], ("run", "read", "write")),
        ([("run",), ()], ("run",)),
        ([("run",), ("run", "read")], ("run", "read")),
        ([("run",), ("write",), ("edit",)], ("write", "edit")),
        ([("read", "run"), ("write",), ("edit",)], ("write", "edit")),
        ([("run", "write"), ("read",), ("edit",)], ("read", "edit")),
        ([("run",), ("write", "edit")], ("write", "edit")),
        ([("run",), TOOLS], ("run",)),
        ([TOOLS, ("run",)], ("run",)),
    ],
)
def test_a_tool_stays_blocked_while_something_is_left_to_work_with(
    rounds: list[tuple[str, ...]], held: tuple[str, ...]
) -> None:
    blocks = Blocks()
    for used in rounds:
        blocks = blocks.block_tools(used, TOOLS)
    assert blocks.tools == held


@given(st.lists(st.lists(st.sampled_from((*TOOLS, "curl"))).map(tuple), max_size=6))
def test_something_is_always_left_and_the_newest_is_always_blocked_if_it_can_be(rounds: list[tuple[str, ...]]) -> None:
    blocks = Blocks()
    for used in rounds:
        blocks = blocks.block_tools(used, TOOLS)
        assert has_working_tools(TOOLS, blocks.tools)
        assert set(used) <= set(blocks.tools) or not has_working_tools(TOOLS, used)


def test_a_target_stays_blocked_and_nobody_blocks_the_whole_tree() -> None:
    blocks = Blocks().block_targets(("src/a.py", ".", "src/..")).block_targets(("./", "src/b.py", "src/a.py", ""))
    assert blocks.targets == ("src/a.py", "src/b.py")
    assert blocks.block_tools(("run",), TOOLS).targets == blocks.targets
