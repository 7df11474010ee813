"""`runs`, `status`, `answer`, `cancel` and `resume` take a run of any kind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.needs import needs
from tests.pipeline import stage as pipeline_stage
from tests.solve import stage as solve_stage
from tests.staging import Staged
from tests.waiting import PATIENCE

PLAN = """\
# Notes

<task type="auto">
  <name>Task 1: Write a note</name>
  <files>note.txt</files>
  <action>Write a note to note.txt.</action>
  <verify>test -s note.txt</verify>
  <done>There is a note</done>
</task>
"""


@pytest.fixture
def stage(tmp_path: Path) -> solve_stage.Stage:
    return solve_stage.Stage.set_up(tmp_path)


def succeed(stage: Staged, *args: str) -> str:
    done = stage.proofstone(*args)
    assert done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def refuse(stage: Staged, *args: str) -> str:
    done = stage.proofstone(*args)
    assert done.returncode == 2, f"{args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stderr


@needs("git", "bwrap")
def test_a_check_is_found_like_any_run(stage: solve_stage.Stage) -> None:
    (stage.root / "notes.txt").write_text("one\ntwo\nthree\nfour\n")
    report = json.loads(stage.proofstone("check", "--verify", "grep -q four notes.txt", "--json").stdout)
    (run,) = json.loads(succeed(stage, "runs", "--json"))["runs"]
    assert (run["run_id"], run["command"], run["state"]) == (report["run_id"], "check", report["outcome"])
    assert run["repository"] == str(stage.root)
    assert json.loads(succeed(stage, "status", "--json")) == report
    assert "has ended already" in refuse(stage, "cancel", run["run_id"])
    assert "there is no run that can be continued yet" in refuse(stage, "resume", "last")


@needs("git", "bwrap")
def test_a_check_that_is_under_way_is_shown_as_running_and_can_be_stopped(stage: solve_stage.Stage) -> None:
    (stage.root / "notes.txt").write_text("one\n")
    program = str(Path(sys.executable).parent / "proofstone")
    command = [program, "check", "--quiet", "--verify", "sleep 3000; grep -q one notes.txt"]
    with subprocess.Popen(
        command, cwd=stage.root, env=stage.workshop.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        while not (runs := json.loads(stage.proofstone("runs", "--json").stdout).get("runs")):
            assert running.poll() is None  # the ledger may not be there yet, or not be complete
            time.sleep(0.1)
        assert runs[0]["state"] == "running"
        assert "stopped and cancelled" in succeed(stage, "cancel", runs[0]["run_id"])
        running.communicate(timeout=PATIENCE)  # long before the command itself would end
    assert json.loads(succeed(stage, "runs", "--json"))["runs"][0]["state"] == "cancelled"
    assert list((stage.workshop.proofstone_home / "runs").glob("*.lock")) == []


@needs("git", "bwrap")
def test_the_question_of_a_goal_is_answered_and_the_run_resumed(stage: solve_stage.Stage) -> None:
    asks = solve_stage.perceiver(question="Which notes?", step="perceive")
    first = stage.solve(asks)
    assert first.report.question == "Which notes?"
    (question,) = json.loads(succeed(stage, "answer", "last", "--json"))["questions"]
    assert (question["question"], question["text"]) == ("goal", "Which notes?")
    succeed(stage, "answer", "last", "all of them")
    assert "asks nothing" in refuse(stage, "answer", "last", "all of them")
    done = stage.proofstone("resume", "last", "--json", "--quiet")
    assert json.loads(done.stdout)["result"]["status"] == "accepted", done.stderr
    assert "has ended already: passed" in refuse(stage, "cancel", "last")


@needs("git", "bwrap")
def test_a_cancelled_run_asks_nothing_and_says_nowhere_how_to_continue(stage: solve_stage.Stage) -> None:
    stage.solve(solve_stage.perceiver(question="Which notes?", step="perceive"))
    succeed(stage, "cancel", "last", "--reason", "nobody needs the number")
    assert "asks nothing" in succeed(stage, "answer", "last")
    assert "asks nothing" in refuse(stage, "answer", "last", "all of them")
    shown = succeed(stage, "status", "last")
    assert "nobody needs the number" in shown and "Which notes?" not in shown and "resume" not in shown
    assert json.loads(succeed(stage, "status", "last", "--json"))["state"] == "cancelled"


@needs("git", "bwrap")
def test_a_task_of_a_person_is_answered_and_cancelled(stage: solve_stage.Stage) -> None:
    plan = stage.workshop.folder / "PLAN.md"
    plan.write_text(PLAN)
    assert stage.proofstone("gate", str(plan), "--executor", "human", "--no-wait", "--quiet").returncode == 3
    assert "answers none of the open questions" in refuse(stage, "answer", "last", "task-09=done")
    assert "answer with done" in refuse(stage, "answer", "last", "perhaps")
    assert "task-01: done" in succeed(stage, "answer", "last", "task-01=done")
    succeed(stage, "cancel", "last", "--reason", "no notes are needed")
    assert "was cancelled by" in refuse(stage, "resume", "last")
    assert "was cancelled by" in refuse(stage, "done", "last", "task-01")
    assert "asks nothing" in refuse(stage, "answer", "last", "done")
    shown = succeed(stage, "status")
    assert "cancelled" in shown and "no notes are needed" in shown and "resume with" not in shown
    (run,) = json.loads(succeed(stage, "runs", "--kind", "gate", "--here", "--json"))["runs"]
    assert run["state"] == "cancelled"


@needs("git", "bwrap")
def test_a_run_that_is_under_way_is_stopped(stage: solve_stage.Stage) -> None:
    plan = stage.workshop.folder / "PLAN.md"
    plan.write_text(PLAN)
    program = str(Path(sys.executable).parent / "proofstone")
    command = [program, "gate", str(plan), "--executor", "cmd:sleep 300", "--quiet"]
    with subprocess.Popen(
        command, cwd=stage.root, env=stage.workshop.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        while not stage.workshop.proofstone_home.joinpath("ledger").is_dir() or not _is_executing(stage):
            assert running.poll() is None
            time.sleep(0.1)
        assert "stopped and cancelled" in succeed(stage, "cancel", "last")
        said = running.communicate()[0].decode()
    assert running.returncode == 143, said
    assert "was cancelled by" in refuse(stage, "resume", "last")


def _is_executing(stage: Staged) -> bool:
    done = stage.proofstone("status", "--json")
    return done.returncode == 0 and json.loads(done.stdout)["tasks"][0]["record"]["state"] == "EXECUTING"


@needs("git", "bwrap")
def test_an_approval_of_the_pipeline_is_answered(tmp_path: Path) -> None:
    stage = pipeline_stage.Stage.set_up(tmp_path)
    backend = stage.cast(pipeline_stage.TEAM)
    done = stage.proofstone("run", pipeline_stage.REQUEST, "--backend", backend, "--mode", "interactive", "--quiet")
    assert done.returncode == 3, done.stderr
    (question,) = json.loads(succeed(stage, "answer", "last", "--json"))["questions"]
    assert question["question"].startswith("gate-")
    assert "answer with proceed" in refuse(stage, "answer", "last", f"{question['question']}=perhaps")
    assert "needs a note" in refuse(stage, "answer", "last", "expand")
    succeed(stage, "answer", "last", "abort")
    assert stage.proofstone("resume", "last", "--quiet").returncode == 1
    (run,) = json.loads(succeed(stage, "runs", "--json"))["runs"]
    assert (run["command"], run["state"]) == ("run", "halted")


def test_what_is_not_there_is_named(stage: solve_stage.Stage) -> None:
    assert "there is no run that can be continued yet" in refuse(stage, "resume", "last")
    assert "--kind nothing: no such kind of run" in refuse(stage, "runs", "--kind", "nothing")
    assert "no runs yet" in succeed(stage, "runs")
