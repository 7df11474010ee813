"""A run of `proofstone solve` from its command line to what is written, asked about, broken off and gone on with."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from proofstone.agents.roles.models.solve_messages import FinalStatus
from proofstone.solve.models import SolveReport
from tests.terminal import run_in_terminal
from tests.waiting import PATIENCE
from tests.workshop import Workshop

Entry = dict[str, Any]
"""Of a script."""

GOAL = "make the greeting polite"
DONE: Entry = {"completion": {"status": "DONE", "summary": "said"}}
SEEN: Entry = {"criterion": "it says please", "mode": "verifiable", "command": "grep -q please greeting.py"}
PERCEIVER: Entry = {"role": "perceiver", "output": {**DONE, "intent": "a polite greeting"}}
ASKING: Entry = {"role": "perceiver", "output": {**DONE, "intent": "?", "question": "Which greeting?\x1b[2J"}}
PLANNER: Entry = {
    "role": "planner",
    "output": {
        **DONE,
        "task_criteria": [SEEN],
        "subtasks": [{"intent": "write please", "sequence": 1, "tools": ["write"], "success_criteria": [SEEN]}],
    },
}
EXECUTOR: Entry = {
    "role": "executor",
    "steps": [{"tool": {"write": {"path": "greeting.py", "content": "print('please')\n"}}}],
    "output": {**DONE, "status": "completed", "output": "it says please"},
}
SLEEPING: Entry = {"role": "executor", "steps": [{"sleep": 300}]}
MERGED: Entry = {
    "role": "meta_validator",
    "output": {
        **DONE,
        "output": "print('please')",
        "summary": "it is polite",
        "verdicts": [],
        "meets_the_request": "yes",
        "why": "it says please",
    },
}
ALL = [PERCEIVER, PLANNER, EXECUTOR, MERGED]


class Stage:
    def __init__(self, folder: Path) -> None:
        self.workshop = Workshop.apart(folder)
        self.root = self.workshop.repo({"greeting.py": "print('hey')\n"})
        self.script = folder / "script.yaml"

    def cast(self, entries: list[Entry]) -> str:
        self.script.write_text(json.dumps(entries))
        return f"script:{self.script}"

    def solve(self, entries: list[Entry], *args: str, told: str = "") -> tuple[int, str, str]:
        done = self.workshop.proofstone(self.root, "solve", *args, "--backend", self.cast(entries), told=told)
        return done.returncode, done.stdout, done.stderr

    def proofstone(self, *args: str) -> tuple[int, str, str]:
        done = self.workshop.proofstone(self.root, *args)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_goal_is_pursued_told_written_and_shown_again(stage: Stage, tmp_path: Path) -> None:
    page, document, picture = (tmp_path / name for name in ("report.md", "report.JSON", "loss.svg"))
    code, stdout, stderr = stage.solve(
        ALL, "-", "-v", "--plot", "--report", str(page), "--svg", str(picture), told=GOAL
    )
    assert code == 0, stderr
    assert f"{GOAL}\nrun " in stderr and "Ω 0.0" in stderr and "→ accept" in stderr
    assert stdout.startswith("ACCEPTED  it is polite") and "the loss, round by round:" in stdout
    assert page.read_text().startswith("# Control loop\n") and picture.read_text().startswith("<svg ")
    assert (stage.root / "greeting.py").read_text() == "print('hey')\n", "the person's files are as they were"

    code, shown, stderr = stage.proofstone("solve", "--show", "last", "--json", "--report", str(document))
    report = SolveReport.model_validate_json(shown)
    assert (code, stderr) == (0, "")
    assert SolveReport.model_validate_json(document.read_text()) == report
    assert report.task.raw_input == GOAL and report.result is not None
    stage.workshop.git(stage.root, "apply", report.patch)
    assert (stage.root / "greeting.py").read_text() == "print('please')\n"

    quiet = stage.solve(ALL, GOAL, "-q", "--no-memory")
    assert quiet[2] == "" and "ACCEPTED" in quiet[1] and "memory:" not in quiet[1]


def test_other_commands_know_its_runs(stage: Stage) -> None:
    code, stdout, stderr = stage.solve(ALL, "--goal-file", str(_file(stage, f"{GOAL}\n\nplease")), "--json")
    assert code == 0, stderr
    report = json.loads(stdout)
    run_id = report["run_id"]
    assert stage.proofstone("runs")[1].endswith(f'solve  accepted  project  "{GOAL} please"\n')
    (row,) = json.loads(stage.proofstone("runs", "--json")[1])["runs"]
    assert (row["run_id"], row["command"], row["goal"]) == (run_id, "solve", f"{GOAL}\n\nplease")
    for named in ("last", run_id, run_id[-6:]):
        assert json.loads(stage.proofstone("status", named, "--json")[1]) == report
        assert json.loads(stage.proofstone("resume", named, "--json")[1]) == report
    code, _, stderr = stage.proofstone("resume", "last", "--retry", "1")
    assert code == 2 and f"{run_id} is a run of `proofstone solve`, which has no tasks" in stderr
    code, _, stderr = stage.proofstone("solve", "--resume", "last", "--answer", "yes")
    assert code == 2 and f"{run_id} has ended: accepted" in stderr


def test_what_does_not_get_there_ends_with_1(stage: Stage) -> None:
    idle = {**EXECUTOR, "steps": []}
    failure = {
        "role": "planner",
        "match": {"focus": "failure"},
        "output": {**DONE, "summary": "not there", "partial": [], "next_moves": ["do it yourself", "say more"]},
    }
    code, stdout, stderr = stage.solve([failure, PERCEIVER, PLANNER, idle, MERGED], GOAL, "--max-replans", "0")
    assert code == 1, stderr
    assert stdout.startswith(FinalStatus.ABANDONED.value.upper())
    assert "what you could do now:" in stdout and "write please: it says please [looked up, logical]" in stdout


def test_a_question_waits_where_nobody_can_be_asked_and_an_answer_goes_on(stage: Stage) -> None:
    code, stdout, stderr = stage.solve([ASKING], GOAL)
    assert code == 3, stderr
    assert "you are asked: Which greeting?\\x1b[2J" in stdout
    assert stage.proofstone("status")[1].startswith("A QUESTION IS WAITING")
    assert stage.proofstone("solve", "--resume", "last")[0] == 3, "nobody has answered"
    stage.cast(ALL)
    code, stdout, stderr = stage.proofstone("solve", "--resume", "last", "--answer", "the German one")
    assert code == 0 and "and answered: the German one" in stdout, stderr


TYPED = {"the German one\n": 0, "\n": 3}


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("typed", TYPED)
def test_at_a_terminal_it_is_asked_here_and_now(stage: Stage, typed: str) -> None:
    spec = stage.cast([{**ASKING, "match": {"step": "perceive"}}, *ALL])
    words = ("solve", GOAL, "--backend", spec)
    asked = run_in_terminal(stage.workshop, stage.root, *words, typed={"an empty line leaves the question": typed})
    code, shown = asked.exit, asked.screen
    assert code == TYPED[typed], shown
    assert "Which greeting?\\x1b[2J" in shown
    assert ("and answered: the German one" in shown) == (code == 0)


@pytest.mark.ci
def test_a_spent_budget_stops_it_and_more_of_it_goes_on(stage: Stage) -> None:
    costly = [{**one, "usage": {"input_tokens": 900, "output_tokens": 200}} for one in ALL]
    code, stdout, stderr = stage.solve(costly, GOAL, "--budget-tokens", "2000", "--json", "--quiet")
    assert code == 4, stderr
    document = json.loads(stdout)
    assert document["outcome"] == "budget_exhausted" and "2,000 tokens" in document["reason"]
    assert f"proofstone solve --resume {document['run_id']} --budget" in stderr
    assert "budget_exhausted" in stage.proofstone("runs")[1]
    assert stage.proofstone("resume", "last")[0] == 4, "no more was given"
    assert stage.proofstone("resume", "last", "--budget-tokens", "100000")[0] == 0


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_breaks_it_off_is_told_how_to_go_on(stage: Stage, sign: signal.Signals) -> None:
    spec = stage.cast([PERCEIVER, PLANNER, SLEEPING, MERGED])
    running = stage.workshop.start(stage.root, "solve", GOAL, "--backend", spec)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("round 1: 1 subtask"):
            break
    os.kill(running.pid, sign)
    stdout, stderr = running.communicate(timeout=PATIENCE)
    assert (running.returncode, stdout) == (128 + sign, ""), stderr
    assert "Traceback" not in stderr
    (told,) = [line for line in stderr.splitlines() if "resume with" in line]
    run_id = told.split()[-1]
    assert f"{run_id}  interrupted; `proofstone resume {run_id}` continues it" in stage.proofstone("status")[1]
    code, _, stderr = stage.proofstone("solve", "--show", run_id)
    assert code == 2 and "has no result and no question yet" in stderr
    stage.cast(ALL)
    code, _, stderr = stage.proofstone("solve", "--resume", run_id)
    assert code == 0 and f"run {run_id}, resumed" in stderr, stderr


def _file(stage: Stage, text: str) -> Path:
    path = stage.script.parent / "GOAL.md"
    path.write_text(text)
    return path
