"""The public API: the names that `proofstone` exports do what the commands do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import proofstone
from proofstone import (
    CheckReport,
    GateReport,
    PlanReport,
    ProofstoneError,
    RunReport,
    SolveReport,
    check_change,
    open_ledger,
)
from tests.needs import needs
from tests.pipeline import stage as pipeline_stage
from tests.solve import stage as solve_stage

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
PLAN = """\
# Multiply

<task type="auto">
  <name>Task 1: Multiply two numbers</name>
  <files>calc.py, test_calc.py</files>
  <action>Add a function multiply(a, b) to calc.py, with a test.</action>
  <verify>python3 -m unittest -q</verify>
  <done>all tests pass</done>
</task>
"""
WORK = """\
printf 'def multiply(a, b):\\n    return a * b\\n' >>calc.py
sed -i 's/import add/import add, multiply/' test_calc.py
printf '\\n    def test_multiply(self):\\n        self.assertEqual(multiply(2, 3), 6)\\n' >>test_calc.py
"""
TESTS = """\
import unittest

from calc import add


class Test(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a function and its test."""
    root = tmp_path / "repository"
    root.mkdir()
    (root / "calc.py").write_text("def add(a, b):\n    return a + b\n\n\n")
    (root / "test_calc.py").write_text(TESTS)
    for args in (
        ("init", "-q", "-b", "main"),
        ("config", "user.name", "You"),
        ("config", "user.email", "you@example.org"),
        ("add", "-A"),
        ("commit", "-q", "-m", "Add"),
    ):
        subprocess.run(("git", *args), cwd=root, check=True)
    return root


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, proofstone; print([m for m in sys.modules if m.split('.')[0] in ('pydantic', 'typer')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_public_name_can_be_imported() -> None:
    for name in proofstone.__all__:
        assert getattr(proofstone, name).__doc__, f"{name} has no docstring"
    assert set(proofstone.__all__) <= set(dir(proofstone))
    with pytest.raises(AttributeError, match="has no attribute 'checks'"):
        proofstone.checks  # noqa: B018


@needs("git", "bwrap")
def test_a_change_is_checked_and_recorded(repository: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (repository / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    failed = check_change(repository, home=home)
    assert isinstance(failed, CheckReport) and failed.outcome == "failed"
    (repository / "calc.py").write_text("def add(a, b):\n    return b + a\n")
    assert check_change(repository, home=home).outcome == "passed"
    with open_ledger(home) as ledger:
        assert ledger.verify().ok


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"verify": ["true"]}, "proves nothing"),
        ({"accept": {"edited-expectation": "no"}}, "^accept edited-expectation: say why"),
        ({"accept": {"nothing": "a good reason"}}, "no finding of that rule"),
        ({"base": "nowhere"}, "nowhere"),
    ],
)
def test_bad_input_is_an_error_that_says_what_is_wrong(
    arguments: dict[str, object], words: str, repository: Path, tmp_path: Path
) -> None:
    with pytest.raises(ProofstoneError, match=words):
        check_change(repository, home=tmp_path / "home", **arguments)  # type: ignore[arg-type]


@needs("git", "bwrap")
def test_a_plan_is_verified_and_carried_out(repository: Path, tmp_path: Path) -> None:
    plan = tmp_path / "PLAN.md"
    plan.write_text(PLAN)
    report = proofstone.verify_plan(plan, repository, rules_only=True, home=tmp_path / "home")
    assert isinstance(report, PlanReport) and report.verdict == "PROCEED", report.reason
    done = proofstone.run_plan(plan, repository, executor=f"cmd:{WORK}", home=tmp_path / "home")
    assert isinstance(done, GateReport) and done.outcome == "passed", done
    subject = subprocess.run(
        ("git", "log", "-1", "--format=%s", done.branch), cwd=repository, capture_output=True, text=True, check=True
    ).stdout
    assert "Multiply two numbers" in subject


@needs("git", "bwrap")
def test_a_goal_is_pursued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = solve_stage.Stage.set_up(tmp_path)
    monkeypatch.setenv("HOME", str(stage.workshop.home))
    report = proofstone.solve_goal(
        solve_stage.GOAL,
        stage.root,
        backends=[stage.cast(solve_stage.script())],
        home=stage.workshop.proofstone_home,
    )
    assert isinstance(report, SolveReport) and report.result is not None
    assert (report.result.status, [change.path for change in report.changed]) == ("accepted", ["count.txt"])


@needs("git", "bwrap")
def test_a_request_goes_through_the_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = pipeline_stage.Stage.set_up(tmp_path)
    monkeypatch.setenv("HOME", str(stage.workshop.home))
    report = proofstone.run_pipeline(
        pipeline_stage.REQUEST,
        stage.root,
        backends=[stage.cast(pipeline_stage.TEAM)],
        home=stage.workshop.proofstone_home,
    )
    assert isinstance(report, RunReport) and report.outcome == "passed", report.reason
    assert report.commit


@needs("git", "bwrap")
def test_the_example_of_the_page_runs(repository: Path, tmp_path: Path) -> None:
    (repository / "calc.py").write_text("def add(a, b):\n    return b + a\n")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=repository,
        env={**os.environ, "PROOFSTONE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("passed "), done.stdout
