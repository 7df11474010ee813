"""The control loop from end to end: the command, the engine, the sandbox, the ledger; only the agents are scripted."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofstone.agents.roles.models.solve_messages import FailureClass
from tests.solve.stage import (
    COUNT,
    COUNTED,
    RIGHT,
    WRONG,
    Stage,
    executor,
    fails,
    handing_over,
    is_there,
    merger,
    passes,
    planner,
    runs,
    subtask,
    validator,
    writes,
)
from tests.staging import babbling, failing

MISSING = "no-such-program-here count notes.txt > count.txt"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.set_up(tmp_path / "stage")


def test_what_is_right_at_once_is_accepted(stage: Stage) -> None:
    came = stage.solve()
    assert (came.exit, came.status, came.directives, came.distances) == (0, "accepted", ["accept"], [0])
    assert came.report.result is not None
    assert came.report.result.output == "There are 3."
    assert [(one.path, one.kind) for one in came.report.changed] == [("count.txt", "added")]
    assert not (stage.root / "count.txt").exists(), "the person's own files stay as they are"
    assert stage.workshop.git(stage.root, "status", "--porcelain") == ""
    stage.workshop.git(stage.root, "apply", came.report.patch)
    assert (stage.root / "count.txt").read_text() == "3\n"


def test_contracts_pass_along_the_routes_of_the_loop(stage: Stage) -> None:
    came = stage.solve(validator(passes()), planner(subtask("count them", COUNTED, "it is a number")))
    assert stage.said(came.report.run_id) == [
        ("perceiver", "planner", "TaskSpec"),
        ("planner", "memory", "MemoryQuery"),
        ("memory", "planner", "MemoryEntries"),
        ("planner", "executor", "SubTask"),
        ("planner", "meta_validator", "DispatchManifest"),
        ("executor", "agent_validator", "ExecutionResult"),
        ("agent_validator", "meta_validator", "SubTaskOutcome"),
        ("meta_validator", "controller", "OutcomeSummary"),
        ("controller", "person", "FinalResult"),
        ("meta_validator", "memory", "MemoryEntry"),
        ("auditor", "person", "AuditReport"),
    ]


@pytest.mark.ci
def test_a_verifiable_criterion_is_judged_by_nobody(stage: Stage) -> None:
    came = stage.solve(executor(WRONG), validator(passes()), merger())
    assert came.status in ("abandoned", "partial")
    assert not [id for id in stage.dispatches(came.report.run_id) if "agent_validator" in id]
    first = came.report.rounds[0].outcomes[0]
    assert [(one.mode, one.verdict, one.failure_class) for one in first.criteria_verdicts] == [
        ("verifiable", "fail", FailureClass.LOGICAL)
    ]


def test_a_correction_within_a_round_leads_to_the_right_result(stage: Stage) -> None:
    came = stage.solve(executor(WRONG, attempt=1), executor(RIGHT, attempt=2))
    assert (came.status, came.directives) == ("accepted", ["accept"])
    assert ("agent_validator", "executor", "CorrectionSignal") in stage.said(came.report.run_id)
    asked = stage.asked(came.report.run_id, "r1-s1/a2/executor")
    assert "grep -qx 3 count.txt" in asked


@pytest.mark.ci
def test_two_corrections_are_all_that_there_are(stage: Stage) -> None:
    came = stage.solve(executor(WRONG), args=("--max-replans", "0"))
    assert [one.attempt for one in came.report.rounds[0].outcomes[0].gap_trajectory] == [1, 2, 3]


@pytest.mark.ci
def test_what_is_in_the_way_changes_the_path_and_then_it_is_accepted(stage: Stage) -> None:
    """By the table of the design, for which the first round is a plateau."""
    blocked = subtask("count them with a program", runs(MISSING), files=["gone.txt"])
    other = subtask("count the lines by hand", COUNTED, files=["count.txt"])
    came = stage.solve(
        planner(blocked, round=1),
        executor({"read": {"path": "notes.txt"}}, {"read": {"path": "gone.txt"}}, round=1),
        planner(blocked, round=2, attempt=1),
        planner(other, round=2),
        args=("--policy", "gradient"),
    )
    assert (came.status, came.directives) == ("accepted", ["change_path", "accept"])
    first = came.report.rounds[0].directive
    assert (first.failure_class, first.loss.P, first.blocked_tools) == (FailureClass.ENVIRONMENTAL, 0, ())
    assert first.blocked_targets == ("gone.txt",), "what was in the way, and nothing else that was looked at"
    assert came.report.rejected == ("round 2: subtask 1 uses gone.txt: the controller blocked it",)


@pytest.mark.seed("control-loop", "blocked-tools")
def test_a_plateau_breaks_the_symmetry_and_the_old_tool_is_refused(stage: Stage) -> None:
    """The planner insists on its tool, is told that it is blocked, and takes another."""
    with_write = subtask("write the number down", COUNTED, tools=["write"], files=["count.txt"])
    with_run = subtask("count the lines by a command", COUNTED, tools=["run"], files=["count.txt"])
    came = stage.solve(
        planner(with_write, round=1),
        executor(WRONG, round=1),
        planner(with_write, round=2, attempt=1),
        planner(with_run, round=2, attempt=2),
        executor({"run": {"command": "wc -l < notes.txt | tr -d ' ' > count.txt"}}, round=2),
        args=("--policy", "gradient"),
    )
    assert (came.status, came.directives) == ("accepted", ["break_symmetry", "accept"])
    assert came.report.rounds[0].directive.blocked_tools == ("write",)
    (rejected,) = came.report.rejected
    assert "subtask 1 uses write: the controller blocked it" in rejected
    assert "the controller blocked it" in stage.asked(came.report.run_id, "r2/p2/planner")


@pytest.mark.ci
def test_an_executor_does_not_get_a_blocked_tool(stage: Stage) -> None:
    came = stage.solve(
        planner(subtask("write the number down", COUNTED, tools=["write"]), round=1),
        executor(WRONG, round=1),
        planner(subtask("count the lines by a command", COUNTED, tools=["run", "edit"]), round=2),
        executor(RIGHT, {"run": {"command": "echo 3 > count.txt"}}, round=2),
        args=("--policy", "gradient"),
    )
    results = stage.dispatches(came.report.run_id)["r2-s1/a1/executor"].results
    assert [(one.name, one.refused) for one in results] == [("write", "unlisted"), ("run", None)]
    assert came.status == "accepted"


@pytest.mark.ci
def test_after_symmetry_is_broken_the_same_plan_again_is_not_taken(stage: Stage) -> None:
    """It names none of the tools that were used, and so none that is blocked."""
    free = subtask("count the lines of the notes", COUNTED, files=["count.txt"], tools=["write"])
    came = stage.solve(
        planner(free), executor({"read": {"path": "notes.txt"}}), args=("--policy", "gradient", "--no-memory")
    )
    assert came.directives[:1] == ["break_symmetry"]
    assert any("almost an earlier one" in one for one in came.report.rejected)
    assert came.status == "abandoned"


@pytest.mark.ci
def test_what_gets_worse_changes_the_approach(stage: Stage) -> None:
    """Half of it was there; then nothing, and the approach is to blame."""
    both = (COUNTED, is_there("done.txt"))
    half = subtask("write the files", *both, tools=["write"])
    worse = subtask("make both files by a command", *both, tools=["run"])
    other = subtask("write the two files, each by itself", *both, tools=["write"])
    came = stage.solve(
        planner(half, round=1),
        executor(writes("done.txt", ""), round=1),
        planner(worse, round=2),
        executor({"run": {"command": "rm -f done.txt"}}, round=2),
        planner(other, round=3),
        executor(RIGHT, writes("done.txt", ""), round=3),
    )
    assert (came.status, came.directives) == ("accepted", ["refine", "change_approach", "accept"])
    assert came.distances == [0.5, 1.0, 0.0]
    assert came.report.rounds[1].directive.blocked_tools == ("run",)


@pytest.mark.seed("control-loop", "graceful-failure")
def test_abandoned_it_says_what_was_done_and_what_to_do_next(stage: Stage) -> None:
    first = subtask("look at the notes", "it says how many lines there are", sequence=1, tools=["read"])
    second = subtask("write the number down", COUNTED, sequence=2, tools=["write"])
    came = stage.solve(
        handing_over("the notes have three lines"),
        planner(first, second),
        executor(said="three lines", task="*-s1"),
        executor(WRONG, task="*-s2"),
        args=("--max-replans", "1"),
    )
    assert (came.exit, came.status, came.directives) == (1, "partial", ["refine", "abandon"])
    assert came.report.result is not None
    assert came.report.result.partial == ("the notes have three lines",)
    assert came.report.result.next_moves == ("count them by hand", "ask again")
    assert came.report.result.loss.D > 0


@pytest.mark.ci
@pytest.mark.seed("control-loop", "sequence")
def test_nothing_of_a_later_number_is_begun_after_a_failure(stage: Stage) -> None:
    first = subtask("write the number down", COUNTED, sequence=1, tools=["write"])
    second = subtask("say it aloud", "it was said", sequence=2, tools=["read"])
    came = stage.solve(planner(first, second), executor(WRONG), args=("--max-replans", "0"))
    assert not [id for id in stage.dispatches(came.report.run_id) if id.startswith("r1-s2")]


@pytest.mark.ci
def test_a_rejected_merge_is_far_from_the_goal(stage: Stage) -> None:
    came = stage.solve(merger(meets="ambiguous", round=1), merger(round=2))
    assert (came.status, came.directives) == ("accepted", ["refine", "accept"])
    assert came.distances[0] > 0


@pytest.mark.ci
def test_a_merged_result_that_the_engine_sees_failing_is_shown_to_nobody(stage: Stage) -> None:
    came = stage.solve(planner(COUNT, criteria=[is_there("nowhere.txt")]), args=("--max-replans", "0"))
    assert came.distances[0] > 0
    assert not [id for id in stage.dispatches(came.report.run_id) if "meta_validator" in id]


@pytest.mark.few(2, ci=10)
@pytest.mark.parametrize(
    "broken",
    [
        failing("perceiver"),
        babbling("perceiver"),
        failing("planner", round=1),
        babbling("planner", round=1),
        failing("executor", round=1),
        babbling("executor", round=1),
        failing("agent_validator", round=1),
        babbling("agent_validator", round=1),
        failing("meta_validator", round=1),
        babbling("meta_validator", round=1),
    ],
    ids=lambda one: f"{one['role']}-{'crash' if 'steps' in one else 'babble'}",
)
def test_whoever_breaks_down_or_babbles_does_not_hang_the_run(stage: Stage, broken: dict[str, object]) -> None:
    judged = subtask("count them", COUNTED, "the number is right", files=["count.txt"])
    came = stage.solve(broken, planner(judged))
    assert came.status == "accepted"
    if broken["role"] != "perceiver":
        assert came.directives == ["refine", "accept"], "nothing that failed is near"
        assert came.report.rounds[0].directive.failure_class is FailureClass.ENVIRONMENTAL


@pytest.mark.ci
@pytest.mark.seed("control-loop", "graceful-failure")
def test_a_planner_that_fails_at_the_end_too_leaves_a_summary_made_by_code(stage: Stage) -> None:
    came = stage.solve(failing("planner", focus="failure"), executor(WRONG), args=("--max-replans", "0"))
    assert came.report.result is not None
    assert len(came.report.result.next_moves) in (2, 3)
    assert came.report.result.summary.startswith("the budget is spent")


@pytest.mark.ci
@pytest.mark.seed("control-loop", "ids")
def test_ids_that_a_planner_invents_count_for_nothing(stage: Stage) -> None:
    came = stage.solve(planner({**COUNT, "subtask_id": "mine-1", "id": "mine-1"}, round=1))
    run_id = came.report.run_id
    assert [one.subtask_id for one in came.report.rounds[0].subtasks] == [f"{run_id}-r1-s1"]
    assert [str(one["subtask_id"]) for one in stage.messages(run_id, "SubTask")] == [f"{run_id}-r1-s1"]


def test_subtasks_that_only_look_run_beside_each_other(stage: Stage) -> None:
    looking = [subtask(f"look at it, {n}", "it says what is there", tools=["read"]) for n in range(3)]
    came = stage.solve(planner(*looking, criteria=["all was looked at"]), merger(passes()), executor(said="3 lines"))
    assert came.status == "accepted"
    assert len(came.report.rounds[0].outcomes) == 3
    assert came.report.changed == ()
    assert came.report.patch == ""


def test_what_one_executor_leaves_the_next_one_finds(stage: Stage) -> None:
    first = subtask("write a", is_there("a.txt"), sequence=1)
    second = subtask("copy a to count", COUNTED, sequence=2)
    came = stage.solve(
        planner(first, second),
        executor(writes("a.txt", "3\n"), task="*-s1"),
        executor({"run": {"command": "cp a.txt count.txt"}}, task="*-s2"),
    )
    assert came.status == "accepted"
    assert [one.path for one in came.report.changed] == ["a.txt", "count.txt"]


def test_it_begins_with_what_is_not_committed_yet(stage: Stage) -> None:
    (stage.root / "notes.txt").write_text("only one\n")
    (stage.root / "new.txt").write_text("new\n")
    seen = subtask("look", runs("grep -qx 'only one' notes.txt && test -f new.txt"))
    came = stage.solve(planner(seen, criteria=[is_there("new.txt")]), executor())
    assert came.status == "accepted"
    assert came.report.changed == ()


def test_what_a_criterion_writes_is_thrown_away(stage: Stage) -> None:
    came = stage.solve(planner(subtask("do it", runs("touch left.txt")), criteria=[COUNTED]))
    assert came.status == "accepted"
    assert [one.path for one in came.report.changed] == ["count.txt"]


def test_what_was_learnt_directs_the_next_task(stage: Stage) -> None:
    """A tool that has failed for something like this is told, and after a second run blocked from the first plan on."""
    with_write = subtask("write the number down", COUNTED, tools=["write"], files=["count.txt"])
    for _ in range(2):
        failed = stage.solve(planner(with_write), executor(WRONG), args=("--max-replans", "1"))
        assert failed.report.remembered > 1
        assert failed.report.rejected == (), "one run that failed blocks nothing"
    with_run = subtask("count the lines by a command", COUNTED, tools=["run"])
    again = stage.solve(
        planner(with_write, attempt=1),
        planner(with_run, attempt=2),
        executor({"run": {"command": "echo 3 > count.txt"}}),
    )
    assert again.status == "accepted"
    assert any("uses write: memory forbids it" in one for one in again.report.rejected)
    forgetful = stage.solve(planner(with_write), args=("--no-memory",))
    assert (forgetful.status, forgetful.report.rejected, forgetful.report.remembered) == ("accepted", (), 0)


@pytest.mark.ci
def test_fails_are_never_near(stage: Stage) -> None:
    came = stage.solve(
        planner(subtask("say it", "it is polite", tools=["read"]), criteria=["it is polite and short"]),
        executor(said="no"),
        validator(fails()),
        args=("--max-replans", "2"),
    )
    assert came.status == "abandoned"
    assert all(one > 0 for one in came.distances)
