"""Judge tests that must fail: planted tests (L4, L5), and tests that depend on the change (L5).

Planted tests show whether a report can be trusted. A *canary* is a new, random, ordinary-looking test that fails by
itself. A *changed expectation* is a test of the project whose expected values were changed: it must fail as well, or
something makes it pass whatever the code does, such as an object that equals everything. A change is accused only if
the cause cannot be a weak test: if a test passes with a changed expectation on the base as well, the change did not
cause it, unless the task named that very test.

A test that depends on the change must fail without it. That is tried in two ways. *Reverted*: with the changed source
files as they were on the base. A test that could not even be loaded then shows nothing. *Sabotaged*: with every changed
function raising. A test that still passes does not need the change, provided that all of the changed source could be
sabotaged. A test that the task names, or that failed before, is refused if it does not depend on the change, because
something else makes it pass. One dependent test is enough for the others, and tests that also pass on the base are
acceptable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from proofstone.check.models import CheckResult, LayerResult, TestReport, TestResult, TestStatus
from proofstone.check.rules.outcome import EvidenceLayer
from proofstone.common.models import ConfidenceReason, Finding, FrozenModel, Severity


class PlantedKind(StrEnum):
    """The kinds of planted tests."""

    CANARY = "canary"
    EXPECTATION = "expectation"


class PlantedTest(FrozenModel):
    """One planted test that must fail."""

    kind: PlantedKind
    path: str
    name: str
    """For a canary, a part of its id. For a changed expectation, the test's own name, with its class before a dot."""
    relied_on: bool = False
    """Whether the verdict relies on this very test: the task names it, or it failed on the base."""


class PlantedFate(StrEnum):
    """What happened to a planted test."""

    FAILED = "failed"
    PASSED = "passed"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """The test was skipped or not loaded, or the run did not finish."""


def find_fate(planted: PlantedTest, report: TestReport | None) -> PlantedFate:
    """Return what happened to a planted test, according to the report."""
    if report is None:
        return PlantedFate.UNKNOWN
    matches = [
        result for result in report.results if result.path in (planted.path, None) and _is_same_test(planted, result.id)
    ]
    if any(result.status.is_failure for result in matches):
        return PlantedFate.FAILED
    if any(result.status in (TestStatus.PASSED, TestStatus.XPASSED) for result in matches):
        return PlantedFate.PASSED
    broken = any(result.path == planted.path and result.status is TestStatus.ERROR for result in report.results)
    lost = not matches and report.complete and not broken and planted.kind is PlantedKind.CANARY
    return PlantedFate.MISSING if lost else PlantedFate.UNKNOWN


def _is_same_test(planted: PlantedTest, id: str) -> bool:
    if planted.kind is PlantedKind.CANARY:
        return planted.name in id
    name = strip_test_id(id, planted.path)
    return name == planted.name or name.endswith((f".{planted.name}", f" > {planted.name}"))


def strip_test_id(id: str, path: str | None) -> str:
    """Return the name of a test without its file and parameters: `Class.test_x`, `describe > title`."""
    if path and id.startswith(path):
        rest = id.removeprefix(path).removeprefix("::").removeprefix(" > ")
        return rest.partition("[")[0].replace("::", ".") if id.startswith(f"{path}::") else rest
    return id


def find_accused(planted: Sequence[PlantedTest], report: TestReport | None) -> list[PlantedTest]:
    """Return the planted tests that did not fail."""
    return [test for test in planted if find_fate(test, report) in (PlantedFate.PASSED, PlantedFate.MISSING)]


def judge_planted(
    planted: Iterable[PlantedTest],
    run: CheckResult,
    base: TestReport | None,
    *,
    check: str,
) -> tuple[list[Finding], list[ConfidenceReason]]:
    """Return findings against the change, and reasons that only lower the confidence. `base` is the same run on the
    base."""
    results: list[Finding] = []
    reasons: list[ConfidenceReason] = []
    for test in planted:
        change_fate, base_fate = find_fate(test, run.report), find_fate(test, base)
        if test.kind is PlantedKind.EXPECTATION:
            if change_fate is PlantedFate.PASSED and (test.relied_on or base_fate is PlantedFate.FAILED):
                results.append(_build_unfailing_finding(test, run, check))
        elif change_fate is PlantedFate.PASSED:
            results.append(_build_canary_passed_finding(test, run, check, also=base_fate is PlantedFate.PASSED))
        elif change_fate is PlantedFate.MISSING and base_fate is PlantedFate.FAILED:
            results.append(_build_canary_missing_finding(test, run, check))
        elif change_fate in (PlantedFate.MISSING, PlantedFate.UNKNOWN):
            reasons.append(
                ConfidenceReason(
                    reason=f"{check}: a planted test did not run, so it is unknown whether the report can be trusted",
                    remedy="let the runner execute every test of a file, without filters by name",
                )
            )
    return results, list(dict.fromkeys(reasons))


def _build_canary_passed_finding(test: PlantedTest, run: CheckResult, check: str, *, also: bool) -> Finding:
    where = " (on the base too: the environment itself falsifies results)" if also else ""
    return _build_finding(
        test,
        run,
        check,
        "canary-passed",
        f"a test planted in {test.path} that must fail was reported as passed{where}: the report cannot be trusted",
        "remove everything that changes results: hooks, patched assertions, exit handlers, start-up files",
    )


def _build_canary_missing_finding(test: PlantedTest, run: CheckResult, check: str) -> Finding:
    return _build_finding(
        test,
        run,
        check,
        "canary-missing",
        f"a test planted in {test.path} that must fail is not in the report, although the report of the base has it",
        "let every test of a file run and be reported; do not filter tests by name",
    )


def _build_unfailing_finding(test: PlantedTest, run: CheckResult, check: str) -> Finding:
    return _build_finding(
        test,
        run,
        check,
        "unfailing-test",
        f"{test.name}: passes although its expected values were changed: it does not really compare them",
        "return plain values with ordinary comparison, and make sure that the test reaches its assertions",
    )


def _build_finding(test: PlantedTest, run: CheckResult, check: str, rule: str, detail: str, fix: str) -> Finding:
    is_canary = test.kind is PlantedKind.CANARY
    return Finding(
        layer=EvidenceLayer.CANARY if is_canary else EvidenceLayer.SENSITIVITY,
        rule=rule,
        severity=Severity.BLOCKER if is_canary else Severity.CRITICAL,
        path=test.path,
        detail=detail,
        fix=fix,
        check=check,
        artifact=run.artifact,
    )


def group_by_path(results: Iterable[TestResult]) -> Mapping[str, list[TestResult]]:
    """Group the results by file. Results without a file are left out."""
    files: dict[str, list[TestResult]] = {}
    for result in results:
        if result.path is not None:
            files.setdefault(result.path, []).append(result)
    return files


class SensitivityEvidence(FrozenModel):
    """The reports of two runs without the change. A report is None if that run was not made."""

    put_back: TestReport | None = None
    sabotaged: TestReport | None = None
    whole: bool = False
    """Whether everything that changed was sabotaged."""


def depends_on_change(test: str, evidence: SensitivityEvidence) -> bool | None:
    """Return whether the test depends on the change; None if that is unknown."""
    answers = (_depends_when_reverted(test, evidence.put_back), _depends_when_sabotaged(test, evidence))
    if False in answers:
        return False
    return True if True in answers else None


def _depends_when_reverted(test: str, report: TestReport | None) -> bool | None:
    status = _find_status(test, report)
    if status is TestStatus.FAILED:
        return True
    return False if status in (TestStatus.PASSED, TestStatus.XPASSED) else None


def _depends_when_sabotaged(test: str, evidence: SensitivityEvidence) -> bool | None:
    status = _find_status(test, evidence.sabotaged)
    if evidence.sabotaged is None:
        return None
    if status in (TestStatus.PASSED, TestStatus.XPASSED):
        return False if evidence.whole else None
    # The test failed, or its file could not be loaded: either way it needs what was sabotaged.
    return True if status is None or status.is_failure else None


def _find_status(test: str, report: TestReport | None) -> TestStatus | None:
    result = report.by_id.get(test) if report else None
    return result.status if result else None


def examine_sensitivity(
    tests: Sequence[str],
    relied_on: Iterable[str],
    evidence: SensitivityEvidence,
    results: Mapping[str, TestResult],
    *,
    run: CheckResult | None,
    check: str,
) -> LayerResult:
    """Examine tests that are new or went from fail to pass. All tests in `relied_on` must depend on the change."""
    answers = {test: depends_on_change(test, evidence) for test in tests}
    sensitive = tuple(test for test, answer in answers.items() if answer)
    refused = [test for test in relied_on if answers.get(test) is False]
    uncovered = ConfidenceReason(
        reason=f"{check}: no new or repaired test fails without the change",
        remedy="add a test that calls the changed code and fails without it",
    )
    return LayerResult(
        findings=tuple(_build_insensitive_finding(results[test], run, check) for test in refused),
        sensitive=sensitive,
        uncovered=() if sensitive or not tests else (uncovered,),
    )


def _build_insensitive_finding(test: TestResult, run: CheckResult | None, check: str) -> Finding:
    return Finding(
        layer=EvidenceLayer.SENSITIVITY,
        rule="insensitive-test",
        severity=Severity.CRITICAL,
        path=test.path,
        detail=f"{test.id}: does not test the change: it also passes with the source reverted, or with every changed "
        "function raising",
        fix="make the test call the changed code, and let nothing else make it pass",
        check=check,
        artifact=run.artifact if run else None,
    )


def find_sensitive_tests(sabotaged: TestReport, after: TestReport) -> tuple[str, ...]:
    """Return the tests that pass on the change and fail, or cannot be loaded, when it is sabotaged."""
    sabotaged_results, passing = (
        sabotaged.by_id,
        [result.id for result in after.results if result.status is TestStatus.PASSED],
    )
    return tuple(
        sorted(test for test in passing if test not in sabotaged_results or sabotaged_results[test].status.is_failure)
    )
