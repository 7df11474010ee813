"""Write the test results of a check as JUnit XML, by test id, with the result on the base beside the one now.

Each check that reports tests is a suite. A test that ran on the base and is gone is in its suite too, as an error,
unless the whole check could not run. XML cannot hold control characters: they are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from junitparser import Error, Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

from proofstone.check.models import TestResult, TestRun, TestStatus

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BASE: Final = "base"
_NOW: Final = "now"
_ABSENT: Final = "absent"


def build_junit(runs: Sequence[TestRun]) -> str:
    """Return the XML document of all checks that report tests."""
    document = JUnitXml(name="proofstone")
    for run in runs:
        if run.now is not None or run.base is not None:
            document.add_testsuite(_build_suite(run))
    document.update_statistics()
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document.tostring().decode("utf-8")}\n'


def _build_suite(run: TestRun) -> TestSuite:
    suite = TestSuite(_clean(run.check))
    base = run.base.by_id if run.base else {}
    now = run.now.by_id if run.now else {}
    for result in now.values():
        suite.add_testcase(_build_case(result, base.get(result.id)))
    for name, before in base.items():
        if name not in now:
            suite.add_testcase(_build_gone_case(before, is_measured=run.now is not None))
    return suite


def _build_case(result: TestResult, before: TestResult | None) -> TestCase:
    case = _start_case(result, before.status.value if before else _ABSENT, result.status.value)
    text = _clean(result.cause or result.message)
    if result.status is TestStatus.FAILED:
        case.result = [Failure(text, "standing" if before and before.status.is_failure else "new")]
    elif result.status is TestStatus.ERROR:
        case.result = [Error(text, "standing" if before and before.status.is_failure else "new")]
    elif result.status in (TestStatus.SKIPPED, TestStatus.XFAILED):
        case.result = [Skipped(_clean(result.message), result.status.value)]
    return case


def _build_gone_case(before: TestResult, *, is_measured: bool) -> TestCase:
    """Return the case of a test that ran on the base and has no result now."""
    case = _start_case(before, before.status.value, _ABSENT)
    reason = "ran on the base and does not exist now" if is_measured else "did not run, because its check could not"
    if before.status.is_executed:
        case.result = [Error(reason, "vanished" if is_measured else "unverifiable")]
    else:
        case.result = [Skipped(reason, before.status.value)]
    return case


def _start_case(result: TestResult, base: str, now: str) -> TestCase:
    seconds = (result.duration_ms or 0) / 1000
    case = TestCase(_clean(result.id), _clean(result.path or ""), seconds)
    properties = Properties()
    properties.add_property(Property(_BASE, base))
    properties.add_property(Property(_NOW, now))
    case.append(properties)
    return case


def _clean(text: str) -> str:
    return _NOT_XML.sub("�", text)
