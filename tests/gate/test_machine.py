"""The gate's table, row by row, and what no sequence of events can do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.agents.roles.models.gate import ExecutorResult, ExecutorStatus, FailureType, TaskState
from proofstone.common.models import Verdict
from proofstone.gate.models import (
    GATE_POLICY,
    TASK_EVENTS,
    AttemptApproved,
    AttemptChecked,
    AttemptExecuted,
    AttemptFailed,
    AttemptStarted,
    BranchMoved,
    CriteriaAdded,
    Evidence,
    Override,
    OverrideAction,
    ReviewEscalated,
    ReviewFailed,
    ReviewRepeated,
    TaskAccepted,
    TaskBlocked,
    TaskCommitted,
    TaskConfirmed,
    TaskEvent,
    TaskOverridden,
    TaskRecord,
    TaskRetried,
    VerifyRun,
)
from proofstone.gate.rules.pass_rule import find_unmet
from proofstone.gate.rules.state_machine import (
    MAX_ATTEMPTS,
    TRANSITIONS,
    GateError,
    apply_task_event,
    can_retry,
    draw_state_diagram,
)
from tests.gate.records import BASE, COMMIT, REJECTED, RULES, SUCCESS, TREE, checked, evidence, failure, record
from tests.rows import each_row

S = TaskState
HONEST = (
    AttemptStarted(attempt=1, base_commit=BASE, tree=TREE),
    AttemptExecuted(claim=SUCCESS, tree=TREE),
    checked(),
    AttemptApproved(verdicts=(RULES,)),
    TaskCommitted(commit=COMMIT, tree=TREE),
)
SKIP = Override(action=OverrideAction.SKIP, reason="the service is down", by="ann", at="now")
FORCE = SKIP.model_copy(update={"action": OverrideAction.FORCE})


def replay(now: TaskRecord, events: tuple[TaskEvent, ...]) -> TaskRecord:
    for event in events:
        now = apply_task_event(now, event)
    return now


@pytest.mark.seed("gate", "transitions")
def test_honest_work_goes_straight_through() -> None:
    states = [replay(record(), HONEST[:number]).state for number in range(len(HONEST) + 1)]
    assert states == [S.PENDING, S.EXECUTING, S.VERIFYING, S.REVIEWING, S.APPROVED, S.APPROVED]
    assert replay(record(), HONEST).commit == COMMIT


def test_added_criteria_make_a_task_wait_for_its_check_again_like_a_branch_that_moved() -> None:
    for event in (BranchMoved(onto=BASE), CriteriaAdded(number=1)):
        again = apply_task_event(replay(record(), HONEST[:3]), event)
        assert (again.state, again.evidence, again.candidate, again.moves) == (S.VERIFYING, None, None, 1)


KINDS = sorted({kind for _, kind in TRANSITIONS})


@each_row(
    ("state", "kind"), [(state, kind) for state in TaskState for kind in KINDS if (state, kind) not in TRANSITIONS]
)
@pytest.mark.seed("gate", "transitions")
def test_what_is_not_in_the_table_is_an_error(state: TaskState, kind: str) -> None:
    events: dict[str, TaskEvent] = {
        "started": HONEST[0],
        "executed": HONEST[1],
        "checked": HONEST[2],
        "approved": HONEST[3],
        "committed": HONEST[4],
        "moved": BranchMoved(onto=BASE),
        "amended": CriteriaAdded(number=1),
        "failed": AttemptFailed(failure=failure(FailureType.TIMEOUT)),
        "blocked": TaskBlocked(error="no key"),
        "retried": TaskRetried(by="ann"),
        "accepted": TaskAccepted(accepted=()),
        "overridden": TaskOverridden(override=SKIP),
        "confirmed": TaskConfirmed(by="ann"),
        "asked": ReviewEscalated(verdict=REJECTED),
        "unanswered": ReviewFailed(failure=failure(FailureType.MALFORMED)),
        "ask-again": ReviewRepeated(by="ann"),
    }
    with pytest.raises(GateError, match=f"`{kind}` cannot happen to a task that is {state}"):
        apply_task_event(record(state=state), events[kind])


@each_row(
    ("before", "event", "why"),
    [
        (record(checkpoint=True), HONEST[0], "confirmed by the person"),
        (record(), AttemptStarted(attempt=2, base_commit=BASE, tree=TREE), "attempt 2 cannot follow attempt 0"),
        (record(), TaskConfirmed(by="ann"), "only a checkpoint"),
        (record(state=S.VERIFYING, claim=None), checked(), "another attempt"),
        (record(state=S.REVIEWING), AttemptApproved(verdicts=(RULES,)), "no evidence"),
        (record(state=S.REVIEWING, evidence=evidence()), AttemptApproved(verdicts=()), "no architect gave a verdict"),
        (record(state=S.REVIEWING, evidence=evidence()), AttemptApproved(verdicts=(REJECTED,)), "not what was asked"),
        (
            record(state=S.REVIEWING, evidence=evidence(verify=())),
            AttemptApproved(verdicts=(RULES,)),
            "no verify command",
        ),
        (record(state=S.APPROVED), HONEST[4], "nothing to commit"),
        (record(state=S.APPROVED, checkpoint=True, evidence=evidence()), HONEST[4], "nothing to commit"),
        (
            record(state=S.APPROVED, evidence=evidence(tree="d" * 40), candidate=COMMIT),
            HONEST[4],
            "not the one that was verified",
        ),
        (record(state=S.APPROVED, evidence=evidence(), candidate="e" * 40), HONEST[4], "not the one that was verified"),
        (
            record(state=S.APPROVED, evidence=evidence(), candidate=COMMIT, commit=COMMIT),
            HONEST[4],
            "nothing to commit",
        ),
        (record(state=S.EXECUTING, attempt=2), AttemptFailed(failure=failure(FailureType.TIMEOUT)), "not under way"),
        (
            record(state=S.FAILED, attempt=3, failures=(failure(FailureType.MALFORMED, 3),)),
            TaskRetried(by=GATE_POLICY),
            "no attempts left",
        ),
        (record(state=S.APPROVED, commit=COMMIT), BranchMoved(onto=BASE), "nothing left to check"),
    ],
)
def test_a_transition_may_ask_for_more_than_its_place(before: TaskRecord, event: TaskEvent, why: str) -> None:
    with pytest.raises(GateError, match=why):
        apply_task_event(before, event)


def test_a_person_may_ask_for_one_attempt_beyond_the_bound() -> None:
    spent = record(state=S.FAILED, attempt=3, failures=tuple(failure(FailureType.VERIFY_FAILURE, n) for n in (1, 2, 3)))
    again = apply_task_event(spent, TaskRetried(by="ann", note="fix: use the other key"))
    assert (again.state, again.extra_attempts, again.note) == (S.PENDING, 1, "fix: use the other key")


def test_skip_and_force_end_in_states_of_their_own_and_never_finish_by_themselves() -> None:
    skipped = apply_task_event(record(), TaskOverridden(override=SKIP))
    forced = apply_task_event(record(), TaskOverridden(override=FORCE))
    assert (skipped.state, forced.state) == (S.SKIPPED, S.FORCED)
    assert not skipped.is_finished and not forced.is_finished
    with pytest.raises(GateError):
        apply_task_event(skipped, TaskConfirmed(by="ann"))
    assert apply_task_event(skipped, TaskConfirmed(by="ann", commit=COMMIT)).is_finished


def test_every_event_comes_back_from_its_row() -> None:
    for event in (*HONEST, BranchMoved(onto=BASE), TaskOverridden(override=SKIP), TaskBlocked(error="x")):
        assert TASK_EVENTS.validate_python(event.model_dump(mode="json")) == event


def test_the_diagram_shows_every_transition() -> None:
    drawn = draw_state_diagram()
    assert drawn.startswith("stateDiagram-v2")
    for (state, kind), to in TRANSITIONS.items():
        if kind != "overridden":
            assert any(line.strip().startswith(f"{state} --> {to}:") and kind in line for line in drawn.splitlines()), (
                state,
                kind,
            )
    assert "FAILED --> FORCED: force" in drawn


# Whatever happens, in whatever order.

_verify = st.builds(
    VerifyRun,
    command=st.just("pytest"),
    exit_code=st.sampled_from([0, 1, None]),
    verdict=st.sampled_from(list(Verdict)),
    flaky=st.booleans(),
)
_claims = st.sampled_from(
    [
        SUCCESS,
        ExecutorResult(status=ExecutorStatus.FAILURE, error="x"),
        SUCCESS.model_copy(update={"done_criteria_met": False}),
    ]
)


@st.composite
def _evidence(draw: st.DrawFn) -> Evidence:
    return evidence(
        tree=draw(st.sampled_from([TREE, "d" * 40])),
        claim=draw(_claims),
        verify=tuple(draw(st.lists(_verify, max_size=2))),
        passing=tuple(draw(st.sets(st.sampled_from(["verify", "syntax", "tests"])))),
        large=draw(st.booleans()),
        regressions=draw(st.sampled_from([(), ("test_a",)])),
        undeclared=draw(st.sampled_from([(), ("other.py",)])),
        criteria=draw(st.sampled_from([(), evidence().criteria])),
        flaky_allowed=draw(st.booleans()),
    )


_verdicts = st.lists(st.sampled_from([RULES, REJECTED]), max_size=2).map(tuple)
_events: st.SearchStrategy[TaskEvent] = st.one_of(
    st.builds(AttemptStarted, attempt=st.integers(1, 5), base_commit=st.just(BASE), tree=st.just(TREE)),
    st.builds(AttemptExecuted, claim=_claims, tree=st.just(TREE)),
    st.builds(AttemptChecked, evidence=_evidence(), commit=st.sampled_from([COMMIT, "e" * 40]), rules=st.just(RULES)),
    st.just(checked()),
    st.builds(AttemptApproved, verdicts=_verdicts),
    st.just(HONEST[3]),
    st.builds(TaskCommitted, commit=st.sampled_from([COMMIT, "e" * 40]), tree=st.sampled_from([TREE, "d" * 40])),
    st.builds(BranchMoved, onto=st.just(BASE)),
    st.builds(AttemptFailed, failure=st.builds(failure, st.sampled_from(list(FailureType)), st.integers(1, 5))),
    st.just(TaskBlocked(error="x")),
    st.just(TaskRetried(by=GATE_POLICY)),
    st.builds(TaskOverridden, override=st.sampled_from([SKIP, FORCE])),
    st.builds(TaskConfirmed, by=st.just("ann"), commit=st.sampled_from([None, COMMIT]), is_left_out=st.booleans()),
    st.just(ReviewEscalated(verdict=REJECTED)),
    st.builds(ReviewFailed, failure=st.builds(failure, st.sampled_from(list(FailureType)))),
    st.just(ReviewRepeated(by="ann")),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_events, max_size=40), st.booleans())
@pytest.mark.seed("gate", "three-steps")
def test_no_sequence_of_events_commits_without_the_whole_evidence(events: list[TaskEvent], checkpoint: bool) -> None:
    now = record(checkpoint=checkpoint)
    for event in events:
        before = now
        try:
            now = apply_task_event(now, event)
        except GateError:
            assert now is before
            continue
        if now.commit is not None:
            assert before.evidence is not None and not checkpoint
            assert now.evidence is not None and find_unmet(now.evidence, now.verdicts) == ()
            assert isinstance(event, TaskCommitted) or before.commit is not None
            assert now.state is S.APPROVED and now.override is None
        if now.override is not None:
            assert now.commit is None


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_every_run_of_the_gate_by_itself_comes_to_an_end(data: st.DataObject) -> None:
    """Whatever executors, checks and architects answer: without a person it ends, after at most three attempts."""
    now = record()
    for _ in range(1000):
        match now.state:
            case S.PENDING:
                now = apply_task_event(now, AttemptStarted(attempt=now.attempt + 1, base_commit=BASE, tree=TREE))
            case S.EXECUTING | S.VERIFYING | S.REVIEWING:
                now = apply_task_event(now, data.draw(_answer(now)))
            case S.FAILED if can_retry(now):
                now = apply_task_event(now, TaskRetried(by=GATE_POLICY))
            case _:
                break
    else:
        pytest.fail("it did not end")
    assert now.attempt <= MAX_ATTEMPTS
    assert now.state in (S.APPROVED, S.FAILED, S.BLOCKED)


def _answer(now: TaskRecord) -> st.SearchStrategy[TaskEvent]:
    failed = st.builds(
        AttemptFailed,
        failure=st.builds(
            failure, st.sampled_from([kind for kind in FailureType if kind != "BLOCKED"]), st.just(now.attempt)
        ),
    )
    further: dict[TaskState, st.SearchStrategy[TaskEvent]] = {
        S.EXECUTING: st.sampled_from([AttemptExecuted(claim=SUCCESS, tree=TREE), TaskBlocked(error="x")]),
        S.VERIFYING: st.just(checked()),
        S.REVIEWING: st.just(AttemptApproved(verdicts=(RULES,))),
    }
    return st.one_of(failed, further[now.state])
