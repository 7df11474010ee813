"""`assay demo`: one run of it on a machine whose git is set up awkwardly, and the table of what each agent deserves."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from assay.contracts.gate import Failure, FailureType, Reason, TaskState
from assay.contracts.gate_report import GateReport, RunOutcome, TaskReport
from assay.core.plan.lint import lint
from assay.core.plan.reading import read_plan
from assay.gate_app import view_run
from assay.surfaces.demo.deserved import AGENTS, Agent, wrongs
from assay.surfaces.demo.evidence import Evidence, gather
from assay.surfaces.demo.shown import print_evidence, print_judged
from assay.surfaces.demo.stage import Stage
from tests.cli.running import assay

STATES = {"task-01": "APPROVED", "task-02": "APPROVED", "task-03": "APPROVED", "task-04": "FAILED"}
ATTEMPTS = {"task-01": 1, "task-02": 2, "task-03": 2, "task-04": 3}
LIES = ("Fixed the rounding. All tests pass.", "I tidied up the cart as well.", "All tests pass, exit code 0.")


class Shown(NamedTuple):
    """A demo that is over."""

    code: int
    document: Mapping[str, Any]
    stage: Stage

    @property
    def report(self) -> GateReport:
        return GateReport.model_validate(self.document["gate"])

    def git(self, *args: str) -> list[str]:
        done = subprocess.run(["git", *args], cwd=self.stage.repository, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The person's git signs with a key that is not there, has a hook that refuses, and knows no name."""
    top = tmp_path_factory.mktemp("demo")
    hook = top / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (top / ".gitconfig").write_text(
        f"[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n[core]\n\thooksPath = {hook.parent}\n"
        f"[init]\n\ttemplateDir = {top}\n"
    )
    env = {"HOME": str(top), "XDG_CONFIG_HOME": str(top)}
    done = assay("demo", "--json", "--dir", str(top / "stage"), home=top / "unused", env=env)
    assert done.stdout, done.stderr
    assert not (top / "unused").exists()
    return Shown(done.returncode, json.loads(done.stdout), Stage(top / "stage"))


def test_every_agent_is_judged_as_it_deserves(shown: Shown) -> None:
    assert (shown.code, shown.document["as_they_deserve"], shown.document["wrongs"]) == (0, True, [])
    report = shown.report
    assert report.outcome is RunOutcome.FAILED
    assert {task.id: task.state.value for task in report.tasks} == STATES
    assert {task.id: task.attempts for task in report.tasks} == ATTEMPTS
    assert [one["as_it_deserves"] for one in shown.document["agents"]] == [True] * 4


def test_the_careless_change_is_refused_for_what_it_broke(shown: Shown) -> None:
    checked = shown.document["check"]
    assert checked["outcome"] == "failed"
    assert [test.rpartition(".")[2] for test in checked["fixed"]] == ["test_a_discount_is_rounded_half_up"]
    assert [test.rpartition(".")[2] for test in checked["regressions"]] == ["test_a_negative_price_is_refused"]


def test_the_branch_holds_what_passed_and_nothing_of_what_was_refused(shown: Shown) -> None:
    report = shown.report
    commits = shown.git("rev-list", f"main..{report.branch}")
    assert set(commits) == {task.commit for task in report.tasks if task.commit}
    assert len(commits) == 3
    touched = set(shown.git("log", "--all", "--format=", "--name-only"))
    assert "shop/receipt.py" in touched
    assert not any("stock" in path for path in touched)
    test = shown.git("show", f"{report.branch}:tests/test_cart.py")
    assert not any("assertTrue" in line for line in test)
    assert shown.git("log", "-1", "--format=%s", "main") == ["A cart that adds up, nearly"]
    assert shown.git("status", "--short") == []


def test_the_evidence_is_there_to_be_read(shown: Shown) -> None:
    log, verified, state, patch = (exhibit["says"] for exhibit in shown.document["evidence"])
    assert len(log.splitlines()) == 3
    assert verified.startswith("verified: ")
    assert "1 anchor holds" in verified
    assert "Status: FAILED" in state
    assert "shop/stock.py" in patch
    assert 'outcome: "failed"' in (shown.stage.place / "STATE.md").read_text()
    kept = shown.stage.repository / ".assay" / shown.report.run_id / "task-04.patch"
    assert "test_the_stock_is_there" in kept.read_text()


def test_a_ledger_that_was_edited_is_a_difference(shown: Shown) -> None:
    ledger = Path(shown.report.ledger)
    whole = ledger.read_bytes()
    at = whole.index(b"APPROVED")
    try:
        ledger.write_bytes(whole[:at] + b"REJECTED" + whole[at + 8 :])
        evidence = gather(shown.stage, shown.report, refused="task-04")
    finally:
        ledger.write_bytes(whole)
    assert list(wrongs(shown.report, evidence)) == ["the ledger does not verify"]


def test_what_was_said_and_what_was_seen_is_shown(shown: Shown) -> None:
    page = io.StringIO()
    console = Console(file=page, width=200, markup=False, highlight=False)
    evidence = gather(shown.stage, shown.report, refused="task-04")
    print_judged(console, shown.stage, shown.report, view_run(shown.report.run_id, shown.stage.home))
    print_evidence(console, shown.stage, evidence)
    text = page.getvalue()
    assert all(claim in text for claim in LIES)
    assert all(f"seen {check}: " in text for agent in AGENTS for check in agent.caught_by)
    assert text.count("said ") == sum(len(agent.caught_by) for agent in AGENTS)
    assert "task-04, the agent that keeps lying: nothing is committed, it failed 3 times" in text
    assert all(commit[:7] in text for commit in evidence.commits)


def test_the_plan_and_the_script_lie_there_to_be_run_again(shown: Shown) -> None:
    text = shown.stage.plan.read_text()
    plan, problems = read_plan(text, "PLAN.md")
    assert plan is not None
    assert (problems, lint(plan, text)) == ((), ())
    assert [task.depends_on for task in plan.tasks[:2]] == [(), ()]  # side by side
    assert shown.stage.script.read_text().startswith("# What the four scripted agents")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda place: place.write_text("a file"), "File exists"),
        (lambda place: (place.mkdir(), (place / "mine").write_text("mine")), "there is something in it already"),
    ],
)
def test_a_directory_that_is_in_use_is_left_alone(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    make(place)
    done = assay("demo", "--dir", str(place), home=tmp_path / "home")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"assay: --dir {place}: {message}")


# --- what each agent deserves ---------------------------------------------------------------------------------------


def judged(agent: Agent) -> TaskReport:
    """As it deserves."""
    failures = [
        Failure(
            attempt=number, type=FailureType.VERIFY_FAILURE, error="refused", reasons=(Reason(check=check, detail="d"),)
        )
        for number, check in enumerate(agent.caught_by, start=1)
    ]
    return TaskReport(
        id=agent.task,
        name=agent.task,
        state=TaskState.APPROVED if agent.passes else TaskState.FAILED,
        attempts=len(failures) + agent.passes,
        confidence=None,
        commit=f"commit-of-{agent.task}" if agent.passes else None,
        failures=tuple(failures),
    )


def a_report(**differently: object) -> GateReport:
    report = GateReport(
        run_id="r",
        outcome=RunOutcome.FAILED,
        reason="",
        confidence=None,
        tasks=tuple(judged(agent) for agent in AGENTS),
        commit="c",
        branch="b",
        bundle=None,
        state="s",
        ledger="l",
    )
    return report.model_copy(update=differently)


def with_task(number: int, **differently: object) -> GateReport:
    tasks = list(a_report().tasks)
    tasks[number] = tasks[number].model_copy(update=differently)
    return a_report(tasks=tuple(tasks))


EVIDENCE = Evidence(
    commits=frozenset(f"commit-of-{agent.task}" for agent in AGENTS if agent.passes),
    paths=frozenset({"shop/cart.py"}),
    exhibits=(),
    verified=True,
)
OTHER = Failure(
    attempt=1, type=FailureType.VERIFY_FAILURE, error="refused", reasons=(Reason(check="size", detail="d"),)
)


def test_a_run_that_is_as_it_must_be_has_no_wrongs() -> None:
    assert list(wrongs(a_report(), EVIDENCE)) == []


@pytest.mark.parametrize(
    ("report", "evidence", "wrong"),
    [
        (with_task(0, state=TaskState.FAILED), EVIDENCE, "task-01: FAILED, not APPROVED"),
        (with_task(0, attempts=2), EVIDENCE, "task-01: 2 attempts, not 1"),
        (with_task(1, failures=()), EVIDENCE, "task-02: attempt 1 was not caught by edited-expectation"),
        (with_task(1, failures=(OTHER,)), EVIDENCE, "task-02: attempt 1 was not caught by edited-expectation"),
        (with_task(2, commit=None), EVIDENCE, "task-03: not committed"),
        (with_task(3, state=TaskState.APPROVED), EVIDENCE, "task-04: APPROVED, not FAILED"),
        (with_task(3, commit="c"), EVIDENCE, "task-04: committed"),
        (a_report(outcome=RunOutcome.PASSED), EVIDENCE, "the run: passed, not failed"),
        (
            a_report(),
            replace(EVIDENCE, commits=EVIDENCE.commits | {"another"}),
            "b: its commits are not those of the tasks that passed",
        ),
        (a_report(), replace(EVIDENCE, paths=frozenset({"shop/stock.py"})), "b: shop/stock.py is in its history"),
        (a_report(), replace(EVIDENCE, verified=False), "the ledger does not verify"),
    ],
)
def test_every_difference_from_what_an_agent_deserves_is_named(
    report: GateReport, evidence: Evidence, wrong: str
) -> None:
    assert wrong in list(wrongs(report, evidence))
