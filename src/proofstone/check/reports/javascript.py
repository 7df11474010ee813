"""Read the JSON reports of jest, vitest and mocha. A file that could not be run is an error with the file as its id."""

from __future__ import annotations

from typing import Final

from proofstone.check.models import TestReport, TestStatus
from proofstone.check.reports.source import (
    Json,
    MissingReportError,
    Source,
    Tally,
    UnreadableError,
    decode_json,
    mapping,
    number,
    sequence,
    text,
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


def read_jest(runner: str, source: Source) -> TestReport:
    """Read jest's `--json`, which vitest's JSON reporter writes too."""
    tally = Tally(runner)
    is_complete = False
    try:
        document = _read_document(source, f"{runner}.json")
        if not isinstance(document.get("testResults"), list) or number(document.get("numTotalTests")) is None:
            raise UnreadableError(f"{runner}.json: not a {runner} report, which has testResults and numTotalTests")
        for suite in sequence(document["testResults"]):
            _read_suite(mapping(suite), source, tally)
        _compare_totals(document, runner, tally)
        is_complete = source.exit_code is not None
        if document.get("wasInterrupted") is True:
            tally.broken(f"{runner}.json: {runner} was interrupted")
    except MissingReportError as error:  # the report is written at the end, so it is unknown whether the runner began
        tally.never_began(str(error))
    except UnreadableError as error:
        tally.broken(str(error))
    return tally.report(complete=is_complete)


def _read_suite(suite: dict[str, Json], source: Source, tally: Tally) -> None:
    name = text(suite.get("name"))
    path = source.relative(name)
    file = path if path is not None else name
    tests = [mapping(test) for test in sequence(suite.get("assertionResults"))]
    for test in tests:
        status = _STATUSES.get(text(test.get("status")))
        titles = [*(text(title) for title in sequence(test.get("ancestorTitles"))), text(test.get("title"))]
        id = SEPARATOR.join([file, *(title for title in titles if title)])
        if status is None:
            tally.broken(f"{file}: unknown status {test.get('status')!r} of {id}")
            continue
        message = "\n".join(text(line) for line in sequence(test.get("failureMessages")))
        tally.add(id, status, ms=number(test.get("duration")), message=message, path=path)
    if suite.get("status") == "failed" and not any(test.get("status") == "failed" for test in tests):
        message = text(suite.get("message")) or "the file failed, but none of its tests did"
        tally.add(file, TestStatus.ERROR, message=message, path=path)


def _compare_totals(document: dict[str, Json], runner: str, tally: Tally) -> None:
    """Compare jest's totals with the listed tests: a report with cases removed is incomplete."""
    listed = sum(len(sequence(mapping(suite).get("assertionResults"))) for suite in sequence(document["testResults"]))
    total = number(document.get("numTotalTests"))
    if total != listed:
        tally.broken(f"{runner}.json: says {total:.0f} tests and lists {listed}")


def read_mocha(source: Source) -> TestReport:
    tally = Tally("mocha")
    is_complete = False
    try:
        document = _read_document(source, "mocha.json")
        stats = mapping(document.get("stats"))
        if number(stats.get("tests")) is None or "end" not in stats:
            raise UnreadableError("mocha.json: not a mocha report, which has stats.tests and stats.end")
        for section, status in (
            ("passes", TestStatus.PASSED),
            ("pending", TestStatus.SKIPPED),
            ("failures", TestStatus.FAILED),
        ):
            for test in sequence(document.get(section)):
                _read_mocha_test(mapping(test), status, source, tally)
        is_complete = source.exit_code is not None
    except MissingReportError as error:  # the report is written at the end, so it is unknown whether the runner began
        tally.never_began(str(error))
    except UnreadableError as error:
        tally.broken(str(error))
    return tally.report(complete=is_complete)


def _read_mocha_test(test: dict[str, Json], status: TestStatus, source: Source, tally: Tally) -> None:
    name = text(test.get("file"))
    path = source.relative(name) if name else None
    file = path if path is not None else name
    title = text(test.get("fullTitle")) or text(test.get("title"))
    if status is TestStatus.FAILED and text(test.get("title")).startswith('"') and " hook " in title:
        status = TestStatus.ERROR  # mocha lists a broken hook as a failure of its own
    error = mapping(test.get("err"))
    tally.add(
        SEPARATOR.join(part for part in (file, title) if part),
        status,
        ms=number(test.get("duration")),
        message=text(error.get("stack")) or text(error.get("message")),
        path=path,
    )


def _read_document(source: Source, name: str) -> dict[str, Json]:
    document = decode_json(source.read(name), name)
    if not isinstance(document, dict):
        raise UnreadableError(f"{name}: must hold a JSON object")
    return document
