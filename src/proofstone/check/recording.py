"""Record check results in the ledger, the cache and the artifact store, and read earlier verdicts back.

Rows are written in the order in which they must be found.

Two kinds of rows hold a verdict on a whole tree: the beginning and end of a `proofstone check`, and a task of the gate
that was checked and committed. Rows of single checks do not count, because a tree passes as a whole or not at all. What
the user loosened for a `proofstone check` is recorded in rows between its beginning and its end; if there are none,
nothing was loosened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.check.cache import ResultCache, digest_result
from proofstone.check.held_out import hide_held_out_output
from proofstone.check.models import CheckResult
from proofstone.check.rules.commit_evidence import AcceptedFinding, RecordedCheck
from proofstone.check.rules.judge import CheckJudgement
from proofstone.check.rules.outcome import find_weakest_level
from proofstone.common.models import AcceptanceMethod, Assurance, Outcome, Verdict
from proofstone.errors import LedgerCorruptError
from proofstone.faults import fault_point
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.models import ArtifactRow, CheckRow, EventRow, cut_snippet
from proofstone.ledger.query import run_query
from proofstone.ledger.schema import LedgerRow, json_field


@dataclass(frozen=True)
class CheckRecorder:
    """Records the results of one run."""

    run_id: str
    ledger: Ledger
    cache: ResultCache
    artifacts: ArtifactStore
    task_id: str
    attempt: int

    def record_event(self, type: str, **payload: str | int | bool | list[str] | None) -> None:
        """Append an event of the run to the ledger."""
        self.ledger.append(EventRow(run_id=self.run_id, type=type, payload=dict(payload)))

    def record_check(
        self, before: CheckResult | None, after: CheckResult, judgement: CheckJudgement, keys: tuple[str, str] | None
    ) -> int:
        """Record both rows of a check in one transaction, the baseline first; return the sequence number of the
        second."""
        judged = after.model_copy(update={"verdict": judgement.verdict, "reason": judgement.reason})
        rows: list[LedgerRow] = []
        if before is not None:
            rows.append(self._build_row(before, before))
        rows.append(self._build_row(judged, after))
        fault_point("check.before-record")
        written = self.ledger.append(*self._artifact_rows(before, after), *rows)
        fault_point("check.after-record")
        if keys is not None:
            self._cache_results(before, after, judgement, keys, written)
        return written[-1]

    def record_extra_run(self, result: CheckResult, suffix: str, key: str | None = None) -> CheckResult:
        """Record a run in addition to the check itself, such as a rerun of single tests or a run of the base's
        tests."""
        named = result.model_copy(update={"name": f"{result.name}:{suffix}"})
        written = self.ledger.append(*self._artifact_rows(named), self._build_row(named, named))
        if key is not None and named.verdict is Verdict.PASS and named.death is None and named.reused_from is None:
            self.cache.store(key, named, written[-1])
        return named

    def _cache_results(
        self,
        before: CheckResult | None,
        after: CheckResult,
        judgement: CheckJudgement,
        keys: tuple[str, str],
        written: tuple[int, ...],
    ) -> None:
        """Cache the result on the change only if it passed, and the result on the base only if it was measured. A run
        that died was not."""
        before_key, after_key = keys
        is_measured = before is not None and before.verdict is not Verdict.UNVERIFIABLE and before.death is None
        if before is not None and is_measured and before.reused_from is None:
            self.cache.store(before_key, before, written[-2])
        passed = judgement.verdict is Verdict.PASS and after.verdict is Verdict.PASS
        if passed and after.reused_from is None:
            self.cache.store(after_key, after, written[-1])

    def _artifact_rows(self, *results: CheckResult | None) -> list[ArtifactRow]:
        rows = []
        for result in results:
            if result is not None and result.artifact and result.reused_from is None:
                size = self.artifacts.path_of(result.artifact).stat().st_size
                rows.append(ArtifactRow(artifact=result.artifact, size=size, media_type="text/plain; charset=utf-8"))
        return rows

    def _build_row(self, result: CheckResult, cacheable: CheckResult) -> CheckRow:
        """Build the row of a result. `cacheable` is the result before it was compared with the base."""
        result = hide_held_out_output(result)
        text = f"{result.reason}\n{result.output}" if result.reason else result.output
        return CheckRow(
            run_id=self.run_id,
            task_id=self.task_id,
            attempt=self.attempt,
            phase=result.phase,
            check_name=result.name,
            tool=result.tool,
            command=result.command or None,
            exit_code=result.exit_code,
            output_snippet=cut_snippet(text),
            state=result.verdict,
            tree=result.tree,
            tier=result.tier,
            assurance=result.assurance,
            duration_ms=result.duration_ms,
            artifact=result.artifact,
            reused_from=result.reused_from,
            result_digest=digest_result(cacheable),
        )


_OWN_SETTINGS: Final = "settings.own"
_CHECKS_SQL: Final = f"""
SELECT began.run_id, began.payload, ended.payload, COALESCE(ended.ts, began.ts),
       COALESCE(ended.seq, began.seq) AS place,
       (SELECT json_group_array(DISTINCT assurance) FROM checks
        WHERE run_id = began.run_id AND assurance IS NOT NULL),
       (SELECT json_group_array(json_object('type', type, 'payload', json(payload)))
        FROM (SELECT type, payload FROM events WHERE run_id = began.run_id AND type IN (
                  'settings.own', 'finding.accepted') ORDER BY seq))
FROM (SELECT * FROM events WHERE type = 'run.started' AND {{tree}}
        AND {json_field("payload", "$.command")} = 'check' AND {json_field("payload", "$.repository")} IN ({{roots}})
      ORDER BY seq DESC LIMIT 100) AS began
LEFT JOIN events AS ended ON ended.run_id = began.run_id AND ended.type = 'run.finished'
ORDER BY place DESC
"""  # noqa: S608  our own names
_TASKS_SQL: Final = f"""
SELECT done.run_id, done.payload, checked.payload, done.ts, done.seq AS place, began.payload
FROM (SELECT * FROM events WHERE type = 'task.committed' AND {{tree}}) AS done
JOIN events AS began ON began.run_id = done.run_id AND began.type = 'run.started'
JOIN events AS checked ON checked.seq = (
    SELECT MAX(seq) FROM events
    WHERE run_id = done.run_id AND task_id = done.task_id AND type = 'task.checked' AND seq < done.seq)
WHERE {json_field("began.payload", "$.repository")} IN ({{roots}})
ORDER BY place DESC LIMIT 100
"""  # noqa: S608  our own names
_ANY_TREE: Final = "?1 = ''"
_TREE_CONDITIONS: Final = {
    _CHECKS_SQL: f"{json_field('payload', '$.tree')} = ?1",
    _TASKS_SQL: f"{json_field('payload', '$.event.tree')} = ?1",
}
"""Written exactly as in the indexes, so that SQLite uses them."""


def find_recorded_checks(ledger: Path, roots: Sequence[str], tree: str = "") -> tuple[RecordedCheck, ...]:
    """Return the recorded verdicts on this tree, or on any tree, in these work trees: newest first, the last hundred of
    each kind."""
    if not ledger.is_file():
        return ()
    marks = ", ".join("?" * len(roots))
    checks, tasks = (
        run_query(
            ledger, sql.format(roots=marks, tree=_TREE_CONDITIONS[sql] if tree else _ANY_TREE), (tree, *roots)
        ).rows
        for sql in (_CHECKS_SQL, _TASKS_SQL)
    )
    verdicts = [(int(str(row[4])), _read_check(row)) for row in checks]
    verdicts += [(int(str(row[4])), _read_task(row)) for row in tasks]
    ordered = sorted(verdicts, key=lambda verdict: verdict[0], reverse=True)
    return tuple(record for _, record in ordered if not tree or record.tree == tree)


def raise_if_forged(ledger: Ledger, records: Sequence[RecordedCheck]) -> None:
    """Raise LedgerCorruptError if a run has an event that was not written with the ledger's key. Forged events are no
    evidence, and the forger should be found."""
    for run_id in dict.fromkeys(record.run_id for record in records):
        for stored in ledger.read(EventRow, run_id=run_id):
            if not ledger.is_authentic(stored):
                raise LedgerCorruptError(
                    f"row {stored.seq} of the ledger, of the run {run_id}, was not written with the ledger's key",
                    seq=stored.seq,
                    hint="`proofstone ledger verify` shows what else is wrong",
                )


def _read_check(row: Sequence[object]) -> RecordedCheck:
    run_id, began, ended, at, _, levels, loosened = row
    start, end = json.loads(str(began)), json.loads(str(ended)) if ended is not None else {}
    events = [(event["type"], event["payload"]) for event in json.loads(str(loosened))]
    return RecordedCheck(
        run_id=str(run_id),
        tree=str(start["tree"]),
        base_commit=str(start["base_commit"]),
        outcome=end.get("outcome"),
        reason=str(end.get("reason") or ""),
        recorded_at=str(at),
        assurance=find_weakest_level([Assurance(level) for level in json.loads(str(levels)) or [start["sandbox"]]]),
        own_settings=any(type == _OWN_SETTINGS for type, _ in events),
        accepted=tuple(_read_acceptance(payload) for type, payload in events if type != _OWN_SETTINGS),
    )


def _read_acceptance(payload: Mapping[str, object]) -> AcceptedFinding:
    """Return an acceptance as it is recorded. A record of an older version does not say who gave it, or how."""
    method = str(payload.get("method", ""))
    return AcceptedFinding(
        rule=str(payload.get("rule", "")),
        reason=str(payload.get("reason", "")),
        accepted_by=str(payload.get("accepted_by", "")),
        method=AcceptanceMethod(method) if method in tuple(AcceptanceMethod) else None,
        subject=str(payload.get("subject", "")),
    )


def _read_task(row: Sequence[object]) -> RecordedCheck:
    """Return the verdict of a task of the gate. A task is committed only if it passed."""
    run_id, done, checked, at, _, began = row
    evidence = json.loads(str(checked))["event"]["evidence"]
    return RecordedCheck(
        run_id=str(run_id),
        tree=str(json.loads(str(done))["event"]["tree"]),
        base_commit=str(evidence["base_commit"]),
        outcome=Outcome.PASSED,
        recorded_at=str(at),
        assurance=Assurance(json.loads(str(began))["sandbox"]),
        accepted=tuple(_read_acceptance(payload) for payload in evidence.get("accepted", ())),
    )
