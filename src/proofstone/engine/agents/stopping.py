"""What stops a whole run although an agent has met with it: it is no failure of the agent's, and everything is kept."""

from __future__ import annotations

from proofstone.contracts.agent import Fault, FaultKind
from proofstone.engine.deadline import OutOfBudgetError
from proofstone.errors import InputError, UnavailableError


def stop_for(fault: Fault, agent: str) -> None:
    """Raise, if the run cannot go on after this; else return."""
    match fault.kind:
        case FaultKind.BUDGET:
            raise OutOfBudgetError(fault.why)
        case FaultKind.CANCELLED:
            raise KeyboardInterrupt
        case FaultKind.DENIED:
            raise InputError(f"{agent}: {fault.why}", hint="`proofstone backends` shows who serves whom")


def stop_if_unreached(fault: Fault, agent: str) -> None:
    """Raise, if the one who serves the agent has not answered, however often it was asked: nothing of that is on record
    as the agent's word, and the run goes on with the same question when it is answered again."""
    if fault.kind is FaultKind.UNAVAILABLE:
        raise unreached(f"{agent}: {fault.why}")


def unreached(why: str) -> UnavailableError:
    return UnavailableError(why, hint="everything is kept: `proofstone resume last` goes on when it can be reached")
