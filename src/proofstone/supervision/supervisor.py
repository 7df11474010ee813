"""The supervisor of one agent: questions it before and during its work, and stops it in time.

At each turn boundary, everything that happened since the last boundary becomes events. The rules in `supervision.rules`
decide, and their decisions become a message to the agent.

impact ─► [IMPACT_VERIFIED] ─► plan ─► [APPROVED] ─► work ─► RV-1 … RV-3, context updates ─► work … ─► answer

Everything that is remembered is in an `SupervisionState`, which is recorded at every boundary.

Within a turn, only signs of life are watched. Neither a model nor most programs can receive a message in the middle of
a turn, so any activity answers a ping. An agent that stays silent for too long is stopped, and another one starts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from proofstone.agents.executors.context import ExecutionContext, ShellCommand
from proofstone.agents.models import Activity, ActivityKind, EngineMessage, Fault, FaultKind, Turn
from proofstone.agents.roles.models.gate import ExecutorResult
from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.agents.rules.answer import MalformedAnswer
from proofstone.agents.rules.conversation import Interjection, TurnBoundary, format_message_line
from proofstone.agents.supervisor import BoundaryRecord, SendDuringTurn, TurnObservation
from proofstone.agents.tools.models import WRITING_TOOLS, Tool
from proofstone.common.context_windows import find_context_window
from proofstone.common.globs import find_undeclared
from proofstone.common.models import Finding, Severity
from proofstone.errors import RepositoryError
from proofstone.sandbox.job import SandboxResult
from proofstone.supervision.agent_supervision import AgentDirective, AgentSupervision, RunStoppedError
from proofstone.supervision.models.events import (
    AgentEvent,
    ApproachDiffers,
    AskQuestion,
    AttemptEnded,
    CriteriaChecked,
    EngineRestarted,
    FileChanged,
    GateEntered,
    RespawnAgent,
    ResultClaimed,
    SelfLocated,
    TaskStarted,
    TimePassed,
    TokensUsed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import SelfLocate
from proofstone.supervision.models.understanding import GateAttempts, SupervisionTier
from proofstone.supervision.reverification import ReverificationLadder, find_bracketed_answer, read_reply
from proofstone.supervision.rules.context import freeze_context
from proofstone.supervision.rules.position import find_anomalies
from proofstone.supervision.rules.supervision_state import RequestKind, SupervisionState
from proofstone.supervision.rules.understanding import enter_gate, write_reverify_request
from proofstone.supervision.rules.wire import read_messages
from proofstone.supervision.understanding_gate import UnderstandingGate

_TICK: Final = 0.1
"""Seconds between two checks of the clock and of the run's cancellation. Shorter if the silence limit is short."""
_CHECKS_PER_SILENCE: Final = 4
"""Checks of the clock within the silence limit."""

EventCallback = Callable[[AgentEvent], Fault | None]
"""Report an event; return the fault that ends the turn, if any."""


@contextmanager
def watch_turn(site: ExecutionContext, silence: float, tell: EventCallback) -> Iterator[TurnObservation]:
    """Yield the execution context for a backend whose silence is watched. `tell` is called from several threads."""
    stop, turn_over = threading.Event(), threading.Event()
    job_stops: list[threading.Event] = []
    listened = TurnObservation(_watch_activity(site, stop, job_stops, tell))
    tick = min(_TICK, silence / _CHECKS_PER_SILENCE)

    def watch() -> None:
        try:
            while not (turn_over.wait(tick) or site.cancel.is_set() or listened.stop_fault):
                listened.stop_fault = tell(TimePassed())
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


def _watch_activity(
    site: ExecutionContext, stop: threading.Event, job_stops: list[threading.Event], tell: EventCallback
) -> ExecutionContext:
    def hear(text: str) -> None:
        if text.strip():
            tell(TokensUsed(tokens=0))
        site.on_text(text)

    def noted(activity: Activity) -> None:
        tell(ToolUsed(name=activity.name) if activity.kind is ActivityKind.TOOL else TokensUsed(tokens=0))
        site.on_activity(activity)

    def run(job: ShellCommand) -> SandboxResult:
        enough = job.stop_event or threading.Event()
        job_stops.append(enough)
        if stop.is_set():
            enough.set()
        return site.run(replace(job, stop_event=enough))

    return replace(site, cancel=stop, on_text=hear, on_activity=noted, run=run)


LAYER: Final = "continuity"
UNVERIFIED: Final = "understanding-unverified"
DEVIATION_RULE: Final = "significant-deviation"
_MAX_LINE_CHARACTERS: Final = 240
_MAX_FILES: Final = 50
_MAX_NAMED: Final = 5


class AgentSupervisor:
    """Supervises one agent. Implements `agents.supervisor.Attendant`."""

    def __init__(self, agent: AgentSupervision) -> None:
        self._agent = agent
        self._entry, self._ladder = UnderstandingGate(agent), ReverificationLadder(agent)
        self._is_recalled = False
        self._reply_handlers: Mapping[RequestKind, Callable[[AnswerPart | MalformedAnswer], AgentDirective]] = {
            RequestKind.IMPACT: self._entry.handle_impact,
            RequestKind.CHALLENGE: self._entry.handle_challenge_answer,
            RequestKind.PLAN: self._entry.handle_plan,
            RequestKind.ACK: self._ladder.handle_ack,
            RequestKind.PING: self._ladder.handle_ping_answer,
            RequestKind.QUESTION: self._ladder.handle_question_answer,
            RequestKind.ANALYSIS: self._ladder.handle_analysis,
        }

    # The `Supervisor` protocol, called by the dispatch.

    @property
    def state(self) -> Mapping[str, JsonValue]:
        state: dict[str, JsonValue] = self._agent.state.model_dump(mode="json")
        return state

    def restore(self, at: TurnBoundary, known: BoundaryRecord) -> Interjection | None:
        attendance = SupervisionState.model_validate(known.state)
        self._agent.update_state(**{name: getattr(attendance, name) for name in SupervisionState.model_fields})
        self._is_recalled = True
        return self._agent.build_interjection(known.message) if known.message else None

    def interject(self, at: TurnBoundary) -> AgentDirective:
        with self._agent.lock:
            try:
                return self._respond(at)
            except RunStoppedError as stopped:
                return stopped.fault
            except RepositoryError as error:  # the agent left its work tree in a state that cannot be read
                return Fault(kind=FaultKind.CRASHED, why=error.message)

    @contextmanager
    def observe_turn(self, site: ExecutionContext, aloud: SendDuringTurn) -> Iterator[TurnObservation]:
        agent = self._agent
        agent.process_events(TurnStarted())

        def tell(event: AgentEvent) -> Fault | None:
            if isinstance(event, TokensUsed):  # only a sign of life: keep the last known number of tokens
                event = TokensUsed(tokens=agent.state.standing.tokens)
            for decision in agent.process_events(event):
                if isinstance(decision, RespawnAgent):
                    return agent.respawn(decision)
                if isinstance(decision, AskQuestion) and decision.at_once:
                    text = write_reverify_request(agent.phase, agent.subject.profile.agent, decision.asked, None)
                    aloud(text, RequestKind.PING)
                    site.say(
                        format_message_line(EngineMessage(text=text, asked=RequestKind.PING), _MAX_LINE_CHARACTERS)
                    )
            return None

        with watch_turn(site, agent.limits.silence_seconds, tell) as listened:
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
    def unjudged_summary(self) -> str:
        """A short statement of what nobody could judge about the agent's understanding. Empty if there is nothing."""
        unjudged = ", ".join(cap.partition(":")[0] for cap in self._agent.state.caps)
        agent_name = self._agent.subject.profile.agent
        return f"nobody could judge how well {agent_name} understood its task ({unjudged})" if unjudged else ""

    # At a turn boundary.

    def _respond(self, at: TurnBoundary) -> AgentDirective:
        if at.turn is None:
            return self._begin_task()
        if at.is_reply:
            self._agent.update_state(unseen=self._agent.state.unseen or at.turn.acted)
            return self._handle_reply(read_reply(at.turn, self._open_request))
        events, answer = self._collect_events(at, at.turn), self._find_answer_beside_work(at.turn)
        if answer is not None:
            respawns = [
                decision for decision in self._agent.process_events(*events) if isinstance(decision, RespawnAgent)
            ]
            return self._agent.respawn(respawns[0]) if respawns else self._handle_reply(answer)
        decisions = self._agent.process_events(
            *events, TurnEnded(calls=len(at.turn.calls)), *self._take_restart_event()
        )
        message = self._ladder.apply_decisions(decisions, replied=False)
        if message is None and self._agent.state.asked is None:
            message = self._ladder.send_context_update()
        if message is None and at.output is not None:
            self._report_remaining_deviation()
            self._agent.process_events(AttemptEnded())
        return message

    def _report_remaining_deviation(self) -> None:
        """Report a significant deviation that the agent admitted and hands over nevertheless."""
        if remaining := self._ladder.find_remaining_deviation():
            finding = Finding(
                layer="scope",
                rule=DEVIATION_RULE,
                severity=Severity.MAJOR,
                detail=f"the agent admits that it deviates from its plan: {remaining}",
                fix="undo it, or let a person or a new plan decide about it",
            )
            self._agent.update_state(findings=(*self._agent.state.findings, finding))

    def _take_restart_event(self) -> Iterator[AgentEvent]:
        """Report the restart once, when the agent is back at its work. Before that, a reply may still answer an
        earlier question.
        """
        is_recalled, self._is_recalled = self._is_recalled, False
        if is_recalled and self._agent.subject.can_answer(RequestKind.PING):
            yield EngineRestarted()

    def _begin_task(self) -> AgentDirective:
        agent, subject = self._agent, self._agent.subject
        agent.process_events(
            TaskStarted(
                task=subject.name,
                number=subject.number,
                total=subject.total,
                files=subject.files if subject.tier is SupervisionTier.IMPLEMENTER else None,
                criteria=len(subject.verify),
            )
        )
        gate = enter_gate(subject.tier) if subject.can_answer(RequestKind.IMPACT) else None
        if not isinstance(gate, GateAttempts):
            return None
        agent.process_events(GateEntered())
        agent.update_state(gate=gate, reader=freeze_context(agent.state.reader))
        return self._entry.ask_impact()

    @property
    def _open_request(self) -> RequestKind:
        request = self._agent.state.asked
        if request is None:
            raise TypeError("nothing was asked")
        return request

    def _handle_reply(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        return self._reply_handlers[self._open_request](answer)

    def _find_answer_beside_work(self, turn: Turn) -> AnswerPart | None:
        """Return the answer in a turn that also calls tools.

        Only a bracketed answer counts there: other text may be about the work. An agent may report its position at any
        time, so a ping is not included.
        """
        request = self._agent.state.asked
        return find_bracketed_answer(turn, request) if turn.calls and request not in (None, RequestKind.PING) else None

    # Events since the last boundary.

    def _collect_events(self, at: TurnBoundary, turn: Turn) -> list[AgentEvent]:
        return [
            *self._read_self_reports(turn),
            *self._collect_tool_events(at, turn),
            *self._find_changed_files(turn),
            *self._read_claim(at),
            TokensUsed(
                tokens=turn.usage.tokens,
                # What a program used for several requests says nothing about how full a window is.
                window=find_context_window(turn.model) if turn.usage.requests == 1 else None,
            ),
        ]

    def _read_self_reports(self, turn: Turn) -> Iterator[AgentEvent]:
        """Yield the positions that the agent reported without being asked."""
        for message in read_messages(turn.text):
            if isinstance(message, SelfLocate):
                yield SelfLocated(located=message, anomalies=find_anomalies(self._agent.state.standing, message))

    def _collect_tool_events(self, at: TurnBoundary, turn: Turn) -> Iterator[AgentEvent]:
        agent = self._agent
        passing_commands = dict.fromkeys(agent.state.passing)
        for call, result in zip(turn.calls, at.results, strict=False):
            yield ToolUsed(name=call.name)
            command = str(call.arguments.get("command", "")).strip()
            if call.name == Tool.RUN and command in agent.subject.verify:
                passing_commands.pop(command, None)
                passing_commands.update({command: None} if result.ok else {})
        if tuple(passing_commands) != agent.state.passing:
            agent.update_state(passing=tuple(passing_commands))
            yield CriteriaChecked(met=len(passing_commands), total=len(agent.subject.verify))

    def _find_changed_files(self, turn: Turn) -> Iterator[AgentEvent]:
        """Yield newly changed files. Changes made at the understanding gate, or beside an answer, are examined once
        the agent is back at work.
        """
        agent = self._agent
        has_written = turn.acted or any(call.name in WRITING_TOOLS for call in turn.calls)
        is_unseen = agent.state.unseen or has_written
        if not is_unseen or agent.state.gate is not None:
            agent.update_state(unseen=is_unseen)
            return
        paths = agent.subject.change_view.observe_changes().paths
        new_paths = [path for path in paths if path not in agent.state.touched]
        agent.update_state(touched=(*agent.state.touched, *new_paths), unseen=False)
        undeclared_paths = set(find_undeclared(new_paths, agent.state.declared))
        reported_paths = sorted(new_paths, key=lambda path: path not in undeclared_paths)[
            :_MAX_FILES
        ]  # a sample is enough
        yield from (FileChanged(path=path) for path in reported_paths)
        yield from self._compare_with_plan(new_paths)

    def _compare_with_plan(self, paths: Sequence[str]) -> Iterator[AgentEvent]:
        """Report files of the task that the agent's approved plan does not name: its approach differs from the plan.
        After an analysis, the agent has explained itself.
        """
        state = self._agent.state
        if state.plan is None or state.monitor.analysed or state.monitor.is_analysing:
            return
        declared = set(paths) - set(find_undeclared(paths, state.declared))
        if unplanned := find_undeclared(sorted(declared), state.plan.files):
            named = ", ".join(unplanned[:_MAX_NAMED])
            yield ApproachDiffers(why=f"it changes {named}, which its approved plan does not name")

    def _read_claim(self, at: TurnBoundary) -> Iterator[AgentEvent]:
        if at.output is not None and not self._agent.subject.verify:
            # Nobody but the agent says how far its work is. With its answer, it says that all of it is done.
            yield CriteriaChecked(met=1, total=1)
        if isinstance(claim := at.output, ExecutorResult):
            yield ResultClaimed(status=claim.status.value, files=claim.files_modified or (), error=claim.error or "")
