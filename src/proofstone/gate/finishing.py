"""Finish a run: must-haves, the outcome, and the pages for people. Everything is derived from the journal."""

from __future__ import annotations

import json
from pathlib import Path

from proofstone.agents.rules.budget import cost
from proofstone.common.models import Phase, Verdict
from proofstone.faults import fault_point
from proofstone.gate.context import GateWorld
from proofstone.gate.models import GateReport, MustHaveResult, RunOutcome, RunView, TaskRecord, TaskReport
from proofstone.gate.rules.answers import gate_result
from proofstone.gate.rules.criteria import look
from proofstone.gate.rules.direction import rated
from proofstone.gate.rules.machine import outcome
from proofstone.gate.rules.pages import aside_name, state_name, state_page, summary_name, summary_page
from proofstone.gate.view import view_of
from proofstone.git.objects import file_at
from proofstone.git.pending import own_folder
from proofstone.git.store import let_go
from proofstone.ledger.models import CheckRow, EventRow
from proofstone.ledger.repository_anchors import anchor_head
from proofstone.machine.files import remove
from proofstone.supervision.attended import added_to


def finished(gate: GateWorld, tip: str, budget: str) -> GateReport:
    """Record the outcome, write the pages and clean up, when nothing more can be done now."""
    journal = gate.journal
    must_haves = _check_must_haves(gate, tip)
    run_outcome, reason = outcome(gate.plan, journal.records, must_haves, recent=journal.recent, budget=budget)
    spent = gate.meter.spent()
    journal.note("run.finished", outcome=run_outcome.value, reason=reason, spent=spent.model_dump(mode="json"))
    view = view_of(gate.setup, journal, home=gate.world.home, running=False, spent=spent)
    write_state(gate.plan_file, view)
    summary = gate.plan_file.with_name(summary_name(gate.plan_file.name))
    if run_outcome is RunOutcome.PASSED:
        _write(summary, summary_page(view), view.run_id)
    problem = anchor_head(gate.world.ledger, gate.world.home, gate.world.repository)
    notes = (
        *view.warnings,
        *_list_unplanned_requirements(gate),
        *((f"the head of the ledger is not anchored: {problem}",) if problem else ()),
    )
    _save_results(gate, view)
    _remove_work_trees(gate, view)
    if run_outcome is RunOutcome.PASSED:
        let_go(gate.world.store, gate.world.run_id)
    return report_of(
        view, run_outcome, reason, bundle=summary if run_outcome is RunOutcome.PASSED else None, notes=notes
    )


def _list_unplanned_requirements(gate: GateWorld) -> tuple[str, ...]:
    """Return notes about requirements that a person added and that no task includes.

    If this run is part of a larger one, that one reports them.
    """
    if gate.setup.parent:
        return ()
    planned = {amendment.number for amendment in gate.journal.amendments}
    remaining = [
        requirement
        for requirement in added_to(gate.world.ledger, gate.world.run_id)
        if requirement.number not in planned
    ]
    return tuple(
        f"you added this requirement, but no task includes it: {requirement.text}; plan it" for requirement in remaining
    )


def report_of(
    view: RunView, run_outcome: RunOutcome, reason: str, *, bundle: Path | None, notes: tuple[str, ...] = ()
) -> GateReport:
    """Build the report of a run."""
    tasks = tuple(
        TaskReport(
            id=task.record.id,
            name=view.plan.task(task.record.id).name,
            state=task.record.state,
            attempts=task.record.attempt,
            confidence=task.confidence,
            commit=task.record.commit,
            failures=task.record.failures,
            concerns=task.record.concerns,
            override=task.record.override,
            asks=task.asks,
        )
        for task in view.tasks
    )
    committed = [
        (step.seq, task.record.commit) for task in view.tasks for step in task.steps if step.kind == "committed"
    ]
    return GateReport(
        run_id=view.run_id,
        outcome=run_outcome,
        reason=reason,
        confidence=rated(run_outcome, reason, [task.record for task in view.tasks], view.must_haves).confidence,
        tasks=tasks,
        commit=max(committed)[1] if committed else None,
        branch=view.branch,
        must_haves=view.must_haves,
        bundle=str(bundle) if bundle else None,
        state=str(Path(view.plan_path).with_name(state_name(Path(view.plan_path).name))),
        ledger=view.ledger,
        cost=cost(view.spent),
        notes=notes,
    )


def _check_must_haves(gate: GateWorld, tip: str) -> tuple[MustHaveResult, ...]:
    """Check the must-haves in the tree of the branch, once the last task is finished."""
    must_haves = gate.plan.must_haves
    is_empty = not (must_haves.artifacts or must_haves.key_links or must_haves.truths)
    if is_empty or not all(record.finished for record in gate.journal.records.values()):
        return ()

    def read(path: str) -> str | None:
        content = file_at(gate.world.store.git(), tip, path)
        return content.decode("utf-8", "replace") if content is not None else None

    results = look(must_haves, read)
    tree = gate.world.store.git().tree_of(tip)
    verdicts = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.UNVERIFIABLE}
    rows = [
        CheckRow(
            run_id=gate.world.run_id,
            task_id="must-haves",
            phase=Phase.AFTER,
            check_name=f"must-have {number}",
            tool="proofstone",
            output_snippet=f"{result.what} {result.detail}"[:500],
            state=verdicts[result.holds],
            tree=tree,
        )
        for number, result in enumerate(results, start=1)
    ]
    gate.world.ledger.append(*rows)
    gate.journal.note("run.must-haves", results=[result.model_dump(mode="json") for result in results])
    return results


def write_state(plan_file: Path, view: RunView) -> None:
    """Write STATE.md next to the plan."""
    _write(plan_file.with_name(state_name(plan_file.name)), state_page(view), view.run_id)


def keep_patch(gate: GateWorld, record: TaskRecord) -> None:
    """Save the work of a task that did not pass as a patch, so that nothing is lost."""
    if record.tree is None or record.base_commit is None:
        return
    patch = gate.world.store.git().out("diff-tree", "-p", "--binary", record.base_commit, record.tree)
    if patch:
        (_make_run_folder(gate) / f"{record.id}.patch").write_bytes(patch)


def _save_results(gate: GateWorld, view: RunView) -> None:
    """Save the complete result of every task that was begun: a ledger row each, and one file next to the patches."""
    results = [gate_result(gate.plan.task(task.record.id), task) for task in view.tasks if task.steps]
    documents = [result.model_dump(mode="json") for result in results]
    rows = [
        EventRow(run_id=view.run_id, task_id=str(document["task_id"]), type="gate.result", payload=document)
        for document in documents
    ]
    gate.world.ledger.append(*rows)
    _write(
        _make_run_folder(gate) / "gate-results.json",
        json.dumps({"gate_results": documents}, indent=2) + "\n",
        view.run_id,
    )


def _make_run_folder(gate: GateWorld) -> Path:
    """Return the run's own folder in the work tree, which git ignores."""
    folder = own_folder(gate.world.repository.root, gate.world.run_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _remove_work_trees(gate: GateWorld, view: RunView) -> None:
    """Remove all work trees except those in which a person still has to work."""
    work = gate.world.home / "work" / gate.world.run_id
    in_use = {task.record.id for task in view.tasks if task.work_tree is not None}
    if not work.is_dir():
        return
    for folder in list(work.iterdir()):
        if folder.name not in in_use:
            remove(folder)
    if not in_use:
        remove(work)


def _write(file: Path, text: str, run_id: str) -> None:
    """Write the file atomically."""
    temporary = file.with_name(aside_name(file.name, run_id))
    temporary.write_text(text, "utf-8")
    fault_point("page.before-rename")
    temporary.replace(file)
