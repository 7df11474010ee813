"""Findings that a person accepts and disputes that a person decides, by the rules of the gate."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.gate import AttemptFailure, FailureReason, FailureType, TaskState
from proofstone.common.models import Acceptance, AcceptanceMethod, VerdictDispute
from proofstone.gate.models import (
    AttemptStarted,
    RunOutcome,
    TaskAccepted,
    TaskBlocked,
    TaskRecord,
    TaskRetried,
    TaskView,
)
from proofstone.gate.rules.questions import QuestionKind, build_task_message, find_question_kind, list_answers
from proofstone.gate.rules.state_machine import (
    GateError,
    apply_task_event,
    can_accept_findings,
    decide_run_outcome,
    explain_escalation,
    list_acceptable_rules,
)
from tests.gate.records import BASE, SUCCESS, TREE, plan, record, task
from tests.rows import each_row

EDITED = FailureReason(check="edited-expectation", layer="L2", detail="a test was edited")
FOLLOWS = (
    FailureReason(check="tests:pytest", layer="cascade", detail="1 test passes only because it was edited"),
    FailureReason(check="verify", layer="gate", detail="not trusted"),
)
GIVEN = Acceptance(
    rule="edited-expectation", reason="the rule changed", accepted_by="ada", method=AcceptanceMethod.INTERACTIVE
)
SCOPED = GIVEN.model_copy(update={"subject": "tests/test_a.py::test_a"})
DISPUTE = VerdictDispute(subject="tests/test_a.py::test_a", claim="it contradicts the README", raised_by="cmd:agent")


def failed(*reasons: FailureReason) -> TaskRecord:
    failures = tuple(
        AttemptFailure(attempt=number, type=FailureType.VERIFY_FAILURE, error="no", reasons=reasons)
        for number in (1, 2, 3)
    )
    return record(state=TaskState.FAILED, attempt=3, failures=failures, claim=SUCCESS, tree=TREE, base_commit=BASE)


@each_row(
    ("reasons", "rules", "is_acceptable"),
    [
        ((EDITED, *FOLLOWS), ("edited-expectation",), True),
        ((EDITED, EDITED), ("edited-expectation",), True),
        ((*FOLLOWS,), (), False),
        ((EDITED, FailureReason(check="regression", layer="L3", detail="d")), ("edited-expectation",), False),
        ((EDITED, FailureReason(check="scope", layer="gate", detail="d")), ("edited-expectation",), False),
        ((FailureReason(check="canary-passed", layer="L4", detail="d"),), (), False),
    ],
)
def test_a_task_can_be_accepted_if_nothing_but_acceptable_findings_failed_it(
    reasons: tuple[FailureReason, ...], rules: tuple[str, ...], is_acceptable: bool
) -> None:
    now = failed(*reasons)
    assert (list_acceptable_rules(now), can_accept_findings(now)) == (rules, is_acceptable)
    asked = TaskView(record=now, asks=explain_escalation(now))
    assert find_question_kind(asked) is (QuestionKind.ACCEPTANCE if is_acceptable else QuestionKind.FAILURE)
    offered = [answer.command for answer in list_answers("r", asked)]
    assert ('proofstone answer r task-01=accept --note "…"' in offered) is is_acceptable
    outcome, _ = decide_run_outcome(plan(task(1)), {"task-01": now}, (), recent=())
    assert outcome is (RunOutcome.NEEDS_HUMAN if is_acceptable else RunOutcome.FAILED)
    if is_acceptable:
        after = apply_task_event(now, TaskAccepted(accepted=(GIVEN,)))
        assert (after.state, after.accepted) == (TaskState.VERIFYING, (GIVEN,))
    else:
        with pytest.raises(GateError, match="no finding about it can be accepted"):
            apply_task_event(now, TaskAccepted(accepted=(GIVEN,)))


def test_an_acceptance_holds_for_its_attempt_and_a_decided_subject_for_the_task() -> None:
    again = record(state=TaskState.PENDING, attempt=1, accepted=(GIVEN, SCOPED))
    after = apply_task_event(again, AttemptStarted(attempt=2, base_commit=BASE, tree=TREE))
    assert after.accepted == (SCOPED,)


def test_a_dispute_blocks_the_task_and_asks_for_a_decision() -> None:
    at_work = record(state=TaskState.EXECUTING, attempt=1)
    blocked = apply_task_event(at_work, TaskBlocked(error="it is disputed", tree=TREE, disputes=(DISPUTE,)))
    assert (blocked.state, blocked.disputes) == (TaskState.BLOCKED, (DISPUTE,))
    asked = TaskView(record=blocked, asks=explain_escalation(blocked))
    assert find_question_kind(asked) is QuestionKind.DISPUTE
    assert [answer.command.split("=")[1].split()[0] for answer in list_answers("r", asked)] == [
        "accept",
        "reject",
        "amend",
    ]
    outcome, why = decide_run_outcome(plan(task(1)), {"task-01": blocked}, (), recent=())
    assert outcome is RunOutcome.NEEDS_HUMAN
    assert "tests/test_a.py::test_a is disputed by cmd:agent: it contradicts the README" in why
    decided = apply_task_event(blocked, TaskRetried(by="ada", note="it is right", accepted=(SCOPED,)))
    assert (decided.state, decided.disputes, decided.accepted, decided.note) == (
        TaskState.PENDING,
        (),
        (SCOPED,),
        "it is right",
    )


def test_the_commit_names_who_accepted_how_and_why() -> None:
    message = build_task_message(plan(task(1)), task(1), ["a.py"], run_id="r", accepted=(GIVEN,))
    assert message.endswith(
        "Proofstone-Run: r\nProofstone-Task: task-01\n"
        "Proofstone-Accepted: edited-expectation: accepted by ada at a terminal: the rule changed\n"
    )
    assert "Accepted" not in build_task_message(plan(task(1)), task(1), ["a.py"], run_id="r")
