"""JUnit XML and TAP in the dialects that tools write."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.check.models import ReportFormat, TestReport
from proofstone.check.reports import read_report
from proofstone.check.reports.sniff import sniff_formats
from tests.check.reports.project import read_fixture, statuses

JUNIT = {
    "surefire.xml": {
        "com.example.AppTest::adds": "passed",
        "com.example.AppTest::subtracts": "failed",
        "com.example.AppTest::breaks": "error",
        "com.example.AppTest::waits": "skipped",
        "com.example.AppTest::flickers": "passed",
    },
    "ctest.xml": {"good": "passed", "bad": "failed", "off": "skipped", "missing": "skipped"},
    "dotnet.xml": {
        "Calc.Tests.Sums::Adds(a: 1, b: 2)": "passed",
        "Calc.Tests.Sums::Adds(a: 2, b: 2)": "failed",
        "Calc.Tests.Sums::Later": "skipped",
    },
    "nested.xml": {"outer.inner::same": "failed", "Own::plain": "passed"},
}


@pytest.mark.parametrize(("name", "expected"), JUNIT.items(), ids=JUNIT.keys())
def test_recorded_junit_reports_are_read(tmp_path: Path, name: str, expected: dict[str, str]) -> None:
    report = read_fixture(ReportFormat.JUNIT, name, tmp_path)
    assert statuses(report) == expected
    assert report.complete
    assert sniff_formats(tmp_path, b"") == (ReportFormat.JUNIT,)


def test_junit_times_with_thousands_and_messages_are_kept(tmp_path: Path) -> None:
    report = read_fixture(ReportFormat.JUNIT, "surefire.xml", tmp_path)
    assert report.by_id["com.example.AppTest::flickers"].duration_ms == 1_002_034
    assert "expected: <1> but was: <2>" in report.by_id["com.example.AppTest::subtracts"].message
    assert "noise" not in report.by_id["com.example.AppTest::subtracts"].message


def test_all_junit_files_below_the_directory_are_merged(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for place, name in (("a.xml", "one"), ("deep/er/b.xml", "two")):
        (tmp_path / place).write_text(f'<testsuite name="s"><testcase name="{name}" classname="C"/></testsuite>')
    assert set(statuses(_junit(tmp_path))) == {"C::one", "C::two"}


BROKEN_XML = {
    "entities": '<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="&a;"/></testsuite>',
    "external": '<!DOCTYPE x SYSTEM "file:///etc/hostname"><testsuite/>',
    "utf-16 doctype": '<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>'.encode("utf-16"),
    "cut": '<testsuite><testcase name="a"/>',
    "other": "<html></html>",
    "deep": "<testsuite>" * 1000 + "</testsuite>" * 1000,
    "encoding": '<?xml version="1.0" encoding="nonsense"?><testsuite/>',
    "empty": "",
}


@pytest.mark.parametrize("content", BROKEN_XML.values(), ids=BROKEN_XML.keys())
def test_xml_that_is_no_plain_report_is_refused_by_name(tmp_path: Path, content: str | bytes) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "r.xml").write_bytes(data)
    report = _junit(tmp_path)
    assert not report.complete
    assert report.problems[0].startswith("r.xml: ")


def _junit(directory: Path) -> TestReport:
    return read_report(ReportFormat.JUNIT, directory, b"", root="/repo", cwd=".", exit_code=0)


def test_nested_tap_14_is_read(tmp_path: Path) -> None:
    report = read_fixture(ReportFormat.TAP, "subtests-14.tap", tmp_path)
    assert statuses(report) == {
        "first > a": "passed",
        "first > b": "failed",
        "second > c": "skipped",
        "second > c #2": "passed",
        "third": "xfailed",
        "has # in it": "passed",
    }
    assert report.problems == ()
    assert report.complete
    assert "went wrong" in report.by_id["first > b"].message


def test_the_tap_that_node_prints_is_read(tmp_path: Path) -> None:
    report = read_fixture(ReportFormat.TAP, "node.tap", tmp_path)
    assert statuses(report) == {
        "plain ok": "passed",
        "group > inner ok": "passed",
        "group > inner bad": "failed",
        "group > sk": "skipped",
        "group > td": "xpassed",
        "parent > child": "passed",
        "todo fail": "xfailed",
        "test/b.test.js": "failed",
        "spawns": "passed",
    }
    assert report.complete


TAP = {
    "12": ("1..2\nok 1 first\nnot ok 2 second\n", {"first": "passed", "second": "failed"}, True),
    "plan last": ("ok\nok - named\n1..2\n", {"test 1": "passed", "named": "passed"}, True),
    "skip all": ("1..0 # SKIP no database\n", {}, True),
    "other output between": ("hello\n1..1\n---\nok 1 - a\nbye\n", {"a": "passed"}, True),
    "two documents": (
        "TAP version 13\n1..1\nok 1 a\nTAP version 13\n1..1\nok 1 b\n",
        {"a": "passed", "b": "passed"},
        True,
    ),
    "summary of a broken subtest": (
        "    1..1\n    ok 1 - c\nnot ok 1 - p\n1..1\n",
        {"p > c": "passed", "p": "failed"},
        True,
    ),
    "too few": ("1..3\nok 1 a\n", {"a": "passed"}, False),
    "too many": ("1..1\nok 1 a\nok 2 b\n", {"a": "passed", "b": "passed"}, False),
    "no plan": ("ok 1 a\n", {"a": "passed"}, False),
    "bail out": ("1..1\nok 1 a\nBail out! no disk\n", {"a": "passed"}, False),
    "ended inside": ("1..1\nok 1 a\n    ok 1 b\n", {"a": "passed"}, False),
    "subtest too short": ("    1..2\n    ok 1 a\nok 1 p\n1..1\n", {"p > a": "passed"}, False),
    "tape: the test is what counts, not its assertions": (
        "TAP version 13\n# adds\nok 1 is equal\nok 2 is equal\n# drops\nok 3 is equal\nnot ok 4 is equal\n"
        "  ---\n    expected: 1\n  ...\n# SKIP later\n# twice\nok 5 is equal\n\n1..5\n# tests 5\n# pass  4\n",
        {"adds": "passed", "drops": "failed", "later": "skipped", "twice": "passed"},
        True,
    ),
    "tape that died": ("TAP version 13\n# adds\nok 1 is equal\nError: no\n", {"adds": "passed"}, False),
    "comments of others are no titles": (
        "1..2\nok 1 a\nnot ok 2 b\n# in test file b.bats, line 3\n",
        {"a": "passed", "b": "failed"},
        True,
    ),
    "failed and skipped": ("1..1\nnot ok 1 a # SKIP\n", {"a": "failed"}, True),
}


@pytest.mark.parametrize(("output", "expected", "complete"), TAP.values(), ids=TAP.keys())
def test_tap(tmp_path: Path, output: str, expected: dict[str, str], complete: bool) -> None:
    report = read_report(ReportFormat.TAP, tmp_path, output.encode(), root="/repo", cwd=".", exit_code=0)
    assert statuses(report) == expected
    assert report.complete is complete
    assert bool(report.problems) is not complete
