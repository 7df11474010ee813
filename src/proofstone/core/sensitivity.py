"""Whether a test depends on the change: it must fail when the change is not there (L5).

Asked in two ways. *Put back*: with the changed source files as they were on the base; a test that could not even be
loaded then says nothing. *Sabotaged*: with every changed function raising; a test that passes all the same does not
need what the change did, provided that all of the changed source could be sabotaged.

A test that the task names, or that failed before, is refused when it turns out not to depend on the change: something
else makes it pass. One further test of the change is enough; tests that the base passes too are no fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from proofstone.contracts.base import Contract
from proofstone.contracts.check import CheckResult
from proofstone.contracts.examined import Examined
from proofstone.contracts.finding import Finding
from proofstone.contracts.tests import TestReport, TestResult, TestStatus
from proofstone.contracts.verdict import Severity
from proofstone.core.layers import Layer


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
    known, passing = sabotaged.by_id, [one.id for one in after.results if one.status is TestStatus.PASSED]
    return tuple(sorted(test for test in passing if test not in known or known[test].status.bad))
