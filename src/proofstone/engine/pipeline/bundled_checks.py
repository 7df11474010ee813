"""The checks of a run, before and after, by task: of each task those of the tree that it ended with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofstone.adapters.ledger import Stored
from proofstone.contracts.evidence import CheckRow
from proofstone.contracts.pipeline.bundle import CheckedLine, CheckedTree, Probe
from proofstone.contracts.verdict import Phase, Verdict
from proofstone.engine.pipeline.records import RunRecord

Rows = Sequence[Stored[CheckRow]]


def checked_trees(record: RunRecord) -> Iterator[CheckedTree]:
    by_task: dict[str, list[Stored[CheckRow]]] = {}
    for stored in record.checks:
        if stored.row.phase is not Phase.REVIEW:
            by_task.setdefault(stored.row.task_id, []).append(stored)
    for task, rows in by_task.items():
        names = {one.row.check_name for one in rows}
        own = [one for one in rows if one.row.phase is Phase.AFTER and not _beside(one.row.check_name, names)]
        if own:
            yield _tree(record, task, rows, own, own[-1].row)


def _tree(record: RunRecord, task: str, rows: Rows, own: Rows, last: CheckRow) -> CheckedTree:
    # What was recorded after the last check of any other tree is about this one: its bases and its probes too.
    since = max((one.seq for one in own if (one.row.attempt, one.row.tree) != (last.attempt, last.tree)), default=0)
    lines = tuple(_lines([one for one in rows if one.seq > since and one.row.attempt == last.attempt], own))
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
    mains = {one.seq for one in own}
    # A check that ran twice on one tree, as after a resume, is told by its last run.
    after = {one.row.check_name: one for one in rows if one.seq in mains}
    before = {one.row.check_name: one for one in rows if one.row.phase is Phase.BASELINE}
    probes = [one for one in rows if one.row.phase is Phase.AFTER and one.seq not in mains]
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
            Probe(what=one.row.check_name.removeprefix(f"{row.check_name}:"), state=one.row.state, rows=(one.seq,))
            for one in probes
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
