"""How the task is perceived and planned, and what no planner can do."""

from __future__ import annotations

import pytest

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve_messages import (
    DirectiveName,
    DispatchManifest,
    FailureClass,
    FinalStatus,
    SubTask,
    TaskSpec,
)
from proofstone.runtime.rules import EffectDone
from proofstone.solve.rules.effects import (
    AskExecutor,
    AskMetaValidator,
    AskPerceiver,
    AskPerson,
    AskPlanner,
    PursueSubtasks,
    RecallMemory,
    SolveAgentFailure,
    SolveAgentReply,
)
from tests.rows import each_row
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
    judgement,
    merge,
    messages,
    perceived,
    plan,
    plausible,
)
from tests.talk import needs

ABANDON, BREAK, REFINE = DirectiveName.ABANDON, DirectiveName.BREAK_SYMMETRY, DirectiveName.REFINE


# Perceive.


@each_row(
    ("perceiver", "person", "asked", "intent"),
    [
        ([perceived("Move them")], [], 1, "Move them"),
        ([perceived("Move them", " \n")], [], 1, "Move them"),
        ([perceived("?", "Which?"), perceived("Move them")], ["the old one"], 2, "Move them"),
        ([perceived("?", "Which?"), perceived("Still?", "Which?")], ["the old one"], 2, "Still?"),
        ([perceived("It?", "Which?")], [""], 1, "It?"),
        ([perceived("It?", "Which?")], [EffectDone()], 1, "It?"),
        ([perceived("It?", "Which?"), OUT], ["the old one"], 2, "It?"),
        ([OUT], [], 1, RAW),
        ([plan()], [], 1, RAW),
    ],
)
@pytest.mark.seed("control-loop", "perceiver")
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


@pytest.mark.parametrize(
    ("person", "then", "kept"),
    [(" the OLD one…\n", perceived(), " the OLD one…\n"), ("the old one", OUT, "the old one"), (" ", None, "")],
    ids=["verbatim", "the perceiver fails after it", "nothing is no answer"],
)
def test_what_the_person_answers_is_carried_on_too(person: str, then: Scripted | None, kept: str) -> None:
    perceiver: list[Scripted] = [perceived(question="Which?"), *([then] if then else [])]
    talk = follow({"perceive": perceiver, "person": person})
    (spec,) = messages(talk, TaskSpec)
    assert (spec.clarification, spec.raw_input) == (kept, RAW)
    assert messages(talk, DispatchManifest)[0].task_spec == spec


@pytest.mark.seed("control-loop", "perceiver")
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


@pytest.mark.seed("control-loop", "ids")
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
    "it reuses a blocked tool": (TOOLS, "uses run: the controller blocked it"),
    "it repeats its plan": (("run",), "almost an earlier one"),
}


@pytest.mark.parametrize(("tools", "told"), STUBBORN.values(), ids=STUBBORN)
def test_a_planner_that_insists_is_stopped_each_time(tools: tuple[str, ...], told: str) -> None:
    """In each round it is told twice; then the round has failed, and what was forbidden stays forbidden."""
    talk = follow({"plan": plan(), "judge": WRONG}, goal(tools=tools))
    asks = [(one.round, one.attempt, bool(one.rejected)) for one in needs(talk, AskPlanner)]
    later = [(number, attempt, attempt > 1) for number in (2, 3, 4) for attempt in (1, 2, 3)]
    assert asks == [(1, 1, False), *later]
    assert [one.round for one in needs(talk, PursueSubtasks)] == [1]
    assert [one[:8] for one in talk.end.rejected] == ["round 2:"] * 3 + ["round 3:"] * 3 + ["round 4:"] * 3
    assert all(told in one for one in talk.end.rejected)
    assert talk.directives == [BREAK, BREAK, BREAK, ABANDON]
    assert talk.end.result.status is FinalStatus.ABANDONED


# What is blocked.


def test_what_was_forbidden_stays_forbidden_while_nothing_was_tried() -> None:
    """A planner that gives no plan for a round lifts nothing by it."""
    talk = follow({"judge r1": WRONG, "plan 2.1": OUT, "plan 3": [plan(), BY_HAND]})
    assert [(one.directive, one.blocked_tools) for one in talk.end.directives] == [(BREAK, ("run",)), (REFINE, ())]
    assert [one.blocked_tools for one in needs(talk, AskPlanner)] == [(), ("run",), ("run",), ("run",)]
    assert [one.round for one in needs(talk, PursueSubtasks)] == [1, 3]
    assert talk.end.result.status is FinalStatus.ACCEPTED


def test_a_blocked_target_stays_blocked_while_nothing_was_tried() -> None:
    talk = follow({"judge r1": BLOCKED, "plan 2.1": OUT, "plan 3": [plan(), BY_HAND]})
    assert [one.blocked_targets for one in needs(talk, AskPlanner)[1:]] == [("src/copy.py",)] * 3
    assert "uses src/copy.py" in talk.end.rejected[0]


def test_a_blocked_tool_stays_blocked_for_the_rest_of_the_task() -> None:
    talk = follow({"judge r1": WRONG, "plan 2.1": BY_HAND, "judge r2": WRONG, "plan 3": [plan(), BY_DUMP]})
    assert [one.blocked_tools for one in talk.end.directives] == [("run",), ("run", "write")]
    assert "uses run: the controller blocked it" in talk.end.rejected[0]
    assert [one.blocked_tools for one in needs(talk, PursueSubtasks)] == [(), ("run",), ("run", "write")]


def test_where_nothing_would_be_left_to_work_with_the_oldest_are_lifted() -> None:
    """Of run, write and edit, the third cannot be blocked beside the others: run may be used again."""
    by_edit = plan(draft(intent="Mend it in place", tools=("edit",), files=("src/mended.py",)))
    talk = follow(
        {
            "judge": WRONG,
            "plan 2.1": BY_HAND,
            "plan 3.1": by_edit,
            "plan 4.1": plan(draft(intent="Replay the journal", files=("src/journal.py",))),
        }
    )
    assert [one.blocked_tools for one in talk.end.directives[:3]] == [("run",), ("run", "write"), ("write", "edit")]
    assert needs(talk, PursueSubtasks)[-1].blocked_tools == ("edit", "write")


def test_what_is_in_force_is_told_under_a_directive_that_blocks_nothing() -> None:
    half = plan(draft(plausible("alpha holds"), plausible("beta holds"), tools=("write",), files=("x",)))
    talk = follow({"judge r1": WRONG, "plan 2.1": half, "judge r2": judgement(LOGICAL, None), "plan 3": [plan(), half]})
    assert [(one.directive, one.blocked_tools) for one in talk.end.directives] == [(BREAK, ("run",)), (REFINE, ())]
    assert [one.blocked_tools for one in needs(talk, AskPlanner)] == [(), ("run",), ("run",), ("run",)]
    assert "uses run: the controller blocked it" in talk.end.rejected[0]


def test_a_blocked_target_stays_blocked_for_the_rest_of_the_task() -> None:
    talk = follow({"judge r1": BLOCKED, "plan 2.1": BY_HAND, "judge r2": BLOCKED, "plan 3": [plan(), BY_DUMP]})
    assert [one.blocked_targets for one in talk.end.directives] == [("src/copy.py",), ("src/copy.py", "src/typed.py")]
    assert "uses src/copy.py" in talk.end.rejected[0]
    told = ("src/copy.py", "src/typed.py")
    assert needs(talk, AskPlanner)[-1].blocked_targets == needs(talk, AskExecutor)[-1].blocked_targets == told


def test_no_earlier_plan_may_come_again_after_break_symmetry() -> None:
    """Not even where its tool had to be lifted."""
    only = goal(tools=("run",))
    other = plan(draft(intent="Restore from a dump", files=("src/dump.py",)))
    third = plan(draft(intent="Replay the journal", files=("src/journal.py",)))
    talk = follow({"plan 2.1": other, "judge r1": WRONG, "judge r2": WRONG, "plan 3": [plan(), other, third]}, only)
    assert [one.partition(" (")[0] for one in talk.end.rejected] == ["round 3: the plan is almost an earlier one"] * 2


@each_row(
    ("first", "of"),
    [
        (OUT, ENVIRONMENTAL),
        (SolveAgentReply(perceived()), ENVIRONMENTAL),
        (plan(draft(sequence=2)), LOGICAL),
        (plan(draft(tools=("curl",))), LOGICAL),
        (plan(criteria=(plausible(INTENT),)), LOGICAL),
    ],
)
def test_a_round_without_a_plan_has_failed(first: Scripted, of: FailureClass) -> None:
    talk = follow({"plan": first}, ONCE)
    (outcome,) = talk.end.outcomes
    assert not needs(talk, PursueSubtasks)
    assert not needs(talk, AskMetaValidator)
    assert not messages(talk, SubTask)
    assert talk.end.result.loss.D == 1
    assert talk.end.directives[0].failure_class is of
    assert (outcome.failure_reason or "").startswith("there is no plan: ")
    assert talk.end.result.status is FinalStatus.ABANDONED


def test_a_planner_that_fails_is_not_asked_again_in_its_round() -> None:
    talk = follow({"plan 1.1": SolveAgentFailure("it is away"), "plan 2.1": plan()})
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
    assert "the controller blocked it" in third.rejected
    assert {one.calibration for one in (first, second, third)} == {memory}
    assert [one.spec.raw_input for one in needs(talk, RecallMemory)] == [RAW, RAW]


def test_the_planner_is_told_what_was_said_of_the_merged_result() -> None:
    talk = follow({"merge 1": merge(LOGICAL), "plan 2.1": BY_HAND})
    first, second = needs(talk, AskPlanner)
    assert not first.merged
    assert [(one.criterion, one.failure_class) for one in second.merged] == [
        ("both hold equally many customers", LOGICAL)
    ]


def test_after_a_round_without_a_plan_the_planner_is_still_told_what_came_of_the_last_one() -> None:
    talk = follow({"merge 1": merge(LOGICAL), "plan 2.1": SolveAgentFailure("it is away"), "plan 3.1": BY_HAND})
    third = needs(talk, AskPlanner)[-1]
    assert [one.subtask_id for one in third.previous] == ["t1-r1-s1"]
    assert [one.subtask_id for one in third.outcomes] == ["t1-r1-s1", "t1-r2-plan"]
    assert [one.is_failed for one in third.merged] == [True]


def test_what_memory_blocks_no_executor_may_use() -> None:
    talk = follow({"recall": Calibration(blocked_tools=("grep",))})
    assert needs(talk, PursueSubtasks)[0].blocked_tools == needs(talk, AskExecutor)[0].blocked_tools == ("grep",)


def test_a_memory_that_does_not_answer_forbids_nothing() -> None:
    talk = follow({"recall": EffectDone()})
    assert needs(talk, AskPlanner)[0].calibration == Calibration()
