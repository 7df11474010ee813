"""Whoever researches, designs and plans is asked too; a recorded run asks and answers the same again; and models over a
wire are asked in a form of the question's own."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from proofstone.common.models import Confidence
from proofstone.testing.model_server.answers import Answer, ReceivedRequest, Reply, WireProtocol
from proofstone.testing.model_server.server import ModelServer
from tests.pipeline.stage import RESEARCH, designer, planner, researcher
from tests.pipeline.stage import Stage as Pipeline
from tests.staging import Entry
from tests.supervision.stage import CLAIM, UNDERSTANDS, WORK, Stage, analysis, executor, judge

UNJUDGED = "nobody could judge how well "


def understands(role: str) -> Entry:
    said = {
        "task_understanding": "What is asked for, for a shop with a cart; I come before whoever builds.",
        "upstream": [{"artifact": "shop/cart.py", "says": "how sums are made"}],
        "files": [{"path": "shop/cart.py", "functions": ["total"]}],
        "interfaces": [{"path": "shop/cart.py", "symbol": "total", "signature": "def total(prices)"}],
        "cross_agent_impact": "Whoever plans rests on it.",
        "risk": "Little.",
    }
    return {"role": role, "match": {"asked": "impact"}, "output": said}


LOOK = {"tool": {"read": {"path": "shop/cart.py"}}}
LOOKING: Sequence[Entry] = (
    *({**researcher(focus), "steps": [LOOK]} for focus in RESEARCH),
    {**planner(), "steps": [LOOK]},
)
"""Researchers and a planner that look something up; nobody asks why they did not."""
DESIGNER_LOOKS: Entry = {**designer(), "steps": [LOOK]}


@pytest.mark.seed("continuity", "t5-low-use")
def test_those_who_research_design_and_plan_show_that_they_understand(tmp_path: Path) -> None:
    """A designer that has looked nothing up is asked about it before its answer counts."""
    stage = Pipeline.set_up(tmp_path / "stage")
    roles = ("researcher", "designer", "planner")
    answers: Entry = {
        "role": "designer",
        "match": {"asked": "RV-2"},
        "raw": "[REVERIFY-RESPONSE] Phase 3 | Level 2\n\ntotal is defined in shop/cart.py; the research says so.",
    }
    came = stage.run(*map(understands, roles), answers, judge(), *LOOKING)
    assert came.outcome == "passed", came.report.reason
    run = came.report.run_id
    asked = [one["dispatch"] for one in stage.messages(run, "Attended") if one["told"] and one["told"]["asked"]]
    assert len(asked) == len(RESEARCH) + 3
    (question,) = [
        one["told"] for one in stage.messages(run, "Attended") if one["told"] and one["told"]["asked"] == "RV-2"
    ]
    assert "You have not looked anything up" in question["text"]
    assert {str(one).split("/")[0] for one in asked} == {"research", "design", "plan"}
    told = [one["told"]["text"] for one in stage.messages(run, "Attended") if one["told"]]
    assert sum("You have not looked anything up" in one for one in told) == 1
    assert sum("[IMPACT_VERIFIED]" in one for one in told) == len(RESEARCH) + 2


@pytest.mark.ci
def test_what_nobody_could_judge_of_their_understanding_keeps_the_confidence_from_being_high(tmp_path: Path) -> None:
    """Also in a run that is killed when one of them was heard."""
    stage = Pipeline.set_up(tmp_path / "stage")
    killed = stage.run(
        understands("designer"),
        understands("planner"),
        *LOOKING,
        DESIGNER_LOOKS,
        env={"PROOFSTONE_FAULT": "step.after-record:12"},
    )
    assert killed.exit == -signal.SIGKILL
    came = stage.resume("last")
    assert (came.outcome, came.report.confidence) == ("passed", Confidence.MEDIUM), came.report.reason
    asked = [one.reason.removeprefix(UNJUDGED) for one in came.report.reasons if one.reason.startswith(UNJUDGED)]
    assert [one.split()[0] for one in asked] == ["designer", "planner"], came.report.reasons


@pytest.mark.ci
def test_a_recorded_run_asks_and_answers_the_same_again(tmp_path: Path) -> None:
    stage = Stage.set_up(tmp_path / "stage")
    first = stage.gate(*UNDERSTANDS, judge(), executor())
    asked = stage.asked()
    assert (first.exit, asked) == (0, ["impact", "plan"])
    again = tmp_path / "again.yaml"
    assert stage.proofstone("record", "last", "-o", str(again)).returncode == 0
    stage.workshop.git(stage.root, "branch", "-D", str(first.json["branch"]))
    (stage.root / "SUMMARY.md").unlink(missing_ok=True)
    script = f"script:{again}"
    done = stage.proofstone(
        "gate", "PLAN.md", "--allow-dirty", "--executor", script, "--architect", script, "--json", "--quiet"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.asked() == asked


@pytest.mark.few(1)
@pytest.mark.parametrize("wire", [WireProtocol.OPENAI_CHAT, WireProtocol.ANTHROPIC])
def test_a_model_is_asked_in_a_form_of_the_questions_own(tmp_path: Path, wire: WireProtocol) -> None:
    """While a question is open, the form that is offered for the answer is the question's; then it is the work's."""
    stage = Stage.set_up(tmp_path / "stage")
    forms: list[str] = []
    steps = [("write", step["tool"]["write"]) for step in WORK]

    def answer(asked: ReceivedRequest) -> Answer:
        offered = json.dumps(asked.body["tools"])
        if "task_understanding" in offered:
            forms.append("impact")
            return Reply(calls=(("answer", analysis()),))
        if "interface_impact" in offered:
            forms.append("plan")
            plan = {"files": CLAIM["files_modified"], "changes": "both", "risk": "🟢", "interface_impact": "none"}
            return Reply(calls=(("answer", plan),))
        forms.append("work")
        return Reply(calls=(steps.pop(0),)) if steps else Reply(calls=(("answer", CLAIM),))

    with ModelServer(answer) as server:
        config = tmp_path / "person.toml"
        config.write_text(
            f'[providers.local]\nwire = "{wire}"\nurl = "{server.base_url(wire)}"\nkey_variable = "LOCAL_KEY"\n'
        )
        architect = stage.cast([judge(), {"role": "architect", "output": {"verdict": "APPROVED"}}])
        done = stage.proofstone(
            *("gate", "PLAN.md", "--allow-dirty", "--executor", "api:local:m", "--architect", architect),
            *("--json", "--quiet"),
            env={"PROOFSTONE_CONFIG": str(config), "LOCAL_KEY": "sk-very-secret-key"},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert forms == ["impact", "plan", "work", "work", "work"]
    assert stage.asked() == ["impact", "plan"]
