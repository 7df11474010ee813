"""go and cargo: recorded output, and the real tools on a small module."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.check.models import ReportFormat, TestReport
from proofstone.check.reports import read_report
from proofstone.check.reports.rerun import build_rerun_command
from proofstone.check.reports.sniff import sniff_formats
from tests.check.reports.project import FIXTURES, Project, read_fixture, statuses
from tests.needs import needs

GO_EXPECTED = {
    "example.com/m/calc/TestAdd": "failed",
    "example.com/m/calc/TestAdd/small": "passed",
    "example.com/m/calc/TestAdd/with_space/and_slash": "failed",
    "example.com/m/calc/TestOk": "passed",
    "example.com/m/calc/TestSkip": "skipped",
    "example.com/m/broken": "error",
    "example.com/m/panics/TestFine": "passed",
    "example.com/m/panics/TestPanic": "failed",
}

CARGO_EXPECTED = {
    "my_crate::tests::ok": "passed",
    "my_crate::tests::bad": "failed",
    "my_crate::tests::ign": "skipped",
    "my_crate::tests::panics": "passed",
    "my_crate[bin]::tests::ok": "passed",
    "my_crate/it::outside": "passed",
    "my_crate[doc]::src/lib.rs - add": "passed",
    "my_crate[doc]::src/lib.rs - add #2": "failed",
}


def test_recorded_go_output_is_read(tmp_path: Path) -> None:
    report = read_fixture(ReportFormat.GO, "go-1.19.txt", tmp_path)
    assert statuses(report) == GO_EXPECTED
    assert report.complete
    assert "cannot use" in report.by_id["example.com/m/broken"].message
    assert sniff_formats(tmp_path / "none", (FIXTURES / "go-1.19.txt").read_bytes()) == (ReportFormat.GO,)


def test_go_output_that_was_cut_is_incomplete(tmp_path: Path) -> None:
    whole = (FIXTURES / "go-1.19.txt").read_bytes().splitlines(keepends=True)
    report = _go(b"".join(whole[:-1]), tmp_path)
    assert not report.complete


def test_go_build_failures_of_newer_versions_are_errors(tmp_path: Path) -> None:
    output = (
        b'{"ImportPath":"m/x [m/x.test]","Action":"build-output","Output":"x.go:3:1: syntax error\\n"}\n'
        b'{"ImportPath":"m/x [m/x.test]","Action":"build-fail"}\n'
        b'{"Action":"start","Package":"m/x"}\n'
        b'{"Action":"output","Package":"m/x","Output":"FAIL\\tm/x [build failed]\\n"}\n'
        b'{"Action":"fail","Package":"m/x","Elapsed":0,"FailedBuild":"m/x [m/x.test]"}\n'
    )
    report = _go(output, tmp_path)
    assert (statuses(report), report.complete) == ({"m/x": "error"}, True)


@pytest.mark.parametrize("crash", ["panic: boom", ""], ids=["its own crash", "a kill"])
def test_a_go_test_that_started_and_never_ended_is_an_error(tmp_path: Path, crash: str) -> None:
    output = (
        b'{"Action":"run","Package":"m","Test":"TestA"}\n'
        + f'{{"Action":"output","Package":"m","Test":"TestA","Output":"{crash}"}}\n'.encode()
        + b'{"Action":"fail","Package":"m","Elapsed":1}\n'
    )
    report = _go(output, tmp_path)
    assert statuses(report) == {"m/TestA": "error"}
    assert report.complete is bool(crash)  # a binary that was killed measured nothing


def test_a_go_package_that_fails_outside_of_its_tests_is_an_error(tmp_path: Path) -> None:
    output = (
        b'{"Action":"pass","Package":"m","Test":"TestA"}\n'
        b'{"Action":"output","Package":"m","Output":"exit status 3\\n"}\n{"Action":"fail","Package":"m"}\n'
    )
    report = _go(output, tmp_path)
    assert statuses(report) == {"m/TestA": "passed", "m": "error"}
    assert report.by_id["m"].message == "exit status 3\n"


def _go(output: bytes, tmp_path: Path) -> TestReport:
    return read_report(ReportFormat.GO, tmp_path, output, root="/repo", cwd=".", exit_code=1)


@needs("go")
def test_real_go_runs_and_runs_single_tests_again(project: Project) -> None:
    project.file("go.mod", "module example.com/m\n\ngo 1.19\n")
    header = 'package calc\n\nimport "testing"\n\n'
    project.file(
        "calc/calc_test.go",
        header
        + 'func TestA(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("no") }) }\n'
        + "func TestB(t *testing.T) {}\nfunc TestAB(t *testing.T) {}\n",
    )
    project.file("broken/b_test.go", 'package broken\n\nvar x int = "text"\n')
    project.env = {"GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    report = project.run(ReportFormat.GO, ["go", "test", "-json", "./..."])
    assert statuses(report) == {
        "example.com/m/calc/TestA": "failed",
        "example.com/m/calc/TestA/sub": "failed",
        "example.com/m/calc/TestB": "passed",
        "example.com/m/calc/TestAB": "passed",
        "example.com/m/broken": "error",
    }
    assert report.complete
    again = build_rerun_command(ReportFormat.GO, ["go", "test", "-json", "./..."], ["example.com/m/calc/TestA/sub"])
    assert again is not None
    assert set(statuses(project.run(ReportFormat.GO, again))) == {
        "example.com/m/calc/TestA",
        "example.com/m/calc/TestA/sub",
    }


def test_recorded_cargo_output_is_read(tmp_path: Path) -> None:
    report = read_fixture(ReportFormat.CARGO, "cargo.txt", tmp_path)
    assert statuses(report) == CARGO_EXPECTED
    assert report.complete
    assert "assertion `left == right` failed: sum" in report.by_id["my_crate::tests::bad"].message
    assert report.by_id["my_crate::tests::ign"].message == "slow"
    assert sniff_formats(tmp_path / "none", (FIXTURES / "cargo.txt").read_bytes()) == (ReportFormat.CARGO,)


CARGO_BROKEN = {
    "compile error": "error[E0308]: mismatched types\nerror: could not compile `m` (lib test)\n",
    "binary died": "running 2 tests\ntest a ... ok\n",
    "sums disagree": "running 2 tests\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored;\n",
    "quiet": "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n",
    "second binary not built": "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n\n"
    "error: could not compile `m` (test)\n",
}


@pytest.mark.parametrize("output", CARGO_BROKEN.values(), ids=CARGO_BROKEN.keys())
def test_cargo_output_that_does_not_add_up_is_incomplete(tmp_path: Path, output: str) -> None:
    report = read_report(ReportFormat.CARGO, tmp_path, output.encode(), root="/repo", cwd=".", exit_code=101)
    assert not report.complete
    assert report.problems


def test_two_crates_may_have_an_integration_test_of_one_name(tmp_path: Path) -> None:
    block = "running 1 test\ntest t ... {}\n\ntest result: ok. {} passed; {} failed; 0 ignored; 0 measured\n"
    hashed = "0123456789abcdef"
    output = (
        f"     Running unittests src/lib.rs (target/debug/deps/a-{hashed})\n{block.format('ok', 1, 0)}"
        f"     Running tests/it.rs (target/debug/deps/it-{hashed})\n{block.format('ok', 1, 0)}"
        f"     Running unittests src/lib.rs (target/debug/deps/b-{hashed})\n{block.format('ok', 1, 0)}"
        f"     Running tests/it.rs (target/debug/deps/it-{hashed})\n{block.format('FAILED', 0, 1)}"
    )
    report = read_report(ReportFormat.CARGO, tmp_path, output.encode(), root="/repo", cwd=".", exit_code=101)
    assert statuses(report) == {"a::t": "passed", "a/it::t": "passed", "b::t": "passed", "b/it::t": "failed"}


@needs("cargo")
def test_real_cargo_runs_and_runs_single_tests_again(project: Project) -> None:
    project.file("Cargo.toml", '[package]\nname = "my-crate"\nversion = "0.1.0"\nedition = "2021"\n')
    project.file("src/lib.rs", "#[cfg(test)]\nmod tests {\n #[test] fn a() {}\n #[test] fn ab() { panic!() }\n}\n")
    project.file("tests/it.rs", "#[test] fn outside() {}\n")
    argv = ["cargo", "test", "--offline", "--no-fail-fast"]
    report = project.run(ReportFormat.CARGO, argv)
    assert statuses(report) == {
        "my_crate::tests::a": "passed",
        "my_crate::tests::ab": "failed",
        "my_crate/it::outside": "passed",
    }
    assert report.complete
    again = build_rerun_command(ReportFormat.CARGO, argv, ["my_crate::tests::a"])
    assert again is not None
    assert statuses(project.run(ReportFormat.CARGO, again)) == {"my_crate::tests::a": "passed"}
