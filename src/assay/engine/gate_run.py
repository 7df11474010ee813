"""`assay gate`: each task of a plan through executor → checks → architect → commit, and nothing else commits.

One loop, in one thread, decides; executors, checks and architects work in threads of their own and only report. Each
decision is an event in the journal before anything follows from it, so the order in which things finished is on
record, and a run that was killed goes on from its journal.

Executors work side by side. Checks form a line: a task is checked on the very tree that will be committed, merged onto
where the branch is at that moment, and committed before the next one is looked at, unless an architect takes time to
speak; then the line goes on, and the task is checked again if it was overtaken.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from typing import NamedTuple

from assay.adapters.git.commit import BranchMovedError, contains, publish
from assay.contracts.gate import ArchitectDecision, TaskState, Waiting
from assay.contracts.gate_record import (
    POLICY,
    Approved,
    AttemptFailed,
    Committed,
    Executed,
    Moved,
    Retried,
    Started,
    TaskEvent,
    TaskRecord,
)
from assay.contracts.gate_report import GateReport, RunView
from assay.contracts.rows import StepStatus, TelemetryRow
from assay.core.architect_rules import NAME as RULES
from assay.core.gate_outcome import halted
from assay.core.gate_pass import unmet_by_architects
from assay.core.gate_retry import delay, may_retry, starts_clean
from assay.core.schedule import startable
from assay.engine.gate_check import Checking
from assay.engine.gate_execute import Execution
from assay.engine.gate_finish import finished, keep_patch, write_state
from assay.engine.gate_look import view_of
from assay.engine.gate_review import Reviewing, rejected
from assay.engine.gate_tip import position, tip_of
from assay.engine.gate_words import heed
from assay.engine.gate_world import GateWorld
from assay.faults import fault_point

_TICK = 0.25
_UNDER_WAY = (TaskState.EXECUTING, TaskState.VERIFYING, TaskState.REVIEWING)

Reported = TaskEvent | Waiting


class _Stage(NamedTuple):
    task: str
    name: str
    """`execute`, `check` or `review`."""


class GateRun:
    def __init__(self, gate: GateWorld) -> None:
        self.gate = gate
        self.plan = gate.plan
        self.journal = gate.journal
        self.execution = Execution(gate)
        self.checking = Checking(gate)
        self.reviewing = Reviewing(gate)
        self.tip = tip_of(gate.world.repository, gate.setup, gate.journal)
        # Two beyond the executors: one check at a time, and one architect.
        self._pool = ThreadPoolExecutor(gate.setup.slots + 2, thread_name_prefix="gate")
        self._stages: dict[Future[Reported], _Stage] = {}
        self._line: deque[str] = deque()
        """Tasks whose work is to be checked, first come, first served."""
        self._asked: dict[str, str] = {}
        """What a person was asked about a task by this process."""
        self._not_before: dict[str, float] = {}

    def view(self) -> RunView:
        return view_of(self.gate.setup, self.journal, home=self.gate.world.home, running=True, asked=self._asked)

    def run(self) -> GateReport:
        self.gate.watching.began(self.view())
        self._show()
        fault_point("gate.started")
        try:
            try:
                self._take_up()
                budget = self._drive()
            finally:
                self._let_go()
        except BaseException as error:
            self.journal.note("run.interrupted", reason=str(error) or type(error).__name__)
            self._show()
            raise
        return finished(self.gate, self.tip, budget)

    # The loop.

    def _drive(self) -> str:
        """Until nothing more can be done without a person. Returns why the budget ended it, if that did."""
        while True:
            if budget := self.gate.budget:
                return budget
            if halted(self.plan, self.journal.records):
                return ""
            self._heed_words()
            self._start_executors()
            self._start_check()
            if not self._stages and not self._line and not self._pausing():
                return ""
            self._settle()

    def _settle(self) -> None:
        """Take in what has been reported, in the order of the plan where several came at once."""
        if not self._stages:
            time.sleep(_TICK)  # a retry is due later
            return
        done = wait(self._stages, timeout=_TICK, return_when=FIRST_COMPLETED).done
        order = {task.id: number for number, task in enumerate(self.plan.tasks)}
        for future in sorted(done, key=lambda one: order[self._stages[one].task]):
            task_id = self._stages.pop(future).task
            self._take_in(task_id, future.result())

    def _take_in(self, task_id: str, reported: Reported) -> None:
        """Record what was reported, and do what follows from it."""
        if isinstance(reported, Waiting):
            self._asked[task_id] = reported.question
            self._show(task_id)
            return
        word = self.journal.is_done(task_id) if isinstance(reported, Executed) else None
        self._happened(task_id, reported, word=word)
        self._follow(task_id)

    def _follow(self, task_id: str) -> None:
        """What the engine itself does next with a task in its state."""
        record = self.journal.records[task_id]
        match record.state:
            case TaskState.VERIFYING if task_id not in self._line:
                self._line.append(task_id)
            case TaskState.REVIEWING:
                self._review(record)
            case TaskState.APPROVED if not record.finished:
                self._commit(record)
            case TaskState.FAILED:
                self._after_failure(record)

    def _happened(self, task_id: str, event: TaskEvent, *, word: int | None = None) -> None:
        self.journal.happened(task_id, event, word=word)
        self._show(task_id)

    def _show(self, task_id: str | None = None) -> None:
        view = self.view()
        write_state(self.gate.plan_file, view)
        if task_id is not None:
            self.gate.watching.changed(view, task_id)

    def _take_up(self) -> None:
        """Where an earlier process left off. What was recorded is not done again."""
        self._heed_words()
        for task in self.plan.tasks:
            if self.journal.records[task.id].state is not TaskState.EXECUTING:
                self._follow(task.id)

    def _let_go(self) -> None:
        """Nothing goes on when the loop has ended; what was under way is begun again when the run is resumed."""
        if self._stages:
            self.gate.world.cancel.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _heed_words(self) -> None:
        """What people have said meanwhile, where it can have its effect now."""
        busy = {stage.task for stage in self._stages.values()} | set(self._line)
        for task_id in heed(self.journal, busy, self.gate.world.repository, self.gate.setup):
            self._asked.pop(task_id, None)
            self.tip = tip_of(self.gate.world.repository, self.gate.setup, self.journal)
            self._show(task_id)
            self._follow(task_id)

    # Executors.

    def _start_executors(self) -> None:
        records, slots = self.journal.records, self.gate.setup.slots
        at_work = {stage.task for stage in self._stages.values() if stage.name == "execute"}
        for task in self.plan.tasks:  # attempts that were begun by an earlier process, or wait for a person
            if records[task.id].state is TaskState.EXECUTING and task.id not in at_work and len(at_work) < slots:
                at_work |= self._execute(task.id)
        held = {id for id, record in records.items() if record.state in _UNDER_WAY} | set(self._not_before)
        for task_id in startable(self.plan, records, at_work, held, slots):
            self._begin(task_id)
            self._execute(task_id)

    def _begin(self, task_id: str) -> None:
        record = self.journal.records[task_id]
        attempt = record.attempt + 1
        base, tree = record.base_commit, record.tree
        if starts_clean(attempt) or base is None or tree is None or _conflicted(record):
            base, tree = self.tip, self.gate.world.store.git().line("rev-parse", f"{self.tip}^{{tree}}")
        self._happened(task_id, Started(attempt=attempt, base_commit=base, tree=tree))

    def _execute(self, task_id: str) -> set[str]:
        """The task, if somebody is at work on it now."""
        if self.execution.by_person and not self.gate.wait and self.journal.is_done(task_id) is None:
            self.execution.prepare(self.journal.records[task_id])
            return set()
        task, record = self.plan.task(task_id), self.journal.records[task_id]
        self._submit(task_id, "execute", lambda: self.execution.attempt(task, record))
        return {task_id}

    def _after_failure(self, record: TaskRecord) -> None:
        if not may_retry(record):
            keep_patch(self.gate, record)
            return
        pause = min(delay(record.failures), self.gate.gate.retry_delay_seconds)
        if pause:
            self._not_before[record.id] = time.monotonic() + pause
        self._happened(record.id, Retried(by=POLICY))

    def _pausing(self) -> bool:
        """Whether a retry is due later."""
        now = time.monotonic()
        self._not_before = {id: when for id, when in self._not_before.items() if when > now}
        waiting = [id for id in self._not_before if self.journal.records[id].state is TaskState.PENDING]
        return bool(waiting)

    # Checks, architects, the commit.

    def _start_check(self) -> None:
        if not self._line or any(stage.name == "check" for stage in self._stages.values()):
            return
        task_id = self._line.popleft()
        task, record, onto = self.plan.task(task_id), self.journal.records[task_id], self.tip
        findings = self.journal.frozen.get(task_id, ())
        self._submit(task_id, "check", lambda: self.checking.check(task, record, onto, findings))

    def _review(self, record: TaskRecord) -> None:
        """The rules have spoken with the checks; whoever else is to, is asked once for each attempt."""
        task, architect = self.plan.task(record.id), self.gate.architect
        rules = [verdict for verdict in record.verdicts if verdict.by == RULES]
        if record.evidence is not None and any(one.verdict is not ArchitectDecision.APPROVED for one in rules):
            self._take_in(record.id, rejected(record, unmet_by_architects(record.evidence, rules)))
        elif architect is None or len(record.verdicts) > len(rules):
            self._take_in(record.id, Approved(verdicts=record.verdicts))
        else:
            self._submit(record.id, "review", lambda: self.reviewing.review(task, record, architect))

    def _commit(self, record: TaskRecord) -> None:
        """Move the branch to the commit that was verified, if it still is where that commit begins."""
        if record.evidence is None or record.candidate is None:
            raise AssertionError(f"{record.id} has nothing to commit")
        world, setup = self.gate.world, self.gate.setup
        fault_point("gate.before-publish")
        here = contains(world.repository, setup.branch, record.candidate)
        if not here and record.evidence.base_commit != self.tip:
            self._overtaken(record)
            return
        try:
            publish(world.store, setup.branch, record.candidate, expected=position(world.repository, setup.branch))
        except BranchMovedError:
            self._overtaken(record)
            return
        fault_point("gate.after-publish")
        self._happened(record.id, Committed(commit=record.candidate, tree=record.evidence.tree))
        self.tip = tip_of(world.repository, setup, self.journal)

    def _overtaken(self, record: TaskRecord) -> None:
        """Others were committed first: it is checked again, before anybody else."""
        self.tip = tip_of(self.gate.world.repository, self.gate.setup, self.journal)
        self._happened(record.id, Moved(onto=self.tip))
        self._line.appendleft(record.id)

    def _submit(self, task: str, name: str, work: Callable[[], Reported]) -> None:
        attempt = self.journal.records[task].attempt
        agents = {"execute": self.gate.setup.executor, "check": "engine", "review": self.gate.setup.architect}
        step = TelemetryRow(run_id=self.gate.world.run_id, step=f"{task}/{name}", agent=agents[name], started_at=_now())
        self._stages[self._pool.submit(self._timed, step.model_copy(update={"retry_count": attempt - 1}), work)] = (
            _Stage(task, name)
        )

    def _timed(self, step: TelemetryRow, work: Callable[[], Reported]) -> Reported:
        """The work, with a row when it begins and one when it has ended."""
        ledger = self.gate.world.ledger
        ledger.append(step)
        reported = work()
        status = StepStatus.NEEDS_REVISION if isinstance(reported, AttemptFailed) else StepStatus.DONE
        ledger.append(step.model_copy(update={"completed_at": _now(), "status": status}))
        return reported


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _conflicted(record: TaskRecord) -> bool:
    """Whether the last attempt could not be merged: going on from it would meet the same conflict again."""
    last = record.failures[-1:]
    return any(reason.check == "merge-conflict" for failure in last for reason in failure.reasons)
