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
from proofstone.agents.roles.models.gate import ToJudge
from proofstone.agents.roles.models.payload import Part
from proofstone.agents.rules.answer import Malformed
from proofstone.agents.rules.conversation import answer_in
from proofstone.supervision.attended import Attended, Word, asked_about
from proofstone.supervision.entry import Entry
from proofstone.supervision.models.context import Ack, AckOutcome, Action, ContextVersion, brief
from proofstone.supervision.models.events import (
    AnalysisSubmitted,
    AnswerUnreadable,
    Ask,
    ContextChanged,
    Correct,
    Decision,
    Event,
    QuestionAnswered,
    QuestionClosed,
    QuestionOpened,
    Respawn,
    Resume,
    SelfLocated,
    TurnEnded,
    UpdateContext,
)
from proofstone.supervision.models.ladder import Asked, Level, MiniAnalysis, SelfLocate
from proofstone.supervision.models.messages import (
    AnalysisResponse,
    ChallengeResponse,
    ImpactMessage,
    Message,
    Rejected,
    Response,
    Unreadable,
    WorkPlan,
)
from proofstone.supervision.models.understanding import Item, ItemVerdict
from proofstone.supervision.rules.amendments import Amendment
from proofstone.supervision.rules.attendance import CONTRACTS, LEVELS, Acknowledged, Located, PlanSaid, Wanted, Words
from proofstone.supervision.rules.context import acknowledge, tell
from proofstone.supervision.rules.position import anomalies
from proofstone.supervision.rules.questions import grade, question_for
from proofstone.supervision.rules.scoring import Reality, score
from proofstone.supervision.rules.understanding import GO_ON, MEANING, reverify, update
from proofstone.supervision.rules.wire import read, write

_TURN_DONE = TurnEnded(calls=0)
_JUDGED_ITEMS = (Item.TASK, Item.DOWNSTREAM)
"""Items of the abbreviated analysis that are judged. The list of files is compared by code."""


@dataclass(frozen=True)
class Ladder:
    agent: Attended

    # Decisions of the monitor.

    def follow(self, decisions: tuple[Decision, ...], *, replied: bool) -> Word:
        """Carry out the decisions and return the message to the agent. None if there is nothing to say."""
        messages: list[str] = []
        plan_first = False
        for decision in decisions:
            match decision:
                case Respawn():
                    return self.agent.respawn(decision)
                case Resume():
                    self.agent.caps(*((decision.why,) if decision.caps else ()))
                    plan_first = plan_first or decision.plan_first
                case UpdateContext():
                    self.agent.caps(*((decision.why,) if decision.caps else ()))
                    messages += filter(None, [self._extend_ownership(decision.files, decision.why)])
                case Correct():
                    messages.append(write(Rejected(phase=self.agent.phase, reason=brief(decision.why))))
        asked = next((ask.asked for ask in decisions if isinstance(ask, Ask) and not ask.at_once), None)
        if asked is not None:
            if not replied:
                self._postpone_open_request()
            return self._ask(asked, messages)
        is_settled = replied or self._is_answered
        if plan_first or (self.agent.state.paused and is_settled):
            return self._ask_new_plan(messages)
        if not messages and not is_settled:
            return None
        return self.agent.resume("\n\n".join((*messages, GO_ON)))

    @property
    def _is_answered(self) -> bool:
        """Whether the open request was answered in a turn that also did work, so that nothing is open any more."""
        return self.agent.state.asked in LEVELS.values() and self.agent.state.monitor.open is None

    def _ask(self, asked: Asked, messages: list[str]) -> Word:
        question = question_for(asked.causes, asked_about(self.agent)) if asked.level is Level.QUESTION else None
        self.agent.set(question=question)
        self.agent.feed(QuestionOpened(level=asked.level))
        watched = self.agent.subject.watched
        text = reverify(watched.phase, watched.agent, asked, question)
        return self.agent.ask(LEVELS[asked.level], "\n\n".join((*messages, text)))

    def _postpone_open_request(self) -> None:
        """A stronger question replaces the open request. Make sure that the request is repeated afterwards."""
        state = self.agent.state
        if state.asked is Wanted.PLAN:
            self.agent.set(paused=True)
        elif state.asked is Wanted.ACK:
            self.agent.set(reader=state.reader.model_copy(update={"again": True, "awaited": None}))

    def _ask_new_plan(self, messages: list[str]) -> Word:
        """The agent's approach has changed: give it the files that it needs, and have it submit a new plan."""
        ownership = self._extend_ownership(self.agent.state.announced, "it needs them for a requirement that was added")
        self.agent.set(announced=(), paused=False, plans=0)
        acknowledgement = f"Acknowledged. Update your [PLAN]. {ownership}".strip()
        return Entry(self.agent).ask_plan("\n\n".join((*messages, acknowledgement)))

    def _extend_ownership(self, files: tuple[str, ...], why: str) -> str:
        """Add announced files to the task and return the message about it."""
        subject = self.agent.subject
        if not files:
            return ""
        if refusal := subject.amend(Amendment(task=subject.id, files=files, why=why)):
            return f"File ownership is unchanged: {refusal}. Continue without these files."
        self.agent.own(files)
        return f"File ownership expanded: {', '.join(files)}."

    # Answers of the agent.

    def pinged(self, answer: Part | Malformed) -> Word:
        if not isinstance(answer, Located):
            return self._reject_unreadable(answer)
        standing = self.agent.state.standing
        located = answer.line(standing)
        return self._close_question(SelfLocated(located=located, anomalies=anomalies(standing, located)))

    def answered(self, answer: Part | Malformed) -> Word:
        question = self.agent.state.question
        if not isinstance(answer, Words) or question is None:
            return self._reject_unreadable(answer)
        about = asked_about(self.agent)
        first_grade = grade(question, answer.content, about)
        verdict = None
        if question.judged and not first_grade.missing:
            to_judge = ToJudge(
                item="answer", holds_if=f"it answers this question, and the answer is right: {question.text}"
            )
            (judgement,) = self.agent.judged(answer.content, to_judge)
            verdict = judgement.verdict
        final_grade = grade(question, answer.content, about, verdict)
        self.agent.set(answer=answer.content, announced=final_grade.announced)
        return self._close_question(QuestionAnswered(grade=final_grade))

    def analysed(self, answer: Part | Malformed) -> Word:
        if not isinstance(answer, MiniAnalysis):
            return self._reject_unreadable(answer)
        state, subject = self.agent.state, self.agent.subject
        worked = subject.sight.worked((state.plan.interface_impact,) if state.plan else ())
        self.agent.set(touched=tuple(dict.fromkeys((*state.touched, *worked.paths))))
        text = write(AnalysisResponse(phase=self.agent.phase, analysis=answer))
        judgements = self.agent.judged(text, *(ToJudge(item=item, holds_if=MEANING[item]) for item in _JUDGED_ITEMS))
        verdicts = tuple(
            ItemVerdict(item=item, verdict=judgement.verdict, detail=judgement.detail)
            for item, judgement in zip(_JUDGED_ITEMS, judgements, strict=True)
        )
        reality = Reality(
            declared=state.declared,
            worked=worked.files,
            signatures=worked.signatures,
            unseen=worked.unseen,
            later=subject.later,
        )
        return self._close_question(AnalysisSubmitted(score=score(answer, reality, verdicts)))

    def _reject_unreadable(self, answer: Part | Malformed) -> Word:
        why = answer.why if isinstance(answer, Malformed) else "it does not answer the question"
        return self._close_question(AnswerUnreadable(why=why))

    def _close_question(self, event: Event) -> Word:
        """Close the answered question and carry out what follows."""
        return self.follow(self.agent.feed(event, QuestionClosed(), _TURN_DONE), replied=True)

    # Updates of the context.

    def context(self) -> Word:
        """Tell the agent about context changes that concern it, if there are any."""
        subject, state = self.agent.subject, self.agent.state
        versions = subject.board.versions()
        known_version = _find_version(versions, state.reader.knows)
        reader, sent = tell(state.reader, known_version, versions[-1])
        if sent is None:
            return None
        new_requirements = [
            requirement for requirement in subject.board.added() if requirement.number + 1 > state.reader.knows
        ]
        self.agent.set(
            reader=reader,
            delta=sent.update.lines,
            affected=tuple(path for requirement in new_requirements for path in requirement.files),
            told=tuple(dict.fromkeys((*state.told, *(requirement.number for requirement in new_requirements)))),
            reverify=sent.reverify or state.reverify,
        )
        return self.agent.ask(Wanted.ACK, update(sent.update))

    def acknowledged(self, answer: Part | Malformed) -> Word:
        state = self.agent.state
        is_paused = isinstance(answer, Acknowledged) and answer.action is not Action.CONTINUE
        if not isinstance(answer, Acknowledged):  # an unreadable answer acknowledges nothing
            total = state.reader.awaited or 0
            answer = Acknowledged(applied=0, total=total, impact="unreadable", action=Action.NEED_CLARIFICATION)
        ack = Ack(
            version=state.reader.knows,
            applied=answer.applied,
            total=answer.total,
            impact=answer.impact,
            action=answer.action,
        )
        reader, outcome = acknowledge(state.reader, ack)
        self.agent.set(reader=reader, paused=state.paused or is_paused)
        if outcome is AckOutcome.SEND_WHOLE and (repeated := self.context()) is not None:
            return repeated
        events: list[Event] = []
        if self.agent.state.reverify:
            self.agent.set(reverify=False)
            what = "; ".join(line.text for line in state.delta)
            events.append(ContextChanged(version=reader.knows, what=what))
        return self.follow(self.agent.feed(*events, _TURN_DONE), replied=True)


def _find_version(versions: tuple[ContextVersion, ...], number: int) -> ContextVersion | None:
    return next((version for version in versions if version.number == number), None)


_MAX_ANSWER_CHARACTERS: Final = 8_000
"""Characters of a free-text answer that are read."""
FREE: Final = (Wanted.CHALLENGE, Wanted.QUESTION)
"""Requests that free text can answer."""


def reply(turn: Turn, wanted: Wanted) -> Part | Malformed:
    """Return the answer to the request, or why there is none."""
    if (bracketed_answer := bracketed(turn, wanted)) is not None:
        return bracketed_answer
    formal_answer = answer_in(turn, CONTRACTS[wanted])
    if isinstance(formal_answer, Part):
        return formal_answer
    if wanted in FREE and turn.text.strip():
        return Words(content=turn.text[:_MAX_ANSWER_CHARACTERS])
    problems = [message.why for message in read(turn.text) if isinstance(message, Unreadable)]
    return Malformed(
        "; ".join(problems) or (formal_answer.why if isinstance(formal_answer, Malformed) else "there is no answer")
    )


def bracketed(turn: Turn, wanted: Wanted) -> Part | None:
    """Return the first bracketed message that answers the request, if there is one."""
    for message in read(turn.text):
        if not isinstance(message, Unreadable) and (answer := _READERS[wanted](message)) is not None:
            return answer
    return None


def _read_impact(message: Message) -> Part | None:
    return message.analysis if isinstance(message, ImpactMessage) else None


def _read_challenge(message: Message) -> Part | None:
    return Words(content=message.content) if isinstance(message, ChallengeResponse) else None


def _read_plan(message: Message) -> Part | None:
    if not isinstance(message, WorkPlan):
        return None
    return PlanSaid(
        files=message.files, changes=message.changes, risk=message.risk, interface_impact=message.interface_impact
    )


def _read_ack(message: Message) -> Part | None:
    if not isinstance(message, Ack):
        return None
    return Acknowledged(applied=message.applied, total=message.total, impact=message.impact, action=message.action)


def _read_position(message: Message) -> Part | None:
    if not isinstance(message, SelfLocate):
        return None
    return Located(**message.model_dump())


def _read_response(message: Message) -> Part | None:
    return Words(content=message.content) if isinstance(message, Response) else None


def _read_analysis(message: Message) -> Part | None:
    return message.analysis if isinstance(message, AnalysisResponse) else None


_READERS: Final[Mapping[Wanted, Callable[[Message], Part | None]]] = MappingProxyType(
    {
        Wanted.IMPACT: _read_impact,
        Wanted.CHALLENGE: _read_challenge,
        Wanted.PLAN: _read_plan,
        Wanted.ACK: _read_ack,
        Wanted.PING: _read_position,
        Wanted.QUESTION: _read_response,
        Wanted.ANALYSIS: _read_analysis,
    }
)
