"""The checks and tasks of a run, for its evidence bundle.

The checks are those of the final tree of each task, before and after the change. For each task of a gate there is its
end, its measurements after each failed attempt, its commits, and the remaining and fixed issues.
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
        main_rows = [row for row in rows if row.row.phase is Phase.AFTER and not _is_probe(row.row.check_name, names)]
        if main_rows:
            yield _build_tree(record, task, rows, main_rows, main_rows[-1].row)


def _build_tree(record: RunRecord, task: str, rows: Rows, main_rows: Rows, last: CheckRow) -> CheckedTree:
    # Everything recorded after the last check of any other tree concerns this tree, including its bases and probes.
    since = max(
        (stored.seq for stored in main_rows if (stored.row.attempt, stored.row.tree) != (last.attempt, last.tree)),
        default=0,
    )
    lines = tuple(
        _build_lines(
            [stored for stored in rows if stored.seq > since and stored.row.attempt == last.attempt], main_rows
        )
    )
    return CheckedTree(
        run_id=record.run_id,
        iteration=record.iteration,
        task=task,
        attempt=last.attempt,
        tree=last.tree or "",
        lines=lines,
        rows=tuple(sorted(row for line in lines for row in line.rows)),
    )


def _build_lines(rows: Rows, main_rows: Rows) -> Iterator[CheckedLine]:
    main_seqs = {stored.seq for stored in main_rows}
    # If a check ran twice on one tree, as after a resume, its last run counts.
    after = {row.row.check_name: row for row in rows if row.seq in main_seqs}
    before = {row.row.check_name: row for row in rows if row.row.phase is Phase.BASELINE}
    probes = [row for row in rows if row.row.phase is Phase.AFTER and row.seq not in main_seqs]
    for name, stored_after in after.items():
        yield _build_line(
            stored_after, before.get(name), [probe for probe in probes if _probed_check(probe, after) == name]
        )


def _build_line(after: Stored[CheckRow], before: Stored[CheckRow] | None, probes: Rows) -> CheckedLine:
    row = after.row
    return CheckedLine(
        name=row.check_name,
        tool=row.tool,
        command=row.command or "",
        tier=row.tier,
        before=before.row.state if before else None,
        after=row.state,
        exit_code=row.exit_code,
        said=_first_line(row),
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


def _first_line(row: CheckRow) -> str:
    """Return the first line of the output; a passed check needs no explanation."""
    return "" if row.state is Verdict.PASS else row.output_snippet.strip().partition("\n")[0]


def _is_probe(name: str, names: set[str]) -> bool:
    """Return whether a row is a probe: its name is that of a check, followed by a suffix."""
    return any(name.startswith(f"{other}:") for other in names)


def _probed_check(probe: Stored[CheckRow], after: dict[str, Stored[CheckRow]]) -> str:
    names = [name for name in after if probe.row.check_name.startswith(f"{name}:")]
    return max(names, key=len, default="")


_REGRESSION = "regression"
"""The gate's name for a regression, among the reasons of a failure."""


def endings(gate: RunRecord) -> Iterator[TaskEnding]:
    names = {str(payload["task_id"]): (str(payload["task"]), seq) for seq, payload in gate.of_type("gate.result")}
    for task in gate.tasks():
        record, evidence = task.record, task.record.evidence
        name, name_row = names.get(task.id, ("", None))
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
            rows=(*task.rows(), *((name_row,) if name_row is not None else ())),
        )


def called(gate: RunRecord, task: str) -> str:
    """Return the name of a task. Tasks of later plans may have the same name, so they get a number."""
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
    """Yield the tests that passed on the base and failed in an attempt, according to its failure."""
    for task in gate.tasks():
        for event in task.events:
            if isinstance(event.event, AttemptFailed):
                for reason in event.event.failure.reasons:
                    if reason.check == _REGRESSION:
                        stands = not (task.record.finished or replanned)
                        name = called(gate, task.id)
                        yield RegressionSeen(task=name, what=reason.detail, stands=stands, rows=(event.seq,))


def regressed_checks(trees: Iterable[CheckedTree]) -> Iterator[RegressionSeen]:
    """Yield the checks that passed before and fail on the final tree of a task or of the run."""
    for tree in trees:
        for line in tree.lines:
            if line.regressed:
                description = f"{line.name} passed before, and is {line.after} now"
                yield RegressionSeen(task=tree.task, what=description, stands=True, rows=line.rows)


def commits(gate: RunRecord) -> tuple[CommitMade, ...]:
    made = [
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
    return tuple(sorted(made, key=lambda commit: commit.rows[-1]))


def changed_files(gate: RunRecord) -> tuple[ChangedFile, ...]:
    """Return the files of passed tasks. The kind of change is not recorded, so the risk is derived from the path."""
    rows_by_path: dict[str, list[int]] = {}
    for task in gate.tasks():
        if task.record.commit is not None and task.record.evidence is not None:
            for path in task.record.evidence.changed:
                rows_by_path.setdefault(path, []).extend(task.rows("checked")[-1:])
    return tuple(_build_changed_file(path, rows) for path, rows in rows_by_path.items())


def must_haves(gate: RunRecord) -> tuple[tuple[MustHaveResult, int], ...]:
    """Return the last results of the must-haves, with their row."""
    events = list(gate.of_type("run.must-haves"))[-1:]
    return tuple(
        (MustHaveResult.model_validate(result), seq)
        for seq, payload in events
        if isinstance(results := payload["results"], list)
        for result in results
    )


def known_issues(gate: RunRecord) -> Iterator[IssueKnown]:
    """Yield the remaining issues: the obstacles of failed tasks, and the concerns about passed ones."""
    for task in gate.tasks():
        yield from _task_issues(task)
    for result, seq in must_haves(gate):
        if result.holds is not True:
            severity = Severity.MAJOR if result.holds is False else Severity.MINOR
            title = f"{result.what}: {result.detail}" if result.detail else result.what
            yield IssueKnown(severity=severity, title=title, source="must-haves", rows=(seq,))


def fixed_issues(gate: RunRecord, *, replanned: bool) -> Iterator[IssueFixed]:
    """Yield the failures of attempts of tasks that passed later. `replanned` means that a later plan has passed in
    place of this one, which fixes every failure here.
    """
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


def _build_changed_file(path: str, rows: Sequence[int]) -> ChangedFile:
    risk = risk_of(PathChange(path=path, kind=ChangeKind.MODIFIED)).risk
    return ChangedFile.model_validate({"path": path, "risk": risk.mark, "by_path_alone": True, "rows": tuple(rows)})


def _task_issues(task: TaskHistory) -> Iterator[IssueKnown]:
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
