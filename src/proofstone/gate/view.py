"""A run as its journal tells it, at any time and from any process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proofstone.agents.executors.people import HumanArchitect, HumanExecutor
from proofstone.agents.roles.models.gate import TaskState
from proofstone.agents.spending import on_record, spent_so_far
from proofstone.common.models import Budget, Spent
from proofstone.errors import InputError, LedgerError
from proofstone.gate.context import Journal
from proofstone.gate.executing import work_folder
from proofstone.gate.models import GateSetup, MustHaveResult, OverrideAction, RunOutcome, RunView, TaskView
from proofstone.gate.reviewing import asked_in_words
from proofstone.gate.rules.machine import escalation, ready, waiting_for
from proofstone.gate.rules.passing import confidence
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow
from proofstone.plans.models import Plan, PlanTask
from proofstone.plans.reading import read_plan

_BUDGET = "run.budget"


def setup_of(ledger: Ledger, run_id: str) -> GateSetup:
    """What the run was started with."""
    for stored in ledger.read(EventRow, run_id=run_id, type="run.started"):
        if stored.row.payload.get("command") == "gate":
            return GateSetup.model_validate(stored.row.payload)
    raise InputError(f"{run_id}: is no run of `proofstone gate`", hint="`proofstone runs` lists them")


def plan_of(setup: GateSetup, artifacts: ArtifactStore) -> Plan:
    """The plan as it was when the run began."""
    text = artifacts.read(setup.plan_artifact).decode("utf-8")
    plan, _ = read_plan(text, setup.plan_path)
    if plan is None:
        raise LedgerError(f"{setup.plan_artifact[:12]}: is not the plan that the run began with")
    return plan


def view_of(
    setup: GateSetup,
    journal: Journal,
    *,
    home: Path,
    running: bool,
    asked: Mapping[str, str] | None = None,
    spent: Spent | None = None,
) -> RunView:
    """`spent`: by agents, where that is known without reading it from the ledger."""
    events = journal.run_events
    last = [event for event in events if event.row.type != _BUDGET][-1]
    ended = last.row.type == "run.finished"
    steps = [step.at for steps in journal.steps.values() for step in steps]
    must = [event.row.payload for event in events if event.row.type == "run.must-haves"]
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
        outcome=RunOutcome(str(last.row.payload["outcome"])) if ended else None,
        interrupted=not ended and not running,
        reason=str(last.row.payload.get("reason", "")),
        tasks=tuple(
            _task(setup, journal, task, home, (asked or {}).get(task.id, ""), running=running)
            for task in journal.plan.tasks
        ),
        must_haves=tuple(
            MustHaveResult.model_validate(item)
            for payload in must[-1:]
            if isinstance(listed := payload["results"], list)
            for item in listed
        ),
        warnings=_warnings(setup, journal),
        spent=spent if spent is not None else _spent(journal, last.row),
        budget=budget_of(setup, journal),
        ledger=str(ledger_path(home)),
    )


def budget_of(setup: GateSetup, journal: Journal) -> Budget:
    """What agents may spend: as the run began, or as a person has said since."""
    said = [event.row.payload["budget"] for event in journal.run_events if event.row.type == _BUDGET]
    return Budget.model_validate(said[-1]) if said else setup.budget


def _spent(journal: Journal, last: EventRow) -> Spent:
    """As the end of the run says it, else summed up."""
    if "spent" in last.payload:
        return Spent.model_validate(last.payload["spent"])
    recorded = on_record(journal.ledger, journal.run_id)
    return sum((amount for _, _, amount in spent_so_far(recorded)), Spent())


def _task(setup: GateSetup, journal: Journal, task: PlanTask, home: Path, asked: str, *, running: bool) -> TaskView:
    record = journal.records[task.id]
    place = work_folder(home, journal.run_id, task.id) / "files"
    by_person = setup.executor == HumanExecutor.spec and not record.finished
    sure = record.evidence is not None and record.state is TaskState.APPROVED
    return TaskView(
        record=record,
        steps=tuple(journal.steps[task.id]),
        waits_for=waiting_for(task, journal.records) if record.state is TaskState.PENDING else (),
        asks=asked or _asks(setup, journal, task, running=running),
        work_tree=str(place) if by_person and place.is_dir() else None,
        confidence=confidence(record.evidence, record.verdicts) if sure and record.evidence else None,
    )


def _asks(setup: GateSetup, journal: Journal, task: PlanTask, *, running: bool) -> str:
    """What a person is asked about the task, if anything."""
    record = journal.records[task.id]
    if record.checkpoint and ready(task, journal.records):
        return task.prompt or task.name
    if record.state is TaskState.EXECUTING and setup.executor == HumanExecutor.spec:
        return "do the task, then say that it is done"
    if record.state is TaskState.REVIEWING and record.asked is not None:
        return asked_in_words(record.asked)
    if record.state is TaskState.APPROVED and not record.finished and not running:
        return f"it is approved and not committed yet: `proofstone resume {journal.run_id}` tries again"
    by_person = setup.architect == HumanArchitect.spec or not running
    if record.state is TaskState.REVIEWING and by_person:
        return f"look at it (.proofstone/{journal.run_id}/{task.id}.patch), and approve or reject it"
    if record.state in (TaskState.SKIPPED, TaskState.FORCED) and not record.finished:
        return f"commit it yourself to {setup.branch}, then say that it is done"
    return escalation(record)


def _warnings(setup: GateSetup, journal: Journal) -> tuple[str, ...]:
    words = {OverrideAction.SKIP: "was skipped and is unverified", OverrideAction.FORCE: "was FORCED past the gate"}
    told = [
        f"{journal.plan.task(id).name} ({id}) {words[record.override.action]}: {record.override.reason} "
        f"({record.override.by}, {record.override.at})"
        for id, record in journal.records.items()
        if record.override is not None
    ]
    return (*setup.notes, *told)
