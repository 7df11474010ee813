"""The pytest plug-in, under the version of pytest that runs these tests."""

from __future__ import annotations

import ast
import json
import shlex
import sys

import pytest

from proofstone.check.models import ReportFormat
from proofstone.check.reports import read_report
from proofstone.check.reports.sniff import sniff_formats
from proofstone.sandbox.bubblewrap import PROBES_FOLDER
from tests.check.reports.project import Project, statuses
from tests.person import programs

PYTEST = [str(programs() / "python"), "-m", "pytest", "-q"]
WORKERS = [sys.executable, "-m", "pytest", "-q", "-n"]
"""The suite's own pytest has a plug-in for it."""

EVERY_OUTCOME = """
import pytest

@pytest.fixture
def breaks_before():
    raise RuntimeError("before")

@pytest.fixture
def breaks_after():
    yield
    raise RuntimeError("after")

def test_passes(): pass
def test_fails(): assert 1 == 2, "one is not two"
@pytest.mark.skip(reason="not here")
def test_skipped(): pass
@pytest.mark.xfail(reason="known")
def test_xfails(): assert False
@pytest.mark.xfail
def test_xpasses(): pass
@pytest.mark.xfail(strict=True)
def test_xpasses_strictly(): pass
@pytest.mark.xfail(run=False)
def test_not_run(): pass
def test_breaks_before(breaks_before): pass
def test_breaks_after(breaks_after): pass
@pytest.mark.parametrize("value", ["a::b", "c d"])
def test_values(value): pass
class TestGroup:
    def test_method(self): pass
"""

EXPECTED = {
    "tests/test_all.py::test_passes": "passed",
    "tests/test_all.py::test_fails": "failed",
    "tests/test_all.py::test_skipped": "skipped",
    "tests/test_all.py::test_xfails": "xfailed",
    "tests/test_all.py::test_xpasses": "xpassed",
    "tests/test_all.py::test_xpasses_strictly": "failed",
    "tests/test_all.py::test_not_run": "xfailed",
    "tests/test_all.py::test_breaks_before": "error",
    "tests/test_all.py::test_breaks_after": "error",
    "tests/test_all.py::test_values[a::b]": "passed",
    "tests/test_all.py::test_values[c d]": "passed",
    "tests/test_all.py::TestGroup::test_method": "passed",
}


@pytest.mark.parametrize(
    "command", [PYTEST, [*PYTEST, "-p", "no:cacheprovider"], [*WORKERS, "2"]], ids=["plain", "no cache", "workers"]
)
def test_every_outcome_has_its_status(project: Project, command: list[str]) -> None:
    project.file("tests/test_all.py", EVERY_OUTCOME)
    report = project.run(ReportFormat.PYTEST, command)
    assert statuses(report) == EXPECTED
    assert report.complete
    assert report.problems == ()
    assert project.exit_code == 1
    assert {result.path for result in report.results} == {"tests/test_all.py"}
    assert "one is not two" in report.by_id["tests/test_all.py::test_fails"].message
    assert report.by_id["tests/test_all.py::test_passes"].message == ""
    assert sniff_formats(project.report_dir, b"") == (ReportFormat.PYTEST,)


def test_the_output_and_the_exit_code_are_as_without_it(project: Project) -> None:
    project.file("tests/test_all.py", "def test_a(): pass\n")
    report = project.run(ReportFormat.PYTEST, [*PYTEST, "--no-summary", "--durations=0", "--durations-min=1000"])
    probed = (project.exit_code, project.output.split("in ")[0])
    project.run(ReportFormat.PYTEST, [*PYTEST, "--no-summary", "--durations=0", "--durations-min=1000"], probed=False)
    assert report.complete
    assert probed == (project.exit_code, project.output.split("in ")[0])


def test_a_command_line_that_sets_pythonpath_still_runs_and_merely_has_no_report(project: Project) -> None:
    project.file("src/thing.py", "")
    project.file("tests/test_thing.py", "import thing\ndef test_a(): pass\n")
    report = project.run(ReportFormat.PYTEST, f"PYTHONPATH=src {shlex.join(PYTEST)}")
    assert project.exit_code == 0
    assert not report.complete
    assert "without Proofstone's probe" in report.problems[0]


def test_the_persons_own_pythonpath_is_kept_for_the_run_and_for_its_children(project: Project) -> None:
    project.file("lib/thing.py", "")
    project.file(
        "tests/test_thing.py",
        "import os, thing\n"
        "def test_a():\n"
        f"    assert os.environ['PYTHONPATH'] == {str(project.root / 'lib')!r}\n"
        "    assert 'PROOFSTONE_REPORT' not in os.environ\n",
    )
    project.env = {"PYTHONPATH": str(project.root / "lib")}
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert statuses(report) == {"tests/test_thing.py::test_a": "passed"}


@pytest.mark.parametrize("command", [PYTEST, [*WORKERS, "2"]], ids=["plain", "workers"])
def test_it_says_where_the_project_was_imported_from(project: Project, command: list[str]) -> None:
    project.file("thing/__init__.py", "")
    project.file("src/json.py", "")  # not on the path: what is imported is the standard module of that name
    project.file("tests/test_thing.py", "import json, thing\ndef test_a(): pass\ndef test_b(): pass\n")
    report = project.run(ReportFormat.PYTEST, command)
    assert report.imported_from == (str(project.root / "thing/__init__.py"),)


def test_a_project_that_is_imported_from_elsewhere_says_so(project: Project) -> None:
    project.file("src/thing.py", "")
    project.file("tests/test_thing.py", "import thing\ndef test_a(): pass\n")
    installed = project.root.parent / "site-packages"
    installed.mkdir()
    (installed / "thing.py").write_text("")
    project.env = {"PYTHONPATH": str(installed)}
    assert project.run(ReportFormat.PYTEST, PYTEST).imported_from == (str(installed / "thing.py"),)


def test_ids_are_relative_to_the_repository_when_pytest_has_a_root_of_its_own(project: Project) -> None:
    project.file("packages/a/pytest.ini", "[pytest]\n")
    project.file("packages/a/tests/test_x.py", "def test_y(): pass\n")
    project.cwd = "packages/a"
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert statuses(report) == {"packages/a/tests/test_x.py::test_y": "passed"}


def test_ids_are_relative_to_the_repository_when_pytests_root_lies_above_it(project: Project) -> None:
    (project.root.parent / "pytest.ini").write_text("[pytest]\n")
    project.file("tests/test_x.py", "def test_y(): pass\n")
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert statuses(report) == {"tests/test_x.py::test_y": "passed"}


@pytest.mark.parametrize("command", [PYTEST, [*WORKERS, "2"]], ids=["plain", "workers"])
def test_a_module_that_cannot_be_imported_is_an_error_with_its_own_id(project: Project, command: list[str]) -> None:
    project.file("tests/test_broken.py", "import nothing_of_that_name\n")
    project.file("tests/test_good.py", "def test_a(): pass\n")
    report = project.run(ReportFormat.PYTEST, [*command, "--continue-on-collection-errors"])
    assert statuses(report) == {"tests/test_broken.py": "error", "tests/test_good.py::test_a": "passed"}
    assert "nothing_of_that_name" in report.by_id["tests/test_broken.py"].message


def test_tests_that_were_collected_and_never_run_are_named(project: Project) -> None:
    project.file("test_x.py", "def test_a(): assert False\ndef test_b(): pass\n")
    report = project.run(ReportFormat.PYTEST, [*PYTEST, "-x"])
    assert statuses(report) == {"test_x.py::test_a": "failed", "test_x.py::test_b": "skipped"}
    assert report.by_id["test_x.py::test_b"].message == "collected but never run"


def test_a_deselected_test_is_not_expected_to_run(project: Project) -> None:
    project.file("test_x.py", "def test_a(): pass\ndef test_b(): pass\n")
    assert statuses(project.run(ReportFormat.PYTEST, [*PYTEST, "-k", "test_a"])) == {"test_x.py::test_a": "passed"}


def test_a_process_that_dies_leaves_an_incomplete_report(project: Project) -> None:
    project.file("test_x.py", "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n")
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert project.exit_code == 0
    assert not report.complete
    assert statuses(report) == {"test_x.py::test_a": "passed", "test_x.py::test_b": "skipped"}


def test_a_worker_that_dies_makes_its_test_an_error_and_the_report_incomplete(project: Project) -> None:
    project.file("test_x.py", "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n")
    report = project.run(ReportFormat.PYTEST, [*WORKERS, "1"])
    assert report.by_id["test_x.py::test_b"].status.is_failure
    assert (report.complete, report.began) == (False, True)
    assert "the xdist worker gw0: " in report.problems[0]


def test_a_runner_that_cannot_begin_has_begun_nothing(project: Project) -> None:
    report = project.run(ReportFormat.PYTEST, [*PYTEST, "missing"])
    assert (report.complete, report.began) == (False, False)
    project.file("test_x.py", "import missing\ndef test_a(): pass\n")
    report = project.run(ReportFormat.PYTEST, [*PYTEST, "test_x.py::test_a"])
    assert (report.complete, report.began, statuses(report)) == (False, False, {"test_x.py": "error"})


def test_leaving_by_pytest_exit_is_incomplete(project: Project) -> None:
    project.file("test_x.py", "import pytest\ndef test_a(): pytest.exit('enough', 0)\n")
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert report.executed_count == 0


def test_runs_nested_in_a_test_do_not_report(project: Project) -> None:
    project.file(
        "test_outer.py",
        "import os, subprocess, sys\n"
        "import pytest\n"
        "pytest_plugins = ['pytester']\n"
        "def test_in_this_process(pytester):\n"
        "    pytester.makepyfile('def test_inner(): pass')\n"
        "    pytester.runpytest_inprocess().assert_outcomes(passed=1)\n"
        "def test_in_another_process(pytester):\n"
        "    pytester.makepyfile('def test_inner(): pass')\n"
        "    pytester.runpytest_subprocess().assert_outcomes(passed=1)\n"
        "def test_after_a_fork():\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        raise SystemExit('the child goes on as if it were pytest')\n"
        "    os.waitpid(child, 0)\n",
    )
    report = project.run(ReportFormat.PYTEST, [*PYTEST, "-W", "ignore"])
    assert statuses(report) == {
        "test_outer.py::test_in_this_process": "passed",
        "test_outer.py::test_in_another_process": "passed",
        "test_outer.py::test_after_a_fork": "passed",
    }
    assert report.complete


def test_several_runs_in_one_command_are_merged_and_the_worse_result_stands(project: Project) -> None:
    project.file("a/test_a.py", "def test_one(): pass\n")
    project.file("b/test_b.py", "import os\ndef test_two(): assert 'BREAK' not in os.environ\n")
    run = shlex.join(PYTEST)
    report = project.run(ReportFormat.PYTEST, f"{run} a; BREAK=1 {run} b; {run} b")
    assert statuses(report) == {"a/test_a.py::test_one": "passed", "b/test_b.py::test_two": "failed"}
    assert len(list(project.report_dir.iterdir())) == 3
    assert report.complete


def test_a_failing_subtest_fails_its_test_and_a_skipped_one_does_not_skip_it(project: Project) -> None:
    project.file(
        "test_x.py",
        "import unittest\n"
        "class TestX(unittest.TestCase):\n"
        "    def test_bad(self):\n"
        "        with self.subTest(i=1):\n"
        "            self.fail('inside')\n"
        "    def test_good(self):\n"
        "        with self.subTest(i=1):\n"
        "            pass\n",
    )
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert statuses(report) == {"test_x.py::TestX::test_bad": "failed", "test_x.py::TestX::test_good": "passed"}


def test_no_tests_at_all_is_a_complete_report_of_nothing(project: Project) -> None:
    report = project.run(ReportFormat.PYTEST, PYTEST)
    assert (report.results, report.complete) == ((), True)


def test_an_unreadable_line_makes_the_report_incomplete_and_names_it(project: Project) -> None:
    project.file("test_x.py", "def test_a(): pass\n")
    project.run(ReportFormat.PYTEST, PYTEST)
    journal = next(project.report_dir.iterdir())
    assert json.loads(journal.read_text().splitlines()[0])["event"] == "start"
    journal.write_text(journal.read_text() + "{oops\n")
    report = read_report(ReportFormat.PYTEST, project.report_dir, b"", root=str(project.root), cwd=".", exit_code=0)
    assert not report.complete
    assert f"{journal.name}, line 5" in report.problems[0]


def test_the_probes_hold_no_syntax_that_python_3_8_lacks() -> None:
    for probe in PROBES_FOLDER.glob("*.py"):
        ast.parse(probe.read_text(), feature_version=(3, 8))
