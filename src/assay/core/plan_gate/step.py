"""What a plan of any form is made of: its steps, and the places where it says that something is not known yet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A task of a PLAN.md, or a step of any other text."""

    name: str
    line: int
    files: tuple[str, ...]
    verify: tuple[str, ...]
    done: tuple[str, ...]
    ordered: bool
    """Whether one knows what it waits for: it is said, or it follows from the order of the document."""
    checkpoint: bool = False
    end: int = 0
    """Its last line."""
    text: str = ""
    """All of it, as written."""
    wave: int = 1
    """Steps of a lower one come before it."""

    def line_of(self, fragment: str) -> int:
        """Where in it a text stands, as far as it stands there as it was read."""
        needle = next((line.strip() for line in fragment.split("\n") if line not in ("set -e", "{")), "")
        words = needle.split()
        for said in dict.fromkeys((needle, " ".join(words[:6]), " ".join(words[:3]))):
            if said and (at := self.text.find(said)) >= 0:
                return self.line + self.text.count("\n", 0, at)
        return self.line


@dataclass(frozen=True)
class Marker:
    """A place that is still open: TBD, ???, "to be decided"."""

    line: int
    text: str
