"""Whether an agent looks before it decides (COA-5).

| work           | looks by half of it | at its end |
|----------------|---------------------|------------|
| research       | 2                   | 3          |
| design         | 1                   | 1          |
| planning       | 1                   | 2          |
| implementation | 1                   | 1          |

Before half of it nothing is due. Fewer looks than are due is LOW; none at all past half is MISSING, and that sets
re-verification off (T5). Other work asks for none, and the looks of a program with tools of its own cannot be counted:
EXEMPT.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.contracts.reverify.position import ToolUse, Work
from proofstone.contracts.tools import BEYOND, READING
from proofstone.core.reverify.limits import HALF

RESEARCH: Final = frozenset(str(tool) for tool in READING | BEYOND)
"""Tools that look something up: in the tree, its history, the memory, the web."""


class Minimum(NamedTuple):
    by_half: int
    at_end: int


MINIMUM: Final[Mapping[Work, Minimum]] = MappingProxyType(
    {
        Work.RESEARCH: Minimum(2, 3),
        Work.DESIGN: Minimum(1, 1),
        Work.PLANNING: Minimum(1, 2),
        Work.IMPLEMENTATION: Minimum(1, 1),
    }
)


def is_research(tool: str) -> bool:
    return tool in RESEARCH


def due(work: Work, met: int, total: int) -> int:
    """Looks that the work asks for by now."""
    if not total or met < total * HALF:
        return 0
    return MINIMUM[work].by_half if met < total else MINIMUM[work].at_end


def is_missing(work: Work | None, looks: int, met: int, total: int) -> bool:
    """Past half of it without one look, where one is required."""
    return work is not None and not looks and met > total * HALF and due(work, met, total) > 0


def tool_use(work: Work | None, looks: int, met: int, total: int) -> ToolUse:
    if work is None:
        return ToolUse.EXEMPT
    if is_missing(work, looks, met, total):
        return ToolUse.MISSING
    return ToolUse.LOW if looks < due(work, met, total) else ToolUse.ACTIVE
