"""An author who holds a test or a requirement for wrong says so; a person decides, and no verdict changes before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gate.stage import Stage as GateStage
from tests.gate.stage import agent
from tests.pipeline.stage import Stage, claim, planner
from tests.pipeline.stage import task as planned_task
from tests.staging import plan, task
from tests.terminal import run_in_terminal
from tests.workshop import Workshop

TEST = "tests/test_sums.py::test_total"
BECAUSE = "the README says that every total has a fee of 1"
AGENT = {"CLAUDECODE": "1"}
ACCEPT = ("dispute", "decide", "last", "accept", "--reason", "the fee is new, and the README is right")


def test_an_agent_disputes_and_a_person_decides(workshop: Workshop, root: Path) -> None:
    workshop.write(root, {"notes.txt": "README: a fee of 1\n"})
    workshop.git(root, "add", "--all")
    workshop.proofstone(root, "hook", "install")
    stop = json.dumps({"session_id": "s", "cwd": str(root)})
    sent_back = workshop.proofstone(root, "hook", "run", "agent-stop", "--agent", "claude", told=stop, env=AGENT)
    reason = json.loads(sent_back.stdout)["reason"]
    assert "proofstone dispute" in reason and "accept" not in reason

    options = ("--because", BECAUSE, "--evidence", "notes.txt", "--json")
    raised = json.loads(workshop.proofstone(root, "dispute", TEST, *options, env=AGENT).stdout)
    assert raised["raised_by"].startswith("Claude Code (") and raised["run"] and raised["evidence"]

    run = workshop.check(root, "--staged", env=AGENT)
    assert (run.exit, run.json["outcome"]) == (3, "needs-decision")
    assert run.json["disputes"] == [
        {"subject": TEST, "claim": BECAUSE, "raised_by": raised["raised_by"], "id": raised["id"]}
    ]
    assert run.json["tree"] == raised["tree"]
    let_go = json.loads(
        workshop.proofstone(root, "hook", "run", "agent-stop", "--agent", "claude", told=stop, env=AGENT).stdout
    )
    assert "decision" not in let_go and BECAUSE in let_go["systemMessage"] and "unproven" in let_go["systemMessage"]
    assert "needs-decision" in workshop.run(root, "git", "commit", "-m", "x").stderr

    for env, says in ((AGENT, "the shell of Claude Code"), ({"PROOFSTONE_SANDBOX": "plain"}, "inside a sandbox")):
        refused = workshop.proofstone(root, *ACCEPT, "--accepted-by", "Ada", env=env)
        assert refused.returncode == 2 and says in refused.stderr
    assert workshop.proofstone(root, *ACCEPT).returncode == 2  # there is no terminal

    decided = run_in_terminal(workshop, root, *ACCEPT)
    assert decided.exit == 0, decided.screen
    again = workshop.check(root, "--staged")
    (acceptance,) = again.json["accepted"]
    assert (again.exit, again.json["confidence"], again.json["disputes"]) == (0, "medium", [])
    assert (acceptance["rule"], acceptance["subject"], acceptance["method"]) == (
        "edited-expectation",
        TEST,
        "interactive",
    )
    assert any("decided about" in note for note in again.json["notes"])
    assert workshop.run(root, "git", "commit", "-m", "x").returncode == 0
    assert "accept by" in workshop.proofstone(root, "dispute", "--list").stdout


@pytest.mark.ci
def test_a_rejected_dispute_leaves_the_verdict_and_one_after_a_pass_stops_the_commit(
    workshop: Workshop, root: Path
) -> None:
    raised = workshop.proofstone(root, "dispute", "edited-expectation", "--because", BECAUSE)
    assert raised.returncode == 0, raised.stderr
    assert workshop.check(root).exit == 3
    workshop.write(root, {"other.py": "def broken(:\n"})
    other = workshop.check(root)
    assert (other.exit, other.json["outcome"], other.json["disputes"]) == (1, "failed", [])
    (root / "other.py").unlink()
    reject = (
        "dispute",
        "decide",
        "last",
        "reject",
        "--reason",
        "the old total is what was sold",
        "--accepted-by",
        "Ada",
    )
    assert workshop.proofstone(root, *reject).returncode == 0
    assert workshop.proofstone(root, *reject).returncode == 2  # it is decided
    failed = workshop.check(root)
    assert (failed.exit, failed.json["outcome"], failed.json["accepted"]) == (1, "failed", [])

    workshop.git(root, "checkout", "--quiet", ".")
    assert workshop.proofstone(root, "dispute", "the task", "--because", "no total can be right").returncode == 0
    nothing = workshop.check(root)
    assert (nothing.exit, nothing.json["outcome"], nothing.json["checks"]) == (3, "needs-decision", [])
    workshop.write(root, {"more.py": "def one():\n    return 1\n"})
    workshop.write(root, {"tests/test_more.py": "from more import one\n\n\ndef test_one():\n    assert one() == 1\n"})
    workshop.git(root, "add", "--all")
    workshop.proofstone(root, "hook", "install")
    assert workshop.check(root, "--staged").exit == 0
    assert workshop.proofstone(root, "dispute", "the requirement", "--because", "one is two here").returncode == 0
    refused = workshop.run(root, "git", "commit", "-m", "x")
    assert refused.returncode != 0 and "no person has decided" in refused.stderr
    assert workshop.check(root, "--staged").json["outcome"] == "needs-decision"


def test_what_is_no_dispute_is_refused_and_said(workshop: Workshop, root: Path) -> None:
    for args, says in (
        ((), "name one test"),
        (("a", "b"), "more than one subject"),
        ((TEST,), "--because"),
        ((TEST, "--because", "no"), "say in a few words"),
        ((TEST, "--because", BECAUSE, "--evidence", "nowhere"), "--evidence nowhere"),
        (("decide", "last", "perhaps"), "not a decision"),
        (("decide", "nothing", "accept", "--reason", "because it is", "--accepted-by", "Ada"), "no open dispute"),
        (("--list", "a"), "takes no subject"),
    ):
        done = workshop.proofstone(root, "dispute", *args)
        assert done.returncode == 2 and says in done.stderr, done.stderr
    inside = workshop.proofstone(root, "dispute", TEST, "--because", BECAUSE, env={"PROOFSTONE_SANDBOX": "bubblewrap"})
    assert inside.returncode == 2 and "`disputes` of your result" in inside.stderr
    assert "nothing is disputed here" in workshop.proofstone(root, "dispute", "--list").stdout


DISPUTE = json.dumps(
    {
        "status": "blocked",
        "error": "a test contradicts the task",
        "disputes": [{"subject": "tests.test_cart.Cart.test_total", "because": BECAUSE}],
    }
)
SHELL = f"""if [ "$PROOFSTONE_ATTEMPT" = 1 ]; then
cat > "$PROOFSTONE_RESULT" <<'JSON'
{DISPUTE}
JSON
else
grep -q 'A person decided: your dispute of tests.test_cart.Cart.test_total is right' "$PROOFSTONE_TASK" || exit 9
printf 'def total(prices):\\n    return sum(prices) + 1\\n' > shop/cart.py
sed -i 's/, 3)/, 4)/' tests/test_cart.py
fi"""
FEE = task("Fee", files="shop/cart.py, tests/test_cart.py", verify="python3 -m unittest tests.test_cart")


def test_an_executor_disputes_and_the_run_asks_a_person(tmp_path: Path) -> None:
    site = GateStage.set_up(tmp_path, plan(FEE))
    gated = site.gate(agent(t1=SHELL))
    assert (gated.exit, gated.json["outcome"], gated.states) == (3, "needs_human", ["BLOCKED"])
    asks = gated.json["tasks"][0]["asks"]
    assert asks.startswith("tests.test_cart.Cart.test_total is disputed by cmd:") and BECAUSE in asks
    assert [entry["claim"] for entry in gated.json["tasks"][0]["disputes"]] == [BECAUSE]
    assert BECAUSE in (site.root / "STATE.md").read_text()
    listed = json.loads(site.proofstone("answer", "last", "--json").stdout)["questions"]
    assert [question["options"] for question in listed] == [["accept", "reject", "amend"]]
    accept = ("answer", "last", "accept", "--note", "the fee is part of every total")
    refused = site.workshop.proofstone(site.root, *accept, env=AGENT)
    assert refused.returncode == 2 and "the shell of Claude Code" in refused.stderr
    answered = run_in_terminal(site.workshop, site.root, *accept)
    assert answered.exit == 0, answered.screen
    done = site.resume()
    assert (done.exit, done.states, done.attempts) == (0, ["APPROVED"], [2]), done.stderr
    (acceptance,) = done.json["tasks"][0]["accepted"]
    assert (acceptance["rule"], acceptance["subject"]) == ("edited-expectation", "tests.test_cart.Cart.test_total")
    assert "Proofstone-Accepted: edited-expectation" in site.git("log", "-1", "--format=%B", site.branch)


CART = "tests.test_cart.Cart.test_total"
EDITS = [
    {"tool": {"edit": {"path": "shop/cart.py", "old": "sum(prices)", "new": "sum(prices) + 1"}}},
    {"tool": {"edit": {"path": "tests/test_cart.py", "old": "), 3)", "new": "), 4)"}}},
]


def test_an_agent_of_the_pipeline_disputes_by_its_tool_and_the_commit_names_the_decision(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path)
    files = [{"path": path, "risk": "🟢"} for path in ("shop/cart.py", "tests/test_cart.py")]
    fee = planned_task(
        "cart", files=files, relevant_context=[], verify=["python3 -m unittest tests.test_cart"], done=["it passes"]
    )
    doubts = {
        "role": "executor",
        "match": {"attempt": 1},
        "steps": [{"tool": {"dispute": {"subject": CART, "because": BECAUSE}}}],
        "output": claim(),
    }
    does = {"role": "executor", "steps": EDITS, "output": claim("shop/cart.py", "tests/test_cart.py")}
    came = stage.run(planner(fee), doubts, does, args=("--files", "shop/cart.py"))
    assert (came.exit, came.outcome) == (3, "needs_human"), came.report.reason
    assert f"{CART} is disputed by script:" in came.report.reason and BECAUSE in came.report.reason
    reason = "the fee is part of every total"
    answered = run_in_terminal(stage.workshop, stage.root, "answer", "last", "accept", "--note", reason)
    assert answered.exit == 0, answered.screen
    done = stage.resume("last")
    assert (done.exit, done.outcome) == (0, "passed"), done.report.reason
    assert done.report.confidence == "medium"
    (acceptance,) = done.report.gates[-1].tasks[0].accepted
    assert (acceptance.rule, acceptance.subject, acceptance.reason) == ("edited-expectation", CART, reason)
    assert done.report.final is not None and done.report.final.accepted == (acceptance,)
    message = stage.git("log", "-1", "--format=%B", done.report.commit or "")
    assert f"Proofstone-Accepted: edited-expectation ({CART}): accepted by" in message and reason in message
    bundle = json.loads(stage.proofstone("bundle", "last", "--json").stdout)
    assert [ending["accepted"][0]["reason"] for ending in bundle["tasks"] if ending["accepted"]] == [reason]
    assert reason in stage.proofstone("bundle", "last").stdout
