"""The end of a run: must-haves, the outcome, and the pages that people read. All of it comes from the journal."""

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
    """Nothing more can be done now: say what became of it, and tidy up."""
    journal = gate.journal
    found = _must_haves(gate, tip)
    ended, reason = outcome(gate.plan, journal.records, found, recent=journal.recent, budget=budget)
    spent = gate.meter.spent()
    journal.note("run.finished", outcome=ended.value, reason=reason, spent=spent.model_dump(mode="json"))
    view = view_of(gate.setup, journal, home=gate.world.home, running=False, spent=spent)
    write_state(gate.plan_file, view)
    summary = gate.plan_file.with_name(summary_name(gate.plan_file.name))
    if ended is RunOutcome.PASSED:
        _write(summary, summary_page(view), view.run_id)
    problem = anchor_head(gate.world.ledger, gate.world.home, gate.world.repository)
    notes = (
        *view.warnings,
        *_not_taken_in(gate),
        *((f"the ledger's head is not anchored: {problem}",) if problem else ()),
    )
    _keep_results(gate, view)
    _tidy(gate, view)
    if ended is RunOutcome.PASSED:
        let_go(gate.world.store, gate.world.run_id)
    return report_of(view, ended, reason, bundle=summary if ended is RunOutcome.PASSED else None, notes=notes)


def _not_taken_in(gate: GateWorld) -> tuple[str, ...]:
    """What a person has added and no task has taken in: here nobody plans. A part of a larger run leaves it to that."""
    if gate.setup.parent:
        return ()
    taken = {amendment.number for amendment in gate.journal.amendments}
    left = [item for item in added_to(gate.world.ledger, gate.world.run_id) if item.number not in taken]
    return tuple(f"added, and taken in by no task: {item.text}; plan it" for item in left)


def report_of(
    view: RunView, ended: RunOutcome, reason: str, *, bundle: Path | None, notes: tuple[str, ...] = ()
) -> GateReport:
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
        outcome=ended,
        reason=reason,
        confidence=rated(ended, reason, [task.record for task in view.tasks], view.must_haves).confidence,
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


def _must_haves(gate: GateWorld, tip: str) -> tuple[MustHaveResult, ...]:
    """Looked at when the last task is finished, in the tree that the branch holds then."""
    wanted = gate.plan.must_haves
    nothing = not (wanted.artifacts or wanted.key_links or wanted.truths)
    if nothing or not all(record.finished for record in gate.journal.records.values()):
        return ()

    def read(path: str) -> str | None:
        content = file_at(gate.world.store.git(), tip, path)
        return content.decode("utf-8", "replace") if content is not None else None

    found = look(wanted, read)
    tree = gate.world.store.git().tree_of(tip)
    verdicts = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.UNVERIFIABLE}
    rows = [
        CheckRow(
            run_id=gate.world.run_id,
            task_id="must-haves",
            phase=Phase.AFTER,
            check_name=f"must-have {number}",
            tool="proofstone",
            output_snippet=f"{one.what} {one.detail}"[:500],
            state=verdicts[one.holds],
            tree=tree,
        )
        for number, one in enumerate(found, start=1)
    ]
    gate.world.ledger.append(*rows)
    gate.journal.note("run.must-haves", results=[item.model_dump(mode="json") for item in found])
    return found


def write_state(plan_file: Path, view: RunView) -> None:
    _write(plan_file.with_name(state_name(plan_file.name)), state_page(view), view.run_id)


def keep_patch(gate: GateWorld, record: TaskRecord) -> None:
    """What a task that did not pass has left, where the person can apply it: nothing is lost."""
    if record.tree is None or record.base_commit is None:
        return
    patch = gate.world.store.git().out("diff-tree", "-p", "--binary", record.base_commit, record.tree)
    if patch:
        (_own_folder(gate) / f"{record.id}.patch").write_bytes(patch)


def _keep_results(gate: GateWorld, view: RunView) -> None:
    """The complete result of every task that was begun: a row each, and one file beside the patches."""
    results = [gate_result(gate.plan.task(task.record.id), task) for task in view.tasks if task.steps]
    documents = [result.model_dump(mode="json") for result in results]
    rows = [
        EventRow(run_id=view.run_id, task_id=str(document["task_id"]), type="gate.result", payload=document)
        for document in documents
    ]
    gate.world.ledger.append(*rows)
    _write(
        _own_folder(gate) / "gate-results.json", json.dumps({"gate_results": documents}, indent=2) + "\n", view.run_id
    )


def _own_folder(gate: GateWorld) -> Path:
    """The run's own folder in the work tree, which git does not see."""
    folder = own_folder(gate.world.repository.root, gate.world.run_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _tidy(gate: GateWorld, view: RunView) -> None:
    """No work tree stays behind but those in which a person is asked to work."""
    work = gate.world.home / "work" / gate.world.run_id
    wanted = {task.record.id for task in view.tasks if task.work_tree is not None}
    if not work.is_dir():
        return
    for place in list(work.iterdir()):
        if place.name not in wanted:
            remove(place)
    if not wanted:
        remove(work)


def _write(file: Path, text: str, run_id: str) -> None:
    """All of it or nothing."""
    aside = file.with_name(aside_name(file.name, run_id))
    aside.write_text(text, "utf-8")
    fault_point("page.before-rename")
    aside.replace(file)
