"""AC-10 and AC-13: where a person is asked, with which choices, and what happens where there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from proofstone.common.models import Severity
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import ApprovalRequest
from proofstone.pipeline.rules.effects import ApprovalDecision, AskForApproval
from tests.acceptance.conftest import CONCERN, Ended
from tests.pipeline.stage import Stage, specifier
from tests.pipeline.talk import FEATURE, INTERACTIVE, WAIT, Script, concern, spec, talk
from tests.talk import needs

GATES = {
    "gate-post-research": ("1a", ["proceed", "expand", "abort"]),
    "gate-pushback": ("2", ["proceed", "modify", "abandon"]),
    "gate-post-planning": ("4a", ["approve", "revise", "abort"]),
}
CONCERNED: Script = {"spec": spec(concern())}


# AC-10: interactive.


@pytest.mark.parametrize("gate", GATES)
def test_ac_10_each_gate_asks_with_choices_of_which_one_is_the_default(gate: str) -> None:
    """AC-10, interactive: the seed's approval_request."""
    asked = {one.request.gate_id: one.request for one in needs(talk(INTERACTIVE, CONCERNED), AskForApproval)}
    request = asked[gate]
    assert (request.pipeline_step, [one.id for one in request.options]) == GATES[gate]
    assert [one.id for one in request.options if one.is_default] == [request.options[0].id]
    assert request.question and request.context
    assert all(len(one.label) <= 50 and one.description for one in request.options)


@pytest.mark.parametrize("gate", GATES)
def test_ac_10_where_nobody_answers_the_run_waits_there(gate: str) -> None:
    """AC-10: nothing is taken for an answer."""
    it = talk(INTERACTIVE, {**CONCERNED, gate: WAIT})
    assert (it.end.outcome, it.asked[-1]) == (RunOutcome.NEEDS_HUMAN, gate)


@pytest.mark.seed("pipeline", "approval-survives")
def test_ac_10_a_waiting_approval_survives_a_restart_and_is_answered_from_outside(tmp_path: Path) -> None:
    """AC-10: the same question again after a resume, and the person's word on record as theirs."""
    stage = Stage.set_up(tmp_path / "stage")
    waiting = stage.run(args=("--mode", "interactive"))
    assert (waiting.exit, waiting.outcome) == (3, "needs_human")
    again = stage.resume(waiting.report.run_id)
    first, second = _asked(waiting.report.waiting), _asked(again.report.waiting)
    assert first == second
    assert first["gate_id"] == "gate-post-research"
    assert waiting.report.waiting is not None
    assert waiting.report.waiting.metadata.elapsed_time.endswith("s")
    assert stage.proofstone("approve", waiting.report.run_id, "gate-post-research", "abort").returncode == 0
    ended = stage.resume(waiting.report.run_id)
    assert (ended.exit, ended.report.reason) == (1, "aborted by the user")
    (decided,) = ended.report.approvals
    assert (decided.mode.value, decided.selected_option, decided.auto_selected) == ("interactive", "abort", False)


def _asked(request: ApprovalRequest | None) -> dict[str, object]:
    assert request is not None
    body: dict[str, object] = json.loads(request.model_dump_json(exclude={"metadata": {"elapsed_time"}}))
    return body


# AC-13: pushback.


def test_ac_13_concerns_come_with_structured_choices() -> None:
    """AC-13, interactive: with what is suggested instead."""
    it = talk(INTERACTIVE, {**CONCERNED, "gate-pushback": WAIT})
    assert isinstance(it.end.waiting, ApprovalRequest)
    assert it.end.waiting.context == "major: It breaks old clients. Suggested: Keep the old route."
    assert [one.id for one in it.end.waiting.options] == ["proceed", "modify", "abandon"]
    assert "design 1" not in it.asked


@pytest.mark.parametrize(
    ("option", "outcome", "then"),
    [
        ("proceed", RunOutcome.PASSED, "design 1"),
        ("modify", RunOutcome.PASSED, "spec 2"),
        ("abandon", RunOutcome.HALTED, ""),
    ],
)
@pytest.mark.seed("pipeline", "pushback-spec")
def test_ac_13_each_choice_does_what_it_says(option: str, outcome: RunOutcome, then: str) -> None:
    """AC-13."""
    it = talk(INTERACTIVE, {"spec 1": spec(concern()), "gate-pushback": ApprovalDecision(option, "it is meant")})
    assert it.end.outcome is outcome
    assert [*it.asked[it.asked.index("gate-pushback") :], ""][1] == then


def test_ac_13_on_its_own_it_logs_a_concern_and_goes_on(red: Ended) -> None:
    """AC-13, autonomous."""
    notes = red.stage.events(red.report.run_id, "pipeline.note")
    (noted,) = (one for one in notes if one["kind"] == "concern")
    assert noted["data"] == CONCERN
    assert red.report.outcome is RunOutcome.PASSED


def test_ac_13_a_blocker_waits_for_a_person_unless_they_said_otherwise_before(tmp_path: Path) -> None:
    """AC-13. In the seed, pushback never stops a run that is on its own; here a blocker does (rules, section 1), and
    `--proceed-on-pushback` is the person's word beforehand."""
    grave = {"severity": "blocker", "concern": "There is no cart in this shop."}
    came = Stage.set_up(tmp_path / "stage").run(specifier(grave))
    assert (came.exit, came.outcome, came.report.commit) == (3, "needs_human", None)
    assert came.report.waiting is not None
    assert (came.report.waiting.gate_id, came.report.waiting.default.id) == ("gate-pushback", "abandon")
    told = talk(replace(FEATURE, proceed_on_pushback=True), {"spec": spec(concern(Severity.BLOCKER))})
    assert (told.end.outcome, len(told.notes("concern"))) == (RunOutcome.PASSED, 1)
