"""AC-15: every loop has a bound, and it is exactly that of the tables.

Whoever never does what is wanted of them is asked as often as the rules say, and not once more.
"""

from __future__ import annotations

from collections import Counter

import pytest

from proofstone.agents.models import Conversation, DispatchKey, Fault, FaultKind, Turn
from proofstone.agents.roles.models.gate import AttemptFailure, FailureType, TaskState
from proofstone.agents.roles.models.pipeline import KnowledgeOutput
from proofstone.agents.rules.budget import FAULT_POLICIES, can_repeat_dispatch
from proofstone.agents.rules.conversation import ConversationEnd as Conversed
from proofstone.agents.rules.conversation import RecordRepair, RequestTurn, WaitForRetry, run_conversation
from proofstone.gate.models import RunOutcome, TaskRecord
from proofstone.gate.rules.state_machine import MAX_ATTEMPTS, can_retry
from proofstone.pipeline.rules.effects import ApprovalDecision
from tests.acceptance.conftest import Ended
from tests.export import checks
from tests.export.reading import HOSTS, exported
from tests.pipeline.talk import (
    INTERACTIVE,
    OUT,
    Script,
    checked,
    concern,
    failed,
    plan,
    review,
    spec,
    talk,
    task,
    verified,
)

NO = review("needs_revision")
ANEW = plan(task("x", title="Ask the bank", description="Something quite new."))
LOST = plan(task(criteria=("AC-9",)))
ENDLESS: dict[str, tuple[Script, dict[str, int], RunOutcome]] = {
    "a design is revised once": (
        {"design 1 security": NO, "design 1 correctness": NO, "design 2 security": NO, "design 2 correctness": NO},
        {"design 1": 1, "design 2": 1, "design 3": 0, "design 2 security": 1, "design 3 security": 0},
        RunOutcome.PASSED,
    ),
    "code is reviewed twice": (
        {"code": NO},
        {"code 1 security": 1, "code 2 security": 1, "code 3 security": 0, "implement 2": 1, "implement 3": 0},
        RunOutcome.FAILED,
    ),
    "a plan against the rules comes back twice": (
        {"plan": LOST},
        {"plan 1.1": 1, "plan 1.2": 1, "plan 1.3": 1, "plan 1.4": 0, "implement 1": 0},
        RunOutcome.FAILED,
    ),
    "the plan gate sends a plan back once": (
        {"verify": verified("REVISE", "It races")},
        {"verify 1": 1, "verify 2": 1, "verify 3": 0, "implement 1": 0},
        RunOutcome.HALTED,
    ),
    "three iterations may fail": (
        {"implement": failed, "plan 3.1": ANEW},
        {"implement 1": 1, "implement 2": 1, "implement 3": 1, "implement 4": 0, "commit": 0},
        RunOutcome.FAILED,
    ),
    "three times the whole of it may": (
        {"check": checked(passed=False), "plan 3.1": ANEW},
        {"check 1": 1, "check 2": 1, "check 3": 1, "check 4": 0, "commit": 0},
        RunOutcome.FAILED,
    ),
    "a researcher who is silent is not waited for": (
        {"research": OUT},
        {"research 1 impact": 1, "research 2 impact": 0, "spec 1": 0},
        RunOutcome.FAILED,
    ),
    "a reviewer who is silent is asked once more": (
        {"code 1 security": OUT, "code 2 security": OUT},
        {"code 1 security": 1, "code 2 security": 1, "code 3 security": 0, "implement 2": 0, "commit": 0},
        RunOutcome.FAILED,
    ),
    "research is expanded once": (
        {"gate-post-research": ApprovalDecision("expand")},
        {"research 2 impact": 1, "gate-post-research-2": 1, "research 3 impact": 0, "spec 1": 1},
        RunOutcome.PASSED,
    ),
    "a request is modified once": (
        {"spec": spec(concern()), "gate-pushback": ApprovalDecision("modify")},
        {"spec 1": 1, "spec 2": 1, "gate-pushback-2": 1, "spec 3": 0, "design 1": 1},
        RunOutcome.PASSED,
    ),
    "a plan is revised once for the person": (
        {"gate-post-planning": ApprovalDecision("revise")},
        {"plan 1.1": 1, "plan 1.2": 1, "gate-post-planning-2": 1, "plan 1.3": 0, "implement 1": 1},
        RunOutcome.PASSED,
    ),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_ac_15_every_loop_of_the_pipeline_has_its_bound(case: str) -> None:
    """AC-15. Rules, section 1: research, approvals, review rounds, plan gate, replans."""
    script, times, outcome = ENDLESS[case]
    it = talk(INTERACTIVE, script)
    asked = Counter(it.asked)
    assert {name: asked[name] for name in times} == times
    assert it.end.outcome is outcome
    if outcome is not RunOutcome.PASSED:
        assert it.end.reason


# Within a dispatch, and from one to the next.


def conversed(*said: Turn | Fault) -> tuple[Conversed, Counter[str]]:
    """What becomes of an agent who says this, the last of it for ever, and what that took."""
    occasion = DispatchKey(run_id="r1", role="knowledge", step="knowledge")
    begun = Conversation(occasion=occasion, instructions="", tools=(), output_schema={}, entries=())
    loop, taken, says = run_conversation(begun, KnowledgeOutput, 5), Counter[str](), list(said)
    need = next(loop)
    while True:
        taken[type(need).__name__] += 1
        assert isinstance(need, RequestTurn | WaitForRetry | RecordRepair)
        try:
            need = loop.send((says.pop(0) if len(says) > 1 else says[0]) if isinstance(need, RequestTurn) else None)
        except StopIteration as stop:
            ended: Conversed = stop.value
            return ended, taken


@pytest.mark.seed("pipeline", "unparseable")
def test_ac_15_an_answer_that_is_none_is_repaired_twice() -> None:
    """AC-15. Rules, section 0: at most 2 repair turns, with the error shown."""
    ended, taken = conversed(Turn(text="no"))
    assert isinstance(ended.output, Fault)
    assert (ended.output.kind, taken) == (FaultKind.MALFORMED, {"RequestTurn": 3, "RecordRepair": 2})


def test_ac_15_a_provider_that_is_away_is_tried_twice_more() -> None:
    """AC-15. Rules, section 0: 2 retries with a pause inside the agent."""
    ended, taken = conversed(Fault(kind=FaultKind.UNAVAILABLE, why="away"))
    assert isinstance(ended.output, Fault)
    assert (ended.output.kind, taken) == (FaultKind.UNAVAILABLE, {"RequestTurn": 3, "WaitForRetry": 2})


@pytest.mark.parametrize("kind", FaultKind)
def test_ac_15_what_may_be_chance_is_dispatched_once_more_and_what_is_none_is_not(kind: FaultKind) -> None:
    """AC-15. Rules, section 0: transient errors, and answers that are none; nothing deterministic. Section 4: one that
    did not understand, or has drifted, is replaced."""
    again = {FaultKind.UNAVAILABLE, FaultKind.CRASHED, FaultKind.MALFORMED, FaultKind.DRIFTED}
    assert can_repeat_dispatch(Fault(kind=kind, why="so")) == (kind in again)
    assert FAULT_POLICIES[kind].retries == (2 if kind is FaultKind.UNAVAILABLE else 0)


@pytest.mark.parametrize("who", ["researcher/impact", "researcher/patterns", "knowledge/knowledge"])
def test_ac_15_an_agent_that_always_fails_is_asked_exactly_twice(red: Ended, who: str) -> None:
    """AC-15, the seed's own case, in a whole run: one retry, and the run goes on without it or ends."""
    assert [id.rpartition(who)[2] for id in red.asked(who)] == ["", "/d2"]


# Attempts at a task.

RETRIES = {
    FailureType.EXECUTION_FAILURE: 2,
    FailureType.VERIFY_FAILURE: 2,
    FailureType.ARCHITECT_REJECTION: 1,
    FailureType.TIMEOUT: 1,
    FailureType.MALFORMED: 2,
    FailureType.BLOCKED: 0,
}


@pytest.mark.parametrize("kind", FailureType)
def test_ac_15_a_task_is_tried_again_as_often_as_its_failure_allows(kind: FailureType) -> None:
    """AC-15. Rules, section 2: the table, and at most 3 attempts in all."""
    attempts = 1
    while can_retry(_failed(*[kind] * attempts)):
        attempts += 1
    assert attempts == 1 + RETRIES[kind]
    assert MAX_ATTEMPTS == 3


@pytest.mark.parametrize("first", FailureType)
@pytest.mark.parametrize("second", FailureType)
def test_ac_15_there_are_three_attempts_whatever_failed(first: FailureType, second: FailureType) -> None:
    """AC-15."""
    assert not any(can_retry(_failed(first, second, third)) for third in FailureType)


def _failed(*kinds: FailureType) -> TaskRecord:
    failures = tuple(AttemptFailure(attempt=at, type=kind, error="so") for at, kind in enumerate(kinds, start=1))
    return TaskRecord(id="task-01", state=TaskState.FAILED, attempt=len(kinds), failures=failures)


def test_ac_15_the_exported_definitions_have_the_same_bounds() -> None:
    """AC-15: 2 inside, 1 further dispatch, 3 iterations, 1 design revision, 2 review rounds."""
    assert [problem for kind, host in HOSTS.items() for problem in checks.bounded_retries(host, exported(kind))] == []
