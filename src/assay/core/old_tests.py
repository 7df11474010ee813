"""The base's tests, run on the changed source: what an edited test hides.

A change may edit tests. The tests as they were still run beside the new ones, and where they disagree the
expectation was edited: the old one fails on the new source, the new one passes. That may be right, and then it needs
a person's word; it is never taken in silence.
"""

from __future__ import annotations

from assay.contracts.finding import Finding
from assay.contracts.tests import TestReport
from assay.contracts.verdict import Severity


def edited_expectations(old_tests: TestReport, new_tests: TestReport) -> tuple[str, ...]:
    """Tests that fail as they stood on the base, and pass as the change left them."""
    now = new_tests.by_id
    return tuple(
        sorted(
            result.id
            for result in old_tests.results
            if result.status.bad
            and result.id in now
            and now[result.id].status.executed
            and not now[result.id].status.bad
        )
    )


def expectation_findings(
    edited: tuple[str, ...], old_tests: TestReport, check: str, artifact: str | None, *, accepted: bool
) -> list[Finding]:
    known = old_tests.by_id
    told = "passes only because the test was edited; as it stood on the base it fails"
    return [
        Finding(
            layer="L2",
            rule="edited-expectation",
            severity=Severity.MINOR if accepted else Severity.CRITICAL,
            path=known[test].path,
            detail=f"{test}: {told}{_how(known[test].message)}",
            fix="change the source, not the test; if the expectation was wrong, say so with --accept-test-changes",
            check=check,
            artifact=artifact,
        )
        for test in edited
    ]


def _how(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""
