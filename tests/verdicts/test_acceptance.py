"""A finding is accepted by a person: at a terminal, as an approver, or by a setting of the base. It is never hidden."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from proofstone import check_change
from proofstone.errors import InputError
from proofstone.ledger.connection import ledger_path
from tests.gate.stage import Stage, agent
from tests.staging import plan, task
from tests.terminal import run_in_terminal
from tests.workshop import Workshop

WHY = "a service fee of 1 is part of every total"
ACCEPT = ("--accept-test-changes", WHY)
ASKS = "to accept, type why"


def accepted_events(workshop: Workshop) -> list[dict[str, str]]:
    with closing(sqlite3.connect(ledger_path(workshop.proofstone_home))) as ledger:
        rows = ledger.execute("SELECT payload FROM events WHERE type = 'finding.accepted' ORDER BY seq").fetchall()
    return [json.loads(payload) for (payload,) in rows]


@pytest.mark.parametrize(
    ("env", "options", "says"),
    [
        ({}, ACCEPT, "no terminal"),
        ({}, ("--accept", f"edited-expectation={WHY}"), "no terminal"),
        ({"CLAUDECODE": "1"}, ACCEPT, "the shell of Claude Code"),
        ({"CODEX_THREAD_ID": "x"}, (*ACCEPT, "--accepted-by", "Ada"), "the shell of Codex"),
        ({"GEMINI_CLI": "1"}, (*ACCEPT, "--accepted-by", "Ada"), "the shell of Gemini CLI"),
        ({"PROOFSTONE_TASK": "t"}, (*ACCEPT, "--accepted-by", "Ada"), "an executor of Proofstone"),
        ({"PROOFSTONE_SANDBOX": "bubblewrap"}, (*ACCEPT, "--accepted-by", "Ada"), "inside a sandbox"),
        ({}, ("--accepted-by", "Ada"), "nothing is accepted"),
        ({}, (*ACCEPT, "--accepted-by", " "), "not the name of a person"),
    ],
)
def test_without_a_person_it_is_refused_before_anything_is_run(
    workshop: Workshop, root: Path, env: dict[str, str], options: tuple[str, ...], says: str
) -> None:
    done = workshop.proofstone(root, "check", *options, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "proofstone dispute" in done.stderr or says in ("nothing is accepted", "not the name of a person")
    assert not ledger_path(workshop.proofstone_home).exists()


def test_a_person_at_a_terminal_is_asked_and_the_answer_is_shown_everywhere(workshop: Workshop, root: Path) -> None:
    workshop.proofstone(root, "hook", "install")
    refused = run_in_terminal(workshop, root, "check", *ACCEPT, typed={"accept for this reason?": "\n"})
    assert refused.exit == 1
    assert f"your reason: {WHY}" in refused.screen
    assert accepted_events(workshop) == []

    workshop.git(root, "add", "--all")
    typed = {ASKS: "why\n", "say why in a few words": f"{WHY}\n"}
    session = run_in_terminal(workshop, root, "check", "--staged", typed=typed)
    assert session.exit == 0, session.screen
    question = session.screen[: session.screen.index(ASKS)]
    assert "edited-expectation: 1 finding that only a person may accept" in question
    assert "tests/test_sums.py::test_total" in question and "- assert total([1, 2]) == 3" in question
    report = json.loads(workshop.proofstone(root, "status", "last", "--json").stdout)
    (acceptance,) = report["accepted"]
    assert {name: acceptance[name] for name in ("rule", "reason", "method")} == {
        "rule": "edited-expectation",
        "reason": WHY,
        "method": "interactive",
    }
    assert (report["outcome"], report["confidence"]) == ("passed", "medium")
    assert accepted_events(workshop) == [acceptance]
    line = f"edited-expectation: accepted by {acceptance['accepted_by']} at a terminal: {WHY}"
    assert line in session.screen
    done = workshop.run(root, "git", "commit", "-m", "x")
    assert done.returncode == 0 and f"edited-expectation: {WHY}" in done.stderr


@pytest.mark.ci
def test_an_approver_counts_for_a_check_and_for_a_commit_only_if_the_settings_say_so(
    workshop: Workshop, root: Path
) -> None:
    workshop.proofstone(root, "hook", "install")
    workshop.git(root, "add", "--all")
    options = ("--staged", *ACCEPT, "--accepted-by", "Ada Lovelace <ada@example.org>")
    run = workshop.check(root, *options)
    expected = {
        "rule": "edited-expectation",
        "reason": WHY,
        "accepted_by": "Ada Lovelace <ada@example.org>",
        "method": "approver",
        "subject": "",
    }
    assert (run.exit, run.json["confidence"], run.json["accepted"]) == (0, "medium", [expected])
    assert accepted_events(workshop) == [expected]
    refused = workshop.run(root, "git", "commit", "-m", "x")
    assert refused.returncode != 0 and "an acceptance that does not count" in refused.stderr
    assert f"edited-expectation: {WHY} (Ada Lovelace <ada@example.org>, approver)" in refused.stderr

    workshop.git(root, "stash")
    workshop.write(root, {"proofstone.toml": '[hook]\naccepts = ["interactive", "approver"]\n'})
    workshop.commit(root)
    workshop.git(root, "stash", "pop", "--index")
    assert workshop.check(root, *options).exit == 0
    done = workshop.run(root, "git", "commit", "-m", "x")
    assert done.returncode == 0 and "Ada Lovelace" in done.stderr


@pytest.mark.ci
def test_a_setting_of_the_base_accepts_and_one_of_the_change_does_not(workshop: Workshop, root: Path) -> None:
    accept = f'[check.accept]\nedited-expectation = "{WHY}"\n'
    workshop.write(root, {"proofstone.toml": accept})
    for options in ((), ("--use-worktree-config",)):
        run = workshop.check(root, *options)
        assert run.exit == 1 and run.json["accepted"] == []
        assert {"edited-expectation", "weakened-settings"} <= {finding["rule"] for finding in run.json["findings"]}
    workshop.configure(root, accept)
    run = workshop.check(root)
    (acceptance,) = run.json["accepted"]
    assert (run.exit, run.json["confidence"], acceptance["method"]) == (0, "medium", "setting")
    assert acceptance["accepted_by"].startswith("check.accept at ")
    workshop.configure(root, '[check.accept]\ncanary-passed = "nobody may accept this"\n')
    bad = workshop.check(root)
    assert bad.exit == 2 and "check.accept canary-passed: no finding of that rule can be accepted" in bad.stderr


def test_the_public_api_needs_the_name_of_a_person(
    workshop: Workshop, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "PATH"):
        monkeypatch.setenv(name, workshop.environment[name])
    accept = {"edited-expectation": WHY}
    with pytest.raises(InputError, match="no terminal"):
        check_change(root, accept=accept, home=workshop.proofstone_home)
    report = check_change(root, accept=accept, accepted_by="Ada", home=workshop.proofstone_home)
    assert [(given.rule, given.accepted_by, given.method) for given in report.accepted] == [
        ("edited-expectation", "Ada", "approver")
    ]
    monkeypatch.setenv("CLAUDECODE", "1")
    with pytest.raises(InputError, match="Claude Code"):
        check_change(root, accept=accept, accepted_by="Ada", home=workshop.proofstone_home)


GUTTED = """printf 'def total(prices):\\n    return sum(prices) + 1\\n' > shop/cart.py
sed -i 's/, 3)/, 4)/' tests/test_cart.py"""
FEE = task("Fee", files="shop/cart.py, tests/test_cart.py", verify="python3 -m unittest tests.test_cart")


@pytest.mark.ci
def test_a_task_that_only_a_person_could_let_pass_asks_one(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(FEE))
    gated = stage.gate(agent(t1=GUTTED))
    assert (gated.exit, gated.json["outcome"], gated.states) == (3, "needs_human", ["FAILED"])
    assert "edited-expectation" in gated.reasons(1)
    told = (stage.root / "STATE.md").read_text()
    assert "task-01=accept --note" in told
    assert "- edited-expectation: tests/test_cart.py" in gated.json["tasks"][0]["asks"]
    accept = ("answer", "last", "accept", "--note", WHY)
    assert stage.proofstone(*accept).returncode == 2  # there is no terminal
    refused = stage.workshop.proofstone(stage.root, *accept, "--accepted-by", "Ada", env={"CODEX_SANDBOX": "x"})
    assert refused.returncode == 2 and "the shell of Codex" in refused.stderr
    assert stage.proofstone("answer", "last", "accept", "--note", "ok", "--accepted-by", "Ada").returncode == 2
    answered = run_in_terminal(stage.workshop, stage.root, *accept)
    assert answered.exit == 0, answered.screen
    done = stage.resume()
    assert (done.exit, done.states, done.attempts) == (0, ["APPROVED"], [3]), done.stderr
    (acceptance,) = done.json["tasks"][0]["accepted"]
    assert (acceptance["rule"], acceptance["reason"], acceptance["method"]) == (
        "edited-expectation",
        WHY,
        "interactive",
    )
    assert done.json["tasks"][0]["confidence"] == "medium"
    line = f"edited-expectation: accepted by {acceptance['accepted_by']} at a terminal: {WHY}"
    assert f"Proofstone-Accepted: {line}" in stage.git("log", "-1", "--format=%B", stage.branch)
    assert line in (stage.root / "STATE.md").read_text() and line in (stage.root / "SUMMARY.md").read_text()
    bundle = json.loads(stage.proofstone("bundle", "last", "--json").stdout)
    assert [ending["accepted"] for ending in bundle["tasks"]] == [[acceptance]]


@pytest.mark.ci
def test_what_a_committed_plan_declares_is_a_setting_of_the_base(tmp_path: Path) -> None:
    declared = task(
        "Fee",
        files="shop/cart.py, tests/test_cart.py",
        verify="python3 -m unittest tests.test_cart",
        attributes=f'test-changes="{WHY}"',
    )
    stage = Stage.set_up(tmp_path, plan(declared))
    gated = stage.gate(agent(t1=GUTTED))
    assert (gated.exit, gated.states) == (0, ["APPROVED"]), gated.stderr
    (acceptance,) = gated.json["tasks"][0]["accepted"]
    assert (acceptance["method"], gated.json["tasks"][0]["confidence"]) == ("setting", "medium")
    assert acceptance["accepted_by"].startswith("PLAN.md at ")
