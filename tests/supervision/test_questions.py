"""Questions of level 2: made from the change, answered in free words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.common.models import Verdict
from proofstone.supervision.models.context import DeltaLine, DeltaOperation
from proofstone.supervision.models.ladder import (
    Category,
    LaterTask,
    ReverifyCause,
    ReverifyLevel,
    ReverifyQuestion,
    ReverifyTrigger,
)
from proofstone.supervision.models.messages import ImpactChallenge, ReverifyRequest
from proofstone.supervision.models.understanding import AnalysisItem, ItemVerdict
from proofstone.supervision.rules.questions import QuestionSubject, build_challenge, build_question, grade_answer
from tests.rows import each_row
from tests.supervision.watching import ANSWER, HANDLER, LIMITER, REQUIREMENT

CART = "src/shop/cart.py"


def cause(trigger: ReverifyTrigger, number: int = 1) -> ReverifyCause:
    return ReverifyCause(number=number, trigger=trigger, level=ReverifyLevel.QUESTION, reason="so")


def line(operation: DeltaOperation, text: str = REQUIREMENT) -> DeltaLine:
    return DeltaLine(operation=operation, section="Scope", key="new_requirement", text=text)


def asked(*triggers: ReverifyTrigger, **about: object) -> ReverifyQuestion:
    return build_question([cause(one) for one in triggers], QuestionSubject(task="the cart", **about))  # type: ignore[arg-type]


LOGIN = QuestionSubject(
    task="the auth handler",
    declared=(HANDLER,),
    changed=(HANDLER,),
    delta=(line(DeltaOperation.ADDED),),
    affected=(HANDLER,),
)


# The seed's scenario


@pytest.mark.seed("continuity", "scenario")
def test_the_scope_change_of_the_seed_is_asked_about_with_its_own_words() -> None:
    question = build_question([cause(ReverifyTrigger.SCOPE_CHANGE)], LOGIN)
    assert question.category is Category.SCOPE_BOUNDARY
    assert REQUIREMENT in question.text and f"change your implementation plan for {HANDLER}" in question.text


@pytest.mark.parametrize("judged", [Verdict.PASS, Verdict.UNVERIFIABLE, None])
def test_the_answer_of_the_seed_announces_a_file_and_an_interface(judged: Verdict | None) -> None:
    graded = grade_answer(build_question([cause(ReverifyTrigger.SCOPE_CHANGE)], LOGIN), ANSWER, LOGIN, judged)
    assert graded.verdict is (judged or Verdict.UNVERIFIABLE)
    assert graded.missing == () and graded.announced == (LIMITER,) and graded.changed_approach


# Which question


@each_row(
    ("trigger", "about", "category"),
    [
        (ReverifyTrigger.SCOPE_CHANGE, {"delta": (line(DeltaOperation.ADDED),)}, "SCOPE_BOUNDARY"),
        (ReverifyTrigger.SCOPE_CHANGE, {"delta": (line(DeltaOperation.CHANGED),)}, "RIPPLE_TRACE"),
        (ReverifyTrigger.SCOPE_CHANGE, {"delta": (line(DeltaOperation.REPLACED),)}, "RIPPLE_TRACE"),
        (ReverifyTrigger.SCOPE_CHANGE, {"delta": (line(DeltaOperation.REMOVED),)}, "ASSUMPTION_PROBE"),
        (
            ReverifyTrigger.SCOPE_CHANGE,
            {"delta": (line(DeltaOperation.ADDED),), "declared": ("web/package.json",)},
            "DEPENDENCY_RISK",
        ),
        (ReverifyTrigger.STALE_DOCS, {}, "INTERCONNECTION_MAP"),
        (ReverifyTrigger.LOW_TOOL_USE, {}, "ASSUMPTION_PROBE"),
        (ReverifyTrigger.RECOVERY, {}, "SCOPE_BOUNDARY"),
        (ReverifyTrigger.SILENCE, {}, "FAILURE_MODE"),
        (ReverifyTrigger.DEVIATION, {}, "ALTERNATIVE_DEMAND"),
    ],
)
def test_the_cause_decides_the_category(trigger: ReverifyTrigger, about: dict[str, object], category: str) -> None:
    assert asked(trigger, **about).category is Category(category)


@given(st.lists(st.sampled_from(list(ReverifyTrigger)), min_size=1))
def test_several_causes_have_one_question_whatever_their_order(triggers: list[ReverifyTrigger]) -> None:
    question = asked(*triggers, delta=(line(DeltaOperation.ADDED),))
    assert question == asked(*reversed(triggers), delta=(line(DeltaOperation.ADDED),))
    if ReverifyTrigger.SCOPE_CHANGE in triggers:
        assert REQUIREMENT in question.text


@each_row("trigger", list(ReverifyTrigger))
def test_every_question_fits_on_the_wire(trigger: ReverifyTrigger) -> None:
    text = asked(trigger, declared=("a.py", "b\n.py"), interfaces=("f",) * 9).text
    told = ReverifyRequest(phase=6, level=ReverifyLevel.QUESTION, target="implementer-1", reason="so", question=text)
    assert told.question == text and "\n" not in text


# What the answer is worth


@each_row(
    ("about", "answer", "missing"),
    [
        (QuestionSubject("t", (CART,), (CART,)), f"Only `{CART}`.", ()),
        (QuestionSubject("t", (CART,), (CART,)), "only cart.py", ()),
        (QuestionSubject("t", (CART,), (CART,)), "I sum it up.", (CART,)),
        (QuestionSubject("t", (CART,), (CART,)), f"I will not touch {CART}.", (CART,)),
        (QuestionSubject("t", (CART, "b.py"), (CART, "b.py")), f"{CART}", ("b.py",)),
        (QuestionSubject("t", ("src/**",), ()), f"{CART}", ()),
        (QuestionSubject("t", ("src/**",), ()), "lib/x.py", ("src/**",)),
        (QuestionSubject("t"), "whatever", ()),
    ],
)
def test_files_are_checked_against_what_is_declared_and_what_changed(
    about: QuestionSubject, answer: str, missing: tuple[str, ...]
) -> None:
    graded = grade_answer(build_question([cause(ReverifyTrigger.SCOPE_CHANGE)], about), answer, about, Verdict.PASS)
    assert graded.missing == missing
    assert graded.verdict is (Verdict.FAIL if missing else Verdict.PASS)


@pytest.mark.parametrize("judged", [Verdict.PASS, Verdict.FAIL, Verdict.UNVERIFIABLE, None])
def test_why_is_judged_and_nobody_who_judges_is_no_pass(judged: Verdict | None) -> None:
    question = ReverifyQuestion(category=Category.FAILURE_MODE, text="Why?")
    assert grade_answer(question, "Because.", QuestionSubject("t"), judged).verdict is (judged or Verdict.UNVERIFIABLE)
    assert grade_answer(question, "  ", QuestionSubject("t"), judged).verdict is Verdict.FAIL
    unjudged = question.model_copy(update={"judged": False})
    assert grade_answer(unjudged, "Because.", QuestionSubject("t"), judged).verdict is Verdict.PASS


def test_files_that_a_rule_grants_are_no_other_approach() -> None:
    about = QuestionSubject("t", ("go.mod",), ("go.mod",))
    graded = grade_answer(asked(ReverifyTrigger.LOW_TOOL_USE), "go.mod and go.sum, no interface changes", about)
    assert graded.announced == () and not graded.changed_approach


@given(st.text(), st.sampled_from([None, *Verdict]))
def test_no_answer_that_leaves_out_what_changed_is_understood(answer: str, judged: Verdict | None) -> None:
    about = QuestionSubject("t", (CART,), (CART,))
    graded = grade_answer(
        build_question([cause(ReverifyTrigger.RECOVERY)], about), answer.replace(CART, ""), about, judged
    )
    assert graded.verdict is Verdict.FAIL


# At the understanding gate


@each_row("item", list(AnalysisItem))
def test_each_item_has_its_question(item: AnalysisItem) -> None:
    failed = ItemVerdict(item=item, verdict=Verdict.FAIL, detail="there is no src/x.py")
    question = build_challenge(failed, QuestionSubject("t", (CART, "src/*.md"), later=(LaterTask(id="T3"),)))
    assert "there is no src/x.py" in question.text
    told = ImpactChallenge(phase=6, category=question.category, question=question.text)
    assert told.question == question.text


def test_questions_about_files_and_consequences_can_be_checked() -> None:
    about = QuestionSubject("t", (CART, "src/*.md"), later=(LaterTask(id="T3"),))
    files = build_challenge(ItemVerdict(item=AnalysisItem.FILES, verdict=Verdict.FAIL), about)
    assert grade_answer(files, "cart.py", about).missing == () and grade_answer(files, "none", about).missing == (CART,)
    chain = build_challenge(ItemVerdict(item=AnalysisItem.DOWNSTREAM, verdict=Verdict.FAIL), about)
    assert grade_answer(chain, "T3 reads it", about).missing == () and grade_answer(chain, "nobody", about).missing == (
        "T3",
    )


def test_every_category_is_asked() -> None:
    by_item = {
        build_challenge(ItemVerdict(item=item, verdict=Verdict.FAIL), QuestionSubject("t")).category
        for item in AnalysisItem
    }
    assert by_item == set(Category)
