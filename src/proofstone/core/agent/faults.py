"""What follows when a dispatch meets with a fault. Pure.

| fault                                            | within the dispatch      | the engine asks again |
|--------------------------------------------------|--------------------------|-----------------------|
| unavailable                                      | 2 retries, with a pause  | once                  |
| crashed, malformed (after its repairs), drifted  | –                        | once                  |
| timeout, denied, rejected, filtered, failed, looping, budget, cancelled | – | –              |

A task's executor is not asked again by the engine: the gate counts its attempts. `unavailable` and `denied` then stop
the run, which can be resumed: they are no fault of the work. Only in the control loop `unavailable` is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proofstone.contracts.agent import Completion, CompletionStatus, Fault, FaultKind

_LONGEST_PAUSE: Final = 60.0


class Follows(NamedTuple):
    retries: int = 0
    """Of the turn, within the dispatch."""
    again: bool = False
    """A new dispatch may fare better."""


FOLLOWS: Final[Mapping[FaultKind, Follows]] = {
    FaultKind.UNAVAILABLE: Follows(retries=2, again=True),
    FaultKind.CRASHED: Follows(again=True),
    FaultKind.MALFORMED: Follows(again=True),
    FaultKind.DRIFTED: Follows(again=True),
    FaultKind.TIMEOUT: Follows(),
    FaultKind.DENIED: Follows(),
    FaultKind.REJECTED: Follows(),
    FaultKind.FILTERED: Follows(),
    FaultKind.FAILED: Follows(),
    FaultKind.LOOPING: Follows(),
    FaultKind.BUDGET: Follows(),
    FaultKind.CANCELLED: Follows(),
}


def may_ask_again(fault: Fault) -> bool:
    """Whether a new dispatch may fare better, and can begin at once."""
    return FOLLOWS[fault.kind].again and (fault.retry_after or 0.0) <= _LONGEST_PAUSE


def pause(fault: Fault, retry: int) -> float | None:
    """Seconds before the n-th retry: as long as the provider asks for, else longer each time. None: there is no point,
    because it asks for longer than anybody here waits."""
    if retry > FOLLOWS[fault.kind].retries:
        return None
    wanted = fault.retry_after if fault.retry_after is not None else 2.0 ** (retry - 1)
    return max(wanted, 0.0) if wanted <= _LONGEST_PAUSE else None


def completion_of(fault: Fault) -> Completion:
    """A dispatch that ended in a fault, in the words of the completion contract."""
    return Completion(status=CompletionStatus.ERROR, summary=f"{fault.kind}: {fault.why}"[:200])
