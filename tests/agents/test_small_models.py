"""A small model at the gate: it calls no tools, and writes its changes into its text."""

from __future__ import annotations

import json
from pathlib import Path

from proofstone.testing.model_server.answers import Reply
from tests.agents.models import MODULE, TEST, desk
from tests.staging import plan, task

SMALL = '[models."local:executor"]\ntier = 1\ninput_usd = 1.0\noutput_usd = 1.0\nanswer = "schema"\n'
WORK = (
    f"I change two files.\n\nFILE: shop/one.py\n```python\n{MODULE}```\n\n"
    f"FILE: tests/test_one.py\n```python\n{TEST}```\n"
)


def test_a_small_model_sees_the_files_and_changes_them_by_its_text(tmp_path: Path) -> None:
    said = json.dumps({"status": "Success", "evidence": "both are written"})
    with desk(tmp_path, executor=(Reply(text=WORK), Reply(text=said)), more=SMALL, text=plan(task("One"))) as at:
        code, report, errors = at.gate("--architect", "rules")
        assert code == 0, (report, errors)
        first, second = at.model.asked["executor"]
        assert at.stage.git("show", f"{at.stage.branch}:shop/one.py") + "\n" == MODULE
    told = first.messages[0][1]
    assert "## The files as they are" in told and "shop/one.py does not exist yet." in told
    assert "How to change a file" in first.system and "response_format" not in first.body
    assert "answer" not in first.tools
    # What was changed is shown, and the turn that ends the work is held to the schema.
    assert any("Made shop/one.py: 2 lines." in text for _, text in second.messages)
    assert "response_format" in second.body and second.tools == ()


def test_a_change_outside_the_task_is_refused_also_in_text(tmp_path: Path) -> None:
    outside = Reply(text="FILE: shop/cart.py\n```python\nx = 1\n```\n")
    done = Reply(text=json.dumps({"status": "blocked", "error": "I may not change it"}))
    with desk(tmp_path, executor=(outside, done), more=SMALL) as at:
        at.gate("--architect", "rules")
        asked = at.model.asked["executor"]
        assert any("refused" in text.lower() or "may" in text for _, text in asked[1].messages[1:])
        assert at.stage.git("show", "HEAD:shop/cart.py") != "x = 1"
