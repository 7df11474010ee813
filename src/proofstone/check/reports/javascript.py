"""Read the JSON reports of jest, vitest and mocha. A file that could not be run is an error with the file as its id."""

from __future__ import annotations

from typing import Final

from proofstone.check.models import TestReport, TestStatus
from proofstone.check.reports.source import (
    Json,
    MissingReportError,
    ReportBuilder,
    ReportSource,
    UnreadableError,
    as_mapping,
    as_number,
    as_sequence,
    as_text,
    decode_json,
)

_STATUSES: Final = {
    "passed": TestStatus.PASSED,
    "failed": TestStatus.FAILED,
    "pending": TestStatus.SKIPPED,
    "skipped": TestStatus.SKIPPED,
    "disabled": TestStatus.SKIPPED,
    "todo": TestStatus.SKIPPED,
    "focused": TestStatus.PASSED,
}

SEPARATOR: Final = " > "


def read_jest(runner: str, source: ReportSource) -> TestReport:
    """Read jest's `--json`, which vitest's JSON reporter writes too."""
    tally = ReportBuilder(runner)
    is_complete = False
    try:
        document = _read_document(source, f"{runner}.json")
        if not isinstance(document.get("testResults"), list) or as_number(document.get("numTotalTests")) is None:
            raise UnreadableError(f"{runner}.json: not a {runner} report, which has testResults and numTotalTests")
        for suite in as_sequence(document["testResults"]):
            _read_suite(as_mapping(suite), source, tally)
        _compare_totals(document, runner, tally)
        is_complete = source.exit_code is not None
        if document.get("wasInterrupted") is True:
            tally.add_defect(f"{runner}.json: {runner} was interrupted")
    except MissingReportError as error:  # the report is written at the end, so it is unknown whether the runner began
        tally.mark_not_begun(str(error))
    except UnreadableError as error:
        tally.add_defect(str(error))
    return tally.build_report(complete=is_complete)


def _read_suite(suite: dict[str, Json], source: ReportSource, tally: ReportBuilder) -> None:
    name = as_text(suite.get("name"))
    path = source.make_relative(name)
    file = path if path is not None else name
    tests = [as_mapping(test) for test in as_sequence(suite.get("assertionResults"))]
    for test in tests:
        status = _STATUSES.get(as_text(test.get("status")))
        titles = [*(as_text(title) for title in as_sequence(test.get("ancestorTitles"))), as_text(test.get("title"))]
        id = SEPARATOR.join([file, *(title for title in titles if title)])
        if status is None:
            tally.add_defect(f"{file}: unknown status {test.get('status')!r} of {id}")
            continue
        message = "\n".join(as_text(line) for line in as_sequence(test.get("failureMessages")))
        tally.add(id, status, ms=as_number(test.get("duration")), message=message, path=path)
    if suite.get("status") == "failed" and not any(test.get("status") == "failed" for test in tests):
        message = as_text(suite.get("message")) or "the file failed, but none of its tests did"
        tally.add(file, TestStatus.ERROR, message=message, path=path)


def _compare_totals(document: dict[str, Json], runner: str, tally: ReportBuilder) -> None:
    """Compare jest's totals with the listed tests: a report with cases removed is incomplete."""
    listed = sum(
        len(as_sequence(as_mapping(suite).get("assertionResults"))) for suite in as_sequence(document["testResults"])
    )
    total = as_number(document.get("numTotalTests"))
    if total != listed:
        tally.add_defect(f"{runner}.json: says {total:.0f} tests and lists {listed}")


def read_mocha(source: ReportSource) -> TestReport:
    tally = ReportBuilder("mocha")
    is_complete = False
    try:
        document = _read_document(source, "mocha.json")
        stats = as_mapping(document.get("stats"))
        if as_number(stats.get("tests")) is None or "end" not in stats:
            raise UnreadableError("mocha.json: not a mocha report, which has stats.tests and stats.end")
        for section, status in (
            ("passes", TestStatus.PASSED),
            ("pending", TestStatus.SKIPPED),
            ("failures", TestStatus.FAILED),
        ):
            for test in as_sequence(document.get(section)):
                _read_mocha_test(as_mapping(test), status, source, tally)
        is_complete = source.exit_code is not None
    except MissingReportError as error:  # the report is written at the end, so it is unknown whether the runner began
        tally.mark_not_begun(str(error))
    except UnreadableError as error:
        tally.add_defect(str(error))
    return tally.build_report(complete=is_complete)


def _read_mocha_test(test: dict[str, Json], status: TestStatus, source: ReportSource, tally: ReportBuilder) -> None:
    name = as_text(test.get("file"))
    path = source.make_relative(name) if name else None
    file = path if path is not None else name
    title = as_text(test.get("fullTitle")) or as_text(test.get("title"))
    if status is TestStatus.FAILED and as_text(test.get("title")).startswith('"') and " hook " in title:
        status = TestStatus.ERROR  # mocha lists a broken hook as a failure of its own
    error = as_mapping(test.get("err"))
    tally.add(
        SEPARATOR.join(part for part in (file, title) if part),
        status,
        ms=as_number(test.get("duration")),
        message=as_text(error.get("stack")) or as_text(error.get("message")),
        path=path,
    )


def _read_document(source: ReportSource, name: str) -> dict[str, Json]:
    document = decode_json(source.read(name), name)
    if not isinstance(document, dict):
        raise UnreadableError(f"{name}: must hold a JSON object")
    return document
