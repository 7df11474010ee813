"""Check that the tests can fail (L4 and L5).

`MustFailLayer` plants tests that must fail among the project's own, runs them and examines the report. The user's own
command is never touched: this is a further run on a tree of its own. A short suite runs as a whole, so that nothing can
distinguish this run from the real one; otherwise only the files with planted tests run.

`SensitivityLayer` runs tests without the change: with its source reverted, and with everything that it touched made to
raise.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename
from random import SystemRandom

from proofstone.check.derived_runs import WHOLE_SUITE_MS, DerivedRuns, split_command
from proofstone.check.execution import CheckDeadline
from proofstone.check.inspection import ChangedFile
from proofstone.check.models import (
    CheckKind,
    CheckResult,
    CheckSpec,
    DeathCause,
    LayerResult,
    ReportFormat,
    TestReport,
    merge_layer_results,
)
from proofstone.check.observation import ObservationRequest
from proofstone.check.reports.rerun import disable_bail
from proofstone.check.rules.compare import ResultComparison, find_matching_tests
from proofstone.check.rules.must_fail import (
    PlantedFate,
    PlantedKind,
    PlantedTest,
    SensitivityEvidence,
    depends_on_change,
    examine_sensitivity,
    find_accused,
    find_fate,
    find_sensitive_tests,
    group_by_path,
    judge_planted,
    strip_test_id,
)
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.check.rules.protected import ProtectedRole
from proofstone.check.rules.reaching_tests import find_reaching_tests, request_coverage
from proofstone.check.setup import is_manifest
from proofstone.check.variants.canary import add_canary
from proofstone.check.variants.expectations import mutate_expectations
from proofstone.check.variants.sabotage import sabotage_file
from proofstone.common.models import ChangeKind, ConfidenceReason, Finding, Severity, Verdict
from proofstone.common.risk import is_docs_only

_MAX_CANARIES = 3
_SAMPLE_SIZE = 5
"""Number of tests with a changed expectation, in addition to those that the verdict relies on."""
_MAX_FILES = 40
_SYLLABLES = ("ba", "co", "di", "fu", "ga", "le", "mi", "no", "pa", "ri", "so", "ta", "vu", "ze")


@dataclass(frozen=True)
class MustFailPlan:
    """The tests to plant, and the resulting file contents."""

    planted: tuple[PlantedTest, ...]
    contents: Mapping[str, bytes]
    format: ReportFormat


@dataclass(frozen=True)
class MustFailRun:
    """A run with planted tests that has not been judged yet."""

    spec: CheckSpec
    report: TestReport
    plan: MustFailPlan
    like: CheckResult
    run: CheckResult


@dataclass(frozen=True)
class MustFailLayer:
    """The layer that plants tests that must fail."""

    derived_runs: DerivedRuns
    read: Callable[[Iterable[str]], Mapping[str, bytes]]
    """Reads files of the tree under check that exist and are not too large."""
    changed: frozenset[str]
    required: tuple[str, ...]

    def plant(
        self, spec: CheckSpec, report: TestReport, base: TestReport | None, like: CheckResult
    ) -> MustFailRun | None:
        """Run the check with planted tests; return None if none could be planted. `report` lists the tests, `base`
        shows which of them failed before, and `like` is a run of the same check, for its duration."""
        plan = self.plan(report, base)
        if plan is None:
            return None
        return MustFailRun(spec, report, plan, like, self._run_planted(spec, report, plan, like, "must-fail"))

    def examine(self, check: str, planting: MustFailRun | None, after: TestReport) -> LayerResult:
        """Judge the run. Only copies of tests that pass unchanged must fail."""
        if planting is None:
            reason = f"{check}: no test that must fail could be planted, so its report is not proven to be honest"
            return LayerResult(reasons=(ConfidenceReason(reason=reason),))
        plan, run = planting.plan, planting.run
        planted = [
            test
            for test in plan.planted
            if test.kind is PlantedKind.CANARY or find_fate(test, after) is PlantedFate.PASSED
        ]
        suspects = find_accused(planted, run.report)
        if not suspects and all(find_fate(test, run.report) is PlantedFate.FAILED for test in planted):
            return LayerResult()
        again, base = run, None
        if suspects:
            base = self._run_on_base(planting)
            again = self._run_planted(planting.spec, planting.report, plan, planting.like, "must-fail-again")
        steady = [test for test in planted if find_fate(test, again.report) is find_fate(test, run.report)]
        failures, reasons = judge_planted(steady, run, base.report if base else None, check=check)
        return LayerResult(findings=tuple(failures), reasons=tuple(reasons))

    def has_required_tests(self, base: TestReport) -> bool:
        """Return whether the base has every test that the task names, so that the tests to plant can be chosen from
        it."""
        return all(find_matching_tests(name, base.results) for name in self.required)

    def plan(self, report: TestReport, base: TestReport | None) -> MustFailPlan | None:
        """Choose what to plant: canaries near the change, and changed expectations in the tests that count and in a
        sample."""
        format = ReportFormat(report.runner)
        files = group_by_path(report.results)
        contents = dict(self.read(_sample_paths([*files], _MAX_FILES, first=self.changed)))
        near = sorted(contents, key=lambda path: not is_near_change(path, contents[path], self.changed))
        relied_on = {result.id for name in self.required for result in find_matching_tests(name, report.results)}
        relied_on |= {result.id for result in base.results if result.status.is_failure} if base else set()
        planted: list[PlantedTest] = []
        for path in near:
            names = {
                strip_test_id(test_result.id, path)
                for test_result in files.get(path, ())
                if test_result.id in relied_on
            }
            others = sorted({strip_test_id(test_result.id, path) for test_result in files.get(path, ())} - names)
            sample = set(SystemRandom().sample(others, min(len(others), max(0, _SAMPLE_SIZE - len(planted)))))
            mutation = mutate_expectations(path, contents[path], names | sample, word=_random_word())
            contents[path] = mutation.content
            planted += [
                PlantedTest(kind=PlantedKind.EXPECTATION, path=path, name=name, relied_on=name in names)
                for name in mutation.tests
            ]
        canaries = 0
        for path in near:
            canary = add_canary(format, path, contents[path], _random_word()) if canaries < _MAX_CANARIES else None
            if canary is not None:
                contents[path] = canary.content
                planted.append(PlantedTest(kind=PlantedKind.CANARY, path=path, name=canary.name))
                canaries += 1
        touched = {test.path for test in planted}
        return MustFailPlan(tuple(planted), {path: contents[path] for path in touched}, format) if planted else None

    def _run_planted(
        self, spec: CheckSpec, report: TestReport, plan: MustFailPlan, like: CheckResult, suffix: str
    ) -> CheckResult:
        tree = self.derived_runs.with_contents(plan.contents)
        return self.derived_runs.run(spec, tree, suffix, argv=self._select_argv(spec, report, plan, like))

    def _run_on_base(self, planting: MustFailRun) -> CheckResult:
        tree = self.derived_runs.with_contents(planting.plan.contents, of_base=True)
        argv = self._select_argv(planting.spec, planting.report, planting.plan, planting.like)
        return self.derived_runs.run(planting.spec, tree, "must-fail-on-base", argv=argv, of_base=True)

    def _select_argv(
        self, spec: CheckSpec, report: TestReport, plan: MustFailPlan, like: CheckResult
    ) -> Sequence[str] | None:
        files = sorted(plan.contents)
        if like.duration_ms > WHOLE_SUITE_MS and (selected := self.derived_runs.select_tests(spec, report, files)):
            return selected
        argv = split_command(spec)
        return disable_bail(plan.format, argv) if argv else None


def is_near_change(path: str, content: bytes, changed: frozenset[str]) -> bool:
    """Return whether a test file is related to the change: the change includes it, or it names a changed file."""
    stems = {basename(file).partition(".")[0] for file in changed} - {"__init__", "index", ""}
    return path in changed or any(stem.encode() in content for stem in stems)


def _sample_paths(paths: Sequence[str], most: int, *, first: frozenset[str]) -> list[str]:
    """Return at most `most` paths: those in `first` come first, and the others are chosen at random."""
    shuffled = SystemRandom().sample(paths, len(paths))
    return sorted(shuffled, key=lambda path: path not in first)[:most]


def _random_word() -> str:
    return "".join(secrets.choice(_SYLLABLES) for _ in range(4))


_MAX_TESTS = 200
"""Maximum number of tests to examine."""
_OBSERVED_RUNNERS = (ReportFormat.PYTEST, ReportFormat.UNITTEST)
_TOLERATED_DEATHS = (DeathCause.DEADLINE, DeathCause.UNFINISHED)
"""What sabotage itself may do to a program: it hangs, or its test runner stops early. That shows nothing, but the
engine caused it, so it lowers the confidence and leaves the verdict."""


@dataclass(frozen=True)
class SensitivityLayer:
    """The layer that runs tests without the change."""

    derived_runs: DerivedRuns
    files: Sequence[ChangedFile]
    oracle: frozenset[str]
    """Changed files that decide what the base's tests expect."""
    required: tuple[str, ...]
    sabotage_seconds: float

    @property
    def source_files(self) -> list[ChangedFile]:
        """The changed files of the product itself: no tests, no files that decide them, no documentation."""
        return [
            file
            for file in self.files
            if not file.roles
            and file.path not in self.oracle
            and not is_docs_only([file.path])
            and not is_manifest(file.path)
        ]

    def request(self, spec: CheckSpec) -> ObservationRequest | None:
        """Return what the run of the tests on the change must observe."""
        is_observed = spec.report in _OBSERVED_RUNNERS and spec.shell is None
        return request_coverage(self._list_changed_lines()) if is_observed else None

    def _list_changed_lines(self) -> dict[str, list[int]]:
        return {file.path: [number for number, _ in file.added_lines] for file in self.source_files}

    def examine(
        self, spec: CheckSpec, before: CheckResult | None, after: CheckResult, comparison: ResultComparison
    ) -> LayerResult:
        """Return the tests that fail without the change, and findings for those that should and do not."""
        if not self.source_files:
            return LayerResult()
        if after.report is None:
            return self._examine_by_exit_code(spec, before, after) if after.kind.executes_change else LayerResult()
        required = {result.id for name in self.required for result in find_matching_tests(name, after.report.results)}
        candidates = {*comparison.fixed, *comparison.added}
        # If tests were edited too, their old results mean nothing: rely only on tests that the task names.
        tests_edited = self.oracle or any(
            file.roles & {ProtectedRole.TESTS, ProtectedRole.RUNNER} for file in self.files
        )
        relied_on = sorted((set() if tests_edited else {*comparison.fixed}) | (required & candidates))
        tests = [*relied_on, *sorted(candidates - set(relied_on))][:_MAX_TESTS]
        if not tests:
            return self._examine_coverage(spec, after)
        put_back = self._run_source_reverted(spec, before, after.report, tests)
        run, is_complete = self._run_sabotaged(spec, after, tests)
        evidence = SensitivityEvidence(put_back=put_back, sabotaged=run.report if run else None, whole=is_complete)
        relied_on = self._drop_flaky(spec, relied_on, evidence, before)
        examination = examine_sensitivity(tests, relied_on, evidence, after.report.by_id, run=run, check=spec.name)
        return merge_layer_results((examination, LayerResult(uncovered=_describe_sabotage_gap(spec, run))))

    def _drop_flaky(
        self, spec: CheckSpec, tests: Sequence[str], evidence: SensitivityEvidence, before: CheckResult | None
    ) -> list[str]:
        """Return the tests without those that would be accused and pass on a rerun of the base: they had failed by
        chance."""
        suspects = [test for test in tests if depends_on_change(test, evidence) is False]
        base_results = before.report.by_id if before and before.report else {}
        flaky = [test for test in suspects if test in base_results and base_results[test].status.is_failure]
        if not flaky or before is None or before.report is None:
            return list(tests)
        argv = self.derived_runs.select_tests(spec, before.report, flaky)
        again = self.derived_runs.run(spec, self.derived_runs.snapshot.base, "base-again", argv=argv, of_base=True)
        rerun_results = again.report.by_id if again.report else {}
        return [
            test
            for test in tests
            if test not in flaky or test not in rerun_results or rerun_results[test].status.is_failure
        ]

    def _run_source_reverted(
        self, spec: CheckSpec, before: CheckResult | None, report: TestReport, tests: Sequence[str]
    ) -> TestReport | None:
        """Run the tests with the source of the change reverted. If only source changed, return the report of the
        base."""
        source = {os.fsencode(file.path) for file in self.source_files}
        others = [entry for entry in self.derived_runs.snapshot.entries if entry.path not in source]
        if not others:
            return before.report if before else None
        tree = self.derived_runs.with_base_files(source)
        argv = self.derived_runs.select_tests(spec, report, tests)
        return self.derived_runs.run(spec, tree, "source-put-back", argv=argv).report

    def _run_sabotaged(
        self, spec: CheckSpec, after: CheckResult, tests: Sequence[str]
    ) -> tuple[CheckResult | None, bool]:
        """Run the tests with the change sabotaged; return the result and whether all of the change was sabotaged."""
        contents: dict[str, bytes] = {}
        is_complete = True
        for file in self.source_files:
            broken = sabotage_file(file.path, file.old, file.new) if file.new is not None else None
            if broken is not None:
                contents[file.path] = broken.content
            is_complete = is_complete and broken is not None and broken.complete and file.kind is not ChangeKind.DELETED
        if not contents:
            return None, False
        argv = self.derived_runs.select_tests(spec, after.report, tests) if after.report and tests else None
        tree = self.derived_runs.with_contents(contents)
        deadline = CheckDeadline(self.sabotage_seconds, "limits.sabotage_seconds")
        run = self.derived_runs.run(spec, tree, "sabotaged", argv=argv, deadline=deadline, tolerated=_TOLERATED_DEATHS)
        return run, is_complete

    def _examine_coverage(self, spec: CheckSpec, after: CheckResult) -> LayerResult:
        """Find out whether any test notices the change, although no test is new or repaired. Tests that were seen to
        execute the changed lines are enough; without any, the whole suite may have some."""
        reaching = sorted(find_reaching_tests(after.observations, self._list_changed_lines()))[:_MAX_TESTS]
        if not reaching and after.duration_ms > WHOLE_SUITE_MS:
            reason = f"{spec.name}: no test is new or repaired, and the suite is too slow to test its coverage"
            return LayerResult(uncovered=(_build_uncovered(reason),))
        run, is_complete = self._run_sabotaged(spec, after, reaching)
        tests = find_sensitive_tests(run.report, after.report) if run and run.report and after.report else ()
        if gap := _describe_sabotage_gap(spec, run):
            return LayerResult(sensitive=tests, uncovered=gap)
        uncovered = _build_uncovered(f"{spec.name}: no test covers the change: none fails if all changed code raises")
        return LayerResult(sensitive=tests, uncovered=(uncovered,) if is_complete and not tests else ())

    def _examine_by_exit_code(self, spec: CheckSpec, before: CheckResult | None, after: CheckResult) -> LayerResult:
        """Treat the check itself as the test if there are no ids: it must not pass with the change sabotaged."""
        run, is_complete = self._run_sabotaged(spec, after, ())
        if run is None or run.verdict is not Verdict.PASS:
            # A user's own command may read the changed code instead of running it.
            is_sensitive = run is not None and run.verdict is Verdict.FAIL and spec.kind is CheckKind.TESTS
            sensitive = (spec.name,) if is_sensitive else ()
            return LayerResult(sensitive=sensitive, uncovered=_describe_sabotage_gap(spec, run))
        # A user's own command may read files instead of running them, and may be right to do so.
        if not is_complete or before is None or before.verdict is not Verdict.FAIL or spec.kind is not CheckKind.TESTS:
            reason = f"{spec.name}: does not cover the change: it passes if all changed code raises"
            return LayerResult(uncovered=(_build_uncovered(reason),))
        return LayerResult(
            findings=(
                Finding(
                    layer=EvidenceLayer.SENSITIVITY,
                    rule="insensitive-test",
                    severity=Severity.CRITICAL,
                    detail=f"{spec.name}: failed on the base, and passes now even if all changed code raises: "
                    "something other than the change makes it pass",
                    fix="make the check run the changed code and end with its own exit code",
                    check=spec.name,
                    artifact=run.artifact,
                ),
            )
        )


def _build_uncovered(reason: str) -> ConfidenceReason:
    return ConfidenceReason(reason=reason, remedy="add a test that calls the changed code and fails without it")


def _describe_sabotage_gap(spec: CheckSpec, run: CheckResult | None) -> tuple[ConfidenceReason, ...]:
    """Return what is unknown because the sabotaged run died."""
    if run is None or run.death is None:
        return ()
    reason = f"{spec.name}: unknown whether tests notice the change: with sabotage, {run.death.detail}"
    remedy = f"raise {run.death.setting} to give it more time" if run.death.setting else ""
    return (ConfidenceReason(reason=reason, remedy=remedy),)
