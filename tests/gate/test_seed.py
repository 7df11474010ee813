"""The rules of the verification gate through the command line: what a failure teaches, who is asked, what goes on.

One run shows several of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gate.stage import Stage, agent, work
from tests.staging import plan, task

LEARNS = (
    """
if [ "$PROOFSTONE_ATTEMPT" = 1 ]; then
"""
    + work("one", 2).replace("return 2", "return 3")
    + """exit 0
fi
cp "$PROOFSTONE_TASK" shop/given.json
"""
    + work("one")
)
REVIEWS = (
    'cmd:grep -q "previous_failures" "$PROOFSTONE_REVIEW" && grep -q "3 != 2" "$PROOFSTONE_REVIEW" '
    '&& grep -q "Ran 1 test" "$PROOFSTONE_REVIEW" '
    '&& echo \'{"verdict": "APPROVED", "confidence": "HIGH"}\' > "$PROOFSTONE_VERDICT"'
)


@pytest.mark.seed("gate", "verify-failures-parsed", "architect-sees-verify-output", "advice-for-authors-only")
def test_the_next_attempt_and_the_architect_are_told_what_failed_and_no_advice_for_others(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One", files="shop, tests")))
    gated = stage.gate(agent(t1=LEARNS), "--architect", REVIEWS)
    assert gated.attempts == [2], gated.stdout + gated.stderr
    assert gated.exit == 0, gated.json
    given = stage.shown("shop/given.json")
    assert "tests.test_one.T.test_it" in given and "3 != 2" in given
    (failure,) = gated.json["tasks"][0]["failures"]
    verify = next(reason for reason in failure["reasons"] if reason["check"] == "verify")
    assert verify["failures"] == ["test_it (tests.test_one.T.test_it)", "AssertionError: 3 != 2"]
    signals = next(reason for reason in failure["reasons"] if reason["check"] == "signals")
    assert "<verify>" in signals["remedy"]
    assert "add another command" not in given


YAML_RESULT = """
cat > "$PROOFSTONE_RESULT" <<'END'
status: success
task_name: "Task 1: One"
files_modified: [shop/one.py, tests/test_one.py]
verification:
  command: python3 -m unittest tests.test_one
  exit_code: 0
  output_summary: 1 test passed on 2026-01-26
done_criteria_met: true
evidence: |
  The test passes: it fails without the module.
error: null
END
"""
UNSURE_ARCHITECT = """cmd:
n=$(cat "$HOME/asked" 2>/dev/null || echo 0)
case "$(grep -o '"round": *[0-9]*' "$PROOFSTONE_REVIEW" | grep -o '[0-9]*$')" in
1) echo 'verdict: PERHAPS' > "$PROOFSTONE_VERDICT" ;;
2) sleep 30 ;;
*) cat > "$PROOFSTONE_VERDICT" <<'END'
```yaml
verdict: APPROVED
task_name: "Task 1: One"
confidence: HIGH
findings:
  - "Criterion met: the test passes"
concerns: []
recommendation: commit
```
END
;;
esac
"""


@pytest.mark.seed("gate", "results-in-yaml", "architect-asked-again")
def test_results_may_be_yaml_and_an_architect_without_a_verdict_is_asked_again(tmp_path: Path) -> None:
    settings = "[gate]\narchitect_seconds = 2\narchitect_seconds_max = 2\n"
    stage = Stage.set_up(tmp_path, plan(task("One")), settings=settings)
    gated = stage.gate(agent(t1=work("one") + YAML_RESULT), "--architect", UNSURE_ARCHITECT)
    assert (gated.exit, gated.attempts, gated.failures(1)) == (0, [1], []), gated.stdout
    rows = stage.query("SELECT payload FROM events WHERE type = 'task.unanswered'")
    kinds = [row["event"]["failure"]["type"] for row in rows]
    assert kinds == ["MALFORMED", "TIMEOUT"]
    state = (stage.root / "STATE.md").read_text()
    assert 'failure_type: "MALFORMED"' in state and "input should be 'APPROVED' or 'REJECTED'" in state


@pytest.mark.seed("gate", "architect-without-verdict-asks-person")
def test_an_architect_that_never_gives_a_verdict_leaves_the_attempt_to_a_person(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    gated = stage.gate(agent(t1=work("one")), "--architect", "cmd:echo I think so > $PROOFSTONE_VERDICT")
    assert (gated.exit, gated.states, gated.attempts) == (3, ["REVIEWING"], [1]), gated.stdout
    asks = gated.json["tasks"][0]["asks"]
    assert "was asked 3 times and gave no verdict (MALFORMED" in asks
    assert "--retry task-01" in stage.proofstone("status").stdout
    again = stage.resume("--retry", "1")
    assert (again.exit, again.states) == (3, ["REVIEWING"])
    assert stage.proofstone("approve", "last", "1", "approved").returncode == 0
    assert stage.resume().exit == 0
    assert stage.subjects() == ["feat(shop-01): One"]


@pytest.mark.seed("gate", "unknown-program-said-at-once")
def test_an_unknown_program_is_said_at_once(tmp_path: Path) -> None:
    text = plan(
        task("One", attributes='depends_on=""'),
        task("Two", attributes='depends_on=""', verify="frobnicate --all tests/\npython3 -m unittest tests.test_two"),
    )
    stage = Stage.set_up(tmp_path, text)
    gated = stage.gate(agent(t1="no-such-agent --go", t2=work("two")))
    assert (gated.exit, gated.states, gated.attempts) == (1, ["FAILED", "FAILED"], [1, 1]), gated.stdout
    asks = [one["asks"] for one in gated.json["tasks"]]
    assert "`no-such-agent` was not found" in asks[0] and "`frobnicate` was not found" in asks[1]
    classes = [one["failures"][0]["direction"]["failure_class"] for one in gated.json["tasks"]]
    assert classes[0] == "environmental"


BLOCKED_AT_FIRST = """
if ! grep -q BLOCKED "$PROOFSTONE_TASK"; then
    echo '{"status": "blocked", "error": "shop/two.py is missing; task 2 may not be complete"}' > "$PROOFSTONE_RESULT"
    exit 0
fi
grep -q "task 2 may not be complete" "$PROOFSTONE_TASK" || exit 9
test -f shop/two.py || exit 8
"""


@pytest.mark.seed("gate", "blocked-runs-dependency-first", "blocked-state-inconsistent", "blocked-is-recorded")
def test_a_blocked_task_waits_for_what_it_lacks_and_is_tried_again(tmp_path: Path) -> None:
    text = plan(
        task("One", attributes='depends_on=""'),
        task("Two", attributes='depends_on=""'),
        task("Three", attributes='depends_on="1"'),
    )
    stage = Stage.set_up(tmp_path, text)
    lies = """echo '{"status": "blocked", "error": "Required file not found: shop/one.py"}' > "$PROOFSTONE_RESULT"\n"""
    gated = stage.gate(agent(t1=BLOCKED_AT_FIRST + work("one"), t2=f"sleep 1\n{work('two')}", t3=lies))
    assert (gated.exit, gated.states) == (3, ["APPROVED", "APPROVED", "BLOCKED"]), gated.stdout
    assert gated.attempts == [2, 1, 1]
    assert stage.subjects() == ["feat(shop-01): Two", "feat(shop-01): One"]
    assert gated.failures(1) == ["BLOCKED"]
    state = (stage.root / "STATE.md").read_text()
    assert 'failure_type: "BLOCKED"' in state and "shop/two.py is missing" in state
    assert "state inconsistent: One (task-01) is finished" in gated.json["tasks"][2]["asks"]
    assert stage.json_status["asked"][0]["task"] == "task-03"


CRITIC = """cmd:
if grep -q '^  "attempt": 2' "$PROOFSTONE_REVIEW"; then
    echo '{"verdict": "REJECTED", "confidence": "HIGH", "findings": ["no error handling for null input"],' \
        '"concerns": ["the README is silent about it"], "feedback": "handle null"}' > "$PROOFSTONE_VERDICT"
else
    echo '{"verdict": "APPROVED", "confidence": "HIGH", "findings": ["null is handled"]}' > "$PROOFSTONE_VERDICT"
fi
"""


@pytest.mark.seed("gate", "gate-result-per-attempt", "rejection-in-retry-prompt")
def test_the_complete_result_of_each_attempt_is_kept(tmp_path: Path) -> None:
    told = """
if [ "$PROOFSTONE_ATTEMPT" = 3 ]; then
    grep -q "no error handling for null input" "$PROOFSTONE_TASK" || exit 9
    grep -q "the README is silent about it" "$PROOFSTONE_TASK" || exit 8
fi
if [ "$PROOFSTONE_ATTEMPT" = 1 ]; then echo 'raise ValueError("half done")' > shop/one.py; exit 0; fi
"""
    stage = Stage.set_up(tmp_path, plan(task("One", verify="python3 -c 'import shop.one'")))
    gated = stage.gate(agent(t1=told + work("one")), "--architect", CRITIC)
    assert (gated.exit, gated.attempts) == (0, [3]), gated.stdout
    kept = json.loads(next((stage.root / ".proofstone").glob("*/gate-results.json")).read_text())
    (recorded,) = stage.query("SELECT payload FROM events WHERE type = 'gate.result'")
    assert kept["gate_results"] == [recorded]
    first, second, third = recorded["results"]
    assert (first["outcome"], first["failure_type"], first["verify"][0]["exit_code"]) == ("FAILED", "VERIFY_FAILURE", 1)
    assert "half done" in first["verify"][0]["output_tail"] and first["duration_ms"] > 0
    assert (second["outcome"], second["failure_type"]) == ("FAILED", "ARCHITECT_REJECTION")
    assert [verdict["verdict"] for verdict in second["architect"]] == ["APPROVED", "REJECTED"]
    assert second["architect"][1]["findings"] == ["no error handling for null input"]
    assert second["architect"][1]["concerns"] == ["the README is silent about it"]
    assert (third["outcome"], third["commit_sha"]) == ("PASSED", gated.json["commit"])
    assert third["executor"]["files_modified"] == ["shop/one.py", "tests/test_one.py"]


@pytest.mark.seed("gate", "timeout-extended-by-person", "deadline-above-maximum", "deadline-raised-since")
def test_a_person_gives_a_task_more_time(tmp_path: Path) -> None:
    def write(seconds: int) -> str:
        return f"[gate]\nexecutor_seconds = {seconds}\nexecutor_seconds_max = 3\nretry_delay_seconds = 0\n"

    stage = Stage.set_up(tmp_path, plan(task("One")), settings=write(1))
    names = ("proofstone.toml", ".proofstone.toml")
    settings = next(stage.root / name for name in names if (stage.root / name).is_file())
    gated = stage.gate(agent(t1=f"sleep 5\n{work('one')}"))
    assert (gated.exit, gated.failures(1)) == (1, ["TIMEOUT"] * 2), gated.stdout
    assert "--retry task-01 --timeout 20m" in stage.proofstone("status").stdout
    refused = stage.proofstone("resume", "last", "--task", "1", "--timeout", "soon")
    assert refused.returncode == 2 and "for instance 20m" in refused.stderr
    settings.write_text(write(2))
    again = stage.resume("--task", "1", "--timeout", "1m")
    assert (again.exit, again.attempts) == (0, [3]), again.stdout
    assert "deadlines were raised since the run began: executor_seconds = 2" in again.json["notes"]
    settings.write_text(write(4))
    above = stage.proofstone("check")
    assert above.returncode == 2
    assert "executor_seconds: 4 is more than executor_seconds_max, which is 3" in above.stderr


@pytest.mark.seed("gate", "rejected-checkpoint-goes-on", "skip-without-work", "skip-reason-specific")
def test_a_rejected_checkpoint_and_a_skipped_task_without_work_have_a_way_on(tmp_path: Path) -> None:
    stop = '<task type="checkpoint:human-verify">\n<name>Look</name>\n<what-built>A shop</what-built>\n</task>\n'
    stage = Stage.set_up(tmp_path, plan(stop, task("Two"), task("Three")))
    assert stage.gate(agent(t2="exit 1", t3=work("three"))).states == ["PENDING"] * 3
    assert stage.proofstone("approve", "last", "1", "rejected", "--reason", "the shop is empty").returncode == 0
    assert "proofstone skip" in stage.proofstone("status").stdout
    unclear = stage.proofstone("skip", "last", "1", "--category", "false-negative", "--reason", "looks good to me")
    assert unclear.returncode == 2 and "which check or test is wrong" in unclear.stderr
    words = ("--category", "time-pressure", "--reason", "The fair begins today, Ada looks tomorrow")
    assert stage.proofstone("skip", "last", "1", *words).returncode == 0
    gated = stage.resume()
    assert gated.states == ["SKIPPED", "FAILED", "PENDING"], gated.stdout
    assert stage.proofstone("skip", "last", "2", *words).returncode == 0
    assert "it has left nothing to commit" in stage.proofstone("status").stdout
    said = stage.proofstone("done", "last", "2")
    assert said.returncode == 0, said.stderr
    last = stage.resume()
    assert (last.exit, last.states) == (0, ["SKIPPED", "SKIPPED", "APPROVED"]), last.stdout
    assert stage.subjects() == ["feat(shop-01): Three"]
    assert last.json["confidence"] == "medium"
