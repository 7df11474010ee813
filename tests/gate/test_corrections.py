"""An executor may correct itself twice within an attempt, and the engine counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gate.stage import Stage
from tests.staging import plan, task

VERIFY = "python3 -m unittest tests.test_one"


def module(value: int) -> dict[str, Any]:
    return {"tool": {"write": {"path": "shop/one.py", "content": f"def one():\n    return {value}\n"}}}


TEST = {
    "tool": {
        "write": {
            "path": "tests/test_one.py",
            "content": "import unittest\n\nfrom shop.one import one\n\n\nclass T(unittest.TestCase):\n"
            "    def test_it(self):\n        self.assertEqual(one(), 1)\n",
        }
    }
}
RUN = {"tool": {"run": {"command": f"{VERIFY}  "}}}
LOOK = {"tool": {"read": {"path": "shop/one.py"}}}


@pytest.mark.seed("pipeline", "self-fix")
def test_two_corrections_are_made_and_a_third_is_refused(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path, plan(task("One")))
    wrong, right = [module(2), TEST, RUN], module(1)
    tries = [*wrong, module(3), RUN, LOOK, module(4), RUN, LOOK, right, RUN]
    first = {"role": "executor", "match": {"attempt": 1}, "steps": tries}
    second = {"role": "executor", "match": {"attempt": 2}, "steps": [right, RUN]}
    result = {"status": "success", "files_modified": ["shop/one.py", "tests/test_one.py"], "done_criteria_met": True}
    script = tmp_path / "team.yaml"
    script.write_text(json.dumps([{**one, "output": result} for one in (first, second)]))
    gated = stage.gate(f"script:{script}")
    assert (gated.exit, gated.attempts, gated.failures(1)) == (0, [2], ["VERIFY_FAILURE"]), gated.stdout
    refused = [
        row
        for row in stage.query("SELECT payload FROM messages WHERE type = 'ToolResult' ORDER BY seq")
        if row["result"]["refused"]
    ]
    assert [row["result"]["refused"] for row in refused] == ["budget"]
    assert refused[0]["result"]["text"].startswith("You have corrected your work 2 times in this attempt")
    executed = stage.query("SELECT payload FROM events WHERE type = 'task.executed' ORDER BY seq")
    assert [row["event"]["corrections"] for row in executed] == [2, 0]
