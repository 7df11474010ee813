"""One subtask: who is asked, how often, and what comes of it."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from proofstone.agents.roles.models.solve_messages import CorrectionSignal, Criterion, CriterionMode
from proofstone.runtime.rules import EffectDone
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskValidator,
    CheckCriteria,
    CriteriaVerdicts,
    SolveAgentFailure,
    SolveAgentReply,
)
from proofstone.solve.rules.subtask import format_output, pursue_subtask
from tests.rows import each_row
from tests.solve.talk import (
    BLOCKED,
    ENVIRONMENTAL,
    LOGICAL,
    OUT,
    SPEC,
    WRONG,
    Script,
    Scripted,
    crash,
    done,
    fast,
    judgement,
    messages,
    perceived,
    plausible,
    seen,
    subtask,
    verifiable,
    word,
)
from tests.talk import needs

ONE = subtask(plausible())
SEEN_WRONG = seen((verifiable(),), LOGICAL)


@each_row(
    ("judgements", "attempts", "matched"),
    [
        ([judgement(None)], 1, True),
        ([WRONG, judgement(None)], 2, True),
        ([WRONG, BLOCKED, judgement(None)], 3, True),
        ([WRONG, WRONG, WRONG], 3, False),
        ([OUT, judgement(None)], 2, True),
        ([OUT, OUT, OUT], 3, False),
    ],
)
@pytest.mark.seed("control-loop", "fast-loop")
def test_there_are_at_most_two_corrections(judgements: list[Scripted], attempts: int, matched: bool) -> None:
    talk = fast(ONE, {"judge": judgements})
    assert [one.attempt for one in needs(talk, AskExecutor)] == list(range(1, attempts + 1))
    assert len(messages(talk, CorrectionSignal)) == attempts - 1
    assert [one.attempt for one in talk.fast.gap_trajectory] == list(range(1, attempts + 1))
    assert talk.fast.is_matched == matched


@pytest.mark.parametrize(
    "script",
    [{"execute": crash()}, {"execute": crash(may=True)}, {"execute": done(may=False), "judge": WRONG}],
    ids=["a crash", "a crash that says it may be tried again", "a safety refusal"],
)
@pytest.mark.seed("control-loop", "fast-loop")
def test_there_is_no_correction_where_trying_again_would_not_help(script: Script) -> None:
    talk = fast(ONE, script)
    assert len(needs(talk, AskExecutor)) == 1
    assert not messages(talk, CorrectionSignal)
    assert not talk.fast.is_matched


def test_nobody_judges_a_crash_and_all_its_criteria_fail_as_environmental() -> None:
    talk = fast(subtask(plausible(), verifiable()), {"execute": crash("it timed out")})
    assert talk.asked == ["execute r1-s1.1"]
    assert [(one.mode, one.failure_class) for one in talk.fast.criteria_verdicts] == [
        (CriterionMode.VERIFIABLE, ENVIRONMENTAL)
    ] * 2
    assert talk.fast.failure_reason == "it timed out"


def test_a_crash_of_the_second_attempt_ends_it() -> None:
    talk = fast(ONE, {"execute": [done(), crash()], "judge": WRONG})
    assert talk.asked == ["execute r1-s1.1", "judge r1-s1.1", "execute r1-s1.2"]
    assert [len(one.failed_criteria) for one in talk.fast.gap_trajectory] == [1, 1]


@pytest.mark.parametrize(
    ("criteria", "asked"),
    [
        ((verifiable("a"), verifiable("b")), ["look"]),
        ((plausible("a"), plausible("b")), ["judge"]),
        ((plausible("a"), verifiable("b"), plausible("c")), ["look", "judge"]),
    ],
)
def test_a_verifiable_criterion_never_reaches_a_model(criteria: tuple[Criterion, ...], asked: list[str]) -> None:
    talk = fast(subtask(*criteria))
    assert [one.split()[0] for one in talk.asked] == ["execute", *asked]
    assert all(one.mode is CriterionMode.PLAUSIBLE for ask in needs(talk, AskValidator) for one in ask.criteria)
    assert all(one.mode is CriterionMode.VERIFIABLE for look in needs(talk, CheckCriteria) for one in look.criteria)
    assert [one.criterion for one in talk.fast.criteria_verdicts] == [one.criterion for one in criteria]


def test_verdicts_stand_in_the_order_of_the_criteria() -> None:
    of = subtask(plausible("a"), verifiable("b"), plausible("c"), verifiable("d"))
    script: Script = {
        "look": seen((of.success_criteria[1], of.success_criteria[3]), None, LOGICAL),
        "judge": judgement(None),
    }
    talk = fast(of, script)
    assert [(one.criterion, one.verdict) for one in talk.fast.criteria_verdicts] == [
        ("a", "pass"),
        ("b", "pass"),
        ("c", "fail"),
        ("d", "fail"),
    ]


def test_what_the_engine_saw_stands_whatever_a_model_says() -> None:
    talk = fast(subtask(verifiable(), plausible()), {"look": SEEN_WRONG, "judge": judgement(None, None)})
    assert [one.verdict for one in talk.fast.criteria_verdicts] == ["fail", "pass"]
    assert not talk.fast.is_matched


@pytest.mark.parametrize(
    "looked",
    [CriteriaVerdicts(()), seen((verifiable("another"),)), seen((verifiable(),))],
    ids=["nothing", "something else", "too little"],
)
def test_what_the_engine_did_not_look_at_has_not_passed(looked: CriteriaVerdicts) -> None:
    talk = fast(subtask(verifiable(), verifiable("it is quick")), {"look": looked})
    assert [one.criterion for one in talk.fast.criteria_verdicts] == ["its tests pass", "it is quick"]
    assert talk.fast.criteria_verdicts[-1].failure_class is ENVIRONMENTAL
    assert not talk.fast.is_matched


def test_what_nobody_wanted_to_be_looked_at_is_left_out() -> None:
    talk = fast(subtask(verifiable()), {"look": seen((verifiable(), verifiable("another")), None, LOGICAL)})
    assert [one.criterion for one in talk.fast.criteria_verdicts] == ["its tests pass"]
    assert talk.fast.is_matched


@pytest.mark.parametrize(
    "answer",
    [SolveAgentFailure("no object in it"), SolveAgentReply(perceived()), EffectDone()],
    ids=["unreadable", "another answer", "none"],
)
def test_a_verdict_that_cannot_be_read_is_a_failure_of_the_environment(answer: Scripted) -> None:
    talk = fast(ONE, {"judge": answer})
    (verdict,) = talk.fast.criteria_verdicts
    assert (verdict.verdict, verdict.failure_class, verdict.mode) == ("fail", ENVIRONMENTAL, CriterionMode.PLAUSIBLE)
    assert "the criterion could not be judged" in verdict.evidence


def test_the_reason_that_it_could_not_be_judged_is_told() -> None:
    talk = fast(ONE, {"judge": SolveAgentFailure("no object in it")})
    assert talk.fast.failure_reason == "nobody's balance changes: the criterion could not be judged: no object in it"


def test_a_correction_says_what_failed_first_and_what_to_do() -> None:
    of = subtask(plausible("a"), plausible("b"), plausible("c"))
    said = judgement(None, word(2, ENVIRONMENTAL, "is off"), word(3, LOGICAL, "is odd"), what_to_do="count again")
    talk = fast(of, {"judge": [said, judgement(None, None, LOGICAL)]})
    first, second = messages(talk, CorrectionSignal)
    assert (first.attempt_number, first.failed_criterion, first.failure_class) == (1, "b", ENVIRONMENTAL)
    assert (first.what_was_wrong, first.what_to_do) == ("b: is off; c: is odd", "count again")
    assert (second.attempt_number, second.failed_criterion, second.failure_class) == (2, "c", LOGICAL)
    assert second.what_to_do == "fix each of these, and change nothing that already passes"
    assert first.subtask_id == second.subtask_id == of.subtask_id


@pytest.mark.parametrize(
    ("said", "wrong", "to_do"),
    [
        (judgement(LOGICAL, what_was_wrong="it counts twice "), "b: row 7 says so; it counts twice", ""),
        (judgement(LOGICAL, what_was_wrong=" ", what_to_do="count once"), "b: row 7 says so", "count once"),
        (judgement(None, what_was_wrong="nothing", what_to_do="nothing"), "", ""),
        (OUT, "b: the criterion could not be judged: no answer within 60 seconds", ""),
    ],
    ids=["what was wrong", "what to do", "nothing of its own failed", "it is silent"],
)
def test_a_correction_has_the_validators_words_beside_what_the_engine_saw(
    said: Scripted, wrong: str, to_do: str
) -> None:
    of = subtask(verifiable(), plausible("b"))
    signal, *_ = messages(fast(of, {"look": SEEN_WRONG, "judge": said}), CorrectionSignal)
    assert signal.what_was_wrong == "; ".join(filter(None, ("its tests pass: exit 1", wrong)))
    assert signal.what_to_do == (to_do or "fix each of these, and change nothing that already passes")


def test_an_executor_is_told_all_that_was_wrong_so_far() -> None:
    talk = fast(ONE, {"judge": WRONG}, blocked_tools=("run",), blocked_targets=("src/a.py",))
    asks = needs(talk, AskExecutor)
    assert [[one.attempt_number for one in ask.corrections] for ask in asks] == [[], [1], [1, 2]]
    assert {(ask.blocked_tools, ask.blocked_targets) for ask in asks} == {(("run",), ("src/a.py",))}
    assert all(ask.spec == SPEC and ask.subtask == ONE for ask in asks)


def test_the_last_attempt_counts_and_what_all_of_them_used_is_on_record() -> None:
    executed = [done("read", targets=("a",), output="one"), done("run", "read", targets=("b",), output="two")]
    talk = fast(ONE, {"execute": [*executed], "judge": [WRONG, judgement(None)]})
    assert (talk.fast.output, talk.fast.tools, talk.fast.targets) == ("two", ("read", "run"), ("a", "b"))
    assert [len(one.failed_criteria) for one in talk.fast.gap_trajectory] == [1, 0]
    assert talk.fast.failure_reason is None


def test_what_is_said_and_in_which_order() -> None:
    talk = fast(subtask(verifiable(), plausible()), {"judge": [WRONG, judgement(None)]})
    assert talk.names == [
        "execute r1-s1.1",
        "executor → agent_validator: ExecutionResult",
        "look r1-s1.1",
        "judge r1-s1.1",
        "agent_validator → executor: CorrectionSignal",
        "execute r1-s1.2",
        "executor → agent_validator: ExecutionResult",
        "look r1-s1.2",
        "judge r1-s1.2",
        "agent_validator → meta_validator: SubTaskOutcome",
    ]


def test_a_look_is_given_the_output_of_its_attempt() -> None:
    executed = [done(output="one"), done(output="two")]
    talk = fast(subtask(verifiable()), {"execute": [*executed], "look": [SEEN_WRONG, seen((verifiable(),))]})
    assert [(one.where, one.attempt, one.output) for one in needs(talk, CheckCriteria)] == [
        ("t1-r1-s1", 1, "one"),
        ("t1-r1-s1", 2, "two"),
    ]


@each_row(
    ("output", "text"),
    [("x", "x"), (None, ""), (3, "3"), ("", ""), (True, "true"), ({"ä": [None, "b"]}, '{"ä": [null, "b"]}')],
)
def test_an_output_is_looked_at_as_text_and_what_is_none_as_json(output: JsonValue, text: str) -> None:
    assert format_output(output) == text


def test_an_executor_that_is_answered_for_with_something_else_is_a_fault_of_the_engine() -> None:
    loop = pursue_subtask(SPEC, ONE)
    next(loop)
    with pytest.raises(TypeError, match="expected a result"):
        loop.send(EffectDone())


def test_a_look_that_is_answered_with_something_else_is_a_fault_of_the_engine() -> None:
    loop = pursue_subtask(SPEC, subtask(verifiable()))
    next(loop)
    loop.send(done())
    assert isinstance(loop.send(EffectDone()), CheckCriteria)
    with pytest.raises(TypeError, match="expected verdicts"):
        loop.send(EffectDone())
