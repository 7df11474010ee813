"""The same answers give the same decisions: histories that were stored are replayed, need by need, to the same end.

They are renewed with PROOFSTONE_RENEW_GOLDEN=1 python -m pytest tests/pipeline/test_histories.py, after a change that
is
meant to decide something else; the difference in the files is what it decides.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from proofstone.common.models import Confidence, ConfidenceRating, Severity
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.rules import building, directing, loop, planning, preparing, reviews
from proofstone.pipeline.rules import preparing as panel
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AgentReply,
    ApprovalDecision,
    CheckCounts,
    CountChecks,
    PipelineEffect,
    PipelineEffectResult,
    PipelineGoal,
    ReviewCounts,
)
from proofstone.pipeline.rules.reviews import (
    FULL_PANEL,
    REVIEW_GATE,
    SINGLE_REVIEWER_PANEL,
    CheckTally,
    ReviewGateDecision,
    ReviewGateRow,
    ReviewTally,
)
from tests.pipeline.replay import first_difference, read, written
from tests.pipeline.talk import (
    DOCS,
    FEATURE,
    FIX,
    GAVE_UP,
    INTERACTIVE,
    OUT,
    WAIT,
    Script,
    checked,
    concern,
    ended,
    failed,
    finding,
    plan,
    research,
    review,
    spec,
    talk,
    task,
    verified,
    well,
)
from tests.rows import each_row

Changes = tuple[tuple[ModuleType, str, object], ...]
"""What is put in place of what, in which module."""
FOLDER = Path(__file__).parent / "histories"
RENEW = "PROOFSTONE_RENEW_GOLDEN"
HOW = f"if that is meant, renew it with {RENEW}=1 python -m pytest {Path(__file__).name}, and read the difference"

ANEW = plan(task("x", title="Ask the bank", description="Something quite new."))
TWO = plan(task("a", criteria=("AC-1",)), task("b", criteria=("AC-2",)))
REST = plan(task("a", criteria=("AC-1",), description="Write it in another way."))
PAGE = plan(task(files=("docs/a.md",), risk="🟢"))
REVISION = review("needs_revision")
ANY_TWO = ("security", "correctness")


def _no_row_of_a_check(need: PipelineEffect) -> PipelineEffectResult:
    """Those of the reviews are there."""
    return (
        CheckCounts((CheckTally("the merged tree", ("tests",), ()),)) if isinstance(need, CountChecks) else well(need)
    )


STORIES: Mapping[str, tuple[PipelineGoal, Script]] = {
    "all-goes-well": (FEATURE, {}),
    "one-model-and-dissent": (
        FEATURE,
        {
            "code 1 security": AgentReply(REVISION, "one"),
            "code 1 architecture": AgentReply(review(), "one"),
            "code 1 correctness": AgentReply(review(), "one"),
        },
    ),
    "planned-anew": (FEATURE, {"plan 1.1": TWO, "implement 1": failed, "plan 2.1": REST}),
    "given-up": (replace(FEATURE, minutes=60.0), {"implement": failed, "plan 3.1": ANEW}),
    "a-whole-that-fails-once": (FEATURE, {"check 1": checked(passed=False)}),
    "a-plan-against-the-rules": (FEATURE, {"plan 1.1": plan(task(criteria=("AC-9",)))}),
    "a-plan-that-is-challenged": (
        FEATURE,
        {"verify 1": verified("REVISE", "Nobody locks it", mitigations=("lock the file",))},
    ),
    "design-and-code-revised": (
        FEATURE,
        {
            "design 1 security": review("needs_revision", scope="design"),
            "design 1 correctness": review("needs_revision", finding(Severity.CRITICAL), scope="design"),
            "code 1 security": REVISION,
            "code 1 correctness": REVISION,
        },
    ),
    "a-blocker-halts": (FEATURE, {"code 1 security": review("blocker")}),
    "somebody-is-never-heard": (FEATURE, {"code 1 security": OUT, "code 2 security": OUT}),
    "too-little-research": (
        FEATURE,
        {"research 1 impact": OUT, "research 1 patterns": OUT, "research 1 architecture": OUT},
    ),
    "out-of-its-lane": (FIX, {"plan 1.1": TWO}),
    "out-of-documentation": (DOCS, {"check 1": checked(left="shop/auth.py is 🔴"), "plan 1.1": PAGE}),
    "large": (FEATURE, {"plan": plan(task(files=("shop/auth.py",)))}),
    "waits-for-the-person": (INTERACTIVE, {"gate-post-planning": WAIT}),
    "the-person-decides": (
        INTERACTIVE,
        {
            "spec 1": spec(concern()),
            "gate-pushback": ApprovalDecision("modify", "keep the old route"),
            "gate-post-research": ApprovalDecision("expand", "Who calls it?"),
            "gate-post-planning": ApprovalDecision("revise", "Smaller tasks."),
        },
    ),
    "a-grave-concern": (FEATURE, {"spec": spec(concern(Severity.BLOCKER)), "gate-pushback": WAIT}),
    "the-task-gate-halts": (FEATURE, {"implement": ended(RunOutcome.HALTED)}),
    "of-low-confidence": (FEATURE, {"check": checked(confidence=Confidence.LOW, raises=("cover it",))}),
    "half-of-the-research": (FEATURE, {"research 1 impact": OUT, "research 1 patterns": OUT}),
    "researchers-asked-again": (
        FEATURE,
        {"research 1 impact": replace(OUT, was_asked_once=True), "research 1 patterns": research(completion=GAVE_UP)},
    ),
    "no-plan-is-ever-taken": (FEATURE, {"plan": plan(task(criteria=("AC-9",)))}),
    "challenged-to-the-end": (FEATURE, {"verify": verified("REVISE", "Nobody locks it")}),
    "never-agreed": (
        FEATURE,
        {f"{scope} {round} {focus}": REVISION for scope in ("design", "code") for round in (1, 2) for focus in ANY_TWO},
    ),
    "a-fix": (FIX, {}),
    "a-plateau": (FEATURE, {"implement": failed, "plan 3.2": ANEW}),
    "a-change-that-turns-out-red": (FEATURE, {"check 1": checked(left="the change is 🔴: shop/cart.py")}),
    "a-review-without-its-row": (FEATURE, {"rows code 1": ReviewCounts(ReviewTally(submitted=2, approving=2))}),
    "a-check-without-its-row": (FEATURE, {"rows": _no_row_of_a_check}),
    "cannot-be-committed": (FEATURE, {"commit": AgentFailure("the branch is locked")}),
    "abandoned": (INTERACTIVE, {"spec": spec(concern()), "gate-pushback": ApprovalDecision("abandon")}),
    "spent": (FEATURE, {"design 1": AgentFailure("the budget is spent", is_budget_exhausted=True)}),
}


@each_row("name", STORIES)
@pytest.mark.seed("pipeline", "deterministic")
def test_a_stored_history_is_replayed_to_the_same_end(name: str) -> None:
    path = FOLDER / f"{name}.jsonl"
    if os.environ.get(RENEW):
        feature, script = STORIES[name]
        path.write_text(written(talk(feature, script)), encoding="utf-8")
    difference = first_difference(read(path))
    assert not difference, f"{name}: {difference}\n{HOW}"


def test_every_history_is_told_and_every_end_is_among_them() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(STORIES)
    ends = {str(read(FOLDER / f"{name}.jsonl").delivered["outcome"]) for name in STORIES}
    assert ends == {outcome.value for outcome in RunOutcome} - {"cancelled"}  # a person cancels, not the loop


# A replay that could not fail would show nothing: whichever bound or row is another one, some history goes another way.


def rounds(design: int, code: int) -> Changes:
    both = {"design": design, "code": code}
    return ((loop, "MAX_REVIEW_ROUNDS", both), (preparing, "MAX_REVIEW_ROUNDS", both))


def without(number: int) -> Changes:
    """The review gate without this row; what the last one is for is then taken for known."""
    rows = [row for at, row in enumerate(REVIEW_GATE, start=1) if at != number]
    return ((reviews, "REVIEW_GATE", (*rows, ReviewGateRow(lambda _: True, ReviewGateDecision.KNOWN_ISSUES))),)


CHANGED: Mapping[str, Changes] = {
    "fewer researchers are enough": ((preparing, "MIN_RESEARCHERS", 1),),
    "more researchers are needed": ((preparing, "MIN_RESEARCHERS", 3),),
    "a plan against the rules is sent back once": ((building, "MAX_REJECTED_PLANS", 1),),
    "a plan against the rules is sent back three times": ((building, "MAX_REJECTED_PLANS", 3),),
    "the plan gate never sends a plan back": ((building, "MAX_RETURNS", 0),),
    "the plan gate sends a plan back twice": ((building, "MAX_RETURNS", 2),),
    "a design is not revised": rounds(1, 2),
    "a design is revised twice": rounds(3, 2),
    "code is reviewed once": rounds(2, 1),
    "code is reviewed three times": rounds(2, 3),
    "two iterations may fail": ((directing, "MAX_ITERATIONS", 2),),
    "four iterations may fail": ((directing, "MAX_ITERATIONS", 4),),
    **{f"row {number} of the review gate is gone": without(number) for number in range(1, 6)},
    "one reviewer is enough for every lane": ((panel, "FULL_PANEL", SINGLE_REVIEWER_PANEL),),
    "a fix has three reviewers": ((panel, "SINGLE_REVIEWER_PANEL", FULL_PANEL),),
    "no path is red": ((planning, "is_red", lambda _: False),),
    "no plan leaves its lane": ((building, "explain_lane_exit", lambda *_: ""),),
    "the same plan may come again": ((planning, "SIMILARITY_LIMIT", 1.1),),
    "rows of reviews do not matter": ((panel, "find_contradictions", lambda *_: ()),),
    "rows of checks do not matter": ((loop, "find_unproven_checks", lambda _: ()),),
    "any confidence is high": ((loop, "rate_pipeline_run", lambda _: ConfidenceRating(Confidence.HIGH)),),
}


@pytest.mark.parametrize("change", CHANGED)
def test_another_routing_is_seen_by_some_history(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in CHANGED[change]:
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, value)
    assert any(first_difference(read(FOLDER / f"{name}.jsonl")) for name in STORIES)


def test_another_number_of_rounds_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_REVIEW_ROUNDS", {"design": 2, "code": 1})
    difference = first_difference(read(FOLDER / "design-and-code-revised.jsonl"))
    assert difference.startswith("turn ")
    assert "Note.text is 'code, round 1: known_issues" in difference


def test_another_need_for_research_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "MIN_RESEARCHERS", 1)
    difference = first_difference(read(FOLDER / "too-little-research.jsonl"))
    assert difference.startswith("turn "), difference
    assert "goes on and asks AskForApproval" in difference


def test_another_answer_of_the_loop_is_seen_field_by_field() -> None:
    history = read(FOLDER / "planned-anew.jsonl")
    other = replace(history, feature=replace(history.feature, request="Carts have no totals"))
    difference = first_difference(other)
    assert "VerifyPlan.text is" in difference


def test_another_end_is_seen() -> None:
    history = read(FOLDER / "all-goes-well.jsonl")
    other = replace(history, delivered={**history.delivered, "confidence": "low"})
    assert first_difference(other) == "the end: confidence is 'high', and was 'low'"
