"""Signs of life within a turn: an agent that is silent for too long is spoken to, and stopped in the end.

A model cannot hear anything in the middle of its turn, and neither can most programs. So a ping is answered by whatever
the agent does next; and one that does nothing at all is stopped, and another begins.

Who attends to one agent: asks it before its work and while it works, and stops it in time.

At each turn boundary what happened since the last one becomes events, the rules of `supervision.rules` decide, and what
they decide becomes a word to the agent.

    impact ─► [IMPACT_VERIFIED] ─► plan ─► [APPROVED] ─► work ─► RV-1 … RV-3, context updates ─► work … ─► answer

Everything that is remembered is an `Attendance`, and is on record with every boundary.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from proofstone.agents.attendant import Aloud, Known, Listened
from proofstone.agents.executors.context import ShellJob, Site
from proofstone.agents.models import Activity, ActivityKind, Fault, FaultKind, Told, Turn
from proofstone.agents.roles.models.gate import ExecutorResult
from proofstone.agents.roles.models.payload import Part
from proofstone.agents.rules.answer import Malformed
from proofstone.agents.rules.conversation import Aside, Boundary, spoken
from proofstone.agents.tools.models import WRITING, Tool
from proofstone.common.globs import undeclared
from proofstone.common.models import Finding, Severity
from proofstone.errors import RepositoryError
from proofstone.sandbox.job import Execution
from proofstone.supervision.attended import Attended, StoppedError, Word
from proofstone.supervision.entry import Entry
from proofstone.supervision.ladder import Ladder, bracketed, reply
from proofstone.supervision.models.events import (
    Ask,
    AttemptEnded,
    Claimed,
    CriteriaSeen,
    Event,
    FileChanged,
    GateEntered,
    Respawn,
    Restarted,
    SelfLocated,
    TaskBegan,
    TimePassed,
    TokensUsed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import SelfLocate
from proofstone.supervision.models.understanding import Attempts, Tier
from proofstone.supervision.rules.attendance import Attendance, Wanted
from proofstone.supervision.rules.context import freeze
from proofstone.supervision.rules.position import anomalies
from proofstone.supervision.rules.understanding import enter, reverify
from proofstone.supervision.rules.wire import read

_TICK: Final = 0.1
"""Seconds between two looks at the clock, and at whether the run is stopped, if there is time for so many."""
_LOOKS: Final = 4
"""Looks at the clock before a silence is long."""

Tell = Callable[[Event], Fault | None]
"""What happened; why the turn is to be ended, if it is."""


@contextmanager
def listened_to(site: Site, silence: float, tell: Tell) -> Iterator[Listened]:
    """The site, as a backend has it whose silence counts. `tell` is called from several threads."""
    stop, over = threading.Event(), threading.Event()
    running: list[threading.Event] = []
    listened = Listened(_listening(site, stop, running, tell))
    tick = min(_TICK, silence / _LOOKS)

    def watch() -> None:
        try:
            while not (over.wait(tick) or site.cancel.is_set() or listened.stopped):
                listened.stopped = tell(TimePassed())
        finally:  # also if it cannot be told: a turn that nobody listens to would go on for ever
            if not over.is_set():
                stop.set()
                for enough in running:
                    enough.set()

    with ThreadPoolExecutor(1, "listening") as threads:
        watching = threads.submit(watch)
        try:
            yield listened
        finally:
            over.set()
        watching.result()  # what went wrong there is not swallowed


def _listening(site: Site, stop: threading.Event, running: list[threading.Event], tell: Tell) -> Site:
    def hear(text: str) -> None:
        if text.strip():
            tell(TokensUsed(tokens=0))
        site.hear(text)

    def noted(activity: Activity) -> None:
        tell(ToolUsed(name=activity.name) if activity.kind is ActivityKind.TOOL else TokensUsed(tokens=0))
        site.noted(activity)

    def run(job: ShellJob) -> Execution:
        enough = job.enough or threading.Event()
        running.append(enough)
        if stop.is_set():
            enough.set()
        return site.run(replace(job, enough=enough))

    return replace(site, cancel=stop, hear=hear, noted=noted, run=run)


LAYER: Final = "continuity"
UNVERIFIED: Final = "understanding-unverified"
_LINE: Final = 240
_MOST_FILES: Final = 50


class Continuity:
    """Implements `agents.attendant.Attendant`."""

    def __init__(self, agent: Attended) -> None:
        self._agent = agent
        self._entry, self._ladder = Entry(agent), Ladder(agent)
        self._recalled = False
        self._hears: Mapping[Wanted, Callable[[Part | Malformed], Word]] = {
            Wanted.IMPACT: self._entry.impact_said,
            Wanted.CHALLENGE: self._entry.challenge_said,
            Wanted.PLAN: self._entry.plan_said,
            Wanted.ACK: self._ladder.acknowledged,
            Wanted.PING: self._ladder.pinged,
            Wanted.QUESTION: self._ladder.answered,
            Wanted.ANALYSIS: self._ladder.analysed,
        }

    # What the dispatch asks for.

    @property
    def standing(self) -> Mapping[str, JsonValue]:
        kept: dict[str, JsonValue] = self._agent.state.model_dump(mode="json")
        return kept

    def recall(self, at: Boundary, known: Known) -> Aside | None:
        state = Attendance.model_validate(known.standing)
        self._agent.set(**{name: getattr(state, name) for name in Attendance.model_fields})
        self._recalled = True
        return self._agent.aside(known.told) if known.told else None

    def speak(self, at: Boundary) -> Word:
        with self._agent.lock:
            try:
                return self._speak(at)
            except StoppedError as stopped:
                return stopped.fault
            except RepositoryError as error:  # what it has left of its work tree cannot be looked at
                return Fault(kind=FaultKind.CRASHED, why=error.message)

    @contextmanager
    def listening(self, site: Site, aloud: Aloud) -> Iterator[Listened]:
        agent = self._agent
        agent.feed(TurnStarted())

        def tell(event: Event) -> Fault | None:
            if isinstance(event, TokensUsed):  # a sign of life, and no figure
                event = TokensUsed(tokens=agent.state.standing.tokens)
            for item in agent.feed(event):
                if isinstance(item, Respawn):
                    return agent.respawn(item)
                if isinstance(item, Ask) and item.at_once:
                    text = reverify(agent.phase, agent.subject.watched.agent, item.asked, None)
                    aloud(text, Wanted.PING)
                    site.say(spoken(Told(text=text, asked=Wanted.PING), _LINE))
            return None

        with listened_to(site, agent.limits.silence_seconds, tell) as listened:
            yield listened

    # What is left of it when the dispatch is over.

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be known of the work that the agent has left."""
        state = self._agent.state
        unverified = (
            Finding(
                layer=LAYER,
                rule=UNVERIFIED,
                severity=Severity.MINOR,
                detail=f"nobody could say whether it understood: {cap}",
                fix="name a model for the architect that can judge it",
            )
            for cap in state.caps
        )
        return (*state.findings, *unverified)

    @property
    def unsure(self) -> str:
        """What nobody could say of how it has understood its task, in short; empty if there is nothing."""
        unsaid = ", ".join(cap.partition(":")[0] for cap in self._agent.state.caps)
        who = self._agent.subject.watched.agent
        return f"nobody could judge how {who} has understood its task ({unsaid})" if unsaid else ""

    # At a boundary.

    def _speak(self, at: Boundary) -> Word:
        if at.turn is None:
            return self._begin()
        if at.reply:
            self._agent.set(unseen=self._agent.state.unseen or at.turn.acted)
            return self._replied(reply(at.turn, self._wanted))
        seen, answer = self._seen(at, at.turn), self._answered_beside(at.turn)
        if answer is not None:
            gone = [item for item in self._agent.feed(*seen) if isinstance(item, Respawn)]
            return self._agent.respawn(gone[0]) if gone else self._replied(answer)
        decisions = self._agent.feed(*seen, TurnEnded(calls=len(at.turn.calls)), *self._restarted())
        said = self._ladder.follow(decisions, replied=False)
        if said is None and self._agent.state.asked is None:
            said = self._ladder.context()
        if said is None and at.output is not None:
            self._agent.feed(AttemptEnded())
        return said

    def _restarted(self) -> Iterator[Event]:
        """Noticed when it is back at its work: the answer to a question that it was asked before is an answer still."""
        recalled, self._recalled = self._recalled, False
        if recalled and self._agent.subject.answers(Wanted.PING):
            yield Restarted()

    def _begin(self) -> Word:
        agent, subject = self._agent, self._agent.subject
        agent.feed(
            TaskBegan(
                task=subject.name,
                number=subject.number,
                total=subject.total,
                files=subject.files if subject.tier is Tier.IMPLEMENTER else None,
                criteria=len(subject.verify),
            )
        )
        gate = enter(subject.tier) if subject.answers(Wanted.IMPACT) else None
        if not isinstance(gate, Attempts):
            return None
        agent.feed(GateEntered())
        agent.set(gate=gate, reader=freeze(agent.state.reader))
        return self._entry.ask_impact()

    @property
    def _wanted(self) -> Wanted:
        wanted = self._agent.state.asked
        if wanted is None:
            raise TypeError("nothing was asked")
        return wanted

    def _replied(self, said: Part | Malformed) -> Word:
        return self._hears[self._wanted](said)

    def _answered_beside(self, turn: Turn) -> Part | None:
        """Many a model answers and goes on with its tools in the same turn. Only an answer between brackets is one
        there: any other words may be about its work. Where it is, it may say at any time, asked or not."""
        wanted = self._agent.state.asked
        return bracketed(turn, wanted) if turn.calls and wanted not in (None, Wanted.PING) else None

    # What was seen since the last boundary.

    def _seen(self, at: Boundary, turn: Turn) -> list[Event]:
        return [
            *self._said(turn),
            *self._used(at, turn),
            *self._changed(turn),
            *self._claimed(at),
            TokensUsed(tokens=turn.usage.tokens),
        ]

    def _said(self, turn: Turn) -> Iterator[Event]:
        """Lines between brackets that nobody has asked for."""
        for message in read(turn.text):
            if isinstance(message, SelfLocate):
                yield SelfLocated(located=message, anomalies=anomalies(self._agent.state.standing, message))

    def _used(self, at: Boundary, turn: Turn) -> Iterator[Event]:
        agent = self._agent
        passing = dict.fromkeys(agent.state.passing)
        for call, result in zip(turn.calls, at.results, strict=False):
            yield ToolUsed(name=call.name)
            command = str(call.arguments.get("command", "")).strip()
            if call.name == Tool.RUN and command in agent.subject.verify:
                passing.pop(command, None)
                passing.update({command: None} if result.ok else {})
        if tuple(passing) != agent.state.passing:
            agent.set(passing=tuple(passing))
            yield CriteriaSeen(met=len(passing), total=len(agent.subject.verify))

    def _changed(self, turn: Turn) -> Iterator[Event]:
        """What was changed at the understanding gate, or beside an answer, is looked at when it is back at work."""
        agent = self._agent
        wrote = turn.acted or any(call.name in WRITING for call in turn.calls)
        unseen = agent.state.unseen or wrote
        if not unseen or agent.state.gate is not None:
            agent.set(unseen=unseen)
            return
        paths = agent.subject.sight.worked().paths
        new = [path for path in paths if path not in agent.state.touched]
        agent.set(touched=(*agent.state.touched, *new), unseen=False)
        strange = set(undeclared(new, agent.state.declared))
        first = sorted(new, key=lambda path: path not in strange)[:_MOST_FILES]  # of thousands, some say enough
        yield from (FileChanged(path=path) for path in first)

    def _claimed(self, at: Boundary) -> Iterator[Event]:
        if isinstance(said := at.output, ExecutorResult):
            yield Claimed(status=said.status.value, files=said.files_modified or (), error=said.error or "")
