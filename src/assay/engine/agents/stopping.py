"""What stops a whole run although an agent has met with it: it is no failure of the agent's, and everything is kept."""

from __future__ import annotations

from assay.contracts.agent import Fault, FaultKind
from assay.errors import InputError


class OutOfBudgetError(Exception):
    """An agent was stopped by a budget: everything is kept."""


def stop_for(fault: Fault, agent: str) -> None:
    """Raise, if the run cannot go on after this; else return."""
    match fault.kind:
        case FaultKind.BUDGET:
            raise OutOfBudgetError(fault.why)
        case FaultKind.CANCELLED:
            raise KeyboardInterrupt
        case FaultKind.DENIED:
            raise InputError(f"{agent}: {fault.why}", hint="`assay backends` shows who serves whom")
