"""The base of a check, nothing to check, sessions of coding agents, and the plainest projects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofstone.common.models import Outcome
from tests.needs import needs
from tests.workshop import Workshop

pytestmark = needs("git", "bwrap")

CALC = "def add(a, b):\n    return a + b\n"
TESTS = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
PLAIN = {"calc.py": CALC, "tests/test_calc.py": TESTS}
"""The plainest project: no configuration, no import of pytest, no .gitignore."""
BROKEN = "def add(a, b):\n    return a - b\n"
AGENT = {"CLAUDECODE": "1"}
BEGAN = "the commit at which this session of Claude Code began"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop.apart(tmp_path)


def hook(workshop: Workshop, root: Path, event: str, session: str = "one", **more: object) -> dict[str, str]:
    """Claude Code's hook for this event of a session; return the answer."""
    message = json.dumps({"session_id": session, "cwd": str(root), **more})
    done = workshop.proofstone(root, "hook", "run", event, "--agent", "claude", told=message)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout or "{}")
    return found


def test_what_an_agent_has_committed_is_part_of_its_change(workshop: Workshop) -> None:
    root = workshop.repo(PLAIN)
    start = workshop.git(root, "rev-parse", "HEAD")
    assert hook(workshop, root, "agent-start") == {}
    assert f"equals {start[:12]} ({BEGAN})" in hook(workshop, root, "agent-stop")["systemMessage"]

    workshop.write(root, {"calc.py": BROKEN})
    workshop.commit(root, "Agent's work")
    hook(workshop, root, "agent-start", source="resume")  # the session began where it began
    answer = hook(workshop, root, "agent-stop")
    assert answer["decision"] == "block"
    assert "test_add" in answer["reason"]

    run = workshop.check(root, env=AGENT)
    assert (run.exit, run.report.outcome) == (1, Outcome.FAILED)
    assert run.report.base_commit == start
    assert run.report.base_reason == BEGAN
    assert run.report.regressions == ("tests/test_calc.py::test_add",)
    assert any(note.startswith("tests:pytest is concluded from tests/test_calc.py") for note in run.report.notes)
    shown = workshop.proofstone(root, "ledger", "show", run.report.run_id, "--json").stdout
    assert BEGAN in shown
    assert f"against {start[:12]} ({BEGAN})" in workshop.proofstone(root, "status", run.report.run_id).stdout


@pytest.mark.ci
def test_an_agent_without_a_recorded_start_cannot_commit_its_way_out(workshop: Workshop) -> None:
    root = workshop.repo(PLAIN)
    workshop.write(root, {"calc.py": BROKEN})
    assert hook(workshop, root, "agent-stop")["decision"] == "block"
    workshop.commit(root, "Commit it, so that nothing has changed")
    assert hook(workshop, root, "agent-stop")["decision"] == "block"
    run = workshop.check(root, env=AGENT)
    assert run.report.base_reason == "the base of the first check of this session of Claude Code"


def test_the_base_is_where_the_branch_left_another_and_its_settings_decide(workshop: Workshop) -> None:
    root = workshop.repo(PLAIN)
    fork = workshop.git(root, "rev-parse", "HEAD")
    workshop.git(root, "checkout", "--quiet", "-b", "topic")
    # The agent turns its own checks off, hides its commits, and commits both.
    workshop.write(root, {"calc.py": BROKEN, "proofstone.toml": '[check]\nbase = "HEAD"\ndisable = ["tests:*"]\n'})
    workshop.commit(root, "Work")
    run = workshop.check(root)
    assert run.exit == 1
    assert (run.report.base_commit, run.report.base_reason) == (fork, "the merge base with main, a local branch")
    assert run.report.regressions == ("tests/test_calc.py::test_add",)
    assert "weakened-settings" in {finding.rule for finding in run.report.findings}
    assert run.report.changed == ("calc.py", "proofstone.toml")

    workshop.write(root, {"calc.py": CALC})
    workshop.git(root, "add", "calc.py")
    workshop.git(root, "rm", "--quiet", "--cached", "proofstone.toml")
    workshop.write(root, {"calc.py": BROKEN})
    staged = workshop.check(root, "--staged")
    assert staged.report.outcome is Outcome.NOTHING_TO_CHECK, "what is staged equals the merge base"
    assert f"what is staged equals {fork[:12]} (the merge base with main, a local branch)" in staged.report.reason

    done = workshop.proofstone(root, "check", "--base", "HEAD", "--staged")
    assert "(--base HEAD), 2 files changed" in done.stdout


def test_nothing_to_check_proves_nothing(workshop: Workshop) -> None:
    root = workshop.repo(PLAIN)
    run = workshop.check(root)
    assert (run.exit, run.report.outcome, run.report.confidence) == (0, Outcome.NOTHING_TO_CHECK, None)
    assert run.report.checks == ()
    assert "the work tree equals" in run.report.reason
    assert "`proofstone check --base REV`" in run.report.reason
    done = workshop.proofstone(root, "check")
    assert "NOTHING-TO-CHECK" in done.stdout
    assert "confidence" not in done.stdout
    assert "PASSED" not in done.stdout
    # The tree of an earlier commit was compared with itself, which is no evidence for committing it again.
    workshop.write(root, {"calc.py": BROKEN})
    workshop.commit(root)
    assert workshop.proofstone(root, "hook", "install").returncode == 0
    workshop.git(root, "checkout", "--quiet", "HEAD~1", "--", ".")
    refused = workshop.run(root, "git", "commit", "--quiet", "--message", "Back")
    assert refused.returncode != 0
    assert "there is no passing evidence" in refused.stderr


@pytest.mark.ci
def test_what_a_test_run_leaves_behind_is_no_part_of_the_change(workshop: Workshop) -> None:
    root = workshop.repo(PLAIN)
    workshop.write(
        root,
        {
            "calc.py": "def add(a, b):\n    return b + a\n",
            "__pycache__/calc.cpython-311.pyc": b"\0bytecode",
            "tests/__pycache__/test_calc.cpython-311-pytest-8.3.4.pyc": b"\0bytecode",
            ".pytest_cache/v/cache/lastfailed": "{}",
            "node_modules/chai/index.js": "",
        },
    )
    run = workshop.check(root)
    assert (run.exit, run.report.outcome) == (0, Outcome.PASSED)
    assert run.report.changed == ("calc.py",)
    assert "running the project leaves them behind: .pytest_cache, __pycache__, node_modules, tests/__pycache__" in (
        " ".join(run.report.notes)
    )
    # Bytecode that nobody can compare with a source, and bytecode that git tracks, is still refused.
    workshop.write(root, {"__pycache__/hidden.cpython-311.pyc": b"\0bytecode"})
    workshop.git(root, "add", "--force", "__pycache__/calc.cpython-311.pyc")
    findings = workshop.check(root).report.findings
    assert {finding.path for finding in findings if finding.rule == "bytecode"} == {
        "__pycache__/calc.cpython-311.pyc",
        "__pycache__/hidden.cpython-311.pyc",
    }


UNSTABLE = """\
import random
import time

import pytest

from calc import add


@pytest.mark.parametrize("x", [time.time(), random.random() + 5, 7.0])
def test_float(x):
    assert add(x, 1) == x + 1
"""


def test_ids_that_differ_from_run_to_run_are_compared_by_position_and_count(workshop: Workshop) -> None:
    root = workshop.repo({"calc.py": CALC, "tests/test_calc.py": UNSTABLE})
    workshop.write(root, {"calc.py": "def add(a, b):\n    return b + a\n"})
    run = workshop.check(root)
    assert run.report.outcome is Outcome.PASSED, run.report.reason
    assert run.report.findings == ()
    (note,) = (note for note in run.report.notes if "differ from run to run" in note)
    assert "the ids of tests/test_calc.py::test_float" in note

    workshop.write(root, {"calc.py": BROKEN, "tests/test_calc.py": UNSTABLE.replace(", 7.0]", "]")})
    run = workshop.check(root)
    assert run.report.outcome is Outcome.FAILED
    assert run.report.regressions == tuple(
        f"tests/test_calc.py::test_float[case {number} of unstable ids]" for number in (1, 2)
    )
    (lost,) = (finding for finding in run.report.findings if finding.rule == "test-vanished")
    assert "tests/test_calc.py::test_float[case 3 of unstable ids]" in lost.detail
