"""Write and read the bracketed messages between the engine and agents.

`write` gives each message its one form. `read` finds the messages in an agent's text, in order. It tolerates spacing,
the case of labels, and marks around a line or a name, but not a wrong tag. A message that cannot be read is returned as
`Unreadable`, with the problem and the correct form, so that its author can correct it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from proofstone.supervision.models.context import Ack, Action, ContextUpdate
from proofstone.supervision.models.ladder import Category, Docs, Level, SelfLocate
from proofstone.supervision.models.messages import (
    AnalysisResponse,
    Challenge,
    ChallengeResponse,
    ImpactMessage,
    ImpactRejected,
    ImpactVerified,
    Message,
    PlanApproved,
    Rejected,
    Response,
    Reverify,
    Unreadable,
    WorkPlan,
)
from proofstone.supervision.rules.sections import (
    Block,
    Fields,
    MalformedError,
    blocks,
    is_mini,
    leading,
    names,
    read_analysis,
    read_delta,
    read_mini,
    written_analysis,
    written_delta,
    written_mini,
)

SCOPE: Final = "Abbreviated IA (RC-01, RC-04, RC-07)"
"""The analysis that is requested at level 3."""

FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "REVERIFY": "[REVERIFY] Phase {N} | Level {L} | Target: {role-id} | Reason: {trigger}",
        "REVERIFY-RESPONSE": "[REVERIFY-RESPONSE] Phase {N} | Level {L} | {response content}",
        "SELF-LOCATE": "[SELF-LOCATE] Phase {N} | Task {T}/{total} | Step: {at most 10 words} | Progress: {P}% | "
        "MCP: {calls so far} | Docs: {current|stale|missing}",
        "CONTEXT-UPDATE": "[CONTEXT-UPDATE] GC-v{A} → GC-v{B}",
        "ACK-UPDATE": "[ACK-UPDATE] GC-v{B} received. Items: {applied}/{total}. Impact: {impact}. "
        f"Action: {{{'|'.join(Action)}}}.",
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


def write(message: Message) -> str:
    match message:
        case Reverify():
            return _line("REVERIFY", f"Phase {message.phase}", f"Level {message.level:d}", *_reverify_fields(message))
        case Response():
            phase, level = f"Phase {message.phase}", f"Level {message.level:d}"
            return _line("REVERIFY-RESPONSE", phase, level, message.content)
        case AnalysisResponse():
            head = _line("REVERIFY-RESPONSE", f"Phase {message.phase}", f"Level {Level.ANALYSIS:d}")
            return f"{head}\n\n{written_mini(message.analysis)}"
        case SelfLocate():
            return _write_position(message)
        case ContextUpdate():
            head = f"[CONTEXT-UPDATE] GC-v{message.before} → GC-v{message.version}"
            return "\n".join((head, *map(written_delta, message.lines)))
        case Ack():
            items = f"Items: {message.applied}/{message.total}"
            content = f"GC-v{message.version} received. {items}. Impact: {message.impact}. Action: {message.action}."
            return f"[ACK-UPDATE] {content}"
        case ImpactMessage():
            head = _line("IMPACT-ANALYSIS", f"Phase {message.phase}", f"Attempt {message.attempt}/{message.of}")
            return f"{head}\n\n{written_analysis(message.analysis)}"
        case ImpactVerified():
            return _line("IMPACT_VERIFIED", *_phase_fields(message.phase))
        case ImpactRejected():
            return _line("IMPACT_REJECTED", *_phase_fields(message.phase), *_reason_fields(message.reason))
        case Challenge():
            category, question = f"Category: {message.category}", f"Question: {message.question}"
            return _line("CHALLENGE", f"Phase {message.phase}", category, question)
        case ChallengeResponse():
            return _line("CHALLENGE-RESPONSE", f"Phase {message.phase}", message.content)
        case WorkPlan():
            return _write_plan(message)
        case PlanApproved():
            return _line("APPROVED", *_phase_fields(message.phase))
        case Rejected():
            return _line("REJECTED", *_phase_fields(message.phase), *_reason_fields(message.reason))


def read(text: str) -> tuple[Message | Unreadable, ...]:
    """Return all messages of the text, in order."""
    return tuple(_read_block(block) for block in blocks(text, _READERS))


def _read_block(block: Block) -> Message | Unreadable:
    try:
        return _READERS[block.tag](block)
    except ValidationError as error:
        why = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'message'}: {problem['msg']}" for problem in error.errors()
        )
    except MalformedError as error:
        why = str(error)
    return Unreadable(tag=block.tag, why=f"{why}. The correct form is: {FORMS[block.tag]}")


# Writers.


def _line(tag: str, *fields: str) -> str:
    return f"[{tag}] {' | '.join(fields)}".rstrip()


def _phase_fields(phase: int | None) -> tuple[str, ...]:
    return () if phase is None else (f"Phase {phase}",)


def _reason_fields(reason: str | None) -> tuple[str, ...]:
    return () if reason is None else (f"Reason: {reason}",)


def _reverify_fields(message: Reverify) -> tuple[str, ...]:
    extra_fields = {Level.QUESTION: (f"Question: {message.question}",), Level.ANALYSIS: (f"Scope: {SCOPE}",)}
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


def _to_level(number: int) -> Level:
    if number not in {*Level}:
        raise MalformedError(f"there is no level {number}")
    return Level(number)


def _read_reverify(block: Block) -> Reverify:
    fields = Fields(block, last="Question")
    return Reverify(
        phase=fields.number("Phase"),
        level=_to_level(fields.number("Level")),
        target=fields.text("Target"),
        reason=fields.text("Reason"),
        question=fields.maybe("Question"),
    )


def _read_response(block: Block) -> Response | AnalysisResponse:
    (phase, number), content = leading(block.head, "Phase", "Level")
    level = _to_level(number)
    if level is Level.ANALYSIS and (not content or is_mini(block.rest)):
        return AnalysisResponse(phase=phase, analysis=read_mini(block.rest))
    return Response(phase=phase, level=level, content="\n".join((content, *block.rest)))


def _read_position(block: Block) -> SelfLocate:
    fields = Fields(block)
    task, total = fields.of("Task")
    docs = fields.text("Docs").rstrip(".").casefold()
    if docs not in {*Docs}:
        raise MalformedError(f"`Docs` is one of {', '.join(Docs)}, not `{docs}`")
    return SelfLocate(
        phase=fields.number("Phase"),
        task=task,
        total=total,
        step=fields.text("Step"),
        progress=fields.number("Progress"),
        tool_calls=fields.number("MCP"),
        docs=Docs(docs),
    )


_UPDATE: Final = re.compile(r"GC-v([0-9]{1,9})\s*(?:→|[-=]+>)\s*GC-v([0-9]{1,9})\b.*")
_ACK: Final = re.compile(
    r"GC-v([0-9]{1,9})\s+received[.;,|]?\s*Items:\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})[.;,|]?\s*"
    r"Impact:\s*(.*)\s+Action:\s*([A-Za-z_]+)\b.*"
)


def _read_update(block: Block) -> ContextUpdate:
    match = _UPDATE.fullmatch(block.head)
    if match is None:
        raise MalformedError("it does not name the old and the new version")
    return ContextUpdate(before=int(match[1]), version=int(match[2]), lines=read_delta(block.rest))


def _read_ack(block: Block) -> Ack:
    match = _ACK.fullmatch(block.head)
    if match is None:
        raise MalformedError("version, items, impact and action must all be given, in this order")
    if match[5] not in {*Action}:
        raise MalformedError(f"`Action` is one of {', '.join(Action)}, not `{match[5]}`")
    version, applied, total = map(int, match.group(1, 2, 3))
    return Ack(version=version, applied=applied, total=total, impact=match[4], action=Action(match[5]))


def _read_impact(block: Block) -> ImpactMessage:
    fields = Fields(block)
    attempt, of = fields.of("Attempt")
    return ImpactMessage(phase=fields.number("Phase"), attempt=attempt, of=of, analysis=read_analysis(block.rest))


def _read_verified(block: Block) -> ImpactVerified:
    return ImpactVerified(phase=Fields(block).phase())


def _read_impact_rejected(block: Block) -> ImpactRejected:
    fields = Fields(block, last="Reason")
    return ImpactRejected(phase=fields.phase(), reason=fields.maybe("Reason"))


def _read_challenge(block: Block) -> Challenge:
    fields = Fields(block, last="Question")
    category = fields.text("Category")
    if category not in {*Category}:
        raise MalformedError(f"`Category` is one of {', '.join(Category)}, not `{category}`")
    return Challenge(phase=fields.number("Phase"), category=Category(category), question=fields.text("Question"))


def _read_challenge_response(block: Block) -> ChallengeResponse:
    (phase,), content = leading(block.head, "Phase")
    return ChallengeResponse(phase=phase, content="\n".join((content, *block.rest)))


def _read_plan(block: Block) -> WorkPlan:
    fields = Fields(block, last="Interface Impact")
    risk = fields.text("Risk")
    return WorkPlan.model_validate(
        {
            "phase": fields.number("Phase"),
            "files": names(fields.text("Files")),
            "changes": fields.text("Changes"),
            "risk": _RISKS.get(risk.casefold(), risk),
            "interface_impact": fields.text("Interface Impact"),
        }
    )


def _read_approved(block: Block) -> PlanApproved:
    return PlanApproved(phase=Fields(block).phase())


def _read_rejected(block: Block) -> Rejected:
    fields = Fields(block, last="Reason")
    return Rejected(phase=fields.phase(), reason=fields.maybe("Reason"))


_READERS: Final[Mapping[str, Callable[[Block], Message]]] = MappingProxyType(
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
