"""Test results by id, whatever runner produced them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from proofstone.contracts.base import Contract


class TestStatus(StrEnum):
    __test__ = False  # not a test class, whatever pytest thinks of the name

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Set-up, tear-down or collection broke."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    """Failed as it was declared to."""
    XPASSED = "xpassed"
    """Passed although it was declared to fail."""

    @property
    def executed(self) -> bool:
        return self is not TestStatus.SKIPPED

    @property
    def bad(self) -> bool:
        return self in (TestStatus.FAILED, TestStatus.ERROR)


class TestResult(Contract):
    __test__ = False

    id: str
    """Stable between two trees: the runner's own id where it has one, with paths relative to the repository."""
    status: TestStatus
    duration_ms: int | None = None
    message: str = ""
    """Head of the failure text, at most 2,000 characters."""
    path: str | None = None
    """The test's file relative to the repository, where the runner says it."""

    def told(self, what: str) -> str:
        """`what`, and the last line of the failure text, which is where runners say what went wrong."""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        return f"{what}: {lines[-1][:200]}" if lines else what


class TestReport(Contract):
    """All results of one run of one runner."""

    __test__ = False

    runner: str
    results: tuple[TestResult, ...]
    complete: bool
    """False when the runner died before it said that it had finished."""
    began: bool = True
    """False when no runner began a run: none wrote a report, or it said itself that it could not begin."""
    imported_from: tuple[str, ...] = ()
    """Where the project's own packages were imported from (absolute paths), where the runner can say."""
    problems: tuple[str, ...] = ()
    """What could not be read, in words."""
    forged: str = ""
    """Why somebody else than the runner must have written part of it; empty if nothing says so."""

    @property
    def by_id(self) -> Mapping[str, TestResult]:
        return {result.id: result for result in self.results}

    @property
    def executed(self) -> int:
        return sum(result.status.executed for result in self.results)


class ReportFormat(StrEnum):
    """How results by id are obtained from a run."""

    PYTEST = "pytest"
    UNITTEST = "unittest"
    NODE = "node"
    JEST = "jest"
    VITEST = "vitest"
    MOCHA = "mocha"
    GO = "go"
    CARGO = "cargo"
    JUNIT = "junit"
    TAP = "tap"
    EXIT_CODE = "exit-code"
    """No ids: the exit code is all there is, and the assurance says so."""
