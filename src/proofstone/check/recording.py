"""Puts results into the ledger, the cache and the artifact store, in the order in which they must be found.

Is there passing evidence for a tree? Asked of the ledger, which is only read.

Two kinds of rows tell of a verdict on a whole tree: the beginning and the end of a `proofstone check`, and a task of
the
gate that was checked and committed. Rows of single checks do not: a tree passes as a whole or not at all. What a person
loosened for a `proofstone check` stands in rows between its beginning and its end; where there are none, nothing was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofstone.check.cache import ResultCache, digest_of
from proofstone.check.models import CheckResult
from proofstone.check.rules.commit_evidence import Accepted, Seen
from proofstone.check.rules.judge import Judgement
from proofstone.check.rules.outcome import weakest
from proofstone.common.models import Assurance, Outcome, Verdict
from proofstone.errors import LedgerCorruptError
from proofstone.faults import fault_point
from proofstone.ledger import Ledger
from proofstone.ledger.artifacts import ArtifactStore
from proofstone.ledger.models import ArtifactRow, CheckRow, EventRow, snippet
from proofstone.ledger.query import query
from proofstone.ledger.schema import Row, json_field


@dataclass(frozen=True)
class Recorder:
    run_id: str
    ledger: Ledger
    cache: ResultCache
    artifacts: ArtifactStore
    task_id: str
    attempt: int

    def event(self, type: str, **payload: str | int | bool | list[str] | None) -> None:
        self.ledger.append(EventRow(run_id=self.run_id, type=type, payload=dict(payload)))

    def check(
        self, before: CheckResult | None, after: CheckResult, judgement: Judgement, keys: tuple[str, str] | None
    ) -> int:
        """Both rows of a check, the baseline's first, in one transaction; the sequence number of the second."""
        judged = after.model_copy(update={"verdict": judgement.verdict, "reason": judgement.reason})
        rows: list[Row] = []
        if before is not None:
            rows.append(self._row(before, before))
        rows.append(self._row(judged, after))
        fault_point("check.before-record")
        written = self.ledger.append(*self._artifact_rows(before, after), *rows)
        fault_point("check.after-record")
        if keys is not None:
            self._keep(before, after, judgement, keys, written)
        return written[-1]

    def further(self, result: CheckResult, what: str, key: str | None = None) -> CheckResult:
        """The row of a run beside the check itself: a second run of single tests, or a run of the base's tests."""
        named = result.model_copy(update={"name": f"{result.name}:{what}"})
        written = self.ledger.append(*self._artifact_rows(named), self._row(named, named))
        if key is not None and named.verdict is Verdict.PASS and named.death is None and named.reused_from is None:
            self.cache.keep(key, named, written[-1])
        return named

    def _keep(
        self,
        before: CheckResult | None,
        after: CheckResult,
        judgement: Judgement,
        keys: tuple[str, str],
        written: tuple[int, ...],
    ) -> None:
        """Of the change only what passed, of the base what was measured. A run that died was not."""
        before_key, after_key = keys
        measured = before is not None and before.verdict is not Verdict.UNVERIFIABLE and before.death is None
        if before is not None and measured and before.reused_from is None:
            self.cache.keep(before_key, before, written[-2])
        passed = judgement.verdict is Verdict.PASS and after.verdict is Verdict.PASS
        if passed and after.reused_from is None:
            self.cache.keep(after_key, after, written[-1])

    def _artifact_rows(self, *results: CheckResult | None) -> list[ArtifactRow]:
        rows = []
        for result in results:
            if result is not None and result.artifact and result.reused_from is None:
                size = self.artifacts.path(result.artifact).stat().st_size
                rows.append(ArtifactRow(artifact=result.artifact, size=size, media_type="text/plain; charset=utf-8"))
        return rows

    def _row(self, result: CheckResult, kept: CheckResult) -> CheckRow:
        """`kept` is the result as it may be kept for reuse, before the base was compared with it."""
        told = f"{result.reason}\n{result.output}" if result.reason else result.output
        return CheckRow(
            run_id=self.run_id,
            task_id=self.task_id,
            attempt=self.attempt,
            phase=result.phase,
            check_name=result.name,
            tool=result.tool,
            command=result.command or None,
            exit_code=result.exit_code,
            output_snippet=snippet(told),
            state=result.verdict,
            tree=result.tree,
            tier=result.tier,
            assurance=result.assurance,
            duration_ms=result.duration_ms,
            artifact=result.artifact,
            reused_from=result.reused_from,
            result_digest=digest_of(kept),
        )


_OWN_SETTINGS: Final = "settings.own"
_OF_CHECKS: Final = f"""
SELECT began.run_id, began.payload, ended.payload, COALESCE(ended.ts, began.ts),
       COALESCE(ended.seq, began.seq) AS place,
       (SELECT json_group_array(DISTINCT assurance) FROM checks
        WHERE run_id = began.run_id AND assurance IS NOT NULL),
       (SELECT json_group_array(json_object('type', type, 'payload', json(payload)))
        FROM (SELECT type, payload FROM events WHERE run_id = began.run_id AND type IN (
                  'settings.own', 'finding.accepted', 'test-changes.accepted') ORDER BY seq))
FROM (SELECT * FROM events WHERE type = 'run.started' AND {{tree}}
        AND {json_field("payload", "$.command")} = 'check' AND {json_field("payload", "$.repository")} IN ({{roots}})
      ORDER BY seq DESC LIMIT 100) AS began
LEFT JOIN events AS ended ON ended.run_id = began.run_id AND ended.type = 'run.finished'
ORDER BY place DESC
"""  # noqa: S608  our own names
_OF_TASKS: Final = f"""
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
_OF_TREE: Final = {
    _OF_CHECKS: f"{json_field('payload', '$.tree')} = ?1",
    _OF_TASKS: f"{json_field('payload', '$.event.tree')} = ?1",
}
"""Said as the indexes say it."""


def checks_on_record(ledger: Path, roots: Sequence[str], tree: str = "") -> tuple[Seen, ...]:
    """What is known of this tree, or of any, in these work trees; newest first, the last hundred of each kind."""
    if not ledger.is_file():
        return ()
    marks = ", ".join("?" * len(roots))
    checks, tasks = (
        query(ledger, sql.format(roots=marks, tree=_OF_TREE[sql] if tree else _ANY_TREE), (tree, *roots)).rows
        for sql in (_OF_CHECKS, _OF_TASKS)
    )
    found = [(int(str(row[4])), _of_check(row)) for row in checks]
    found += [(int(str(row[4])), _of_task(row)) for row in tasks]
    ordered = sorted(found, key=lambda one: one[0], reverse=True)
    return tuple(seen for _, seen in ordered if not tree or seen.tree == tree)


def refuse_forged(ledger: Ledger, seen: Sequence[Seen]) -> None:
    """Raises LedgerCorruptError if one of the runs has an event that was not written with the ledger's key: evidence
    that somebody else put there is no evidence, and whoever did it should be looked for."""
    for run_id in dict.fromkeys(item.run_id for item in seen):
        for stored in ledger.read(EventRow, run_id=run_id):
            if not ledger.is_authentic(stored):
                raise LedgerCorruptError(
                    f"row {stored.seq} of the ledger, of the run {run_id}, was not written with the ledger's key",
                    seq=stored.seq,
                    hint="`proofstone ledger verify` shows what else is wrong",
                )


def _of_check(row: Sequence[object]) -> Seen:
    run_id, began, ended, at, _, levels, loosened = row
    start, end = json.loads(str(began)), json.loads(str(ended)) if ended is not None else {}
    said = [(load["type"], load["payload"]) for load in json.loads(str(loosened))]
    return Seen(
        run_id=str(run_id),
        tree=str(start["tree"]),
        base_commit=str(start["base_commit"]),
        outcome=end.get("outcome"),
        reason=str(end.get("reason") or ""),
        at=str(at),
        assurance=weakest([Assurance(level) for level in json.loads(str(levels)) or [start["sandbox"]]]),
        own_settings=any(type == _OWN_SETTINGS for type, _ in said),
        accepted=tuple(
            Accepted(str(payload.get("rule", "")), str(payload["reason"]))
            for type, payload in said
            if type != _OWN_SETTINGS
        ),
    )


def _of_task(row: Sequence[object]) -> Seen:
    """A task is committed only if it passed."""
    run_id, done, checked, at, _, began = row
    evidence = json.loads(str(checked))["event"]["evidence"]
    return Seen(
        run_id=str(run_id),
        tree=str(json.loads(str(done))["event"]["tree"]),
        base_commit=str(evidence["base_commit"]),
        outcome=Outcome.PASSED,
        at=str(at),
        assurance=Assurance(json.loads(str(began))["sandbox"]),
    )
