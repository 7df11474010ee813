"""Models as executors and architects of the gate, over real HTTP: proof, spending, stopping, going on, recording."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from proofstone.testing.model_server.answers import HttpError, Reply, WireProtocol
from tests.agents.models import APPROVES, MODULE, PLAN, TEST, WRITES, answers, calls, desk
from tests.gate.stage import Stage
from tests.staging import FILES, plan, task
from tests.waiting import PATIENCE

SWEPT = pytest.mark.sweep
"""Further variants of what is tried in every run."""
WIRES = [pytest.param(wire, marks=[] if wire is WireProtocol.OPENAI_CHAT else [SWEPT]) for wire in WireProtocol]


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_does_a_task_another_reviews_it_and_what_passed_is_committed(
    tmp_path: Path, wire: WireProtocol
) -> None:
    with desk(tmp_path, wire) as at:
        code, report, errors = at.gate()
        assert code == 0, (report, errors)
        assert (at.model.count("executor"), at.model.count("architect")) == (len(WRITES), len(APPROVES))
        told = " ".join(text for _, text in at.model.asked["architect"][0].messages)
        assert "+def one():" in told, "who reviews is shown the change"
        assert at.stage.subjects() == ["feat(shop-01): One"]
        assert at.stage.git("show", f"{at.stage.branch}:shop/one.py") + "\n" == MODULE
        cost: Any = report["cost"]
        assert cost["requests"] == len(WRITES) + len(APPROVES) and cost["unpriced_requests"] == 0
        assert cost["usd"] == pytest.approx(cost["requests"] * (11 * 1000 + 7 * 2000) / 1e6)
        assert "secret-key" not in json.dumps(report) + errors
        assert at.stage.proofstone("audit", "last").returncode == 0


def test_a_model_that_oversteps_is_refused_while_it_does_and_the_auditor_tells(tmp_path: Path) -> None:
    turns = (
        calls("write", path="shop/cart.py", content="x"),
        calls("read", path="../../../../etc/passwd"),
        *WRITES[1:],
    )
    with desk(tmp_path, executor=turns, more="[budget]\nusd = 1000.0\n") as at:
        code, report, errors = at.gate("--architect", "rules")
        assert code == 0, (report, errors)
        audit = at.stage.proofstone("audit", "last", "--json")
        assert audit.returncode == 1
        rules = [one["rule"] for one in json.loads(audit.stdout)["boundary_violations"]]
        assert rules == ["scope", "outside"]
        heard = [text for _, text in at.model.asked["executor"][1].messages]
        assert "refused" in heard[-1].lower() or "may" in heard[-1]


@pytest.mark.ci
def test_a_lying_model_is_caught_by_the_checks(tmp_path: Path) -> None:
    lie = answers(status="success", verification={"command": "python3 -m unittest tests.test_one", "exit_code": 0})
    wrong = calls("write", path="tests/test_one.py", content=TEST.replace("one(), 1", "one(), 2"))
    with desk(tmp_path, executor=(WRITES[1], wrong, lie)) as at:
        code, report, _ = at.gate()
        assert code == 1
        tasks: Any = report["tasks"]
        reasons = {reason["check"] for failure in tasks[0]["failures"] for reason in failure["reasons"]}
        assert "claim-mismatch" in reasons
        assert at.stage.git("branch", "--list", "proofstone/*") == "" and at.model.count("architect") == 0


@pytest.mark.ci
def test_a_model_that_rejects_has_the_task_done_again(tmp_path: Path) -> None:
    rejects = (answers(verdict="REJECTED", feedback="the name says nothing"),)
    with desk(tmp_path, architect=rejects) as at:
        code, report, _ = at.gate()
        assert code == 1
        tasks: Any = report["tasks"]
        assert [one["type"] for one in tasks[0]["failures"]] == ["ARCHITECT_REJECTION"] * 2
        second = at.model.asked["executor"][len(WRITES)]
        assert "the name says nothing" in second.messages[0][1]


def test_a_spent_budget_stops_the_run_and_more_of_it_goes_on_without_paying_twice(tmp_path: Path) -> None:
    with desk(tmp_path) as at:
        code, report, errors = at.gate("--budget", "requests=2")
        assert (code, report["outcome"]) == (4, "budget_exhausted"), errors
        assert "2 model calls" in str(report["reason"])
        assert at.model.count("executor") == 2
        again, told, why = at.resume("--budget", "requests=2")
        assert again == 2 and "more than was spent" in why, told
        assert at.resume()[0] == 4 and at.model.count("executor") == 2
        code, report, errors = at.resume("--budget", "requests=none")
        assert code == 0, errors
        assert at.model.count("executor") == len(WRITES)
        cost: Any = report["cost"]
        assert cost["requests"] == len(WRITES) + len(APPROVES)


@pytest.mark.parametrize(
    "limit",
    ["task.tokens=20", *(pytest.param(one, marks=SWEPT) for one in ("roles.executor.tool_calls=1", "usd=0.03"))],
)
def test_a_budget_of_a_task_or_role_stops_the_run_as_well(tmp_path: Path, limit: str) -> None:
    with desk(tmp_path) as at:
        code, report, _ = at.gate("--budget", limit)
        assert (code, report["outcome"]) == (4, "budget_exhausted")
        assert at.model.count("executor") <= 3


POINTS = ("agent.after-turn", "agent.before-tool")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "point", ["agent.before-turn", *(pytest.param(one, marks=SWEPT) for one in POINTS), "agent.after-tool"]
)
def test_a_run_that_is_killed_goes_on_with_what_the_model_has_said(tmp_path: Path, point: str) -> None:
    with desk(tmp_path) as at:
        code, _, _ = at.gate(PROOFSTONE_FAULT=f"{point}:3")
        assert code == -signal.SIGKILL
        before = at.model.count("executor")
        code, _, errors = at.resume()
        assert code == 0, errors
        # A turn that was not yet on record is asked for again, and only that.
        assert at.model.count("executor") == len(WRITES) + (point == "agent.before-turn")
        assert before == 3
        assert at.stage.git("show", f"{at.stage.branch}:shop/one.py") + "\n" == MODULE


def test_a_provider_that_denies_us_is_bad_input_and_the_run_waits_for_it_to_be_put_right(tmp_path: Path) -> None:
    with desk(tmp_path, executor=(HttpError(401, "no such key"), *WRITES)) as at:
        code, report, errors = at.gate()
        assert code == 2 and "no such key" in errors and "secret-key" not in errors, report
        assert "proofstone resume" in errors
        at.model.turns = {"executor": WRITES, "architect": APPROVES}
        code, report, errors = at.resume()
        assert code == 0, errors
        tasks: Any = report["tasks"]
        assert tasks[0]["attempts"] == 1


@pytest.mark.ci
def test_a_provider_that_cannot_be_reached_costs_no_attempt_and_the_run_goes_on_when_it_can(tmp_path: Path) -> None:
    down = HttpError(503, "down for maintenance", retry_after=0)
    with desk(tmp_path, executor=(*WRITES[:2], down), architect=(down,)) as at:
        code, report, errors = at.gate()
        assert code == 1 and "down for maintenance" in errors and "proofstone resume" in errors, report
        assert at.model.count("executor") == 2 + 3, "twice more, and then no longer"
        at.model.turns = {"executor": WRITES, "architect": (down,)}
        code, report, errors = at.resume()
        assert code == 1 and "architect" in errors and at.model.count("architect") == 6, "and once more all over"
        at.model.turns = {"executor": WRITES, "architect": APPROVES}
        code, report, errors = at.resume()
        assert code == 0, errors
        tasks: Any = report["tasks"]
        assert tasks[0]["attempts"] == 1 and at.model.count("executor") == 5 + len(WRITES) - 2


def test_a_missing_key_is_said_before_anything_begins(tmp_path: Path) -> None:
    with desk(tmp_path) as at:
        done = at.stage.workshop.proofstone(
            at.stage.root, "gate", "PLAN.md", "--json", env={"PROOFSTONE_CONFIG": at.env["PROOFSTONE_CONFIG"]}
        )
        assert done.returncode == 2 and "LOCAL_KEY" in done.stderr
        assert json.loads(at.stage.proofstone("runs", "--json").stdout)["runs"] == []


@pytest.mark.ci
def test_a_model_whose_price_is_not_known_is_said_to_be(tmp_path: Path) -> None:
    with desk(tmp_path) as at:
        config = Path(at.env["PROOFSTONE_CONFIG"])
        config.write_text(config.read_text().replace("input_usd = 1000.0\noutput_usd = 2000.0\n", ""))
        code, report, _ = at.gate()
        assert code == 0
        cost: Any = report["cost"]
        assert cost["unpriced_requests"] == cost["requests"] > 0 and cost["usd"] == 0
        assert "cost unknown" in at.stage.proofstone("status", "last").stdout


@pytest.mark.ci
def test_an_answer_that_is_not_of_the_schema_is_repaired_or_malformed(tmp_path: Path) -> None:
    bad = Reply(text="I think it is done!")
    with desk(tmp_path, executor=(*WRITES[:4], bad, WRITES[4])) as at:
        assert at.gate()[0] == 0
    with desk(tmp_path / "worse", executor=(bad,) * 3) as at:
        code, report, _ = at.gate()
        tasks: Any = report["tasks"]
        assert code == 1 and [one["type"] for one in tasks[0]["failures"]] == ["MALFORMED"] * 3


def decisions(stage: Stage) -> list[Any]:
    """Everything that was decided, without what differs from run to run."""
    sql = "SELECT task_id, type, payload FROM events WHERE type LIKE 'task.%' ORDER BY seq"
    done = stage.proofstone("ledger", "query", sql, "--json")
    assert done.returncode == 0, done.stderr
    found = []
    for row in json.loads(done.stdout)["rows"]:
        payload = json.loads(row["payload"]) if isinstance(row["payload"], str) else row["payload"]
        event = payload["event"]
        tree = event.get("tree") or (event.get("evidence") or {}).get("tree")
        found.append((row["task_id"], row["type"], payload["state"], (event.get("failure") or {}).get("type"), tree))
    return found


def test_a_recorded_run_of_models_comes_to_the_same_decisions_again(tmp_path: Path) -> None:
    stray = calls("write", path="shop/cart.py", content="x")
    unsure = Reply(text="one moment")
    with desk(tmp_path / "first", executor=(stray, *WRITES[1:4], unsure, WRITES[4])) as at:
        assert at.gate()[0] == 0
        script = tmp_path / "again.yaml"
        done = at.stage.proofstone("record", "last", "-o", str(script))
        assert done.returncode == 0, done.stderr
        first = decisions(at.stage)
    second = Stage.set_up(tmp_path / "second", PLAN)
    gated = second.gate(f"script:{script}", "--architect", f"script:{script}")
    assert gated.exit == 0, gated.stderr
    assert decisions(second) == first and len(first) >= 5


@pytest.mark.ci
def test_a_recorded_run_of_a_program_comes_to_the_same_decisions_again(tmp_path: Path) -> None:
    command = (
        "cmd:case $PROOFSTONE_TASK_ID-$PROOFSTONE_ATTEMPT in task-01-1) exit 3;; task-01-2) printf '\\377\\000' "
        "> shop/bin;; "
        "task-01-3) rm -f shop/bin; printf 'def one():\\n    return 1\\n' > shop/one.py; "
        "printf 'import unittest\\nfrom shop.one import one\\nclass T(unittest.TestCase):\\n"
        "    def test_it(self): self.assertEqual(one(), 1)\\n' > tests/test_one.py;; esac"
    )
    first = Stage.set_up(tmp_path / "first", PLAN)
    gated = first.gate(command, "--architect", 'cmd:echo \'{"verdict": "APPROVED"}\' > $PROOFSTONE_VERDICT')
    assert gated.exit == 0, gated.stderr
    script = tmp_path / "again.yaml"
    assert first.proofstone("record", "last", "-o", str(script)).returncode == 0
    second = Stage.set_up(tmp_path / "second", PLAN)
    again = second.gate(f"script:{script}", "--architect", f"script:{script}")
    assert again.exit == 0, again.stderr
    assert decisions(second) == decisions(first) != []


def test_commands_of_an_agent_see_secret_files_empty_and_those_of_the_checks_do_not(tmp_path: Path) -> None:
    text = PLAN.replace("<verify>", "<verify>grep -q nter2 .env && ")
    looks = (
        calls("run", command="cat .env deploy/prod.txt; ls -a"),
        calls("read", path="deploy/prod.txt"),
        *WRITES[1:],
    )
    settings = '[tools]\nsecret = ["deploy/**"]\n'
    files = {**FILES, ".env": "PASSWORD=hunter2\n", "deploy/prod.txt": "hunter3\n"}
    with desk(tmp_path, executor=looks, text=text, files=files, settings=settings) as at:
        code, report, errors = at.gate("--architect", "rules")
        assert code == 0, (report, errors)
        heard = " ".join(text for _, text in at.model.asked["executor"][-1].messages)
        assert ".env" in heard and "hunter" not in heard


@SWEPT
def test_a_tool_that_an_interruption_ends_is_used_again_and_its_real_result_told(tmp_path: Path) -> None:
    slow = calls("run", command="test -e /dev/shm/never || sleep 2; echo finished")
    with desk(tmp_path, executor=(slow, *WRITES[1:])) as at:
        process = at.stage.workshop.start(at.stage.root, "gate", "PLAN.md", "--json", "--quiet", env=dict(at.env))
        while not (at.model.count("executor") == 1 and _is_running(at.stage, "sleep")):
            assert process.poll() is None, "it never came to that"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        code, _, errors = at.resume()
        assert code == 0, errors
        heard = [text for role, text in at.model.asked["executor"][1].messages if role == "tool"]
        assert "finished" in heard[-1] and "stopped" not in heard[-1]


def _is_running(stage: Stage, word: str) -> bool:
    return any(word in line for line in stage.processes())


@SWEPT
def test_a_fault_that_was_overcome_is_not_in_the_script(tmp_path: Path) -> None:
    with desk(tmp_path / "first", executor=(WRITES[0], HttpError(401, "no such key"))) as at:
        assert at.gate()[0] == 2
        at.model.turns = {"executor": WRITES, "architect": APPROVES}
        assert at.resume()[0] == 0
        script = tmp_path / "again.yaml"
        assert at.stage.proofstone("record", "last", "-o", str(script)).returncode == 0
    second = Stage.set_up(tmp_path / "second", PLAN)
    gated = second.gate(f"script:{script}", "--architect", f"script:{script}")
    assert gated.exit == 0, gated.stderr


def test_what_was_cut_short_is_no_success_in_the_script(tmp_path: Path) -> None:
    with desk(tmp_path / "first") as at:
        assert at.gate("--budget", "requests=2")[0] == 4
        refused = at.stage.proofstone("record", "last")
        assert refused.returncode == 2 and "no agent did or said anything" in refused.stderr


def test_what_a_filtered_answer_has_cost_is_paid_and_counts(tmp_path: Path) -> None:
    filtered = Reply(text="no", finish="content_filter", input_tokens=100_000, output_tokens=50_000)
    with desk(tmp_path, executor=(filtered,)) as at:
        code, report, _ = at.gate("--budget", "usd=100")
        assert (code, report["outcome"]) == (4, "budget_exhausted")
        cost: Any = report["cost"]
        assert cost["requests"] == 1 and cost["usd"] == pytest.approx(200.0)


def test_a_secret_file_that_changed_is_not_shown_to_a_model_that_reviews(tmp_path: Path) -> None:
    """Its executor may write it only where the plan says so, and then by a command."""
    text = plan(task("One", files="shop/one.py, tests/test_one.py, .env"))
    writes = (calls("run", command="echo TOKEN=hunter2 > .env"), *WRITES[1:])
    with desk(tmp_path, executor=writes, text=text) as at:
        at.gate()
        asked = at.model.asked["architect"][0]
        told = " ".join(text for _, text in asked.messages)
        assert "hunter2" not in told and ".env changed" in told
        assert "+def one():" in told, "the rest of the change is shown"


def test_a_word_that_names_nobody_is_bad_input(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, PLAN)
    for spec in ("api:gpt-5", "api::x", "acp:gemini", "human:x"):
        gated = stage.gate(spec)
        assert gated.exit == 2 and spec in gated.stderr and "hint:" in gated.stderr, gated.stderr
    assert json.loads(stage.proofstone("runs", "--json").stdout)["runs"] == []
