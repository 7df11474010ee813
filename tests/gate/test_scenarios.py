"""`proofstone gate` as a person meets it: honest work is committed, nothing else is, and what happened is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gate.stage import Stage, agent, work
from tests.staging import FILES, plan, task
from tests.waiting import PATIENCE, wait_until

FAST = "[gate]\nexecutor_seconds = 2\nexecutor_seconds_max = 2\nretry_delay_seconds = 0\n"


@pytest.mark.ci
def test_a_plan_with_every_kind_of_executor(tmp_path: Path) -> None:
    """One honest task, and then a liar, a stray, a sleeper, a babbler and a flaky verify command."""
    text = plan(
        task("One", attributes='depends_on=""'),
        task("Two", attributes='depends_on="1"'),
        task("Three", attributes='depends_on="1"'),
        task("Four", attributes='depends_on="2"'),
        task("Five", attributes='depends_on="1"'),
        task("Six", verify="python3 -c 'import time, sys; sys.exit(time.time_ns() // 1000 % 2)'"),
    )
    lies = """echo '{"status": "success", "verification": {"command": "x", "exit_code": 0}}' > "$PROOFSTONE_RESULT"\n"""
    executor = agent(
        t1=work("one"),
        t2=work("two").replace("return 1", "return 2") + lies,
        t3=work("three") + "echo more >> shop/cart.py",
        t5="sleep 30",
        t6='echo \'{"status": "perhaps"}\' > "$PROOFSTONE_RESULT"',
    )
    stage = Stage.set_up(tmp_path, text, settings=FAST)
    gated = stage.gate(executor)
    assert gated.exit == 1, gated.stderr
    assert gated.json["outcome"] in ("halted", "failed")
    assert gated.states == ["APPROVED", "FAILED", "FAILED", "PENDING", "FAILED", "FAILED"]
    assert gated.attempts == [1, 3, 3, 0, 2, 3]
    assert gated.failures(2) == ["VERIFY_FAILURE"] * 3
    assert {"verify", "claim-mismatch"} <= gated.reasons(2)
    assert gated.failures(3) == ["VERIFY_FAILURE"] * 3
    assert "scope" in gated.reasons(3)
    assert gated.failures(5) == ["TIMEOUT"] * 2
    assert gated.failures(6) == ["MALFORMED"] * 3
    assert stage.subjects() == ["feat(shop-01): One"]
    assert stage.git("status", "--porcelain") == ""
    assert stage.git("branch", "--show-current") == "main"
    state = (stage.root / "STATE.md").read_text()
    for word in ("VERIFY_FAILURE", "TIMEOUT", "MALFORMED", "APPROVED"):
        assert word in state
    assert stage.leftovers == []
    assert not (stage.root / "SUMMARY.md").exists()


@pytest.mark.seed("gate", "commit-exact-tree")
def test_the_commit_is_exactly_the_verified_tree(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One"), task("Two")))
    gated = stage.gate(agent(t1=work("one"), t2=work("two")))
    assert gated.exit == 0, gated.stderr
    assert gated.json["outcome"] == "passed"
    assert stage.subjects() == ["feat(shop-01): One", "feat(shop-01): Two"]
    commits = [one["commit"] for one in gated.json["tasks"]]
    assert commits == stage.git("rev-list", "--reverse", f"main..{stage.branch}").splitlines()
    sql = "SELECT DISTINCT tree FROM checks WHERE phase = 'after' AND passed = 1 AND check_name = 'verify'"
    rows = json.loads(stage.proofstone("ledger", "query", sql, "--json").stdout)["rows"]
    assert {row["tree"] for row in rows} >= {stage.git("rev-parse", f"{commit}^{{tree}}") for commit in commits}
    changed = stage.git("show", "--name-only", "--format=", commits[0]).splitlines()
    assert changed == ["shop/one.py", "tests/test_one.py"]
    assert "Proofstone-Task: task-01" in stage.git("log", "-1", "--format=%B", commits[0])
    assert (stage.root / "SUMMARY.md").is_file()
    assert stage.git("status", "--porcelain") == ""


@pytest.mark.seed("gate", "verify-tail-in-retry")
def test_the_second_attempt_is_told_why_and_goes_on_from_the_first(tmp_path: Path) -> None:
    better = """
if [ "$PROOFSTONE_ATTEMPT" = 1 ]; then echo half > shop/half.txt; exit 0; fi
grep -q 'VERIFY_FAILURE' "$PROOFSTONE_TASK" || exit 9
grep -q "No module named 'tests.test_one'" "$PROOFSTONE_TASK" || exit 7
test -f shop/half.txt || exit 8
rm shop/half.txt
"""
    stage = Stage.set_up(tmp_path, plan(task("One", files="shop, tests")))
    gated = stage.gate(agent(t1=better + work("one")))
    assert gated.exit == 0, gated.json
    assert gated.attempts == [2]
    assert gated.failures(1) == ["VERIFY_FAILURE"]


@pytest.mark.ci
@pytest.mark.seed("pipeline", "revert")
def test_the_third_attempt_starts_clean(tmp_path: Path) -> None:
    third = f'if [ "$PROOFSTONE_ATTEMPT" = 3 ]; then test ! -f shop/half.txt || exit 8\n{work("one")}exit 0; fi\n'
    stage = Stage.set_up(tmp_path, plan(task("One", files="shop, tests")))
    gated = stage.gate(agent(t1=third + "echo half > shop/half.txt; exit 3"))
    assert gated.exit == 0, gated.json
    assert gated.failures(1) == ["EXECUTION_FAILURE"] * 2


def test_independent_tasks_are_merged_and_checked_on_the_merged_tree(tmp_path: Path) -> None:
    """Two tasks that pass alone and not together: the second to come is refused, and mended on the new base."""
    first = work("one") + "echo 'def size(): return 2' > shop/size.py"
    second = (
        'if [ "$PROOFSTONE_ATTEMPT" = 1 ]; then sleep 1; fi\n'
        + work("two")
        + "printf 'import unittest\\nimport pathlib\\n\\n\\nclass T(unittest.TestCase):\\n    def test_it(self):\\n"
        '        self.assertEqual(len(list(pathlib.Path("shop").glob("*.py"))), %s)\\n\' '
        '"$(expr $(ls shop/*.py | wc -l))" > tests/test_two.py'
    )
    text = plan(
        task("One", files="shop/one.py, shop/size.py, tests/test_one.py", attributes='depends_on=""'),
        task("Two", attributes='depends_on=""'),
    )
    stage = Stage.set_up(tmp_path, text)
    gated = stage.gate(agent(t1=first, t2=second))
    assert gated.exit == 0, gated.json
    assert gated.states == ["APPROVED", "APPROVED"]
    assert gated.attempts[1] >= 2
    assert len(stage.subjects()) == 2


@pytest.mark.ci
def test_a_blocked_executor_asks_for_a_person(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One"), task("Two")))
    gated = stage.gate(agent(t1='echo \'{"status": "blocked", "error": "no key"}\' > "$PROOFSTONE_RESULT"'))
    assert gated.exit == 3
    assert gated.json["outcome"] == "needs_human"
    assert gated.states == ["BLOCKED", "PENDING"]
    assert "no key" in gated.json["tasks"][0]["asks"]


@pytest.mark.ci
def test_nothing_changed_is_rejected_by_the_rules(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One", verify="python3 -m unittest tests.test_cart")))
    gated = stage.gate(agent(t1=":"))
    assert gated.exit == 1
    assert gated.failures(1) == ["ARCHITECT_REJECTION"] * 2
    assert stage.git("branch", "--list", "proofstone/*") == ""


def test_a_checkpoint_stops_for_the_person_and_their_word_goes_on(tmp_path: Path) -> None:
    stop = '<task type="checkpoint:human-verify">\n<name>Look</name>\n<what-built>A shop</what-built>\n</task>\n'
    stage = Stage.set_up(tmp_path, plan(task("One"), stop, task("Two")))
    executor = agent(t1=work("one"), t3=work("two"))
    gated = stage.gate(executor)
    assert (gated.exit, gated.states) == (3, ["APPROVED", "PENDING", "PENDING"])
    said = stage.proofstone("done", "last", "2")
    assert said.returncode == 0, said.stderr
    again = stage.resume()
    assert again.exit == 0, again.stderr
    assert again.states == ["APPROVED"] * 3
    assert stage.subjects() == ["feat(shop-01): One", "feat(shop-01): Two"]


def test_a_persons_work_is_waited_for_and_verified_like_any_other(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    running = stage.workshop.start(stage.root, "gate", "PLAN.md", "--executor", "human", "--json")
    try:
        place = _work_tree(stage)
        stage.workshop.run(place, "sh", "-ec", work("one"))
        said = stage.proofstone("done", "last", "task-01")
        assert said.returncode == 0, said.stderr
        stdout, stderr = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == 0, stderr
    assert json.loads(stdout)["outcome"] == "passed"
    assert stage.subjects() == ["feat(shop-01): One"]
    assert stage.leftovers == []


def _work_tree(stage: Stage) -> Path:
    places: list[str] = []

    def is_offered() -> bool:
        shown = stage.proofstone("status", "--json")
        places[:] = [json.loads(shown.stdout)["tasks"][0]["work_tree"]] if shown.returncode == 0 else []
        return any(places)

    wait_until(is_offered, lambda: "no work tree was offered")
    return Path(places[0])


@pytest.mark.ci
def test_a_person_who_is_not_waited_for_comes_back_later(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate("human", "--no-wait")
    assert (gated.exit, gated.states) == (3, ["EXECUTING"])
    stage.workshop.run(_work_tree(stage), "sh", "-ec", work("one"))
    assert stage.proofstone("done", "last", "1").returncode == 0
    assert stage.resume().exit == 0
    assert stage.subjects() == ["feat(shop-01): One"]
    assert stage.leftovers == []


@pytest.mark.ci
@pytest.mark.parametrize("word", [pytest.param("approved", marks=pytest.mark.sweep), "rejected"])
def test_a_person_reviews(tmp_path: Path, word: str) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=work("one")), "--architect", "human")
    assert (gated.exit, gated.states) == (3, ["REVIEWING"])
    assert stage.git("branch", "--list", "proofstone/*") == ""
    said = stage.proofstone("approve", "last", "1", word, "--reason", "the name is not what the plan says")
    assert said.returncode == 0, said.stderr
    again = stage.resume()
    if word == "approved":
        assert (again.exit, again.states) == (0, ["APPROVED"])
    else:
        assert again.failures(1) == ["ARCHITECT_REJECTION"]
        assert (again.exit, again.states) == (3, ["REVIEWING"])


@pytest.mark.seed("gate", "architect-verdict")
def test_an_architects_command_decides_and_its_feedback_reaches_the_executor(tmp_path: Path) -> None:
    architect = """cmd:if grep -q 'return 7' shop/one.py; then v=APPROVED; else v=REJECTED; fi
echo "{\\"verdict\\": \\"$v\\", \\"feedback\\": \\"it must be seven\\"}" > "$PROOFSTONE_VERDICT"
"""
    second = f"if grep -q 'it must be seven' \"$PROOFSTONE_TASK\"; then\n{work('one', 7)}else\n{work('one', 1)}fi\n"
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=second), "--architect", architect)
    assert gated.exit == 0, gated.stderr + gated.stdout
    assert gated.failures(1) == ["ARCHITECT_REJECTION"]
    assert "return 7" in stage.shown("shop/one.py")


@pytest.mark.ci
@pytest.mark.seed("gate", "architect-verdict")
def test_an_architect_that_gives_no_verdict_approves_nothing(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=work("one")), "--architect", "cmd:true")
    assert (gated.exit, gated.states, gated.failures(1)) == (3, ["REVIEWING"], [])
    assert stage.git("branch", "--list", "proofstone/*") == ""


@pytest.mark.seed("gate", "skip")
def test_a_skipped_task_is_never_committed_and_what_depends_on_it_waits(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One"), task("Two")))
    executor = agent(t1=work("one").replace("return 1", "return 2"), t2=work("two"))
    assert stage.gate(executor).states == ["FAILED", "PENDING"]
    refused = stage.proofstone("skip", "last", "1", "--category", "time-pressure", "--reason", "looks good to me")
    assert refused.returncode == 2
    reason = "The tax service is down until Monday"
    said = stage.proofstone("skip", "last", "1", "--category", "verify-unavailable", "--reason", reason)
    assert said.returncode == 0, said.stderr
    waiting = stage.resume()
    assert (waiting.exit, waiting.states) == (3, ["SKIPPED", "PENDING"])
    assert "complete (unverified)" in (stage.root / "STATE.md").read_text()
    assert stage.git("branch", "--list", "proofstone/*") == ""
    early = stage.proofstone("done", "last", "1")
    assert early.returncode == 2 and "nothing was committed" in early.stderr
    patch = next((stage.root / ".proofstone").glob("*/task-01.patch"))
    stage.git("checkout", "-q", "-b", stage.branch)
    stage.git("apply", str(patch))
    stage.workshop.commit(stage.root, "By hand")
    stage.git("checkout", "-q", "main")
    assert stage.proofstone("done", "last", "1").returncode == 0
    last = stage.resume()
    assert (last.exit, last.states) == (0, ["SKIPPED", "APPROVED"])
    assert stage.subjects() == ["By hand", "feat(shop-01): Two"]


@pytest.mark.ci
@pytest.mark.seed("gate", "force")
def test_force_needs_the_word_and_is_never_committed(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    stage.gate(agent(t1="exit 1"))
    assert stage.proofstone("force", "last", "1", "--confirm", "yes", "--reason", "because I say so").returncode == 2
    said = stage.proofstone("force", "last", "1", "--confirm", "OVERRIDE", "--reason", "the customer waits for it")
    assert said.returncode == 0, said.stderr
    assert "(forced)" in (stage.root / "STATE.md").read_text()
    assert stage.git("branch", "--list", "proofstone/*") == ""


@pytest.mark.ci
def test_a_persons_word_gives_one_more_attempt(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    executor = agent(t1=f"grep -q 'fix: be bold' \"$PROOFSTONE_TASK\" || exit 1\n{work('one')}")
    assert stage.gate(executor).states == ["FAILED"]
    again = stage.resume("--retry", "1", "--note", "fix: be bold")
    assert (again.exit, again.attempts) == (0, [4]), again.stderr


def test_held_out_commands_are_run_and_never_shown(tmp_path: Path) -> None:
    heldout = "<heldout>python3 -c 'from shop.one import one; assert one(5) == 5'</heldout>\n"
    stage = Stage.set_up(tmp_path, plan(task("One", further=heldout)))
    spy = f"grep -q 'one(5)' \"$PROOFSTONE_TASK\" && exit 9\ngrep -rq 'one(5)' . && exit 8\n{work('one')}"
    gated = stage.gate(agent(t1="rm PLAN.md\n" + spy))
    assert gated.states == ["FAILED"]
    assert gated.failures(1) == ["VERIFY_FAILURE"] * 3
    assert "heldout" in gated.reasons(1)


@pytest.mark.sweep
@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.seed("gate", "flaky")
def test_a_flaky_verify_command_passes_only_where_the_plan_allows_it(tmp_path: Path, allowed: bool) -> None:
    """It fails at once and passes some seconds after the checks began: the second run is later."""
    attributes = 'flaky="allowed"' if allowed else ""
    begun = '[ "$PROOFSTONE_ATTEMPT" = 1 ] || exit 1\ndate +%s > shop/begun.txt\n'
    late = "test $(date +%s) -ge $(($(cat shop/begun.txt) + 9)) || { sleep 9; exit 1; }"
    stage = Stage.set_up(tmp_path, plan(task("One", files="shop, tests", verify=late, attributes=attributes)))
    gated = stage.gate(agent(t1=work("one") + begun))
    first = gated.json["tasks"][0]
    if allowed:
        assert (gated.exit, gated.states, first["confidence"]) == (0, ["APPROVED"], "medium"), gated.json
        assert any("flaky" in concern for concern in first["concerns"])
    else:
        assert gated.states == ["FAILED"]
        assert any("flaky" in failure["error"] for failure in first["failures"])
        assert stage.git("branch", "--list", "proofstone/*") == ""


def test_must_haves_are_checked_after_the_last_task(tmp_path: Path) -> None:
    head = (
        "phase: shop\nplan: 01\nmust_haves:\n  artifacts:\n    - path: shop/one.py\n      exports: [one]\n"
        "    - path: shop/none.py\n"
    )
    stage = Stage.set_up(tmp_path, plan(task("One"), head=head))
    gated = stage.gate(agent(t1=work("one")))
    assert (gated.exit, gated.json["outcome"]) == (1, "failed")
    assert [one["holds"] for one in gated.json["must_haves"]] == [True, False]
    assert "shop/none.py" in gated.json["reason"]
    assert not (stage.root / "SUMMARY.md").exists()


def test_commits_go_to_the_branch_that_is_checked_out_only_when_asked(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=work("one")), "--branch", "main")
    assert gated.exit == 0, gated.stderr
    assert (stage.root / "shop/one.py").is_file()
    assert stage.git("status", "--porcelain") == ""
    assert stage.git("log", "-1", "--format=%s") == "feat(shop-01): One"


def test_the_executor_sees_its_work_tree_at_the_repositorys_path_and_nothing_of_ours(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    spy = f"""test "$PWD" = {stage.root} || exit 5
git status --porcelain | grep -q . && exit 6
git log -1 >/dev/null || exit 7
ls -A {stage.workshop.proofstone_home} 2>/dev/null | grep -q . && exit 8
true
"""
    gated = stage.gate(agent(t1=spy + work("one")))
    assert gated.exit == 0, gated.json
    assert stage.git("status", "--porcelain") == ""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        pytest.param("git add -A && git commit -qm own && git reset -q --hard HEAD", "", id="own commits"),
        pytest.param(
            "git update-index --skip-worktree shop/cart.py && echo 'x = 1' >> shop/cart.py",
            "scope",
            id="skip-worktree",
            marks=pytest.mark.sweep,
        ),
        pytest.param("echo shop/extra.py >> .git/info/exclude && echo 1 > shop/extra.py", "scope", id="info/exclude"),
        pytest.param(
            "git config core.excludesFile /tmp/x && echo shop/extra.py > /tmp/x && echo 1 > shop/extra.py",
            "scope",
            id="excludesFile",
            marks=pytest.mark.sweep,
        ),
        pytest.param(
            "sed -i 's/3)/3 or True)/' tests/test_cart.py",
            "protected-file",
            id="undeclared test",
            marks=pytest.mark.sweep,
        ),
        pytest.param("rm -rf .git", "", id="no git", marks=pytest.mark.sweep),
    ],
)
def test_what_an_executor_does_to_its_git_hides_nothing(tmp_path: Path, spoil: str, told: str) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=work("one") + spoil))
    if told:
        assert gated.states == ["FAILED"]
        assert told in gated.reasons(1)
        assert stage.git("branch", "--list", "proofstone/*") == ""
    else:
        assert gated.states == ["APPROVED"], gated.json
        assert stage.git("show", "--name-only", "--format=", stage.branch).splitlines() == [
            "shop/one.py",
            "tests/test_one.py",
        ]


def test_hooks_are_refused_run_or_left_out_on_record(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One", files="shop, tests")))
    hook = stage.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    staged = "git diff --cached --name-only | grep -q one.py || exit 4"
    hook.write_text(f"#!/bin/sh\n{staged}\necho '# tidy' >> shop/one.py\n")
    hook.chmod(0o755)
    refused = stage.gate(agent(t1=work("one")))
    assert refused.exit == 2 and "pre-commit" in refused.stderr
    assert not (stage.root / "STATE.md").exists()
    ran = stage.gate(agent(t1=work("one")), "--hooks", "run")
    assert ran.exit == 0, ran.json
    assert stage.shown("shop/one.py").endswith("# tidy")
    hook.write_text("#!/bin/sh\nexit 1\n")
    no = stage.gate(agent(t1=work("one")), "--hooks", "run")
    assert (no.exit, no.states) == (1, ["FAILED"])
    assert "hook:pre-commit" in no.reasons(1)
    skipped = stage.gate(agent(t1=work("one")), "--hooks", "skip")
    assert skipped.exit == 0
    assert any("pre-commit" in note for note in skipped.json["notes"])


def test_changes_that_are_not_committed_are_refused_before_anything_happens(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    stage.workshop.write(stage.root, {"shop/cart.py": "x = 1\n"})
    gated = stage.gate(agent(t1=work("one")))
    assert gated.exit == 2 and "shop/cart.py" in gated.stderr
    assert stage.proofstone("runs", "--json").stdout.count("run_id") == 0
    assert stage.gate(agent(t1=work("one")), "--allow-dirty").exit == 0
    assert (stage.root / "shop/cart.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("# Nothing here\n\nJust words.\n", "task"),
        (plan(task("One", verify="echo done")), "PLAN.md:"),
        (plan(task("One", attributes='depends_on="7"')), "7"),
        (plan(task("One", attributes='depends_on="2"'), task("Two", attributes='depends_on="1"')), "PLAN.md:"),
        (plan(task("One")).replace("<verify>python3 -m unittest tests.test_one</verify>\n", ""), "verify"),
        ("---\nphase: [\n---\n" + task("One"), "PLAN.md:"),
        (plan(task("One")).replace("</task>", ""), "PLAN.md:"),
    ],
    ids=["empty", "no task", "vacuous", "unknown dependency", "cycle", "no verify", "broken yaml", "no end"],
)
def test_a_bad_plan_is_exit_2_and_nothing_changed(tmp_path: Path, text: str, told: str) -> None:
    stage = Stage.set_up(tmp_path, text or "x", {**FILES})
    (stage.root / "PLAN.md").write_text(text)
    stage.git("commit", "-qam", "The plan", "--allow-empty")
    before = stage.git("for-each-ref") + stage.git("status", "--porcelain")
    gated = stage.gate("cmd:true")
    assert gated.exit == 2, gated.stdout
    assert told in gated.stderr
    assert stage.git("for-each-ref") + stage.git("status", "--porcelain") == before
    assert not (stage.workshop.proofstone_home / "ledger").exists()


def test_an_executor_may_ask_for_files_that_plainly_belong_to_its_own(tmp_path: Path) -> None:
    moved = "mkdir shop/tax; mv shop/one.py shop/tax/one.py; : > shop/tax/__init__.py\n"
    ask = """echo '{"status": "success", "files_requested": ["shop/tax/__init__.py"]}' > "$PROOFSTONE_RESULT"\n"""
    moved += "sed -i s/shop.one/shop.tax.one/ tests/test_one.py\n"
    text = plan(task("One", files="shop/tax/one.py, tests/test_one.py"))
    stage = Stage.set_up(tmp_path, text)
    gated = stage.gate(agent(t1=work("one") + moved + ask))
    assert gated.exit == 0, gated.json
    assert "shop/tax/__init__.py" in stage.git("show", "--name-only", "--format=", stage.branch)
    results = json.loads(next((stage.root / ".proofstone").glob("*/gate-results.json")).read_text())["gate_results"]
    assert results[0]["outcome"] == "PASSED" and results[0]["commit_sha"] == gated.json["commit"]


def test_nobody_to_do_the_work_is_said_at_once(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    done = stage.proofstone("gate", "PLAN.md")
    assert done.returncode == 2
    assert "--executor" in done.stderr


def test_interrupted_it_can_be_resumed(tmp_path: Path) -> None:
    import signal

    stage = Stage.set_up(tmp_path, plan(task("One"), task("Two")))
    slow = f"if [ -f shop/one.py ]; then sleep 600; fi\n{work('two')}"
    executor = agent(t1=work("one"), t2=slow)
    running = stage.workshop.start(stage.root, "gate", "PLAN.md", "--json", "--executor", executor)
    try:
        verify = ("git", "rev-parse", "--verify", stage.branch)
        wait_until(lambda: stage.workshop.run(stage.root, *verify).returncode == 0)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert running.returncode == 130
    assert stage.subjects() == ["feat(shop-01): One"]
    assert "interrupted" in (stage.root / "STATE.md").read_text()
    assert stage.leftovers == []
    assert stage.processes() == []
