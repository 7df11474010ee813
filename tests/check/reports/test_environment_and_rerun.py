"""The variables that make a command report, what a command left behind, and how single tests run again."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.reports.rerun import build_rerun_command, merge_variables, report_variables
from proofstone.check.reports.sniff import sniff_formats
from tests.check.reports.project import Project, statuses
from tests.rows import each_row


def test_a_persons_own_value_of_a_list_is_kept_behind_ours() -> None:
    present = {"PYTHONPATH": "/own", "NODE_OPTIONS": "--no-warnings", "HOME": "/home/me"}
    merged = merge_variables(present, report_variables(None))
    assert merged["PYTHONPATH"] == "{probes}:/own"
    assert merged["NODE_OPTIONS"] == "--require={probes}/proofstone_node.cjs --no-warnings"
    assert merged["HOME"] == "/home/me"
    assert merged["PROOFSTONE_REPORT"] == "{report}"


def test_formats_that_are_read_from_the_output_need_no_variables() -> None:
    for format in (ReportFormat.GO, ReportFormat.CARGO, ReportFormat.TAP, ReportFormat.EXIT_CODE):
        assert report_variables(format) == {}


SNIFFED = {
    "nothing": (b"12 passed\n", None),
    "the word ok": (b"ok\nall good\n", None),
    "tap": (b"TAP version 13\n", ReportFormat.TAP),
    "tap without version": (b"1..1\nok 1 - a\n", ReportFormat.TAP),
    "go": (b'{"Time":"2024-01-01T00:00:00Z","Action":"start","Package":"p"}\n', ReportFormat.GO),
    "other json": (b'{"level":"info"}\n', None),
    "cargo": (b"test result: ok. 1 passed; 0 failed; 0 ignored;\n", ReportFormat.CARGO),
}


@pytest.mark.parametrize(("output", "format"), SNIFFED.values(), ids=SNIFFED.keys())
def test_the_output_is_recognised(tmp_path: Path, output: bytes, format: ReportFormat | None) -> None:
    assert sniff_formats(tmp_path, output) == ((format,) if format else ())


def test_a_report_file_stands_before_the_output(tmp_path: Path) -> None:
    (tmp_path / "pytest-7.jsonl").touch()
    assert sniff_formats(tmp_path, b"TAP version 13\n") == (ReportFormat.PYTEST,)


PYTEST_IDS = ["packages/a/tests/test_x.py::test_y[a::b]"]
RERUNS = {
    "pytest": (
        ReportFormat.PYTEST,
        "pytest -q -x tests",
        PYTEST_IDS,
        "pytest -q packages/a/tests/test_x.py::test_y[a::b]",
    ),
    "-m pytest": (
        ReportFormat.PYTEST,
        "python -m pytest -m slow --lf",
        ["t.py::a"],
        "python -m pytest -m slow t.py::a",
    ),
    "unclear": (ReportFormat.PYTEST, "pytest --of-a-plug-in tests", ["t.py::a"], None),
    "clear by =": (
        ReportFormat.PYTEST,
        "pytest --of-a-plug-in=1 tests",
        ["t.py::a"],
        "pytest --of-a-plug-in=1 t.py::a",
    ),
    "another program": (ReportFormat.PYTEST, "make test", ["t.py::a"], None),
    "no ids": (ReportFormat.PYTEST, "pytest", [], None),
    "an id that was cut": (ReportFormat.PYTEST, "pytest", ["x" * 1000], None),
    "a file like an option": (ReportFormat.PYTEST, "pytest", ["-p.py::a"], "pytest ./-p.py::a"),
    "go": (
        ReportFormat.GO,
        "go test -json -count 1 ./...",
        ["m/a/TestX/sub", "m/b/TestY", "m/b/TestX"],
        "go test -json -count 1 -run '^(?:TestX|TestY)$' m/a m/b",
    ),
    "go package": (ReportFormat.GO, "go test -json ./...", ["m/a"], "go test -json m/a"),
    "cargo": (
        ReportFormat.CARGO,
        "cargo test --offline -- --test-threads=1",
        ["c::tests::a", "c/it::b"],
        "cargo test --offline -- --test-threads=1 --exact b tests::a",
    ),
    "cargo doc-test": (ReportFormat.CARGO, "cargo test", ["c[doc]::src/lib.rs - add"], None),
    "unittest class set-up": (ReportFormat.UNITTEST, "python proofstone_unittest.py", ["setUpClass (t.A)"], None),
    "jest": (
        ReportFormat.JEST,
        "npx jest --ci src",
        ["a.test.js > adds (1 + 1)"],
        r"npx jest --ci --runTestsByPath a.test.js -t '^(?:adds \(1 \+ 1\))$'",
    ),
    "jest file": (ReportFormat.JEST, "jest", ["a.test.js"], "jest --runTestsByPath a.test.js"),
    "node": (
        ReportFormat.NODE,
        "node --test lib",
        ["a.test.js > g > t"],
        "node --test --test-name-pattern=t$ a.test.js",
    ),
    "node script": (ReportFormat.NODE, "node lib.js", ["a.test.js > g > t"], None),
    "junit": (ReportFormat.JUNIT, "mvn test", ["C::a"], None),
}


@each_row(("format", "argv", "ids", "expected"), RERUNS.values())
def test_the_selection_is_replaced_and_the_options_stay(
    format: ReportFormat, argv: str, ids: list[str], expected: str | None
) -> None:
    assert build_rerun_command(format, argv.split(), ids) == (
        None if expected is None else tuple(shlex.split(expected))
    )


def test_pytest_runs_single_tests_again_below_the_root(project: Project) -> None:
    project.file("packages/a/pytest.ini", "[pytest]\n")
    project.file("packages/a/tests/test_x.py", "def test_a(): pass\ndef test_b(): pass\n")
    project.cwd = "packages/a"
    argv = [sys.executable, "-m", "pytest", "-q", "tests"]
    ids = ["packages/a/tests/test_x.py::test_b"]
    assert len(project.run(ReportFormat.PYTEST, argv).results) == 2
    again = build_rerun_command(ReportFormat.PYTEST, argv, ids, cwd="packages/a")
    assert again is not None
    assert list(statuses(project.run(ReportFormat.PYTEST, again))) == ids
