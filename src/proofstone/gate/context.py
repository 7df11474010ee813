"""The journal of a run, and the context in which a run of the gate works.

The journal holds every event of every task, in the ledger, in the order of the decisions. There is no other state: any
process that reads the events knows as much as the one that wrote them. So a run that was killed continues from its
rows, and nothing that is recorded is done again.
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

from proofstone.agents.bus import MessageBus, OutgoingMessage
from proofstone.agents.executors.context import Architect, Executor
from proofstone.agents.gate_agents import uses_model
from proofstone.agents.spending import SpendingMeter
from proofstone.check.context import RunContext
from proofstone.common.models import AcceptanceMethod, Budget, Finding
from proofstone.config.backends import is_coding_agent
from proofstone.config.settings import GateSettings
from proofstone.errors import LedgerError
from proofstone.faults import fault_point
from proofstone.gate.models import (
    GATE_POLICY,
    TASK_EVENTS,
    AttemptExecuted,
    AttemptFailed,
    CriteriaJudgement,
    CriterionResult,
    GateSetup,
    Override,
    RequirementResult,
    TaskAccepted,
    TaskBlocked,
    TaskEvent,
    TaskRecord,
    TaskRetried,
    TaskStep,
)
from proofstone.gate.request import GateObserver, UserCommand, UserCommandKind
from proofstone.gate.rules.blocking import explain_block
from proofstone.gate.rules.deadlines import choose_deadline
from proofstone.gate.rules.direction import add_direction, build_plan_directive
from proofstone.gate.rules.judgements import (
    CRITERIA_GATE,
    find_unjudged,
    list_criterion_results,
    rate_requirements,
)
from proofstone.gate.rules.state_machine import GateError, apply_task_event
from proofstone.ledger import Ledger
from proofstone.ledger.models import ApprovalRow, EventRow, OverrideRow
from proofstone.ledger.schema import StoredRow
from proofstone.plans.models import Plan
from proofstone.runtime.rules import count_work_ms
from proofstone.supervision.agent_supervision import REQUIREMENT_ADDED, read_requirements
from proofstone.supervision.models.context import ContextRequirement
from proofstone.supervision.rules.amendments import Amendment, amend_plan

_TASK: Final = "task."
_RUN: Final = "run."
_COMMAND_APPLIED: Final = "word.heard"
_AMENDED: Final = "plan.amended"
_GATE: Final = "task"


@dataclass
class GateJournal:
    """The events of a run, and the state that follows from them."""

    ledger: Ledger
    run_id: str
    plan: Plan
    """The plan with its amendments."""
    original_plan: Plan
    """The plan as it was when the run began."""
    records: dict[str, TaskRecord] = field(default_factory=dict)
    steps: dict[str, list[TaskStep]] = field(default_factory=dict)
    freeze_findings: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    """Findings from freezing each task's work tree."""
    run_events: list[StoredRow[EventRow]] = field(default_factory=list)
    """Events of the run as a whole."""
    amendments: tuple[Amendment, ...] = ()
    """Amendments of the plan since the run began. `plan` includes them."""
    _amend_lock: threading.Lock = field(default_factory=threading.Lock)
    _applied_commands: set[int] = field(default_factory=set)
    """Row numbers of the user commands that were applied."""

    @classmethod
    def open(cls, ledger: Ledger, run_id: str, plan: Plan) -> GateJournal:
        """Open the journal with everything that the ledger has about the run."""
        journal = cls(ledger, run_id, plan, plan)
        for task in plan.tasks:
            journal.records[task.id] = TaskRecord(id=task.id, checkpoint=task.type.is_checkpoint)
            journal.steps[task.id] = []
        for stored in ledger.read(EventRow, run_id=run_id):
            if stored.row.type == _COMMAND_APPLIED:
                journal._applied_commands.add(int(str(stored.row.payload["word"])))
            elif stored.row.type.startswith(_TASK):
                journal._load_event(stored)
            elif stored.row.type.startswith(_RUN):
                journal.run_events.append(stored)
            elif stored.row.type == _AMENDED:
                journal._amend(Amendment.model_validate(stored.row.payload))
        return journal

    @property
    def setup(self) -> GateSetup:
        """What the run was started with."""
        return GateSetup.model_validate(self.run_events[0].row.payload)

    def amend(self, amendment: Amendment) -> None:
        """Record an amendment of the plan, which applies from now on. The threads of executors amend the plan too."""
        with self._amend_lock:
            known = {(known.task, known.number) for known in self.amendments if known.requirement}
            if not amendment.requirement or (amendment.task, amendment.number) not in known:
                self.note(_AMENDED, **amendment.model_dump(mode="json"))
                self._amend(amendment)

    def _amend(self, amendment: Amendment) -> None:
        self.amendments = (*self.amendments, amendment)
        self.plan = amend_plan(self.plan, (amendment,))

    def record_event(self, task_id: str, event: TaskEvent, *, word: int | None = None) -> TaskRecord:
        """Record the event, if it is allowed in the current state, and return the new record of the task."""
        if isinstance(event, AttemptFailed):
            event = self._add_direction(self.records[task_id], event)
        elif isinstance(event, TaskBlocked):
            event = explain_block(self.plan, self.records, task_id, event)
        after = apply_task_event(self.records[task_id], event)
        payload: dict[str, JsonValue] = {"event": event.model_dump(mode="json"), "state": after.state.value}
        if word is not None:
            payload["word"] = word
        fault_point("gate.before-event")
        row = EventRow(run_id=self.run_id, task_id=task_id, type=f"{_TASK}{event.kind}", payload=payload)
        self._bus.write(self._list_directives(task_id, event), [row])
        fault_point("gate.after-event")
        for stored in self.ledger.read(
            EventRow, run_id=self.run_id, task_id=task_id, type=row.type, newest=True, limit=1
        ):
            self._add(stored, after, event)
        return after

    @property
    def _bus(self) -> MessageBus:
        return MessageBus(self.ledger, self.run_id)

    def _list_directives(self, task_id: str, event: TaskEvent) -> list[OutgoingMessage]:
        """Return the controller's message about a failed attempt: it goes to the executor, because no planner is
        there to direct.
        """
        if not isinstance(event, AttemptFailed) or event.failure.direction is None:
            return []
        payload = build_plan_directive(task_id, event.failure.direction).model_dump(mode="json")
        number = len(self.records[task_id].failures) + 1
        return [
            OutgoingMessage("controller", "executor", "PlanDirective", payload, f"gate/{task_id}/directive-{number}")
        ]

    def note(self, type: str, **payload: JsonValue) -> None:
        """Record an event of the run as a whole."""
        (seq,) = self.ledger.append(EventRow(run_id=self.run_id, type=type, payload=payload))
        if type.startswith(_RUN):
            self.run_events += self.ledger.read(EventRow, after=seq - 1, limit=1)

    def record_command(self, task_id: str, word: UserCommand) -> None:
        """Record a person's command, for the process that drives the run."""
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
                payload={"method": word.method.value, "seconds": word.seconds},
            )
        )

    def pending_commands(self) -> Iterator[tuple[int, str, UserCommand]]:
        """Yield the commands that were not applied yet, with their row numbers, oldest first."""
        pending: list[tuple[int, str, UserCommand]] = []
        for approval in self.ledger.read(ApprovalRow, run_id=self.run_id, gate=_GATE):
            row = approval.row
            if row.task_id in self.records:
                method = AcceptanceMethod(str(row.payload.get("method", AcceptanceMethod.INTERACTIVE)))
                seconds = row.payload.get("seconds")
                word = UserCommand(
                    UserCommandKind(row.option),
                    row.decided_by,
                    row.reason,
                    method=method,
                    seconds=float(seconds) if isinstance(seconds, int | float) else None,
                )
                pending.append((approval.seq, row.task_id, word))
        for stored in self.ledger.read(OverrideRow, run_id=self.run_id):
            override = Override.model_validate(stored.row.payload["override"])
            word = UserCommand(UserCommandKind(stored.row.action), stored.row.decided_by, stored.row.reason, override)
            pending.append((stored.seq, stored.row.task_id, word))
        return iter(
            sorted((entry for entry in pending if entry[0] not in self._applied_commands), key=lambda entry: entry[0])
        )

    def mark_applied(self, seq: int, why: str) -> None:
        """Mark a command as applied without an event of its own."""
        self.note(_COMMAND_APPLIED, word=seq, reason=why)
        self._applied_commands.add(seq)

    def record_judgement(self, judgement: CriteriaJudgement) -> None:
        """Record a person's word about criteria that no check shows and no architect judged."""
        self.ledger.append(
            ApprovalRow(
                run_id=self.run_id,
                gate=CRITERIA_GATE,
                option="approved" if judgement.holds else "rejected",
                decided_by=judgement.judged_by,
                reason=judgement.note,
                payload={"criteria": [list(key) for key in judgement.criteria]},
            )
        )

    def read_judgements(self) -> tuple[CriteriaJudgement, ...]:
        """Return what people have said about criteria, oldest first."""
        return tuple(map(read_judgement, self.ledger.read(ApprovalRow, run_id=self.run_id, gate=CRITERIA_GATE)))

    def read_requirements(self) -> tuple[ContextRequirement, ...]:
        """Return the requirements that were added to the run since it began. A part of a larger run takes those of the
        whole; what was added before it began is planned.
        """
        owner, started = self.setup.parent or self.run_id, self.run_events[0].seq
        earlier = sum(
            stored.seq < started for stored in self.ledger.read(EventRow, run_id=owner, type=REQUIREMENT_ADDED)
        )
        return read_requirements(self.ledger, owner)[earlier:]

    def list_criteria(self) -> tuple[CriterionResult, ...]:
        """Return the criteria of all tasks with their status."""
        judgements = self.read_judgements()
        return tuple(
            result
            for task in self.plan.tasks
            for result in list_criterion_results(task, self.records[task.id], judgements, self.amendments)
        )

    def list_requirements(self) -> tuple[RequirementResult, ...]:
        """Return what became of the requirements that were added to the run. A part of a larger run answers only for
        those that it took in: the larger run plans the others.
        """
        taken = {amendment.number for amendment in self.amendments}
        is_part = bool(self.setup.parent)
        requirements = [
            requirement for requirement in self.read_requirements() if not is_part or requirement.number in taken
        ]
        return rate_requirements(requirements, self.amendments, self.list_criteria(), self.read_judgements())

    def find_unjudged(self) -> tuple[tuple[str, str], ...]:
        """Return the criteria that a person must judge, each with its task, once all tasks are finished."""
        if self.setup.defers_criteria or not all(record.is_finished for record in self.records.values()):
            return ()
        return find_unjudged(self.list_criteria(), self.list_requirements())

    def find_last_human_decision(self, task_id: str) -> int:
        """Return the row of the last retry that a person asked for, or of their last acceptance; 0 if there is none."""
        events = zip(self.steps[task_id], self.read_events(task_id), strict=True)
        return max((step.seq for step, event in events if _is_human_decision(event)), default=0)

    def read_events(self, task_id: str) -> list[TaskEvent]:
        """Return the events of a task, in order."""
        rows = self.ledger.read(EventRow, run_id=self.run_id, task_id=task_id)
        return [TASK_EVENTS.validate_python(row.row.payload["event"]) for row in rows if row.row.type.startswith(_TASK)]

    @property
    def recently_judged(self) -> frozenset[str]:
        """Tasks that were judged since a person last resumed the run."""
        last_resume = max((event.seq for event in self.run_events if event.row.type == "run.resumed"), default=0)
        return frozenset(
            id
            for id, steps in self.steps.items()
            if any(step.seq > last_resume and step.kind in ("failed", "checked") for step in steps)
        )

    def has_pending_command(self, task_id: str) -> bool:
        """Whether a command about the task is pending."""
        return any(task == task_id for _, task, _ in self.pending_commands())

    def has_pending_override(self, task_id: str) -> bool:
        """Whether a command to skip or force the task is pending."""
        return any(task == task_id and word.override is not None for _, task, word in self.pending_commands())

    def find_done_command(self, task_id: str) -> int | None:
        """Return the row number of the pending command that says that a person has finished the task."""
        last = max((step.seq for step in self.steps[task_id] if step.kind == "started"), default=0)
        for seq, task, word in self.pending_commands():
            if task == task_id and word.kind is UserCommandKind.DONE and seq > last:
                return seq
        return None

    def _add_direction(self, record: TaskRecord, event: AttemptFailed) -> AttemptFailed:
        """Add the controller's direction to a failure, so that a resumed run continues the same way."""
        setup = self.setup
        failure = add_direction(
            event.failure,
            record,
            elapsed_ms=self._compute_worked_ms(),
            minutes=setup.minutes,
            factors=setup.weights,
        )
        return event.model_copy(update={"failure": failure})

    def _compute_worked_ms(self) -> int:
        marks = [(event.seq, event.ts, event.row.type) for event in self.run_events]
        marks += [(step.seq, step.at, step.kind) for steps in self.steps.values() for step in steps]
        return count_work_ms(((at, type) for _, at, type in sorted(marks)), datetime.now(UTC))

    def _load_event(self, stored: StoredRow[EventRow]) -> None:
        row = stored.row
        event = TASK_EVENTS.validate_python(row.payload["event"])
        if row.task_id is not None:
            try:
                after = apply_task_event(self.records[row.task_id], event)
            except GateError as error:
                raise LedgerError(
                    f"run {self.run_id}: row {stored.seq} of the ledger is not possible: {error}"
                ) from error
            self._add(stored, after, event)

    def _add(self, stored: StoredRow[EventRow], after: TaskRecord, event: TaskEvent) -> None:
        self.records[after.id] = after
        self.steps[after.id].append(
            TaskStep(seq=stored.seq, at=stored.ts, attempt=after.attempt, kind=event.kind, state=after.state)
        )
        if isinstance(event, AttemptExecuted):
            self.freeze_findings[after.id] = event.findings
        if isinstance(seq := stored.row.payload.get("word"), int):
            self._applied_commands.add(seq)


def read_judgement(stored: StoredRow[ApprovalRow]) -> CriteriaJudgement:
    """Return a person's word about criteria from its row."""
    return CriteriaJudgement.model_validate(
        {
            "judged_by": stored.row.decided_by,
            "holds": stored.row.option == "approved",
            "note": stored.row.reason,
            "criteria": stored.row.payload["criteria"],
        }
    )


def _is_human_decision(event: TaskEvent) -> bool:
    return isinstance(event, TaskAccepted) or (isinstance(event, TaskRetried) and event.by != GATE_POLICY)


@dataclass(frozen=True)
class GateContext:
    """Everything that a run of the gate needs; chosen in `app`."""

    context: RunContext
    """The context of the run's base. Its settings apply to the end: no task can loosen the checks of another. Each
    check gets its own context, see `at`.
    """
    setup: GateSetup
    plan_file: Path
    journal: GateJournal
    executor: Executor
    architect: Architect | None
    """The architect besides the rules, which always judge."""
    observer: GateObserver
    waits_for_person: bool
    """Wait for a person who executes a task."""
    minutes: float
    deadlines: GateSettings | None = None
    """The deadlines, if a person has raised them since the run began."""
    meter: SpendingMeter = field(default_factory=lambda: SpendingMeter(Budget()))
    """What agents have spent."""
    terminal: threading.Lock | None = None
    """Locked by the task that talks to the person at the terminal; None if there is no terminal."""
    started_at: float = field(default_factory=time.monotonic)

    @property
    def plan(self) -> Plan:
        """The current plan, with the amendments since the run began."""
        return self.journal.plan

    @property
    def settings(self) -> GateSettings:
        return self.context.settings.gate

    def context_at(self, commit: str, task_id: str, attempt: int, scratch: Path) -> RunContext:
        """Return the context for the checks of an attempt, on top of `commit`."""
        scratch.mkdir(mode=0o700, parents=True)
        world = self.context
        return replace(
            world,
            task_id=task_id,
            attempt=attempt,
            base_commit=commit,
            base_tree=world.store.git().find_tree(commit),
            notes=(),
            scratch=scratch,
            progress=self.observer.on_checks_started(task_id),
        )

    def executor_seconds(self, record: TaskRecord) -> float:
        is_model = uses_model(self.executor.spec)
        return choose_deadline(self.deadlines or self.settings, "agent" if is_model else "executor", record)

    def verify_seconds(self, record: TaskRecord) -> float:
        return choose_deadline(self.deadlines or self.settings, "verify", record)

    def architect_seconds(self, record: TaskRecord) -> float:
        is_alone = self.architect is not None and is_coding_agent(self.architect.spec)
        return choose_deadline(self.deadlines or self.settings, "agent" if is_alone else "architect", record)

    def lock_terminal(self, wanted: bool) -> AbstractContextManager[object]:
        """Lock the terminal, so that only one question is open at a time and an answer belongs to it."""
        return self.terminal if wanted and self.terminal is not None else nullcontext()

    @property
    def budget_stop_reason(self) -> str:
        """Why the budget is exhausted, or ""."""
        spent = (time.monotonic() - self.started_at) / 60
        return self.meter.stop_reason or (
            f"the run's {self.minutes:g} minutes are used up" if spent >= self.minutes else ""
        )
