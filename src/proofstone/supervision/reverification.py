"""Re-verification during the work: question an agent that may have drifted, judge its answers, and send context
updates.

An agent may answer in brackets, in the JSON form of its runtime, or in free text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from proofstone.agents.models import Turn
from proofstone.agents.roles.models.gate import JudgeItem
from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.agents.rules.answer import MalformedAnswer, MendedAnswer
from proofstone.agents.rules.conversation import read_turn
from proofstone.supervision.agent_supervision import AgentDirective, AgentSupervision, describe_work
from proofstone.supervision.models.context import Ack, AckAction, AckOutcome, ContextVersion, truncate_line
from proofstone.supervision.models.events import (
    AgentEvent,
    AnalysisSubmitted,
    AnswerUnreadable,
    AskQuestion,
    ContextChanged,
    MonitorDecision,
    QuestionAnswered,
    QuestionClosed,
    QuestionOpened,
    RequestCorrection,
    RespawnAgent,
    ResumeWork,
    SelfLocated,
    TurnEnded,
    UpdateContext,
)
from proofstone.supervision.models.ladder import (
    DeviationImpact,
    DueQuestion,
    MiniAnalysis,
    ReverifyLevel,
    SelfLocate,
)
from proofstone.supervision.models.messages import (
    ImpactChallengeResponse,
    ImpactMessage,
    PlanRejected,
    ProtocolMessage,
    ReverifyAnalysis,
    ReverifyResponse,
    UnreadableMessage,
    WorkPlan,
)
from proofstone.supervision.models.understanding import AnalysisItem, ItemVerdict
from proofstone.supervision.rules.amendments import Amendment
from proofstone.supervision.rules.context import acknowledge, prepare_update
from proofstone.supervision.rules.position import find_anomalies
from proofstone.supervision.rules.questions import build_question, grade_answer
from proofstone.supervision.rules.scoring import (
    WorkObservation,
    compute_deviation,
    describe_deviation,
    score_analysis,
)
from proofstone.supervision.rules.supervision_state import (
    REPLY_MODELS,
    REQUEST_BY_LEVEL,
    AckReply,
    FreeTextReply,
    PlanReply,
    PositionReply,
    RequestKind,
)
from proofstone.supervision.rules.understanding import (
    CONTINUE_TEXT,
    ITEM_CRITERIA,
    write_context_update,
    write_reverify_request,
)
from proofstone.supervision.rules.wire import read_messages, write_message
from proofstone.supervision.understanding_gate import UnderstandingGate

_TURN_DONE = TurnEnded(calls=0)
_DEVIATION_TEXT: Final = (
    "Your plan and your files are unchanged: this deviation is significant{files}, so a person or a new plan must "
    "decide about it. Undo it and finish the task without it. If the task cannot be done without it, answer with the "
    "status blocked, and name in the error what you need and why."
)
_JUDGED_ITEMS = (AnalysisItem.TASK, AnalysisItem.DOWNSTREAM)
"""Items of the abbreviated analysis that are judged. The list of files is compared by code."""


@dataclass(frozen=True)
class ReverificationLadder:
    agent: AgentSupervision

    # Decisions of the monitor.

    def apply_decisions(self, decisions: tuple[MonitorDecision, ...], *, replied: bool) -> AgentDirective:
        """Carry out the decisions and return the message to the agent. None if there is nothing to say."""
        messages: list[str] = []
        plan_first = False
        for decision in decisions:
            match decision:
                case RespawnAgent():
                    return self.agent.respawn(decision)
                case ResumeWork():
                    self.agent.add_caps(*((decision.why,) if decision.caps else ()))
                    plan_first = plan_first or decision.plan_first
                case UpdateContext():
                    self.agent.add_caps(*((decision.why,) if decision.caps else ()))
                    messages += filter(None, [self._handle_deviation(decision)])
                case RequestCorrection():
                    messages.append(
                        write_message(PlanRejected(phase=self.agent.phase, reason=truncate_line(decision.why)))
                    )
        asked = next((ask.asked for ask in decisions if isinstance(ask, AskQuestion) and not ask.at_once), None)
        if asked is not None:
            if not replied:
                self._postpone_open_request()
            return self._ask(asked, messages)
        is_settled = replied or self._is_answered
        if plan_first or (self.agent.state.paused and is_settled):
            return self._ask_new_plan(messages)
        if not messages and not is_settled:
            return None
        return self.agent.resume("\n\n".join((*messages, CONTINUE_TEXT)))

    @property
    def _is_answered(self) -> bool:
        """Whether the open request was answered in a turn that also did work, so that nothing is open any more."""
        return self.agent.state.asked in REQUEST_BY_LEVEL.values() and self.agent.state.monitor.open is None

    def _ask(self, asked: DueQuestion, messages: list[str]) -> AgentDirective:
        question = (
            build_question(asked.causes, describe_work(self.agent)) if asked.level is ReverifyLevel.QUESTION else None
        )
        self.agent.update_state(question=question)
        self.agent.process_events(QuestionOpened(level=asked.level))
        watched = self.agent.subject.profile
        text = write_reverify_request(watched.phase, watched.agent, asked, question)
        return self.agent.ask(REQUEST_BY_LEVEL[asked.level], "\n\n".join((*messages, text)))

    def _postpone_open_request(self) -> None:
        """A stronger question replaces the open request. Make sure that the request is repeated afterwards."""
        state = self.agent.state
        if state.asked is RequestKind.PLAN:
            self.agent.update_state(paused=True)
        elif state.asked is RequestKind.ACK:
            self.agent.update_state(reader=state.reader.model_copy(update={"again": True, "awaited": None}))

    def _ask_new_plan(self, messages: list[str]) -> AgentDirective:
        """The agent's approach has changed: give it the files that it needs, and have it submit a new plan."""
        ownership = self._extend_ownership(self.agent.state.announced, "it needs them for a requirement that was added")
        self.agent.update_state(announced=(), paused=False, plans=0)
        acknowledgement = f"Acknowledged. Update your [PLAN]. {ownership}".strip()
        return UnderstandingGate(self.agent).ask_plan("\n\n".join((*messages, acknowledgement)))

    def _handle_deviation(self, decision: UpdateContext) -> str:
        """Extend the task for a small deviation. A significant one is for a person or a new plan to decide."""
        if decision.impact is not DeviationImpact.SIGNIFICANT_DEVIATION:
            return self._extend_ownership(decision.files, decision.why)
        self.agent.update_state(deviation=decision.why)
        files = f" ({', '.join(decision.files)})" if decision.files else ""
        return f"{_DEVIATION_TEXT.format(files=files)}"

    def _extend_ownership(self, files: tuple[str, ...], why: str) -> str:
        """Add announced files to the task and return the message about it."""
        subject = self.agent.subject
        if not files:
            return ""
        if refusal := subject.amend(Amendment(task=subject.id, files=files, why=why)):
            return f"File ownership is unchanged: {refusal}. Continue without these files."
        self.agent.add_owned_files(files)
        return f"File ownership expanded: {', '.join(files)}."

    # Answers of the agent.

    def handle_ping_answer(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        if not isinstance(answer, PositionReply):
            return self._reject_unreadable(answer)
        standing = self.agent.state.standing
        located = answer.to_self_locate(standing)
        return self._close_question(SelfLocated(located=located, anomalies=find_anomalies(standing, located)))

    def handle_question_answer(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        question = self.agent.state.question
        if not isinstance(answer, FreeTextReply) or question is None:
            return self._reject_unreadable(answer)
        about = describe_work(self.agent)
        first_grade = grade_answer(question, answer.content, about)
        verdict = None
        if question.judged and not first_grade.missing:
            to_judge = JudgeItem(
                item="answer", holds_if=f"it answers this question, and the answer is right: {question.text}"
            )
            (judgement,) = self.agent.request_judgements(answer.content, to_judge)
            verdict = judgement.verdict
        final_grade = grade_answer(question, answer.content, about, verdict)
        self.agent.update_state(answer=answer.content, announced=final_grade.announced)
        return self._close_question(QuestionAnswered(grade=final_grade))

    def handle_analysis(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        if not isinstance(answer, MiniAnalysis):
            return self._reject_unreadable(answer)
        state, subject = self.agent.state, self.agent.subject
        worked = subject.change_view.observe_changes((state.plan.interface_impact,) if state.plan else ())
        self.agent.update_state(touched=tuple(dict.fromkeys((*state.touched, *worked.paths))))
        text = write_message(ReverifyAnalysis(phase=self.agent.phase, analysis=answer))
        judgements = self.agent.request_judgements(
            text, *(JudgeItem(item=item, holds_if=ITEM_CRITERIA[item]) for item in _JUDGED_ITEMS)
        )
        verdicts = tuple(
            ItemVerdict(item=item, verdict=judgement.verdict, detail=judgement.detail)
            for item, judgement in zip(_JUDGED_ITEMS, judgements, strict=True)
        )
        reality = WorkObservation(
            declared=state.declared,
            observe_changes=worked.files,
            signatures=worked.signatures,
            unseen=worked.unseen,
            later=subject.later,
        )
        return self._close_question(AnalysisSubmitted(score=score_analysis(answer, reality, verdicts)))

    def find_remaining_deviation(self) -> str:
        """Return the significant deviation that the agent admitted and has not undone; "" if there is none."""
        state, subject = self.agent.state, self.agent.subject
        if not state.deviation:
            return ""
        worked = subject.change_view.observe_changes((state.plan.interface_impact,) if state.plan else ())
        reality = WorkObservation(state.declared, worked.files, worked.signatures)
        if compute_deviation(reality) is not DeviationImpact.SIGNIFICANT_DEVIATION:
            return ""
        return describe_deviation(reality)

    def _reject_unreadable(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        why = answer.why if isinstance(answer, MalformedAnswer) else "it does not answer the question"
        return self._close_question(AnswerUnreadable(why=why))

    def _close_question(self, event: AgentEvent) -> AgentDirective:
        """Close the answered question and carry out what follows."""
        return self.apply_decisions(self.agent.process_events(event, QuestionClosed(), _TURN_DONE), replied=True)

    # Updates of the context.

    def send_context_update(self) -> AgentDirective:
        """Tell the agent about context changes that concern it, if there are any."""
        subject, state = self.agent.subject, self.agent.state
        versions = subject.board.build_versions()
        known_version = _find_version(versions, state.reader.knows)
        reader, sent = prepare_update(state.reader, known_version, versions[-1])
        if sent is None:
            return None
        new_requirements = [
            requirement
            for requirement in subject.board.read_requirements()
            if requirement.number + 1 > state.reader.knows
        ]
        self.agent.update_state(
            reader=reader,
            delta=sent.update.lines,
            affected=tuple(path for requirement in new_requirements for path in requirement.files),
            told=tuple(dict.fromkeys((*state.told, *(requirement.number for requirement in new_requirements)))),
            reverify=sent.reverify or state.reverify,
        )
        return self.agent.ask(RequestKind.ACK, write_context_update(sent.update))

    def handle_ack(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        state = self.agent.state
        is_paused = isinstance(answer, AckReply) and answer.action is not AckAction.CONTINUE
        if not isinstance(answer, AckReply):  # an unreadable answer acknowledges nothing
            total = state.reader.awaited or 0
            answer = AckReply(applied=0, total=total, impact="unreadable", action=AckAction.NEED_CLARIFICATION)
        ack = Ack(
            version=state.reader.knows,
            applied=answer.applied,
            total=answer.total,
            impact=answer.impact,
            action=answer.action,
        )
        reader, outcome = acknowledge(state.reader, ack)
        self.agent.update_state(reader=reader, paused=state.paused or is_paused)
        if outcome is AckOutcome.SEND_WHOLE and (repeated := self.send_context_update()) is not None:
            return repeated
        events: list[AgentEvent] = []
        if self.agent.state.reverify:
            self.agent.update_state(reverify=False)
            what = "; ".join(line.text for line in state.delta)
            events.append(ContextChanged(version=reader.knows, what=what))
        return self.apply_decisions(self.agent.process_events(*events, _TURN_DONE), replied=True)


def _find_version(versions: tuple[ContextVersion, ...], number: int) -> ContextVersion | None:
    return next((version for version in versions if version.number == number), None)


_MAX_ANSWER_CHARACTERS: Final = 8_000
"""Characters of a free-text answer that are read."""
FREE_TEXT_REQUESTS: Final = (RequestKind.CHALLENGE, RequestKind.QUESTION)
"""Requests that free text can answer."""


def read_reply(turn: Turn, wanted: RequestKind) -> AnswerPart | MalformedAnswer:
    """Return the answer to the request, or why there is none."""
    if (bracketed_answer := find_bracketed_answer(turn, wanted)) is not None:
        return bracketed_answer
    formal_answer = read_turn(turn, REPLY_MODELS[wanted])
    if isinstance(formal_answer, MendedAnswer):
        return formal_answer.answer
    if wanted in FREE_TEXT_REQUESTS and turn.text.strip():
        return FreeTextReply(content=turn.text[:_MAX_ANSWER_CHARACTERS])
    problems = [message.why for message in read_messages(turn.text) if isinstance(message, UnreadableMessage)]
    return MalformedAnswer("; ".join(problems) or formal_answer.why)


def find_bracketed_answer(turn: Turn, wanted: RequestKind) -> AnswerPart | None:
    """Return the first bracketed message that answers the request, if there is one."""
    for message in read_messages(turn.text):
        if not isinstance(message, UnreadableMessage) and (answer := _READERS[wanted](message)) is not None:
            return answer
    return None


def _read_impact(message: ProtocolMessage) -> AnswerPart | None:
    return message.analysis if isinstance(message, ImpactMessage) else None


def _read_challenge(message: ProtocolMessage) -> AnswerPart | None:
    return FreeTextReply(content=message.content) if isinstance(message, ImpactChallengeResponse) else None


def _read_plan(message: ProtocolMessage) -> AnswerPart | None:
    if not isinstance(message, WorkPlan):
        return None
    return PlanReply(
        files=message.files, changes=message.changes, risk=message.risk, interface_impact=message.interface_impact
    )


def _read_ack(message: ProtocolMessage) -> AnswerPart | None:
    if not isinstance(message, Ack):
        return None
    return AckReply(applied=message.applied, total=message.total, impact=message.impact, action=message.action)


def _read_position(message: ProtocolMessage) -> AnswerPart | None:
    if not isinstance(message, SelfLocate):
        return None
    return PositionReply(**message.model_dump())


def _read_response(message: ProtocolMessage) -> AnswerPart | None:
    return FreeTextReply(content=message.content) if isinstance(message, ReverifyResponse) else None


def _read_analysis(message: ProtocolMessage) -> AnswerPart | None:
    return message.analysis if isinstance(message, ReverifyAnalysis) else None


_READERS: Final[Mapping[RequestKind, Callable[[ProtocolMessage], AnswerPart | None]]] = MappingProxyType(
    {
        RequestKind.IMPACT: _read_impact,
        RequestKind.CHALLENGE: _read_challenge,
        RequestKind.PLAN: _read_plan,
        RequestKind.ACK: _read_ack,
        RequestKind.PING: _read_position,
        RequestKind.QUESTION: _read_response,
        RequestKind.ANALYSIS: _read_analysis,
    }
)
