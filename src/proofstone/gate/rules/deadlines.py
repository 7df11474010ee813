"""The deadlines of the steps of a task. Pure.

    | the first that applies                                  | deadline                                             |
    |---------------------------------------------------------|------------------------------------------------------|
    | a person gave one (`proofstone resume … --timeout 20m`) | that one, if it is longer                            |
    | the last attempt, or the last review, ran out of time   | the maximum (`gate.executor_seconds_max` and others) |
    | otherwise                                               | the usual one (`gate.executor_seconds` and others)   |

The settings are those of the commit at which the run began. A deadline that was raised since counts when the run is
resumed, up to the maximum of that commit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from proofstone.agents.roles.models.gate import FailureType
from proofstone.config.settings import GateSettings
from proofstone.gate.models import TaskRecord

DeadlineName = Literal["executor", "agent", "verify", "architect"]
_NAMES: Final[tuple[DeadlineName, ...]] = ("executor", "agent", "verify", "architect")
_DURATION: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>s|sec|m|min|h)?", re.IGNORECASE)
_UNITS: Final[Mapping[str, int]] = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
MAX_SECONDS: Final = 86_400
"""The longest deadline that a person can give."""


def choose_deadline(settings: GateSettings, name: DeadlineName, record: TaskRecord) -> float:
    """Return the deadline of a step in seconds."""
    usual: int = getattr(settings, f"{name}_seconds")
    most: int = getattr(settings, f"{name}_seconds_max")
    last = (*record.failures, *record.review_failures)[-1:]
    timed_out = any(failure.type is FailureType.TIMEOUT for failure in last)
    return max(most if timed_out else usual, record.deadline_seconds or 0)


def find_raised_deadlines(base: GateSettings, now: GateSettings) -> dict[str, int]:
    """Return the deadlines that are higher now than at the base, each bounded by the maximum of the base."""
    raised = {}
    for name in _NAMES:
        allowed = min(getattr(now, f"{name}_seconds"), getattr(base, f"{name}_seconds_max"))
        if allowed > getattr(base, f"{name}_seconds"):
            raised[f"{name}_seconds"] = allowed
    return raised


def parse_duration(text: str) -> float | None:
    """Return the seconds of `20m`, `90s`, `1h` or `45`; None if it is no duration from 1 second to 24 hours."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    seconds = float(match["number"]) * _UNITS[(match["unit"] or "").lower()]
    return seconds if 1 <= seconds <= MAX_SECONDS else None
