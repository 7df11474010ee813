"""Who has looked something up often enough, by the table."""

from __future__ import annotations

import pytest

from proofstone.agents.tools.models import CLAIMING_TOOLS, WRITING_TOOLS, Tool
from proofstone.supervision.models.ladder import ToolUse, WorkKind
from proofstone.supervision.rules.position import LOOKUP_MINIMUMS, are_lookups_missing, is_research, rate_tool_use
from tests.rows import each_row

ACTIVE, LOW, MISSING, EXEMPT = ToolUse.ACTIVE, ToolUse.LOW, ToolUse.MISSING, ToolUse.EXEMPT


@each_row("tool", Tool)
def test_what_looks_is_research_and_what_writes_or_runs_is_not(tool: Tool) -> None:
    assert is_research(tool.value) is (tool not in WRITING_TOOLS | CLAIMING_TOOLS)


def test_a_tool_that_nobody_knows_is_no_look() -> None:
    assert not is_research("mcp__somebody__delete_everything")


@pytest.mark.seed("continuity", "tool-use")
def test_the_minimum_is_that_of_the_rules() -> None:
    assert {work.value: tuple(minimum) for work, minimum in LOOKUP_MINIMUMS.items()} == {
        "research": (2, 3),
        "design": (1, 1),
        "planning": (1, 2),
        "implementation": (1, 1),
    }


@each_row(
    ("work", "looks", "met", "total", "use"),
    [
        (WorkKind.RESEARCH, 0, 1, 4, ACTIVE),
        (WorkKind.RESEARCH, 0, 2, 4, LOW),
        (WorkKind.RESEARCH, 1, 2, 4, LOW),
        (WorkKind.RESEARCH, 2, 2, 4, ACTIVE),
        (WorkKind.RESEARCH, 0, 3, 4, MISSING),
        (WorkKind.RESEARCH, 1, 3, 4, LOW),
        (WorkKind.RESEARCH, 2, 3, 4, ACTIVE),
        (WorkKind.RESEARCH, 2, 4, 4, LOW),
        (WorkKind.RESEARCH, 3, 4, 4, ACTIVE),
        (WorkKind.DESIGN, 0, 1, 2, LOW),
        (WorkKind.DESIGN, 0, 2, 2, MISSING),
        (WorkKind.DESIGN, 1, 2, 2, ACTIVE),
        (WorkKind.PLANNING, 1, 1, 2, ACTIVE),
        (WorkKind.PLANNING, 1, 2, 2, LOW),
        (WorkKind.PLANNING, 2, 2, 2, ACTIVE),
        (WorkKind.IMPLEMENTATION, 0, 0, 3, ACTIVE),
        (WorkKind.IMPLEMENTATION, 0, 1, 3, ACTIVE),
        (WorkKind.IMPLEMENTATION, 0, 2, 3, MISSING),
        (WorkKind.IMPLEMENTATION, 1, 3, 3, ACTIVE),
        (WorkKind.IMPLEMENTATION, 0, 0, 0, ACTIVE),
        (None, 0, 3, 3, EXEMPT),
    ],
)
@pytest.mark.seed("continuity", "tool-use")
def test_use_by_work_looks_and_progress(work: WorkKind | None, looks: int, met: int, total: int, use: ToolUse) -> None:
    assert rate_tool_use(work, looks, met, total) is use
    assert are_lookups_missing(work, looks, met, total) is (use is MISSING)
