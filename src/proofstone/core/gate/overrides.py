"""What a person may say to set the gate aside, and what they may not. Pure.

A skip or a force is never a pass: what it covers is not committed by Proofstone, and says so wherever it is shown.
"""

from __future__ import annotations

import re
from typing import Final

from proofstone.contracts.gate_record import TaskRecord

CATEGORIES: Final = ("verify-unavailable", "false-negative", "time-pressure")
CONFIRMATION: Final = "OVERRIDE"
_SHORTEST_REASON: Final = 10
_NO_REASON: Final = (
    (re.compile(r"\btests?\b.*\b(take|takes|are|is)\b.*\b(too long|slow)\b", re.IGNORECASE), "that a test is slow"),
    (re.compile(r"\b(looks?|seems?) (good|fine|ok(ay)?)\b|\blgtm\b", re.IGNORECASE), "that it looks good"),
)
_SECURITY: Final = ("readiness-secrets", "symlink-escape", "nested-repository")


def refused_reason(reason: str) -> str:
    """Why this is no reason to skip a task, if it is none."""
    for pattern, what in _NO_REASON:
        if pattern.search(reason):
            return f"{what} is no reason: the gate is there for that"
    if len(reason.strip()) < _SHORTEST_REASON:
        return "the reason is too short to be understood later"
    return ""


def security_blockers(record: TaskRecord) -> tuple[str, ...]:
    """What was found about the last attempt that nobody can set aside."""
    last = record.failures[-1:] if record.failures else ()
    return tuple(reason.detail for failure in last for reason in failure.reasons if reason.check in _SECURITY)
