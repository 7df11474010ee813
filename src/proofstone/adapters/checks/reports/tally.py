"""Where results are gathered: the bounds on what a report may say, and one result per id.

What a runner wrote is hostile until shown otherwise. Text is cut and cleaned here, once, for every format.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

from proofstone.contracts.tests import TestReport, TestResult, TestStatus

RESULT_LIMIT: Final = 200_000
MESSAGE_LIMIT: Final = 2_000
ID_LIMIT: Final = 1_000
PROBLEM_LIMIT: Final = 50
IMPORT_LIMIT: Final = 1_000

WORST_FIRST: Final = (
    TestStatus.ERROR,
    TestStatus.FAILED,
    TestStatus.SKIPPED,
    TestStatus.XFAILED,
    TestStatus.XPASSED,
    TestStatus.PASSED,
)
"""Where two results bear one id, the worse stands: a pass never covers a failure or a skip."""

NEVER_RUN: Final = "collected but never run"


def clean(text: str, limit: int) -> str:
    """Text that every database and terminal takes: no NUL, no half characters, at most `limit` long."""
    return text[:limit].encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def clean_id(text: str) -> str:
    """An id within bounds. A longer one keeps its head and gets a digest, so that two never become one."""
    text = clean(" ".join(text.splitlines()), len(text))
    if len(text) <= ID_LIMIT:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: ID_LIMIT - len(digest) - 1]}…{digest}"


class Tally:
    """Results and problems of one run, while its report is being read."""

    def __init__(self, runner: str) -> None:
        self._runner = runner
        self._results: dict[str, TestResult] = {}
        self._problems: list[str] = []
        self._broken = False
        self._refused = False
        self.any_bad = False
        """Whether one of the results is a failure or an error."""

    def __contains__(self, id: str) -> bool:
        return clean_id(id) in self._results

    def add(
        self,
        id: str,
        status: TestStatus,
        *,
        ms: float | None = None,
        message: str = "",
        path: str | None = None,
    ) -> None:
        id = clean_id(id)
        if not id:
            self.broken("a result without an id was left out")
            return
        self.any_bad = self.any_bad or status.bad
        before = self._results.get(id)
        if before is not None and WORST_FIRST.index(before.status) <= WORST_FIRST.index(status):
            return
        if before is None and len(self._results) >= RESULT_LIMIT:
            self.broken(f"more than {RESULT_LIMIT:,} results; the rest was left out")
            return
        self._results[id] = TestResult(
            id=id,
            status=status,
            duration_ms=_milliseconds(ms),
            message=clean(message, MESSAGE_LIMIT),
            path=None if path is None else clean(path, ID_LIMIT),
        )

    def problem(self, text: str) -> None:
        """Something a person should know; the report may still be whole."""
        text = clean(text, MESSAGE_LIMIT)
        if text not in self._problems and len(self._problems) < PROBLEM_LIMIT:
            self._problems.append(text)

    def broken(self, text: str) -> None:
        """Something is missing: the report is not complete."""
        self._broken = True
        self.problem(text)

    def never_began(self, text: str) -> None:
        """A runner did not begin, so that there is no report of it that could be complete."""
        self._refused = True
        self.problem(text)

    def report(self, *, complete: bool, imported_from: tuple[str, ...] = ()) -> TestReport:
        return TestReport(
            runner=self._runner,
            results=tuple(self._results.values()),
            complete=complete and not self._broken and not self._refused,
            began=self._broken or not self._refused,
            imported_from=tuple(clean(place, ID_LIMIT) for place in imported_from[:IMPORT_LIMIT]),
            problems=tuple(self._problems),
        )


def _milliseconds(value: float | None) -> int | None:
    if value is None or not math.isfinite(value) or not 0 <= value < 1e12:
        return None
    return round(value)
