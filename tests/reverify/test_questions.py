"""Questions of level 2: made from the change, answered in free words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofstone.common.models import Verdict
from proofstone.supervision.models.context import DeltaLine, Operation
from proofstone.supervision.models.ladder import Category, Cause, LaterTask, Level, Question, Trigger
from proofstone.supervision.models.messages import Challenge, Reverify
from proofstone.supervision.models.understanding import Item, ItemVerdict
from proofstone.supervision.rules.questions import Subject, challenge, grade, question_for
from tests.reverify.scene import ANSWER, HANDLER, LIMITER, REQUIREMENT

CART = "src/shop/cart.py"


def cause(trigger: Trigger, number: int = 1) -> Cause:
    return Cause(number=number, trigger=trigger, level=Level.QUESTION, reason="so")


def line(operation: Operation, text: str = REQUIREMENT) -> DeltaLine:
    return DeltaLine(operation=operation, section="Scope", key="new_requirement", text=text)


def asked(*triggers: Trigger, **about: object) -> Question:
    return question_for([cause(one) for one in triggers], Subject(task="the cart", **about))  # type: ignore[arg-type]


LOGIN = Subject(
    task="the auth handler",
    declared=(HANDLER,),
    changed=(HANDLER,),
    delta=(line(Operation.ADDED),),
    affected=(HANDLER,),
)


# The seed's scenario


def test_the_scope_change_of_the_seed_is_asked_about_with_its_own_words() -> None:
    question = question_for([cause(Trigger.SCOPE_CHANGE)], LOGIN)
    assert question.category is Category.SCOPE_BOUNDARY
    assert REQUIREMENT in question.text and f"change your implementation plan for {HANDLER}" in question.text


@pytest.mark.parametrize("judged", [Verdict.PASS, Verdict.UNVERIFIABLE, None])
def test_the_answer_of_the_seed_announces_a_file_and_an_interface(judged: Verdict | None) -> None:
    graded = grade(question_for([cause(Trigger.SCOPE_CHANGE)], LOGIN), ANSWER, LOGIN, judged)
    assert graded.verdict is (judged or Verdict.UNVERIFIABLE)
    assert graded.missing == () and graded.announced == (LIMITER,) and graded.changed_approach


# Which question


@pytest.mark.parametrize(
    ("trigger", "about", "category"),
    [
        (Trigger.SCOPE_CHANGE, {"delta": (line(Operation.ADDED),)}, "SCOPE_BOUNDARY"),
        (Trigger.SCOPE_CHANGE, {"delta": (line(Operation.CHANGED),)}, "RIPPLE_TRACE"),
        (Trigger.SCOPE_CHANGE, {"delta": (line(Operation.REPLACED),)}, "RIPPLE_TRACE"),
        (Trigger.SCOPE_CHANGE, {"delta": (line(Operation.REMOVED),)}, "ASSUMPTION_PROBE"),
        (
            Trigger.SCOPE_CHANGE,
            {"delta": (line(Operation.ADDED),), "declared": ("web/package.json",)},
            "DEPENDENCY_RISK",
        ),
        (Trigger.STALE_DOCS, {}, "INTERCONNECTION_MAP"),
        (Trigger.MILESTONE, {}, "SCOPE_BOUNDARY"),
        (Trigger.LOW_TOOL_USE, {}, "ASSUMPTION_PROBE"),
        (Trigger.RECOVERY, {}, "SCOPE_BOUNDARY"),
        (Trigger.SILENCE, {}, "FAILURE_MODE"),
        (Trigger.DEVIATION, {}, "ALTERNATIVE_DEMAND"),
    ],
)
def test_the_cause_decides_the_category(trigger: Trigger, about: dict[str, object], category: str) -> None:
    assert asked(trigger, **about).category is Category(category)


@given(st.lists(st.sampled_from(list(Trigger)), min_size=1))
def test_several_causes_have_one_question_whatever_their_order(triggers: list[Trigger]) -> None:
    question = asked(*triggers, delta=(line(Operation.ADDED),))
    assert question == asked(*reversed(triggers), delta=(line(Operation.ADDED),))
    if Trigger.SCOPE_CHANGE in triggers:
        assert REQUIREMENT in question.text


@pytest.mark.parametrize("trigger", list(Trigger))
def test_every_question_fits_on_the_wire(trigger: Trigger) -> None:
    text = asked(trigger, declared=("a.py", "b\n.py"), interfaces=("f",) * 9).text
    told = Reverify(phase=6, level=Level.QUESTION, target="implementer-1", reason="so", question=text)
    assert told.question == text and "\n" not in text


# What the answer is worth


@pytest.mark.parametrize(
    ("about", "answer", "missing"),
    [
        (Subject("t", (CART,), (CART,)), f"Only `{CART}`.", ()),
        (Subject("t", (CART,), (CART,)), "only cart.py", ()),
        (Subject("t", (CART,), (CART,)), "I sum it up.", (CART,)),
        (Subject("t", (CART,), (CART,)), f"I will not touch {CART}.", (CART,)),
        (Subject("t", (CART, "b.py"), (CART, "b.py")), f"{CART}", ("b.py",)),
        (Subject("t", ("src/**",), ()), f"{CART}", ()),
        (Subject("t", ("src/**",), ()), "lib/x.py", ("src/**",)),
        (Subject("t"), "whatever", ()),
    ],
)
def test_files_are_checked_against_what_is_declared_and_what_changed(
    about: Subject, answer: str, missing: tuple[str, ...]
) -> None:
    graded = grade(question_for([cause(Trigger.SCOPE_CHANGE)], about), answer, about, Verdict.PASS)
    assert graded.missing == missing
    assert graded.verdict is (Verdict.FAIL if missing else Verdict.PASS)


@pytest.mark.parametrize("judged", [Verdict.PASS, Verdict.FAIL, Verdict.UNVERIFIABLE, None])
def test_why_is_judged_and_nobody_who_judges_is_no_pass(judged: Verdict | None) -> None:
    question = Question(category=Category.FAILURE_MODE, text="Why?")
    assert grade(question, "Because.", Subject("t"), judged).verdict is (judged or Verdict.UNVERIFIABLE)
    assert grade(question, "  ", Subject("t"), judged).verdict is Verdict.FAIL
    unjudged = question.model_copy(update={"judged": False})
    assert grade(unjudged, "Because.", Subject("t"), judged).verdict is Verdict.PASS


def test_files_that_a_rule_grants_are_no_other_approach() -> None:
    about = Subject("t", ("go.mod",), ("go.mod",))
    graded = grade(asked(Trigger.MILESTONE), "go.mod and go.sum, no interface changes", about)
    assert graded.announced == () and not graded.changed_approach


@given(st.text(), st.sampled_from([None, *Verdict]))
def test_no_answer_that_leaves_out_what_changed_is_understood(answer: str, judged: Verdict | None) -> None:
    about = Subject("t", (CART,), (CART,))
    graded = grade(question_for([cause(Trigger.RECOVERY)], about), answer.replace(CART, ""), about, judged)
    assert graded.verdict is Verdict.FAIL


# At the understanding gate


@pytest.mark.parametrize("item", list(Item))
def test_each_item_has_its_question(item: Item) -> None:
    failed = ItemVerdict(item=item, verdict=Verdict.FAIL, detail="there is no src/x.py")
    question = challenge(failed, Subject("t", (CART, "src/*.md"), later=(LaterTask(id="T3"),)))
    assert "there is no src/x.py" in question.text
    told = Challenge(phase=6, category=question.category, question=question.text)
    assert told.question == question.text


def test_questions_about_files_and_consequences_can_be_checked() -> None:
    about = Subject("t", (CART, "src/*.md"), later=(LaterTask(id="T3"),))
    files = challenge(ItemVerdict(item=Item.FILES, verdict=Verdict.FAIL), about)
    assert grade(files, "cart.py", about).missing == () and grade(files, "none", about).missing == (CART,)
    chain = challenge(ItemVerdict(item=Item.DOWNSTREAM, verdict=Verdict.FAIL), about)
    assert grade(chain, "T3 reads it", about).missing == () and grade(chain, "nobody", about).missing == ("T3",)


def test_every_category_is_asked() -> None:
    by_item = {challenge(ItemVerdict(item=item, verdict=Verdict.FAIL), Subject("t")).category for item in Item}
    assert by_item == set(Category)
