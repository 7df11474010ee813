"""What a person is shown of agents that are asked: where they stand, what it costs, and lines while they work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import pytest

from proofstone.agents.models import EngineMessage
from proofstone.agents.rules.conversation import format_message_line
from proofstone.ledger import Ledger
from proofstone.ledger.connection import ledger_path
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.schema import StoredRow
from proofstone.ledger.sqlite import SqliteLedger
from proofstone.runtime.run_index import CHILD_RUN_EVENT
from proofstone.supervision.models.ladder import AgentPosition
from proofstone.supervision.view import read_agent_positions
from tests.supervision.stage import UNDERSTANDS, WORK, Stage, executor, judge, says
from tests.supervision.test_runs import STRAY, mini

RUN_TOKENS = {"input_tokens": 100, "output_tokens": 0}
ASKED_TOKENS = {"input_tokens": 40, "output_tokens": 10}


def spends(entry: Mapping[str, Any], usage: Mapping[str, int]) -> dict[str, Any]:
    return {**entry, "usage": dict(usage)}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """An executor that understands, strays, owns up to it, and is committed. Each turn that answers a
    question, and each judgement, takes 50 tokens, and each turn of its work 100."""
    stage = Stage.set_up(tmp_path_factory.mktemp("shown") / "stage")
    honest = says("RV-3", mini("MINOR_ADJUSTMENT", "shop/one.py, tests/test_one.py, shop/other.py (NEW)"))
    asked = [spends(one, ASKED_TOKENS) for one in (*UNDERSTANDS, honest, judge())]
    claim = {"status": "success", "files_modified": ["shop/one.py", "tests/test_one.py", "shop/other.py"]}
    came = stage.gate(*asked, spends(executor(STRAY, *WORK, output=claim), RUN_TOKENS))
    assert came.exit == 0, came.json
    return stage


def document(stage: Stage, *arguments: str) -> Mapping[str, Any]:
    done = stage.proofstone("status", "last", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.seed("continuity", "position-table")
def test_status_tells_where_each_agent_stands(stage: Stage) -> None:
    (one,) = document(stage)["agents_seen"]
    assert (one["part"], one["at_work"]) == ("", False)
    at = one["position"]
    assert (at["agent"], at["task"], at["number"], at["total"]) == ("implementer-1", "One", 1, 1)
    assert (at["status"], at["tool_calls"], at["notes"]) == ("COMPLETING", 3, [])
    assert sorted(at["files"]) == ["shop/one.py", "shop/other.py", "tests/test_one.py"]
    shown = stage.proofstone("status", "last").stdout
    table = shown[shown.index("\nagents\n") :].splitlines()[2:]
    assert table[0].split()[:3] == ["agent", "task", "step"], "nobody is at work, and there are no parts"
    assert table[1].split()[:3] == ["implementer-1", "One", "1/1"] and "COMPLETING" in table[1]


def test_what_asking_has_cost_is_told_apart(stage: Stage) -> None:
    found = document(stage, "--cost")
    asked, total = found["verification"], found["total"]
    calls = asked["cost"]["requests"]
    assert asked["questions"] == 3, "an analysis, a plan, and the deviation"
    assert asked["judgements"] == calls - 3 > 0
    assert (asked["cost"]["input_tokens"], asked["cost"]["output_tokens"]) == (40 * calls, 10 * calls)
    work = total["requests"] - calls
    tokens = total["input_tokens"] + total["output_tokens"]
    assert asked["share_of_calls"] == round(calls / total["requests"], 4)
    assert asked["share_of_tokens"] == round(50 * calls / tokens, 4)
    assert tokens == 50 * calls + 100 * (work - 1), "the reviewing architect tells of no tokens"
    line = next(
        one for one in stage.proofstone("status", "last", "--cost").stdout.splitlines() if "understanding" in one
    )
    assert line.startswith(f"of that, on understanding: 3 questions, {calls - 3} judgement")
    assert f"{calls} model calls ({calls / total['requests']:.0%} of all)" in line


def test_the_evidence_bundle_has_it_in_a_line(stage: Stage) -> None:
    page = stage.proofstone("bundle", "last").stdout
    (line,) = [one for one in page.splitlines() if one.startswith("Of that, on whether agents know")]
    calls = document(stage, "--cost")["verification"]["cost"]["requests"]
    assert "3 questions" in line and f"{calls} model calls, {50 * calls} tokens (" in line


@dataclass(frozen=True)
class UpTo:
    """A ledger, as it was when a row was written."""

    ledger: Ledger
    seq: int

    def read(self, kind: type[Any], **named: Any) -> list[StoredRow[Any]]:  # noqa: ANN401
        return [one for one in self.ledger.read(kind, **named) if one.seq <= self.seq]


def seen_after(stage: Stage, type: str, number: int, *, running: bool = True) -> AgentPosition:
    """The executor, as it was shown after its number-th message of this type, two minutes later."""
    run = stage.runs[0]
    with closing(stage.ledger()) as ledger:
        rows = [one for one in ledger.read(MessageRow, run_id=run) if one.row.type == type]
        mine = [one for one in rows if "executor" in str(one.row.payload["dispatch"])]
        standing = read_agent_positions(
            cast("Ledger", UpTo(ledger, mine[number].seq)), run, _time(mine[number]) + 120, running=running
        )
    (one,) = standing
    return one


def _time(stored: StoredRow[MessageRow]) -> float:
    return datetime.fromisoformat(stored.ts).timestamp()


def test_while_it_works_the_row_is_of_its_last_boundary(stage: Stage) -> None:
    first = seen_after(stage, "Attended", 0)
    assert first.at_work
    assert first.position.step == "shows that it understands its task"
    assert 115 < first.position.quiet_seconds < 125
    asked = [one["told"]["asked"] if one["told"] else "" for one in stage.messages(stage.runs[0], "Attended")]
    deviates = seen_after(stage, "Attended", asked.index("RV-3"))
    assert deviates.position.status == "REVERIFY"
    assert "asked at level 3" in deviates.position.notes
    gone = seen_after(stage, "Attended", 0, running=False)
    assert not gone.at_work


def test_agents_of_a_part_are_shown_with_the_whole(stage: Stage) -> None:
    part = stage.runs[0]
    with closing(SqliteLedger(ledger_path(stage.workshop.proofstone_home), "write")) as ledger:
        ledger.append(
            EventRow(run_id="whole", type=CHILD_RUN_EVENT, payload={"run_id": part, "kind": "gate", "iteration": 2}),
        )
        (one,) = read_agent_positions(ledger, "whole", 0.0, running=False)
    assert (one.part, one.position.agent) == ("gate 2", "implementer-1")


def test_whoever_watches_is_told_in_a_line() -> None:
    asked = EngineMessage(
        text="[REVERIFY] Phase 6 | Level 2 | Target: implementer-1 | Reason: scope change\n\nAnswer it.", asked="RV-2"
    )
    assert format_message_line(asked, 200) == "? RV-2: [REVERIFY] Level 2 | Reason: scope change"
    assert format_message_line(asked, 30) == "? RV-2: [REVERIFY] Level 2 | …"
    first = EngineMessage(
        text="First, your impact analysis: [IMPACT-ANALYSIS] Phase 6 | Attempt 1/3\n\nSay …", asked="impact"
    )
    assert format_message_line(first, 200) == "? impact: [IMPACT-ANALYSIS] Attempt 1/3"
    assert format_message_line(EngineMessage(text="[APPROVED] Phase 6\n\nGo on.", resumes=True), 200) == "» [APPROVED]"
    assert (
        format_message_line(EngineMessage(text="Go on with your work.", resumes=True), 200) == "» Go on with your work."
    )
