"""What a run tells whoever watches it. Watching decides nothing."""

from __future__ import annotations

from typing import Protocol

from proofstone.contracts.report import CheckLine
from proofstone.contracts.verdict import Phase


class Progress(Protocol):
    def step(self, text: str) -> None:
        """A stage of the run begins."""

    def started(self, check: str, phase: Phase) -> None: ...

    def output(self, check: str, phase: Phase, data: bytes) -> None:
        """Called from the thread that runs the check."""

    def ended(self, check: str, phase: Phase, *, reused: bool) -> None: ...

    def judged(self, line: CheckLine) -> None: ...


class Silent:
    """Nobody watches."""

    def step(self, text: str) -> None:
        return None

    def started(self, check: str, phase: Phase) -> None:
        return None

    def output(self, check: str, phase: Phase, data: bytes) -> None:
        return None

    def ended(self, check: str, phase: Phase, *, reused: bool) -> None:
        return None

    def judged(self, line: CheckLine) -> None:
        return None
