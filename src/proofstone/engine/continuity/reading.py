"""What an agent answers in the middle of its work: between brackets, in a form of the runtime's, or freely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from proofstone.contracts.agent import Turn
from proofstone.contracts.pipeline.part import Part
from proofstone.contracts.reverify.context import Ack
from proofstone.contracts.reverify.messages import (
    AnalysisResponse,
    ChallengeResponse,
    ImpactMessage,
    Message,
    Response,
    Unreadable,
    WorkPlan,
)
from proofstone.contracts.reverify.position import SelfLocate
from proofstone.core.agent.answer import Malformed
from proofstone.core.agent.loop import answer_in
from proofstone.core.reverify.attendance import CONTRACTS, Acknowledged, Located, PlanSaid, Wanted, Words
from proofstone.core.reverify.wire import read

_LONGEST: Final = 8_000
"""Characters of an answer in free words that are read."""
FREE: Final = (Wanted.CHALLENGE, Wanted.QUESTION)
"""Any words will do."""


def reply(turn: Turn, wanted: Wanted) -> Part | Malformed:
    """The answer to what was asked for, or why it is none."""
    if (said := bracketed(turn, wanted)) is not None:
        return said
    found = answer_in(turn, CONTRACTS[wanted])
    if isinstance(found, Part):
        return found
    if wanted in FREE and turn.text.strip():
        return Words(content=turn.text[:_LONGEST])
    broken = [one.why for one in read(turn.text) if isinstance(one, Unreadable)]
    return Malformed("; ".join(broken) or (found.why if isinstance(found, Malformed) else "nothing was said"))


def bracketed(turn: Turn, wanted: Wanted) -> Part | None:
    """The first message between brackets that answers what was asked for, if there is one."""
    for message in read(turn.text):
        if not isinstance(message, Unreadable) and (said := _MEANT[wanted](message)) is not None:
            return said
    return None


def _impact(message: Message) -> Part | None:
    return message.analysis if isinstance(message, ImpactMessage) else None


def _challenge(message: Message) -> Part | None:
    return Words(content=message.content) if isinstance(message, ChallengeResponse) else None


def _plan(message: Message) -> Part | None:
    if not isinstance(message, WorkPlan):
        return None
    return PlanSaid(
        files=message.files, changes=message.changes, risk=message.risk, interface_impact=message.interface_impact
    )


def _ack(message: Message) -> Part | None:
    if not isinstance(message, Ack):
        return None
    return Acknowledged(applied=message.applied, total=message.total, impact=message.impact, action=message.action)


def _located(message: Message) -> Part | None:
    if not isinstance(message, SelfLocate):
        return None
    return Located(**message.model_dump())


def _words(message: Message) -> Part | None:
    return Words(content=message.content) if isinstance(message, Response) else None


def _analysis(message: Message) -> Part | None:
    return message.analysis if isinstance(message, AnalysisResponse) else None


_MEANT: Final[Mapping[Wanted, Callable[[Message], Part | None]]] = MappingProxyType(
    {
        Wanted.IMPACT: _impact,
        Wanted.CHALLENGE: _challenge,
        Wanted.PLAN: _plan,
        Wanted.ACK: _ack,
        Wanted.PING: _located,
        Wanted.QUESTION: _words,
        Wanted.ANALYSIS: _analysis,
    }
)
