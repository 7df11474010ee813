"""Whatever is answered: the run ends, and commits nothing but what was checked and reviewed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.agents.roles.models.gate import TaskState
from proofstone.common.models import Confidence, FrozenModel, Lane, ReviewVerdict, Severity
from proofstone.gate.models import RunOutcome
from proofstone.pipeline.models.run import RunMode
from proofstone.pipeline.rules.effects import (
    AgentFailure,
    AgentReply,
    ApprovalDecision,
    AskDesign,
    AskForApproval,
    AskKnowledge,
    AskPlan,
    AskResearch,
    AskReview,
    AskSpec,
    CommitChange,
    Implement,
    MergedCheckResult,
    PipelineEffect,
    PipelineEffectResult,
    PipelineGoal,
    RecordNote,
    RunAllChecks,
    VerifyPlan,
)
from proofstone.pipeline.rules.planning import LANES_BY_DEPTH
from tests.pipeline.talk import (
    BASE,
    OUT,
    WAIT,
    Talk,
    checked,
    concern,
    converse,
    design,
    finding,
    gated,
    knowledge,
    name_of,
    plan,
    review,
    spec,
    task,
    verified,
    well,
)
from tests.talk import needs

_T = TypeVar("_T")


class Draw(Protocol):
    def __call__(self, strategy: st.SearchStrategy[_T], /) -> _T: ...


MOST = 120
"""Turns of the loop, notes among them: more than the longest run takes."""

FEATURES = st.builds(
    PipelineGoal,
    st.just("r1"),
    st.just("totals"),
    st.just("Carts have totals"),
    st.sampled_from(Lane),
    st.just("so"),
    st.sampled_from(RunMode),
    st.booleans(),
    st.just(BASE),
    st.sampled_from((0.0, 30.0)),
)
PLANS = st.sampled_from(
    (
        plan(task("x", title="Ask the bank", description="Something quite new.")),
        plan(task("a", criteria=("AC-1",)), task("b", criteria=("AC-2",), after=("a",))),
        plan(task(files=("shop/auth.py",), risk="🔴")),
        plan(task(files=("docs/a.md",), risk="🟢")),
        plan(task(criteria=("AC-9",))),
        plan(task(verify=("true",))),
    )
)
GRAVE = spec(concern(Severity.BLOCKER))
OUTPUTS: Mapping[type[PipelineEffect], st.SearchStrategy[FrozenModel]] = {
    AskSpec: st.sampled_from((spec(concern()), GRAVE)),
    AskDesign: st.just(design()),
    AskPlan: PLANS,
    AskKnowledge: st.just(knowledge()),
    AskReview: st.sampled_from(
        (
            review("needs_revision"),
            review("approve", finding(Severity.CRITICAL)),
            review("approve", finding(Severity.MINOR)),
            review("blocker"),
        )
    ),
}


TROUBLES = (*OUTPUTS, AskResearch, AskForApproval, VerifyPlan, Implement, RunAllChecks, CommitChange)


def answers(
    draw: Draw, troubled: tuple[type[PipelineEffect], ...] = ()
) -> Callable[[PipelineEffect], PipelineEffectResult]:
    """What is drawn for each need. Where nothing else is said, a few kinds of them are in trouble, so that the others
    get the run to where it shows; all of them are in every third run."""
    some = tuple(draw(st.lists(st.sampled_from(TROUBLES), max_size=2)))
    kinds = troubled or (TROUBLES if draw(st.integers(0, 2)) == 0 else some)

    def answer(need: PipelineEffect) -> PipelineEffectResult:
        if not isinstance(need, kinds) or draw(st.booleans()):
            return well(need)
        return _in_trouble(need, draw)

    return answer


def _in_trouble(need: PipelineEffect, draw: Draw) -> PipelineEffectResult:
    match need:
        case AskForApproval(request=request):
            chosen = draw(st.sampled_from([one.id for one in request.options]))
            return WAIT if draw(st.integers(0, 2)) == 0 else ApprovalDecision(chosen, "as I say")
        case VerifyPlan():
            return verified(draw(st.sampled_from(("REVISE", "RETHINK", None))), "It races")
        case Implement():
            outcome = draw(st.sampled_from((RunOutcome.FAILED, RunOutcome.FAILED, RunOutcome.FAILED, *RunOutcome)))
            state = draw(st.sampled_from((TaskState.FAILED, TaskState.PENDING, TaskState.FORCED)))
            return gated(need, outcome, state, reason=f"it is {outcome}")
        case RunAllChecks():
            left, level = draw(st.sampled_from(("", "", "it is 🔴"))), draw(st.sampled_from(Confidence))
            return checked(passed=draw(st.booleans()), left=left, confidence=level)
        case AskResearch() | CommitChange():
            return OUT
        case _:
            gone = draw(st.integers(0, 3)) == 0
            failed = AgentFailure("spent", is_budget_exhausted=draw(st.booleans()))
            return failed if gone else AgentReply(draw(OUTPUTS[type(need)]), "m")


@st.composite
def talks(draw: st.DrawFn, *troubled: type[PipelineEffect]) -> Talk:
    return converse(draw(FEATURES), answers(draw, troubled), most=MOST)


@given(talks())
@settings(max_examples=300)
def test_it_ends_and_says_how(it: Talk) -> None:
    assert (it.end.commit is not None) == (it.end.outcome is RunOutcome.PASSED)
    assert bool(it.end.reason) != (it.end.outcome is RunOutcome.PASSED)
    assert (it.end.waiting is not None) == (it.end.outcome is RunOutcome.NEEDS_HUMAN)
    assert len(needs(it, Implement)) <= 6
    assert len(needs(it, AskReview)) <= 3 * 2 + 3 * 2 + 2


@given(st.one_of(talks(), talks(AskReview), talks(Implement, RunAllChecks)))
@settings(max_examples=300)
@pytest.mark.seed("pipeline", "commit")
def test_nothing_is_committed_but_the_tip_that_has_passed_everything(it: Talk) -> None:
    for at, need in enumerate(it.needs):
        if not isinstance(need, CommitChange):
            continue
        before = [*zip(it.needs[:at], it.sent[:at], strict=True)]
        check, came = [(one, sent) for one, sent in before if isinstance(one, RunAllChecks)][-1]
        implemented = [one for one, _ in before if isinstance(one, Implement)][-1]
        assert isinstance(check, RunAllChecks)
        assert isinstance(came, MergedCheckResult)
        assert came.checks.passed
        assert check.tip == need.tip == it.end.tip
        assert before.index((check, came)) > it.needs.index(implemented)
        assert need.confidence in (Confidence.HIGH, Confidence.MEDIUM)
        assert it.end.lane is Lane.DOCS or _has_passed_review(it, need.tip)


def _has_passed_review(it: Talk, tip: str) -> bool:
    """By the rule, and not by the code that is tested: all of the last round, and of this very tip."""
    last = it.end.reviews[-1].round
    words = [one for one in it.end.reviews if one.scope == "code" and one.round == last]
    asked = [one for one in needs(it, AskReview) if one.scope == "code" and one.round == last]
    approving = sum(one.verdict is ReviewVerdict.APPROVE for one in words)
    return (
        len(words) == (1 if it.end.lane is Lane.FIX else 3)
        and {one.tip for one in asked} == {tip}
        and all(one.verdict not in (None, ReviewVerdict.BLOCKER) for one in words)
        and approving * 2 > len(words)
        and not any(one.findings.get(Severity.CRITICAL) for one in words)
    )


@given(talks(AskReview))
@settings(max_examples=200)
@pytest.mark.seed("pipeline", "security-blocker")
def test_nothing_is_committed_after_a_blocker(it: Talk) -> None:
    if any(one.verdict is ReviewVerdict.BLOCKER for one in it.end.reviews):
        assert it.end.outcome in (RunOutcome.HALTED, RunOutcome.BUDGET_EXHAUSTED)
        assert not needs(it, CommitChange)


@given(st.one_of(talks(), talks(AskReview, Implement)))
@settings(max_examples=200)
def test_a_lane_only_gets_deeper_and_no_step_is_named_twice(it: Talk) -> None:
    lanes = [LANES_BY_DEPTH.index(Lane(text.partition(":")[0])) for text in it.notes("lane")]
    assert lanes == sorted(set(lanes))
    names = [name_of(need) for need in it.needs if not isinstance(need, RecordNote)]
    assert len(names) == len(set(names))


@given(talks(AskSpec, AskForApproval))
@settings(max_examples=200)
def test_a_blocker_about_the_request_is_for_a_person(it: Talk) -> None:
    """Nothing is designed for such a specification, unless a person has said to proceed, then or beforehand."""
    grave = [at for at, sent in enumerate(it.sent) if isinstance(sent, AgentReply) and sent.output == GRAVE]
    designed = [at for at, need in enumerate(it.needs) if isinstance(need, AskDesign)]
    if not grave or not designed or it.feature.proceed_on_pushback:
        return
    between = [*zip(it.needs, it.sent, strict=True)][grave[-1] : designed[0]]
    said = [sent for need, sent in between if isinstance(need, AskForApproval) and need.by_person]
    others = [need for need, _ in between if isinstance(need, AskSpec)][1:]
    assert others or _option(said[-1]) == "proceed"


def _option(sent: PipelineEffectResult) -> str:
    assert isinstance(sent, ApprovalDecision)
    return sent.option


@given(st.data())
@settings(max_examples=100)
def test_the_same_answers_give_the_same_needs(data: st.DataObject) -> None:
    feature = data.draw(FEATURES)
    first = converse(feature, answers(data.draw), most=MOST)
    recorded = iter(first.sent)
    again = converse(feature, lambda _: next(recorded), most=MOST)
    assert again.needs == first.needs
    assert again.end == first.end
