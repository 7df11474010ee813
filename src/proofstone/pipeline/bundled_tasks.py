"""The checks of a run, before and after, by task: of each task those of the tree that it ended with.

The tasks of a run of the gate: how each ended, where it stood after each attempt that did not pass, what it has
committed, and what is left of what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from proofstone.agents.roles.models.gate import TaskState
from proofstone.common.models import ChangeKind, Phase, Severity, Verdict
from proofstone.common.risk import PathChange, risk_of
from proofstone.gate.models import AttemptFailed, Committed, MustHaveResult
from proofstone.gate.rules.direction import of_task
from proofstone.ledger.models import CheckRow
from proofstone.ledger.schema import Stored
from proofstone.pipeline.models.bundle import (
    ChangedFile,
    CheckedLine,
    CheckedTree,
    CommitMade,
    IssueFixed,
    IssueKnown,
    LossSeen,
    Probe,
    RegressionSeen,
    TaskEnding,
)
from proofstone.pipeline.records import RunRecord, TaskHistory

Rows = Sequence[Stored[CheckRow]]


def checked_trees(record: RunRecord) -> Iterator[CheckedTree]:
    by_task: dict[str, list[Stored[CheckRow]]] = {}
    for stored in record.checks:
        if stored.row.phase is not Phase.REVIEW:
            by_task.setdefault(stored.row.task_id, []).append(stored)
    for task, rows in by_task.items():
        names = {row.row.check_name for row in rows}
        own = [row for row in rows if row.row.phase is Phase.AFTER and not _beside(row.row.check_name, names)]
        if own:
            yield _tree(record, task, rows, own, own[-1].row)


def _tree(record: RunRecord, task: str, rows: Rows, own: Rows, last: CheckRow) -> CheckedTree:
    # What was recorded after the last check of any other tree is about this one: its bases and its probes too.
    since = max((item.seq for item in own if (item.row.attempt, item.row.tree) != (last.attempt, last.tree)), default=0)
    lines = tuple(_lines([item for item in rows if item.seq > since and item.row.attempt == last.attempt], own))
    return CheckedTree(
        run_id=record.run_id,
        iteration=record.iteration,
        task=task,
        attempt=last.attempt,
        tree=last.tree or "",
        lines=lines,
        rows=tuple(sorted(row for line in lines for row in line.rows)),
    )


def _lines(rows: Rows, own: Rows) -> Iterator[CheckedLine]:
    mains = {item.seq for item in own}
    # A check that ran twice on one tree, as after a resume, is told by its last run.
    after = {row.row.check_name: row for row in rows if row.seq in mains}
    before = {row.row.check_name: row for row in rows if row.row.phase is Phase.BASELINE}
    probes = [row for row in rows if row.row.phase is Phase.AFTER and row.seq not in mains]
    for name, one in after.items():
        yield _line(one, before.get(name), [probe for probe in probes if _parent(probe, after) == name])


def _line(after: Stored[CheckRow], before: Stored[CheckRow] | None, probes: Rows) -> CheckedLine:
    row = after.row
    return CheckedLine(
        name=row.check_name,
        tool=row.tool,
        command=row.command or "",
        tier=row.tier,
        before=before.row.state if before else None,
        after=row.state,
        exit_code=row.exit_code,
        said=_said(row),
        assurance=row.assurance,
        duration_ms=row.duration_ms,
        artifact=row.artifact,
        reused=row.reused_from is not None,
        probes=tuple(
            Probe(
                what=probe.row.check_name.removeprefix(f"{row.check_name}:"), state=probe.row.state, rows=(probe.seq,)
            )
            for probe in probes
        ),
        rows=(*((before.seq,) if before else ()), after.seq),
    )


def _said(row: CheckRow) -> str:
    """What passes needs no words."""
    return "" if row.state is Verdict.PASS else row.output_snippet.strip().partition("\n")[0]


def _beside(name: str, names: set[str]) -> bool:
    """Whether a row is of a run beside a check: it is called after the check, with a word of its own behind it."""
    return any(name.startswith(f"{other}:") for other in names)


def _parent(probe: Stored[CheckRow], after: dict[str, Stored[CheckRow]]) -> str:
    found = [name for name in after if probe.row.check_name.startswith(f"{name}:")]
    return max(found, key=len, default="")


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
        for event in task.events:
            if isinstance(event.event, AttemptFailed) and event.event.failure.direction is not None:
                yield LossSeen(
                    of=called(gate, task.id),
                    number=event.event.failure.attempt,
                    direction=event.event.failure.direction,
                    text=event.event.failure.error,
                    rows=(event.seq,),
                )


def regressions(gate: RunRecord, *, replanned: bool) -> Iterator[RegressionSeen]:
    """Tests that passed on the base and failed on an attempt, by the failures that name them."""
    for task in gate.tasks():
        for event in task.events:
            if isinstance(event.event, AttemptFailed):
                for reason in event.event.failure.reasons:
                    if reason.check == _REGRESSION:
                        stands = not (task.record.finished or replanned)
                        name = called(gate, task.id)
                        yield RegressionSeen(task=name, what=reason.detail, stands=stands, rows=(event.seq,))


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
            commit=event.event.commit,
            tree=event.event.tree,
            parent=task.record.evidence.base_commit,
            task=task.id,
            rows=(*task.rows("checked")[-1:], event.seq),
        )
        for task in gate.tasks()
        for event in task.events
        if isinstance(event.event, Committed) and task.record.evidence is not None
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
        (MustHaveResult.model_validate(result), seq)
        for seq, payload in looked
        if isinstance(results := payload["results"], list)
        for result in results
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
        for event in task.events:
            if isinstance(event.event, AttemptFailed) and (passed or replanned):
                failure = event.event.failure
                how = f"attempt {task.record.attempt} passed" if passed else "another plan passed in its place"
                yield IssueFixed(
                    title=f"{failure.type}: {failure.error}",
                    source=f"{called(gate, task.id)}, attempt {failure.attempt}",
                    how=how,
                    rows=(event.seq, *(task.rows("approved")[-1:] if passed else ())),
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
