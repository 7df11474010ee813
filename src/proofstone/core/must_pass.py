"""Tests that the person named: each must be there, executed, and pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from proofstone.contracts.finding import Finding
from proofstone.contracts.tests import TestReport, TestResult, TestStatus
from proofstone.contracts.verdict import Severity


def must_pass_findings(
    wanted: Sequence[str], reports: Sequence[TestReport], *, all_measured: bool = True
) -> list[Finding]:
    """What stands against the named tests. Unless `all_measured`, one that is in no report may have been executed."""
    results = {result.id: result for report in reports for result in report.results}
    findings: list[Finding] = []
    for name in wanted:
        found = matching(name, results.values())
        if not found and all_measured:
            hint = _nearest(name, list(results))
            findings.append(_finding(name, "was not executed", hint, None))
        bad = [one for one in found if one.status not in (TestStatus.PASSED, TestStatus.XPASSED)]
        findings += [_finding(one.id, f"must pass, and is {one.status}", "make it pass", one.path) for one in bad]
    return findings


def _nearest(name: str, ids: Sequence[str]) -> str:
    """What was probably meant: compared by the last part of the id, which is what people type."""
    ends = {id.rpartition("::")[2].rpartition(" > ")[2]: id for id in ids} | {id: id for id in ids}
    near = get_close_matches(name, ends, n=1)
    return f"the nearest test is {ends[near[0]]}" if near else "name a test id as the runner prints it"


def matching(name: str, results: Iterable[TestResult]) -> list[TestResult]:
    """The tests that `name` means: an id, the end of ids (`test_x`, `Class::test_x`), or all parameters of a test."""
    return [one for one in results if _means(name, one.id)]


def _means(name: str, id: str) -> bool:
    bare = id.partition("[")[0] if "[" not in name else id
    return name in (id, bare) or any(bare.endswith(f"{mark}{name}") for mark in ("::", "/", " > ", "."))


def _finding(test: str, detail: str, fix: str, path: str | None) -> Finding:
    return Finding(
        layer="L3", rule="must-pass", severity=Severity.CRITICAL, path=path, detail=f"{test}: {detail}", fix=fix
    )
