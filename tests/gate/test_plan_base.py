"""What one task loosens and the next one breaks: an attempt is compared with the base of the plan too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate.stage import Stage, agent, work
from tests.staging import FILES, plan, task

TEST = (
    "import json\nimport pathlib\nimport unittest\n\nfrom shop.cart import total\n\n\nclass Cart(unittest.TestCase):\n"
    "    def test_total(self):\n"
    "        limits = json.loads(pathlib.Path(__file__).with_name('limits.json').read_text())\n"
    "        self.assertLessEqual(abs(total([1, 2]) - 3), limits['off'])\n"
)
PROJECT = {**FILES, "tests/test_cart.py": TEST, "tests/limits.json": '{"off": 0}\n'}
LOOSEN = "echo '{\"off\": 1}' > tests/limits.json\n"
BREAK = "printf 'def total(prices):\\n    return max(prices)\\n' > shop/cart.py\n"
MEND = "printf 'def total(prices):\\n    return sum(list(prices))\\n' > shop/cart.py\n"
PLAN = plan(
    task("One", files="shop/one.py, tests/**"),
    task("Two", files="shop/**, tests/test_two.py", attributes='depends_on="1"'),
)


@pytest.mark.parametrize(
    ("source", "states"),
    [(BREAK, ["APPROVED", "FAILED"]), pytest.param(MEND, ["APPROVED", "APPROVED"], marks=pytest.mark.ci)],
)
def test_what_a_task_loosens_and_the_next_one_breaks_is_seen(tmp_path: Path, source: str, states: list[str]) -> None:
    stage = Stage.set_up(tmp_path, PLAN, PROJECT, "[gate]\nretry_delay_seconds = 0\n")
    gated = stage.gate(agent(t1=work("one") + LOOSEN, t2=work("two") + source))
    assert gated.states == states, gated.stderr
    if source is BREAK:
        assert gated.reasons(2) == {"edited-expectation"}
        (failure, *_) = gated.json["tasks"][1]["failures"]
        assert "compared with the base of the plan" in failure["error"]
        assert "tests/limits.json" in failure["error"]
