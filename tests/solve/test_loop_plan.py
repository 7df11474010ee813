"""How the task is perceived and planned, and what no planner can do."""

from __future__ import annotations

import pytest

from assay.contracts.solve.messages import (
    DirectiveName,
    DispatchManifest,
    FailureClass,
    FinalStatus,
    SubTask,
    TaskSpec,
)
from assay.core.memory.calibration import Calibration
from assay.core.solve.needs import (
    AskExecutor,
    AskMetaValidator,
    AskPerceiver,
    AskPerson,
    AskPlanner,
    Failed,
    Heard,
    Noted,
    Pursue,
    Recall,
)
from tests.solve.talk import (
    BLOCKED,
    BY_DUMP,
    BY_HAND,
    ENVIRONMENTAL,
    INTENT,
    LOGICAL,
    ONCE,
    OUT,
    RAW,
    TASK,
    TOOLS,
    WRONG,
    Scripted,
    draft,
    follow,
    goal,
    messages,
    needs,
    perceived,
    plan,
    plausible,
)

ABANDON, BREAK = DirectiveName.ABANDON, DirectiveName.BREAK_SYMMETRY


# Perceive.


@pytest.mark.parametrize(
    ("perceiver", "person", "asked", "intent"),
    [
        ([perceived("Move them")], [], 1, "Move them"),
        ([perceived("Move them", " \n")], [], 1, "Move them"),
        ([perceived("?", "Which?"), perceived("Move them")], ["the old one"], 2, "Move them"),
        ([perceived("?", "Which?"), perceived("Still?", "Which?")], ["the old one"], 2, "Still?"),
        ([perceived("It?", "Which?")], [""], 1, "It?"),
        ([perceived("It?", "Which?")], [Noted()], 1, "It?"),
        ([perceived("It?", "Which?"), OUT], ["the old one"], 2, "It?"),
        ([OUT], [], 1, RAW),
        ([plan()], [], 1, RAW),
    ],
    ids=[
        "it is clear",
        "an empty question is none",
        "one question",
        "never a second one",
        "nobody answers",
        "nobody is there",
        "it fails after the answer",
        "it fails",
        "it answers something else",
    ],
)
def test_the_perceiver_asks_at_most_one_question(
    perceiver: list[Scripted], person: list[Scripted], asked: int, intent: str
) -> None:
    talk = follow({"perceive": perceiver, **({"person": person} if person else {})})
    assert len(needs(talk, AskPerceiver)) == asked
    assert len(needs(talk, AskPerson)) == len(person)
    (spec,) = messages(talk, TaskSpec)
    assert (spec.intent, spec.raw_input) == (intent, RAW)


def test_the_answer_goes_to_the_perceiver() -> None:
    talk = follow({"perceive": [perceived(question="Which?"), perceived()], "person": "the old one"})
    assert [(one.raw_input, one.clarification) for one in needs(talk, AskPerceiver)] == [
        (RAW, ""),
        (RAW, "the old one"),
    ]


def test_the_persons_words_are_carried_verbatim_whatever_the_perceiver_says() -> None:
    rewriting = perceived().model_validate(
        {**perceived().model_dump(), "raw_input": "delete all", "task_id": "t9", "success_criteria": ["x"]}
    )
    talk = follow({"perceive": rewriting})
    (spec,) = messages(talk, TaskSpec)
    assert (spec.raw_input, spec.task_id, spec.intent) == (RAW, TASK, INTENT)
    (manifest,) = messages(talk, DispatchManifest)
    assert manifest.task_spec == spec == talk.end.spec


# Plan.


def test_ids_are_given_here_whatever_a_planner_writes() -> None:
    written = plan().model_dump()
    written["subtasks"] = [
        {**written["subtasks"][0], "subtask_id": "mine", "id": "mine", "parent_task_id": "t9"} for _ in range(2)
    ]
    written["subtask_ids"] = ["mine"]
    inventive = plan().model_validate(written)
    talk = follow({"plan 1.1": inventive, "judge r1": WRONG, "plan 2.1": BY_HAND})
    assert [(one.subtask_id, one.parent_task_id) for one in messages(talk, SubTask)] == [
        ("t1-r1-s1", TASK),
        ("t1-r1-s2", TASK),
        ("t1-r2-s1", TASK),
    ]
    assert [one.subtask_ids for one in messages(talk, DispatchManifest)] == [("t1-r1-s1", "t1-r1-s2"), ("t1-r2-s1",)]


STUBBORN: dict[str, tuple[tuple[str, ...], str]] = {
    "it reuses a blocked tool": (TOOLS, "uses shell, which is blocked"),
    "it repeats its plan": (("shell",), "nearly the plan before"),
}


@pytest.mark.parametrize(("tools", "told"), STUBBORN.values(), ids=STUBBORN)
def test_a_planner_that_insists_is_stopped_each_time(tools: tuple[str, ...], told: str) -> None:
    """In each round it is told twice; then the round has failed, and what was forbidden stays forbidden."""
    talk = follow({"plan": plan(), "judge": WRONG}, goal(tools=tools))
    asks = [(one.round, one.attempt, bool(one.rejected)) for one in needs(talk, AskPlanner)]
    later = [(number, attempt, attempt > 1) for number in (2, 3, 4) for attempt in (1, 2, 3)]
    assert asks == [(1, 1, False), *later]
    assert [one.round for one in needs(talk, Pursue)] == [1]
    assert [one[:8] for one in talk.end.rejected] == ["round 2:"] * 3 + ["round 3:"] * 3 + ["round 4:"] * 3
    assert all(told in one for one in talk.end.rejected)
    assert talk.directives == [BREAK, BREAK, BREAK, ABANDON]
    assert talk.end.result.status is FinalStatus.ABANDONED


def test_what_was_forbidden_stays_forbidden_while_nothing_was_tried() -> None:
    """A planner that gives no plan for a round lifts nothing by it."""
    talk = follow({"judge r1": WRONG, "plan 2.1": OUT, "plan 3": [plan(), BY_HAND]})
    assert [one.blocked_tools for one in talk.end.directives] == [("shell",), ("shell",)]
    assert [one.round for one in needs(talk, Pursue)] == [1, 3]
    assert talk.end.result.status is FinalStatus.ACCEPTED


def test_a_blocked_target_stays_blocked_while_nothing_was_tried() -> None:
    talk = follow({"judge r1": BLOCKED, "plan 2.1": OUT, "plan 3": [plan(), BY_HAND]})
    assert [one.blocked_targets for one in talk.end.directives] == [("src/copy.py",)] * 2
    assert "rests on src/copy.py" in talk.end.rejected[0]


def test_after_something_was_tried_only_its_own_tools_are_blocked() -> None:
    talk = follow({"judge r1": WRONG, "plan 2.1": BY_HAND, "judge r2": WRONG, "plan 3.1": BY_DUMP})
    assert [one.blocked_tools for one in talk.end.directives] == [("shell",), ("write",)]


@pytest.mark.parametrize(
    ("first", "of"),
    [
        (OUT, ENVIRONMENTAL),
        (Heard(perceived()), ENVIRONMENTAL),
        (plan(draft(sequence=2)), LOGICAL),
        (plan(draft(tools=("curl",))), LOGICAL),
        (plan(criteria=(plausible(INTENT),)), LOGICAL),
    ],
    ids=["it fails", "it answers something else", "a number is left out", "a tool that there is not", "an echo"],
)
def test_a_round_without_a_plan_has_failed(first: Scripted, of: FailureClass) -> None:
    talk = follow({"plan": first}, ONCE)
    (outcome,) = talk.end.outcomes
    assert not needs(talk, Pursue)
    assert not needs(talk, AskMetaValidator)
    assert not messages(talk, SubTask)
    assert talk.end.result.loss.D == 1
    assert talk.end.directives[0].failure_class is of
    assert (outcome.failure_reason or "").startswith("there is no plan: ")
    assert talk.end.result.status is FinalStatus.ABANDONED


def test_a_planner_that_fails_is_not_asked_again_in_its_round() -> None:
    talk = follow({"plan 1.1": Failed("it is away"), "plan 2.1": plan()})
    assert talk.asked[:3] == ["perceive", "plan 1.1", "plan 2.1"]
    assert needs(talk, AskPlanner)[1].outcomes[0].failure_reason == "there is no plan: it is away"
    assert talk.end.result.status is FinalStatus.ACCEPTED


def test_the_planner_is_told_all_that_it_needs() -> None:
    memory = Calibration(must_not=("do not use ftp",), blocked_tools=("grep",))
    talk = follow({"recall": memory, "judge r1": WRONG, "plan 2": [plan(), BY_HAND]})
    first, second, third = needs(talk, AskPlanner)
    assert (first.directive, first.previous, first.outcomes, first.rejected) == (None, (), (), "")
    assert second.directive == talk.end.directives[0]
    assert [one.subtask_id for one in second.previous] == ["t1-r1-s1"]
    assert [one.subtask_id for one in second.outcomes] == ["t1-r1-s1"]
    assert (third.previous, third.outcomes) == (second.previous, second.outcomes)
    assert "which is blocked" in third.rejected
    assert {one.calibration for one in (first, second, third)} == {memory}
    assert [one.spec.raw_input for one in needs(talk, Recall)] == [RAW, RAW]


def test_what_memory_blocks_no_executor_may_use() -> None:
    talk = follow({"recall": Calibration(blocked_tools=("grep",))})
    assert needs(talk, Pursue)[0].blocked_tools == needs(talk, AskExecutor)[0].blocked_tools == ("grep",)


def test_a_memory_that_does_not_answer_forbids_nothing() -> None:
    talk = follow({"recall": Noted()})
    assert needs(talk, AskPlanner)[0].calibration == Calibration()
