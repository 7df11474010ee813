"""Finish a run: must-haves, the outcome, and the pages for people. Everything is derived from the journal."""

from __future__ import annotations

import json
from pathlib import Path

from proofstone.agents.rules.budget import build_cost_fields
from proofstone.common.models import Phase, Verdict
from proofstone.faults import fault_point
from proofstone.gate.context import GateContext, GateJournal
from proofstone.gate.models import GateReport, MustHaveResult, RunOutcome, RunView, TaskRecord, TaskReport
from proofstone.gate.rules.attempt_results import list_attempt_results
from proofstone.gate.rules.criteria import check_must_haves
from proofstone.gate.rules.direction import rate_run
from proofstone.gate.rules.judgements import explain_unjudged, find_rejected
from proofstone.gate.rules.pages import (
    name_state_page,
    name_summary_page,
    name_temporary_page,
    render_state_page,
    render_summary_page,
)
from proofstone.gate.rules.questions import build_gate_result
from proofstone.gate.rules.state_machine import decide_run_outcome
from proofstone.gate.view import build_run_view
from proofstone.git.objects import read_file_at
from proofstone.git.pending_commit import find_run_folder
from proofstone.git.store import unpin
from proofstone.ledger.models import CheckRow, EventRow
from proofstone.ledger.repository_anchors import anchor_head
from proofstone.machine.files import remove_folder


def finish_run(gate: GateContext, tip: str, budget: str) -> GateReport:
    """Record the outcome, write the pages and clean up, when nothing more can be done now."""
    journal = gate.journal
    must_haves = _check_must_haves(gate, tip)
    run_outcome, reason = decide_run_outcome(
        gate.plan,
        journal.records,
        must_haves,
        recent=journal.recently_judged,
        budget=budget,
        rejected=_explain_rejected(journal),
        unjudged=_explain_open(journal),
    )
    spent = gate.meter.get_spent()
    if requirements := journal.list_requirements():
        journal.note("run.requirements", results=[result.model_dump(mode="json") for result in requirements])
    journal.note("run.finished", outcome=run_outcome.value, reason=reason, spent=spent.model_dump(mode="json"))
    view = build_run_view(gate.setup, journal, home=gate.context.home, running=False, spent=spent)
    write_state_page(gate.plan_file, view)
    summary = gate.plan_file.with_name(name_summary_page(gate.plan_file.name))
    if run_outcome is RunOutcome.PASSED:
        _write(summary, render_summary_page(view), view.run_id)
    problem = anchor_head(gate.context.ledger, gate.context.home, gate.context.repository)
    notes = (
        *view.warnings,
        *((f"the head of the ledger is not anchored: {problem}",) if problem else ()),
    )
    _save_results(gate, view)
    _remove_work_trees(gate, view)
    if run_outcome is RunOutcome.PASSED:
        unpin(gate.context.store, gate.context.run_id)
    return build_gate_report(
        view, run_outcome, reason, bundle=summary if run_outcome is RunOutcome.PASSED else None, notes=notes
    )


def _explain_rejected(journal: GateJournal) -> str:
    """Return which criterion a person says is not met; "" if there is none."""
    rejected = find_rejected(journal.list_criteria(), journal.read_judgements())
    return "; ".join(f"{task or 'no task'}: a person says that this is not met: {text}" for task, text in rejected)


def _explain_open(journal: GateJournal) -> str:
    """Return which criteria nobody has judged, and which added requirement is not met; "" if there are none."""
    if unjudged := journal.find_unjudged():
        return explain_unjudged(unjudged)
    unmet = [requirement for requirement in journal.list_requirements() if not requirement.is_met]
    if not unmet or journal.setup.defers_criteria:
        return ""
    return "; ".join(f"not met: {requirement.text} ({requirement.detail})" for requirement in unmet)


def build_gate_report(
    view: RunView, run_outcome: RunOutcome, reason: str, *, bundle: Path | None, notes: tuple[str, ...] = ()
) -> GateReport:
    """Build the report of a run."""
    tasks = tuple(
        TaskReport(
            id=task.record.id,
            name=view.plan.get_task(task.record.id).name,
            state=task.record.state,
            attempts=task.record.attempt,
            confidence=task.confidence,
            reasons=task.reasons,
            commit=task.record.commit,
            failures=task.record.failures,
            concerns=task.record.concerns,
            accepted=task.record.evidence.accepted if task.record.evidence else (),
            disputes=task.record.disputes,
            criteria=task.criteria,
            override=task.record.override,
            asks=task.asks,
        )
        for task in view.tasks
    )
    committed = [
        (step.seq, task.record.commit) for task in view.tasks for step in task.steps if step.kind == "committed"
    ]
    rating = rate_run(run_outcome, reason, [task.record for task in view.tasks], view.must_haves)
    return GateReport(
        run_id=view.run_id,
        outcome=run_outcome,
        reason=reason,
        confidence=rating.confidence,
        reasons=rating.reasons,
        tasks=tasks,
        commit=max(committed)[1] if committed else None,
        branch=view.branch,
        must_haves=view.must_haves,
        requirements=view.requirements,
        asks=view.asks,
        bundle=str(bundle) if bundle else None,
        state=str(Path(view.plan_path).with_name(name_state_page(Path(view.plan_path).name))),
        ledger=view.ledger,
        cost=build_cost_fields(view.spent),
        notes=notes,
    )


def _check_must_haves(gate: GateContext, tip: str) -> tuple[MustHaveResult, ...]:
    """Check the must-haves in the tree of the branch, once the last task is finished."""
    must_haves = gate.plan.must_haves
    is_empty = not (must_haves.artifacts or must_haves.key_links or must_haves.truths)
    if is_empty or not all(record.is_finished for record in gate.journal.records.values()):
        return ()

    def read(path: str) -> str | None:
        content = read_file_at(gate.context.store.git(), tip, path)
        return content.decode("utf-8", "replace") if content is not None else None

    results = check_must_haves(must_haves, read)
    tree = gate.context.store.git().find_tree(tip)
    verdicts = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.UNVERIFIABLE}
    rows = [
        CheckRow(
            run_id=gate.context.run_id,
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
    gate.context.ledger.append(*rows)
    gate.journal.note("run.must-haves", results=[result.model_dump(mode="json") for result in results])
    return results


def write_state_page(plan_file: Path, view: RunView) -> None:
    """Write STATE.md next to the plan."""
    _write(plan_file.with_name(name_state_page(plan_file.name)), render_state_page(view), view.run_id)


def save_patch(gate: GateContext, record: TaskRecord) -> None:
    """Save the work of a task that did not pass as a patch, so that nothing is lost."""
    if record.tree is None or record.base_commit is None:
        return
    patch = gate.context.store.git().run_output("diff-tree", "-p", "--binary", record.base_commit, record.tree)
    if patch:
        (_make_run_folder(gate) / f"{record.id}.patch").write_bytes(patch)


def _save_results(gate: GateContext, view: RunView) -> None:
    """Save the complete result of every task that was begun: a ledger row each, and one file next to the patches."""
    results = [
        build_gate_result(
            gate.plan.get_task(task.record.id),
            task,
            list_attempt_results(
                zip((step.at for step in task.steps), gate.journal.read_events(task.record.id), strict=True)
            ),
        )
        for task in view.tasks
        if task.steps
    ]
    documents = [result.model_dump(mode="json") for result in results]
    rows = [
        EventRow(run_id=view.run_id, task_id=str(document["task_id"]), type="gate.result", payload=document)
        for document in documents
    ]
    gate.context.ledger.append(*rows)
    _write(
        _make_run_folder(gate) / "gate-results.json",
        json.dumps({"gate_results": documents}, indent=2) + "\n",
        view.run_id,
    )


def _make_run_folder(gate: GateContext) -> Path:
    """Return the run's own folder in the work tree, which git ignores."""
    folder = find_run_folder(gate.context.repository.root, gate.context.run_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _remove_work_trees(gate: GateContext, view: RunView) -> None:
    """Remove all work trees except those in which a person still has to work."""
    work = gate.context.home / "work" / gate.context.run_id
    in_use = {task.record.id for task in view.tasks if task.work_tree is not None}
    if not work.is_dir():
        return
    for folder in list(work.iterdir()):
        if folder.name not in in_use:
            remove_folder(folder)
    if not in_use:
        remove_folder(work)


def _write(file: Path, text: str, run_id: str) -> None:
    """Write the file atomically."""
    temporary = file.with_name(name_temporary_page(file.name, run_id))
    temporary.write_text(text, "utf-8")
    fault_point("page.before-rename")
    temporary.replace(file)
