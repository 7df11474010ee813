"""A run that was killed, or waits for a person, goes on from its record: nothing is asked or done twice."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofstone.app.solve import SolveRequest, build_solve_run
from tests.solve.stage import (
    COUNTED,
    GOAL,
    RIGHT,
    WRONG,
    SolveResult,
    Stage,
    executor,
    merger,
    passes,
    perceiver,
    planner,
    script,
    subtask,
    validator,
    writes,
)

TWO = (
    subtask("look at the notes", "it says how many lines there are", sequence=1, tools=["read"]),
    subtask("write the number down", COUNTED, "it is tidy", sequence=2, tools=["write", "run"], files=["count.txt"]),
)
ENTRIES = (
    planner(*TWO),
    executor({"read": {"path": "notes.txt"}}, said="three lines", task="*-s1"),
    executor(writes("seen.txt", "yes\n"), WRONG, task="*-s2", round=1),
    executor({"run": {"command": "cat seen.txt"}}, RIGHT, task="*-s2", round=2),
    validator(passes()),
    merger(),
)
"""Two rounds, tools that write and run, a subtask that only looks."""
ASKS = (
    perceiver(question="Which notes?", step="perceive"),
    perceiver("count the notes of today", step="perceive/2"),
)
ALWAYS = {("step.before-record", 3), ("step.after-record", 7), ("agent.after-tool", 3), ("ledger.after-commit", 30)}
CASES = [
    *((f"step.{when}-record", count) for when in ("before", "after") for count in (1, 2, 3, 4, 7, 9, 12)),
    *((f"agent.{when}-turn", count) for when in ("before", "after") for count in (1, 2, 4, 9)),
    *((f"agent.{when}-tool", count) for when in ("before", "after") for count in (1, 3, 5)),
    *((f"ledger.{point}", count) for point in ("before-insert", "before-commit", "after-commit") for count in (2, 30)),
]


SLOW = 1.0


def slowly(_question: str) -> str:
    """A person who thinks about it."""
    time.sleep(SLOW)
    return "those of today"


class Unseen:
    """Nobody looks on."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_told, **_more: None


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> SolveResult:
    return Stage.set_up(tmp_path_factory.mktemp("undisturbed") / "stage").solve(*ENTRIES)


def timeless(came: SolveResult) -> dict[str, Any]:
    """A report without what depends on the clock and on the run's own name."""
    text = came.report.model_dump_json().replace(came.report.run_id, "RUN")
    report = type(came.report).model_validate_json(text)
    rounds = [(one.number, one.directive.directive, one.directive.loss.D, one.outcomes) for one in report.rounds]
    return {"rounds": rounds, "result": report.result and report.result.status, "changed": report.changed}


@pytest.mark.few(2, ci=4)
@pytest.mark.parametrize(
    ("point", "count"), [pytest.param(*one, marks=() if one in ALWAYS else pytest.mark.sweep) for one in CASES]
)
def test_a_run_that_was_killed_goes_on_to_the_same_end(
    stage: Stage, undisturbed: SolveResult, point: str, count: int
) -> None:
    killed = stage.solve(*ENTRIES, env={"PROOFSTONE_FAULT": f"{point}:{count}"})
    assert killed.exit < 0 or killed.exit > 128, killed.stderr
    if not stage.runs:
        assert point.startswith("ledger."), "killed before its first row was there"
        return
    came = stage.resume("last")
    assert timeless(came) == timeless(undisturbed)
    dispatched = stage.messages(came.report.run_id, "Output")
    assert len(dispatched) == len({str(one["dispatch"]) for one in dispatched}), "nobody answers twice"
    assert not list((stage.workshop.proofstone_home / "work").iterdir()), "no work tree is left"


def test_a_question_that_nobody_here_answers_waits_for_an_answer(stage: Stage) -> None:
    waiting = stage.solve(*ASKS)
    assert (waiting.exit, waiting.report.result, waiting.report.question) == (3, None, "Which notes?")
    assert waiting.report.next_step.startswith(f"proofstone solve --resume {waiting.report.run_id}")
    still = stage.resume("last")
    assert (still.exit, still.report.question) == (3, "Which notes?")
    came = stage.resume("last", "--answer", "those of today")
    assert came.status == "accepted"
    assert came.report.task.clarification == "those of today"
    assert came.report.task.raw_input == waiting.report.task.raw_input
    assert "those of today" in stage.asked(came.report.run_id, "perceive/2/perceiver")


@pytest.mark.ci
def test_an_answer_can_be_given_beforehand(stage: Stage) -> None:
    came = stage.solve(*ASKS, args=("--answer", "those of today"))
    assert (came.status, came.report.task.clarification) == ("accepted", "those of today")


@pytest.mark.ci
def test_a_run_that_has_ended_is_shown_and_nothing_is_done_again(stage: Stage) -> None:
    came = stage.solve()
    before = stage.messages(came.report.run_id, "Dispatch")
    again = stage.resume(came.report.run_id)
    assert (again.exit, again.report) == (0, came.report)
    assert stage.messages(came.report.run_id, "Dispatch") == before


def test_a_budget_that_is_spent_stops_it_and_more_lets_it_go_on(stage: Stage) -> None:
    stopped = stage.solve(args=("--budget", "requests=3"))
    assert stopped.exit == 4, stopped.stderr
    came = stage.resume("last", "--budget", "requests=100")
    assert came.status == "accepted"


@pytest.mark.ci
def test_the_time_that_a_killed_process_took_counts(stage: Stage) -> None:
    """Also within a round; else a run that is killed often enough would never run out of time."""
    slow = executor({"run": {"command": "sleep 1.5"}}, RIGHT)
    killed = stage.solve(slow, env={"PROOFSTONE_FAULT": "step.after-record:4"})
    assert killed.exit < 0 or killed.exit > 128, killed.stderr
    came = stage.resume("last")
    assert came.status == "accepted"
    assert came.report.rounds[0].elapsed_ms >= 1500


def test_how_long_the_person_thinks_does_not_count(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stage.workshop.environment.items():
        monkeypatch.setenv(name, value)
    began = time.monotonic()
    request = SolveRequest(backends=[stage.cast(script(*ASKS))])
    with build_solve_run(stage.root, GOAL, request, Unseen(), slowly, home=stage.workshop.proofstone_home) as run:
        report = run.run()
    assert report.task.clarification == "those of today"
    assert report.elapsed_ms <= 1000 * (time.monotonic() - began - SLOW)


def test_a_run_whose_files_are_lost_says_so(stage: Stage) -> None:
    stage.solve(env={"PROOFSTONE_FAULT": "step.after-record:4"})
    shutil.rmtree(stage.workshop.proofstone_home / "repos")
    came = stage.resume("last")
    assert came.exit == 2
    assert "are no longer in" in came.stderr
    assert "start a new run with `proofstone solve`" in came.stderr


@pytest.mark.ci
def test_files_of_earlier_steps_may_be_gone_if_those_of_the_last_are_there(stage: Stage) -> None:
    """Only what it goes on from is held."""
    killed = stage.solve(executor(WRONG, attempt=1), executor(RIGHT), env={"PROOFSTONE_FAULT": "step.after-record:6"})
    assert killed.exit < 0 or killed.exit > 128, killed.stderr
    (store,) = (stage.workshop.proofstone_home / "repos").glob("*/git")
    stage.workshop.git(store, "prune", "--expire=now")
    assert stage.resume("last").status == "accepted"


@pytest.mark.ci
def test_another_script_that_asks_something_else_is_not_mixed_with_the_record(stage: Stage) -> None:
    """What is on record counts, whatever the script says now."""
    stage.solve(*ENTRIES, env={"PROOFSTONE_FAULT": "step.after-record:4"})
    stage.cast(script(planner(subtask("something else", COUNTED))))
    came = stage.resume("last")
    assert [one.intent for one in came.report.rounds[0].subtasks] == [one["intent"] for one in TWO]
