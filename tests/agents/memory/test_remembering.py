"""A finished control loop as entries: what failed and with what, how the task went, and what it cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.memory.models import MemoryEntry
from proofstone.agents.memory.rules.calibration import calibrate
from proofstone.agents.roles.models.solve_messages import (
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    FinalResult,
    FinalStatus,
    Gradient,
    Loss,
    OutcomeStatus,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    SubTask,
    SubTaskOutcome,
    TaskSpec,
)
from proofstone.agents.rules.routes import is_allowed
from proofstone.solve.rules.memory_entries import MAX_FAILURES, FinishedTask, build_memory_entries
from tests.agents.memory.making import EPISODIC, PROCEDURAL, moment

LOGICAL, ENVIRONMENTAL, MIXED = FailureClass.LOGICAL, FailureClass.ENVIRONMENTAL, FailureClass.MIXED
RUN = "20260101T000000Z-abcdef"
TASK = TaskSpec(task_id="t1", intent="Count the rows of data.csv", raw_input="how many rows has data.csv?")


def verdict(failed: FailureClass | None, criterion: str = "the number is right") -> CriterionVerdict:
    word = "fail" if failed else "pass"
    return CriterionVerdict(
        criterion=criterion, mode=CriterionMode.PLAUSIBLE, verdict=word, failure_class=failed, evidence="it says 7"
    )


def outcome(
    id: str,
    *failed: FailureClass,
    matched: bool = False,
    tools: tuple[str, ...] = ("shell",),
    targets: tuple[str, ...] = ("data.csv",),
    reason: str | None = None,
) -> SubTaskOutcome:
    return SubTaskOutcome(
        subtask_id=id,
        parent_task_id="t1",
        status=OutcomeStatus.MATCHED if matched else OutcomeStatus.FAILED,
        failure_reason=reason,
        criteria_verdicts=tuple(verdict(one, f"criterion {n}") for n, one in enumerate(failed, start=1)),
        tools=tools,
        targets=targets,
        obstacles=targets,
    )


def replan(*outcomes: SubTaskOutcome, merged: tuple[CriterionVerdict, ...] = ()) -> ReplanRequest:
    return ReplanRequest(task_id="t1", gap_summary="", elapsed_ms=1, outcomes=outcomes, merged_verdicts=merged)


def accepted(*outcomes: SubTaskOutcome) -> OutcomeSummary:
    merged = (verdict(None),)
    return OutcomeSummary(task_id="t1", summary="7", elapsed_ms=1, outcomes=outcomes, merged_verdicts=merged)


def subtask(id: str) -> SubTask:
    return SubTask(
        subtask_id=id,
        parent_task_id="t1",
        intent=f"Do {id}",
        success_criteria=("it is so",),
        sequence=1,
    )


def directive(name: DirectiveName) -> PlanDirective:
    loss = Loss(D=1, P=1, Omega=0, L=1)
    return PlanDirective(
        task_id="t1", loss=loss, gradient=Gradient.PLATEAU, directive=name, budget_pressure=0, grad_l=0, rationale="so"
    )


def finished(*rounds: ReplanRequest | OutcomeSummary, status: FinalStatus, cost: float = 0.0) -> FinishedTask:
    ids = dict.fromkeys(one.subtask_id for told in rounds for one in told.outcomes)
    distance = 0 if status is FinalStatus.ACCEPTED else 1
    return FinishedTask(
        run_id=RUN,
        at=moment(5),
        task=TASK,
        result=FinalResult(
            task_id="t1",
            status=status,
            summary="seven",
            loss=Loss(D=distance, P=0, Omega=0, L=0),
            grad_l=0,
            replans=len(rounds) - 1,
        ),
        rounds=rounds,
        subtasks=tuple(subtask(id) for id in ids if not id.endswith("plan")),
        directives=tuple(directive(DirectiveName.CHANGE_PATH) for _ in rounds[1:]),
        cost=cost,
    )


def failures(*rounds: ReplanRequest | OutcomeSummary) -> list[MemoryEntry]:
    return [
        one for one in build_memory_entries(finished(*rounds, status=FinalStatus.ABANDONED)) if one.type is PROCEDURAL
    ]


def test_a_first_try_that_is_accepted_is_one_episode_with_its_cost() -> None:
    end = finished(accepted(outcome("s1", matched=True)), status=FinalStatus.ACCEPTED, cost=0.5)
    assert build_memory_entries(end) == (
        MemoryEntry(
            entry_id=f"{RUN}-e",
            task_id="t1",
            type=EPISODIC,
            content="Count the rows of data.csv: accepted after 0 replans: Do s1",
            criteria_met=True,
            timestamp=moment(5),
            tags=("tool:shell", "target:data.csv"),
            cost=0.5,
            run_id=RUN,
            request="how many rows has data.csv?",
            role="meta_validator",
        ),
    )


def test_what_worked_is_the_plan_of_the_last_round() -> None:
    again = (outcome("s2", matched=True), outcome("s3", matched=True, tools=("shell", "read")))
    end = finished(replan(outcome("s1", LOGICAL)), accepted(*again), status=FinalStatus.ACCEPTED)
    episode = build_memory_entries(end)[-1]
    assert episode.content == "Count the rows of data.csv: accepted after 1 replan: Do s2; Do s3"
    assert episode.tags == ("tool:shell", "tool:read", "target:data.csv")


def test_not_every_target_of_many_becomes_a_tag() -> None:
    [entry] = failures(replan(outcome("s1", ENVIRONMENTAL, targets=tuple(f"f{n:03}" for n in range(500)))))
    assert entry.tags == (*(f"target:f{n:03}" for n in range(12)), "class:environmental")


def test_an_abandoned_task_is_an_episode_that_failed_and_says_what_was_tried() -> None:
    end = finished(replan(outcome("s1", LOGICAL)), replan(outcome("s2", LOGICAL)), status=FinalStatus.ABANDONED, cost=2)
    episode = build_memory_entries(end)[-1]
    assert (episode.criteria_met, episode.role, episode.tags, episode.cost) == (False, "planner", (), 2)
    assert episode.content == "Count the rows of data.csv: abandoned after 1 replan (change_path): seven"


@pytest.mark.parametrize(
    ("failed", "tags"),
    [
        (LOGICAL, ("tool:shell", "class:logical")),
        (ENVIRONMENTAL, ("target:data.csv", "class:environmental")),
        (MIXED, ("class:mixed",)),
    ],
)
def test_a_wrong_approach_is_its_tools_and_an_obstacle_its_targets(failed: FailureClass, tags: tuple[str, ...]) -> None:
    [entry] = failures(replan(outcome("s1", failed)))
    assert (entry.tags, entry.criteria_met, entry.role, entry.cost) == (tags, False, "planner", 0)
    assert entry.content == f"Count the rows of data.csv: Do s1: failed ({failed}): criterion 1 – it says 7"


def test_what_failed_in_both_ways_is_two_entries_and_criteria_of_one_class_are_one() -> None:
    entries = failures(replan(outcome("s1", LOGICAL, ENVIRONMENTAL, LOGICAL, LOGICAL, LOGICAL)))
    assert [one.tags[-1] for one in entries] == ["class:logical", "class:environmental"]
    assert entries[0].content.endswith(
        "criterion 1 – it says 7; criterion 3 – it says 7; criterion 4 – it says 7; and 1 more"
    )


def test_what_worked_elsewhere_in_the_task_is_not_to_blame() -> None:
    mixed = outcome("s1", LOGICAL, tools=("read", "shell"))
    later = outcome("s2", matched=True, tools=("read",), targets=())
    assert failures(replan(mixed), replan(later, outcome("s3", LOGICAL)))[0].tags == ("tool:shell", "class:logical")
    blocked = outcome("s4", ENVIRONMENTAL, targets=("a", "b"))
    assert failures(replan(blocked, outcome("s5", matched=True, targets=("b",))))[0].tags == (
        "target:a",
        "class:environmental",
    )


def test_a_failure_that_does_not_say_by_which_criterion_was_in_its_way() -> None:
    [entry] = failures(replan(outcome("s1", reason="it crashed")))
    assert entry.tags == ("target:data.csv", "class:environmental") and entry.content.endswith(": it crashed")


def test_a_rejected_merge_is_remembered_and_blames_no_tool() -> None:
    [entry] = failures(replan(outcome("s1", matched=True), merged=(verdict(LOGICAL), verdict(None))))
    assert entry.tags == ("class:logical",)
    assert (
        entry.content == "Count the rows of data.csv: merged result: failed (logical): the number is right – it says 7"
    )


def test_a_round_without_a_plan_teaches_nothing() -> None:
    assert failures(replan(outcome("t1-r1-plan", reason="there is no plan"))) == []


def test_what_failed_in_the_same_way_twice_is_one_entry() -> None:
    assert len(failures(replan(outcome("s1", LOGICAL)), replan(outcome("s1", LOGICAL)))) == 1


def test_there_are_only_so_many_and_those_of_the_last_rounds() -> None:
    rounds = [replan(outcome(f"s{n:02}", LOGICAL)) for n in range(MAX_FAILURES + 4)]
    entries = failures(*rounds)
    assert [one.content.split(": ")[1] for one in entries] == [f"Do s{n:02}" for n in range(4, MAX_FAILURES + 4)]
    assert len({one.entry_id for one in entries}) == MAX_FAILURES


def test_long_texts_are_cut_and_stand_in_one_line() -> None:
    [entry] = failures(replan(outcome("s1", reason="x\n" * 5000)))
    assert "\n" not in entry.content and len(entry.content) > 300
    long = TASK.model_copy(update={"intent": "y " * 5000})
    end = finished(replan(outcome("s1", LOGICAL)), status=FinalStatus.ABANDONED)
    assert all(len(one.content) < 2000 for one in build_memory_entries(FinishedTask(**{**vars(end), "task": long})))


def test_whoever_is_named_as_the_writer_may_write_it() -> None:
    won = finished(replan(outcome("s1", LOGICAL)), accepted(outcome("s2", matched=True)), status=FinalStatus.ACCEPTED)
    lost = finished(replan(outcome("s1", LOGICAL)), status=FinalStatus.ABANDONED)
    entries = (*build_memory_entries(won), *build_memory_entries(lost))
    assert {one.role for one in entries} == {"planner", "meta_validator"}
    assert all(is_allowed(one.role, "memory", "MemoryEntry") for one in entries)
    assert all(one.criteria_met for one in entries if one.role == "meta_validator")


def test_the_next_task_like_it_is_told_and_after_a_second_run_held_to_it() -> None:
    by_grep = outcome("s2", matched=True, tools=("grep",))
    won = finished(replan(outcome("s1", LOGICAL)), accepted(by_grep), status=FinalStatus.ACCEPTED)
    found = calibrate(build_memory_entries(won), ("count rows in other.csv",))
    assert found.blocked_tools == ()
    twice = (*build_memory_entries(won), *build_memory_entries(replace(won, run_id="another", at=moment(6))))
    assert calibrate(twice, ("count rows in other.csv",)).blocked_tools == ("shell",)
    assert [line.partition(":")[0] for line in found.must_not] == ["tool shell"]
    assert [line.partition(":")[0] for line in found.should_prefer] == ["tool grep, target data.csv"]
    assert calibrate(build_memory_entries(won), ("delete old branches",)).used == ()


def test_what_was_worked_on_and_was_not_in_the_way_is_not_to_blame() -> None:
    failed = outcome("s1", ENVIRONMENTAL).model_copy(update={"targets": ("data.csv", "out.csv"), "obstacles": ()})
    assert not [tag for entry in failures(replan(failed)) for tag in entry.tags if tag.startswith("target:")]
