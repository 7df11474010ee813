"""The rules of the plan gate about withdrawals, answers and directives, through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan_gate.scenes import PAUSED
from tests.plan_gate.stage import Stage, researcher, ruling, script, surfaced, synthesizer
from tests.staging import DONE

_SWEEP = {"kind": "RE-SWEEP", "reason": "response-changes-scope", "text": "what Bern does with francs"}
_RAISED = {"kind": "RAISE-BUDGET", "mode": "resolve", "tool": "Read", "by": 2, "text": "more to read"}
_SETTLED = ruling("C1", evidence=["person"])


@pytest.mark.seed("plan-gate", "withdrawn-needs-evidence", "re-sweep-after-last-answer", "raised-budget-one-iteration")
def test_an_answer_that_settles_the_last_challenge_is_looked_into_again(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path)
    withdraws = {**DONE, "challenges": [], "withdrawals": [{"challenge": "C1", "why": "never mind"}]}
    entries = script(
        {"role": "challenger", "match": {"iteration": 2}, "output": withdraws},
        *PAUSED,
        researcher("surface", surfaced("shop/cart.py"), iteration=3),
        synthesizer(_SETTLED, said={"directives": [_SWEEP, _RAISED]}, iteration=2),
    )
    paused = stage.verify(entries)
    assert paused.exit == 3, paused.stdout
    came = stage.resume(paused.run_id, "--answer", "C1=in francs, for Bern too")
    assert came.convergence == ["BLOCKED", "CONTINUE", "CONVERGED"], came.stdout
    assert ("researcher:surface", 3) in stage.asked(came.run_id)
    assert came.statuses["C1"] == "RESOLVED"
    refused = [text for text in came.events("refused") if "cannot withdraw C1" in text]
    assert refused and "is settled by evidence" in refused[0]
    assert came.report.iterations[1].synthesizer_directives == (
        "RE-SWEEP (response-changes-scope): what Bern does with francs",
        "RAISE-BUDGET resolve Read +2: more to read",
    )
