"""Tests that must fail, planted among the others: what becomes of them says whether a report can be believed.

- A *canary* is a new test, random and ordinary to look at, that fails by itself (L4).
- A *changed expectation* is a test of the project whose expected values were changed (L5): it must fail as well, or
  something makes it pass whatever the code does, such as an object that equals everything.

An accusation is made only where it cannot be the test's own weakness: what passes in spite of a changed expectation
on the base as well proves little, but it is not the change that made it so, unless the task named that very test.

Whether a test depends on the change: it must fail when the change is not there (L5).

Asked in two ways. *Put back*: with the changed source files as they were on the base; a test that could not even be
loaded then says nothing. *Sabotaged*: with every changed function raising; a test that passes all the same does not
need what the change did, provided that all of the changed source could be sabotaged.

A test that the task names, or that failed before, is refused when it turns out not to depend on the change: something
else makes it pass. One further test of the change is enough; tests that the base passes too are no fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from proofstone.check.models import CheckResult, Examined, TestReport, TestResult, TestStatus
from proofstone.check.rules.outcome import Layer
from proofstone.common.models import Contract, Finding, Severity


class Kind(StrEnum):
    CANARY = "canary"
    EXPECTATION = "expectation"


class Planted(Contract):
    """One test that must fail."""

    kind: Kind
    path: str
    name: str
    """Of a canary: what its id contains. Of a test: its own name, with its class before a dot."""
    relied_on: bool = False
    """Whether the verdict rests on this very test: the task names it, or it failed on the base."""


class Fate(StrEnum):
    FAILED = "failed"
    PASSED = "passed"
    MISSING = "missing"
    UNKNOWN = "unknown"
    """Skipped, not loaded, or the run did not come to its end."""


def fate(planted: Planted, report: TestReport | None) -> Fate:
    if report is None:
        return Fate.UNKNOWN
    found = [result for result in report.results if result.path in (planted.path, None) and _is(planted, result.id)]
    if any(item.status.bad for item in found):
        return Fate.FAILED
    if any(item.status in (TestStatus.PASSED, TestStatus.XPASSED) for item in found):
        return Fate.PASSED
    broken = any(result.path == planted.path and result.status is TestStatus.ERROR for result in report.results)
    lost = not found and report.complete and not broken and planted.kind is Kind.CANARY
    return Fate.MISSING if lost else Fate.UNKNOWN


def _is(planted: Planted, id: str) -> bool:
    if planted.kind is Kind.CANARY:
        return planted.name in id
    shown = own_name(id, planted.path)
    return shown == planted.name or shown.endswith((f".{planted.name}", f" > {planted.name}"))


def own_name(id: str, path: str | None) -> str:
    """The name of a test without its file and parameters: `Class.test_x`, `describe > title`."""
    if path and id.startswith(path):
        rest = id.removeprefix(path).removeprefix("::").removeprefix(" > ")
        return rest.partition("[")[0].replace("::", ".") if id.startswith(f"{path}::") else rest
    return id


def accused(planted: Sequence[Planted], report: TestReport | None) -> list[Planted]:
    """What did not fail as it must."""
    return [item for item in planted if fate(item, report) in (Fate.PASSED, Fate.MISSING)]


def findings(
    planted: Iterable[Planted],
    run: CheckResult,
    base: TestReport | None,
    *,
    check: str,
) -> tuple[list[Finding], list[str]]:
    """What stands against the change, and what only keeps the confidence down. `base` is the same run on the base."""
    found: list[Finding] = []
    caps: list[str] = []
    for item in planted:
        now, then = fate(item, run.report), fate(item, base)
        if item.kind is Kind.EXPECTATION:
            if now is Fate.PASSED and (item.relied_on or then is Fate.FAILED):
                found.append(_unfailing(item, run, check))
        elif now is Fate.PASSED:
            found.append(_passed(item, run, check, also=then is Fate.PASSED))
        elif now is Fate.MISSING and then is Fate.FAILED:
            found.append(_missing(item, run, check))
        elif now in (Fate.MISSING, Fate.UNKNOWN):
            caps.append(f"{check}: whether its report can be believed was not shown: a planted test did not run")
    return found, list(dict.fromkeys(caps))


def _passed(one: Planted, run: CheckResult, check: str, *, also: bool) -> Finding:
    where = " (on the base, too: the environment itself lies)" if also else ""
    return _finding(
        one,
        run,
        check,
        "canary-passed",
        f"a test planted in {one.path} that must fail was reported as passed{where}: the report is worth nothing",
        "take out whatever changes results: hooks, patched assertions, exit handlers, start-up files",
    )


def _missing(one: Planted, run: CheckResult, check: str) -> Finding:
    return _finding(
        one,
        run,
        check,
        "canary-missing",
        f"a test planted in {one.path} that must fail is not in the report, although it is on the base",
        "let every test of a file run and be reported: no filter of tests by name",
    )


def _unfailing(one: Planted, run: CheckResult, check: str) -> Finding:
    return _finding(
        one,
        run,
        check,
        "unfailing-test",
        f"{one.name}: passes although its expected values were changed: nothing that it expects is really compared",
        "return plain values that compare as themselves, and let the test's assertions be reached",
    )


def _finding(one: Planted, run: CheckResult, check: str, rule: str, detail: str, fix: str) -> Finding:
    canary = one.kind is Kind.CANARY
    return Finding(
        layer=Layer.CANARY if canary else Layer.SENSITIVITY,
        rule=rule,
        severity=Severity.BLOCKER if canary else Severity.CRITICAL,
        path=one.path,
        detail=detail,
        fix=fix,
        check=check,
        artifact=run.artifact,
    )


def by_path(results: Iterable[TestResult]) -> Mapping[str, list[TestResult]]:
    """The results by file, of those that say in which file they are."""
    files: dict[str, list[TestResult]] = {}
    for result in results:
        if result.path is not None:
            files.setdefault(result.path, []).append(result)
    return files


class Asked(Contract):
    """What two runs without the change showed; None where one was not made."""

    put_back: TestReport | None = None
    sabotaged: TestReport | None = None
    whole: bool = False
    """Whether everything that changed was sabotaged."""


def depends(test: str, asked: Asked) -> bool | None:
    """Whether the test depends on the change; None where nobody can tell."""
    answers = (_when_put_back(test, asked.put_back), _when_sabotaged(test, asked))
    if False in answers:
        return False
    return True if True in answers else None


def _when_put_back(test: str, report: TestReport | None) -> bool | None:
    status = _status(test, report)
    if status is TestStatus.FAILED:
        return True
    return False if status in (TestStatus.PASSED, TestStatus.XPASSED) else None


def _when_sabotaged(test: str, asked: Asked) -> bool | None:
    status = _status(test, asked.sabotaged)
    if asked.sabotaged is None:
        return None
    if status in (TestStatus.PASSED, TestStatus.XPASSED):
        return False if asked.whole else None
    # Gone because its file could not be loaded, or failed: either way it needs what was sabotaged.
    return True if status is None or status.bad else None


def _status(test: str, report: TestReport | None) -> TestStatus | None:
    result = report.by_id.get(test) if report else None
    return result.status if result else None


def examine(
    tests: Sequence[str],
    counted_on: Iterable[str],
    asked: Asked,
    results: Mapping[str, TestResult],
    *,
    run: CheckResult | None,
    check: str,
    accepted: bool,
) -> Examined:
    """`tests` are new or went from fail to pass; all of `counted_on` must depend on the change."""
    answers = {test: depends(test, asked) for test in tests}
    sensitive = tuple(test for test, answer in answers.items() if answer)
    refused = [test for test in counted_on if answers.get(test) is False]
    caps = [] if sensitive or not tests else [f"{check}: no new or repaired test was seen to fail without the change"]
    return Examined(
        findings=tuple(_insensitive(results[test], run, check, accepted) for test in refused),
        sensitive=sensitive,
        caps=tuple(caps),
    )


def _insensitive(test: TestResult, run: CheckResult | None, check: str, accepted: bool) -> Finding:
    return Finding(
        layer=Layer.SENSITIVITY,
        rule="insensitive-test",
        severity=Severity.MINOR if accepted else Severity.CRITICAL,
        path=test.path,
        detail=f"{test.id}: passes without the change as well: with its source put back, or with every changed "
        "function raising. It does not test the change",
        fix="let the test call what was changed, and let nothing but that make it pass",
        check=check,
        artifact=run.artifact if run else None,
    )


def noticed(sabotaged: TestReport, after: TestReport) -> tuple[str, ...]:
    """The tests that pass on the change and fail, or cannot be loaded, when it is sabotaged."""
    known, passing = sabotaged.by_id, [result.id for result in after.results if result.status is TestStatus.PASSED]
    return tuple(sorted(test for test in passing if test not in known or known[test].status.bad))
