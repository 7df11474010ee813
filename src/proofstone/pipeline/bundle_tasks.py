"""The checks and tasks of a run, for its evidence bundle.

The checks are those of the final tree of each task, before and after the change. For each task of a gate there is its
end, its measurements after each failed attempt, its commits, and the remaining and fixed issues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from proofstone.agents.roles.models.gate import ExecutorResult, TaskState
from proofstone.common.models import ChangeKind, Phase, Severity, Verdict
from proofstone.common.risk import PathChange, assess_risk
from proofstone.gate.models import (
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    CriterionStatus,
    MustHaveResult,
    RequirementResult,
    TaskCommitted,
    TaskEvent,
    TaskReport,
)
from proofstone.gate.rules.direction import rate_task
from proofstone.gate.rules.judgements import describe_criterion, list_criterion_results
from proofstone.gate.rules.pass_rule import describe_added_file
from proofstone.ledger.models import CheckRow
from proofstone.ledger.schema import StoredRow
from proofstone.pipeline.models.bundle import (
    BundleClaim,
    BundleCommit,
    BundleCriterion,
    BundledFile,
    BundleLoss,
    BundleRegression,
    BundleRequirement,
    CheckComparison,
    CheckProbe,
    FixedIssue,
    RemainingIssue,
    TaskEnding,
    TreeChecks,
)
from proofstone.pipeline.records import RunRecord, TaskHistory
from proofstone.plans.models import PlanTask
from proofstone.supervision.rules.amendments import Amendment

StoredCheckRows = Sequence[StoredRow[CheckRow]]


def build_checked_trees(record: RunRecord) -> Iterator[TreeChecks]:
    by_task: dict[str, list[StoredRow[CheckRow]]] = {}
    for stored in record.checks:
        if stored.row.phase is not Phase.REVIEW:
            by_task.setdefault(stored.row.task_id, []).append(stored)
    for task, rows in by_task.items():
        names = {row.row.check_name for row in rows}
        main_rows = [row for row in rows if row.row.phase is Phase.AFTER and not _is_probe(row.row.check_name, names)]
        if main_rows:
            yield _build_tree(record, task, rows, main_rows, main_rows[-1].row)


def _build_tree(
    record: RunRecord, task: str, rows: StoredCheckRows, main_rows: StoredCheckRows, last: CheckRow
) -> TreeChecks:
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
    return TreeChecks(
        run_id=record.run_id,
        iteration=record.iteration,
        task=task,
        attempt=last.attempt,
        tree=last.tree or "",
        lines=lines,
        rows=tuple(sorted(row for line in lines for row in line.rows)),
    )


def _build_lines(rows: StoredCheckRows, main_rows: StoredCheckRows) -> Iterator[CheckComparison]:
    main_seqs = {stored.seq for stored in main_rows}
    # If a check ran twice on one tree, as after a resume, its last run counts.
    after = {row.row.check_name: row for row in rows if row.seq in main_seqs}
    before = {row.row.check_name: row for row in rows if row.row.phase is Phase.BASELINE}
    probes = [row for row in rows if row.row.phase is Phase.AFTER and row.seq not in main_seqs]
    for name, stored_after in after.items():
        yield _build_line(
            stored_after, before.get(name), [probe for probe in probes if _probed_check(probe, after) == name]
        )


def _build_line(
    after: StoredRow[CheckRow], before: StoredRow[CheckRow] | None, probes: StoredCheckRows
) -> CheckComparison:
    row = after.row
    return CheckComparison(
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
            CheckProbe(
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


def _probed_check(probe: StoredRow[CheckRow], after: dict[str, StoredRow[CheckRow]]) -> str:
    names = [name for name in after if probe.row.check_name.startswith(f"{name}:")]
    return max(names, key=len, default="")


_REGRESSION = "regression"
"""The gate's name for a regression, among the reasons of a failure."""


def build_task_endings(gate: RunRecord) -> Iterator[TaskEnding]:
    names = {
        str(payload["task_id"]): (str(payload["task"]), seq) for seq, payload in gate.events_of_type("gate.result")
    }
    for task in gate.build_tasks():
        record, evidence = task.record, task.record.evidence
        name, name_row = names.get(task.id, ("", None))
        rating = rate_task(record)
        yield TaskEnding(
            run_id=gate.run_id,
            iteration=gate.iteration,
            id=task.id,
            name=name,
            state=record.state,
            attempts=record.attempt,
            confidence=rating.confidence,
            reasons=rating.reasons,
            commit=record.commit,
            tree=evidence.tree if evidence else None,
            changed=evidence.changed if evidence else (),
            large=evidence.large if evidence else False,
            corrections=_last_corrections(task),
            failures=record.failures,
            verdicts=record.verdicts,
            concerns=tuple(dict.fromkeys(record.concerns)),
            added_files=tuple(map(describe_added_file, evidence.added_files)) if evidence else (),
            accepted=evidence.accepted if evidence else (),
            disputes=record.disputes,
            rows=(*task.rows_of(), *((name_row,) if name_row is not None else ())),
        )


def _last_corrections(task: TaskHistory) -> int | None:
    executed = [event.event for event in task.events if isinstance(event.event, AttemptExecuted)]
    return executed[-1].corrections if executed else None


def build_criteria(gate: RunRecord, reported: Mapping[str, TaskReport]) -> Iterator[BundleCriterion]:
    """Yield the criteria of the tasks of a gate, with their evidence. `reported` are the tasks in the report of the
    whole run, whose reviewers may have judged what the gate left to them.
    """
    amendments = [Amendment.model_validate(payload) for _, payload in gate.events_of_type("plan.amended")]
    judgements = gate.read_judgements()
    for task in gate.build_tasks():
        if task.record.evidence is None:
            continue
        plan_task = PlanTask(
            id=task.id, name=task.id, done=tuple(link.criterion for link in task.record.evidence.criteria)
        )
        report = reported.get(task.id)
        results = (
            report.criteria
            if report is not None and report.criteria
            else list_criterion_results(plan_task, task.record, judgements, amendments)
        )
        for result in results:
            yield BundleCriterion(
                task=task_label(gate, task.id),
                criterion=result.criterion,
                status=result.status,
                check=result.check,
                command=result.command,
                result="passed" if result.status is CriterionStatus.SHOWN else describe_criterion(result),
                rows=task.rows_of("checked", "approved")[-2:],
            )


def build_requirements(gate: RunRecord) -> Iterator[BundleRequirement]:
    """Yield what became of the requirements that were added to a run of the gate, as its last end records it."""
    for seq, payload in list(gate.events_of_type("run.requirements"))[-1:]:
        results = payload["results"]
        for result in map(RequirementResult.model_validate, results if isinstance(results, list) else ()):
            yield BundleRequirement(text=result.text, is_met=result.is_met, detail=result.detail, rows=(seq,))


def task_label(gate: RunRecord, task: str) -> str:
    """Return the name of a task. Tasks of later plans may have the same name, so they get a number."""
    return task if gate.iteration == 1 else f"{gate.iteration}/{task}"


def build_claims(gate: RunRecord) -> Iterator[BundleClaim]:
    """Yield what the executors claimed, each with why the attempt did not pass."""
    for task in gate.build_tasks():
        open_claim: BundleClaim | None = None
        for attempt, seq, event in _number_attempts(task):
            if isinstance(event, AttemptExecuted):
                if open_claim is not None:
                    yield open_claim
                open_claim = _build_claim(gate, task, attempt, event.claim, seq)
            elif isinstance(event, AttemptFailed):
                claim = open_claim or (event.claim and _build_claim(gate, task, attempt, event.claim, seq))
                open_claim = None
                if claim:
                    caught = f"{event.failure.type}: {event.failure.error}"
                    yield claim.model_copy(update={"caught": caught, "rows": (*claim.rows, seq)})
        if open_claim is not None:
            yield open_claim


def _number_attempts(task: TaskHistory) -> Iterator[tuple[int, int, TaskEvent]]:
    """Yield the events of a task with the number of their attempt and their row."""
    attempt = 1
    for record in task.events:
        attempt = record.event.attempt if isinstance(record.event, AttemptStarted) else attempt
        yield attempt, record.seq, record.event


def _build_claim(gate: RunRecord, task: TaskHistory, attempt: int, claim: ExecutorResult, seq: int) -> BundleClaim:
    return BundleClaim(
        task=task_label(gate, task.id),
        attempt=attempt,
        status=claim.status.value,
        statement=claim.error or claim.evidence,
        exit_code=claim.verification.exit_code if claim.verification else None,
        rows=(seq,),
    )


def build_losses(gate: RunRecord) -> Iterator[BundleLoss]:
    for task in gate.build_tasks():
        for event in task.events:
            if isinstance(event.event, AttemptFailed) and event.event.failure.direction is not None:
                yield BundleLoss(
                    of=task_label(gate, task.id),
                    number=event.event.failure.attempt,
                    direction=event.event.failure.direction,
                    text=event.event.failure.error,
                    rows=(event.seq,),
                )


def find_test_regressions(gate: RunRecord, *, replanned: bool) -> Iterator[BundleRegression]:
    """Yield the tests that passed on the base and failed in an attempt, according to its failure."""
    for task in gate.build_tasks():
        for event in task.events:
            if isinstance(event.event, AttemptFailed):
                for reason in event.event.failure.reasons:
                    if reason.check == _REGRESSION:
                        stands = not (task.record.is_finished or replanned)
                        name = task_label(gate, task.id)
                        yield BundleRegression(task=name, what=reason.detail, stands=stands, rows=(event.seq,))


def find_check_regressions(trees: Iterable[TreeChecks]) -> Iterator[BundleRegression]:
    """Yield the checks that passed before and fail on the final tree of a task or of the run."""
    for tree in trees:
        for line in tree.lines:
            if line.is_regression:
                description = f"{line.name} passed before, and is {line.after} now"
                yield BundleRegression(task=tree.task, what=description, stands=True, rows=line.rows)


def list_commits(gate: RunRecord) -> tuple[BundleCommit, ...]:
    made = [
        BundleCommit(
            commit=event.event.commit,
            tree=event.event.tree,
            parent=task.record.evidence.base_commit,
            task=task.id,
            rows=(*task.rows_of("checked")[-1:], event.seq),
        )
        for task in gate.build_tasks()
        for event in task.events
        if isinstance(event.event, TaskCommitted) and task.record.evidence is not None
    ]
    return tuple(sorted(made, key=lambda commit: commit.rows[-1]))


def list_changed_files(gate: RunRecord) -> tuple[BundledFile, ...]:
    """Return the files of passed tasks. The kind of change is not recorded, so the risk is derived from the path."""
    rows_by_path: dict[str, list[int]] = {}
    for task in gate.build_tasks():
        if task.record.commit is not None and task.record.evidence is not None:
            for path in task.record.evidence.changed:
                rows_by_path.setdefault(path, []).extend(task.rows_of("checked")[-1:])
    return tuple(_build_changed_file(path, rows) for path, rows in rows_by_path.items())


def read_must_haves(gate: RunRecord) -> tuple[tuple[MustHaveResult, int], ...]:
    """Return the last results of the must-haves, with their row."""
    events = list(gate.events_of_type("run.must-haves"))[-1:]
    return tuple(
        (MustHaveResult.model_validate(result), seq)
        for seq, payload in events
        if isinstance(results := payload["results"], list)
        for result in results
    )


def find_known_issues(gate: RunRecord) -> Iterator[RemainingIssue]:
    """Yield the remaining issues: the obstacles of failed tasks, and the concerns about passed ones."""
    for task in gate.build_tasks():
        yield from _task_issues(task)
    for result, seq in read_must_haves(gate):
        if result.holds is not True:
            severity = Severity.MAJOR if result.holds is False else Severity.MINOR
            title = f"{result.what}: {result.detail}" if result.detail else result.what
            yield RemainingIssue(severity=severity, title=title, source="must-haves", rows=(seq,))


def find_fixed_issues(gate: RunRecord, *, replanned: bool) -> Iterator[FixedIssue]:
    """Yield the failures of attempts of tasks that passed later. `replanned` means that a later plan has passed in
    place of this one, which fixes every failure here.
    """
    for task in gate.build_tasks():
        passed = task.record.is_finished and task.record.override is None
        for event in task.events:
            if isinstance(event.event, AttemptFailed) and (passed or replanned):
                failure = event.event.failure
                how = f"attempt {task.record.attempt} passed" if passed else "another plan passed in its place"
                yield FixedIssue(
                    title=f"{failure.type}: {failure.error}",
                    source=f"{task_label(gate, task.id)}, attempt {failure.attempt}",
                    how=how,
                    rows=(event.seq, *(task.rows_of("approved")[-1:] if passed else ())),
                )


def _build_changed_file(path: str, rows: Sequence[int]) -> BundledFile:
    risk = assess_risk(PathChange(path=path, kind=ChangeKind.MODIFIED)).risk
    return BundledFile.model_validate({"path": path, "risk": risk.mark, "by_path_alone": True, "rows": tuple(rows)})


def _task_issues(task: TaskHistory) -> Iterator[RemainingIssue]:
    record = task.record
    where = record.evidence.changed if record.evidence else ()
    if record.override is not None:
        title = f"set aside and unverified ({record.override.action}): {record.override.reason}"
        yield RemainingIssue(severity=Severity.MAJOR, title=title, source=task.id, rows=task.rows_of("overridden"))
    elif record.state is TaskState.FAILED:
        yield RemainingIssue(
            severity=Severity.CRITICAL,
            title=record.failures[-1].error,
            source=f"{task.id}, attempt {record.failures[-1].attempt}",
            rows=task.rows_of("failed")[-1:],
        )
    elif record.state is TaskState.BLOCKED:
        yield RemainingIssue(
            severity=Severity.MAJOR, title=record.blocked_by, source=task.id, rows=task.rows_of("blocked")[-1:]
        )
    elif record.state is TaskState.APPROVED:
        for concern in dict.fromkeys(record.concerns):
            rows = task.rows_of("checked", "approved")[-2:]
            yield RemainingIssue(severity=Severity.MINOR, title=concern, where=where, source=task.id, rows=rows)
