"""What the task gate may say: nothing that nobody has judged or proven counts as met, through the command line."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gate.stage import GateResult, Stage, agent, work
from tests.staging import FILES, plan, task
from tests.supervision.stage import CLAIM, UNDERSTANDS, WORK, analysis, executor, judge, says
from tests.supervision.stage import Stage as Supervised
from tests.supervision.test_runs import mini
from tests.waiting import PATIENCE
from tests.workshop import Workshop

PROSE = "The parser refuses an empty file"
COMMAND = "python3 -c 'import shop.one'"


def bundle_of(site: Stage | Supervised, run: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(site.proofstone("bundle", run, "--json").stdout)
    return read


def test_what_nobody_judged_is_unjudged_and_is_asked_once(tmp_path: Path) -> None:
    """Two tasks with prose, no architect: both are done, and one question names all of it. The answer has a name."""
    text = plan(
        task(
            "One",
            done=f"{PROSE}; `{COMMAND}` exits 0",
            verify="which python3\npython3 -m unittest tests.test_one",
        ),
        task("Two", done="It is easy to read"),
    )
    site = Stage.set_up(tmp_path, text)
    gated = site.gate(agent(t1=work("one"), t2=work("two")))
    assert (gated.exit, gated.json["outcome"], gated.states) == (3, "needs_human", ["APPROVED", "APPROVED"])
    assert "nobody has judged 2 criteria" in gated.json["reason"] and PROSE in gated.json["asks"]
    run = gated.json["run_id"]
    first = {one["criterion"]: one for one in gated.json["tasks"][0]["criteria"]}
    assert first[PROSE]["status"] == "unjudged"
    assert first[f"`{COMMAND}` exits 0"]["status"] == "shown" and first[f"`{COMMAND}` exits 0"]["command"] == COMMAND
    concerns = gated.json["tasks"][0]["concerns"]
    assert any("`which python3`" in one and "proves nothing about this change" in one for one in concerns), concerns
    assert not (site.root / "SUMMARY.md").exists()
    for shown in ((site.root / "STATE.md").read_text(), site.proofstone("status", run).stdout):
        assert f"[ ] task-01: {PROSE}" in shown and f"approve {run} criteria approved" in shown, shown

    refused = site.proofstone("approve", run, "criteria", "rejected")
    assert refused.returncode == 2 and "needs a reason" in refused.stderr
    said = site.proofstone("approve", run, "criteria", "approved", "--reason", "I have read it")
    assert said.returncode == 0, said.stderr
    again = site.resume()
    assert (again.exit, again.json["outcome"], again.json["confidence"]) == (0, "passed", "medium")
    summary = (site.root / "SUMMARY.md").read_text()
    assert f"- [x] {PROSE}: judged by `human (" in summary and "on the word of" not in summary
    bundle = bundle_of(site, run)
    states = {one["criterion"]: (one["status"], one["check"], one["result"]) for one in bundle["criteria"]}
    assert states[PROSE][0] == "judged" and states["It is easy to read"][0] == "judged"
    assert states[f"`{COMMAND}` exits 0"] == ("shown", "verify-3", "passed")
    (word,) = [one for one in bundle["approvals"] if one["gate"] == "criteria"]
    assert (word["option"], word["words"]) == ("approved", "I have read it") and word["by"]
    twice = site.proofstone("approve", run, "criteria", "approved")
    assert twice.returncode == 2 and "no criterion waits" in twice.stderr


@pytest.mark.ci
def test_a_criterion_that_a_person_rejects_fails_the_run(tmp_path: Path) -> None:
    site = Stage.set_up(tmp_path, plan(task("One", done=PROSE)))
    assert site.gate(agent(t1=work("one"))).exit == 3
    assert site.proofstone("approve", "last", "criteria", "rejected", "--reason", "it does not").returncode == 0
    again = site.resume()
    assert (again.exit, again.json["outcome"]) == (1, "failed")
    assert PROSE in again.json["reason"]
    (one,) = again.json["tasks"][0]["criteria"]
    assert (one["status"], one["note"]) == ("unmet", "it does not")


def test_a_command_that_a_criterion_names_is_run_and_fails_the_task(tmp_path: Path) -> None:
    site = Stage.set_up(tmp_path, plan(task("One", done="All tests pass; `python3 -m shop.missing` exits 0")))
    gated = site.gate(agent(t1=work("one")))
    assert (gated.exit, gated.states) == (1, ["FAILED"])
    (why, *_) = [one["detail"] for one in gated.json["tasks"][0]["failures"][0]["reasons"] if one["check"] == "done"]
    assert "`python3 -m shop.missing` exits 0” is not met" in why and "exit code 1" in why
    assert site.git("branch", "--list", "proofstone/*") == ""


@pytest.mark.ci
def test_scans_and_commands_that_pass_on_the_base_are_no_signals(tmp_path: Path) -> None:
    """Without tests: `which python3` is no second signal, and scans for readiness are no third for a large task."""
    bare = {path: text for path, text in FILES.items() if not path.startswith("tests/")}
    text = plan(
        task(
            "One", files="shop/one.py", verify="which python3", done="Verification passes", attributes='depends_on=""'
        ),
        task(
            "Auth",
            files="shop/auth.py",
            verify="python3 -c 'from shop.auth import auth; assert auth() == 1'",
            done="Verification passes",
            attributes='depends_on=""',
        ),
    )
    site = Stage.set_up(tmp_path, text, files=bare)
    only = {"t1": work("one").splitlines()[0], "t2": work("auth").splitlines()[0]}
    gated = site.gate(agent(**only))
    assert (gated.exit, gated.states) == (1, ["FAILED", "FAILED"])
    assert gated.reasons(1) == {"signals"} and gated.reasons(2) == {"signals"}, gated.json
    (first, second) = [one["failures"][0]["reasons"][0]["detail"] for one in gated.json["tasks"]]
    assert first.startswith("1 of the 2 required") and second.startswith("2 of the 3 required")


@pytest.mark.ci
def test_a_tree_that_failed_and_passes_now_is_flaky_in_every_attempt(tmp_path: Path) -> None:
    """The verify command depends on a file outside the tree, which changes after the first attempt has failed."""
    files = {**FILES, ".gitignore": "local.txt\n"}
    settings = '[environment]\ninclude = ["local.txt"]\n[gate]\nretry_delay_seconds = 0\n'
    site = Stage.set_up(tmp_path, plan(task("One", verify="python3 -m unittest tests.test_one\ngrep -q yes local.txt")),
                     files, settings)  # fmt: skip
    site.workshop.trust_everything()
    outside = site.root / "local.txt"
    outside.write_text("no ")
    running = site.workshop.start(
        site.root, "gate", "PLAN.md", "--executor", agent(t1=work("one")), "--json", "--quiet"
    )
    state = site.root / "STATE.md"
    while running.poll() is None and not (state.is_file() and "VERIFY_FAILURE" in state.read_text()):
        time.sleep(0.02)
    outside.write_text("yes")
    stdout, stderr = running.communicate(timeout=PATIENCE)
    gated = GateResult(running.returncode, stdout, stderr)
    assert (gated.exit, gated.states, gated.attempts) == (1, ["FAILED"], [3]), gated.json
    last = {one["check"]: one["detail"] for one in gated.json["tasks"][0]["failures"][-1]["reasons"]}
    assert "failed on this very tree in attempt 1" in last["flaky"], last
    assert site.git("branch", "--list", "proofstone/*") == ""


OWN = ("shop/one.py", "tests/test_one.py")
STRAYS = ("shop/auth.py", ".github/workflows/ci.yml")
LEAVE_STRAYS = "mkdir -p .github/workflows; for f in {}; do echo 'x = 1' > $f; done".format(" ".join(STRAYS))


@pytest.mark.ci
def test_a_significant_deviation_is_not_amended_into_the_plan(tmp_path: Path) -> None:
    """The agent confesses undeclared CI and auth changes and hands them over: refused. Then it asks, and a person is
    asked in turn.
    """
    stage = Supervised.set_up(tmp_path / "stage")
    listed = ", ".join(f"{path} (NEW)" for path in STRAYS)
    confesses = says("RV-3", mini("SIGNIFICANT_DEVIATION", f"shop/one.py, tests/test_one.py, {listed}"))
    files = [{"path": path, "new": False} for path in OWN]
    again = {"role": "executor", "match": {"asked": "impact", "attempt": 2}, "output": analysis(files=files)}
    came = stage.gate(
        again,
        *UNDERSTANDS,
        judge(),
        confesses,
        executor(
            {"tool": {"run": {"command": LEAVE_STRAYS}}},
            *WORK,
            output={**CLAIM, "files_modified": [*OWN, *STRAYS]},
            attempt=1,
        ),
        executor(
            {"tool": {"read": {"path": "shop/cart.py"}}},
            output={"status": "blocked", "error": "it needs shop/auth.py, which is not mine"},
        ),
    )
    assert (came.exit, came.json.get("outcome")) == (3, "needs_human"), (came.json, came.stderr)
    assert came.task["state"] == "BLOCKED" and "it needs shop/auth.py" in came.task["asks"]
    assert stage.events(stage.runs[-1], "plan.amended") == []
    assert {"scope", "significant-deviation"} <= set(came.reasons), came.reasons
    told = [one["told"]["text"] for one in stage.messages(stage.runs[-1], "Attended") if one["told"]]
    assert any("a person or a new plan must decide" in one for one in told)
    assert stage.workshop.git(stage.root, "branch", "--list", "proofstone/*") == ""


def test_a_file_that_was_added_is_shown_to_everybody_and_costs_confidence(tmp_path: Path) -> None:
    """A small deviation is allowed, and stands beside the plan's own files for the architect, report and bundle."""
    stage = Supervised.set_up(tmp_path / "stage")
    stray = {"tool": {"run": {"command": "echo 'x = 1' > shop/other.py"}}}
    honest = says("RV-3", mini("MINOR_ADJUSTMENT", "shop/one.py, tests/test_one.py, shop/other.py (NEW)"))
    claim = {**CLAIM, "files_modified": [*OWN, "shop/other.py"]}
    came = stage.gate(*UNDERSTANDS, judge(), honest, executor(stray, *WORK, output=claim))
    assert (came.exit, came.task["confidence"]) == (0, "medium"), came.json
    added = "shop/other.py is not among the plan's files; it was added while the task ran, by executor"
    assert any(one.startswith(added) for one in came.task["concerns"]), came.task["concerns"]
    run = stage.runs[-1]
    (asked,) = [one for one in stage.messages(run, "Dispatch") if one["dispatch"] == "task-01/a1/architect"]
    sections = dict(part.partition("\n")[::2] for part in asked["request"]["text"].split("\n## "))
    assert "shop/one.py" in sections["Files"] and "shop/other.py" not in sections["Files"]
    assert added in sections["Files added"]
    assert bundle_of(stage, run)["tasks"][0]["added_files"][0].startswith(added)


def test_a_requirement_is_a_criterion_of_every_unfinished_task_at_once(tmp_path: Path) -> None:
    """It comes while the first of two tasks is under way; a later one, for a file of no task, keeps the run open."""
    text = plan(task("One"), task("Two"), task("Three", attributes='depends_on=""'))
    site = Stage.set_up(tmp_path, text)
    waits = "while ! [ -e go ]; do sleep 0.1; done; rm go\n"
    running = site.workshop.start(
        site.root, "gate", "PLAN.md", "--executor", agent(t1=waits + work("one"), t2=work("two"), t3=work("three")),
        "--json", "--quiet",
    )  # fmt: skip
    try:
        place = _wait_for_work_tree(site.workshop, "task-01")
        run = place.parent.parent.name
        assert site.proofstone("amend", run, "limit the rate").returncode == 0
        assert site.proofstone("amend", run, "say it in the manual", "--files", "docs/manual.md").returncode == 0
        (place / "go").touch()
        stdout, stderr = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    gated = GateResult(running.returncode, stdout, stderr)
    assert (gated.exit, gated.json["outcome"]) == (3, "needs_human"), gated.stdout + stderr
    both = gated.json["requirements"]
    assert [(one["text"], one["is_met"]) for one in both] == [
        ("limit the rate", False),
        ("say it in the manual", False),
    ]
    assert {"task-01", "task-02"} <= set(both[0]["tasks"]) and both[1]["tasks"] == []
    criteria = {one["criterion"]: one["is_added"] for one in gated.json["tasks"][1]["criteria"]}
    assert criteria["limit the rate"] is True
    for shown in ((site.root / "STATE.md").read_text(), site.proofstone("status", run).stdout):
        assert "limit the rate" in shown and "say it in the manual" in shown
    assert [one["is_met"] for one in bundle_of(site, run)["requirements"]] == [False, False]
    assert site.proofstone("approve", run, "criteria", "approved").returncode == 0
    again = site.resume()
    assert (again.exit, again.json["confidence"]) == (0, "medium"), again.json
    assert all(one["is_met"] for one in again.json["requirements"])
    assert "- [x] limit the rate (added by" in (site.root / "SUMMARY.md").read_text()


def _wait_for_work_tree(workshop: Workshop, task_id: str) -> Path:
    for _ in range(1200):
        found = [*(workshop.proofstone_home / "work").glob(f"*/{task_id}/files/shop")]
        if found:
            return found[0].parent
        time.sleep(0.05)
    raise AssertionError("the first task never began")


@pytest.mark.ci
def test_a_person_who_names_a_file_allows_the_task_to_change_it(tmp_path: Path) -> None:
    """The executor is blocked for want of a 🔴 file. The person names it, and it is shown as added by them."""
    asks = """if [ "$PROOFSTONE_ATTEMPT" = 1 ]; then
echo '{"status": "blocked", "error": "it needs shop/auth.py"}' > "$PROOFSTONE_RESULT"; exit 0; fi
echo 'KEY = 1' > shop/auth.py
"""
    site = Stage.set_up(tmp_path, plan(task("One")))
    assert site.gate(agent(t1=asks + work("one"))).exit == 3
    files = ("--files", "shop/one.py", "--files", "shop/auth.py")
    assert site.proofstone("amend", "last", "put the key into shop/auth.py", *files).returncode == 0
    gated = site.resume("--retry", "task-01")
    assert (gated.exit, gated.states) == (3, ["APPROVED"]), gated.json
    (one,) = [text for text in gated.json["tasks"][0]["concerns"] if "shop/auth.py is not among" in text]
    assert "by executor" not in one and "put the key into shop/auth.py" in one
    assert gated.json["tasks"][0]["confidence"] == "medium"
    assert "put the key into shop/auth.py" in gated.json["asks"]
