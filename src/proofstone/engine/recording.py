"""Puts results into the ledger, the cache and the artifact store, in the order in which they must be found."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.adapters.cache import ResultCache, digest_of
from proofstone.adapters.ledger import Ledger, Row
from proofstone.adapters.ledger.artifacts import ArtifactStore
from proofstone.contracts.check import CheckResult
from proofstone.contracts.evidence import CheckRow, snippet
from proofstone.contracts.rows import ArtifactRow, EventRow
from proofstone.contracts.verdict import Verdict
from proofstone.core.judge import Judgement
from proofstone.faults import fault_point


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
