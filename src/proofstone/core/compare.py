"""Test results of two trees, compared by id.

A failure that stood in the baseline is not the change's; a test that is gone, or skipped where it used to run,
proves nothing any more and is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proofstone.contracts.base import Contract
from proofstone.contracts.tests import ReportFormat, TestReport, TestResult, TestStatus


class Comparison(Contract):
    """Ids, sorted, each in one list only."""

    fixed: tuple[str, ...] = ()
    """Failed before, pass now."""
    regressions: tuple[str, ...] = ()
    """Did not fail before, fail now."""
    new_failures: tuple[str, ...] = ()
    """Were not there before, and fail."""
    standing: tuple[str, ...] = ()
    """Failed before, fail still."""
    vanished: tuple[str, ...] = ()
    """Ran before, are not there now."""
    newly_skipped: tuple[str, ...] = ()
    """Ran before; are skipped, never reached or declared to fail now."""
    added: tuple[str, ...] = ()
    """Were not there before, and pass."""

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(sorted((*self.vanished, *self.newly_skipped)))


def together(reports: Sequence[TestReport]) -> TestReport | None:
    """What several runners of one command reported, as one. Nobody can run single tests of a mixture again, so it
    bears no runner's name."""
    if len(reports) <= 1:
        return reports[0] if reports else None
    return TestReport(
        runner=ReportFormat.EXIT_CODE,
        results=tuple(result for report in reports for result in report.results),
        complete=all(report.complete for report in reports),
        began=any(report.began and not report.complete for report in reports)
        or all(report.began for report in reports),
        imported_from=tuple(path for report in reports for path in report.imported_from),
        problems=tuple(problem for report in reports for problem in report.problems),
        forged="; ".join(report.forged for report in reports if report.forged),
    )


def compare(before: TestReport, after: TestReport) -> Comparison:
    old, new = before.by_id, after.by_id
    lists: dict[str, list[str]] = {name: [] for name in Comparison.model_fields}
    for test, result in new.items():
        previous = old[test].status if test in old else None
        if name := _place(previous, result.status):
            lists[name].append(test)
    for test, result in old.items():
        gone = test not in new and result.status.executed
        if gone and not (result.status is TestStatus.ERROR and _is_container(test, new)):
            lists["vanished"].append(test)
    return Comparison(**{name: tuple(sorted(ids)) for name, ids in lists.items()})


def _place(before: TestStatus | None, after: TestStatus) -> str | None:
    """The list a test belongs to; None when nothing about it changed."""
    if after.bad:
        if before is None:
            return "new_failures"
        return "standing" if before.bad else "regressions"
    if before is None:
        return "added" if after.executed else None
    expected_to_fail = after is TestStatus.XFAILED and before is not TestStatus.XFAILED
    if before.executed and (not after.executed or expected_to_fail):
        return "newly_skipped"
    return "fixed" if before.bad else None


def _is_container(test: str, new: Mapping[str, TestResult]) -> bool:
    """A file that could not be collected before and now yields its tests: its error is gone, not its test."""
    return any(other.startswith((f"{test}::", f"{test} > ", f"{test}/")) for other in new)
