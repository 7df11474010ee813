"""A blocker halts a run; a person resumes it, and what blocks it is fixed as a task and reviewed again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.stage import Stage, executor, finding, knowledge, planner, reviewer, task

FIX = "Close the leak"
LEAK = {**finding("It leaks", "blocker", "security"), "evidence": "shop/count.py:2 prints the prices"}


@pytest.mark.seed(
    "pipeline",
    "halt-fix-resume",
    "halt-shown",
    "ends-with-next-moves",
    "reviewer-material",
    "knowledge-input",
    "pushback-step-0",
)
def test_a_blocker_is_fixed_when_a_person_resumes_the_run(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    halted = stage.run(
        reviewer("security", "code", LEAK, verdict="blocker", round=1),
        planner(task("count", title=FIX), iteration=2),
        executor(body="return sum(1 for _ in prices)", task=FIX),
        executor(body="return 2", attempt=1),
        knowledge("The prices are secret."),
        request="Let customers see how many things are in shop/basket.py",
    )
    assert (halted.exit, halted.outcome, halted.report.commit) == (1, "halted", None)
    run_id = halted.report.run_id
    shown = stage.proofstone("status", run_id).stdout
    for said in (
        "seen: shop/count.py:2 prints the prices",
        "recommended: Put it right.",
        "what was accomplished:\n  A function count: done and checked, but not committed",
        f"have it fixed and reviewed again: proofstone resume {run_id}",
        "look at the work so far: git apply ",
        f"next: proofstone resume {run_id}",
    ):
        assert said in shown
    (concern,) = [note["text"] for note in stage.events(run_id, "pipeline.note") if note["kind"] == "concern"]
    assert concern == "minor: the repository does not have shop/basket.py", "and a run on its own goes on"

    done = stage.resume(run_id)
    assert (done.exit, done.outcome) == (0, "passed"), done.report.reason
    assert [review.round for review in done.report.reviews if review.scope == "code"] == [1, 1, 1, 2, 2, 2]
    assert [task_report.name for gate in done.report.gates for task_report in gate.tasks] == ["A function count", FIX]
    assert "return sum(1" in stage.git("show", f"{done.report.commit}:shop/count.py")
    assert (done.report.partial, done.report.next_moves) == ((), ())

    requests = list(stage.messages(run_id, "Dispatch"))
    reviewed = next(one for one in requests if one["occasion"]["step"] == "code-review/r1")["request"]["text"]
    for said in ("task-01 A function count: approved after 2 attempts", "attempt 1 failed: VERIFY_FAILURE", "🟢"):
        assert said in reviewed
    assert "tests/test_count.py passes: " in reviewed, "each criterion with its result"
    learnt = [one for one in requests if one["occasion"]["role"] == "knowledge"]
    assert [one["occasion"]["step"] for one in learnt] == ["knowledge", "knowledge/r2"]
    text = learnt[0]["request"]["text"]
    assert "A function count, attempt 1: VERIFY_FAILURE" in text
    assert "It leaks" in text and "shop/count.py:2 prints the prices" in text
    assert "review-gate" in text, "the decisions of the run"
    again = stage.proofstone("resume", run_id, "--json")
    assert json.loads(again.stdout)["commit"] == done.report.commit, "it is over"
