"""What a person adds to a run while it is under way: heard at fixed points, and on record there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proofstone.contracts.rows import EventRow
from proofstone.engine.continuity.board import Added, Board
from proofstone.engine.pipeline.journal import PipelineJournal
from proofstone.engine.steps import Steps

PLANNED: Final = "plan/"
"""How the points begin at which whoever plans is told: what they were told is planned."""
_HEARD: Final = "pipeline.heard"


@dataclass(frozen=True)
class Adding:
    board: Board
    journal: PipelineJournal
    heard: Steps

    @classmethod
    def opened(cls, board: Board, journal: PipelineJournal) -> Adding:
        return cls(board, journal, Steps.opened(board.ledger, board.run_id, _HEARD, "run"))

    def unplanned(self, point: str) -> tuple[str, ...]:
        """What was added and is neither in a plan nor taken in by a task, as it was when the run first came by."""
        known = self.heard.recall(point, point)
        if known is None:  # that there was nothing is on record too: what is said later is heard at the next point
            known = self.heard.keep(point, point, {"numbers": [one.number for one in self._left(point)]})
        listed = known["numbers"] if isinstance(known["numbers"], list) else []
        return tuple(one.text for one in self.board.added() if one.number in listed)

    def too_late(self) -> tuple[str, ...]:
        """What nobody has planned when the run is over."""
        return tuple(one.text for one in self._left(""))

    def _left(self, point: str) -> list[Added]:
        settled = self._planned(before=point) | self._taken_in()
        return [one for one in self.board.added() if one.number not in settled]

    def _planned(self, before: str) -> set[int]:
        found: set[int] = set()
        for point, came in self.heard.all(PLANNED):
            numbers = came["numbers"]
            if point != before and isinstance(numbers, list):
                found.update(int(str(one)) for one in numbers)
        return found

    def _taken_in(self) -> set[int]:
        """By tasks of any part, in the middle of their work."""
        rows = (
            stored.row
            for part in self.journal.children()
            for stored in self.journal.ledger.read(EventRow, run_id=part, type="plan.amended")
        )
        return {int(str(row.payload["number"])) for row in rows if row.payload.get("number")}
