"""The tasks of a run of the gate: how each ended, where it stood after each attempt that did not pass, what it has
committed, and what is left of what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from proofstone.contracts.change import ChangeKind
from proofstone.contracts.gate import TaskState
from proofstone.contracts.gate_record import AttemptFailed, Committed
from proofstone.contracts.gate_report import MustHaveResult
from proofstone.contracts.pipeline.bundle import (
    ChangedFile,
    CheckedTree,
    CommitMade,
    IssueFixed,
    IssueKnown,
    LossSeen,
    RegressionSeen,
    TaskEnding,
)
from proofstone.contracts.verdict import Severity
from proofstone.core.gate.run_confidence import of_task
from proofstone.core.risk import PathChange, risk_of
from proofstone.engine.pipeline.records import RunRecord, TaskHistory

_REGRESSION = "regression"
"""The gate's own word for it, among the reasons of a failure."""


def endings(gate: RunRecord) -> Iterator[TaskEnding]:
    names = {str(payload["task_id"]): (str(payload["task"]), seq) for seq, payload in gate.of_type("gate.result")}
    for task in gate.tasks():
        record, evidence = task.record, task.record.evidence
        name, said_by = names.get(task.id, ("", None))
        yield TaskEnding(
            run_id=gate.run_id,
            iteration=gate.iteration,
            id=task.id,
            name=name,
            state=record.state,
            attempts=record.attempt,
            confidence=of_task(record),
            commit=record.commit,
            tree=evidence.tree if evidence else None,
            changed=evidence.changed if evidence else (),
            large=evidence.large if evidence else False,
            failures=record.failures,
            verdicts=record.verdicts,
            concerns=tuple(dict.fromkeys(record.concerns)),
            rows=(*task.rows(), *((said_by,) if said_by is not None else ())),
        )


def called(gate: RunRecord, task: str) -> str:
    """Later plans have tasks of the same name."""
    return task if gate.iteration == 1 else f"{gate.iteration}/{task}"


def losses(gate: RunRecord) -> Iterator[LossSeen]:
    for task in gate.tasks():
        for one in task.events:
            if isinstance(one.event, AttemptFailed) and one.event.failure.direction is not None:
                yield LossSeen(
                    of=called(gate, task.id),
                    number=one.event.failure.attempt,
                    direction=one.event.failure.direction,
                    text=one.event.failure.error,
                    rows=(one.seq,),
                )


def regressions(gate: RunRecord, *, replanned: bool) -> Iterator[RegressionSeen]:
    """Tests that passed on the base and failed on an attempt, by the failures that name them."""
    for task in gate.tasks():
        for one in task.events:
            if isinstance(one.event, AttemptFailed):
                for reason in one.event.failure.reasons:
                    if reason.check == _REGRESSION:
                        stands = not (task.record.finished or replanned)
                        name = called(gate, task.id)
                        yield RegressionSeen(task=name, what=reason.detail, stands=stands, rows=(one.seq,))


def regressed_checks(trees: Iterable[CheckedTree]) -> Iterator[RegressionSeen]:
    """Checks that passed before and do not on the tree that a task, or the run, has ended with."""
    for tree in trees:
        for line in tree.lines:
            if line.regressed:
                what = f"{line.name} passed before, and is {line.after} now"
                yield RegressionSeen(task=tree.task, what=what, stands=True, rows=line.rows)


def commits(gate: RunRecord) -> tuple[CommitMade, ...]:
    found = [
        CommitMade(
            commit=one.event.commit,
            tree=one.event.tree,
            parent=task.record.evidence.base_commit,
            task=task.id,
            rows=(*task.rows("checked")[-1:], one.seq),
        )
        for task in gate.tasks()
        for one in task.events
        if isinstance(one.event, Committed) and task.record.evidence is not None
    ]
    return tuple(sorted(found, key=lambda one: one.rows[-1]))


def changed_files(gate: RunRecord) -> tuple[ChangedFile, ...]:
    """What passed. How a file was changed is not on record, so that its risk is told from its path."""
    found: dict[str, list[int]] = {}
    for task in gate.tasks():
        if task.record.commit is not None and task.record.evidence is not None:
            for path in task.record.evidence.changed:
                found.setdefault(path, []).extend(task.rows("checked")[-1:])
    return tuple(_changed(path, rows) for path, rows in found.items())


def must_haves(gate: RunRecord) -> tuple[tuple[MustHaveResult, int], ...]:
    """As they were found last, with the row."""
    looked = list(gate.of_type("run.must-haves"))[-1:]
    return tuple(
        (MustHaveResult.model_validate(one), seq)
        for seq, payload in looked
        if isinstance(results := payload["results"], list)
        for one in results
    )


def known_issues(gate: RunRecord) -> Iterator[IssueKnown]:
    """What was found and stands: of tasks that did not pass, what is in the way; of those that did, the concerns."""
    for task in gate.tasks():
        yield from _of_task(task)
    for one, seq in must_haves(gate):
        if one.holds is not True:
            severity = Severity.MAJOR if one.holds is False else Severity.MINOR
            title = f"{one.what}: {one.detail}" if one.detail else one.what
            yield IssueKnown(severity=severity, title=title, source="must-haves", rows=(seq,))


def fixed_issues(gate: RunRecord, *, replanned: bool) -> Iterator[IssueFixed]:
    """What attempts failed for, of tasks that passed since. `replanned`: a later plan has passed in the place of this
    one, and with it whatever failed here."""
    for task in gate.tasks():
        passed = task.record.finished and task.record.override is None
        for one in task.events:
            if isinstance(one.event, AttemptFailed) and (passed or replanned):
                failure = one.event.failure
                how = f"attempt {task.record.attempt} passed" if passed else "another plan passed in its place"
                yield IssueFixed(
                    title=f"{failure.type}: {failure.error}",
                    source=f"{called(gate, task.id)}, attempt {failure.attempt}",
                    how=how,
                    rows=(one.seq, *(task.rows("approved")[-1:] if passed else ())),
                )


def _changed(path: str, rows: Sequence[int]) -> ChangedFile:
    risk = risk_of(PathChange(path=path, kind=ChangeKind.MODIFIED)).risk
    return ChangedFile.model_validate({"path": path, "risk": risk.mark, "by_path_alone": True, "rows": tuple(rows)})


def _of_task(task: TaskHistory) -> Iterator[IssueKnown]:
    record = task.record
    where = record.evidence.changed if record.evidence else ()
    if record.override is not None:
        title = f"set aside and unverified ({record.override.action}): {record.override.reason}"
        yield IssueKnown(severity=Severity.MAJOR, title=title, source=task.id, rows=task.rows("overridden"))
    elif record.state is TaskState.FAILED:
        yield IssueKnown(
            severity=Severity.CRITICAL,
            title=record.failures[-1].error,
            source=f"{task.id}, attempt {record.failures[-1].attempt}",
            rows=task.rows("failed")[-1:],
        )
    elif record.state is TaskState.BLOCKED:
        yield IssueKnown(
            severity=Severity.MAJOR, title=record.blocked_by, source=task.id, rows=task.rows("blocked")[-1:]
        )
    elif record.state is TaskState.APPROVED:
        for concern in dict.fromkeys(record.concerns):
            rows = task.rows("checked", "approved")[-2:]
            yield IssueKnown(severity=Severity.MINOR, title=concern, where=where, source=task.id, rows=rows)
