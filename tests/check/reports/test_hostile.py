"""The checked project writes every byte of a report: none of them raises, and nothing comes of nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.check.models import ReportFormat, TestReport, TestStatus
from proofstone.check.reports import read_report
from proofstone.check.reports.sniff import sniff_formats
from proofstone.check.reports.source import FILE_LIMIT, ID_LIMIT, MESSAGE_LIMIT, RESULT_LIMIT, ReportBuilder
from tests.rows import each_row

FILES = {
    ReportFormat.PYTEST: "pytest-1.jsonl",
    ReportFormat.UNITTEST: "unittest-1.jsonl",
    ReportFormat.NODE: "node-1.jsonl",
    ReportFormat.JEST: "jest.json",
    ReportFormat.VITEST: "vitest.json",
    ReportFormat.MOCHA: "mocha.json",
    ReportFormat.JUNIT: "r.xml",
    ReportFormat.TAP: "r.tap",
}
WITH_IDS = [format for format in ReportFormat if format is not ReportFormat.EXIT_CODE]

FRAGMENTS = st.sampled_from(
    [
        b'{"event":"start","base":"/r"}',
        b'{"event":"finish","exit":0}',
        b'{"event":"test"',
        b"\n",
        b"{",
        b"[",
        b"}",
        b'{"event":"collected","tests":[[1],2,null,["a","b","c"]]}',
        b'"\\ud800"',
        b"1e999",
        b'"status":"passed"',
        b'{"Action":"pass","Package":"p","Test":"T","Elapsed":1e400}',
        b'{"Action":"pass","Package":"p"}',
        b"1..3",
        b"running 1 test",
        b"test a ... ok",
        b"test result: ok. 1 passed; 0 failed; 0 ignored;",
        b"    ok 1 - a {",
        b"<testsuite>",
        b'<testcase name="a">',
        b"</testcase>",
        b"</testsuite>",
        b"<failure>",
        b"ok",
        b"not ok 1",
        b"}",
        b"  ---",
        b"  ...",
        b"Bail out!",
        b"\x00",
        b"\xff\xfe",
        b'{"testResults":[{}],"numTotalTests":1}',
        b"0" * 5000,
        b'{"stats":{"tests":1,"end":1},"passes":[{}]}',
        b'{"testResults":[{"assertionResults":7}],"numTotalTests":0}',
    ]
)
NOISE = st.one_of(st.binary(max_size=300), st.lists(FRAGMENTS, max_size=12).map(b"\n".join))


@settings(max_examples=150, deadline=None)
@given(format=st.sampled_from(list(ReportFormat)), content=NOISE, output=NOISE)
def test_no_bytes_raise_and_bounds_hold(format: ReportFormat, content: bytes, output: bytes) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        if format in FILES:
            (directory / FILES[format]).write_bytes(content)
        report = _read(format, directory, output)
        sniff_formats(directory, output)
    assert TestReport.model_validate_json(report.model_dump_json()) == report
    assert all(0 < len(result.id) <= ID_LIMIT for result in report.results)
    assert all(len(result.message) <= MESSAGE_LIMIT for result in report.results)
    assert len(report.by_id) == len(report.results)
    assert report.complete or report.problems


@settings(max_examples=150, deadline=None)
@given(format=st.sampled_from(WITH_IDS), noise=st.binary(max_size=300))
def test_bytes_that_are_no_report_are_never_complete(format: ReportFormat, noise: bytes) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        if format in FILES:
            (directory / FILES[format]).write_bytes(noise)
        assert not _read(format, directory, noise).complete


@pytest.mark.parametrize("format", WITH_IDS)
def test_no_report_is_an_incomplete_one_that_says_so(tmp_path: Path, format: ReportFormat) -> None:
    for directory in (tmp_path, tmp_path / "does-not-exist"):
        report = _read(format, directory, b"all 12 tests passed\n")
        assert (report.complete, report.results) == (False, ())
        assert report.problems


def test_a_killed_command_has_no_complete_report(tmp_path: Path) -> None:
    for format in ReportFormat:
        assert not read_report(format, tmp_path, b"", root="/r", cwd=".", exit_code=None).complete


@pytest.mark.parametrize("format", FILES)
def test_a_link_is_not_followed(tmp_path: Path, format: ReportFormat) -> None:
    report_dir = tmp_path / "report"
    report_dir.mkdir()
    secret = tmp_path / "secret"
    secret.write_text('1..1\nok 1 - secret\n{"event":"finish"}\n')
    (report_dir / FILES[format]).symlink_to(secret)
    report = _read(format, report_dir, b"")
    assert not report.complete
    assert "secret" not in report.model_dump_json()


@pytest.mark.parametrize("format", FILES)
def test_a_pipe_is_not_waited_for(tmp_path: Path, format: ReportFormat) -> None:
    os.mkfifo(tmp_path / FILES[format])
    report = _read(format, tmp_path, b"")
    assert not report.complete
    assert "is not a regular file" in report.problems[0]


@pytest.mark.parametrize("format", FILES)
def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path, format: ReportFormat) -> None:
    with (tmp_path / FILES[format]).open("wb") as file:
        file.truncate(FILE_LIMIT + 1)
    report = _read(format, tmp_path, b"")
    assert not report.complete
    assert "67,108,865 bytes" in report.problems[0]


def test_directories_that_are_deep_on_purpose_are_refused(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert not _read(ReportFormat.JUNIT, tmp_path, b"").complete
        assert sniff_formats(tmp_path, b"") == ()
    finally:  # pytest's own removal would recurse too deep
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


LONG = 1_000_000
SLOW = {
    ReportFormat.CARGO: b"running 1 test\nRunning x (" + b"/a-" * LONG + b"\ntest " + b" ..." * LONG,
    ReportFormat.TAP: b"1..1\nok 1 " + b" # " * LONG + b"\nok 2 #" + b" " * LONG + b"x",
    ReportFormat.GO: b"# " + b"a [" * LONG + b"\n{" + b'"Action":' * LONG,
}


@pytest.mark.parametrize("format", SLOW)
def test_long_lines_cost_time_in_proportion_only(tmp_path: Path, format: ReportFormat) -> None:
    """A pattern that backtracks over a line of a million would not come back at all."""
    assert not _read(format, tmp_path, SLOW[format]).complete
    sniff_formats(tmp_path, SLOW[format])


def test_deep_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jest.json").write_text("[" * 1_000_000)
    assert not _read(ReportFormat.JEST, tmp_path, b"").complete


def test_long_ids_stay_apart_and_results_are_bounded(tmp_path: Path) -> None:
    tally = ReportBuilder("x")
    tally.add("a" * 2000 + "1", TestStatus.PASSED, message="m" * 5000)
    tally.add("a" * 2000 + "2", TestStatus.FAILED)
    report = tally.build_report(complete=True)
    assert [len(result.id) for result in report.results] == [ID_LIMIT, ID_LIMIT]
    assert len(report.by_id) == 2
    assert len(report.results[0].message) == MESSAGE_LIMIT
    for number in range(RESULT_LIMIT):
        tally.add(str(number), TestStatus.PASSED)
    report = tally.build_report(complete=True)
    assert (len(report.results), report.complete) == (RESULT_LIMIT, False)


@each_row("first", list(TestStatus))
@each_row("second", list(TestStatus))
def test_of_two_results_with_one_id_the_worse_stands(first: TestStatus, second: TestStatus) -> None:
    order = ["error", "failed", "skipped", "xfailed", "xpassed", "passed"]
    tally = ReportBuilder("x")
    tally.add("id", first)
    tally.add("id", second)
    assert [result.status.value for result in tally.build_report(complete=True).results] == [
        min(first.value, second.value, key=order.index)
    ]


def test_half_characters_and_nul_do_not_reach_the_report(tmp_path: Path) -> None:
    lines = [
        {"event": "start", "base": "/r"},
        {"event": "test", "file": "t.py", "name": "a\ud800\0b\nc", "status": "failed", "message": "\udfff"},
        {"event": "finish", "exit": 1, "imported_from": ["/r/\ud800"]},
    ]
    (tmp_path / "pytest-1.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    report = _read(ReportFormat.PYTEST, tmp_path, b"")
    assert report.complete
    assert report.results[0].id == "t.py::a?\ufffdb c"
    assert TestReport.model_validate_json(report.model_dump_json()) == report


def _read(format: ReportFormat, directory: Path, output: bytes) -> TestReport:
    return read_report(format, directory, output, root="/r", cwd=".", exit_code=0)
