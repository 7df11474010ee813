"""What code cannot judge goes to the architect's model. Where there is none, nobody can say, and that is said.

What a person adds to a run while it is under way, and what all agents of the run are told, in numbered versions.

A word is an event of the whole run, in the order in which it was said; whoever is at work in a part of the run hears it
there.

An agent's task, as far as it can be asked about, and whoever answers for the engine.

One agent that is attended to: what is remembered of it, and the one way in which that changes.
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
"""Asks the architect."""
_STOPS = (FaultKind.CANCELLED, FaultKind.BUDGET)
"""Of the whole run, and not of the judge."""


class StoppedError(Exception):
    """The run is being stopped: nothing was judged."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.why)
        self.fault = fault


@dataclass(frozen=True)
class Judge:
    """Of one agent's understanding."""

    occasion: Occasion
    """The agent's own."""
    task: str
    base_commit: str
    ask: Dispatch | None
    """None: there is nobody to ask."""
    why_not: str = "no model is there to judge it"

    def say(self, said: str, to_judge: Sequence[ToJudge], number: int) -> Mapping[str, Judged]:
        """For each item what the judge says. `number`: of the question, the same after a crash. An agent that had to
        begin anew may say something else: what was judged before is no judgement of that."""
        if not to_judge:
            return {}
        if self.ask is None:
            return {item.item: _unknown(item.item, self.why_not) for item in to_judge}
        mine = self.occasion
        request = JudgeRequest(
            run_id=mine.run_id,
            agent=mine.agent,
            task=self.task,
            said=said,
            to_judge=tuple(to_judge),
            base_commit=self.base_commit,
        )
        occasion = Occasion(
            run_id=mine.run_id,
            role="architect",
            step=f"{mine.id}/understanding-{number}-{_digest(request)}",
            task=mine.task,
            task_name=mine.task_name,
            attempt=mine.attempt,
            focus="understanding",
        )
        return _judged(self.ask(request, occasion), to_judge)


def _digest(request: JudgeRequest) -> str:
    asked = "\0".join((request.said, *(item.item for item in request.to_judge)))
    return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _unknown(item: str, why: str) -> Judged:
    return Judged(item=item, verdict=Verdict.UNVERIFIABLE, detail=why)


def _judged(dispatched: Dispatched, to_judge: Sequence[ToJudge]) -> Mapping[str, Judged]:
    if dispatched.fault is not None and dispatched.fault.kind in _STOPS:
        raise StoppedError(dispatched.fault)
    said = dispatched.output.items if isinstance(dispatched.output, Judgement) else ()
    why = dispatched.fault.why if dispatched.fault else "the judge said nothing about it"
    missing = {entry.item: _unknown(entry.item, why) for entry in to_judge}
    worst: dict[str, Judged] = {}
    for item in said:
        if item.item in missing and (item.item not in worst or item.verdict is Verdict.FAIL):
            worst[item.item] = item
    return {**missing, **worst}


ADDED: Final = "context.added"
_SCOPE: Final = "Scope"


class Added(Contract):
    """A requirement that was added."""

    number: int
    """In the run, from 1."""
    text: str
    files: tuple[str, ...] = ()
    """Whom it concerns: whoever may change one of these; none: everybody."""
    by: str = "person"

    @property
    def key(self) -> str:
        return f"requirement-{self.number}"


def say(ledger: Ledger, run_id: str, text: str, files: Sequence[str], by: str) -> Added:
    """On record, for whoever drives the run to hear."""
    ledger.append(
        EventRow(run_id=run_id, type=ADDED, payload={"text": text, "files": list(files), "by": by}),
    )
    return added_to(ledger, run_id)[-1]


def added_to(ledger: Ledger, run_id: str) -> tuple[Added, ...]:
    """What was added to the run so far."""
    rows = ledger.read(EventRow, run_id=run_id, type=ADDED)
    return tuple(
        Added.model_validate({"number": number, **stored.row.payload}) for number, stored in enumerate(rows, 1)
    )


@dataclass(frozen=True)
class Board:
    """What the agents of a run are told; version 1 is what the run began with."""

    ledger: Ledger
    run_id: str
    """Of the whole run: a part has no board of its own."""
    wanted: str
    """What the run is for, in a sentence."""

    def added(self) -> tuple[Added, ...]:
        return added_to(self.ledger, self.run_id)

    def versions(self) -> tuple[ContextVersion, ...]:
        request = ContextItem(key="request", text=brief(self.wanted))
        found = [ContextVersion(number=1, sections=(ContextSection(name=_SCOPE, items=(request,)),))]
        for item in self.added():
            found.append(amended(found[-1], _SCOPE, ContextItem(key=item.key, text=item.text, files=item.files)))
        return tuple(found)


_SECONDS = 20.0
"""That looking up one analysis may take."""


def why_not_asked(role: str, backend: Backend) -> str:
    """Why an agent is not attended to; empty if it is. A program is started anew for each turn, with all that was said
    before: it can always be told something further. A script is asked what it has an answer to."""
    spec = backend.identity.spec
    kind = spec.partition(":")[0]
    if why := why_exempt(role, kind, takes_prompts=works_alone(spec)):
        return why
    if not any(backend.identity.answers(role, item) for item in Asked):
        return f"not applicable: {kind} has no answer to it"
    return ""


@dataclass(frozen=True)
class Subject:
    watched: Watched
    tier: Tier
    ground: Ground
    """Where what it says is looked up."""
    board: Board
    knows: int
    """The version of the context that its task holds already."""
    judge: Judge
    answers: Callable[[str], bool]
    """Whether it has an answer to what it may be asked."""
    id: str = ""
    """Of its task."""
    name: str = ""
    number: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    """What its task rests on."""
    later: tuple[LaterTask, ...] = ()
    """Tasks that rest on this one."""
    sight: Sight = field(default_factory=Unchanged)
    amend: Callable[[Amendment], str] = lambda _: "its task cannot be changed"
    """Adds to the task; why that cannot be, if it cannot."""

    def facts(self, wanted: Wanted) -> Facts:
        return look_up(Tree(self.ground), wanted, Deadline(_SECONDS, self.ground.cancel))

    def is_there(self, path: str) -> bool:
        """Also where it cannot be told: what is there is of the higher risk."""
        return self.facts(Wanted((path,), ())).paths.get(path) is not False


Word = Aside | Fault | None


class Attended:
    """Used from several threads: whoever listens to a turn is not whoever speaks at its end."""

    def __init__(self, subject: Subject, limits: Limits, clock: Callable[[], float] = time.time) -> None:
        """`clock` outlives the process: what is limited by it is limited across a crash."""
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
        """What follows from them, in order."""
        found: list[Decision] = []
        with self.lock:
            for event in events:
                now = self._clock()
                monitor, decisions = step(self.state.monitor, event, now)
                observed = Observed(agent=self.subject.watched.agent, at=now, event=event)
                self.set(monitor=monitor, standing=seen(self.state.standing, observed))
                found += decisions
        return tuple(found)

    def own(self, files: tuple[str, ...]) -> None:
        """It may change these as well: nothing that watches it takes them for a deviation any more."""
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
        """With what is to be answered, and with what it may change from now on: before it has shown that it
        understands, nothing."""
        state = self.state
        schema = CONTRACTS[AttendanceWanted(told.asked)].model_json_schema() if told.asked else None
        return Aside(told, schema, () if state.gate is not None else state.declared)

    def judged(self, said: str, *to_judge: ToJudge) -> Sequence[Judged]:
        """What the judge says to each, in order."""
        number = self.state.judged + 1
        self.set(judged=number)
        found = self.subject.judge.say(said, to_judge, number)
        return [found[item.item] for item in to_judge]

    def caps(self, *reasons: str) -> None:
        """Why the confidence is at most Medium."""
        self.set(caps=tuple(dict.fromkeys((*self.state.caps, *reasons))))

    def respawn(self, why: Respawn) -> Fault:
        if why.finding is not None:
            self.set(findings=(*self.state.findings, why.finding))
        return Fault(kind=FaultKind.DRIFTED, why=why.why)


def asked_about(agent: Attended) -> About:
    """Its work, as far as questions are made from it."""
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
