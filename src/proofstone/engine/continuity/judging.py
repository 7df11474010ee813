"""What code cannot judge goes to the architect's model. Where there is none, nobody can say, and that is said."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from proofstone.contracts.agent import Dispatched, Fault, FaultKind, Occasion
from proofstone.contracts.reverify.judging import Judged, Judgement, JudgeRequest, ToJudge
from proofstone.contracts.verdict import Verdict

Dispatch = Callable[[JudgeRequest, Occasion], Dispatched]
"""Asks the architect."""
_STOPS = (FaultKind.CANCELLED, FaultKind.BUDGET)
"""Of the whole run, and not of the judge."""


class StoppedError(Exception):
    """The run is being stopped: nothing was judged."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.why)
        self.fault = fault


@dataclass(frozen=True)
class Judge:
    """Of one agent's understanding."""

    occasion: Occasion
    """The agent's own."""
    task: str
    base_commit: str
    ask: Dispatch | None
    """None: there is nobody to ask."""
    why_not: str = "no model is there to judge it"

    def say(self, said: str, to_judge: Sequence[ToJudge], number: int) -> Mapping[str, Judged]:
        """For each item what the judge says. `number`: of the question, the same after a crash. An agent that had to
        begin anew may say something else: what was judged before is no judgement of that."""
        if not to_judge:
            return {}
        if self.ask is None:
            return {one.item: _unknown(one.item, self.why_not) for one in to_judge}
        mine = self.occasion
        request = JudgeRequest(
            run_id=mine.run_id,
            agent=mine.agent,
            task=self.task,
            said=said,
            to_judge=tuple(to_judge),
            base_commit=self.base_commit,
        )
        occasion = Occasion(
            run_id=mine.run_id,
            role="architect",
            step=f"{mine.id}/understanding-{number}-{_digest(request)}",
            task=mine.task,
            task_name=mine.task_name,
            attempt=mine.attempt,
            focus="understanding",
        )
        return _judged(self.ask(request, occasion), to_judge)


def _digest(request: JudgeRequest) -> str:
    asked = "\0".join((request.said, *(one.item for one in request.to_judge)))
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _unknown(item: str, why: str) -> Judged:
    return Judged(item=item, verdict=Verdict.UNVERIFIABLE, detail=why)


def _judged(dispatched: Dispatched, to_judge: Sequence[ToJudge]) -> Mapping[str, Judged]:
    if dispatched.fault is not None and dispatched.fault.kind in _STOPS:
        raise StoppedError(dispatched.fault)
    said = dispatched.output.items if isinstance(dispatched.output, Judgement) else ()
    why = dispatched.fault.why if dispatched.fault else "the judge said nothing about it"
    missing = {one.item: _unknown(one.item, why) for one in to_judge}
    worst: dict[str, Judged] = {}
    for one in said:
        if one.item in missing and (one.item not in worst or one.verdict is Verdict.FAIL):
            worst[one.item] = one
    return {**missing, **worst}
