"""How another attempt goes about it: what counts as what, how far it is, and what follows. The controller is the same
as that of the control loop; here is what it is told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from proofstone.agents.roles.models.gate import AttemptFailure, FailureReason, FailureType, RetryDirection
from proofstone.agents.roles.models.solve_messages import CriterionMode, DirectiveName, FailureClass
from proofstone.common.models import Verdict
from proofstone.gate.models import TaskRecord
from proofstone.gate.rules.assignment import build_assignment
from proofstone.gate.rules.direction import (
    APPROACH_POLICY,
    DIRECTIVE_TEXTS,
    add_direction,
    format_figures,
    format_trajectory,
    list_criteria,
)
from proofstone.runtime.rules import count_work_ms
from proofstone.solve.rules.gradient import LossWeights, Measurement, compute_loss, decide
from tests.gate.records import plan, record, task
from tests.rows import each_row

LOGICAL = (CriterionMode.VERIFIABLE, FailureClass.LOGICAL)
ENVIRONMENTAL = (CriterionMode.VERIFIABLE, FailureClass.ENVIRONMENTAL)
PLAUSIBLE = (CriterionMode.PLAUSIBLE, FailureClass.LOGICAL)


def reason(check: str, detail: str = "x", **changed: object) -> FailureReason:
    return FailureReason.model_validate({"check": check, "detail": detail, **changed})


def unsure(check: str, detail: str) -> FailureReason:
    return reason(check, detail, verdict=Verdict.UNVERIFIABLE)


def failure(*reasons: FailureReason, attempt: int = 1, passed: tuple[str, ...] = ()) -> AttemptFailure:
    return AttemptFailure(attempt=attempt, type=FailureType.VERIFY_FAILURE, error="x", reasons=reasons, passed=passed)


@each_row(
    ("told", "kind"),
    [
        (reason("verify", "`pytest -q` ended with exit code 1"), LOGICAL),
        (reason("tests:pytest", "1 test now fails that did not fail before"), LOGICAL),
        (reason("new-failure", "test_a is new and fails: connection refused"), LOGICAL),
        (reason("insensitive-test", layer="L5"), LOGICAL),
        (reason("scope", "b.py was changed but is not among <files>"), LOGICAL),
        (reason("claim-mismatch", layer="gate"), LOGICAL),
        (reason("hook:pre-commit", "the repository's pre-commit hook refuses it"), LOGICAL),
        (reason("executor", "the executor reports that a done criterion is not met"), LOGICAL),
        (reason("architect", "rules: not what was asked"), PLAUSIBLE),
        (unsure("architect", "cmd:x: malformed"), ENVIRONMENTAL),
        (unsure("types:mypy", "mypy is not installed"), ENVIRONMENTAL),
        (unsure("verify", "`pytest -q` did not finish"), ENVIRONMENTAL),
        (unsure("tests:pytest", "the sandbox could not start it: no namespaces"), ENVIRONMENTAL),
        (unsure("executor", "not finished after 300 s"), ENVIRONMENTAL),
        (unsure("executor", "ended by the signal SIGKILL (exit code 137)"), ENVIRONMENTAL),
        (unsure("executor", "the result in $PROOFSTONE_RESULT is malformed: status"), ENVIRONMENTAL),
        (reason("executor", "exit code 127: sh: 1: aider: not found"), ENVIRONMENTAL),
        (reason("executor", "could not resolve host pypi.org"), ENVIRONMENTAL),
        (reason("verify", "`frobnicate` ended with exit code 127"), ENVIRONMENTAL),
        (reason("verify", "`pytest -q` ended with exit code 12"), LOGICAL),
        (reason("merge-conflict", "a.py (content): on the branch"), ENVIRONMENTAL),
    ],
)
def test_what_counts_as_what(told: FailureReason, kind: tuple[CriterionMode, FailureClass]) -> None:
    [found] = list_criteria(failure(told))
    assert (found.mode, found.failure_class) == kind


A, B = "a" * 64, "b" * 64
SIGNALS = reason("signals", "1 of the 2 passing checks", layer="gate")


@each_row(
    ("reasons", "passed", "distance", "blame"),
    [
        ((), (), 1, 0),
        ((unsure("executor", "not finished after 300 s"),), (), 1, 0),
        ((reason("verify"),), ("syntax",), 1 / 2, 1),
        ((reason("verify"), reason("lint:ruff")), ("syntax", "types:mypy"), 1 / 2, 1),
        ((reason("architect"),), ("syntax", "tests:pytest", "verify"), 1 / 4, 1),
        ((reason("verify"), unsure("types:mypy", "mypy is not installed")), ("syntax",), 2 / 3, 1 / 2),
        # Conditions that others sum up count only where they stand alone.
        ((reason("verify"), SIGNALS), ("syntax",), 1 / 2, 1),
        ((SIGNALS,), ("verify",), 1 / 2, 1),
        ((reason("regression", "t", layer="L3"), reason("regression", "t", layer="gate")), ("syntax",), 1 / 2, 1),
        # A check counts by its findings, and by itself where it has none.
        ((reason("tests:pytest", artifact=A), reason("new-failure", "t", artifact=A)), ("syntax",), 1 / 2, 1),
        (
            (reason("tests:pytest", artifact=A), *(reason("new-failure", t, artifact=A) for t in "tuv")),
            ("syntax",),
            3 / 4,
            1,
        ),
        ((reason("verify", "a", artifact=A), reason("verify", "b", artifact=A)), ("syntax", "lint"), 1 / 2, 1),
        ((reason("verify", artifact=A), reason("tests:pytest", artifact=B)), ("syntax", "lint"), 1 / 2, 1),
        # What waits for a build that fails is not in the way of anything.
        ((reason("build:make"), unsure("tests:make", "build:make must pass first")), ("syntax",), 1 / 2, 1),
        ((unsure("tests:make", "build:make must pass first"),), ("syntax",), 1 / 2, 0),
    ],
)
def test_how_far_it_is_and_what_is_to_blame(
    reasons: tuple[FailureReason, ...], passed: tuple[str, ...], distance: float, blame: float
) -> None:
    told = way(failure(*reasons, passed=passed))[0].loss.model_dump()
    assert told["D"] == pytest.approx(distance)
    assert told["P"] == pytest.approx(blame)


def way(*failures: AttemptFailure, minutes: float = 480, elapsed_ms: int = 0, extra: int = 0) -> list[RetryDirection]:
    """What the controller says to each of them in turn."""
    before = record(extra_attempts=extra)
    for number, one in enumerate(failures, start=1):
        at = one.model_copy(update={"attempt": number})
        told = add_direction(at, before, elapsed_ms=elapsed_ms, minutes=minutes)
        before = before.model_copy(update={"failures": (*before.failures, told)})
    return [one.direction for one in before.failures if one.direction is not None]


CRASHED = failure(unsure("executor", "ended by the signal SIGKILL"))
FAR = failure(reason("verify"), reason("lint:ruff"), passed=("syntax",))
FURTHER = failure(reason("verify"), reason("lint:ruff"), reason("types:mypy"), reason("scope"))
NEARER = failure(reason("verify"), passed=("syntax", "lint:ruff"))
NEAR = failure(reason("architect"), passed=("verify", "syntax", "lint:ruff"))
MISSING = failure(unsure("types:mypy", "mypy is not installed"), passed=("syntax",))
NO_TOOLS = failure(unsure("types:mypy", "mypy is not installed"), unsure("verify", "not there"))


@each_row(
    ("failures", "directives"),
    [
        ((FAR,), "refine"),
        ((CRASHED,), "refine"),
        ((FAR, FAR), "refine break_symmetry"),
        ((FAR, NEARER), "refine refine"),
        ((FAR, FURTHER), "refine change_approach"),
        ((FAR, NEAR), "refine refine"),
        ((NEAR, NEAR), "refine refine"),
        ((CRASHED, CRASHED), "refine change_path"),
        ((MISSING, MISSING), "refine change_path"),
        ((MISSING, NO_TOOLS), "refine refine"),
        ((FAR, FAR, FAR), "refine break_symmetry break_symmetry"),
    ],
)
def test_the_table_of_the_control_loop_directs_attempts(failures: tuple[AttemptFailure, ...], directives: str) -> None:
    assert [one.directive.value for one in way(*failures)] == directives.split()


def test_where_something_was_in_the_way_it_is_named() -> None:
    first, second = way(MISSING, MISSING)
    assert first.suggested_alternatives == ()
    assert second.suggested_alternatives == ("a way around this: types:mypy: mypy is not installed",)
    assert second.failed_criterion == "types:mypy: mypy is not installed"
    assert second.failure_class is FailureClass.ENVIRONMENTAL
    assert way(FAR, FAR)[1].suggested_alternatives == ()


@each_row(
    ("number", "elapsed", "extra", "pressure"),
    [
        (1, 0, 0, 0.0),
        (2, 0, 0, 0.3),
        (3, 0, 0, 0.6),
        (1, 30, 0, 0.2),
        (2, 60, 0, 0.7),
        (2, 6000, 0, 0.7),
        (3, 0, 2, 0.3),
    ],
)
def test_attempts_and_time_are_what_there_is_to_spend(number: int, elapsed: int, extra: int, pressure: float) -> None:
    told = way(*[FAR] * number, minutes=1, elapsed_ms=elapsed * 1000, extra=extra)
    assert told[-1].loss.Omega == pytest.approx(pressure)


def test_whether_to_go_on_is_not_for_the_controller_to_say() -> None:
    """A person may ask for a further attempt when everything is spent; it is told how, like any other."""
    told = way(*[FAR] * 5, minutes=1, elapsed_ms=3_600_000, extra=2)
    assert told[-1].loss.Omega == 1
    assert {row.directive for row in APPROACH_POLICY} == set(DIRECTIVE_TEXTS)
    assert {DirectiveName.ACCEPT, DirectiveName.ABANDON}.isdisjoint(DIRECTIVE_TEXTS)
    weights = LossWeights()
    done = Measurement(compute_loss(0, 0, 1, weights), 0.0, 0.0, replans=9, is_verified=True)
    assert decide(APPROACH_POLICY, done, weights).directive is DirectiveName.REFINE


def test_a_failure_from_before_there_was_a_controller_is_read_and_gone_on_from() -> None:
    old = AttemptFailure.model_validate({"attempt": 1, "type": "VERIFY_FAILURE", "error": "x", "reasons": []})
    assert old.direction is None and format_trajectory((old,)) == ""
    told = add_direction(FAR.model_copy(update={"attempt": 2}), record(failures=(old,)), elapsed_ms=0, minutes=1)
    assert told.direction is not None and told.direction.nabla == 0
    one = task(1)
    first = build_assignment(
        plan(one), one, record(attempt=2, failures=(old,)), (), run_id="r", base_commit="b", seconds=1
    )
    assert first.direction is None and "The controller says" not in first.prompt


def attempted(*failures: AttemptFailure, **changed: object) -> TaskRecord:
    before = record()
    for number, one in enumerate(failures, start=1):
        told = add_direction(one.model_copy(update={"attempt": number}), before, elapsed_ms=0, minutes=1)
        before = before.model_copy(update={"failures": (*before.failures, told), "attempt": number + 1})
    return before.model_copy(update=changed)


def test_an_executor_is_told_how_beside_what() -> None:
    one, before = task(1), attempted(MISSING, MISSING)
    told = build_assignment(plan(one), one, before, (), run_id="r", base_commit="b", seconds=300)
    assert told.direction is not None and told.direction == before.failures[-1].direction
    assert "mending the work" in told.directive
    block = told.prompt.partition("## This time\n")[2].partition("# Task 1")[0]
    lines = [
        told.directive,
        DIRECTIVE_TEXTS[DirectiveName.CHANGE_PATH],
        format_figures(told.direction),
        "- a way around this: types:mypy",
    ]
    assert sorted(map(block.index, lines)) == list(map(block.index, lines))


def test_a_persons_note_comes_before_the_direction_and_does_not_replace_it() -> None:
    one = task(1)
    told = build_assignment(
        plan(one), one, attempted(FAR, note="use UTC"), (), run_id="r", base_commit="b", seconds=None
    ).prompt
    assert told.index("use UTC") < told.index(DIRECTIVE_TEXTS[DirectiveName.REFINE])


def test_which_held_out_checks_passed_is_not_told() -> None:
    one, passed = task(1), ("syntax", "held-out-1")
    before = attempted(failure(reason("verify"), passed=passed))
    told = build_assignment(plan(one), one, before, (), run_id="r", base_commit="b", seconds=None)
    assert before.failures[0].passed == passed
    assert "held-out" not in told.model_dump_json()


def test_a_first_attempt_has_no_direction() -> None:
    one = task(1)
    told = build_assignment(plan(one), one, record(attempt=1), (), run_id="r", base_commit="b", seconds=None)
    assert told.direction is None and "This time" not in told.prompt


def test_the_figures_stand_in_one_line() -> None:
    first, second = way(FURTHER, NEARER)
    assert format_figures(first) == "D=1.00 P=1.00 ∇=+0.00 Ω=0.00 ⊥ refine"
    assert format_figures(second) == "D=0.33 P=1.00 ∇=-0.40 Ω=0.30 ↓ refine"
    assert format_trajectory(attempted(FURTHER, NEARER).failures) == "0.90 ⊥ → 0.53 ↓"


START, RESUME, END, CUT = "run.started", "run.resumed", "run.finished", "run.interrupted"


@each_row(
    ("marks", "seconds"),
    [
        ([], 0),
        ([(0, START)], 50),
        ([(0, START), (10, "started")], 50),
        ([(0, START), (10, END)], 10),
        ([(0, START), (10, CUT), (30, RESUME)], 30),
        ([(0, START), (5, "started"), (30, RESUME), (40, "failed")], 25),
        ([(0, START), (10, END), (15, "run.budget"), (20, RESUME), (30, END)], 20),
        ([(0, START), (90, END)], 50),  # a time in the future comes from a clock that was wrong
        ([(3000, START), (3100, "started"), (10, "failed"), (30, "started")], 40),  # it was put right in between
        ([(0, START), (3000, CUT), (20, RESUME), (30, END)], 60),
        ([(90, START)], 0),
        ([(0, START), (10, "person.asked"), (40, "person.answered"), (45, END)], 15),
        ([(0, START), (10, "person.asked"), (40, RESUME), (45, END)], 15),
    ],
)
def test_only_the_time_in_which_somebody_was_at_work_counts(marks: list[tuple[int, str]], seconds: int) -> None:
    def at(second: int) -> datetime:
        return datetime(2026, 2, 26, 14, second // 60, second % 60, tzinfo=UTC)

    assert count_work_ms(((at(second).isoformat(), type) for second, type in marks), at(50)) == seconds * 1000
