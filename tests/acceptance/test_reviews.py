"""AC-4: three reviewers with three foci, at once, each word a row of the ledger, and a bound on the rounds."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.pipeline import PanelFinding, PanelOutput, ReviewFocus
from proofstone.common.models import Confidence
from proofstone.pipeline.agents import RequestContext, build_agent_request, restore_request_fields
from proofstone.pipeline.rules.effects import AskReview
from tests.acceptance.conftest import Ended
from tests.pipeline.stage import FOCI
from tests.pipeline.talk import review, talk

SCOPES = pytest.mark.parametrize("scope", ["design", "code"])
ROWS = """SELECT check_name, round, verdict, passed, tree != '' FROM checks
    WHERE run_id = ? AND phase = 'review' AND task_id LIKE ? ORDER BY check_name"""


@SCOPES
@pytest.mark.seed("pipeline", "three-reviewers")
def test_ac_04_three_are_asked_at_once_each_for_something_else(scope: str) -> None:
    """AC-4: always three, whatever the risk."""
    three = tuple(f"{scope} 1 {focus}" for focus in FOCI)
    assert three in talk().batches


@SCOPES
@pytest.mark.seed("pipeline", "three-reviewers")
def test_ac_04_every_word_is_a_row_and_a_page(red: Ended, scope: str) -> None:
    """AC-4, with three different models; which one has spoken, the engine writes down."""
    rows = red.rows(ROWS, red.report.run_id, f"%{scope}-review")
    assert rows == [(f"review-{scope}-{focus}", 1, "approve", 1, 1) for focus in sorted(FOCI)]
    said = {focus: red.yaml(f"review-verdicts/{scope}-{focus}-r1.yaml")["payload"] for focus in FOCI}
    models = {focus: payload["reviewer_model"] for focus, payload in said.items()}
    assert models == {focus: f"script:{red.stage.workshop.folder / focus}.yaml" for focus in FOCI}
    for focus in FOCI:
        page = (red.folder / f"review-findings/{scope}-{focus}-r1.md").read_text(encoding="utf-8")
        assert "Verdict: **approve**" in page


@SCOPES
@pytest.mark.seed("pipeline", "review-gate")
def test_ac_04_two_of_three_are_enough_and_one_is_not(scope: str) -> None:
    """AC-4. The other one's findings are kept."""
    no = review("needs_revision")
    passed = talk(script={f"{scope} 1 security": no})
    assert passed.end.commit
    assert [one.source for one in passed.end.known_issues] == [f"review {scope}/security, round 1"]
    again = talk(script={f"{scope} 1 security": no, f"{scope} 1 correctness": no})
    assert f"{scope} 2 security" in again.asked


@pytest.mark.seed("pipeline", "review-gate")
def test_ac_04_an_open_critical_is_not_outvoted() -> None:
    """AC-4. The seed lets 2 of 3 pass it; here it is a round of revision (rules, section 1)."""
    approving = review("approve").model_copy(update={"findings": (_critical(),)})
    it = talk(script={"code 1 security": approving})
    assert "code 2 security" in it.asked


def _critical() -> PanelFinding:
    said = review("needs_revision").findings[0]
    return said.model_validate({**said.model_dump(), "severity": "critical"})


@pytest.mark.parametrize(("scope", "works"), [("design", "design"), ("code", "implement")])
@pytest.mark.seed("pipeline", "review-rounds")
def test_ac_04_there_are_two_rounds_and_no_more(scope: str, works: str) -> None:
    """AC-4: one revision of a design, two rounds of code. What is left of a design binds the plan; what is left of code
    is not committed."""
    said = review("needs_revision")
    it = talk(script={f"{scope} {round} {focus}": said for round in (1, 2, 3) for focus in FOCI})
    rounds = [name for name in it.asked if name.endswith("security") and name.startswith(scope)]
    assert rounds == [f"{scope} 1 security", f"{scope} 2 security"]
    assert len([name for name in it.asked if name in (f"{works} 1", f"{works} 2", f"{works} 3")]) == 2
    assert (it.end.commit is None) == (scope == "code")
    assert it.end.confidence is (Confidence.LOW if scope == "code" else Confidence.MEDIUM)


@pytest.mark.parametrize("said", [{"scope": "design"}, {"review_focus": "correctness"}, {"round": 7}])
def test_ac_04_of_which_scope_focus_and_round_a_review_is_no_reviewer_decides(said: dict[str, object]) -> None:
    """AC-4. One that says something else would otherwise stand in another's place: as a row, and as a file."""
    asked = build_agent_request(AskReview("code", ReviewFocus.SECURITY, 2, tip="t"), RequestContext("r1", "Count"))
    found = restore_request_fields(asked.request, review(focus=ReviewFocus.SECURITY, round=2).model_copy(update=said))
    assert isinstance(found, PanelOutput)
    assert (found.scope, found.review_focus, found.round) == ("code", ReviewFocus.SECURITY, 2)
