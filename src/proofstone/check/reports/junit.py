"""Read JUnit XML in the dialects of surefire, Gradle, ctest, dotnet, phpunit and others.

It is parsed with expat directly: a document type is refused before anything is expanded, and only the current test case
is kept in memory. The id is `classname::name`. If there is no class name, the names of the suites replace it.
"""

from __future__ import annotations

from typing import Final
from xml.parsers import expat

from proofstone.check.models import TestReport, TestStatus
from proofstone.check.reports.source import MESSAGE_LIMIT, TOTAL_LIMIT, ReportBuilder, ReportSource, UnreadableError

_DEPTH_LIMIT: Final = 100
_OUTCOMES: Final = {"failure": TestStatus.FAILED, "error": TestStatus.ERROR, "skipped": TestStatus.SKIPPED}
_CASE_STATUSES: Final = {
    "fail": TestStatus.FAILED,  # ctest
    "failed": TestStatus.FAILED,
    "notrun": TestStatus.SKIPPED,  # ctest, googletest
    "disabled": TestStatus.SKIPPED,
    "skipped": TestStatus.SKIPPED,
}


def read_junit(source: ReportSource) -> TestReport:
    tally = ReportBuilder("junit")
    complete = False
    try:
        names = source.list_files(r"[^/]+\.xml")
        if not names:
            tally.mark_not_begun("no JUnit report: no *.xml in the report directory")
        budget = TOTAL_LIMIT
        for name in names:
            data = source.read(name)
            budget -= len(data)
            if budget < 0:
                raise UnreadableError(f"{name}: the reports together are larger than {TOTAL_LIMIT:,} bytes")
            _Document(name, source, tally).parse(data)
        complete = source.exit_code is not None
    except UnreadableError as error:
        tally.add_defect(str(error))
    return tally.build_report(complete=complete)


class _Case:
    """The test case whose element is open."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.status = _CASE_STATUSES.get(attributes.get("status", "").lower(), TestStatus.PASSED)
        self.message = ""
        self.printed = ""

    def outcome(self, status: TestStatus, message: str) -> None:
        if self.status is not TestStatus.ERROR:
            self.status = status
            self.message = message

    def say(self, words: str) -> None:
        if len(self.message) < MESSAGE_LIMIT:
            self.message += words

    def print(self, words: str) -> None:
        if len(self.printed) < MESSAGE_LIMIT:
            self.printed += words

    @property
    def explanation(self) -> str:
        """The failure message. ctest gives the reason only in the output of the test."""
        return self.message.strip() or (self.printed.strip() if self.status.is_failure else "")


class _Document:
    """Parses one XML file."""

    def __init__(self, name: str, source: ReportSource, tally: ReportBuilder) -> None:
        self._name = name
        self._source = source
        self._tally = tally
        self._elements: list[str] = []
        self._suites: list[str] = []
        self._case: _Case | None = None

    def parse(self, data: bytes) -> None:
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler = self._start_element
        parser.EndElementHandler = self._end_element
        parser.CharacterDataHandler = self._add_text
        try:
            parser.Parse(data, True)
        except (expat.ExpatError, ValueError, LookupError) as error:  # the last two mean an unknown encoding
            raise UnreadableError(f"{self._name}: not well-formed XML: {error}") from error

    def _refuse_doctype(self, *_: object) -> None:
        raise UnreadableError(f"{self._name}: has a DOCTYPE, which a test report does not need and which is not read")

    def _start_element(self, element: str, attributes: dict[str, str]) -> None:
        if not self._elements and element not in ("testsuites", "testsuite"):
            raise UnreadableError(
                f"{self._name}: <{element}> is not a JUnit report, which is <testsuites> or <testsuite>"
            )
        if len(self._elements) >= _DEPTH_LIMIT:
            raise UnreadableError(f"{self._name}: elements nested deeper than {_DEPTH_LIMIT}")
        self._elements.append(element)
        if element == "testsuite":
            self._suites.append(attributes.get("name", ""))
        elif element == "testcase":
            self._case = _Case(attributes)
        elif element in _OUTCOMES and self._elements[-2] == "testcase" and self._case is not None:
            message = attributes.get("message", "")
            self._case.outcome(_OUTCOMES[element], f"{message}\n" if message else "")
        elif element in ("failure", "error") and self._elements[-2] == "testsuite":
            id = ".".join(name for name in self._suites if name) or self._name
            self._tally.add(id, TestStatus.ERROR, message=attributes.get("message", ""))

    def _add_text(self, words: str) -> None:
        if self._case is None:
            return
        if self._elements[-1] in _OUTCOMES:
            self._case.say(words)
        elif self._elements[-1] == "system-out":
            self._case.print(words)

    def _end_element(self, element: str) -> None:
        self._elements.pop()
        if element == "testsuite":
            self._suites.pop()
        elif element == "testcase" and self._case is not None:
            self._record(self._case)
            self._case = None

    def _record(self, case: _Case) -> None:
        owner = case.attributes.get("classname") or ".".join(name for name in self._suites if name)
        name = case.attributes.get("name", "")
        file = case.attributes.get("file")
        self._tally.add(
            name if not owner or owner == name else f"{owner}::{name}",
            case.status,
            ms=_parse_milliseconds(case.attributes.get("time")),
            message=case.explanation,
            path=self._source.make_relative(file) if file else None,
        )


def _parse_milliseconds(seconds: str | None) -> float | None:
    """Return the milliseconds. Gradle and others write `1,234.5` for long times."""
    if seconds is None:
        return None
    try:
        return float(seconds.replace(",", "")) * 1000
    except ValueError:
        return None
