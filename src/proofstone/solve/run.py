"""One run of the control loop: the shell that drives `solve.rules.loop`.

Each answer, each look and each time that was taken is on record before the loop hears of it; so a run that was killed,
or waits for a person, goes through the loop again and asks only for what is missing. What one role hands to another is
said over the bus, once, along its routes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue, TypeAdapter

from proofstone.agents.bus import Bus
from proofstone.agents.memory.models import Memory
from proofstone.agents.memory.rules.calibration import Calibration, calibrate
from proofstone.agents.models import Fault
from proofstone.agents.roles.models.solve_messages import FinalStatus, TaskSpec
from proofstone.runtime.parallel import side_by_side
from proofstone.runtime.run_index import end_on_record
from proofstone.solve.agents import TOOLS, Asked, Beginning, SolveAgents, Watching
from proofstone.solve.journal import SolveJournal, keep_patch, remember
from proofstone.solve.models import SolveReport, SolveRound, SolveSetup
from proofstone.solve.requests import asking
from proofstone.solve.rules.effects import (
    Answered,
    AskPerson,
    AskTime,
    Elapsed,
    Failed,
    Heard,
    Look,
    Need,
    Noted,
    NotTaken,
    Planned,
    Pursue,
    Pursued,
    Recall,
    Round,
    Say,
    Sent,
    Solved,
)
from proofstone.solve.rules.gradient import POLICIES, Weights
from proofstone.solve.rules.loop import Goal, solve
from proofstone.solve.subtasks import Subtasks

SLOTS: Final = 4
"""Agents at once."""
OUTCOME: Final = {FinalStatus.ACCEPTED: "passed", FinalStatus.PARTIAL: "failed", FinalStatus.ABANDONED: "failed"}
_CALIBRATION: Final = TypeAdapter(Calibration)

Ask = Callable[[str], str]
"""The person, where one can be asked here and now; nothing: they have not answered."""


class _WaitingError(Exception):
    """A question that nobody here answers."""


@dataclass
class SolveRun:
    run_id: str
    setup: SolveSetup
    journal: SolveJournal
    agents: SolveAgents
    bus: Bus
    watching: Watching
    ask: Ask
    memory: Memory | None
    began_at: str
    """When the run was begun, by the first process of it."""
    answer: str = ""
    """To the perceiver's question, given beforehand."""
    by: str = "person"
    """Whoever answers."""
    at_once: int = SLOTS
    resumed: bool = False
    _rounds: list[SolveRound] = field(default_factory=list)
    _rejected: list[str] = field(default_factory=list)
    _spec: TaskSpec | None = None
    _said: int = 0
    _recalls: int = 0
    _has_asked: bool = False
    _since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._asked = Asked(self.run_id, self.journal.steps, self.agents, self.watching)
        self._subtasks = Subtasks(self.agents, self._asked, self._say, self.watching.pursued, self.at_once)
        self._before = self.journal.milliseconds()
        """Milliseconds that earlier processes have taken."""

    def run(self) -> SolveReport:
        """To the result, to a question that nobody here answers, or to the end of the budget (OutOfBudgetError)."""
        self.watching.began(self._beginning())
        with end_on_record(self.journal.ledger, self.run_id, self._cancel):
            report = self._through()
        self.journal.reported(report, OUTCOME[report.result.status] if report.result else "needs_human")
        if report.result is not None:
            self.agents.workspace.let_go()
        return report

    def _through(self) -> SolveReport:
        loop = solve(self._goal)
        need = next(loop)
        while True:
            try:
                sent = self._met(need)
            except _WaitingError as waiting:
                return self._report(question=str(waiting))
            try:
                need = loop.send(sent)
            except StopIteration as stop:
                solved: Solved = stop.value
                return self._ended(solved)

    @property
    def _goal(self) -> Goal:
        setup = self.setup
        weights = Weights(max_replans=setup.max_replans, time_budget_ms=setup.time_budget_ms)
        return Goal(self.run_id, setup.goal, TOOLS, self.began_at, weights, POLICIES[setup.policy])

    def _met(self, need: Need) -> Sent:
        match need:
            case Say():
                self._said += 1
                self._say(f"{self.run_id}/{self._said}", need)
                return Noted()
            case AskPerson():
                return Answered(self._answered(need.question))
            case Recall():
                return self._recalled(need.spec)
            case Pursue():
                return Pursued(self._subtasks.pursue(need))
            case Look():
                (looked,) = side_by_side([lambda: self._subtasks.looked(need)], 1, self._cancel)
                return looked
            case AskTime():
                return Elapsed(self._elapsed(need.round))
            case Planned():
                self.watching.planned(need.round, need.subtasks)
                return Noted()
            case NotTaken():
                self._rejected.append(f"round {need.round}: {need.why}")
                self.watching.rejected(need.round, need.why)
                return Noted()
            case Round():
                return self._round_ended(need)
        one = asking(need, self.run_id, TOOLS)
        (came,) = side_by_side([lambda: self._asked.once(one)], 1, self._cancel)
        return Failed(came.why) if isinstance(came, Fault) else Heard(came)

    # What it needs.

    def _say(self, name: str, need: Say) -> None:
        message = need.message
        if isinstance(message, TaskSpec):
            self._spec = message
        payload = message.model_dump(mode="json")
        self.bus.publish(need.sender, need.recipient, type(message).__name__, payload, message_id=f"solve/{name}")

    def _answered(self, question: str) -> str:
        known = self.journal.steps.recall("person", question)
        if known is not None:
            return str(known["text"])
        self._has_asked = True
        asked = time.monotonic()
        text = self.answer or self.ask(question)
        self._since += time.monotonic() - asked  # how long the person thinks is not the task's
        if not text.strip():
            raise _WaitingError(question)
        self.journal.steps.keep("person", question, {"text": text, "by": self.by})
        return text

    def _recalled(self, spec: TaskSpec) -> Calibration:
        """What the memory says about it. It may say something else when the run goes on, so that is on record too."""
        self._recalls += 1
        step, words = f"recall/{self._recalls}", (spec.intent, spec.raw_input)
        known = self.journal.steps.recall(step, "\n".join(words))
        if known is not None:
            return _CALIBRATION.validate_python(known["came"])
        if self.memory is None:
            return Calibration()
        name = f"solve/{self.run_id}/{step}"
        self.bus.publish("planner", "memory", "MemoryQuery", {"words": list(words)}, message_id=f"{name}/query")
        calibration = calibrate(self.memory.entries(), words)
        found: dict[str, JsonValue] = {"entries": [*calibration.used]}
        self.bus.publish("memory", "planner", "MemoryEntries", found, message_id=f"{name}/entries")
        self.journal.steps.keep(step, "\n".join(words), {"came": _CALIBRATION.dump_python(calibration, mode="json")})
        return calibration

    def _elapsed(self, round: int) -> int:
        step = f"time/{round}"
        known = self.journal.steps.recall(step, "")
        if known is not None:
            return int(str(known["ms"]))
        ms = self._milliseconds
        self.journal.steps.keep(step, "", {"ms": ms})
        return ms

    @property
    def _milliseconds(self) -> int:
        return self._before + round(1000 * (time.monotonic() - self._since))

    def _round_ended(self, it: Round) -> Noted:
        ended = SolveRound(
            number=it.number,
            directive=it.directive,
            nabla=it.reading.nabla,
            elapsed_ms=it.elapsed_ms,
            subtasks=it.subtasks,
            outcomes=it.outcomes,
            merged=it.merged,
        )
        self._rounds.append(ended)
        self.journal.ended(ended)
        self.watching.decided(ended)
        return Noted()

    # The end.

    def _ended(self, solved: Solved) -> SolveReport:
        path = keep_patch(self.agents.workspace, self.run_id)
        remembered = 0
        if self.memory is not None:
            remembered = remember(solved, self.memory, self.bus, self.run_id, self.agents.spent().usd)
        return self._report(solved, patch=path, remembered=remembered)

    def _report(
        self, solved: Solved | None = None, *, question: str = "", patch: str = "", remembered: int = 0
    ) -> SolveReport:
        setup, words = self.setup, TaskSpec(task_id=self.run_id, intent=self.setup.goal, raw_input=self.setup.goal)
        return SolveReport(
            run_id=self.run_id,
            repository=setup.repository,
            task=solved.spec if solved else self._spec or words,
            result=solved.result if solved else None,
            question=question,
            rounds=tuple(self._rounds),
            rejected=tuple(self._rejected),
            changed=self.agents.workspace.changed(),
            patch=patch,
            remembered=remembered,
            agents=_named(setup),
            policy=setup.policy,
            elapsed_ms=self._milliseconds,
            dispatches=self.agents.dispatches(),
            spent=self.agents.spent(),
            notes=setup.notes,
            unused_answer=bool(self.answer) and not self._has_asked,
            next_step=f'proofstone solve --resume {self.run_id} --answer "…"' if question else "",
        )

    @property
    def _cancel(self) -> threading.Event:
        return self.agents.workspace.world.cancel

    def _beginning(self) -> Beginning:
        setup = self.setup
        return Beginning(
            run_id=self.run_id,
            goal=setup.goal,
            agents=_named(setup),
            policy=setup.policy,
            max_replans=setup.max_replans,
            time_budget_ms=setup.time_budget_ms,
            notes=setup.notes,
            resumed=self.resumed,
        )


def _named(setup: SolveSetup) -> dict[str, str]:
    return {role: " or ".join(specs) for role, specs in setup.agents.items()}
