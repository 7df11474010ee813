"""One supervised agent: its task, its state, the judge of its understanding, and the context of its run.

Questions that code cannot judge go to the architect's model. Without such a model they stay unverifiable, and the
report says so. Requirements that a person adds are events of the whole run, in order; every part of the run reads them.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.backends import Backend
from proofstone.agents.executors.context import Sight, Unchanged
from proofstone.agents.models import Dispatched, Fault, FaultKind, Occasion, Told
from proofstone.agents.roles.models.gate import Judged, Judgement, JudgeRequest, ToJudge
from proofstone.agents.rules.conversation import Aside
from proofstone.agents.tools.tool_context import Deadline, Ground
from proofstone.agents.tools.tree import Tree
from proofstone.common.globs import undeclared
from proofstone.common.models import Contract, Verdict
from proofstone.config.backends import works_alone
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow
from proofstone.supervision.interfaces import look_up
from proofstone.supervision.models.context import ContextItem, ContextSection, ContextVersion, Reader, brief
from proofstone.supervision.models.events import Decision, Event, Observed, Respawn
from proofstone.supervision.models.ladder import LaterTask
from proofstone.supervision.models.understanding import Tier
from proofstone.supervision.rules.amendments import Amendment
from proofstone.supervision.rules.attendance import CONTRACTS, Attendance
from proofstone.supervision.rules.attendance import Wanted as Asked
from proofstone.supervision.rules.attendance import Wanted as AttendanceWanted
from proofstone.supervision.rules.context import amended
from proofstone.supervision.rules.evidence import Facts, Wanted
from proofstone.supervision.rules.monitor import step, watch
from proofstone.supervision.rules.monitor_state import Limits, Watched, why_exempt
from proofstone.supervision.rules.position import seen, stands
from proofstone.supervision.rules.questions import Subject as About

Dispatch = Callable[[JudgeRequest, Occasion], Dispatched]
"""Ask the architect."""
_RUN_FAULTS = (FaultKind.CANCELLED, FaultKind.BUDGET)
"""Faults of the whole run rather than of the judge."""


class StoppedError(Exception):
    """The run is being stopped: no judgement was made."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.why)
        self.fault = fault


@dataclass(frozen=True)
class Judge:
    """Judges the understanding of one agent."""

    occasion: Occasion
    """The dispatch key of the agent that is judged."""
    task: str
    base_commit: str
    ask: Dispatch | None
    """None if no architect is configured."""
    why_not: str = "no model is configured to judge it"

    def say(self, said: str, to_judge: Sequence[ToJudge], number: int) -> Mapping[str, Judged]:
        """Return the judgement of each item.

        `number` is the number of the question and stays the same after a crash. The digest in the step keeps an agent
        that started over, and may say something else, from receiving an earlier judgement.
        """
        if not to_judge:
            return {}
        if self.ask is None:
            return {question.item: _unverifiable(question.item, self.why_not) for question in to_judge}
        agent_key = self.occasion
        request = JudgeRequest(
            run_id=agent_key.run_id,
            agent=agent_key.agent,
            task=self.task,
            said=said,
            to_judge=tuple(to_judge),
            base_commit=self.base_commit,
        )
        occasion = Occasion(
            run_id=agent_key.run_id,
            role="architect",
            step=f"{agent_key.id}/understanding-{number}-{_digest(request)}",
            task=agent_key.task,
            task_name=agent_key.task_name,
            attempt=agent_key.attempt,
            focus="understanding",
        )
        return _read_judgements(self.ask(request, occasion), to_judge)


def _digest(request: JudgeRequest) -> str:
    text = "\0".join((request.said, *(question.item for question in request.to_judge)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _unverifiable(item: str, why: str) -> Judged:
    return Judged(item=item, verdict=Verdict.UNVERIFIABLE, detail=why)


def _read_judgements(dispatched: Dispatched, to_judge: Sequence[ToJudge]) -> Mapping[str, Judged]:
    if dispatched.fault is not None and dispatched.fault.kind in _RUN_FAULTS:
        raise StoppedError(dispatched.fault)
    judgements = dispatched.output.items if isinstance(dispatched.output, Judgement) else ()
    why = dispatched.fault.why if dispatched.fault else "the judge said nothing about it"
    unjudged = {question.item: _unverifiable(question.item, why) for question in to_judge}
    worst_by_item: dict[str, Judged] = {}
    for judgement in judgements:
        if judgement.item in unjudged and (judgement.item not in worst_by_item or judgement.verdict is Verdict.FAIL):
            worst_by_item[judgement.item] = judgement
    return {**unjudged, **worst_by_item}


ADDED: Final = "context.added"
_SCOPE: Final = "Scope"


class Added(Contract):
    """A requirement that was added to a run."""

    number: int
    """Its number in the run, from 1."""
    text: str
    files: tuple[str, ...] = ()
    """It concerns agents that may change one of these files. If empty, it concerns every agent."""
    by: str = "person"

    @property
    def key(self) -> str:
        return f"requirement-{self.number}"


def say(ledger: Ledger, run_id: str, text: str, files: Sequence[str], by: str) -> Added:
    """Record a requirement so that the driver of the run picks it up."""
    ledger.append(
        EventRow(run_id=run_id, type=ADDED, payload={"text": text, "files": list(files), "by": by}),
    )
    return added_to(ledger, run_id)[-1]


def added_to(ledger: Ledger, run_id: str) -> tuple[Added, ...]:
    """Return the requirements that were added to the run so far."""
    rows = ledger.read(EventRow, run_id=run_id, type=ADDED)
    return tuple(
        Added.model_validate({"number": number, **stored.row.payload}) for number, stored in enumerate(rows, 1)
    )


@dataclass(frozen=True)
class Board:
    """The context of a run. Version 1 is what the run started with."""

    ledger: Ledger
    run_id: str
    """The id of the whole run: parts share its board."""
    wanted: str
    """The goal of the run in one sentence."""

    def added(self) -> tuple[Added, ...]:
        return added_to(self.ledger, self.run_id)

    def versions(self) -> tuple[ContextVersion, ...]:
        request = ContextItem(key="request", text=brief(self.wanted))
        versions = [ContextVersion(number=1, sections=(ContextSection(name=_SCOPE, items=(request,)),))]
        for requirement in self.added():
            versions.append(
                amended(
                    versions[-1],
                    _SCOPE,
                    ContextItem(key=requirement.key, text=requirement.text, files=requirement.files),
                )
            )
        return tuple(versions)


_LOOKUP_SECONDS = 20.0
"""Time limit for looking up one analysis."""


def why_not_asked(role: str, backend: Backend) -> str:
    """Return why an agent is not supervised, or an empty string if it is.

    A program is started anew for each turn with the whole conversation, so it can always receive a message. A script is
    asked only what it has an answer to.
    """
    spec = backend.identity.spec
    kind = spec.partition(":")[0]
    if reason := why_exempt(role, kind, takes_prompts=works_alone(spec)):
        return reason
    if not any(backend.identity.answers(role, request) for request in Asked):
        return f"not applicable: {kind} has no answer to it"
    return ""


@dataclass(frozen=True)
class Subject:
    watched: Watched
    tier: Tier
    ground: Ground
    """Where the agent's claims are looked up."""
    board: Board
    knows: int
    """The version of the context that its task already includes."""
    judge: Judge
    answers: Callable[[str], bool]
    """Whether the agent can answer this kind of request."""
    id: str = ""
    """The id of its task."""
    name: str = ""
    number: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    """What its task depends on."""
    later: tuple[LaterTask, ...] = ()
    """Tasks that depend on this one."""
    sight: Sight = field(default_factory=Unchanged)
    amend: Callable[[Amendment], str] = lambda _: "its task cannot be changed"
    """Extend the task. Returns why that is refused, or an empty string."""

    def facts(self, wanted: Wanted) -> Facts:
        return look_up(Tree(self.ground), wanted, Deadline(_LOOKUP_SECONDS, self.ground.cancel))

    def is_there(self, path: str) -> bool:
        """Return whether the path exists. True if that is unknown, because an existing file has the higher risk."""
        return self.facts(Wanted((path,), ())).paths.get(path) is not False


Word = Aside | Fault | None


class Attended:
    """The state of one supervised agent. Thread-safe: one thread watches a turn, another responds at its end."""

    def __init__(self, subject: Subject, limits: Limits, clock: Callable[[], float] = time.time) -> None:
        """`clock` must outlive the process, so that limits hold across a crash."""
        self.subject, self.limits = subject, limits
        self._clock = clock
        self.lock = threading.RLock()
        now, watched = clock(), subject.watched
        self.state = Attendance(
            monitor=watch(watched, now, limits),
            standing=stands(watched, now),
            reader=Reader(agent=watched.agent, files=subject.files, criteria=subject.criteria, knows=subject.knows),
            declared=subject.files,
        )

    @property
    def phase(self) -> int:
        return self.subject.watched.phase

    def set(self, **changes: object) -> None:
        with self.lock:
            self.state = self.state.model_copy(update=changes)

    def feed(self, *events: Event) -> tuple[Decision, ...]:
        """Process the events in order and return the decisions that follow."""
        all_decisions: list[Decision] = []
        with self.lock:
            for event in events:
                now = self._clock()
                monitor, decisions = step(self.state.monitor, event, now)
                observed = Observed(agent=self.subject.watched.agent, at=now, event=event)
                self.set(monitor=monitor, standing=seen(self.state.standing, observed))
                all_decisions += decisions
        return tuple(all_decisions)

    def own(self, files: tuple[str, ...]) -> None:
        """Add files to what the agent may change, so that they no longer count as a deviation."""
        with self.lock:
            state = self.state
            declared = tuple(dict.fromkeys((*state.declared, *files)))
            self.set(
                declared=declared,
                amended=tuple(dict.fromkeys((*state.amended, *files))),
                monitor=state.monitor.model_copy(update={"declared": declared}),
                standing=state.standing.model_copy(update={"declared": declared}),
            )

    def ask(self, wanted: AttendanceWanted, text: str) -> Aside:
        self.set(asked=wanted)
        return self.aside(Told(text=text, asked=wanted))

    def resume(self, text: str) -> Aside:
        self.set(asked=None)
        return self.aside(Told(text=text, resumes=True))

    def aside(self, told: Told) -> Aside:
        """Build a message with the schema of its answer and the files that the agent may change: none until it has
        passed the understanding gate.
        """
        state = self.state
        schema = CONTRACTS[AttendanceWanted(told.asked)].model_json_schema() if told.asked else None
        return Aside(told, schema, () if state.gate is not None else state.declared)

    def judged(self, said: str, *to_judge: ToJudge) -> Sequence[Judged]:
        """Return the judgement of each item, in order."""
        number = self.state.judged + 1
        self.set(judged=number)
        judgements = self.subject.judge.say(said, to_judge, number)
        return [judgements[question.item] for question in to_judge]

    def caps(self, *reasons: str) -> None:
        """Record why the confidence is at most Medium."""
        self.set(caps=tuple(dict.fromkeys((*self.state.caps, *reasons))))

    def respawn(self, why: Respawn) -> Fault:
        if why.finding is not None:
            self.set(findings=(*self.state.findings, why.finding))
        return Fault(kind=FaultKind.DRIFTED, why=why.why)


def asked_about(agent: Attended) -> About:
    """Describe the agent's work for the questions that are made from it."""
    state, subject = agent.state, agent.subject
    analysis = state.analysis
    return About(
        task=subject.name,
        declared=state.declared,
        changed=state.touched,
        interfaces=tuple(interface.symbol for interface in analysis.interfaces) if analysis else (),
        delta=state.delta,
        affected=tuple(path for path in state.affected if not undeclared((path,), state.declared)),
        later=subject.later,
    )
