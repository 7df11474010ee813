"""Derive the view of a run from its journal, at any time and from any process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from proofstone.agents.executors.people import HumanArchitect, HumanExecutor
from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.spending import list_spending, read_dispatch_records
from proofstone.common.models import Budget, BudgetUsage
from proofstone.errors import InputError, LedgerError
from proofstone.gate.architect_review import describe_escalation
from proofstone.gate.context import GateJournal
from proofstone.gate.execution import locate_work_folder
from proofstone.gate.models import GateSetup, MustHaveResult, OverrideAction, RunOutcome, RunView, TaskView
from proofstone.gate.rules.direction import rate_task
from proofstone.gate.rules.judgements import list_criterion_results, write_criteria_question
from proofstone.gate.rules.state_machine import (
    can_unblock,
    explain_escalation,
    find_unfinished_dependencies,
    is_ready,
    must_ask_person_to_review,
)
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow
from proofstone.plans.models import Plan, PlanTask
from proofstone.plans.parser import read_plan

_BUDGET = "run.budget"
DEADLINES_RAISED: Final = "run.deadlines"
"""The event that says which deadlines a person has raised since the run began."""


def read_gate_setup(ledger: Ledger, run_id: str) -> GateSetup:
    """Return what the run was started with."""
    for stored in ledger.read(EventRow, run_id=run_id, type="run.started"):
        if stored.row.payload.get("command") == "gate":
            return GateSetup.model_validate(stored.row.payload)
    raise InputError(f"{run_id}: is not a run of `proofstone gate`", hint="`proofstone runs` lists them")


def load_gate_plan(setup: GateSetup, artifacts: ArtifactStore) -> Plan:
    """Return the plan as it was when the run began."""
    text = artifacts.read(setup.plan_artifact).decode("utf-8")
    plan, _ = read_plan(text, setup.plan_path)
    if plan is None:
        raise LedgerError(f"{setup.plan_artifact[:12]}: is not the plan with which the run began")
    return plan


def build_run_view(
    setup: GateSetup,
    journal: GateJournal,
    *,
    home: Path,
    running: bool,
    questions: Mapping[str, str] | None = None,
    spent: BudgetUsage | None = None,
) -> RunView:
    """Build the view of a run. `spent` is what agents spent, if that is known without reading the ledger."""
    events = journal.run_events
    last = [event for event in events if event.row.type not in (_BUDGET, DEADLINES_RAISED)][-1]
    outcome = RunOutcome(str(last.row.payload["outcome"])) if last.row.type == "run.finished" else None
    steps = [step.at for steps in journal.steps.values() for step in steps]
    must_have_payloads = [event.row.payload for event in events if event.row.type == "run.must-haves"]
    return RunView(
        run_id=journal.run_id,
        plan=journal.plan,
        plan_path=setup.plan_path,
        repository=setup.repository,
        branch=setup.branch,
        base_commit=setup.base_commit,
        executor=setup.executor,
        architect=setup.architect,
        started_at=events[0].ts,
        updated_at=max((last.ts, *steps)),
        running=running,
        outcome=outcome,
        interrupted=outcome is None and not running,
        reason=str(last.row.payload.get("reason", "")),
        tasks=tuple(
            _view_task(setup, journal, task, home, (questions or {}).get(task.id, ""), running=running)
            if outcome is not RunOutcome.CANCELLED
            else TaskView(record=journal.records[task.id], steps=tuple(journal.steps[task.id]))
            for task in journal.plan.tasks
        ),
        must_haves=tuple(
            MustHaveResult.model_validate(result)
            for payload in must_have_payloads[-1:]
            if isinstance(results := payload["results"], list)
            for result in results
        ),
        requirements=journal.list_requirements(),
        asks=_find_run_question(journal, outcome, running=running),
        warnings=_list_warnings(setup, journal),
        spent=spent if spent is not None else _sum_spending(journal, last.row),
        budget=find_run_budget(setup, journal),
        ledger=str(ledger_path(home)),
    )


def find_run_budget(setup: GateSetup, journal: GateJournal) -> Budget:
    """Return what agents may spend: as the run began, or as a person changed it since."""
    budgets = [event.row.payload["budget"] for event in journal.run_events if event.row.type == _BUDGET]
    return Budget.model_validate(budgets[-1]) if budgets else setup.budget


def _sum_spending(journal: GateJournal, last: EventRow) -> BudgetUsage:
    """Return the amount from the end of the run, else the sum over all dispatches."""
    if "spent" in last.payload:
        return BudgetUsage.model_validate(last.payload["spent"])
    recorded = read_dispatch_records(journal.ledger, journal.run_id)
    return sum((amount for _, _, amount in list_spending(recorded)), BudgetUsage())


def _view_task(
    setup: GateSetup, journal: GateJournal, task: PlanTask, home: Path, question: str, *, running: bool
) -> TaskView:
    record = journal.records[task.id]
    folder = locate_work_folder(home, journal.run_id, task.id) / "files"
    by_person = setup.executor == HumanExecutor.spec and not record.is_finished
    rating = rate_task(record)
    return TaskView(
        record=record,
        steps=tuple(journal.steps[task.id]),
        waits_for=_find_awaited(task, journal),
        asks=question or _find_question(setup, journal, task, running=running),
        work_tree=str(folder) if by_person and folder.is_dir() else None,
        confidence=rating.confidence,
        reasons=rating.reasons,
        criteria=list_criterion_results(task, record, journal.read_judgements(), journal.amendments),
    )


def _find_awaited(task: PlanTask, journal: GateJournal) -> tuple[str, ...]:
    """Return the unfinished tasks that a task waits for: by the plan, or because its executor says so."""
    record = journal.records[task.id]
    if record.state is TaskState.PENDING:
        return find_unfinished_dependencies(task, journal.records)
    return tuple(id for id in record.waits_for if can_unblock(record) and not journal.records[id].is_finished)


def _find_run_question(journal: GateJournal, outcome: RunOutcome | None, *, running: bool) -> str:
    """Return the question about the criteria that nobody has judged. It is asked once, when all tasks are finished."""
    if running or outcome in (RunOutcome.PASSED, RunOutcome.CANCELLED):
        return ""
    return write_criteria_question(journal.find_unjudged())


def _find_question(setup: GateSetup, journal: GateJournal, task: PlanTask, *, running: bool) -> str:
    """Return the open question for a person about the task, or ""."""
    record = journal.records[task.id]
    if record.checkpoint and is_ready(task, journal.records):
        return task.prompt or task.name
    if record.state is TaskState.EXECUTING and setup.executor == HumanExecutor.spec:
        return "do the task, then report that it is done"
    if record.state is TaskState.REVIEWING and record.asked is not None:
        return describe_escalation(record.asked)
    if must_ask_person_to_review(record):
        return explain_escalation(record)
    if record.state is TaskState.APPROVED and not record.is_finished and not running:
        return f"it is approved but not committed yet: `proofstone resume {journal.run_id}` tries again"
    by_person = setup.architect == HumanArchitect.spec or not running
    if record.state is TaskState.REVIEWING and by_person:
        return f"review it (.proofstone/{journal.run_id}/{task.id}.patch), and approve or reject it"
    if record.state in (TaskState.SKIPPED, TaskState.FORCED) and not record.is_finished:
        if setup.parent:
            return "its work is no part of the run (it is kept as a patch): say that it is done, to go on without it"
        if not record.has_work:
            return f"it has left nothing to commit: do it yourself on {setup.branch} if it is needed; then say so"
        return f"commit it yourself to {setup.branch}, then say that it is done"
    return explain_escalation(record)


def _list_warnings(setup: GateSetup, journal: GateJournal) -> tuple[str, ...]:
    descriptions = {
        OverrideAction.SKIP: "was skipped and is unverified",
        OverrideAction.FORCE: "was FORCED past the gate",
    }
    override_warnings = [
        f"{journal.plan.get_task(id).name} ({id}) {descriptions[record.override.action]}: {record.override.reason} "
        f"({record.override.by}, {record.override.at})"
        for id, record in journal.records.items()
        if record.override is not None
    ]
    raised = [event.row.payload for event in journal.run_events if event.row.type == DEADLINES_RAISED][-1:]
    raised_warnings = [
        f"deadlines were raised since the run began: {name} = {seconds}"
        for payload in raised
        for name, seconds in payload.items()
    ]
    return (*setup.notes, *raised_warnings, *override_warnings)
