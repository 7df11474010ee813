"""Run the repaired and added tests once more with the environment disguised (L5), where calls cannot be repeated.

`check.rules.disguise` says what the disguise is, and when a failure is a suspicion. Only a failure costs more than one
further run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proofstone.check.derived_runs import WHOLE_SUITE_MS, DerivedRuns, Reruns, number_unstable_cases, split_command
from proofstone.check.execution import CheckDeadline
from proofstone.check.models import CheckKind, CheckResult, CheckSpec, LayerResult, ReportFormat, TestReport
from proofstone.check.rules.compare import ResultComparison
from proofstone.check.rules.disguise import (
    DISGUISED_RUNNERS,
    describe_suspicion,
    disguise_command,
    list_failing,
    list_passing,
)

_MAX_TESTS = 200
_MAX_BASE_TESTS = 20


@dataclass(frozen=True)
class DisguisedTests:
    """The layer that runs tests in a disguised environment."""

    reruns: Reruns
    """Knows both trees with what was built for them."""
    seconds: float
    """How long one run may take."""

    def examine(
        self, spec: CheckSpec, before: CheckResult | None, after: CheckResult, comparison: ResultComparison
    ) -> LayerResult:
        """Return why the confidence is not high if repaired or added tests fail in disguise. `before` has the base's
        own test ids."""
        if spec.report not in DISGUISED_RUNNERS or spec.shell is not None or spec.kind is not CheckKind.TESTS:
            return LayerResult()
        tests = list_passing(after.report, (*comparison.fixed, *comparison.added)[:_MAX_TESTS])
        if not tests or after.report is None:
            return LayerResult()
        selected = DerivedRuns.select_tests(spec, after.report, tests)
        if selected is None and after.duration_ms > WHOLE_SUITE_MS:
            return _note(
                spec, f"the runner cannot select tests, and the suite takes longer than {WHOLE_SUITE_MS // 1000} s"
            )
        argv = selected or split_command(spec) or spec.argv
        first = self._run(spec, argv)
        if first.report is None or not (list_passing(first.report, tests) or list_failing(first.report, tests)):
            return _note(spec, first.reason or "the runner reported none of them")
        failing = list_failing(first.report, tests)
        if failing:
            failing = list_failing(self._run(spec, argv).report, failing)
        if failing:
            failing = list_passing(self._run(spec, argv, is_disguised=False).report, failing)
        if not failing or self._fails_on_base(spec, before, failing):
            return LayerResult()
        return LayerResult(reasons=(describe_suspicion(spec.name, spec.report, failing, first.report),))

    def _fails_on_base(self, spec: CheckSpec, before: CheckResult | None, failing: Sequence[str]) -> bool:
        """Return whether tests of the base fail in the same disguise: then the project is like that."""
        report = before.report if before is not None else None
        if report is None:
            return False
        tests = _select_neighbours(report, failing)
        selected = DerivedRuns.select_tests(spec, report, tests)
        if not tests or (selected is None and before is not None and before.duration_ms > WHOLE_SUITE_MS):
            return False
        run = self._run(spec, selected or split_command(spec) or spec.argv, of_base=True)
        return bool(list_failing(run.report, tests))

    def _run(
        self, spec: CheckSpec, argv: Sequence[str], *, is_disguised: bool = True, of_base: bool = False
    ) -> CheckResult:
        command = disguise_command(ReportFormat(str(spec.report)), argv) if is_disguised else argv
        result = self.reruns.runner.run(
            spec,
            self.reruns.base if of_base else self.reruns.tree,
            argv=command,
            deadline=CheckDeadline(self.seconds, "limits.sabotage_seconds"),
        )
        recorded = self.reruns.recorder.record_extra_run(result, "disguised" if is_disguised else "selected")
        return number_unstable_cases(recorded, self.reruns.unstable.get(spec.name))


def _select_neighbours(report: TestReport, failing: Sequence[str]) -> tuple[str, ...]:
    """Return passing tests of the base of the same packages or files, the same tests first."""
    groups = {test.rpartition("/")[0].rpartition("::")[0] or test.rpartition("/")[0] for test in failing}
    passing = list_passing(report, [result.id for result in report.results])
    same = [test for test in passing if test in failing]
    near = [test for test in passing if any(test.startswith(group) for group in groups)]
    return tuple(dict.fromkeys((*same, *near)))[:_MAX_BASE_TESTS]


def _note(spec: CheckSpec, why: str) -> LayerResult:
    return LayerResult(notes=(f"{spec.name}: tests did not run with the environment disguised: {why}",))
