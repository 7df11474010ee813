"""How many tokens the context window of a model holds, by the beginning of its name. An unknown model has none."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CONTEXT_WINDOWS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "claude-": 200_000,
        "gemini-": 1_048_576,
        "gpt-4.1": 1_047_576,
        "gpt-4o": 128_000,
        "gpt-5": 400_000,
        "o3": 200_000,
        "o4-mini": 200_000,
    }
)


def find_context_window(model: str) -> int | None:
    """Return the window of a model such as `gpt-5-mini` or `anthropic:claude-sonnet-4-5`; None if it is unknown."""
    name = model.rpartition(":")[2].rpartition("/")[2].casefold()
    known = [start for start in CONTEXT_WINDOWS if name.startswith(start)]
    return CONTEXT_WINDOWS[max(known, key=len)] if known else None
