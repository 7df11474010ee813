"""What the monitor decides. Everything that was noticed ends in one of `Resume`, `UpdateContext` and `Respawn`, with or
without corrections before that.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proofstone.contracts.base import Contract
from proofstone.contracts.finding import Finding
from proofstone.contracts.reverify.ladder import Asked, Cause, Impact, Level


class Noticed(Contract):
    kind: Literal["noticed"] = "noticed"
    cause: Cause


class Held(Contract):
    """It is to be asked, but was asked a short while ago: the question waits, and the agent goes on."""

    kind: Literal["held"] = "held"
    causes: tuple[Cause, ...]
    until: float


class Ask(Contract):
    kind: Literal["ask"] = "ask"
    asked: Asked
    at_once: bool = False
    """Nothing is heard of the agent: there is no turn boundary to wait for."""


class Escalate(Contract):
    kind: Literal["escalate"] = "escalate"
    causes: tuple[Cause, ...]
    """At the level that they are at now."""
    to: Level
    why: str


class Resume(Contract):
    kind: Literal["resume"] = "resume"
    causes: tuple[Cause, ...]
    why: str
    caps: bool = False
    """Something could not be verified: the confidence is at most Medium."""
    plan_first: bool = False
    """Its approach has changed: its plan is to be approved again before it goes on."""


class UpdateContext(Contract):
    """It deviates, and said so: plan and ownership are amended, and it goes on."""

    kind: Literal["update_context"] = "update_context"
    causes: tuple[Cause, ...]
    impact: Impact
    files: tuple[str, ...]
    """To be declared as well."""
    why: str
    caps: bool = False


class Correct(Contract):
    """It is told what is wrong, and submits again."""

    kind: Literal["correct"] = "correct"
    causes: tuple[Cause, ...]
    why: str
    submission: int
    """The one that was refused."""
    finding: Finding | None = None


class Respawn(Contract):
    """The agent is stopped, and another one begins with another approach."""

    kind: Literal["respawn"] = "respawn"
    causes: tuple[Cause, ...]
    why: str
    finding: Finding | None = None


Decision = Annotated[
    Noticed | Held | Ask | Escalate | Resume | UpdateContext | Correct | Respawn, Field(discriminator="kind")
]
Ending = Resume | UpdateContext | Respawn
