"""What may not be used again in a task, and for how long. Pure.

What the controller blocks stays blocked to the end of the task: else a plan could go back and forth between two
approaches that have both failed. Only where nothing would be left to work with, the oldest are lifted, round by round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import Final

from proofstone.contracts.tools import WRITING

_WORKS: Final = frozenset(one.value for one in WRITING)
_ALL: Final = "."
"""Of paths, the one that all others are below."""


def enough_left(tools: Collection[str], blocked: Iterable[str]) -> bool:
    """Whether the work can still be done: by a tool that can change something, if there is any."""
    left = set(tools).difference(blocked)
    return bool(left & _WORKS) if _WORKS.intersection(tools) else bool(left)


@dataclass(frozen=True)
class Blocks:
    """What is in force."""

    by_round: tuple[tuple[str, ...], ...] = ()
    """Tools, as they were blocked: the oldest first."""
    targets: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tool for tools in self.by_round for tool in tools))

    def and_tools(self, used: tuple[str, ...], there_are: Collection[str]) -> Blocks:
        """With the tools of what failed, unless they are all that there is to work with."""
        if not used or not enough_left(there_are, used):
            return self
        held = replace(self, by_round=(*self.by_round, used))
        while not enough_left(there_are, held.tools):
            held = replace(held, by_round=held.by_round[1:])
        return held

    def and_targets(self, used: Iterable[str]) -> Blocks:
        """With what it was tried on. Who blocks the whole tree blocks every plan."""
        return replace(
            self, targets=tuple(dict.fromkeys((*self.targets, *(one for one in used if normpath(one) != _ALL))))
        )
