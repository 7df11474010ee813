"""How sure a run of the gate is: every row of the table, with the reason and what would raise it."""

from __future__ import annotations

from proofstone.agents.roles.models.gate import ArchitectVerdict, TaskState
from proofstone.common.models import Confidence, ConfidenceReason, Verdict
from proofstone.gate.models import (
    CriterionLink,
    MustHaveResult,
    Override,
    OverrideAction,
    RunOutcome,
    TaskRecord,
    VerifyRun,
)
from proofstone.gate.rules.direction import rate_run
from tests.gate.records import RULES, evidence, failure, record
from tests.rows import each_row


def approved(*verdicts: ArchitectVerdict, **seen: object) -> TaskRecord:
    return record(state=TaskState.APPROVED, commit="c" * 40, evidence=evidence(**seen), verdicts=verdicts or (RULES,))


SKIPPED = record(
    state=TaskState.SKIPPED, override=Override(action=OverrideAction.SKIP, reason="no network", by="ada", at="now")
)
FAILED = record(state=TaskState.FAILED, attempt=1, failures=(failure("VERIFY_FAILURE"),))  # type: ignore[arg-type]
BLOCKED = record(state=TaskState.BLOCKED, blocked_by="no key")
UNJUDGED = MustHaveResult(what="truth: it is fast", holds=None)
UNSURE = RULES.model_copy(update={"confidence": Confidence.MEDIUM, "concerns": ("is it fast?",)})
PROSE = (CriterionLink(criterion="reads well"),)
FLAKY = (VerifyRun(command="pytest -q", exit_code=0, verdict=Verdict.PASS, flaky=True),)

UNTESTED = ConfidenceReason(reason="no test fails", remedy="add one")

HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW


@each_row(
    ("outcome", "task", "confidence", "why", "raised_by"),
    [
        (None, approved(), None, "", ""),
        (RunOutcome.PASSED, approved(), HIGH, "", ""),
        (RunOutcome.PASSED, approved(confidence=MEDIUM, reasons=(UNTESTED,)), MEDIUM, "no test fails", "add one"),
        (RunOutcome.PASSED, approved(criteria=PROSE), MEDIUM, "no check shows this: reads well", "<verify>"),
        (RunOutcome.PASSED, approved(verify=FLAKY, flaky_allowed=True), MEDIUM, "is flaky", "pass every time"),
        (RunOutcome.PASSED, approved(UNSURE), MEDIUM, "rules: is it fast?", "settle"),
        (RunOutcome.PASSED, SKIPPED, MEDIUM, "bypassed the gate (skip)", "run task-01 through the gate"),
        (RunOutcome.FAILED, FAILED, LOW, "failed: task-01", "it did not for this reason: it did not work"),
        (RunOutcome.NEEDS_HUMAN, BLOCKED, LOW, "failed: task-01", "unblock task-01: no key"),
        (RunOutcome.HALTED, record(), LOW, "failed: task-01", "finish task-01"),
        (RunOutcome.BUDGET_EXHAUSTED, approved(), LOW, "failed: task-01", "fix the reason"),
    ],
)
def test_each_row_of_the_table(
    outcome: RunOutcome | None, task: TaskRecord, confidence: Confidence | None, why: str, raised_by: str
) -> None:
    found = rate_run(outcome, "failed: task-01", [task], [])
    assert found.confidence is confidence
    assert len(found.reasons) == (1 if why else 0)
    assert why in "".join(reason.reason for reason in found.reasons)
    assert raised_by in "".join(reason.remedy for reason in found.reasons)


def test_a_must_have_that_nobody_judged_leaves_something_unproven() -> None:
    found = rate_run(RunOutcome.PASSED, "", [approved()], [UNJUDGED])
    assert found.confidence is MEDIUM
    assert [reason.reason for reason in found.reasons] == ["not judged: truth: it is fast"]


def test_the_weakest_task_decides() -> None:
    assert rate_run(RunOutcome.PASSED, "", [approved(), approved(confidence=LOW)], []).confidence is LOW
