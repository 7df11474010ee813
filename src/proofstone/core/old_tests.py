"""The base's tests, run on the changed source: what an edited test hides.

A change may edit tests. The tests as they were still run beside the new ones, and where they disagree the
expectation was edited: the old one fails on the new source, the new one passes. That may be right, and then it needs
a person's word; it is never taken in silence. Neither is it when the old tests cannot be run at all.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from proofstone.contracts.check import CheckResult
from proofstone.contracts.finding import Finding
from proofstone.contracts.tests import TestReport, TestStatus
from proofstone.contracts.verdict import Severity, Verdict
from proofstone.core.layers import Layer

_SAY_SO = "if it was wrong, say so with --accept-test-changes"


def edited_expectations(old_tests: TestReport, new_tests: TestReport, known: Set[str]) -> tuple[str, ...]:
    """Tests that fail as they stood on the base, and pass as the change left them. `known` are the base's: a new test
    may well need a new fixture, which the old tests are run without."""
    passing = {result.id for result in new_tests.results if result.status.executed and not result.status.bad}
    failing = {result.id for result in old_tests.results if result.status.bad}
    return tuple(sorted(failing & passing & known))


def unrunnable(old: CheckResult, before: TestReport, edited: Sequence[str]) -> str:
    """Why the base's tests say nothing about the change; empty if they were run."""
    broken_before = {result.id for result in before.results if result.status.bad}
    for result in old.report.results if old.report else ():
        if result.status is TestStatus.ERROR and result.id in edited and result.id not in broken_before:
            return result.told(f"{result.id} cannot be loaded any more")
    if old.report is None or not old.report.complete:
        return old.reason or "their run ended before it was finished"
    return ""


def expectation_findings(tests: Sequence[str], old: CheckResult, *, accepted: bool) -> list[Finding]:
    known = old.report.by_id if old.report else {}
    told = "passes only because the test was edited; as it stood on the base it fails"
    return [
        _finding(
            old,
            "edited-expectation",
            known[test].told(f"{test}: {told}"),
            f"change the source, not the test; {_SAY_SO}",
            accepted=accepted,
            path=known[test].path,
        )
        for test in tests
    ]


def unrunnable_finding(old: CheckResult, why: str, *, accepted: bool) -> Finding:
    detail = f"the change edits tests, and as they stood on the base they cannot be run on it: {why}"
    return _finding(old, "old-tests-unrunnable", detail, f"keep what they use; {_SAY_SO}", accepted=accepted)


def edited_check(old: CheckResult) -> bool:
    """Without ids: the check as it stood on the base fails on the changed source."""
    return old.verdict is Verdict.FAIL


def edited_check_finding(old: CheckResult, *, accepted: bool) -> Finding:
    detail = (
        f"the check passes only because its tests or its command were edited; as they stood on the base: {old.reason}"
    )
    return _finding(old, "edited-check", detail, f"change the source, not the check; {_SAY_SO}", accepted=accepted)


def _finding(old: CheckResult, rule: str, detail: str, fix: str, *, accepted: bool, path: str | None = None) -> Finding:
    severity = Severity.MINOR if accepted else Severity.CRITICAL
    return Finding(
        layer=Layer.PROTECTED_FILES,
        rule=rule,
        severity=severity,
        path=path,
        detail=detail,
        fix=fix,
        check=old.name.removesuffix(":old-tests"),
        artifact=old.artifact,
    )
