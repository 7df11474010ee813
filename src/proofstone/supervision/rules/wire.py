"""Write and read the bracketed messages between the engine and agents.

`write` gives each message its one form. `read` finds the messages in an agent's text, in order. It tolerates spacing,
the case of labels, and marks around a line or a name, but not a wrong tag. A message that cannot be read is returned as
`UnreadableMessage`, with the problem and the correct form, so that its author can correct it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from proofstone.supervision.models.context import Ack, AckAction, ContextUpdate
from proofstone.supervision.models.ladder import Category, DocsStatus, ReverifyLevel, SelfLocate
from proofstone.supervision.models.messages import (
    ImpactChallenge,
    ImpactChallengeResponse,
    ImpactMessage,
    ImpactRejected,
    ImpactVerified,
    PlanApproved,
    PlanRejected,
    ProtocolMessage,
    ReverifyAnalysis,
    ReverifyRequest,
    ReverifyResponse,
    UnreadableMessage,
    WorkPlan,
)
from proofstone.supervision.rules.message_text import (
    MalformedMessageError,
    MessageBlock,
    MessageFields,
    find_blocks,
    is_mini_analysis,
    read_delta,
    read_impact_analysis,
    read_leading_numbers,
    read_mini_analysis,
    split_names,
    write_delta,
    write_impact_analysis,
    write_mini_analysis,
)

SCOPE: Final = "Abbreviated IA (RC-01, RC-04, RC-07)"
"""The analysis that is requested at level 3."""

MESSAGE_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "REVERIFY": "[REVERIFY] Phase {N} | Level {L} | Target: {role-id} | Reason: {trigger}",
        "REVERIFY-RESPONSE": "[REVERIFY-RESPONSE] Phase {N} | Level {L} | {response content}",
        "SELF-LOCATE": "[SELF-LOCATE] Phase {N} | Task {T}/{total} | Step: {at most 10 words} | Progress: {P}% | "
        "MCP: {calls so far} | Docs: {current|stale|missing}",
        "CONTEXT-UPDATE": "[CONTEXT-UPDATE] GC-v{A} → GC-v{B}",
        "ACK-UPDATE": "[ACK-UPDATE] GC-v{B} received. Items: {applied}/{total}. Impact: {impact}. "
        f"Action: {{{'|'.join(AckAction)}}}.",
        "IMPACT-ANALYSIS": "[IMPACT-ANALYSIS] Phase {N} | Attempt {X}/{of}",
        "IMPACT_VERIFIED": "[IMPACT_VERIFIED] Phase {N}",
        "IMPACT_REJECTED": "[IMPACT_REJECTED] Phase {N} | Reason: {reason}",
        "CHALLENGE": "[CHALLENGE] Phase {N} | Category: {category} | Question: {question}",
        "CHALLENGE-RESPONSE": "[CHALLENGE-RESPONSE] Phase {N} | {response content}",
        "PLAN": "[PLAN] Phase {N} | Files: {path}, {path} | Changes: {what} | Risk: {🟢|🟡|🔴} | "
        "Interface Impact: {impact}",
        "APPROVED": "[APPROVED] Phase {N}",
        "REJECTED": "[REJECTED] Phase {N} | Reason: {reason}",
    }
)
"""The first line of each message by tag, as shown to agents."""


def write_message(message: ProtocolMessage) -> str:
    match message:
        case ReverifyRequest():
            return _line("REVERIFY", f"Phase {message.phase}", f"Level {message.level:d}", *_reverify_fields(message))
        case ReverifyResponse():
            phase, level = f"Phase {message.phase}", f"Level {message.level:d}"
            return _line("REVERIFY-RESPONSE", phase, level, message.content)
        case ReverifyAnalysis():
            head = _line("REVERIFY-RESPONSE", f"Phase {message.phase}", f"Level {ReverifyLevel.ANALYSIS:d}")
            return f"{head}\n\n{write_mini_analysis(message.analysis)}"
        case SelfLocate():
            return _write_position(message)
        case ContextUpdate():
            head = f"[CONTEXT-UPDATE] GC-v{message.before} → GC-v{message.version}"
            return "\n".join((head, *map(write_delta, message.lines)))
        case Ack():
            items = f"Items: {message.applied}/{message.total}"
            content = f"GC-v{message.version} received. {items}. Impact: {message.impact}. Action: {message.action}."
            return f"[ACK-UPDATE] {content}"
        case ImpactMessage():
            head = _line("IMPACT-ANALYSIS", f"Phase {message.phase}", f"Attempt {message.attempt}/{message.of}")
            return f"{head}\n\n{write_impact_analysis(message.analysis)}"
        case ImpactVerified():
            return _line("IMPACT_VERIFIED", *_phase_fields(message.phase))
        case ImpactRejected():
            return _line("IMPACT_REJECTED", *_phase_fields(message.phase), *_reason_fields(message.reason))
        case ImpactChallenge():
            category, question = f"Category: {message.category}", f"Question: {message.question}"
            return _line("CHALLENGE", f"Phase {message.phase}", category, question)
        case ImpactChallengeResponse():
            return _line("CHALLENGE-RESPONSE", f"Phase {message.phase}", message.content)
        case WorkPlan():
            return _write_plan(message)
        case PlanApproved():
            return _line("APPROVED", *_phase_fields(message.phase))
        case PlanRejected():
            return _line("REJECTED", *_phase_fields(message.phase), *_reason_fields(message.reason))


def read_messages(text: str) -> tuple[ProtocolMessage | UnreadableMessage, ...]:
    """Return all messages of the text, in order."""
    return tuple(_read_block(block) for block in find_blocks(text, _READERS))


def _read_block(block: MessageBlock) -> ProtocolMessage | UnreadableMessage:
    try:
        return _READERS[block.tag](block)
    except ValidationError as error:
        why = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'message'}: {problem['msg']}" for problem in error.errors()
        )
    except MalformedMessageError as error:
        why = str(error)
    return UnreadableMessage(tag=block.tag, why=f"{why}. The correct form is: {MESSAGE_FORMS[block.tag]}")


# Writers.


def _line(tag: str, *fields: str) -> str:
    return f"[{tag}] {' | '.join(fields)}".rstrip()


def _phase_fields(phase: int | None) -> tuple[str, ...]:
    return () if phase is None else (f"Phase {phase}",)


def _reason_fields(reason: str | None) -> tuple[str, ...]:
    return () if reason is None else (f"Reason: {reason}",)


def _reverify_fields(message: ReverifyRequest) -> tuple[str, ...]:
    extra_fields = {
        ReverifyLevel.QUESTION: (f"Question: {message.question}",),
        ReverifyLevel.ANALYSIS: (f"Scope: {SCOPE}",),
    }
    return (f"Target: {message.target}", f"Reason: {message.reason}", *extra_fields.get(message.level, ()))


def _write_position(position: SelfLocate) -> str:
    return _line(
        "SELF-LOCATE",
        f"Phase {position.phase}",
        f"Task {position.task}/{position.total}",
        f"Step: {position.step}",
        f"Progress: {position.progress}%",
        f"MCP: {position.tool_calls}",
        f"Docs: {position.docs}",
    )


def _write_plan(plan: WorkPlan) -> str:
    return _line(
        "PLAN",
        f"Phase {plan.phase}",
        f"Files: {', '.join(plan.files)}",
        f"Changes: {plan.changes}",
        f"Risk: {plan.risk}",
        f"Interface Impact: {plan.interface_impact}",
    )


# Readers.

_RISKS: Final[Mapping[str, str]] = MappingProxyType(
    {"green": "🟢", "low": "🟢", "yellow": "🟡", "medium": "🟡", "red": "🔴", "high": "🔴"}
)


def _to_level(number: int) -> ReverifyLevel:
    if number not in {*ReverifyLevel}:
        raise MalformedMessageError(f"there is no level {number}")
    return ReverifyLevel(number)


def _read_reverify(block: MessageBlock) -> ReverifyRequest:
    fields = MessageFields(block, last="Question")
    return ReverifyRequest(
        phase=fields.require_number("Phase"),
        level=_to_level(fields.require_number("Level")),
        target=fields.require_text("Target"),
        reason=fields.require_text("Reason"),
        question=fields.maybe("Question"),
    )


def _read_response(block: MessageBlock) -> ReverifyResponse | ReverifyAnalysis:
    (phase, number), content = read_leading_numbers(block.head, "Phase", "Level")
    level = _to_level(number)
    if level is ReverifyLevel.ANALYSIS and (not content or is_mini_analysis(block.rest)):
        return ReverifyAnalysis(phase=phase, analysis=read_mini_analysis(block.rest))
    return ReverifyResponse(phase=phase, level=level, content="\n".join((content, *block.rest)))


def _read_position(block: MessageBlock) -> SelfLocate:
    fields = MessageFields(block)
    task, total = fields.require_fraction("Task")
    docs = fields.require_text("Docs").rstrip(".").casefold()
    if docs not in {*DocsStatus}:
        raise MalformedMessageError(f"`Docs` is one of {', '.join(DocsStatus)}, not `{docs}`")
    return SelfLocate(
        phase=fields.require_number("Phase"),
        task=task,
        total=total,
        step=fields.require_text("Step"),
        progress=fields.require_number("Progress"),
        tool_calls=fields.require_number("MCP"),
        docs=DocsStatus(docs),
    )


_UPDATE: Final = re.compile(r"GC-v([0-9]{1,9})\s*(?:→|[-=]+>)\s*GC-v([0-9]{1,9})\b.*")
_ACK: Final = re.compile(
    r"GC-v([0-9]{1,9})\s+received[.;,|]?\s*Items:\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})[.;,|]?\s*"
    r"Impact:\s*(.*)\s+Action:\s*([A-Za-z_]+)\b.*"
)


def _read_update(block: MessageBlock) -> ContextUpdate:
    match = _UPDATE.fullmatch(block.head)
    if match is None:
        raise MalformedMessageError("it does not name the old and the new version")
    return ContextUpdate(before=int(match[1]), version=int(match[2]), lines=read_delta(block.rest))


def _read_ack(block: MessageBlock) -> Ack:
    match = _ACK.fullmatch(block.head)
    if match is None:
        raise MalformedMessageError("version, items, impact and action must all be given, in this order")
    if match[5] not in {*AckAction}:
        raise MalformedMessageError(f"`Action` is one of {', '.join(AckAction)}, not `{match[5]}`")
    version, applied, total = map(int, match.group(1, 2, 3))
    return Ack(version=version, applied=applied, total=total, impact=match[4], action=AckAction(match[5]))


def _read_impact(block: MessageBlock) -> ImpactMessage:
    fields = MessageFields(block)
    attempt, of = fields.require_fraction("Attempt")
    return ImpactMessage(
        phase=fields.require_number("Phase"), attempt=attempt, of=of, analysis=read_impact_analysis(block.rest)
    )


def _read_verified(block: MessageBlock) -> ImpactVerified:
    return ImpactVerified(phase=MessageFields(block).find_phase())


def _read_impact_rejected(block: MessageBlock) -> ImpactRejected:
    fields = MessageFields(block, last="Reason")
    return ImpactRejected(phase=fields.find_phase(), reason=fields.maybe("Reason"))


def _read_challenge(block: MessageBlock) -> ImpactChallenge:
    fields = MessageFields(block, last="Question")
    category = fields.require_text("Category")
    if category not in {*Category}:
        raise MalformedMessageError(f"`Category` is one of {', '.join(Category)}, not `{category}`")
    return ImpactChallenge(
        phase=fields.require_number("Phase"), category=Category(category), question=fields.require_text("Question")
    )


def _read_challenge_response(block: MessageBlock) -> ImpactChallengeResponse:
    (phase,), content = read_leading_numbers(block.head, "Phase")
    return ImpactChallengeResponse(phase=phase, content="\n".join((content, *block.rest)))


def _read_plan(block: MessageBlock) -> WorkPlan:
    fields = MessageFields(block, last="Interface Impact")
    risk = fields.require_text("Risk")
    return WorkPlan.model_validate(
        {
            "phase": fields.require_number("Phase"),
            "files": split_names(fields.require_text("Files")),
            "changes": fields.require_text("Changes"),
            "risk": _RISKS.get(risk.casefold(), risk),
            "interface_impact": fields.require_text("Interface Impact"),
        }
    )


def _read_approved(block: MessageBlock) -> PlanApproved:
    return PlanApproved(phase=MessageFields(block).find_phase())


def _read_rejected(block: MessageBlock) -> PlanRejected:
    fields = MessageFields(block, last="Reason")
    return PlanRejected(phase=fields.find_phase(), reason=fields.maybe("Reason"))


_READERS: Final[Mapping[str, Callable[[MessageBlock], ProtocolMessage]]] = MappingProxyType(
    {
        "REVERIFY": _read_reverify,
        "REVERIFY-RESPONSE": _read_response,
        "SELF-LOCATE": _read_position,
        "CONTEXT-UPDATE": _read_update,
        "ACK-UPDATE": _read_ack,
        "IMPACT-ANALYSIS": _read_impact,
        "IMPACT_VERIFIED": _read_verified,
        "IMPACT_REJECTED": _read_impact_rejected,
        "CHALLENGE": _read_challenge,
        "CHALLENGE-RESPONSE": _read_challenge_response,
        "PLAN": _read_plan,
        "APPROVED": _read_approved,
        "REJECTED": _read_rejected,
    }
)
