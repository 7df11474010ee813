"""The layers that look at a check which passed: is the pass worth anything? Each layer is a module of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from proofstone.check.cache import ResultCache
from proofstone.check.derived_runs import NotMeasuredError
from proofstone.check.models import CheckResult, CheckSpec, Examined, together
from proofstone.check.old_tests import OldTests, Quieted
from proofstone.check.recording import Recorder
from proofstone.check.rules.compare import Comparison
from proofstone.check.rules.outcome import softened
from proofstone.check.sensitivity import MustFail, Planting, Sensitivity
from proofstone.common.models import Severity, Verdict

_NAME = "layers"


@dataclass(frozen=True)
class Layers:
    old_tests: OldTests
    must_fail: MustFail
    sensitivity: Sensitivity
    quieted: Quieted
    plants: Callable[[CheckSpec], bool]
    """Whether tests that must fail are planted for a check."""
    recorder: Recorder
    accepted: frozenset[str]
    """Rules that the person takes upon themselves."""
    fresh: bool

    def examine(
        self,
        spec: CheckSpec,
        before: CheckResult | None,
        known: CheckResult | None,
        after: CheckResult,
        found: Comparison,
        keys: tuple[str, str],
        planted: Future[Planting | None] | None,
    ) -> Examined:
        """What the layers say about a check that passed. `known` is `before` in the names of the change; `planted` is
        the run of tests that must fail, if it was started beside the check."""
        accepted = [*sorted(self.accepted), self.old_tests.accepted]
        key = ResultCache.key(layers=keys, required=self.must_fail.required, accepted=accepted)
        kept = None if self.fresh else self.recorder.cache.find(key)
        if kept is not None and kept.examined is not None:
            return kept.examined
        examined = self._asked(spec, before, known, after, found, planted)
        examined = examined.model_copy(update={"findings": tuple(softened(examined.findings, self.accepted))})
        self._record(after, examined, key)
        return examined

    def _asked(
        self,
        spec: CheckSpec,
        before: CheckResult | None,
        known: CheckResult | None,
        after: CheckResult,
        found: Comparison,
        planted: Future[Planting | None] | None,
    ) -> Examined:
        if spec.kind.complains:
            return _examined(lambda: self.quieted.examine(spec, known, after))
        if not spec.kind.exercises:
            return Examined()
        with ThreadPoolExecutor(3) as pool:
            asked = [
                pool.submit(_examined, lambda: self.old_tests.examine(spec, before, after)),
                pool.submit(_examined, lambda: self.sensitivity.examine(spec, known, after, found)),
            ]
            if after.report is not None and self.plants(spec):
                asked.append(pool.submit(_examined, lambda: self._planted(spec, known, after, planted)))
            return together([item.result() for item in asked])

    def _planted(
        self,
        spec: CheckSpec,
        before: CheckResult | None,
        after: CheckResult,
        early: Future[Planting | None] | None,
    ) -> Examined:
        if after.report is None:
            return Examined()
        base = before.report if before else None
        planting = early.result() if early else self.must_fail.plant(spec, after.report, base, after)
        return self.must_fail.examine(spec.name, planting, after.report)

    def _record(self, after: CheckResult, examined: Examined, key: str) -> None:
        """One row for all layers; it is kept, like any result, if it passed."""
        grave = [finding for finding in examined.findings if finding.severity is not Severity.MINOR]
        told = [f"{finding.layer} {finding.rule}: {finding.detail}" for finding in examined.findings]
        told += [*examined.caps, *examined.not_measured]
        verdict, reason = Verdict.PASS, ""
        if grave:
            verdict, reason = Verdict.FAIL, f"{grave[0].rule}: {grave[0].detail}"
        elif examined.not_measured:
            verdict, reason = Verdict.UNVERIFIABLE, examined.not_measured[0]
        result = after.model_copy(
            update={
                "verdict": verdict,
                "reason": reason,
                "output": "\n".join(told),
                "exit_code": None,
                "duration_ms": 0,
                "artifact": None,
                "report": None,
                "diagnostics": (),
                "reused_from": None,
                "examined": examined,
            }
        )
        self.recorder.further(result, _NAME, key)


def _examined(examine: Callable[[], Examined]) -> Examined:
    """What a layer found; a layer whose run died found nothing, and says which run that was."""
    try:
        return examine()
    except NotMeasuredError as error:
        return Examined(not_measured=(str(error),))
