"""What a person is told before a run begins, and what a run that commits nothing leaves for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.roles.models.gate import TaskState
from proofstone.common.models import Lane, Severity
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import ApprovalEntry, GateSummary, RunMode
from proofstone.pipeline.rules.effects import (
    ApprovalDecision,
    AskPlan,
    AskSpec,
    AwaitFix,
    FixOrdered,
    PipelineEffect,
    PipelineEffectResult,
)
from proofstone.pipeline.rules.endings import list_partial_results, suggest_next_moves
from proofstone.pipeline.rules.request_concerns import find_request_concerns
from tests.pipeline import reports
from tests.pipeline.talk import FEATURE, INTERACTIVE, WAIT, concern, report, review, talk
from tests.rows import each_row
from tests.talk import needs

LONG = "\n".join(f"- thing {number}" for number in range(13))
CONCERNS = [
    ("let carts have totals", (), Lane.STANDARD, []),
    ("fix the rounding in src/shop.py", (), Lane.FIX, []),
    ("fix it", (), Lane.FIX, ["major: the request says only 'fix it'"]),
    ("skip the slow tests for now", (), Lane.STANDARD, ["major: the request seems to ask for a weaker check"]),
    ("say what it does", ("src/shop.py",), Lane.DOCS, ["major: the lane is for documentation, and src/shop.py"]),
    ("fix the rounding in src/gone.py", (), Lane.FIX, ["minor: the repository does not have src/gone.py"]),
    ("fix the rounding at last", ("src/gone.py",), Lane.FIX, ["minor: the repository does not have src/gone.py"]),
    ("add src/gone.py with a cart", (), Lane.STANDARD, []),
    ("see https://example.org/a/b.html for how", (), Lane.STANDARD, []),
    (f"do all of this:\n{LONG}", (), Lane.STANDARD, ["minor: the request lists 13 things"]),
]


@each_row(("request_text", "files", "lane", "told"), CONCERNS)
def test_the_engine_says_what_is_doubtful_about_a_request(
    request_text: str, files: tuple[str, ...], lane: Lane, told: list[str]
) -> None:
    found = find_request_concerns(request_text, files, lane, lambda path: path == "src/shop.py")
    assert len(found) == len(told)
    for said, start in zip(found, told, strict=True):
        assert f"{said.severity}: {said.concern}".startswith(start)
        assert said.suggestion and said.severity is not Severity.BLOCKER


HALTED = reports.waiting().model_copy(
    update={"outcome": RunOutcome.HALTED, "waiting": None, "awaits_fix": 1, "approvals": ()}
)
FAILED = HALTED.model_copy(update={"outcome": RunOutcome.FAILED, "awaits_fix": 0})
GATE = GateSummary(
    iteration=1,
    run_id="r1-g1",
    outcome=RunOutcome.FAILED,
    reason="",
    tasks=(report(1, "count"), report(2, "show", state=TaskState.FAILED)),
    tip="t",
)
ABORTED = ApprovalEntry(
    gate_id="g", timestamp="t", mode=RunMode.INTERACTIVE, selected_option="abort", auto_selected=False
)


def test_a_run_without_a_commit_names_what_is_done_and_what_to_do() -> None:
    assert list_partial_results((GATE,)) == ("count: done and checked, but not committed",)
    halted = suggest_next_moves(HALTED, "a b.patch")
    assert halted[0].endswith(f"proofstone resume {HALTED.run_id}") and halted[1].endswith("git apply 'a b.patch'")
    partly = suggest_next_moves(FAILED.model_copy(update={"gates": (GATE,), "partial": ("count",)}))
    assert "start again with what is left: show" in partly
    again = GATE.model_copy(update={"tasks": tuple(task.model_copy(update={"state": "FAILED"}) for task in GATE.tasks)})
    twice = suggest_next_moves(FAILED.model_copy(update={"gates": (GATE, again), "partial": ("count",)}))
    assert "start again with what is left: show" in twice, "what was done before is not left"
    for moves in (halted, partly, suggest_next_moves(FAILED)):
        assert 2 <= len(moves) <= 3
    assert suggest_next_moves(FAILED.model_copy(update={"approvals": (ABORTED,)})) == ()
    assert suggest_next_moves(FAILED.model_copy(update={"outcome": RunOutcome.PASSED})) == ()


def ordered_once(need: PipelineEffect) -> PipelineEffectResult:
    """A person has resumed the run once."""
    assert isinstance(need, AwaitFix)
    return FixOrdered() if need.number == 1 else WAIT


BLOCKER = review("blocker")
FOCI = ("security", "architecture", "correctness")


@pytest.mark.parametrize("scope", ["design", "code"])
def test_what_blocks_a_run_is_fixed_and_reviewed_in_a_round_of_its_own(scope: str) -> None:
    halted = talk(script={f"{scope} 1 security": BLOCKER})
    assert (halted.end.outcome, halted.end.awaits_fix) == (RunOutcome.HALTED, 1)
    fixed = talk(script={f"{scope} 1 security": BLOCKER, "fix": ordered_once})
    assert (fixed.end.outcome, fixed.end.awaits_fix) == (RunOutcome.PASSED, 0)
    again = [f"{scope} 2 {focus}" for focus in FOCI]
    work = "design 2" if scope == "design" else "implement 2"
    assert fixed.asked.index(work) < min(fixed.asked.index(name) for name in again)
    assert fixed.notes("fix") == [f"ordered by a person: {halted.end.reason}"]
    # The rounds count anew; and what is blocked again halts again.
    revised = talk(
        script={
            f"{scope} 1 security": BLOCKER,
            **dict.fromkeys([f"{scope} 2 {focus}" for focus in FOCI[:2]], review("needs_revision")),
            "fix": ordered_once,
        }
    )
    assert f"{scope} 3 security" in revised.asked and revised.end.outcome is RunOutcome.PASSED
    worse = talk(script={f"{scope} 1 security": BLOCKER, f"{scope} 2 security": BLOCKER, "fix": ordered_once})
    assert (worse.end.outcome, worse.end.awaits_fix) == (RunOutcome.HALTED, 2)


def test_concerns_about_the_request_come_before_everything_in_every_lane() -> None:
    doubtful = replace(INTERACTIVE, concerns=(concern(text="It is vague."),))
    for feature in (doubtful, replace(doubtful, lane=Lane.FIX)):
        assert talk(feature).asked[0] == "gate-request"
        abandoned = talk(feature, {"gate-request": ApprovalDecision("abandon")})
        assert (abandoned.asked, abandoned.end.outcome) == (["gate-request"], RunOutcome.HALTED)
    modified = {"gate-request": ApprovalDecision("modify", "only in the shop")}
    (asked,) = needs(talk(doubtful, modified), AskSpec)
    assert asked.answers == ("only in the shop", "the concern is: It is vague.")
    (planned,) = needs(talk(replace(doubtful, lane=Lane.FIX), modified), AskPlan)
    assert "only in the shop" in planned.failures
    alone = talk(replace(FEATURE, concerns=doubtful.concerns))
    assert (alone.notes("concern"), alone.end.outcome) == (["major: It is vague."], RunOutcome.PASSED)
