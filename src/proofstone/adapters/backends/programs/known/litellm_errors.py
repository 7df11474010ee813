"""What LiteLLM says of a provider that failed. The programs that are built on it end with such a line, if with any."""

from __future__ import annotations

import re

from proofstone.contracts.agent import Fault, FaultKind

_ERROR = re.compile(r"^litellm\.(?:exceptions\.)?(\w+?)(?:Error)?: (.*)", re.DOTALL)

_KINDS = {
    "Authentication": FaultKind.DENIED,
    "PermissionDenied": FaultKind.DENIED,
    "NotFound": FaultKind.DENIED,
    "BudgetExceeded": FaultKind.DENIED,
    "RateLimit": FaultKind.UNAVAILABLE,
    "InternalServer": FaultKind.UNAVAILABLE,
    "ServiceUnavailable": FaultKind.UNAVAILABLE,
    "BadGateway": FaultKind.UNAVAILABLE,
    "APIConnection": FaultKind.UNAVAILABLE,
    "Timeout": FaultKind.UNAVAILABLE,
    "ContextWindowExceeded": FaultKind.REJECTED,
    "BadRequest": FaultKind.REJECTED,
    "UnprocessableEntity": FaultKind.REJECTED,
    "ContentPolicyViolation": FaultKind.FILTERED,
}


def fault_in(text: str) -> Fault | None:
    """The fault that the text begins with; None: it is no such text."""
    found = _ERROR.match(text.strip())
    if found is None:
        return None
    return Fault(kind=_KINDS.get(found[1], FaultKind.FAILED), why=" ".join(found[0].split())[:1000])
