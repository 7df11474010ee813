"""What the roles hand each other: which fields there are, and what cannot be said."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from proofstone.agents.roles.models.solve import SolvePlanOutput, SubTaskDraft
from proofstone.agents.roles.models.solve_messages import (
    AttemptGap,
    CorrectionSignal,
    Criterion,
    CriterionFailure,
    CriterionMode,
    CriterionVerdict,
    DispatchManifest,
    ExecutionResult,
    FailureClass,
    FinalResult,
    Gradient,
    Loss,
    OutcomeSummary,
    PlanDirective,
    Predicate,
    ReplanRequest,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.common.models import FrozenModel
from tests.rows import each_row
from tests.solve.talk import DONE, LOGICAL, PLAUSIBLE, VERIFIABLE, done, seen, subtask, verifiable

FIELDS: list[tuple[type[FrozenModel], str, str]] = [
    # contract, what the loop's author wrote, what is added to it
    (TaskSpec, "task_id intent constraints raw_input", "clarification"),
    (SubTask, "subtask_id parent_task_id intent success_criteria context deadline sequence", "tools files"),
    (DispatchManifest, "task_id subtask_ids task_spec dispatched_at task_criteria", ""),
    (ExecutionResult, "subtask_id status output tool_calls", "crashed"),
    (CorrectionSignal, "subtask_id attempt_number failed_criterion failure_class what_was_wrong what_to_do", ""),
    (
        SubTaskOutcome,
        "subtask_id parent_task_id status output failure_reason criteria_verdicts gap_trajectory",
        "tools targets obstacles",
    ),
    (CriterionVerdict, "criterion mode verdict failure_class evidence", ""),
    (AttemptGap, "attempt failed_criteria", ""),
    (CriterionFailure, "criterion failure_class", ""),
    (
        ReplanRequest,
        "task_id gap_summary failed_subtasks correction_count elapsed_ms outcomes recommendation",
        "merged_verdicts",
    ),
    (OutcomeSummary, "task_id summary output elapsed_ms outcomes merged_verdicts", ""),
    (Loss, "D P Omega L", ""),
    (
        PlanDirective,
        "task_id loss gradient directive blocked_tools failed_criterion failure_class budget_pressure grad_l rationale",
        "blocked_targets suggested_alternatives",
    ),
    (FinalResult, "task_id summary output loss grad_l replans", "status partial next_moves"),
    (Criterion, "criterion mode", "command predicate"),
]


@each_row(("contract", "written", "added"), FIELDS)
@pytest.mark.seed("control-loop", "contracts")
def test_a_contract_has_its_fields_and_no_others(contract: type[FrozenModel], written: str, added: str) -> None:
    assert set(contract.model_fields) == {*written.split(), *added.split()}
    assert contract.model_config["frozen"]
    assert contract.model_config["extra"] == "forbid"


@pytest.mark.seed("control-loop", "contracts")
def test_a_task_has_no_criteria_of_its_own() -> None:
    with pytest.raises(ValidationError, match="success_criteria"):
        TaskSpec.model_validate({"task_id": "t", "intent": "i", "raw_input": "r", "success_criteria": ["x"]})


EXISTS = {"kind": "exists", "path": "a.py"}


@each_row(
    ("written", "why"),
    [
        ({"mode": "verifiable"}, "and not both"),
        ({"mode": "verifiable", "command": "  "}, "and not both"),
        ({"mode": "verifiable", "command": "make test", "predicate": EXISTS}, "and not both"),
        ({"mode": "verifiable", "command": "make test"}, None),
        ({"mode": "verifiable", "predicate": EXISTS}, None),
        ({"mode": "plausible"}, None),
        ({}, None),
        ({"command": "make test"}, "no model judges it"),
        ({"mode": "plausible", "predicate": EXISTS}, "no model judges it"),
        ({"mode": "obvious"}, "mode"),
    ],
)
def test_a_verifiable_criterion_has_exactly_one_way_to_see_it(written: dict[str, object], why: str | None) -> None:
    said = {"criterion": "it is there", **written}
    if why is None:
        assert Criterion.model_validate(said).mode == written.get("mode", "plausible")
    else:
        with pytest.raises(ValidationError, match=why):
            Criterion.model_validate(said)


@each_row(
    ("kind", "needs"),
    [
        ("exists", {"path"}),
        ("absent", {"path"}),
        ("contains", {"path", "text"}),
        ("matches", {"path", "text"}),
        ("output_contains", {"text"}),
    ],
)
@each_row("given", [set(), {"path"}, {"text"}, {"path", "text"}])
def test_a_predicate_has_what_it_needs(kind: str, needs: set[str], given: set[str]) -> None:
    written = {"kind": kind, **dict.fromkeys(given, "x")}
    if needs <= given:
        assert Predicate.model_validate(written).kind == kind
    else:
        with pytest.raises(ValidationError, match="needs a"):
            Predicate.model_validate(written)


def test_plain_strings_are_read_as_criteria_that_are_judged() -> None:
    written = ["it is there", {"criterion": "it runs", "mode": "verifiable", "command": "run"}]
    draft = SubTaskDraft.model_validate({"intent": "x", "success_criteria": written, "sequence": 1})
    plan = SolvePlanOutput.model_validate({"completion": DONE, "task_criteria": ["so"], "subtasks": [draft]})
    assert [(one.criterion, one.mode) for one in draft.success_criteria] == [
        ("it is there", CriterionMode.PLAUSIBLE),
        ("it runs", CriterionMode.VERIFIABLE),
    ]
    assert [one.criterion for one in plan.task_criteria] == ["so"]


@each_row(
    "written",
    [
        {"task_criteria": [], "subtasks": [{"intent": "x", "success_criteria": ["a"], "sequence": 1}]},
        {"task_criteria": ["a"], "subtasks": []},
        {"task_criteria": ["a"], "subtasks": [{"intent": "x", "success_criteria": [], "sequence": 1}]},
        {"task_criteria": ["a"], "subtasks": [{"intent": "x", "success_criteria": [""], "sequence": 1}]},
        {"task_criteria": ["a"], "subtasks": [{"intent": "x", "success_criteria": ["a"], "sequence": 0}]},
    ],
)
def test_a_plan_that_says_too_little_is_no_plan(written: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SolvePlanOutput.model_validate({"completion": DONE, **written})


def test_a_draft_can_carry_no_id() -> None:
    written = {"intent": "x", "success_criteria": ["a"], "sequence": 1, "subtask_id": "mine", "parent_task_id": "t9"}
    assert not {"subtask_id", "parent_task_id"} & set(SubTaskDraft.model_validate(written).model_dump())


@each_row(
    ("verdict", "of", "can_be"),
    [
        ("pass", None, True),
        ("pass", "logical", False),
        ("fail", None, False),
        ("fail", "logical", True),
        ("fail", "environmental", True),
    ],
)
def test_what_failed_has_a_class_and_nothing_else_has_one(verdict: str, of: str | None, can_be: bool) -> None:
    written = {"criterion": "a", "mode": "plausible", "verdict": verdict, "failure_class": of}
    if can_be:
        assert CriterionVerdict.model_validate(written).is_failed == (verdict == "fail")
    else:
        with pytest.raises(ValidationError, match="failure_class"):
            CriterionVerdict.model_validate(written)


@each_row("status", ["matched", "failed"])
@each_row("failed", [(), (None,), (LOGICAL,), (None, LOGICAL)])
def test_what_matched_has_no_criterion_that_failed(status: str, failed: tuple[FailureClass | None, ...]) -> None:
    verdicts = seen([verifiable(f"{number}") for number in range(len(failed))], *failed).verdicts
    written = {"subtask_id": "s", "parent_task_id": "t", "status": status, "criteria_verdicts": verdicts}
    if status == "failed" or LOGICAL not in failed:
        assert SubTaskOutcome.model_validate(written).status == status
    else:
        with pytest.raises(ValidationError, match="must not have a failed criterion"):
            SubTaskOutcome.model_validate(written)


@each_row("status", ["accepted", "partial", "abandoned"])
@each_row("distance", [0.0, 0.001, 1.0])
@pytest.mark.seed("control-loop", "final-result")
def test_the_distance_is_0_exactly_where_it_was_accepted(status: str, distance: float) -> None:
    written = {
        "task_id": "t",
        "status": status,
        "summary": "s",
        "loss": {"D": distance, "P": 0.5, "Omega": 0, "L": 0},
        "grad_l": 0,
        "replans": 0,
    }
    if (status == "accepted") == (distance == 0):
        assert FinalResult.model_validate(written).status == status
    else:
        with pytest.raises(ValidationError, match="exactly if the result was accepted"):
            FinalResult.model_validate(written)


@each_row("field", ["D", "P", "Omega", "L"])
@each_row("value", [float("nan"), float("inf")])
def test_a_loss_is_made_of_numbers(field: str, value: float) -> None:
    with pytest.raises(ValidationError):
        Loss.model_validate({"D": 0, "P": 0, "Omega": 0, "L": 0, field: value})


@each_row("field", ["D", "P", "Omega"])
@each_row("value", [-0.1, 1.1])
def test_what_is_a_share_lies_between_0_and_1(field: str, value: float) -> None:
    with pytest.raises(ValidationError):
        Loss.model_validate({"D": 0, "P": 0, "Omega": 0, "L": 0, field: value})


def test_every_gradient_has_an_arrow_of_its_own() -> None:
    assert [one.arrow for one in Gradient] == ["↓", "→", "↑", "⊥"]


@pytest.mark.parametrize(
    "message",
    [
        subtask(verifiable()),
        done().result,
        AttemptGap(attempt=1, failed_criteria=(CriterionFailure(criterion="a", failure_class=LOGICAL),)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_message_comes_back_from_json_as_it_was(message: FrozenModel) -> None:
    assert type(message).model_validate_json(message.model_dump_json()) == message


def test_the_modes_are_two() -> None:
    assert {VERIFIABLE, PLAUSIBLE} == set(CriterionMode)
