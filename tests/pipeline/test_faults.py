"""Whole runs whose models are reached over the wire, and the wire fails: they complete, or stop where they can go on.

What the tables of `agents.rules` allow bounds what is asked, every try is on record, and nothing that was answered is
asked for again."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from proofstone.agents.models import FaultKind
from proofstone.agents.rules.budget import FAULT_POLICIES
from proofstone.agents.rules.conversation import MAX_REPAIRS
from proofstone.testing.model_server.answers import Hang, WireProtocol
from tests.pipeline.served import FIX, OUTAGES, TROUBLES, Trouble, as_it_should, ever, now_and_then, once, served

WIRES = (WireProtocol.OPENAI_CHAT, WireProtocol.OPENAI_RESPONSES, WireProtocol.ANTHROPIC)
WHOLE = {"fix": 5, "standard": 23}
"""Requests of an undisturbed run."""
TRIES = 1 + FAULT_POLICIES[FaultKind.UNAVAILABLE].retries
ASKED = {"planner": 2 * TRIES, "executor": TRIES, "reviewer": 2 * TRIES}
"""How often an outage is tried, until the run stops. An executor is not asked again: the gate counts its attempts."""
BEFORE = {"planner": 0, "executor": 3, "reviewer": 4}
"""Requests that were answered by then: the first call of a run, one in its midst, and the last."""


@pytest.mark.few(1, ci=3)
@pytest.mark.parametrize(
    ("name", "role", "wire"),
    [
        pytest.param(*case, marks=() if at % 10 == 4 else pytest.mark.sweep)
        for at, case in enumerate(itertools.product(TROUBLES, ASKED, WIRES))
    ],
)
def test_a_fault_that_passes_is_overcome(tmp_path: Path, name: str, role: str, wire: WireProtocol) -> None:
    trouble = TROUBLES[name]
    with served(tmp_path, wire, once(trouble, role)) as at:
        came = at.run(*FIX)
    assert (came.exit, came.outcome) == (0, "passed"), came.stderr
    assert at.player.requests == WHOLE["fix"] + bool(trouble.record)
    told = {record: at.on_record(record) for record in ("Fault", "Repair")}
    assert told == {record: int(record == trouble.record) for record in told}
    assert at.player.given_twice == []


@pytest.mark.few(1, ci=2)
@pytest.mark.parametrize(
    ("name", "role", "wire"),
    [
        pytest.param(*case, marks=() if at % 8 == 1 else pytest.mark.sweep)
        for at, case in enumerate(itertools.product(OUTAGES, ASKED, WIRES))
    ],
)
def test_an_outage_stops_the_run_and_it_goes_on_afterwards(
    tmp_path: Path, name: str, role: str, wire: WireProtocol
) -> None:
    with served(tmp_path, wire, ever(TROUBLES[name], role)) as at:
        stopped = at.run(*FIX)
        assert stopped.exit == 1, stopped.stderr
        assert "`proofstone resume last` goes on when it can be reached" in stopped.stderr
        assert at.state == "halted"
        assert at.player.requests == BEFORE[role] + ASKED[role]
        assert at.on_record("Fault") == ASKED[role]
        at.player.disturb = as_it_should
        came = at.resume()
    assert (came.exit, came.outcome) == (0, "passed"), came.stderr
    assert at.player.requests == WHOLE["fix"] + ASKED[role]
    assert at.player.given_twice == []


@pytest.mark.ci
def test_an_agent_that_never_answers_by_its_schema_ends_the_run(tmp_path: Path) -> None:
    """It is the agent's own failure, so it stays one."""
    disturb = ever(TROUBLES["an-answer-that-is-no-json"], "planner")
    with served(tmp_path, WireProtocol.ANTHROPIC, disturb) as at:
        came = at.run(*FIX)
        most = at.player.requests
        again = at.resume()
    assert (came.exit, came.outcome, most) == (1, "failed", 2 * (1 + MAX_REPAIRS))
    assert "no plan: its answer is not of the schema" in came.report.reason
    assert (at.on_record("Repair"), at.on_record("Fault")) == (2 * MAX_REPAIRS, 2)
    assert (again.outcome, again.report.reason, at.player.requests) == ("failed", came.report.reason, most)


@pytest.mark.sweep
@pytest.mark.parametrize("wire", WIRES)
def test_a_provider_that_never_says_a_word_is_left_at_the_deadline(tmp_path: Path, wire: WireProtocol) -> None:
    silent = Trouble(lambda _: Hang())
    with served(tmp_path, wire, ever(silent, "planner"), "[gate]\nagent_seconds = 3\n") as at:
        came = at.run(*FIX)
    assert (came.exit, came.outcome, at.player.requests) == (1, "failed", 1)
    assert "3 s" in came.report.reason
    assert at.on_record("Fault") == 1


@pytest.mark.ci
@pytest.mark.few(1)
@pytest.mark.parametrize("wire", WIRES)
def test_the_whole_pipeline_completes_although_every_fifth_request_fails(tmp_path: Path, wire: WireProtocol) -> None:
    with served(tmp_path, wire, now_and_then(5)) as at:
        came = at.run()
    assert (came.exit, came.outcome, came.report.lane) == (0, "passed", "standard"), came.stderr
    wrong = at.on_record("Fault") + at.on_record("Repair")
    assert wrong >= 3
    assert at.player.requests == WHOLE["standard"] + wrong
    assert at.player.given_twice == []


@pytest.mark.sweep
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("role", "tries"),
    [("researcher", 4), ("specifier", 1), ("designer", 1), ("challenger", 1), ("synthesizer", 1), ("architect", 1)],
)
def test_an_outage_anywhere_in_the_pipeline_stops_it_and_it_goes_on_afterwards(
    tmp_path: Path, role: str, tries: int, wire: WireProtocol
) -> None:
    """Whoever is asked at the same time comes to an end first."""
    with served(tmp_path, wire, ever(TROUBLES["429"], role)) as at:
        stopped = at.run()
        assert (stopped.exit, at.state) == (1, "halted"), stopped.stderr
        assert at.on_record("Fault") == tries * 2 * TRIES
        at.player.disturb = as_it_should
        came = at.resume()
    assert (came.exit, came.outcome) == (0, "passed"), came.stderr
    assert at.player.requests == WHOLE["standard"] + tries * 2 * TRIES
    assert at.player.given_twice == []


@pytest.mark.sweep
@pytest.mark.seed("pipeline", "knowledge-nonblocking")
def test_a_keeper_of_knowledge_that_cannot_be_reached_holds_nothing_up(tmp_path: Path) -> None:
    with served(tmp_path, WireProtocol.ANTHROPIC, ever(TROUBLES["429"], "knowledge")) as at:
        came = at.run()
    assert (came.exit, came.outcome) == (0, "passed"), came.stderr
    assert at.player.requests == WHOLE["standard"] - 1 + 2 * TRIES
