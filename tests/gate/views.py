"""Runs to look at: made of real events, through the real table, so that no view is one that cannot happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofstone.agents.roles.models.gate import (
    ArchitectDecision,
    ArchitectVerdict,
    AttemptFailure,
    ExecutorResult,
    ExecutorStatus,
    FailureReason,
    FailureType,
)
from proofstone.common.models import Confidence, Verdict
from proofstone.gate.models import (
    GATE_POLICY,
    AttemptApproved,
    AttemptChecked,
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    CriterionLink,
    Evidence,
    GateReport,
    MustHaveResult,
    Override,
    OverrideAction,
    RunOutcome,
    RunView,
    TaskBlocked,
    TaskCommitted,
    TaskConfirmed,
    TaskEvent,
    TaskOverridden,
    TaskRecord,
    TaskReport,
    TaskRetried,
    TaskStep,
    TaskView,
    VerifyRun,
)
from proofstone.gate.rules.direction import add_direction
from proofstone.gate.rules.judgements import list_criterion_results
from proofstone.gate.rules.state_machine import apply_task_event, explain_escalation
from proofstone.plans.models import Plan, PlanTask, TaskType

RUN = "20260226T143000Z-abc123"
TREE, BASE, COMMIT = "a" * 40, "b" * 40, "c" * 40
SUCCESS = ExecutorResult(status=ExecutorStatus.SUCCESS)
RULES = ArchitectVerdict(verdict=ArchitectDecision.APPROVED, by="rules", concerns=("the name is odd",))


def started(attempt: int = 1) -> AttemptStarted:
    return AttemptStarted(attempt=attempt, base_commit=BASE, tree=TREE)


def executed() -> AttemptExecuted:
    return AttemptExecuted(claim=SUCCESS, tree=TREE)


def checked(*criteria: CriterionLink) -> AttemptChecked:
    evidence = Evidence(
        tree=TREE,
        base_commit=BASE,
        claim=SUCCESS,
        verify=(VerifyRun(command="pytest -q", exit_code=0, verdict=Verdict.PASS),),
        passing=("tests", "verify"),
        large=False,
        failing=(),
        regressions=(),
        undeclared=(),
        changed=("src/shop.py",),
        criteria=criteria or (CriterionLink(criterion="all tests pass", check="verify"),),
        confidence=Confidence.HIGH,
    )
    return AttemptChecked(evidence=evidence, commit=COMMIT, rules=RULES)


def failed(kind: FailureType = FailureType.VERIFY_FAILURE, attempt: int = 1, error: str = "2 tests fail") -> TaskEvent:
    reasons = (
        FailureReason(check="verify", detail=error),
        FailureReason(check="tests", detail="shop fails", artifact="d" * 64),
    )
    return AttemptFailed(failure=AttemptFailure(attempt=attempt, type=kind, error=error, reasons=reasons))


def directed_failures(count: int) -> tuple[TaskEvent, ...]:
    """Attempts that fail alike, each recorded with what the controller says to it, up to the next one."""
    record, events = TaskRecord(id="task-01"), list[TaskEvent]()
    for attempt in range(1, count + 1):
        reason = FailureReason(check="verify", detail="2 tests fail")
        failure = AttemptFailure(
            attempt=attempt,
            type=FailureType.VERIFY_FAILURE,
            error="2 tests fail",
            reasons=(reason,),
            passed=("syntax",),
        )
        told = AttemptFailed(failure=add_direction(failure, record, elapsed_ms=0, minutes=480))
        new = (started(attempt), executed(), told, TaskRetried(by=GATE_POLICY))
        events += new
        for event in new:
            record = apply_task_event(record, event)
    return (*events, started(count + 1))


def overridden(action: OverrideAction = OverrideAction.SKIP) -> TaskOverridden:
    category = "verify-unavailable" if action is OverrideAction.SKIP else None
    return TaskOverridden(
        override=Override(
            action=action,
            reason="the payment sandbox is down",
            category=category,
            by="ada",
            at="2026-02-26T15:00:00Z",
        )
    )


TO_REVIEW = (started(), executed(), checked())
PASSED = (*TO_REVIEW, AttemptApproved(verdicts=(RULES,)), TaskCommitted(commit=COMMIT, tree=TREE))
THRICE_FAILED = tuple(
    event
    for attempt in (1, 2, 3)
    for event in (
        *((TaskRetried(by=GATE_POLICY),) if attempt > 1 else ()),
        started(attempt),
        executed(),
        failed(attempt=attempt),
    )
)
BLOCKED = (started(), TaskBlocked(error="there is no compiler"))
CONFIRMED = (TaskConfirmed(by="ada", note="we take the blue one"),)


def view(
    events: Mapping[str, Sequence[TaskEvent]],
    *,
    checkpoints: Sequence[str] = (),
    asks: Mapping[str, str] | None = None,
    outcome: RunOutcome | None = None,
    must_haves: tuple[MustHaveResult, ...] = (),
    warnings: tuple[str, ...] = (),
    title: str = "A shop",
    reason: str = "",
) -> RunView:
    """A run of one task for each name, with what has happened to it."""
    tasks = tuple(
        PlanTask(
            id=f"task-{number:02}",
            name=name,
            type=TaskType.DECISION if name in checkpoints else TaskType.AUTO,
            done=("all tests pass",),
        )
        for number, name in enumerate(events, start=1)
    )
    seen = [_task(task, events[task.name], (asks or {}).get(task.name)) for task in tasks]
    return RunView(
        run_id=RUN,
        plan=Plan(path="PLAN.md", title=title, phase="03-shop", plan="01", tasks=tasks),
        plan_path="plans/PLAN.md",
        repository="/nowhere",
        branch="proofstone/a-shop",
        base_commit=BASE,
        executor="cmd:./agent.sh",
        architect="rules",
        started_at="2026-02-26T14:30:00Z",
        updated_at="2026-02-26T14:33:20Z",
        running=outcome is None,
        outcome=outcome,
        interrupted=False,
        reason=reason,
        tasks=tuple(seen),
        must_haves=must_haves,
        warnings=warnings,
        ledger="ledger.db",
    )


def _task(task: PlanTask, events: Sequence[TaskEvent], asks: str | None) -> TaskView:
    record = TaskRecord(id=task.id, checkpoint=task.type.is_checkpoint)
    steps = []
    for number, event in enumerate(events):
        record = apply_task_event(record, event)
        at = f"2026-02-26T14:30:{number:02}.000Z"
        steps.append(TaskStep(seq=number + 1, at=at, attempt=record.attempt, kind=event.kind, state=record.state))
    told = explain_escalation(record) if asks is None else asks
    confidence = Confidence.MEDIUM if record.commit else None
    criteria = list_criterion_results(task, record)
    return TaskView(record=record, steps=tuple(steps), asks=told, confidence=confidence, criteria=criteria)


def report(seen: RunView, outcome: RunOutcome) -> GateReport:
    return GateReport(
        run_id=seen.run_id,
        outcome=outcome,
        reason=seen.reason,
        confidence=Confidence.MEDIUM,
        tasks=tuple(
            TaskReport(
                id=task.record.id,
                name=seen.plan.get_task(task.record.id).name,
                state=task.record.state,
                attempts=task.record.attempt,
                confidence=task.confidence,
                commit=task.record.commit,
                failures=task.record.failures,
                asks=task.asks,
            )
            for task in seen.tasks
        ),
        commit=next((task.record.commit for task in seen.tasks if task.record.commit), None),
        branch=seen.branch,
        must_haves=seen.must_haves,
        bundle="plans/SUMMARY.md" if outcome is RunOutcome.PASSED else None,
        state="plans/STATE.md",
        ledger=seen.ledger,
        notes=seen.warnings,
    )
