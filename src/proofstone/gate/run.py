"""Run the tasks of a plan through executor → checks → architect → commit. Only a verified task is committed.

A single loop in one thread makes all decisions. Executors, checks and architects work in threads of their own and only
report. Each decision is an event in the journal before anything follows from it. So the order in which things finished
is recorded, and a run that was killed continues from its journal.

Executors work in parallel. Checks form a queue: a task is checked on the exact tree that will be committed, merged onto
the current tip of the branch, and it is committed before the next one is checked. Only if an architect takes time to
answer does the queue go on; then the task is checked again if another one was committed first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from typing import NamedTuple

from proofstone.agents.roles.models.gate import ArchitectDecision, PendingReview, TaskState
from proofstone.faults import fault_point
from proofstone.gate.architect_review import ArchitectReviewer, describe_escalation, make_rejection
from proofstone.gate.attempt_checks import AttemptChecker, BranchTip, find_run_tip
from proofstone.gate.commands import apply_commands
from proofstone.gate.context import GateContext
from proofstone.gate.execution import AttemptRunner, AttemptStoppedError
from proofstone.gate.finish import finish_run, save_patch, write_state_page
from proofstone.gate.models import (
    GATE_POLICY,
    AttemptApproved,
    AttemptChecked,
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    BranchMoved,
    CriteriaAdded,
    GateReport,
    ReviewEscalated,
    ReviewFailed,
    RunView,
    TaskBlocked,
    TaskCommitted,
    TaskEvent,
    TaskRecord,
    TaskRetried,
)
from proofstone.gate.rules.judgements import find_new_amendments
from proofstone.gate.rules.pass_rule import RULES_ARCHITECT, find_unmet_by_architects
from proofstone.gate.rules.progress import ACTIVE_STATES
from proofstone.gate.rules.state_machine import (
    can_retry,
    can_unblock,
    explain_escalation,
    find_halt_reason,
    find_startable,
    must_ask_person_to_review,
    needs_delay,
    starts_clean,
)
from proofstone.gate.view import build_run_view
from proofstone.git.commit import BranchMovedError, CheckedOutError, branch_contains, publish_commit
from proofstone.git.merge import CleanMerge, merge_trees
from proofstone.ledger.models import StepStatus, TelemetryRow
from proofstone.plans.models import Plan

_TICK = 0.25

StageResult = TaskEvent | PendingReview


class _Stage(NamedTuple):
    """Work on a task in one thread."""

    task: str
    name: str
    """`execute`, `check` or `review`."""


class GateRun:
    """Drives a run of the gate."""

    def __init__(self, gate: GateContext) -> None:
        self.gate = gate
        self.journal = gate.journal
        self.execution = AttemptRunner(gate)
        self.checking = AttemptChecker(gate)
        self.reviewing = ArchitectReviewer(gate)
        # Two beyond the executors: one check at a time, and one architect.
        self._pool = ThreadPoolExecutor(gate.setup.slots + 2, thread_name_prefix="gate")
        self._stages: dict[Future[StageResult], _Stage] = {}
        self._check_queue: deque[str] = deque()
        """Tasks that wait for their check, first come, first served."""
        self._questions: dict[str, str] = {}
        """The question that this process asked about each task."""
        self._not_before: dict[str, float] = {}

    @property
    def plan(self) -> Plan:
        return self.gate.plan

    def view(self) -> RunView:
        gate = self.gate
        spent = gate.meter.get_spent()
        return build_run_view(
            gate.setup, self.journal, home=gate.context.home, running=True, questions=self._questions, spent=spent
        )

    def run(self) -> GateReport:
        self.gate.observer.on_run_started(self.view())
        self._show()
        fault_point("gate.started")
        try:
            try:
                self._continue_tasks()
                budget = self._drive()
            finally:
                self._shut_down()
        except BaseException as error:
            self.journal.note("run.interrupted", reason=str(error) or "interrupted")
            write_state_page(
                self.gate.plan_file, self.view().model_copy(update={"running": False, "interrupted": True})
            )
            raise
        return finish_run(self.gate, self._tip().commit, budget)

    # The loop

    def _drive(self) -> str:
        """Loop until nothing more can be done without a person. Return the reason if the budget ended it."""
        while True:
            records = self.journal.records
            if all(record.is_finished for record in records.values()) or find_halt_reason(
                self.plan, records, self.journal.recently_judged
            ):
                return ""
            if budget := self.gate.budget_stop_reason:
                return budget
            self._apply_commands()
            self._take_in_requirements()
            self._retry_unblocked()
            self._start_executors()
            self._start_check()
            if not self._stages and not self._check_queue and not self._not_before:
                return ""
            self._collect_results()

    def _collect_results(self) -> None:
        """Handle the results that are available, in the order of the plan."""
        if not self._stages:
            time.sleep(_TICK)  # a retry is delayed
            return
        done = wait(self._stages, timeout=_TICK, return_when=FIRST_COMPLETED).done
        order = {task.id: number for number, task in enumerate(self.plan.tasks)}
        finished_futures = sorted(done, key=lambda future: order[self._stages[future].task])
        tasks = [self._stages.pop(future).task for future in finished_futures]
        errors = [
            error
            for future in finished_futures
            if (error := future.exception()) is not None and not self._is_budget_stop(error)
        ]
        for task_id, future in zip(tasks, finished_futures, strict=True):
            if future.exception() is None:  # one error must not cost another task its work
                self._handle_result(task_id, future.result())
        if errors:
            raise errors[0]

    def _is_budget_stop(self, error: BaseException) -> bool:
        """Whether an agent stopped because its budget is exhausted. The run stops, and can be resumed with another."""
        return isinstance(error, AttemptStoppedError) and bool(self.gate.budget_stop_reason)

    def _handle_result(self, task_id: str, result: StageResult) -> None:
        """Record the result and continue with the task, unless a person's command changed it meanwhile."""
        before = self.journal.records[task_id]
        if self._apply_commands(only=task_id) and self.journal.records[task_id] is not before:
            if isinstance(result, AttemptExecuted | AttemptFailed | TaskBlocked) and result.tree is not None:
                save_patch(self.gate, before.model_copy(update={"tree": result.tree}))
            return
        is_added = self._take_in_requirements(only=task_id)
        if is_added and isinstance(
            result, AttemptChecked | AttemptApproved | ReviewEscalated | ReviewFailed | PendingReview
        ):
            self._advance(task_id)  # it was checked or reviewed without the new criterion
            return
        if isinstance(result, PendingReview):
            self._questions[task_id] = result.question
            save_patch(self.gate, before)
            self._show(task_id)
            return
        is_execution = isinstance(result, AttemptExecuted | AttemptFailed | TaskBlocked)
        word = self.journal.find_done_command(task_id) if is_execution else None
        self._record(task_id, result, word=word)
        if is_execution and self.execution.is_by_person and self.journal.records[task_id].tree is not None:
            self.execution.clear_work_tree(task_id)
        self._advance(task_id)

    def _advance(self, task_id: str) -> None:
        """Start the next step of a task in its current state."""
        record = self.journal.records[task_id]
        match record.state:
            case TaskState.VERIFYING if task_id not in self._check_queue:
                self._check_queue.append(task_id)
            case TaskState.REVIEWING:
                self._review(record)
            case TaskState.APPROVED if not record.is_finished:
                self._commit(record)
            case TaskState.FAILED:
                self._after_failure(record)

    def _record(self, task_id: str, event: TaskEvent, *, word: int | None = None) -> None:
        self.journal.record_event(task_id, event, word=word)
        self._show(task_id)

    def _show(self, task_id: str | None = None) -> None:
        view = self.view()
        write_state_page(self.gate.plan_file, view)
        if task_id is not None:
            self.gate.observer.on_task_changed(view, task_id)

    def _continue_tasks(self) -> None:
        """Continue where an earlier process stopped. Recorded work is not done again."""
        self._apply_commands()
        self._take_in_requirements()
        for task in self.plan.tasks:
            if self.journal.records[task.id].state is not TaskState.EXECUTING:
                self._advance(task.id)

    def _shut_down(self) -> None:
        """Stop all work when the loop has ended. It starts again when the run is resumed."""
        if self._stages:
            self.gate.context.cancel.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _apply_commands(self, only: str | None = None) -> bool:
        """Apply the pending commands and return whether there were any. Tasks at work get theirs when they end."""
        busy = {stage.task for stage in self._stages.values()}

        def hears(task_id: str) -> bool:
            return task_id == only if only is not None else task_id not in busy

        changed = apply_commands(self.journal, hears, self.gate.context.repository, self.gate.setup)
        for task_id in changed:
            self._questions.pop(task_id, None)
            if task_id in self._check_queue:
                self._check_queue.remove(task_id)
            record = self.journal.records[task_id]
            if record.override is not None and record.settled_by is None:
                save_patch(self.gate, record)
            self._show(task_id)
            self._advance(task_id)
        return bool(changed)

    def _take_in_requirements(self, only: str | None = None) -> bool:
        """Make each requirement that a person has added a criterion of every unfinished task that it concerns. Return
        whether there was a new one. Tasks that are being checked or reviewed get theirs when that ends.
        """
        busy = {stage.task for stage in self._stages.values() if stage.name != "execute"}
        is_added = False
        amendments = find_new_amendments(
            self.plan, self.journal.records, self.journal.read_requirements(), self.journal.amendments
        )
        for amendment in amendments:
            if amendment.task in busy if only is None else amendment.task != only:
                continue
            self.journal.amend(amendment)
            is_added = True
            if self.journal.records[amendment.task].state in (TaskState.REVIEWING, TaskState.APPROVED):
                self._questions.pop(amendment.task, None)
                self._record(amendment.task, CriteriaAdded(number=amendment.number))
                if only is None:
                    self._advance(amendment.task)
        if is_added:
            self._show()
        return is_added

    def _retry_unblocked(self) -> None:
        """Try blocked tasks again when the tasks that they waited for are finished."""
        records = self.journal.records
        for record in list(records.values()):
            if can_unblock(record) and all(records[id].is_finished for id in record.waits_for):
                self._record(record.id, TaskRetried(by=GATE_POLICY))

    # Executors

    def _start_executors(self) -> None:
        records, slots, now = self.journal.records, self.gate.setup.slots, time.monotonic()
        self._not_before = {id: when for id, when in self._not_before.items() if when > now}
        running = {stage.task for stage in self._stages.values() if stage.name == "execute"}
        for task in self.plan.tasks:  # attempts that an earlier process began, or that wait for a person
            if records[task.id].state is TaskState.EXECUTING and task.id not in running and len(running) < slots:
                running |= self._execute(task.id)
        occupied = {id for id, record in records.items() if record.state in ACTIVE_STATES} | set(self._not_before)
        for task_id in find_startable(self.plan, records, running, occupied, slots):
            self._begin(task_id)
            self._execute(task_id)

    def _begin(self, task_id: str) -> None:
        record = self.journal.records[task_id]
        attempt, tip = record.attempt + 1, self._tip().commit
        continues = self.execution.is_by_person or not starts_clean(attempt)
        tree = self._rebase_tree(record, tip) if continues else None
        if tree is None:
            if record.tree is not None and self.execution.is_by_person:
                save_patch(self.gate, record)
            tree = self.gate.context.store.git().find_tree(tip)
        self._record(task_id, AttemptStarted(attempt=attempt, base_commit=tip, tree=tree))

    def _rebase_tree(self, record: TaskRecord, tip: str) -> str | None:
        """Merge what the last attempt left onto the tip. Return None if it left nothing or conflicts."""
        if record.base_commit is None or record.tree is None:
            return None
        merged = merge_trees(self.gate.context.store, base_commit=record.base_commit, tip=tip, tree=record.tree)
        return merged.tree if isinstance(merged, CleanMerge) else None

    def _execute(self, task_id: str) -> set[str]:
        """Start the task and return its id in a set; an empty set if it waits for a person."""
        if (
            self.execution.is_by_person
            and not self.gate.waits_for_person
            and self.journal.find_done_command(task_id) is None
        ):
            self.execution.prepare_work_tree(self.journal.records[task_id])
            return set()
        task, record = self.plan.get_task(task_id), self.journal.records[task_id]
        self._submit(task_id, "execute", lambda: self.execution.run_attempt(task, record))
        return {task_id}

    def _after_failure(self, record: TaskRecord) -> None:
        if not can_retry(record):
            save_patch(self.gate, record)
            return
        if needs_delay(record.failures):
            self._not_before[record.id] = time.monotonic() + self.gate.settings.retry_delay_seconds
        self._record(record.id, TaskRetried(by=GATE_POLICY))

    # Checks, architects, the commit

    def _start_check(self) -> None:
        if not self._check_queue or any(stage.name == "check" for stage in self._stages.values()):
            return
        task_id = self._check_queue.popleft()
        task, record, onto = self.plan.get_task(task_id), self.journal.records[task_id], self._tip().commit
        findings = self.journal.freeze_findings.get(task_id, ())
        self._submit(task_id, "check", lambda: self.checking.check(task, record, onto, findings))

    def _review(self, record: TaskRecord) -> None:
        """Let the architect judge, once for each attempt. The rules have judged with the checks already."""
        task, architect = self.plan.get_task(record.id), self.gate.architect
        rules = [verdict for verdict in record.verdicts if verdict.by == RULES_ARCHITECT]
        if record.evidence is not None and any(rule.verdict is not ArchitectDecision.APPROVED for rule in rules):
            self._handle_result(record.id, make_rejection(record, find_unmet_by_architects(record.evidence, rules)))
        elif record.asked is not None:
            self._questions[record.id] = describe_escalation(record.asked)
        elif must_ask_person_to_review(record):
            self._questions[record.id] = explain_escalation(record)
            save_patch(self.gate, record)
            self._show(record.id)
        elif architect is None or len(record.verdicts) > len(rules):
            self._handle_result(record.id, AttemptApproved(verdicts=record.verdicts))
        else:
            self._submit(record.id, "review", lambda: self.reviewing.review(task, record, architect))

    def _commit(self, record: TaskRecord) -> None:
        """Move the branch to the verified commit, if the branch still points to its parent."""
        if record.evidence is None or record.candidate is None:
            raise AssertionError(f"{record.id} has nothing to commit")
        world, setup = self.gate.context, self.gate.setup
        fault_point("gate.before-publish")
        tip = self._tip()
        is_published = branch_contains(world.repository, setup.branch, record.candidate)
        if not is_published and record.evidence.base_commit != tip.commit:
            self._queue_again(record, tip)
            return
        try:
            publish_commit(world.store, setup.branch, record.candidate, expected=tip.position)
        except BranchMovedError:
            self._queue_again(record, self._tip())
            return
        except CheckedOutError as error:
            self._questions[record.id] = f"it is approved, but cannot be committed: {error.message}"
            self._show(record.id)
            return
        fault_point("gate.after-publish")
        self._record(record.id, TaskCommitted(commit=record.candidate, tree=record.evidence.tree))

    def _queue_again(self, record: TaskRecord, tip: BranchTip) -> None:
        """Queue the task for another check, before all others, because other tasks were committed first."""
        self._record(record.id, BranchMoved(onto=tip.commit))
        self._check_queue.appendleft(record.id)

    def _tip(self) -> BranchTip:
        return find_run_tip(self.gate.context.repository, self.gate.setup, self.journal)

    def _submit(self, task: str, name: str, work: Callable[[], StageResult]) -> None:
        attempt = self.journal.records[task].attempt
        agents = {"execute": self.gate.setup.executor, "check": "engine", "review": self.gate.setup.architect}
        step = TelemetryRow(
            run_id=self.gate.context.run_id,
            step=f"{task}/{name}",
            agent=agents[name],
            started_at=_now(),
            retry_count=attempt - 1,
        )
        self._stages[self._pool.submit(self._run_timed, step, work)] = _Stage(task, name)

    def _run_timed(self, step: TelemetryRow, work: Callable[[], StageResult]) -> StageResult:
        """Do the work, with a telemetry row when it begins and one when it ends."""
        ledger = self.gate.context.ledger
        ledger.append(step)
        result = work()
        has_failed = isinstance(result, AttemptFailed | ReviewFailed)
        status = StepStatus.NEEDS_REVISION if has_failed else StepStatus.DONE
        ledger.append(step.model_copy(update={"completed_at": _now(), "status": status}))
        return result


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
