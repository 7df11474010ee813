"""`proofstone record` of a control loop: the script comes to the same rounds again."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML

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
    subtask,
    validator,
)

BY_HAND = subtask("write the number down", COUNTED, "there is nothing else in it", tools=["write"], files=["count.txt"])
BY_PROGRAM = subtask("count the lines by a command", COUNTED, tools=["run"], files=["count.txt"])


def recorded(stage: Stage, run_id: str) -> Path:
    into = stage.workshop.folder / "again.yaml"
    done = stage.proofstone("record", run_id, "-o", str(into))
    assert done.returncode == 0, done.stderr
    return into


def again(stage: Stage, script: Path, *args: str) -> SolveResult:
    done = stage.proofstone("solve", GOAL, "--backend", f"script:{script}", "--json", "--quiet", *args)
    return SolveResult(done.returncode, done.stdout, done.stderr)


def rounds(came: SolveResult) -> list[tuple[str, float, list[tuple[str, str, int]]]]:
    """Of each: what was decided, how far it was, and its subtasks with how often each was attempted."""
    return [
        (
            one.directive.directive.value,
            one.directive.loss.D,
            [
                (subtask.intent, outcome.status.value, len(outcome.gap_trajectory))
                for subtask, outcome in zip(one.subtasks, one.outcomes, strict=True)
            ],
        )
        for one in came.report.rounds
    ]


def test_a_recorded_run_of_two_rounds_comes_to_the_same_rounds_again(tmp_path: Path) -> None:
    """The first plan of the second round skips a number and is not taken; the next is done at the second attempt."""
    stage = Stage.set_up(tmp_path / "stage")
    skipping = subtask("do something", COUNTED, tools=["write"], files=["count.txt"], sequence=2)
    came = stage.solve(
        planner(BY_HAND, round=1),
        executor(WRONG, round=1),
        planner(skipping, round=2, attempt=1),
        planner(BY_PROGRAM, round=2, attempt=2),
        executor({"run": {"command": "echo 5 > count.txt"}}, round=2, attempt=1),
        executor({"run": {"command": "echo 3 > count.txt"}}, round=2, attempt=2),
        validator(passes()),
        args=("--no-memory",),
    )
    assert (came.status, len(came.report.rounds), len(came.report.rejected)) == ("accepted", 2, 1), came.stderr
    replayed = again(stage, recorded(stage, came.report.run_id), "--no-memory")
    assert replayed.status == "accepted", replayed.stderr
    assert rounds(replayed) == rounds(came)
    assert replayed.report.rejected == came.report.rejected


def test_what_two_dispatches_have_in_common_is_told_apart_by_their_step(tmp_path: Path) -> None:
    """A perceiver that has asked is asked again, in no round and about no task."""
    stage = Stage.set_up(tmp_path / "stage")
    answer = ("--no-memory", "--answer", "those in notes.txt")
    came = stage.solve(
        perceiver("count something", question="Which notes?", step="perceive"),
        perceiver("count the notes in notes.txt", step="perceive/2"),
        executor(RIGHT),
        merger(),
        args=answer,
    )
    assert came.status == "accepted", came.stderr
    script = recorded(stage, came.report.run_id)
    entries = YAML(typ="safe").load(script.read_text(encoding="utf-8"))
    steps = {entry["role"]: entry["match"].get("step") for entry in entries if entry["role"] != "perceiver"}
    assert set(steps.values()) == {None}, "nobody else needs it"
    replayed = again(stage, script, *answer)
    assert replayed.report.task.intent == came.report.task.intent == "count the notes in notes.txt"
