"""`proofstone gate`: each task of a plan through executor → checks → architect → commit, and nothing else commits.

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

from proofstone.agents.roles.models.gate import ArchitectDecision, TaskState, Waiting
from proofstone.faults import fault_point
from proofstone.gate.checking import Checking, Tip, tip_of
from proofstone.gate.commands import heed
from proofstone.gate.context import GateWorld
from proofstone.gate.executing import Execution, LeftError
from proofstone.gate.finishing import finished, keep_patch, write_state
from proofstone.gate.models import (
    POLICY,
    Approved,
    AttemptFailed,
    Blocked,
    Committed,
    Executed,
    GateReport,
    Moved,
    Retried,
    RunView,
    Started,
    TaskEvent,
    TaskRecord,
)
from proofstone.gate.reviewing import Reviewing, asked_in_words, rejected
from proofstone.gate.rules.machine import delays, halted, may_retry, startable, starts_clean
from proofstone.gate.rules.passing import NAME as RULES
from proofstone.gate.rules.passing import unmet_by_architects
from proofstone.gate.rules.position import UNDER_WAY
from proofstone.gate.view import view_of
from proofstone.git.commit import BranchMovedError, CheckedOutError, contains, publish
from proofstone.git.merge import Merged, merge
from proofstone.ledger.models import StepStatus, TelemetryRow
from proofstone.plans.models import Plan

_TICK = 0.25

Reported = TaskEvent | Waiting


class _Stage(NamedTuple):
    task: str
    name: str
    """`execute`, `check` or `review`."""


class GateRun:
    def __init__(self, gate: GateWorld) -> None:
        self.gate = gate
        self.journal = gate.journal
        self.execution = Execution(gate)
        self.checking = Checking(gate)
        self.reviewing = Reviewing(gate)
        # Two beyond the executors: one check at a time, and one architect.
        self._pool = ThreadPoolExecutor(gate.setup.slots + 2, thread_name_prefix="gate")
        self._stages: dict[Future[Reported], _Stage] = {}
        self._line: deque[str] = deque()
        """Tasks whose work is to be checked, first come, first served."""
        self._asked: dict[str, str] = {}
        """What a person was asked about a task by this process."""
        self._not_before: dict[str, float] = {}

    @property
    def plan(self) -> Plan:
        return self.gate.plan

    def view(self) -> RunView:
        gate = self.gate
        spent = gate.meter.spent()
        return view_of(gate.setup, self.journal, home=gate.world.home, running=True, asked=self._asked, spent=spent)

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
            self.journal.note("run.interrupted", reason=str(error) or "interrupted")
            write_state(self.gate.plan_file, self.view().model_copy(update={"running": False, "interrupted": True}))
            raise
        return finished(self.gate, self._tip().commit, budget)

    # The loop.

    def _drive(self) -> str:
        """Until nothing more can be done without a person. Returns why the budget ended it, if that did."""
        while True:
            records = self.journal.records
            if all(record.finished for record in records.values()) or halted(self.plan, records, self.journal.recent):
                return ""
            if budget := self.gate.budget:
                return budget
            self._heed_words()
            self._start_executors()
            self._start_check()
            if not self._stages and not self._line and not self._not_before:
                return ""
            self._settle()

    def _settle(self) -> None:
        """Take in what has been reported, in the order of the plan where several came at once."""
        if not self._stages:
            time.sleep(_TICK)  # a retry is due later
            return
        done = wait(self._stages, timeout=_TICK, return_when=FIRST_COMPLETED).done
        order = {task.id: number for number, task in enumerate(self.plan.tasks)}
        ended = sorted(done, key=lambda one: order[self._stages[one].task])
        tasks = [self._stages.pop(future).task for future in ended]
        broken = [error for future in ended if (error := future.exception()) is not None and not self._may_leave(error)]
        for task_id, future in zip(tasks, ended, strict=True):
            if future.exception() is None:  # what one has met with costs no other its work
                self._take_in(task_id, future.result())
        if broken:
            raise broken[0]

    def _may_leave(self, error: BaseException) -> bool:
        """An agent whose budget is spent leaves its attempt as it is; the run stops, and is resumed with another."""
        return isinstance(error, LeftError) and bool(self.gate.budget)

    def _take_in(self, task_id: str, reported: Reported) -> None:
        """Record what was reported, and do what follows from it; unless a person has said something else meanwhile."""
        before = self.journal.records[task_id]
        if self._heed_words(only=task_id) and self.journal.records[task_id] is not before:
            if isinstance(reported, Executed | AttemptFailed | Blocked) and reported.tree is not None:
                keep_patch(self.gate, before.model_copy(update={"tree": reported.tree}))
            return
        if isinstance(reported, Waiting):
            self._asked[task_id] = reported.question
            keep_patch(self.gate, before)
            self._show(task_id)
            return
        executed = isinstance(reported, Executed | AttemptFailed | Blocked)
        word = self.journal.is_done(task_id) if executed else None
        self._happened(task_id, reported, word=word)
        if executed and self.execution.by_person and self.journal.records[task_id].tree is not None:
            self.execution.clear(task_id)
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

    def _heed_words(self, only: str | None = None) -> bool:
        """Whether people have said something meanwhile that has its effect now; tasks at work hear it when they end."""
        busy = {stage.task for stage in self._stages.values()}

        def hears(task_id: str) -> bool:
            return task_id == only if only is not None else task_id not in busy

        touched = heed(self.journal, hears, self.gate.world.repository, self.gate.setup)
        for task_id in touched:
            self._asked.pop(task_id, None)
            if task_id in self._line:
                self._line.remove(task_id)
            record = self.journal.records[task_id]
            if record.override is not None and record.settled_by is None:
                keep_patch(self.gate, record)
            self._show(task_id)
            self._follow(task_id)
        return bool(touched)

    # Executors.

    def _start_executors(self) -> None:
        records, slots, now = self.journal.records, self.gate.setup.slots, time.monotonic()
        self._not_before = {id: when for id, when in self._not_before.items() if when > now}
        at_work = {stage.task for stage in self._stages.values() if stage.name == "execute"}
        for task in self.plan.tasks:  # attempts that were begun by an earlier process, or wait for a person
            if records[task.id].state is TaskState.EXECUTING and task.id not in at_work and len(at_work) < slots:
                at_work |= self._execute(task.id)
        held = {id for id, record in records.items() if record.state in UNDER_WAY} | set(self._not_before)
        for task_id in startable(self.plan, records, at_work, held, slots):
            self._begin(task_id)
            self._execute(task_id)

    def _begin(self, task_id: str) -> None:
        record = self.journal.records[task_id]
        attempt, tip = record.attempt + 1, self._tip().commit
        goes_on = self.execution.by_person or not starts_clean(attempt)
        tree = self._onto(record, tip) if goes_on else None
        if tree is None:
            if record.tree is not None and self.execution.by_person:
                keep_patch(self.gate, record)
            tree = self.gate.world.store.git().tree_of(tip)
        self._happened(task_id, Started(attempt=attempt, base_commit=tip, tree=tree))

    def _onto(self, record: TaskRecord, tip: str) -> str | None:
        """What the last attempt left, as it would be where the branch is now; None if it left nothing, or conflicts."""
        if record.base_commit is None or record.tree is None:
            return None
        merged = merge(self.gate.world.store, base_commit=record.base_commit, tip=tip, tree=record.tree)
        return merged.tree if isinstance(merged, Merged) else None

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
        if delays(record.failures):
            self._not_before[record.id] = time.monotonic() + self.gate.gate.retry_delay_seconds
        self._happened(record.id, Retried(by=POLICY))

    # Checks, architects, the commit.

    def _start_check(self) -> None:
        if not self._line or any(stage.name == "check" for stage in self._stages.values()):
            return
        task_id = self._line.popleft()
        task, record, onto = self.plan.task(task_id), self.journal.records[task_id], self._tip().commit
        findings = self.journal.frozen.get(task_id, ())
        self._submit(task_id, "check", lambda: self.checking.check(task, record, onto, findings))

    def _review(self, record: TaskRecord) -> None:
        """The rules have spoken with the checks; whoever else is to, is asked once for each attempt."""
        task, architect = self.plan.task(record.id), self.gate.architect
        rules = [verdict for verdict in record.verdicts if verdict.by == RULES]
        if record.evidence is not None and any(rule.verdict is not ArchitectDecision.APPROVED for rule in rules):
            self._take_in(record.id, rejected(record, unmet_by_architects(record.evidence, rules)))
        elif record.asked is not None:
            self._asked[record.id] = asked_in_words(record.asked)
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
        tip = self._tip()
        here = contains(world.repository, setup.branch, record.candidate)
        if not here and record.evidence.base_commit != tip.commit:
            self._overtaken(record, tip)
            return
        try:
            publish(world.store, setup.branch, record.candidate, expected=tip.position)
        except BranchMovedError:
            self._overtaken(record, self._tip())
            return
        except CheckedOutError as error:
            self._asked[record.id] = f"it is approved, but cannot be committed: {error.message}"
            self._show(record.id)
            return
        fault_point("gate.after-publish")
        self._happened(record.id, Committed(commit=record.candidate, tree=record.evidence.tree))

    def _overtaken(self, record: TaskRecord, tip: Tip) -> None:
        """Others were committed first: it is checked again, before anybody else."""
        self._happened(record.id, Moved(onto=tip.commit))
        self._line.appendleft(record.id)

    def _tip(self) -> Tip:
        return tip_of(self.gate.world.repository, self.gate.setup, self.journal)

    def _submit(self, task: str, name: str, work: Callable[[], Reported]) -> None:
        attempt = self.journal.records[task].attempt
        agents = {"execute": self.gate.setup.executor, "check": "engine", "review": self.gate.setup.architect}
        step = TelemetryRow(
            run_id=self.gate.world.run_id,
            step=f"{task}/{name}",
            agent=agents[name],
            started_at=_now(),
            retry_count=attempt - 1,
        )
        self._stages[self._pool.submit(self._timed, step, work)] = _Stage(task, name)

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
