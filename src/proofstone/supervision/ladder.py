"""In the middle of the work: what an agent is asked when something says that it may have drifted, what its answers are
held against, and what of its task changes when what is wanted does.

What an agent answers in the middle of its work: between brackets, in a form of the runtime's, or freely.
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

_DONE = TurnEnded(calls=0)
_ANALYSED = (Item.TASK, Item.DOWNSTREAM)
"""Of the abbreviated analysis, what is judged; the list of files is compared."""


@dataclass(frozen=True)
class Ladder:
    agent: Attended

    # What was decided.

    def follow(self, decisions: tuple[Decision, ...], *, replied: bool) -> Word:
        """The one word that says it all; None: nothing need be said."""
        said: list[str] = []
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
                    said += filter(None, [self._owned(decision.files, decision.why)])
                case Correct():
                    said.append(write(Rejected(phase=self.agent.phase, reason=brief(decision.why))))
        asked = next((item.asked for item in decisions if isinstance(item, Ask) and not item.at_once), None)
        if asked is not None:
            if not replied:
                self._put_off()
            return self._ask(asked, said)
        settled = replied or self._is_settled
        if plan_first or (self.agent.state.paused and settled):
            return self._replan(said)
        if not said and not settled:
            return None
        return self.agent.resume("\n\n".join((*said, GO_ON)))

    @property
    def _is_settled(self) -> bool:
        """What it was asked was answered beside its work: nothing is open any more, and it must not wait for it."""
        return self.agent.state.asked in LEVELS.values() and self.agent.state.monitor.open is None

    def _ask(self, asked: Asked, said: list[str]) -> Word:
        question = question_for(asked.causes, asked_about(self.agent)) if asked.level is Level.QUESTION else None
        self.agent.set(question=question)
        self.agent.feed(QuestionOpened(level=asked.level))
        watched = self.agent.subject.watched
        text = reverify(watched.phase, watched.agent, asked, question)
        return self.agent.ask(LEVELS[asked.level], "\n\n".join((*said, text)))

    def _put_off(self) -> None:
        """A stronger question takes the place of one that is open, which is asked again behind it."""
        state = self.agent.state
        if state.asked is Wanted.PLAN:
            self.agent.set(paused=True)
        elif state.asked is Wanted.ACK:
            self.agent.set(reader=state.reader.model_copy(update={"again": True, "awaited": None}))

    def _replan(self, said: list[str]) -> Word:
        """Its approach has changed: what it needs becomes its own, and how it goes on is approved first."""
        told = self._owned(self.agent.state.announced, "it needs them for what was added")
        self.agent.set(announced=(), paused=False, plans=0)
        acknowledged = f"Acknowledged. Update your [PLAN]. {told}".strip()
        return Entry(self.agent).ask_plan("\n\n".join((*said, acknowledged)))

    def _owned(self, files: tuple[str, ...], why: str) -> str:
        """What it is told of files that it has announced."""
        subject = self.agent.subject
        if not files:
            return ""
        if refused := subject.amend(Amendment(task=subject.id, files=files, why=why)):
            return f"File ownership stays as it is: {refused}. Do without it."
        self.agent.own(files)
        return f"File ownership expanded: {', '.join(files)}."

    # What was answered.

    def pinged(self, said: Part | Malformed) -> Word:
        if not isinstance(said, Located):
            return self._unread(said)
        standing = self.agent.state.standing
        located = said.line(standing)
        return self._settle(SelfLocated(located=located, anomalies=anomalies(standing, located)))

    def answered(self, said: Part | Malformed) -> Word:
        question = self.agent.state.question
        if not isinstance(said, Words) or question is None:
            return self._unread(said)
        about = asked_about(self.agent)
        first = grade(question, said.content, about)
        judged = None
        if question.judged and not first.missing:
            asked = ToJudge(item="answer", holds_if=f"it answers this, and what it says is right: {question.text}")
            (one,) = self.agent.judged(said.content, asked)
            judged = one.verdict
        graded = grade(question, said.content, about, judged)
        self.agent.set(answer=said.content, announced=graded.announced)
        return self._settle(QuestionAnswered(grade=graded))

    def analysed(self, said: Part | Malformed) -> Word:
        if not isinstance(said, MiniAnalysis):
            return self._unread(said)
        state, subject = self.agent.state, self.agent.subject
        worked = subject.sight.worked((state.plan.interface_impact,) if state.plan else ())
        self.agent.set(touched=tuple(dict.fromkeys((*state.touched, *worked.paths))))
        text = write(AnalysisResponse(phase=self.agent.phase, analysis=said))
        judged = self.agent.judged(text, *(ToJudge(item=item, holds_if=MEANING[item]) for item in _ANALYSED))
        verdicts = tuple(
            ItemVerdict(item=item, verdict=one.verdict, detail=one.detail)
            for item, one in zip(_ANALYSED, judged, strict=True)
        )
        reality = Reality(
            declared=state.declared,
            worked=worked.files,
            signatures=worked.signatures,
            unseen=worked.unseen,
            later=subject.later,
        )
        return self._settle(AnalysisSubmitted(score=score(said, reality, verdicts)))

    def _unread(self, said: Part | Malformed) -> Word:
        why = said.why if isinstance(said, Malformed) else "it is no answer to that"
        return self._settle(AnswerUnreadable(why=why))

    def _settle(self, event: Event) -> Word:
        """The question is answered, well or not: what follows."""
        return self.follow(self.agent.feed(event, QuestionClosed(), _DONE), replied=True)

    # What the person has changed.

    def context(self) -> Word:
        """Tell it of what has changed and concerns it, if anything has."""
        subject, state = self.agent.subject, self.agent.state
        versions = subject.board.versions()
        known = _numbered(versions, state.reader.knows)
        reader, sent = tell(state.reader, known, versions[-1])
        if sent is None:
            return None
        new = [item for item in subject.board.added() if item.number + 1 > state.reader.knows]
        self.agent.set(
            reader=reader,
            delta=sent.update.lines,
            affected=tuple(path for item in new for path in item.files),
            told=tuple(dict.fromkeys((*state.told, *(item.number for item in new)))),
            reverify=sent.reverify or state.reverify,
        )
        return self.agent.ask(Wanted.ACK, update(sent.update))

    def acknowledged(self, said: Part | Malformed) -> Word:
        state = self.agent.state
        paused = isinstance(said, Acknowledged) and said.action is not Action.CONTINUE
        if not isinstance(said, Acknowledged):  # whoever cannot say it has not taken it in
            total = state.reader.awaited or 0
            said = Acknowledged(applied=0, total=total, impact="unreadable", action=Action.NEED_CLARIFICATION)
        ack = Ack(
            version=state.reader.knows,
            applied=said.applied,
            total=said.total,
            impact=said.impact,
            action=said.action,
        )
        reader, outcome = acknowledge(state.reader, ack)
        self.agent.set(reader=reader, paused=state.paused or paused)
        if outcome is AckOutcome.SEND_WHOLE and (again := self.context()) is not None:
            return again
        events: list[Event] = []
        if self.agent.state.reverify:
            self.agent.set(reverify=False)
            what = "; ".join(line.text for line in state.delta)
            events.append(ContextChanged(version=reader.knows, what=what))
        return self.follow(self.agent.feed(*events, _DONE), replied=True)


def _numbered(versions: tuple[ContextVersion, ...], number: int) -> ContextVersion | None:
    return next((version for version in versions if version.number == number), None)


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
    broken = [row.why for row in read(turn.text) if isinstance(row, Unreadable)]
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
