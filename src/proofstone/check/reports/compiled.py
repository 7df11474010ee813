"""Read the results of `cargo test` and `go test -json` from their output.

cargo prints the text of Rust's test harness, one block per binary. The header (`Running unittests src/lib.rs
(target/debug/deps/name-HASH)`) names the target, so standard output and standard error must be captured in order.
Doc-tests are numbered within their item instead of by line, so that a moved one keeps its id.

go prints one JSON event a line, between compiler messages that are plain text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from proofstone.check.models import TestReport, TestStatus
from proofstone.check.reports.source import (
    MESSAGE_LIMIT,
    Json,
    ReportBuilder,
    ReportSource,
    UnreadableError,
    as_mapping,
    as_number,
    as_text,
    decode_json,
)

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


def read_cargo(source: ReportSource) -> TestReport:
    tally = ReportBuilder("cargo")
    reader = _CargoReader(tally)
    try:
        for line in source.output_lines():
            reader.line(line)
    except UnreadableError as error:
        tally.add_defect(str(error))
    reader.end()
    return tally.build_report(complete=source.exit_code is not None)


class _CargoReader:
    """Reads the output of `cargo test` line by line."""

    def __init__(self, tally: ReportBuilder) -> None:
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
            self._target = self._target_name(
                unit=bool(header[1]), source=header[2], target=re.split(r"[/\\]", header[3])[-1]
            )
        elif header := _DOC_HEADER.match(line):
            self._close()
            self._target = f"{header[1]}[doc]"
        elif start := _START.match(line):
            self._begin(int(start[1][:9]))
        elif self._open:
            self._read_test_line(line)
        elif error := _COMPILE.match(line):
            self._compile_error = self._compile_error or error[1]

    def _target_name(self, *, unit: bool, source: str, target: str) -> str:
        """Return crate, crate[bin], or crate/target for files in `tests/`: two crates may both have a `tests/it.rs`,
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

    def _read_test_line(self, line: str) -> None:
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
            self._append_message(self._failure, line)

    def _append_message(self, name: str, line: str) -> None:
        status, message = self._tests[name]
        if line == "failures:":
            self._failure = None
        elif len(message) < MESSAGE_LIMIT:
            self._tests[name] = (status, f"{message}{line}\n")

    def _finish(self, counts: list[int]) -> None:
        """Compare the harness's own totals with the lines that were read."""
        counted = [self._statuses.count(_STATUSES[word]) for word in ("ok", "FAILED", "ignored")]
        if counted != counts:
            self._tally.add_defect(
                f"{self._target or 'tests'}: the harness counted {counts} passed, failed and ignored tests, "
                f"the output shows {counted}; run without --quiet and --nocapture"
            )
        self._record()

    def _record(self) -> None:
        names = _number_doc_tests(self._tests)
        for printed, (status, message) in self._tests.items():
            id = f"{self._target}::{names[printed]}" if self._target else names[printed]
            self._tally.add(id, status, message=message.strip())
        self._open = False

    def _close(self) -> None:
        """Report a block without a result: the binary died."""
        if self._open:
            self._record()
            count = len(self._statuses)
            self._tally.add_defect(f"{self._target or 'tests'}: ended after {count} of {self._announced} tests")

    def end(self) -> None:
        self._close()
        if self._compile_error is not None and not self._tally.has_failures:
            self._tally.add_defect(f"cargo: {self._compile_error}")
        if self._binaries == 0:
            self._tally.mark_not_begun("no test binary ran: the output has no line `running N tests`")


def _number_doc_tests(printed: Iterable[str]) -> dict[str, str]:
    """Name doc-tests by item and position. They are printed in the order in which they end."""
    names = {name: name for name in printed}
    docs = [(doc[1] + doc[3], int(doc[2]), name) for name in names if (doc := _DOC_NAME.match(name))]
    order: Counter[str] = Counter()
    for doc_item, _, name in sorted(docs):
        order[doc_item] += 1
        names[name] = doc_item if order[doc_item] == 1 else f"{doc_item} #{order[doc_item]}"
    return names


_END_ACTIONS: Final = {"pass": TestStatus.PASSED, "fail": TestStatus.FAILED, "skip": TestStatus.SKIPPED}
_COMPILER = re.compile(r"# (\S+)(?: \[.+\])?$")
_CRASHES: Final = ("panic: ", "fatal error: ")
"""How Go's runtime begins its message when it ends a test binary."""
_BUILD_FAILED = re.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]")


@dataclass
class _GoPackage:
    ended: str | None = None
    tests: dict[str, bool] = field(default_factory=dict)
    """Name of each test, and whether it ended."""
    failed: bool = False
    """Whether one of its tests failed."""
    output: dict[str, str] = field(default_factory=dict)
    """Beginning of the output by test. The empty name is the package itself."""

    def print(self, test: str, words: str) -> None:
        so_far = self.output.get(test, "")
        if len(so_far) < MESSAGE_LIMIT:
            self.output[test] = so_far + words


def read_go(source: ReportSource) -> TestReport:
    tally = ReportBuilder("go")
    packages: dict[str, _GoPackage] = {}
    complaints: dict[str, str] = {}
    complaint = ""  # the package that the compiler reports errors for
    try:
        for line in source.output_lines():
            if line.startswith(("{", "FAIL\t", "ok  \t", "?   \t")):
                complaint = ""
                _read_go_line(line, packages, tally)
            elif header := _COMPILER.match(line):
                complaint = header[1]
            elif complaint:
                complaints[complaint] = complaints.get(complaint, "")[:MESSAGE_LIMIT] + f"{line}\n"
    except UnreadableError as error:
        tally.add_defect(str(error))
    for name, package in packages.items():
        _finish_package(name, package, complaints.get(name, ""), tally)
    if not packages:
        tally.mark_not_begun("no events of `go test -json` in the output")
    return tally.build_report(complete=source.exit_code is not None)


def _read_go_line(line: str, packages: dict[str, _GoPackage], tally: ReportBuilder) -> None:
    if failed_build := _BUILD_FAILED.match(line):
        packages.setdefault(failed_build[1], _GoPackage()).ended = "build"
        return
    if not line.startswith("{"):
        return
    try:
        event = as_mapping(decode_json(line, "go test -json"))
    except UnreadableError:  # a program may print a brace; only lines that are events count
        return
    name = as_text(event.get("Package"))
    if not name or not isinstance(event.get("Action"), str):
        return
    _read_event(event, name, packages.setdefault(name, _GoPackage()), tally)


def _read_event(event: dict[str, Json], name: str, package: _GoPackage, tally: ReportBuilder) -> None:
    action = as_text(event.get("Action"))
    test = as_text(event.get("Test"))
    if action == "output":
        words = as_text(event.get("Output"))
        package.print(test, words)
        if not test and _BUILD_FAILED.match(words):
            package.ended = "build"
    elif action == "run" and test:
        package.tests.setdefault(test, False)
    elif action in _END_ACTIONS and test:
        package.tests[test] = True
        status = _END_ACTIONS[action]
        package.failed = package.failed or status.is_failure
        message = package.output.get(test, "") if status is not TestStatus.PASSED else ""
        seconds = as_number(event.get("Elapsed"))
        tally.add(f"{name}/{test}", status, ms=None if seconds is None else seconds * 1000, message=message)
    elif action in _END_ACTIONS:
        package.ended = package.ended or action


def _finish_package(name: str, package: _GoPackage, complaint: str, tally: ReportBuilder) -> None:
    for test, ended in package.tests.items():
        if not ended:
            message = package.output.get(test, "") or "started and never ended"
            tally.add(f"{name}/{test}", TestStatus.ERROR, message=message)
            package.failed = True
            if not any(crash in words for words in package.output.values() for crash in _CRASHES):
                tally.add_defect(f"{name}/{test}: its test binary was killed before the test had ended")
    if package.ended is None:
        tally.add_defect(f"{name}: go test ended before this package had finished")
    elif package.ended == "build":
        tally.add(name, TestStatus.ERROR, message=complaint or package.output.get("", "") or "does not build")
    elif package.ended == "fail" and not package.failed:
        tally.add(name, TestStatus.ERROR, message=package.output.get("", "") or "failed outside of its tests")
