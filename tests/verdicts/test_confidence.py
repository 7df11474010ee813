"""Confidence in every report: what it lacks, and what would raise it; never against the evidence beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.common.models import Confidence, Outcome
from tests.gate.stage import Stage, agent, work
from tests.needs import needs
from tests.staging import FILES, plan, task
from tests.workshop import Workshop

pytestmark = needs("git", "bwrap")

BROKEN = "def add(a, b):\n    return a - b\n"
CALC = "def add(a, b):\n    return a + b\n"
TESTS = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
PROJECT = {"conftest.py": "", "calc.py": BROKEN, "tests/test_calc.py": TESTS}


def test_a_check_that_the_project_has_and_that_cannot_run_is_named_with_its_remedy(workshop: Workshop) -> None:
    root = workshop.repo({**PROJECT, "pyrightconfig.json": "{}\n"})
    workshop.write(root, {"calc.py": CALC})
    run = workshop.check(root)
    assert (run.report.outcome, run.report.confidence) == (Outcome.PASSED, Confidence.MEDIUM)
    (reason,) = run.report.reasons
    assert reason.reason == "types:pyright could not run: pyright is not installed"
    assert reason.remedy == "python -m pip install pyright"
    for shown in (workshop.proofstone(root, "check"), workshop.proofstone(root, "status", run.report.run_id)):
        assert f"confidence medium, because:\n  - {reason.reason}\n" in shown.stdout
        assert "to raise it: python -m pip install pyright" in shown.stdout
    assert "unverifiable" in workshop.proofstone(root, "check").stdout  # the table, because something is not a pass

    (root / "pyrightconfig.json").unlink()
    workshop.git(root, "commit", "--quiet", "--all", "--message", "No types")
    workshop.write(root, {"calc.py": BROKEN})
    workshop.git(root, "commit", "--quiet", "--all", "--allow-empty", "--message", "Broken")
    workshop.write(root, {"calc.py": CALC})
    run = workshop.check(root, "--base", "HEAD")
    assert (run.report.confidence, run.report.reasons) == (Confidence.HIGH, ())
    shown = workshop.proofstone(root, "check", "--base", "HEAD")
    assert shown.stderr == ""
    assert "tier  check" not in shown.stdout
    assert "  confidence high\n" in shown.stdout
    assert "fail → pass" not in shown.stdout
    assert "fail → pass" in workshop.proofstone(root, "check", "--base", "HEAD", "-v").stdout


@pytest.mark.ci
def test_a_check_without_test_ids_that_is_repaired_is_a_test_that_fails_without_the_change(workshop: Workshop) -> None:
    """Seen before: `fail` became `pass` in the table, and `no test failed without the change` was the reason."""
    root = workshop.repo(
        {"calc.py": BROKEN, "Makefile": "test:\n\tpython3 -c 'import calc; assert calc.add(2, 3) == 5'\n"}
    )
    workshop.write(root, {"calc.py": CALC})
    run = workshop.check(root)
    assert (run.report.outcome, run.check("tests:").baseline, run.check("tests:").verdict) == ("passed", "fail", "pass")
    assert not any("without the change" in reason.reason for reason in run.report.reasons), run.report.reasons


def test_a_criterion_that_a_command_asserts_is_shown_by_it_and_prose_is_not(tmp_path: Path) -> None:
    command = "python3 -c 'from shop.price import price; print(price())'"
    verify = f'python3 -m unittest tests.test_price\ntest "$({command})" = 42'
    asserted = task("Price", verify=verify, done=f"`{command}` prints 42")
    prose = task("Tax", verify="python3 -m unittest tests.test_tax", done="The tax is easy to understand")
    stage = Stage.set_up(tmp_path / "site", plan(asserted, prose), FILES)
    gated = stage.gate(agent(t1=work("price", 42), t2=work("tax")), "--architect", "rules")
    first, second = gated.json["tasks"]
    assert first["state"] == "APPROVED", gated.json
    assert not any("prints 42" in reason["reason"] for reason in first["reasons"]), first["reasons"]
    assert any("easy to understand" in reason["reason"] and reason["remedy"] for reason in second["reasons"]) or (
        second["state"] != "APPROVED"
    ), second
    summary = stage.proofstone("status", "last").stdout
    for reason in [*first["reasons"], *second["reasons"]]:
        assert reason["reason"] in summary
