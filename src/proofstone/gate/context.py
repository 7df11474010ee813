"""The journal of a run: every event of every task, in the ledger, in the order in which it was decided.

There is no other state. Whoever reads the events again, in this process or another, knows as much as the one that
wrote them; so a run that was killed goes on from its rows, and nothing that is recorded is done again.

Everything that a run of the gate touches and was told, chosen in `app.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from proofstone.agents.executors.context import Architect, Executor
from proofstone.agents.gate_agents import thinks
from proofstone.agents.roles.models.gate import FailureType
from proofstone.agents.spending import Meter
from proofstone.check.context import World
from proofstone.common.models import Budget, Finding
from proofstone.config.backends import works_alone
from proofstone.config.settings import GateSettings
from proofstone.errors import LedgerError
from proofstone.faults import fault_point
from proofstone.gate.models import (
    TASK_EVENTS,
    AttemptFailed,
    Executed,
    GateSetup,
    Override,
    Step,
    TaskEvent,
    TaskRecord,
)
from proofstone.gate.request import Watching, Word, WordKind
from proofstone.gate.rules.direction import directed
from proofstone.gate.rules.machine import GateError, apply
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, EventRow, OverrideRow
from proofstone.ledger.schema import Stored
from proofstone.plans.models import Plan
from proofstone.runtime.rules import worked_ms
from proofstone.supervision.rules.amendments import Amendment, amended

_TASK: Final = "task."
_RUN: Final = "run."
_HEARD: Final = "word.heard"
_AMENDED: Final = "plan.amended"
_GATE: Final = "task"


@dataclass
class Journal:
    ledger: Ledger
    run_id: str
    plan: Plan
    records: dict[str, TaskRecord] = field(default_factory=dict)
    steps: dict[str, list[Step]] = field(default_factory=dict)
    frozen: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    """What freezing a task's work tree has shown."""
    run_events: list[Stored[EventRow]] = field(default_factory=list)
    """What happened to the run as a whole."""
    amendments: tuple[Amendment, ...] = ()
    """What was added to the plan since the run began; `plan` has it."""
    _heard: set[int] = field(default_factory=set)
    """Words of people that have had their effect."""

    @classmethod
    def opened(cls, ledger: Ledger, run_id: str, plan: Plan) -> Journal:
        """The journal with everything that the ledger knows of the run."""
        journal = cls(ledger, run_id, plan)
        for task in plan.tasks:
            journal.records[task.id] = TaskRecord(id=task.id, checkpoint=task.type.is_checkpoint)
            journal.steps[task.id] = []
        for stored in ledger.read(EventRow, run_id=run_id):
            if stored.row.type == _HEARD:
                journal._heard.add(int(str(stored.row.payload["word"])))
            elif stored.row.type.startswith(_TASK):
                journal._take_in(stored)
            elif stored.row.type.startswith(_RUN):
                journal.run_events.append(stored)
            elif stored.row.type == _AMENDED:
                journal._amend(Amendment.model_validate(stored.row.payload))
        return journal

    def amend(self, more: Amendment) -> None:
        """The plan as it is from now on."""
        self.note(_AMENDED, **more.model_dump(mode="json"))
        self._amend(more)

    def _amend(self, more: Amendment) -> None:
        self.amendments = (*self.amendments, more)
        self.plan = amended(self.plan, (more,))

    def happened(self, task_id: str, event: TaskEvent, *, word: int | None = None) -> TaskRecord:
        """Record the event, if it may happen; what the task is then."""
        if isinstance(event, AttemptFailed):
            event = self._directed(self.records[task_id], event)
        after = apply(self.records[task_id], event)
        payload: dict[str, JsonValue] = {"event": event.model_dump(mode="json"), "state": after.state.value}
        if word is not None:
            payload["word"] = word
        fault_point("gate.before-event")
        row = EventRow(run_id=self.run_id, task_id=task_id, type=f"{_TASK}{event.kind}", payload=payload)
        (seq,) = self.ledger.append(row)
        fault_point("gate.after-event")
        for stored in self.ledger.read(EventRow, after=seq - 1, limit=1):
            self._add(stored, after, event)
        return after

    def note(self, type: str, **payload: JsonValue) -> None:
        """Something about the run as a whole."""
        (seq,) = self.ledger.append(EventRow(run_id=self.run_id, type=type, payload=payload))
        if type.startswith(_RUN):
            self.run_events += self.ledger.read(EventRow, after=seq - 1, limit=1)

    def say(self, task_id: str, word: Word) -> None:
        """A person's word, for whoever drives the run to hear."""
        if word.override is not None:
            self.ledger.append(
                OverrideRow(
                    run_id=self.run_id,
                    task_id=task_id,
                    action=word.kind.value,
                    category=word.override.category,
                    reason=word.override.reason,
                    decided_by=word.by,
                    payload={"override": word.override.model_dump(mode="json")},
                )
            )
            return
        self.ledger.append(
            ApprovalRow(
                run_id=self.run_id,
                task_id=task_id,
                gate=_GATE,
                option=word.kind.value,
                decided_by=word.by,
                reason=word.text,
            )
        )

    def unheard(self) -> Iterator[tuple[int, str, Word]]:
        """Words that have had no effect yet, with their numbers, oldest first."""
        found: list[tuple[int, str, Word]] = []
        for approval in self.ledger.read(ApprovalRow, run_id=self.run_id, gate=_GATE):
            row = approval.row
            if row.task_id in self.records:
                found.append((approval.seq, row.task_id, Word(WordKind(row.option), row.decided_by, row.reason)))
        for stored in self.ledger.read(OverrideRow, run_id=self.run_id):
            over = Override.model_validate(stored.row.payload["override"])
            word = Word(WordKind(stored.row.action), stored.row.decided_by, stored.row.reason, over)
            found.append((stored.seq, stored.row.task_id, word))
        return iter(sorted((item for item in found if item[0] not in self._heard), key=lambda one: one[0]))

    def heard(self, seq: int, why: str) -> None:
        """The word is used up without an event of its own."""
        self.note(_HEARD, word=seq, reason=why)
        self._heard.add(seq)

    def events(self, task_id: str) -> list[TaskEvent]:
        """Everything that happened to a task, in order."""
        rows = self.ledger.read(EventRow, run_id=self.run_id, task_id=task_id)
        return [TASK_EVENTS.validate_python(row.row.payload["event"]) for row in rows if row.row.type.startswith(_TASK)]

    @property
    def recent(self) -> frozenset[str]:
        """Tasks that were judged since a person last resumed the run."""
        resumed = max((event.seq for event in self.run_events if event.row.type == "run.resumed"), default=0)
        return frozenset(
            id
            for id, steps in self.steps.items()
            if any(step.seq > resumed and step.kind in ("failed", "checked") for step in steps)
        )

    def has_word(self, task_id: str) -> bool:
        """Whether a person has said something about the task that had no effect yet."""
        return any(task == task_id for _, task, _ in self.unheard())

    def is_set_aside(self, task_id: str) -> bool:
        """Whether a person has said so, and it could not have its effect yet."""
        return any(task == task_id and word.override is not None for _, task, word in self.unheard())

    def is_done(self, task_id: str) -> int | None:
        """Number of the word by which a person says that their work on the task is finished."""
        last = max((step.seq for step in self.steps[task_id] if step.kind == "started"), default=0)
        for seq, task, word in self.unheard():
            if task == task_id and word.kind is WordKind.DONE and seq > last:
                return seq
        return None

    def _directed(self, record: TaskRecord, event: AttemptFailed) -> AttemptFailed:
        """A failure is recorded with what the controller says to it: whoever goes on goes the same way."""
        minutes = GateSetup.model_validate(self.run_events[0].row.payload).minutes
        failure = directed(event.failure, record, elapsed_ms=self._worked_ms(), minutes=minutes)
        return event.model_copy(update={"failure": failure})

    def _worked_ms(self) -> int:
        marks = [(event.seq, event.ts, event.row.type) for event in self.run_events]
        marks += [(step.seq, step.at, step.kind) for steps in self.steps.values() for step in steps]
        return worked_ms(((at, type) for _, at, type in sorted(marks)), datetime.now(UTC))

    def _take_in(self, stored: Stored[EventRow]) -> None:
        row = stored.row
        event = TASK_EVENTS.validate_python(row.payload["event"])
        if row.task_id is not None:
            try:
                after = apply(self.records[row.task_id], event)
            except GateError as error:
                raise LedgerError(f"run {self.run_id}: row {stored.seq} of the ledger cannot be: {error}") from error
            self._add(stored, after, event)

    def _add(self, stored: Stored[EventRow], after: TaskRecord, event: TaskEvent) -> None:
        self.records[after.id] = after
        self.steps[after.id].append(
            Step(seq=stored.seq, at=stored.ts, attempt=after.attempt, kind=event.kind, state=after.state)
        )
        if isinstance(event, Executed):
            self.frozen[after.id] = event.findings
        if isinstance(seq := stored.row.payload.get("word"), int):
            self._heard.add(seq)


@dataclass(frozen=True)
class GateWorld:
    world: World
    """Of the run's base, whose settings decide to the end: no task can loosen the checks of another. Each check gets a
    world of its own, see `at`."""
    setup: GateSetup
    plan_file: Path
    journal: Journal
    executor: Executor
    architect: Architect | None
    """Beside the rules, which always speak."""
    watching: Watching
    wait: bool
    """Wait for a person who executes a task."""
    minutes: float
    meter: Meter = field(default_factory=lambda: Meter(Budget()))
    """What agents have spent."""
    terminal: threading.Lock | None = None
    """Held by whoever speaks with the person at the terminal; None if there is none."""
    started: float = field(default_factory=time.monotonic)

    @property
    def plan(self) -> Plan:
        """As it is now: a task may have been given more since the run began."""
        return self.journal.plan

    @property
    def gate(self) -> GateSettings:
        return self.world.settings.gate

    def at(self, commit: str, task_id: str, attempt: int, scratch: Path) -> World:
        """The world for checks of one attempt of a task, onto that commit."""
        scratch.mkdir(mode=0o700, parents=True)
        world = self.world
        return replace(
            world,
            task_id=task_id,
            attempt=attempt,
            base_commit=commit,
            base_tree=world.store.git().tree_of(commit),
            notes=(),
            scratch=scratch,
            progress=self.watching.checks(task_id),
        )

    def executor_seconds(self, record: TaskRecord) -> float:
        usual = self.gate.agent_seconds if thinks(self.executor.spec) else self.gate.executor_seconds
        return max(usual, self.gate.executor_seconds_max) if _was_late(record) else usual

    def verify_seconds(self, record: TaskRecord) -> float:
        longest = max(self.gate.verify_seconds, self.gate.verify_seconds_max)
        return longest if _was_late(record) else self.gate.verify_seconds

    def architect_seconds(self, record: TaskRecord) -> float:
        alone = self.architect is not None and works_alone(self.architect.spec)
        usual = self.gate.agent_seconds if alone else self.gate.architect_seconds
        return max(usual, self.gate.architect_seconds_max) if _was_late(record) else usual

    def at_the_terminal(self, wanted: bool) -> AbstractContextManager[object]:
        """One question at a time: an answer must belong to the question above it."""
        return self.terminal if wanted and self.terminal is not None else nullcontext()

    @property
    def budget(self) -> str:
        """Why the budget is spent, if it is."""
        spent = (time.monotonic() - self.started) / 60
        return self.meter.stopped or (f"the run's {self.minutes:g} minutes are spent" if spent >= self.minutes else "")


def _was_late(record: TaskRecord) -> bool:
    """After a time-out the next attempt gets the longest deadline there is."""
    return bool(record.failures) and record.failures[-1].type is FailureType.TIMEOUT
