"""What an agent is told or asked, in one line for whoever watches it. Pure."""

from __future__ import annotations

from typing import Final

from proofstone.contracts.agent import Told
from proofstone.core.plan.problems import shortened

_KNOWN: Final = ("Phase ", "Target: ")
"""Fields of a line that whoever watches an agent knows already."""


def spoken(told: Told, length: int) -> str:
    """What an agent is told or asked, in one line for whoever watches it: `? RV-1: [REVERIFY] Level 1 | Reason: …`."""
    line = told.text.partition("\n")[0]
    head, bracket, rest = line.partition("[")
    tag, _, fields = rest.partition("] ")
    kept = [one for one in fields.split(" | ") if not one.startswith(_KNOWN)]
    said = f"[{tag.removesuffix(']')}] {' | '.join(kept)}".strip() if bracket else head
    return shortened(f"? {told.asked}: {said}" if told.asked else f"» {said}", length)
