"""Commands that discovery composes itself are run as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.check.ecosystems.trees import spec_of
from tests.needs import needs

CMAKE = """cmake_minimum_required(VERSION 3.10)
project(a C)
enable_testing()
add_executable(t t.c)
add_test(NAME good COMMAND t)
add_test(NAME bad COMMAND t fail)
"""


def run(argv: tuple[str, ...], cwd: Path, report: Path) -> int:
    filled = [word.replace("{report}", str(report)) for word in argv]
    return subprocess.run(filled, cwd=cwd, capture_output=True).returncode


@needs("cmake", "ctest", "cc")
def test_ctest_builds_for_itself_and_reports_into_the_report_directory(tmp_path: Path) -> None:
    project, report = tmp_path / "project with space", tmp_path / "report dir"
    project.mkdir()
    report.mkdir()
    files = {"CMakeLists.txt": CMAKE, "t.c": "int main(int n, char **v) { (void)v; return n > 1; }\n"}
    for name, text in files.items():
        (project / name).write_text(text)
    assert run(spec_of(files, "build:cmake").argv, project, report) == 0
    assert run(spec_of(files, "tests:ctest").argv, project, report) != 0
    xml = (report / "ctest.xml").read_text()
    assert 'name="good"' in xml
    assert 'name="bad"' in xml


@pytest.mark.parametrize("code", [0, 3])
@needs("sh", "find")
def test_reports_of_maven_are_collected_and_its_exit_code_is_kept(tmp_path: Path, code: int) -> None:
    project, report = tmp_path / "project", tmp_path / "report dir"
    report.mkdir()
    for module in ("a", "b"):
        (project / module / "target" / "surefire-reports").mkdir(parents=True)
    script = "for m in a b; do echo x > $m/target/surefire-reports/TEST-T.xml; done\n" + f"exit {code}\n"
    (project / "mvnw").write_text(script)
    argv = spec_of({"pom.xml": "", "mvnw": "", "src/test/java/T.java": ""}, "tests:maven").argv
    assert run(argv, project, report) == code
    assert len(list(report.glob("*.xml"))) == 2


@needs("sh")
def test_a_build_before_the_tests_finds_programs_of_the_package(tmp_path: Path) -> None:
    programs = tmp_path / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    for name in ("tsc", "jest"):
        (programs / name).write_text(f'#!/bin/sh\necho "$@" > {name}.ran\n')
        (programs / name).chmod(0o755)
    argv = spec_of({"package.json": '{"scripts": {"test": "tsc && jest"}}'}, "tests:jest").argv
    assert run(argv, tmp_path, tmp_path / "report dir") == 0
    assert (tmp_path / "tsc.ran").exists()
    assert f"--outputFile={tmp_path}/report dir/jest.json" in (tmp_path / "jest.ran").read_text()
