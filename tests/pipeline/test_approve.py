"""A run that waits at an approval gate: every command knows it, and one word of a person lets it go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gate.stage import CHECKPOINT
from tests.gate.stage import Stage as GateStage
from tests.pipeline.stage import REQUEST, TEAM, Stage
from tests.plan_gate.stage import challenge, challenger, ruling, synthesizer

GATE = "gate-post-research"


def at_the_gate(folder: Path) -> tuple[Stage, str]:
    stage = Stage.set_up(folder)
    came = stage.run(args=["--mode", "interactive"])
    assert came.exit == 3, came.stderr
    assert came.report.waiting is not None and came.report.waiting.gate_id == GATE
    return stage, came.report.run_id


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, str]:
    """Only for words that change nothing."""
    return at_the_gate(tmp_path_factory.mktemp("waiting") / "stage")


WRONG = {
    "another gate": (("last", "gate-post-planning", "approve"), "nothing waits at gate-post-planning; it waits at"),
    "no option": (("last", GATE, "yes"), "'yes' is no option"),
    "a word about tasks": (("RUN", GATE, "approved"), "'approved' is no option"),
    "no words": (("last", GATE, "expand"), "expand needs a note"),
    "empty words": (("last", GATE, "expand", "--note", " "), "expand needs a note"),
    "no such run": (("nonsense", GATE, "proceed"), "names no run"),
    "no such task": (("last", "task-01", "approved"), "there is no run of `proofstone gate` yet"),
    "an option for a task": (("last", "task-01", "proceed"), "'proceed' is not a decision about a task"),
    "half of it": (("last", GATE), "Missing argument"),
}


@pytest.mark.parametrize("args,words", WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_said_and_nothing_is_recorded(
    waiting: tuple[Stage, str], args: tuple[str, ...], words: str
) -> None:
    stage, run_id = waiting
    rows = stage.row_count
    done = stage.proofstone("approve", *(run_id if word == "RUN" else word for word in args))
    assert done.returncode == 2 and words in done.stderr and "hint:" in done.stderr, done.stderr
    assert stage.row_count == rows


def test_an_approval_is_a_persons_word(waiting: tuple[Stage, str]) -> None:
    done = waiting[0].proofstone("approve", "last", GATE, "proceed", env={"PROOFSTONE_TASK": "in the prompt"})
    assert done.returncode == 2 and "only a person may do this" in done.stderr


def test_every_command_knows_the_run(waiting: tuple[Stage, str]) -> None:
    stage, run_id = waiting
    assert stage.proofstone("runs").stdout.endswith(f'run  waiting  project  "{REQUEST}"\n')
    (row,) = json.loads(stage.proofstone("runs", "--json").stdout)["runs"]
    assert (row["run_id"], row["command"], row["request"]) == (run_id, "run", REQUEST)
    for named in ("last", run_id, run_id[-6:], run_id[:12]):
        assert json.loads(stage.proofstone("status", named, "--json").stdout)["waiting"]["gate_id"] == GATE
    assert f"proofstone approve {run_id} {GATE} proceed\n" in stage.proofstone("status").stdout
    done = stage.proofstone("resume", "last", "--retry", "1")
    assert done.returncode == 2 and f"{run_id} is a run of `proofstone run`, which decides itself" in done.stderr


def test_where_nobody_has_chosen_it_waits_on_and_an_option_lets_it_go_on(tmp_path: Path) -> None:
    stage, run_id = at_the_gate(tmp_path / "stage")
    assert stage.resume("last").exit == 3
    said = stage.proofstone("approve", run_id, GATE, "proceed", "--note", "well read", "--json")
    assert json.loads(said.stdout) == {
        "run_id": run_id,
        "gate": GATE,
        "option": "proceed",
        "follows": f"proofstone resume {run_id}",
    }
    came = stage.resume(run_id)
    assert came.exit == 3 and came.report.waiting is not None
    assert came.report.waiting.gate_id == "gate-post-planning"
    (kept,) = came.report.approvals
    assert (kept.gate_id, kept.selected_option, kept.auto_selected, kept.user_response_raw) == (
        GATE,
        "proceed",
        False,
        "well read",
    )
    assert came.report.plan_gates, "it has a part by now, whose id begins with its own"
    for named in (run_id, run_id[:12]):
        assert json.loads(stage.proofstone("status", named, "--json").stdout)["run_id"] == run_id
    assert stage.proofstone("approve", "last", "gate-post-planning", "abort").returncode == 0
    halted = stage.proofstone("resume", "last")
    assert halted.returncode == 1 and halted.stdout.startswith("HALTED  aborted by the user\n")
    again = stage.proofstone("resume", "last")
    assert (again.returncode, again.stdout, again.stderr) == (1, halted.stdout, ""), "it is over, and says how"
    done = stage.proofstone("approve", "last", "gate-post-planning", "approve")
    assert done.returncode == 2 and "nothing waits at gate-post-planning; aborted by the user" in done.stderr


@pytest.mark.seed(
    "pipeline", "pushback-step-0", "approval-fields-shown", "plan-gate-asked-at-terminal", "thinking-time-free"
)
def test_at_a_terminal_it_is_asked_here_and_now(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    doubt = challenger(challenge("Only one cart is counted", "BLOCKING"), iteration=1)
    question = {"challenge": "C1", "question": "Which carts count?", "options": ["one", "both"]}
    unsettled = synthesizer(ruling("C1", "UNRESOLVED"), said={"questions": [question]}, iteration=1)
    settled = synthesizer(ruling("C1", evidence=["person"]), iteration=2)
    code, shown = stage.at_a_terminal(
        *("run", f"{REQUEST} of shop/basket.py", "--backend", stage.cast([doubt, unsettled, settled, *TEAM])),
        *("--mode", "interactive", "--budget-minutes", "30"),
        typed={
            "the repository does not have shop/basket.py": "2\n",
            "modify: say what you want": "it is in shop/cart.py\n",
            "Research phase complete": "2\n",
            "expand: say what you want": "who else calls it?\n",
            f"{GATE}: expand": "proceed\n",
            "Which carts count?": "keep both\n",
            "Review and approve?": "abort\n",
        },
    )
    assert code == 1, shown
    assert "gate-request, step 0; risk the most severe concern is minor; 1 finding; " in shown
    assert f"{GATE}, step 1a; 4 findings; " in shown and " so far" in shown
    assert f"{GATE}: expand, by a person: who else calls it?" in shown
    (run_id,) = [one for one in stage.runs if "-p" not in one[-4:]]
    told = next(one for one in stage.messages(run_id, "Dispatch") if one["occasion"]["role"] == "specifier")
    assert "it is in shop/cart.py" in told["request"]["text"]
    (plan_run,) = [run for run in stage.runs if run.endswith("-p1")]
    assert "keep both" in stage.proofstone("ledger", "show", plan_run).stdout
    times = [len(stage.events(run_id, f"person.{what}")) for what in ("asked", "answered")]
    assert times == [5, 5], "the time of each answer is not charged"
    assert "step 1 of 13: research ×4, again" in shown
    assert "HALTED" in shown and "aborted by the user" in shown


def test_a_task_that_is_called_like_a_gate_is_still_a_task(tmp_path: Path) -> None:
    shop = GateStage.set_up(tmp_path, CHECKPOINT.replace("Colour", "gate-post-planning"))
    assert shop.proofstone("gate", "PLAN.md", "--executor", "human", "-q").returncode == 3
    done = shop.proofstone("approve", "last", "gate-post-planning", "approved")
    assert done.returncode == 2 and "task-01 is PENDING: it is not waiting for a review" in done.stderr, done.stderr
