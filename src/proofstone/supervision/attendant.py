"""The attendant of one agent: questions it before and during its work, and stops it in time.

At each turn boundary, everything that happened since the last boundary becomes events. The rules in `supervision.rules`
decide, and their decisions become a message to the agent.

impact ─► [IMPACT_VERIFIED] ─► plan ─► [APPROVED] ─► work ─► RV-1 … RV-3, context updates ─► work … ─► answer

Everything that is remembered is in an `Attendance`, which is recorded at every boundary.

Within a turn, only signs of life are watched. Neither a model nor most programs can receive a message in the middle of
a turn, so any activity answers a ping. An agent that stays silent for too long is stopped, and another one starts.
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
"""Seconds between two checks of the clock and of the run's cancellation. Shorter if the silence limit is short."""
_CHECKS_PER_SILENCE: Final = 4
"""Checks of the clock within the silence limit."""

Tell = Callable[[Event], Fault | None]
"""Report an event; return the fault that ends the turn, if any."""


@contextmanager
def listened_to(site: Site, silence: float, tell: Tell) -> Iterator[Listened]:
    """Yield the execution context for a backend whose silence is watched. `tell` is called from several threads."""
    stop, turn_over = threading.Event(), threading.Event()
    job_stops: list[threading.Event] = []
    listened = Listened(_watch_activity(site, stop, job_stops, tell))
    tick = min(_TICK, silence / _CHECKS_PER_SILENCE)

    def watch() -> None:
        try:
            while not (turn_over.wait(tick) or site.cancel.is_set() or listened.stopped):
                listened.stopped = tell(TimePassed())
        finally:  # also if `tell` failed: a turn that nobody watches would never end
            if not turn_over.is_set():
                stop.set()
                for enough in job_stops:
                    enough.set()

    with ThreadPoolExecutor(1, "listening") as threads:
        watcher = threads.submit(watch)
        try:
            yield listened
        finally:
            turn_over.set()
        watcher.result()  # raises the error of the watcher, if there was one


def _watch_activity(site: Site, stop: threading.Event, job_stops: list[threading.Event], tell: Tell) -> Site:
    def hear(text: str) -> None:
        if text.strip():
            tell(TokensUsed(tokens=0))
        site.hear(text)

    def noted(activity: Activity) -> None:
        tell(ToolUsed(name=activity.name) if activity.kind is ActivityKind.TOOL else TokensUsed(tokens=0))
        site.noted(activity)

    def run(job: ShellJob) -> Execution:
        enough = job.enough or threading.Event()
        job_stops.append(enough)
        if stop.is_set():
            enough.set()
        return site.run(replace(job, enough=enough))

    return replace(site, cancel=stop, hear=hear, noted=noted, run=run)


LAYER: Final = "continuity"
UNVERIFIED: Final = "understanding-unverified"
_MAX_LINE_CHARACTERS: Final = 240
_MAX_FILES: Final = 50


class Continuity:
    """Supervises one agent. Implements `agents.attendant.Attendant`."""

    def __init__(self, agent: Attended) -> None:
        self._agent = agent
        self._entry, self._ladder = Entry(agent), Ladder(agent)
        self._is_recalled = False
        self._reply_handlers: Mapping[Wanted, Callable[[Part | Malformed], Word]] = {
            Wanted.IMPACT: self._entry.impact_said,
            Wanted.CHALLENGE: self._entry.challenge_said,
            Wanted.PLAN: self._entry.plan_said,
            Wanted.ACK: self._ladder.acknowledged,
            Wanted.PING: self._ladder.pinged,
            Wanted.QUESTION: self._ladder.answered,
            Wanted.ANALYSIS: self._ladder.analysed,
        }

    # The `Attendant` protocol, called by the dispatch.

    @property
    def standing(self) -> Mapping[str, JsonValue]:
        state: dict[str, JsonValue] = self._agent.state.model_dump(mode="json")
        return state

    def recall(self, at: Boundary, known: Known) -> Aside | None:
        attendance = Attendance.model_validate(known.standing)
        self._agent.set(**{name: getattr(attendance, name) for name in Attendance.model_fields})
        self._is_recalled = True
        return self._agent.aside(known.told) if known.told else None

    def speak(self, at: Boundary) -> Word:
        with self._agent.lock:
            try:
                return self._respond(at)
            except StoppedError as stopped:
                return stopped.fault
            except RepositoryError as error:  # the agent left its work tree in a state that cannot be read
                return Fault(kind=FaultKind.CRASHED, why=error.message)

    @contextmanager
    def listening(self, site: Site, aloud: Aloud) -> Iterator[Listened]:
        agent = self._agent
        agent.feed(TurnStarted())

        def tell(event: Event) -> Fault | None:
            if isinstance(event, TokensUsed):  # only a sign of life: keep the last known number of tokens
                event = TokensUsed(tokens=agent.state.standing.tokens)
            for decision in agent.feed(event):
                if isinstance(decision, Respawn):
                    return agent.respawn(decision)
                if isinstance(decision, Ask) and decision.at_once:
                    text = reverify(agent.phase, agent.subject.watched.agent, decision.asked, None)
                    aloud(text, Wanted.PING)
                    site.say(spoken(Told(text=text, asked=Wanted.PING), _MAX_LINE_CHARACTERS))
            return None

        with listened_to(site, agent.limits.silence_seconds, tell) as listened:
            yield listened

    # Results, for when the dispatch is over.

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about the work that the agent has left."""
        state = self._agent.state
        unverified = (
            Finding(
                layer=LAYER,
                rule=UNVERIFIED,
                severity=Severity.MINOR,
                detail=f"nobody could judge whether the agent understood: {cap}",
                fix="configure a model for the architect, so that it can judge this",
            )
            for cap in state.caps
        )
        return (*state.findings, *unverified)

    @property
    def unsure(self) -> str:
        """A short statement of what nobody could judge about the agent's understanding. Empty if there is nothing."""
        unjudged = ", ".join(cap.partition(":")[0] for cap in self._agent.state.caps)
        agent_name = self._agent.subject.watched.agent
        return f"nobody could judge how well {agent_name} understood its task ({unjudged})" if unjudged else ""

    # At a turn boundary.

    def _respond(self, at: Boundary) -> Word:
        if at.turn is None:
            return self._begin_task()
        if at.reply:
            self._agent.set(unseen=self._agent.state.unseen or at.turn.acted)
            return self._handle_reply(reply(at.turn, self._open_request))
        events, answer = self._collect_events(at, at.turn), self._find_answer_beside_work(at.turn)
        if answer is not None:
            respawns = [decision for decision in self._agent.feed(*events) if isinstance(decision, Respawn)]
            return self._agent.respawn(respawns[0]) if respawns else self._handle_reply(answer)
        decisions = self._agent.feed(*events, TurnEnded(calls=len(at.turn.calls)), *self._take_restart_event())
        message = self._ladder.follow(decisions, replied=False)
        if message is None and self._agent.state.asked is None:
            message = self._ladder.context()
        if message is None and at.output is not None:
            self._agent.feed(AttemptEnded())
        return message

    def _take_restart_event(self) -> Iterator[Event]:
        """Report the restart once, when the agent is back at its work. Before that, a reply may still answer an
        earlier question.
        """
        is_recalled, self._is_recalled = self._is_recalled, False
        if is_recalled and self._agent.subject.answers(Wanted.PING):
            yield Restarted()

    def _begin_task(self) -> Word:
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
    def _open_request(self) -> Wanted:
        request = self._agent.state.asked
        if request is None:
            raise TypeError("nothing was asked")
        return request

    def _handle_reply(self, answer: Part | Malformed) -> Word:
        return self._reply_handlers[self._open_request](answer)

    def _find_answer_beside_work(self, turn: Turn) -> Part | None:
        """Return the answer in a turn that also calls tools.

        Only a bracketed answer counts there: other text may be about the work. An agent may report its position at any
        time, so a ping is not included.
        """
        request = self._agent.state.asked
        return bracketed(turn, request) if turn.calls and request not in (None, Wanted.PING) else None

    # Events since the last boundary.

    def _collect_events(self, at: Boundary, turn: Turn) -> list[Event]:
        return [
            *self._read_self_reports(turn),
            *self._collect_tool_events(at, turn),
            *self._find_changed_files(turn),
            *self._read_claim(at),
            TokensUsed(tokens=turn.usage.tokens),
        ]

    def _read_self_reports(self, turn: Turn) -> Iterator[Event]:
        """Yield the positions that the agent reported without being asked."""
        for message in read(turn.text):
            if isinstance(message, SelfLocate):
                yield SelfLocated(located=message, anomalies=anomalies(self._agent.state.standing, message))

    def _collect_tool_events(self, at: Boundary, turn: Turn) -> Iterator[Event]:
        agent = self._agent
        passing_commands = dict.fromkeys(agent.state.passing)
        for call, result in zip(turn.calls, at.results, strict=False):
            yield ToolUsed(name=call.name)
            command = str(call.arguments.get("command", "")).strip()
            if call.name == Tool.RUN and command in agent.subject.verify:
                passing_commands.pop(command, None)
                passing_commands.update({command: None} if result.ok else {})
        if tuple(passing_commands) != agent.state.passing:
            agent.set(passing=tuple(passing_commands))
            yield CriteriaSeen(met=len(passing_commands), total=len(agent.subject.verify))

    def _find_changed_files(self, turn: Turn) -> Iterator[Event]:
        """Yield newly changed files. Changes made at the understanding gate, or beside an answer, are examined once
        the agent is back at work.
        """
        agent = self._agent
        has_written = turn.acted or any(call.name in WRITING for call in turn.calls)
        is_unseen = agent.state.unseen or has_written
        if not is_unseen or agent.state.gate is not None:
            agent.set(unseen=is_unseen)
            return
        paths = agent.subject.sight.worked().paths
        new_paths = [path for path in paths if path not in agent.state.touched]
        agent.set(touched=(*agent.state.touched, *new_paths), unseen=False)
        undeclared_paths = set(undeclared(new_paths, agent.state.declared))
        reported_paths = sorted(new_paths, key=lambda path: path not in undeclared_paths)[
            :_MAX_FILES
        ]  # a sample is enough
        yield from (FileChanged(path=path) for path in reported_paths)

    def _read_claim(self, at: Boundary) -> Iterator[Event]:
        if isinstance(claim := at.output, ExecutorResult):
            yield Claimed(status=claim.status.value, files=claim.files_modified or (), error=claim.error or "")
