"""A pointer that leads nowhere: the planner is told once what exists, and then it is dropped."""

from __future__ import annotations

import pytest

from proofstone.agents.models import Conversation, DispatchKey, EngineMessage, Turn
from proofstone.agents.roles.models.pipeline import PlanOutput
from proofstone.agents.rules.conversation import ConversationEnd, RecordRepair, RequestTurn, run_conversation
from proofstone.pipeline.rules.plan_pointers import PointerCheck, drop_dead_pointers, list_known_ids
from proofstone.pipeline.rules.planning import find_plan_problems, raise_plan_risks
from tests.pipeline.talk import design, plan, spec, task

OPENING = Conversation(
    occasion=DispatchKey(run_id="r", role="planner"),
    instructions="Plan.",
    tools=(),
    output_schema={},
    entries=(EngineMessage(text="please"),),
)


def converse(*plans: PlanOutput) -> tuple[list[str], PlanOutput]:
    """Return the repairs that the planner is asked for, and the plan that is taken."""
    says = iter(Turn(answer=one.model_dump(mode="json")) for one in plans)
    talk = run_conversation(OPENING, PlanOutput, 5, PointerCheck(spec(), design()))
    repairs: list[str] = []
    sent: Turn | None = None
    while True:
        try:
            effect = talk.send(sent)
        except StopIteration as stop:
            assert isinstance(stop.value, ConversationEnd) and isinstance(stop.value.output, PlanOutput)
            return repairs, stop.value.output
        sent = next(says) if isinstance(effect, RequestTurn) else None
        if isinstance(effect, RecordRepair):
            repairs.append(effect.message.text)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (plan(task(context=("T1-1",))), "points to 'T1-1'"),
        (plan(task(criteria=("AC-1", "AC-2", "T1-AC"))), "names the criterion T1-AC"),
    ],
)
def test_the_planner_is_told_what_exists_in_the_same_conversation(wrong: PlanOutput, named: str) -> None:
    repairs, taken = converse(wrong, plan())
    assert len(repairs) == 1 and named in repairs[0]
    assert list_known_ids(spec(), design()) in repairs[0]
    assert all(id in repairs[0] for id in ("R-1", "AC-1", "AC-2", "D-1"))
    assert taken == plan()


def test_a_pointer_that_still_leads_nowhere_is_dropped_with_a_note() -> None:
    wrong = plan(task(context=("T1-1", "R-1", "shop/cart.py", "/etc/passwd")))
    repairs, taken = converse(wrong, wrong)
    assert len(repairs) == 1 and taken == wrong  # it is told once
    kept, notes = drop_dead_pointers(taken, spec(), design())
    assert kept.tasks[0].relevant_context == ("R-1", "shop/cart.py")
    assert [note for note in notes if "'T1-1'" in note and note.endswith("it was dropped")]
    assert len(notes) == 2
    assert find_plan_problems(raise_plan_risks(kept), spec(), design()) == ()


def test_a_criterion_that_does_not_exist_still_rejects_the_plan() -> None:
    wrong = plan(task(criteria=("AC-1", "AC-2", "AC-7")))
    _, taken = converse(wrong, wrong)
    kept, notes = drop_dead_pointers(taken, spec(), design())
    assert (kept, notes) == (taken, ())
    assert "AC-7, which does not exist" in find_plan_problems(kept, spec(), design())[0]


def test_without_a_specification_only_paths_are_pointers_and_any_criterion_is_fine() -> None:
    lone = plan(task(context=("T1-1",), criteria=("whatever",)))
    check = PointerCheck(None, None)
    assert "There are no ids to point to" in check(lone)
    assert check(lone) == ""
