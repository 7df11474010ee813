"""The layers of evidence: they examine a check that passed and decide whether the pass is worth anything.

Each layer has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from proofstone.check.cache import ResultCache
from proofstone.check.call_repetition import CallRepetition
from proofstone.check.call_repetition_javascript import JavaScriptCallRepetition
from proofstone.check.derived_runs import NotMeasuredError
from proofstone.check.disguised_tests import DisguisedTests
from proofstone.check.models import CheckResult, CheckSpec, LayerResult, merge_layer_results
from proofstone.check.mutation_runs import StrengthLayer
from proofstone.check.old_tests import OldTests
from proofstone.check.recording import CheckRecorder
from proofstone.check.rules.acceptance import downgrade_accepted, is_serious
from proofstone.check.rules.compare import ResultComparison
from proofstone.check.sensitivity import MustFailLayer, MustFailRun, SensitivityLayer
from proofstone.check.suppression_check import SuppressionCheck
from proofstone.common.models import Acceptance, Verdict

_NAME = "layers"


@dataclass(frozen=True)
class LayerExaminer:
    """All layers of one run."""

    old_tests: OldTests
    must_fail: MustFailLayer
    sensitivity: SensitivityLayer
    strength: StrengthLayer
    suppression_check: SuppressionCheck
    call_repetition: CallRepetition
    javascript_calls: JavaScriptCallRepetition
    disguised_tests: DisguisedTests
    needs_must_fail: Callable[[CheckSpec], bool]
    """Returns whether tests that must fail are planted for a check, and whether its tests meet mutants."""
    recorder: CheckRecorder
    accepted: tuple[Acceptance, ...]
    """What a person accepted before the check. The record of the layers says what still refuses the change."""
    fresh: bool
    expectations_only: bool = False
    """Whether only the old tests examine a check."""

    def examine(
        self,
        spec: CheckSpec,
        before: CheckResult | None,
        renamed_base: CheckResult | None,
        after: CheckResult,
        comparison: ResultComparison,
        keys: tuple[str, str],
        must_fail_run: Future[MustFailRun | None] | None,
    ) -> LayerResult:
        """Let the layers examine a check that passed. `renamed_base` is `before` with the test names of the change;
        `must_fail_run` is the run of tests that must fail, if it was started early. Findings keep their severity: the
        caller applies acceptances."""
        accepted = [acceptance.model_dump(mode="json") for acceptance in self.accepted]
        only = {"expectations_only": True} if self.expectations_only else {}
        required, strength = self.must_fail.required, self.strength.level
        key = ResultCache.build_key(layers=keys, required=required, accepted=accepted, strength=strength, **only)
        cached = None if self.fresh else self.recorder.cache.lookup(key)
        if cached is not None and cached.examined is not None:
            return cached.examined
        examined = self._run_layers(spec, before, renamed_base, after, comparison, must_fail_run)
        self._record(after, examined, key)
        return examined

    def _run_layers(
        self,
        spec: CheckSpec,
        before: CheckResult | None,
        renamed_base: CheckResult | None,
        after: CheckResult,
        comparison: ResultComparison,
        must_fail_run: Future[MustFailRun | None] | None,
    ) -> LayerResult:
        if spec.kind.reports_diagnostics:
            return _catch_not_measured(lambda: self.suppression_check.examine(spec, renamed_base, after))
        if not spec.kind.executes_change:
            return LayerResult()
        if self.expectations_only:
            return _catch_not_measured(lambda: self.old_tests.examine(spec, before, after))
        with ThreadPoolExecutor(7) as pool:
            futures = [
                pool.submit(_catch_not_measured, lambda: self.call_repetition.examine(spec, after, comparison)),
                pool.submit(_catch_not_measured, lambda: self.javascript_calls.examine(spec, after, comparison)),
                pool.submit(_catch_not_measured, lambda: self.disguised_tests.examine(spec, before, after, comparison)),
                pool.submit(_catch_not_measured, lambda: self.old_tests.examine(spec, before, after)),
                pool.submit(
                    _catch_not_measured, lambda: self.sensitivity.examine(spec, renamed_base, after, comparison)
                ),
            ]
            if after.report is not None and self.needs_must_fail(spec):
                futures.append(
                    pool.submit(
                        _catch_not_measured, lambda: self._examine_must_fail(spec, renamed_base, after, must_fail_run)
                    )
                )
                futures.append(pool.submit(_catch_not_measured, lambda: self.strength.examine(spec, after)))
            return merge_layer_results([future.result() for future in futures])

    def _examine_must_fail(
        self,
        spec: CheckSpec,
        before: CheckResult | None,
        after: CheckResult,
        must_fail_run: Future[MustFailRun | None] | None,
    ) -> LayerResult:
        if after.report is None:
            return LayerResult()
        base = before.report if before else None
        planting = must_fail_run.result() if must_fail_run else self.must_fail.plant(spec, after.report, base, after)
        return self.must_fail.examine(spec.name, planting, after.report)

    def _record(self, after: CheckResult, examined: LayerResult, key: str) -> None:
        """Record one row for all layers. Like any result, it is cached if it passed."""
        serious = [finding for finding in downgrade_accepted(examined.findings, self.accepted) if is_serious(finding)]
        messages = [f"{finding.layer} {finding.rule}: {finding.detail}" for finding in examined.findings]
        messages += [*map(str, (*examined.reasons, *examined.uncovered)), *examined.not_measured]
        verdict, reason = Verdict.PASS, ""
        if serious:
            verdict, reason = Verdict.FAIL, f"{serious[0].rule}: {serious[0].headline}"
        elif examined.not_measured:
            verdict, reason = Verdict.UNVERIFIABLE, examined.not_measured[0]
        result = after.model_copy(
            update={
                "verdict": verdict,
                "reason": reason,
                "output": "\n".join(messages),
                "exit_code": None,
                "duration_ms": 0,
                "artifact": None,
                "report": None,
                "diagnostics": (),
                "reused_from": None,
                "examined": examined,
            }
        )
        self.recorder.record_extra_run(result, _NAME, key)


def _catch_not_measured(examine: Callable[[], LayerResult]) -> LayerResult:
    """Return what a layer found. A layer whose run died found nothing and names that run."""
    try:
        return examine()
    except NotMeasuredError as error:
        return LayerResult(not_measured=(str(error),))
