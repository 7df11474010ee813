"""What is asked: however much came of subtasks, a model can be told."""

from __future__ import annotations

import pytest

from proofstone.agents.memory.rules.calibration import Calibration
from proofstone.agents.roles.models.solve import SolveExecutionRequest, SolvePlanRequest
from proofstone.agents.roles.models.solve_messages import (
    CorrectionSignal,
    CriterionMode,
    CriterionVerdict,
    ExecutionResult,
    ExecutionStatus,
    FailureClass,
    OutcomeStatus,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.agents.roles.role import format_request
from proofstone.solve.requests import build_dispatch, build_subtask_dispatch
from proofstone.solve.rules.effects import AskExecutor, AskPlanner, AskValidator

SPEC = TaskSpec(task_id="t", intent="count", raw_input="count them")
LONG = f"the beginning {'x' * 40_000} the end"
MOST = 400_000
"""Characters of a request, with everything that stands around what came."""


def outcome(number: int, text: str, criteria: int = 40) -> SubTaskOutcome:
    failed = CriterionVerdict(
        criterion="it is so",
        mode=CriterionMode.VERIFIABLE,
        verdict="fail",
        failure_class=FailureClass.LOGICAL,
        evidence=text[:4000],
    )
    return SubTaskOutcome(
        subtask_id=f"t-r1-s{number}",
        parent_task_id="t",
        status=OutcomeStatus.FAILED,
        output=text,
        failure_reason=text[:4000] * criteria,
        criteria_verdicts=(failed,) * criteria,
    )


def planning(outcomes: tuple[SubTaskOutcome, ...]) -> tuple[str, SolvePlanRequest]:
    need = AskPlanner(2, 1, SPEC, Calibration(), None, (), outcomes, "", outcomes[0].criteria_verdicts)
    one = build_dispatch(need, "t", ("read",))
    assert isinstance(one.request, SolvePlanRequest)
    return format_request(one.role, one.request), one.request


def test_what_is_not_long_is_told_in_full() -> None:
    outcomes = tuple(outcome(number, "three lines", 3) for number in range(1, 4))
    assert planning(outcomes)[1].outcomes == outcomes


def test_of_what_is_too_long_the_beginning_and_the_end_are_told() -> None:
    text, request = planning(tuple(outcome(number, LONG) for number in range(1, 13)))
    assert len(text) < MOST
    assert len(request.outcomes) == 12
    for one in request.outcomes:
        assert isinstance(one.output, str)
        assert (one.output[:13], one.output[-7:]) == ("the beginning", "the end")
        assert "characters …]" in one.output
        assert len(one.criteria_verdicts) == 40


def test_an_executor_is_told_no_more_than_that_either() -> None:
    signal = CorrectionSignal(
        subtask_id="t-r1-s2",
        attempt_number=1,
        failed_criterion="it is so",
        failure_class=FailureClass.LOGICAL,
        what_was_wrong=LONG * 5,
        what_to_do="make it so",
    )
    subtask = SubTask(
        subtask_id="t-r1-s2", parent_task_id="t", intent="count", success_criteria=("it is so",), sequence=2
    )
    before = tuple(outcome(number, LONG) for number in range(1, 12))
    one = build_subtask_dispatch(AskExecutor(SPEC, subtask, 2, before, (signal, signal), ()), "t", 1)
    assert isinstance(one.request, SolveExecutionRequest)
    assert len(format_request(one.role, one.request)) < MOST
    assert one.request.corrections[0].what_was_wrong.endswith("the end")


@pytest.mark.parametrize(("attempt", "again"), [(1, ""), (2, " attempt 2")])
def test_whoever_looks_on_is_told_which_attempt_it_is(attempt: int, again: str) -> None:
    subtask = SubTask(
        subtask_id="t-r1-s2", parent_task_id="t", intent="count", success_criteria=("it is so",), sequence=2
    )
    result = ExecutionResult(subtask_id="t-r1-s2", status=ExecutionStatus.COMPLETED)
    executing = build_subtask_dispatch(AskExecutor(SPEC, subtask, attempt, (), (), ()), "t", 1)
    judging = build_subtask_dispatch(AskValidator(subtask, attempt, result, ()), "t", 1)
    assert [one.agent_label for one in (executing, judging)] == [
        f"executor r1-s2{again}",
        f"agent_validator r1-s2{again}",
    ]


def test_a_planner_is_told_by_its_role_alone() -> None:
    assert build_dispatch(AskPlanner(2, 2, SPEC, Calibration(), None, (), (), ""), "t", ()).agent_label == "planner"
