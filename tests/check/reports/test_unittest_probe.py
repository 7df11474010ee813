"""Proofstone's own runner for unittest, beside `python -m unittest` itself."""

from __future__ import annotations

import re
import sys

from proofstone.check.models import ReportFormat
from proofstone.check.reports.rerun import build_rerun_command
from tests.check.reports.project import Project, statuses

RUNNER = (sys.executable, "{probes}/proofstone_unittest.py")

EVERY_OUTCOME = """
import os, sys, unittest
import thing

class A(unittest.TestCase):
    def test_passes(self): self.assertEqual(sys.path[0], os.getcwd())
    def test_fails(self): self.fail("on purpose")
    def test_raises(self): raise ValueError("oops")
    @unittest.skip("not here")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_fails_as_expected(self): self.fail()
    @unittest.expectedFailure
    def test_passes_unexpectedly(self): pass
    def test_subtests(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    def test_environment(self): self.assertNotIn("PROOFSTONE_REPORT", os.environ)

class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("class")
    def test_never(self): pass
"""

EXPECTED = {
    "tests.test_all.A.test_passes": "passed",
    "tests.test_all.A.test_fails": "failed",
    "tests.test_all.A.test_raises": "error",
    "tests.test_all.A.test_skipped": "skipped",
    "tests.test_all.A.test_fails_as_expected": "xfailed",
    "tests.test_all.A.test_passes_unexpectedly": "failed",
    "tests.test_all.A.test_subtests": "failed",
    "tests.test_all.A.test_environment": "passed",
    "setUpClass (tests.test_all.B)": "error",
    "tests.test_all.B.test_never": "skipped",
    "tests.test_broken": "error",
}


def _fill(project: Project) -> None:
    project.file("thing.py", "")
    project.file("tests/__init__.py", "")
    project.file("tests/test_all.py", EVERY_OUTCOME)
    project.file("tests/test_broken.py", "import nothing_of_that_name\n")


def test_every_outcome_has_its_status(project: Project) -> None:
    _fill(project)
    report = project.run(ReportFormat.UNITTEST, [*RUNNER, "discover", "-s", "tests", "-t", "."])
    assert statuses(report) == EXPECTED
    assert report.complete
    assert report.by_id["tests.test_all.A.test_passes"].path == "tests/test_all.py"
    assert "(i=1)" in report.by_id["tests.test_all.A.test_subtests"].message
    assert str(project.root / "thing.py") in report.imported_from


def test_it_prints_and_ends_as_unittest_does(project: Project) -> None:
    _fill(project)
    arguments = ("-s", "tests", "-t", ".", "-v")
    project.run(ReportFormat.UNITTEST, [*RUNNER, *arguments])
    ours = (project.exit_code, _summary(project.output))
    project.run(ReportFormat.UNITTEST, [sys.executable, "-m", "unittest", "discover", *arguments], probed=False)
    assert ours == (project.exit_code, _summary(project.output))
    assert ours[0] == 1


def _summary(output: str) -> list[str]:
    return re.findall(r"^.* \.\.\. .*$|^FAILED.*$|^OK.*$", output, re.MULTILINE)


def test_all_passing_ends_with_zero(project: Project) -> None:
    project.file("test_x.py", "import unittest\nclass X(unittest.TestCase):\n    def test_a(self): pass\n")
    report = project.run(ReportFormat.UNITTEST, RUNNER)
    assert (project.exit_code, statuses(report)) == (0, {"test_x.X.test_a": "passed"})


def test_a_process_that_dies_leaves_an_incomplete_report_and_names_what_never_ran(project: Project) -> None:
    project.file(
        "test_x.py",
        "import os, unittest\nclass X(unittest.TestCase):\n"
        "    def test_a(self): pass\n    def test_b(self): os._exit(0)\n",
    )
    report = project.run(ReportFormat.UNITTEST, RUNNER)
    assert project.exit_code == 0
    assert not report.complete
    assert statuses(report) == {"test_x.X.test_a": "passed", "test_x.X.test_b": "skipped"}


def test_single_tests_run_again_by_id(project: Project) -> None:
    _fill(project)
    ids = ["tests.test_all.A.test_fails", "tests.test_all.A.test_passes"]
    again = build_rerun_command(ReportFormat.UNITTEST, [*RUNNER, "discover", "-s", "tests", "-t", "."], ids)
    assert again is not None
    assert sorted(statuses(project.run(ReportFormat.UNITTEST, again))) == ids


def test_a_start_folder_that_is_missing_lets_nothing_begin(project: Project) -> None:
    report = project.run(ReportFormat.UNITTEST, [*RUNNER, "discover", "-s", "missing"])
    assert (report.complete, report.began) == (False, False)
    assert "unittest could not begin: ImportError" in report.problems[0]
