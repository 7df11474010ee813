"""What follows from an answer, and from none: one table. Everything ends in resume, an update of the context, or
another agent; a correction comes back to the same question, a limited number of times.

    RV-1 ── fits ─► resume         RV-2 ── understood ─► resume      RV-3 ── intact ─► resume
      │                              │                                 ├── justified ─► update of the context
      ├── anomaly ─► RV-2            └── gap, no answer ─► RV-3        └── unjustified, no answer ─► correction,
      └── no answer ─► RV-1, three times ─► respawn                            three times ─► respawn
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from proofstone.contracts.reverify.ladder import Level, Result


class Move(StrEnum):
    RESUME = "resume"
    UPDATE = "update"
    ESCALATE = "escalate"
    AGAIN = "again"
    """Asked once more; after the last time, respawn."""
    CORRECT = "correct"
    """Told what is wrong and asked once more; after the last time, respawn."""


LADDER: Final[Mapping[tuple[Level, Result], Move]] = MappingProxyType(
    {
        (Level.PING, Result.FITS): Move.RESUME,
        (Level.PING, Result.ANOMALY): Move.ESCALATE,
        (Level.PING, Result.UNANSWERED): Move.AGAIN,
        (Level.QUESTION, Result.UNDERSTOOD): Move.RESUME,
        (Level.QUESTION, Result.UNVERIFIABLE): Move.RESUME,
        (Level.QUESTION, Result.GAP): Move.ESCALATE,
        (Level.QUESTION, Result.UNANSWERED): Move.ESCALATE,
        (Level.ANALYSIS, Result.INTACT): Move.RESUME,
        (Level.ANALYSIS, Result.JUSTIFIED): Move.UPDATE,
        (Level.ANALYSIS, Result.UNJUSTIFIED): Move.CORRECT,
        (Level.ANALYSIS, Result.UNANSWERED): Move.CORRECT,
    }
)
