"""Where a task stands, state by state, and where a run stands."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.gate import FailureType
from proofstone.gate.models import GATE_POLICY, OverrideAction, TaskEvent, TaskRetried, TaskView
from proofstone.gate.rules.progress import (
    count_tasks,
    describe_status,
    find_current_task,
    format_bar,
    format_steps,
    locate_task,
)
from proofstone.gate.rules.questions import QuestionKind, find_question_kind, list_answers
from tests.gate import views
from tests.gate.views import RUN, executed, failed, overridden, started, view
from tests.rows import each_row


def task(*events: TaskEvent, checkpoint: bool = False, asks: str | None = None) -> TaskView:
    checkpoints = ("one",) if checkpoint else ()
    return view({"one": events}, checkpoints=checkpoints, asks=None if asks is None else {"one": asks}).tasks[0]


CASES = [
    ((), 1, "pending pending pending", "[--------]"),
    ((started(),), 1, "running pending pending", "[#-------]"),
    ((started(), executed()), 2, "success running pending", "[####----]"),
    (views.TO_REVIEW, 3, "success passed reviewing", "[#######-]"),
    (views.PASSED, 3, "success passed approved", "[########]"),
    (views.BLOCKED, 1, "blocked pending pending", "[--------]"),
    ((started(), failed(FailureType.EXECUTION_FAILURE)), 1, "failure pending pending", "[--------]"),
    ((started(), executed(), failed()), 2, "success failed pending", "[###-----]"),
    ((*views.TO_REVIEW, failed(FailureType.ARCHITECT_REJECTION)), 3, "success passed rejected", "[#####---]"),
    ((started(), failed(FailureType.TIMEOUT)), 1, "failure pending pending", "[--------]"),
    ((started(), executed(), failed(FailureType.TIMEOUT)), 2, "success failed pending", "[###-----]"),
    ((*views.TO_REVIEW, failed(FailureType.TIMEOUT)), 3, "success passed pending", "[#####---]"),
    ((started(), failed(FailureType.MALFORMED)), 1, "failure pending pending", "[--------]"),
    ((started(), executed(), failed(), overridden()), 2, "success skipped pending", "[#####---]"),
    ((overridden(OverrideAction.FORCE),), 2, "pending skipped pending", "[###-----]"),
]


@each_row(("events", "step", "words", "shown"), CASES)
def test_every_state_has_its_step_its_words_and_its_bar(
    events: tuple[TaskEvent, ...], step: int, words: str, shown: str
) -> None:
    place = locate_task(task(*events))
    assert (place.step, " ".join(place.words), format_bar(place)) == (step, words, shown)


def test_a_confirmed_checkpoint_had_nothing_to_verify() -> None:
    assert locate_task(task(*views.CONFIRMED, checkpoint=True)).words == ("success", "skipped", "approved")


@pytest.mark.seed("gate", "state-bar")
def test_the_steps_are_shown_with_their_times() -> None:
    assert format_steps(task(started(), executed())) == (
        "[x] Step 1: Executor    - SUCCESS (14:30:01)",
        "[~] Step 2: Verify      - RUNNING (14:30:01)",
        "[ ] Step 3: Architect   - PENDING",
    )


def test_an_architect_who_never_spoke_has_not_rejected() -> None:
    assert format_steps(task(*views.TO_REVIEW, failed(FailureType.TIMEOUT)))[2] == (
        "[!] Step 3: Architect   - TIMEOUT (14:30:03)"
    )


def test_times_are_those_of_the_attempt_that_is_under_way() -> None:
    again = task(started(), executed(), failed(), TaskRetried(by=GATE_POLICY), started(2))
    assert format_steps(again)[:2] == (
        "[~] Step 1: Executor    - RUNNING (14:30:04)",
        "[ ] Step 2: Verify      - PENDING",
    )


@each_row(
    ("events", "asks", "expected"),
    [
        ({"a": views.PASSED, "b": (started(),), "c": ()}, {}, "b"),
        ({"a": (started(),), "b": (started(), executed())}, {}, "b"),
        ({"a": views.THRICE_FAILED, "b": (), "c": ()}, {}, "a"),
        ({"a": views.PASSED, "b": ()}, {}, "b"),
        ({"a": views.PASSED, "b": (overridden(),)}, {"b": "commit it"}, "b"),
        ({"a": (started(), executed(), failed()), "b": ()}, {}, "a"),
    ],
)
def test_the_current_task_is_the_one_that_a_person_would_look_at(
    events: dict[str, tuple[TaskEvent, ...]], asks: dict[str, str], expected: str
) -> None:
    seen = view(events, asks=asks or None)
    found = find_current_task(seen)
    assert found is not None
    assert seen.plan.get_task(found.record.id).name == expected


def test_a_run_without_tasks_has_no_current_one() -> None:
    assert find_current_task(view({})) is None


@pytest.mark.seed("gate", "state-stats")
def test_statistics_count_every_task_once() -> None:
    seen = view(
        {
            "passed": views.PASSED,
            "failed": views.THRICE_FAILED,
            "running": (started(),),
            "again": (started(), executed(), failed()),
            "approved, not committed": views.PASSED[:-1],
            "blocked": views.BLOCKED,
            "waiting": (),
        }
    )
    assert count_tasks(seen) == (7, 1, 1, 3, 2, "50%", 1.3)


def test_what_was_skipped_is_neither_passed_nor_failed() -> None:
    counted = count_tasks(view({"a": views.PASSED, "b": (overridden(),)}))
    assert counted == (2, 1, 0, 0, 0, "100%", 1.0)


@each_row(("passed", "failures", "rate"), [(0, 0, "–"), (8, 1, "89%"), (0, 1, "0%"), (3, 0, "100%"), (299, 1, "99%")])
@pytest.mark.seed("gate", "state-stats")
def test_the_pass_rate_never_says_all_when_one_failed(passed: int, failures: int, rate: str) -> None:
    events = {f"p{number}": views.PASSED for number in range(passed)}
    lost = {f"f{number}": views.THRICE_FAILED for number in range(failures)}
    assert count_tasks(view({**events, **lost})).pass_rate == rate


@each_row(
    ("seen", "kind", "command"),
    [
        (
            task(checkpoint=True, asks="which colour?"),
            QuestionKind.CHECKPOINT,
            f'proofstone done {RUN} task-01 --note "…"',
        ),
        (task(started(), asks="do it"), QuestionKind.WORK, f"proofstone done {RUN} task-01"),
        (task(*views.TO_REVIEW, asks="look"), QuestionKind.REVIEW, f"proofstone approve {RUN} task-01 approved"),
        (task(*views.THRICE_FAILED), QuestionKind.FAILURE, f"proofstone resume {RUN} --retry task-01"),
        (task(*views.BLOCKED), QuestionKind.FAILURE, f"proofstone resume {RUN} --retry task-01"),
        (task(overridden(), asks="commit it"), QuestionKind.COMMIT, f"proofstone done {RUN} task-01"),
    ],
)
def test_every_question_has_commands_that_answer_it(seen: TaskView, kind: QuestionKind, command: str) -> None:
    assert find_question_kind(seen) is kind
    assert list_answers(RUN, seen)[0].command == command


def test_where_nothing_is_asked_nothing_answers() -> None:
    quiet = task(*views.PASSED)
    assert find_question_kind(quiet) is None
    assert list_answers(RUN, quiet) == ()


@pytest.mark.parametrize(
    ("events", "word"),
    [
        ((overridden(),), "complete (unverified)"),
        ((overridden(OverrideAction.FORCE),), "complete (forced)"),
        (views.PASSED, "APPROVED"),
    ],
)
def test_what_was_set_aside_says_so(events: tuple[TaskEvent, ...], word: str) -> None:
    assert describe_status(task(*events).record) == word
