"""Text of others in what an agent is told: in a fence that it cannot end. Pure."""

from __future__ import annotations

import re


def quoted(text: str, language: str = "") -> str:
    """The text in a fence that is longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"
