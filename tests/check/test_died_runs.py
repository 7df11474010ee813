"""A run that died measured nothing: it is run once more, never kept, and excuses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workshop import CheckRun, Workshop, assert_failed

CALC = "def add(a, b):\n    return a + b\n"
EDITED = "def add(a, b):\n    return b + a\n"
TESTS = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
ZERO = "\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
KILLED = "the run ended before it was finished: SIGKILL killed it (exit code 137)"


def assert_unverifiable(run: CheckRun, *words: str) -> None:
    assert run.exit == 1, run.stderr
    assert run.report.outcome == "unverifiable", run.stdout
    assert run.report.confidence == "low"
    assert not [finding.rule for finding in run.report.findings if finding.severity != "minor"]
    for word in words:
        assert word in run.report.reason, run.report.reason


def rows(workshop: Workshop, root: Path) -> list[str]:
    """Name, phase and state of each row of a check, in order."""
    columns = "check_name || ' ' || phase || ' ' || state"
    sql = f"SELECT {columns} AS told FROM checks WHERE check_name LIKE 'tests%' ORDER BY seq"
    return workshop.proofstone(root, "ledger", "query", sql).stdout.split("\n")[1:]


def test_a_base_that_is_killed_excuses_no_deleted_test(workshop: Workshop) -> None:
    dies = 'import os\n\nimport calc\n\nif not hasattr(calc, "sub"):\n    os.kill(os.getpid(), 9)\n'
    root = workshop.repo({"conftest.py": dies, "calc.py": CALC, "tests/test_calc.py": TESTS + ZERO})
    workshop.write(root, {"calc.py": CALC + "\n\ndef sub(a, b):\n    return a - b\n", "tests/test_calc.py": TESTS})
    for _ in range(2):  # nothing of it is kept, so that the second check measures again
        run = workshop.check(root)
        assert_unverifiable(run, f"the base could not be measured: {KILLED}, twice in a row")
        assert not run.check("tests").reused
    told = [row.rstrip() for row in rows(workshop, root) if "baseline" in row]
    assert told == ["tests:pytest:died baseline unverifiable", "tests:pytest baseline unverifiable"] * 2


def test_a_base_that_is_killed_once_is_measured_by_the_second_run(workshop: Workshop) -> None:
    """Without a sandbox, so that a run can leave a mark for the next one."""
    mark = workshop.folder / "mark"
    dies = f"""
import os
import pathlib

import calc

mark = pathlib.Path({str(mark)!r})
if not hasattr(calc, "sub") and not mark.exists():
    mark.touch()
    os.kill(os.getpid(), 9)
"""
    settings = '[sandbox]\nlevel = "plain"\n'
    files = {"conftest.py": dies, "proofstone.toml": settings, "calc.py": CALC, "tests/test_calc.py": TESTS + ZERO}
    workshop.trust_everything()
    root = workshop.repo(files)
    workshop.write(root, {"calc.py": CALC + "\n\ndef sub(a, b):\n    return a - b\n", "tests/test_calc.py": TESTS})
    assert_failed(workshop.check(root), "test-vanished")
    assert mark.exists()
    told = [row.rstrip() for row in rows(workshop, root) if "baseline" in row]
    assert told == ["tests:pytest:died baseline unverifiable", "tests:pytest baseline pass"]


def test_a_change_whose_run_crashes_is_told_the_signal_and_not_that_tests_vanished(workshop: Workshop) -> None:
    crash = (
        TESTS + "\n\ndef test_crash():\n    import os\n    import signal\n\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    root = workshop.repo({"conftest.py": "", "calc.py": CALC, "tests/test_calc.py": TESTS})
    workshop.write(root, {"tests/test_calc.py": crash})
    run = workshop.check(root, "--must-pass", "test_add")
    assert_unverifiable(run, "tests:pytest: the run ended before it was finished: SIGSEGV killed it (exit code 139)")
    workshop.commit(root)  # now it crashes on the base as well
    workshop.write(root, {"calc.py": EDITED})
    assert_unverifiable(workshop.check(root), "SIGSEGV killed it (exit code 139), twice in a row")


FAILURES_KILL = """
import os


def pytest_runtest_logreport(report):
    if report.failed:
        os.kill(os.getpid(), 9)
"""
SABOTAGE_KILLS = """
import os

import calc

try:
    calc.add(1, 2)
except BaseException:
    os.kill(os.getpid(), 9)
"""
SABOTAGE_BREAKS = """
import os

import calc


def pytest_collection_finish():
    try:
        calc.add(1, 2)
    except BaseException:
        os._exit(3)
"""


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize(
    ("conftest", "change", "name"),
    [
        (FAILURES_KILL, {"tests/test_calc.py": TESTS + ZERO}, "must-fail"),
        (SABOTAGE_KILLS, {"calc.py": EDITED}, "sabotaged"),
    ],
    ids=["canary", "sabotage"],
)
def test_a_derived_run_that_is_killed_makes_the_check_unverifiable(
    workshop: Workshop, conftest: str, change: dict[str, str], name: str
) -> None:
    root = workshop.repo({"conftest.py": conftest, "calc.py": CALC, "tests/test_calc.py": TESTS})
    workshop.write(root, change)
    run = workshop.check(root)
    assert_unverifiable(run, f"the run tests:pytest:{name} died: {KILLED}, twice in a row")
    assert run.report.sensitive == ()
    assert "tests:pytest:layers after unverifiable" in [row.rstrip() for row in rows(workshop, root)]


@pytest.mark.ci
def test_a_sabotaged_run_that_breaks_off_costs_confidence_only(workshop: Workshop) -> None:
    root = workshop.repo({"conftest.py": SABOTAGE_BREAKS, "calc.py": CALC, "tests/test_calc.py": TESTS})
    workshop.write(root, {"calc.py": EDITED})
    run = workshop.check(root)
    assert (run.report.outcome, run.report.confidence, run.report.sensitive) == ("passed", "medium", ())
    gap = "tests:pytest: unknown whether tests notice the change: with sabotage, the run ended before it was finished"
    assert any(cap.reason.startswith(gap) for cap in run.report.reasons), run.report.reasons


@pytest.mark.ci
def test_a_deadline_is_raised_by_the_setting_that_is_named(workshop: Workshop) -> None:
    root = workshop.repo({"a.md": "one\n", "proofstone.toml": "[limits]\ncheck_seconds = 1\n"})
    workshop.write(root, {"a.md": "two\n"})
    run = workshop.check(root, "--verify", "sleep 3 && test -s a.md")
    assert_unverifiable(run, "not finished after 1 s")
    (finding,) = run.report.findings
    assert finding.rule == "limit" and "raise limits.check_seconds in proofstone.toml and commit that" in finding.fix
    workshop.configure(root, "[limits]\ncheck_seconds = 60\n")
    assert workshop.check(root, "--verify", "sleep 3 && test -s a.md").report.outcome == "passed"
