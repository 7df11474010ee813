"""One agent that is attended to: what is remembered of it, and the one way in which that changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from proofstone.contracts.agent import Fault, FaultKind, Told
from proofstone.contracts.reverify.context import Reader
from proofstone.contracts.reverify.decisions import Decision, Respawn
from proofstone.contracts.reverify.events import Event, Observed
from proofstone.contracts.reverify.judging import Judged, ToJudge
from proofstone.core.agent.loop import Aside
from proofstone.core.reverify.attendance import CONTRACTS, Attendance, Wanted
from proofstone.core.reverify.limits import Limits
from proofstone.core.reverify.monitor import step, watch
from proofstone.core.reverify.position import seen, stands
from proofstone.core.reverify.questions import Subject as About
from proofstone.core.scope import undeclared
from proofstone.engine.continuity.subject import Subject

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

    def ask(self, wanted: Wanted, text: str) -> Aside:
        self.set(asked=wanted)
        return self.aside(Told(text=text, asked=wanted))

    def resume(self, text: str) -> Aside:
        self.set(asked=None)
        return self.aside(Told(text=text, resumes=True))

    def aside(self, told: Told) -> Aside:
        """With what is to be answered, and with what it may change from now on: before it has shown that it
        understands, nothing."""
        state = self.state
        schema = CONTRACTS[Wanted(told.asked)].model_json_schema() if told.asked else None
        return Aside(told, schema, () if state.gate is not None else state.declared)

    def judged(self, said: str, *to_judge: ToJudge) -> Sequence[Judged]:
        """What the judge says to each, in order."""
        number = self.state.judged + 1
        self.set(judged=number)
        found = self.subject.judge.say(said, to_judge, number)
        return [found[one.item] for one in to_judge]

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
        interfaces=tuple(one.symbol for one in analysis.interfaces) if analysis else (),
        delta=state.delta,
        affected=tuple(path for path in state.affected if not undeclared((path,), state.declared)),
        later=subject.later,
    )
