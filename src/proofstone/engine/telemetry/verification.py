"""What it has cost to ask agents whether they know what they are doing, and to have their answers judged.

What an agent was asked for in the middle of its work is on record with the turn boundary where it was asked; all that
it does until it is told to go on, it does to answer. A judge does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from proofstone.contracts.telemetry import Cost, VerificationCost
from proofstone.engine.telemetry.parts import Part
from proofstone.engine.telemetry.tally import Tally


@dataclass
class Verification:
    questions: int = 0
    judgements: int = 0
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Verification:
        found = cls()
        for part in parts:
            for one in part.dispatches:
                found.questions += one.questions
                found.judgements += one.judges
                if calls := [call for call in one.calls if call.verifies]:
                    found.tally.add(part.run_id, one, calls)
        return found

    def cost(self, total: Cost) -> VerificationCost | None:
        """With its share of all that was spent; None: nobody was asked."""
        if not self.questions and not self.judgements:
            return None
        mine = self.tally.cost()
        return VerificationCost(
            questions=self.questions,
            judgements=self.judgements,
            cost=mine,
            share_of_tokens=share(_tokens(mine), _tokens(total)),
            share_of_calls=share(mine.requests, None if total.untold else total.requests),
        )


def share(part: int | None, whole: int | None) -> float | None:
    """None: one of them is not known, or there is nothing to have a share in."""
    return None if part is None or not whole else round(part / whole, 4)


def _tokens(cost: Cost) -> int | None:
    if cost.input_tokens is None or cost.output_tokens is None or cost.unmeasured or cost.untold:
        return None
    return cost.input_tokens + cost.output_tokens
