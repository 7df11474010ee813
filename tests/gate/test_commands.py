"""The commands around a run, with real runs: what they print, what they refuse, and how they exit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.stage import BASKET, CHECKPOINT, ONE_TASK, Stage


@pytest.fixture
def waiting(tmp_path: Path) -> Stage:
    """A run that waits at a checkpoint."""
    stage = Stage.set_up(tmp_path, CHECKPOINT)
    done = stage.proofstone("gate", "PLAN.md", "--executor", "human", "-q")
    assert (done.returncode, done.stderr) == (3, "")
    return stage


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A run whose one task failed three times. Only for words that change nothing."""
    stage = Stage.set_up(tmp_path_factory.mktemp("failed"), ONE_TASK)
    done = stage.proofstone("gate", "PLAN.md", "--executor", "cmd:echo no >&2; exit 3")
    assert done.returncode == 1, done.stderr
    return stage


def test_a_checkpoint_is_confirmed_and_the_run_goes_on(waiting: Stage) -> None:
    status = waiting.document("status")
    assert (status["state"], status["outcome"]) == ("needs_human", "needs_human")
    [asked] = status["asked"]
    assert asked["task"] == "task-01"
    assert asked["answers"] == [f'proofstone done {status["run_id"]} task-01 --note "…"']
    assert "Which colour?" in waiting.proofstone("status").stdout

    said = waiting.document("done", "last", "colour", "--note", "the blue one: ✓")
    assert (said["exit"], said["task"], said["word"]) == (0, "task-01", "done")
    assert "proofstone resume" in said["follows"]

    report = waiting.document("resume", "last")
    assert (report["exit"], report["outcome"]) == (0, "passed")
    assert "- a person's note: the blue one: ✓\n" in (waiting.root / "SUMMARY.md").read_text("utf-8")
    assert waiting.git("status", "--short") == ""


def test_runs_are_listed(waiting: Stage) -> None:
    [run] = waiting.document("runs")["runs"]
    assert (run["state"], run["title"], run["tasks"], run["passed"]) == ("needs_human", "A shop", 1, 0)
    assert run["run_id"] in waiting.proofstone("runs").stdout


def test_a_script_is_looked_for_where_one_stands_and_not_beside_the_plan(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, CHECKPOINT)
    (stage.root.parent / "PLAN.md").write_text(CHECKPOINT)
    (stage.root.parent / "steps.yaml").write_text("- role: executor\n")
    beside = stage.proofstone("gate", "../PLAN.md", "--executor", "script:steps.yaml")
    assert (beside.returncode, "the script cannot be read" in beside.stderr) == (2, True)
    assert stage.proofstone("gate", "../PLAN.md", "--executor", "script:../steps.yaml").returncode == 3


def test_where_there_is_no_run_it_says_so(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, CHECKPOINT)
    assert stage.document("runs")["runs"] == []
    done = stage.proofstone("status")
    assert done.returncode == 2
    assert "proofstone gate PLAN.md" in done.stderr


@pytest.mark.ci
def test_the_report_of_a_failed_run_names_reason_and_way_on(failed: Stage) -> None:
    status = failed.proofstone("status").stdout
    assert "EXECUTION_FAILURE" in status
    assert "--retry task-01" in status
    tasks = failed.document("status")["tasks"]
    assert (tasks[0]["record"]["state"], tasks[0]["record"]["attempt"]) == ("FAILED", 3)
    assert 'status: "FAILED"' in failed.state


SKIP = ("skip", "last", "task-01", "--category")
REASON = "the payment sandbox is down"


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        ((*SKIP, "boredom", "--reason", REASON), "--category boredom: no such category", "verify-unavailable"),
        (
            (*SKIP, "time-pressure", "--reason", "looks good to me"),
            "say what is due when, and who verifies the work later",
            "for instance",
        ),
        (
            (*SKIP, "time-pressure", "--reason", "the tests are too slow"),
            "say what is due when",
            "",
        ),
        ((*SKIP, "time-pressure", "--reason", "because"), "too short", ""),
        (("skip", "last", "task-01"), "Missing option", "proofstone skip --help"),
        (("force", "last", "task-01", "--reason", REASON), "confirm it with the word OVERRIDE", "--confirm OVERRIDE"),
        (
            ("force", "last", "task-01", "--reason", REASON, "--confirm", "override"),
            "confirm it with the word OVERRIDE",
            "--confirm OVERRIDE",
        ),
        (("approve", "last", "task-01", "rejected"), "rejected needs a reason", "--reason"),
        (("approve", "last", "task-01", "approved"), "it is not waiting for a review", ""),
        (("approve", "last", "task-01", "maybe"), "maybe", ""),
        (("done", "last", "task-01"), "it is not waiting for a person", "proofstone status"),
        (("done", "last", "task-09"), "no task", "task-01"),
        (("done", "nonsense", "task-01"), "no run", "proofstone runs"),
        (("resume", "last", "--note", "try harder"), "--note needs --retry", "--retry task-03"),
        (("resume", "last", "--retry", "zzz"), "no task", "task-01"),
        (("resume", "last", "--budget-minutes", "0"), "must be more than 0", "90"),
        (("resume", "last", "--budget-minutes", "nan"), "must be more than 0", "90"),
        (("resume", "last", "--mode", "interactive"), "needs a terminal", "proofstone status"),
        (("gate", "PLAN.md", "--mode", "interactive"), "needs a terminal", "proofstone status"),
        (("gate", "PLAN.md", "--budget-minutes", "-1"), "must be more than 0", "90"),
        (("gate", "PLAN.md", "--hooks", "perhaps"), "perhaps", ""),
        (("gate", "PLAN.md", "--jobs", "0"), "--jobs", ""),
        (("gate", "NOPLAN.md", "--executor", "human"), "NOPLAN.md", ""),
        (("gate", "PLAN.md"), "no agent is configured to do the work", "--executor"),
    ],
)
def test_what_cannot_be_meant_exits_2_and_says_what_would_be_right(
    failed: Stage, args: tuple[str, ...], message: str, hint: str
) -> None:
    before = failed.row_count
    done = failed.proofstone(*args)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert hint in done.stderr
    assert failed.row_count == before


@pytest.mark.parametrize(
    "args",
    [
        ("done", "last", "1"),
        ("approve", "last", "1", "approved"),
        (*SKIP, "time-pressure", "--reason", REASON),
        ("force", "last", "1", "--confirm", "OVERRIDE", "--reason", REASON),
        ("resume", "last", "--retry", "1"),
    ],
)
def test_a_persons_words_are_refused_to_executors(failed: Stage, args: tuple[str, ...]) -> None:
    done = failed.proofstone(*args, env={"PROOFSTONE_TASK": "task.json"})
    assert done.returncode == 2
    assert "only a person may do this" in done.stderr


@pytest.mark.seed("gate", "skip")
def test_a_failed_task_is_tried_again_then_skipped_then_committed_by_the_person(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, ONE_TASK)
    executor = "cmd:exit 3"
    report = stage.document("gate", "PLAN.md", "--executor", executor)
    assert (report["exit"], report["outcome"]) == (1, "failed")
    run = report["run_id"]

    report = stage.document("resume", run, "--retry", "basket", "--note", "use sum")
    assert (report["exit"], report["tasks"][0]["attempts"]) == (1, 4)

    said = stage.document(*SKIP, "verify-unavailable", "--reason", REASON)
    assert said["word"] == "skip"
    assert 'status: "complete (unverified)"' in stage.state
    assert f'skip_reason: "verify-unavailable: {REASON}"' in stage.state
    assert stage.document("resume", run)["exit"] == 3

    stage.git("checkout", "-q", "-B", report["branch"])
    (stage.root / "basket.py").write_text("def total(prices):\n    return sum(prices)\n")
    stage.git("add", "basket.py")
    stage.git("commit", "-qm", "by hand")
    assert stage.proofstone("done", run, "task-01").returncode == 0
    assert stage.document("resume", run)["exit"] == 0
    summary = (stage.root / "SUMMARY.md").read_text("utf-8")
    assert "**WARNING: Task 1: Basket (task-01) was skipped and is unverified" in summary


@pytest.mark.ci
@pytest.mark.seed("gate", "force")
def test_a_forced_task_says_so(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, ONE_TASK)
    stage.proofstone("gate", "PLAN.md", "--executor", "cmd:exit 3")
    said = stage.document("force", "last", "1", "--confirm", "OVERRIDE", "--reason", REASON)
    assert (said["exit"], said["word"]) == (0, "force")
    assert 'status: "complete (forced)"' in stage.state


def test_a_verified_task_waits_for_a_persons_review_and_is_committed(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, ONE_TASK)
    report = stage.document("gate", "PLAN.md", "--executor", BASKET, "--architect", "human", "--branch", "work")
    assert (report["exit"], report["outcome"]) == (3, "needs_human")
    assert report["tasks"][0]["state"] == "REVIEWING"
    assert stage.git("branch", "--list", "work") == ""
    assert stage.proofstone("approve", "last", "1", "approved", "--reason", "read it").returncode == 0
    done = stage.proofstone("resume", "last")
    assert done.returncode == 0, done.stderr
    assert "PASSED" in done.stdout
    assert "git merge --ff-only work" in done.stdout
    assert stage.git("log", "--format=%an %s", "main..work").startswith("Tester ")


def test_at_a_terminal_the_question_is_put_and_the_run_goes_on(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, CHECKPOINT)
    code, shown = stage.at_a_terminal(
        "gate", "PLAN.md", "--executor", "human", "--mode", "interactive", typed={"skips the question": "done: blue\n"}
    )
    assert code == 0, shown
    assert "PASSED" in shown


@pytest.mark.ci
def test_at_a_terminal_force_asks_for_the_word(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, CHECKPOINT)
    stage.proofstone("gate", "PLAN.md", "--executor", "human")
    asked = ("force", "last", "1", "--reason", REASON)
    code, shown = stage.at_a_terminal(*asked, typed={"to confirm:": "yes\n"})
    assert code == 2, shown
    code, shown = stage.at_a_terminal(*asked, typed={"to confirm:": "OVERRIDE\n"})
    assert code == 0, shown


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, ONE_TASK)
    code, shown = stage.at_a_terminal("gate", "PLAN.md", "--executor", "cmd:sleep 60", typed={"attempt 1 of 3": "\x03"})
    assert code == 130, shown
    status = stage.document("status")
    assert status["state"] == "interrupted"
    assert f"resume with: proofstone resume {status['run_id']}" in shown
