"""`cargo test`: the text that Rust's test harness prints, one block per binary.

The header (`Running unittests src/lib.rs (target/debug/deps/name-HASH)`) names the target, so standard output and
standard error must have been captured in order. Doc-tests are numbered within their item instead of by line, so
that a moved one keeps its id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from proofstone.adapters.checks.reports.source import Source, UnreadableError
from proofstone.adapters.checks.reports.tally import MESSAGE_LIMIT, Tally
from proofstone.contracts.tests import TestReport, TestStatus

_HEADER = re.compile(r"\s*Running (unittests )?(\S+) \(([^()]+)-[0-9a-f]{16}(?:\.exe)?\)")
_BINARY = re.compile(r"(?:^|/)src/(?:main\.rs|bin/.+)$")
_DOC_HEADER = re.compile(r"\s*Doc-tests (\S+)")
_START = re.compile(r"running (\d+) tests?$")
_TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, (.*))?$")
_DOC_NAME = re.compile(r"(.+?) \(line (\d{1,9})\)((?: - compile(?: fail)?)?)$")
_END = re.compile(r"test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;")
_FAILURE = re.compile(r"---- (.+) stdout ----$")
_COMPILE = re.compile(r"error(?:\[E\d+\])?: (.+)$")

_STATUSES: Final = {"ok": TestStatus.PASSED, "FAILED": TestStatus.FAILED, "ignored": TestStatus.SKIPPED}


def read_cargo(source: Source) -> TestReport:
    tally = Tally("cargo")
    reader = _Reader(tally)
    try:
        for line in source.output_lines():
            reader.line(line)
    except UnreadableError as error:
        tally.broken(str(error))
    reader.end()
    return tally.report(complete=source.exit_code is not None)


class _Reader:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._target = ""
        self._crate = ""
        self._binaries = 0
        self._compile_error: str | None = None
        self._open = False
        self._announced = 0
        self._statuses: list[TestStatus] = []
        self._tests: dict[str, tuple[TestStatus, str]] = {}
        """Status and message of the tests of this binary, by the name as printed."""
        self._failure: str | None = None

    def line(self, line: str) -> None:
        if header := _HEADER.match(line):
            self._close()
            self._target = self._named(unit=bool(header[1]), source=header[2], target=re.split(r"[/\\]", header[3])[-1])
        elif header := _DOC_HEADER.match(line):
            self._close()
            self._target = f"{header[1]}[doc]"
        elif start := _START.match(line):
            self._begin(int(start[1][:9]))
        elif self._open:
            self._inside(line)
        elif wrong := _COMPILE.match(line):
            self._compile_error = self._compile_error or wrong[1]

    def _named(self, *, unit: bool, source: str, target: str) -> str:
        """Crate, crate[bin], or crate/target for what lies in `tests/`: two crates may both have a `tests/it.rs`,
        and cargo runs a crate's own tests first."""
        if not unit:
            return f"{self._crate}/{target}" if self._crate else target
        self._crate = target
        return f"{target}[bin]" if _BINARY.search(source) else target

    def _begin(self, announced: int) -> None:
        self._close()
        self._open = True
        self._binaries += 1
        self._announced = announced
        self._statuses, self._tests = [], {}
        self._failure = None

    def _inside(self, line: str) -> None:
        if end := _END.match(line):
            self._finish([int(count[:9]) for count in end.groups()])
        elif test := _TEST.match(line):
            self._failure = None
            status = _STATUSES[test[2]]
            self._statuses.append(status)
            self._tests[test[1]] = (status, test[3] or "")
        elif failure := _FAILURE.match(line):
            self._failure = failure[1] if failure[1] in self._tests else None
        elif self._failure is not None:
            self._message(self._failure, line)

    def _message(self, name: str, line: str) -> None:
        status, message = self._tests[name]
        if line == "failures:":
            self._failure = None
        elif len(message) < MESSAGE_LIMIT:
            self._tests[name] = (status, f"{message}{line}\n")

    def _finish(self, counts: list[int]) -> None:
        """The harness's own sums must agree with the lines that were read."""
        read = [self._statuses.count(_STATUSES[word]) for word in ("ok", "FAILED", "ignored")]
        if read != counts:
            self._tally.broken(
                f"{self._target or 'tests'}: the harness counted {counts} passed, failed and ignored tests, "
                f"the output shows {read}; run without --quiet and --nocapture"
            )
        self._record()

    def _record(self) -> None:
        names = _without_lines(self._tests)
        for shown, (status, message) in self._tests.items():
            id = f"{self._target}::{names[shown]}" if self._target else names[shown]
            self._tally.add(id, status, message=message.strip())
        self._open = False

    def _close(self) -> None:
        """A block that never came to its result: the binary died."""
        if self._open:
            self._record()
            seen = len(self._statuses)
            self._tally.broken(f"{self._target or 'tests'}: ended after {seen} of {self._announced} tests")

    def end(self) -> None:
        self._close()
        if self._compile_error is not None and not self._tally.any_bad:
            self._tally.broken(f"cargo: {self._compile_error}")
        if self._binaries == 0:
            self._tally.never_began("no test binary ran: the output has no line `running N tests`")


def _without_lines(shown: Iterable[str]) -> dict[str, str]:
    """Doc-tests by item and their order in it, as they are printed in the order in which they end."""
    names = {name: name for name in shown}
    docs = [(doc[1] + doc[3], int(doc[2]), name) for name in names if (doc := _DOC_NAME.match(name))]
    order: Counter[str] = Counter()
    for item, _, name in sorted(docs):
        order[item] += 1
        names[name] = item if order[item] == 1 else f"{item} #{order[item]}"
    return names
