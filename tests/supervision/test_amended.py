"""A requirement that comes while the work is under way: the scenario of the protocol, and what no task takes in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.pipeline.stage import Stage as Pipeline
from tests.pipeline.stage import executor as implementer
from tests.pipeline.stage import planner
from tests.pipeline.stage import task as planned
from tests.staging import plan, task
from tests.supervision.stage import Stage, executor, judge, says, write

HANDLER = "src/auth/handler.py"
LIMITER = "src/auth/rate_limiter.py"
TEST = "tests/test_handler.py"
ADDED = "Rate limiting on auth endpoints"

AUTH = plan(
    task(
        "Handle logins",
        files=f"{HANDLER}, {TEST}",
        verify="python3 -m unittest tests.test_handler",
        action="Write handle(user), which lets known users in.",
    )
)
IMPACT = {
    "role": "executor",
    "match": {"asked": "impact"},
    "output": {
        "task_understanding": "A handler that lets known users in, with a test. It is the only task of the plan.",
        "files": [{"path": HANDLER, "new": True}, {"path": TEST, "new": True}],
        "interfaces": [{"path": "shop/cart.py", "symbol": "total", "signature": "def total(prices)"}],
        "cross_agent_impact": "Whoever logs in goes through it.",
        "risk": "Somebody may be let in who should not.",
    },
}
FIRST_PLAN = says(
    "plan.1", f"[PLAN] Phase 6 | Files: {HANDLER}, {TEST} | Changes: the handler | Risk: 🔴 | Interface Impact: none"
)
ACK = says(
    "ack",
    "[ACK-UPDATE] GC-v2 received. Items: 1/1. Impact: affects auth module I'm implementing. Action: PAUSE.",
)
ANSWER = says(
    "RV-2",
    "[REVERIFY-RESPONSE] Phase 6 | Level 2 | Rate limiting requires adding middleware layer before auth handler. "
    "Original plan had auth handler as direct endpoint handler. New approach: auth handler delegates to rate limiter "
    f"first. Affected files: {HANDLER} (original), {LIMITER} (NEW). Interface change: handler signature adds "
    "rate_config parameter.",
)
SECOND_PLAN = says(
    "plan.2",
    f"[PLAN] Phase 6 | Files: {HANDLER}, {TEST}, {LIMITER} | Changes: the handler asks the limiter first | Risk: 🔴 | "
    "Interface Impact: handle takes rate_config",
)
WORK = [
    write(LIMITER, "def allowed(count, rate_config):\n    return count <= rate_config\n"),
    write(
        HANDLER,
        "from src.auth.rate_limiter import allowed\n\n\n"
        "def handle(user, rate_config=3, count=1):\n    return user == 'ann' and allowed(count, rate_config)\n",
    ),
    write(
        TEST,
        "import unittest\n\nfrom src.auth.handler import handle\n\n\nclass T(unittest.TestCase):\n"
        "    def test_known(self):\n        self.assertTrue(handle('ann'))\n\n"
        "    def test_too_often(self):\n        self.assertFalse(handle('ann', 3, 4))\n",
    ),
]
TEAM = (
    IMPACT,
    FIRST_PLAN,
    ACK,
    ANSWER,
    SECOND_PLAN,
    judge(),
    executor(
        {"tool": {"read": {"path": "shop/cart.py"}}},
        {"tool": {"run": {"command": "touch at; while ! [ -e go ]; do sleep 0.1; done; rm at go", "seconds": 240}}},
        *WORK,
        output={"status": "success", "files_modified": [HANDLER, LIMITER, TEST], "done_criteria_met": True},
    ),
)


def _find_work_tree(stage: Stage) -> Path | None:
    """Return the work tree in which the executor waits, once it waits: what is added before is another story."""
    return next((path.parent for path in stage.workshop.proofstone_home.glob("work/*/task-01/files/at")), None)


@pytest.mark.seed("continuity", "t3-scope-change")
def test_a_scope_change_in_the_middle_of_the_work_reads_like_the_protocol(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage", AUTH)
    process = stage.workshop.start(stage.root, *stage.arguments(TEAM))
    while (work_tree := _find_work_tree(stage)) is None:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    said = stage.proofstone("amend", "last", ADDED, "--files", HANDLER, "--files", LIMITER)
    assert said.returncode == 0, said.stderr
    assert "GC-v1 → GC-v2" in said.stdout
    (work_tree / "go").touch()
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert out
    assert stage.asked() == ["impact", "plan", "ack", "RV-2", "plan"]
    spoken = "\n".join(stage.transcript())
    for line in (
        "[IMPACT_VERIFIED] Phase 6",
        "[CONTEXT-UPDATE] GC-v1 → GC-v2",
        "[ACK-UPDATE] GC-v2 received. Items: 1/1. Impact: affects auth module I'm implementing. Action: PAUSE.",
        "[REVERIFY] Phase 6 | Level 2 | Target: implementer-1 | Reason: scope change: Rate limiting on auth endpoints",
        "[REVERIFY-RESPONSE] Phase 6 | Level 2 | Rate limiting requires",
        "[APPROVED] Phase 6",
    ):
        assert line in spoken, line
    run = stage.runs[-1]
    told = [one["told"]["text"] for one in stage.messages(run, "Attended") if one["told"]]
    assert any(f"ADDED §Scope: requirement-1: {ADDED}" in one or ADDED in one for one in told)
    assert any("File ownership expanded: src/auth/rate_limiter.py." in one for one in told)
    amended = stage.events(run, "plan.amended")
    # The gate and the executor's supervisor may record it in either order.
    assert [amendment["requirement"] for amendment in amended if amendment["requirement"]] == [ADDED]
    assert {file for amendment in amended for file in amendment["files"]} == {LIMITER}
    assert len(amended) == 2
    branch = stage.workshop.git(stage.root, "branch", "--list", "proofstone/*", "--format=%(refname:short)").split()[0]
    assert LIMITER in stage.workshop.git(stage.root, "ls-tree", "-r", "--name-only", branch)


@pytest.mark.ci
def test_what_no_task_takes_in_is_planned_before_anything_is_committed(tmp_path: Path) -> None:
    """It comes when the plan is made already; nobody is at work. The plan that holds it goes through the plan gate."""
    stage = Pipeline.set_up(tmp_path / "stage")
    first = stage.run(
        planner(planned("double"), iteration=2),
        planner(),
        implementer("double", task="A function double"),
        implementer(),
        args=("--mode", "interactive"),
    )
    run = first.report.run_id
    stage.proofstone("approve", run, "gate-post-research", "proceed")
    assert stage.resume(run).exit == 3
    assert stage.proofstone("amend", run, "and count them twice").returncode == 0
    stage.proofstone("approve", run, "gate-post-planning", "approve")
    came = stage.resume(run)
    assert came.outcome == "passed", came.report.reason
    assert [one.name for one in came.report.tasks] == ["A function count", "A function double"]
    assert len(came.report.plan_gates) == 2
    asked = [one for id, one in stage.dispatches(run).items() if "plan/i2" in id]
    assert len(asked) == 1
    over = stage.proofstone("amend", run, "and again")
    assert over.returncode == 2 and "has ended (passed)" in over.stderr
