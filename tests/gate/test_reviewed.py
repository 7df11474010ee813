"""What went wrong once at the gate, and must not again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.gate.stage import Stage, agent, work
from tests.staging import FILES, plan, task
from tests.waiting import PATIENCE, wait_until

DUE = "The release is due today"


def started(stage: Stage, *args: str) -> subprocess.Popen[str]:
    return stage.workshop.start(stage.root, "gate", "PLAN.md", "--json", *args)


def ended(running: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        out, err = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    return running.returncode, out + err


@pytest.mark.ci
@pytest.mark.seed("gate", "timeout-delay")
def test_a_time_out_is_tried_again_after_its_pause(tmp_path: Path) -> None:
    settings = "[gate]\nexecutor_seconds = 2\nretry_delay_seconds = 1\n"
    stage = Stage.set_up(tmp_path, plan(task("One")), settings=settings)
    gated = stage.gate(agent(t1=f'[ "$PROOFSTONE_ATTEMPT" = 2 ] || sleep 30\n{work("one")}'))
    assert (gated.exit, gated.attempts, gated.failures(1)) == (0, [2], ["TIMEOUT"]), gated.stderr


def test_a_word_that_comes_while_a_task_is_at_work_is_heard_before_its_commit(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    running = started(stage, "--executor", agent(t1=f"sleep 4\n{work('one')}"))
    wait_until(lambda: "EXECUTING" in stage.proofstone("status", "--json").stdout)
    said = stage.proofstone("skip", "last", "1", "--category", "time-pressure", "--reason", DUE)
    assert said.returncode == 0, said.stderr
    code, output = ended(running)
    assert code == 3 and '"SKIPPED"' in output, output
    assert stage.git("branch", "--list", "proofstone/*") == ""
    assert "shop/one.py" in next((stage.root / ".proofstone").glob("*/task-01.patch")).read_text()


@pytest.mark.ci
def test_words_said_at_the_same_time_leave_the_ledger_readable(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    stage.gate(agent(t1="exit 1"))
    words = ("skip", "last", "1", "--category", "time-pressure", "--reason", DUE)
    running = [stage.workshop.start(stage.root, *words) for _ in range(4)]
    codes = sorted(ended(one)[0] for one in running)
    assert codes == [0, 2, 2, 2]
    assert stage.proofstone("runs").returncode == 0


@pytest.mark.sweep
def test_a_commit_of_a_person_on_the_branch_is_taken_in_and_the_task_is_checked_on_it(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One"), task("Two")))
    slow = f"if [ -f shop/one.py ]; then sleep 5; fi\n{work('two')}"
    running = started(stage, "--executor", agent(t1=work("one"), t2=slow))
    wait_until(lambda: bool(stage.git("branch", "--list", stage.branch)))
    other = stage.workshop.folder / "other"
    stage.git("worktree", "add", "-q", str(other), stage.branch)
    stage.workshop.write(other, {"by-hand.txt": "x\n"})
    stage.workshop.commit(other, "By hand")
    stage.git("worktree", "remove", str(other))
    code, output = ended(running)
    assert code == 0, output
    assert stage.subjects() == ["feat(shop-01): One", "By hand", "feat(shop-01): Two"]
    assert stage.shown("by-hand.txt") == "x"


@pytest.mark.sweep
def test_a_branch_that_a_person_rewound_is_not_brought_back(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One"), task("Two")))
    slow = f"if [ -f shop/one.py ]; then sleep 5; fi\n{work('two')}"
    running = started(stage, "--executor", agent(t1=work("one"), t2=slow))
    wait_until(lambda: bool(stage.git("branch", "--list", stage.branch)))
    stage.git("branch", "-f", stage.branch, "main")
    code, output = ended(running)
    assert code == 2 and "no longer contains" in output
    assert stage.subjects() == []


@pytest.mark.seed("gate", "manual-review")
def test_an_architect_who_asks_for_a_person_is_not_asked_again(tmp_path: Path) -> None:
    verdict = '{"verdict": "REJECTED", "recommendation": "manual_review", "feedback": "it touches money"}'
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=work("one")), "--architect", f"cmd:echo '{verdict}' > \"$PROOFSTONE_VERDICT\"")
    assert (gated.exit, gated.states) == (3, ["REVIEWING"])
    assert "it touches money" in gated.json["tasks"][0]["asks"]
    again = stage.resume()
    assert (again.exit, again.states) == (3, ["REVIEWING"])
    assert "it touches money" in stage.proofstone("status").stdout
    assert stage.proofstone("approve", "last", "1", "approved").returncode == 0
    assert stage.resume().exit == 0


@pytest.mark.ci
def test_an_architect_who_approves_and_hesitates_asks_for_a_person(tmp_path: Path) -> None:
    verdict = '{"verdict": "APPROVED", "recommendation": "retry"}'
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=work("one")), "--architect", f"cmd:echo '{verdict}' > \"$PROOFSTONE_VERDICT\"")
    assert (gated.exit, gated.states) == (3, ["REVIEWING"]), gated.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "spoil",
    ["echo '*' > .git/info/exclude", "git add -A && git commit -qm mine"],
    ids=["everything excluded", "committed already"],
)
def test_a_hook_sees_what_the_executor_did_whatever_it_did_to_its_git(tmp_path: Path, spoil: str) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    hook = stage.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n! git diff --cached | grep -q 'return 1'\n")
    hook.chmod(0o755)
    gated = stage.gate(agent(t1=f"{work('one')}{spoil}\n"), "--hooks", "run")
    assert gated.states == ["FAILED"]
    assert "hook:pre-commit" in gated.reasons(1)


def test_a_task_cannot_loosen_the_checks_of_the_next(tmp_path: Path) -> None:
    loosen = 'printf \'[check]\\ndisable = ["*"]\\noptional = ["*"]\\n\' > proofstone.toml\n'
    text = plan(
        task("One", files="proofstone.toml, shop/one.py, tests/test_one.py"),
        task("Two", files="shop, tests/test_two.py", verify="python3 -c 'import shop.two'"),
    )
    stage = Stage.set_up(tmp_path, text)
    broken = f"{work('two')}printf 'def total(prices):\\n    return 42\\n' > shop/cart.py\n"
    gated = stage.gate(agent(t1=loosen + work("one"), t2=broken))
    assert gated.states == ["FAILED", "PENDING"], gated.json
    assert "weakened-settings" in gated.reasons(1)


def test_what_is_held_out_is_nowhere_that_an_executor_can_look(tmp_path: Path) -> None:
    heldout = "<heldout>python3 -m unittest heldout_one</heldout>\n"
    stage = Stage.set_up(tmp_path, "x")
    elsewhere = stage.workshop.home / "plans"
    elsewhere.mkdir()
    (elsewhere / "PLAN.md").write_text(plan(task("One", further=heldout)))
    secret = elsewhere / "secret"
    secret.mkdir()
    (secret / "heldout_one.py").write_text(
        "import unittest\nfrom shop.one import one\n\n\nclass T(unittest.TestCase):\n"
        "    def test_secret_value(self):\n        self.assertEqual(one(), 77)\n"
    )
    spy = f"""grep -rq 'test_secret_valu[e]\\|unittest heldou[t]' {elsewhere} && exit 7
git cat-file --batch-all-objects --batch | grep -aq 'test_secret_valu[e]' && exit 8
"""
    executor = agent(t1=f"{spy}{work('one')}")
    done = stage.proofstone(
        "gate", str(elsewhere / "PLAN.md"), "--executor", executor, "--heldout-files", str(secret), "--json", "--quiet"
    )
    assert done.returncode == 1
    assert done.stdout.count('"VERIFY_FAILURE"') == 3, done.stdout
    assert "heldout" in done.stdout


def test_pages_that_somebody_else_wrote_are_not_overwritten(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    (stage.root / "STATE.md").write_text("months of notes\n")
    gated = stage.gate(agent(t1=work("one")))
    assert gated.exit == 2 and "STATE.md" in gated.stderr
    assert (stage.root / "STATE.md").read_text() == "months of notes\n"


def test_a_plan_reached_by_a_roundabout_way_is_the_same_plan(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    done = stage.workshop.proofstone(
        stage.root / "shop", "gate", "../PLAN.md", "--executor", agent(t1=work("one")), "--json", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    assert stage.git("status", "--porcelain") == ""


@pytest.mark.ci
def test_folders_nested_deeper_than_a_path_can_be_are_cleared_away(tmp_path: Path) -> None:
    deep = 'python3 -c \'import os\nfor _ in range(3000): os.mkdir("d"); os.chdir("d")\'\n'
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=f"{work('one')}{deep}"))
    assert gated.exit in (0, 1), gated.stderr
    assert stage.leftovers == []


@pytest.mark.ci
def test_last_is_the_last_run_of_the_repository_that_one_stands_in(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    stage.gate(agent(t1="exit 1"))
    other = stage.workshop.repo({**FILES, "PLAN.md": plan(task("Two"))}, name="other")
    assert stage.workshop.proofstone(other, "status").returncode == 2
    stage.workshop.proofstone(other, "gate", "PLAN.md", "--executor", "cmd:exit 1")
    assert "One" in stage.proofstone("status").stdout
    assert "Two" in stage.workshop.proofstone(other, "status").stdout


@pytest.mark.ci
def test_one_commit_stands_for_one_skipped_task(tmp_path: Path) -> None:
    stage = Stage.set_up(
        tmp_path, plan(task("One", attributes='depends_on=""'), task("Two", attributes='depends_on=""'))
    )
    stage.gate(agent(t1="echo half > shop/one.py\nexit 1", t2="echo half > shop/two.py\nexit 1"))
    for number in ("1", "2"):
        words = ("skip", "last", number, "--category", "time-pressure", "--reason", DUE)
        assert stage.proofstone(*words).returncode == 0
    stage.git("checkout", "-q", "-b", stage.branch)
    stage.workshop.write(stage.root, {"shop/one.py": "x = 1\n"})
    stage.workshop.commit(stage.root, "By hand")
    stage.git("checkout", "-q", "main")
    assert [stage.proofstone("done", "last", number).returncode for number in ("1", "2")] == [0, 2]


@pytest.mark.ci
def test_a_persons_work_survives_a_kill_between_their_word_and_its_record(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    assert stage.gate("human", "--no-wait").exit == 3
    place = next((stage.workshop.proofstone_home / "work").glob("*/task-01/files"))
    stage.workshop.run(place, "sh", "-ec", work("one"))
    assert stage.proofstone("done", "last", "1").returncode == 0
    killed = stage.workshop.proofstone(stage.root, "resume", "last", env={"PROOFSTONE_FAULT": "gate.after-freeze"})
    assert killed.returncode == -9
    assert stage.resume().exit == 0
    assert stage.subjects() == ["feat(shop-01): One"]
    assert stage.leftovers == []
