"""From what was seen and judged to an outcome."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.solve_messages import (
    Criterion,
    CriterionVerdict,
    ExecutionResult,
    ExecutionStatus,
    FailureClass,
    OutcomeStatus,
)
from proofstone.solve.rules.subtask import (
    build_gap,
    build_outcome,
    crash_verdicts,
    failed_verdict,
    passed_verdict,
    unjudged_verdicts,
    verdicts_from_model,
)
from tests.rows import each_row
from tests.solve.talk import ENVIRONMENTAL, LOGICAL, VERIFIABLE, done, plausible, subtask, verifiable, word

A, B = plausible("a is so"), plausible("b is so")


IN_THE_WAY = [
    "curl: (7) Failed to connect to 127.0.0.1 port 9: Connection refused",
    "unexpected EOF: read: connection reset by peer",
    "Could not resolve host: example.invalid",
    "connect ETIMEDOUT 192.0.2.1:443",
    "the command timed out after 60 s",
    "it timed out",
    "HTTP 429",
    "429 Too Many Requests",
    "HTTP/1.1 503 Service Unavailable",
    "urllib.error.HTTPError: HTTP Error 403: Forbidden",
    "API rate limit exceeded for this address",
    "x509: certificate has expired or is not yet valid",
    "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]",
    "open /etc/shadow: Permission denied",
    "write: No space left on device",
    "mkdir: Read-only file system",
    "OSError: [Errno 98] Address already in use",
    "make: *** [all] Error 137\nKilled\n",
    "the process was killed",
    "bash: jq: command not found",
    "sh: 1: jq: not found",
    "ModuleNotFoundError: No module named 'yaml'",
    "3 passed\nassert 1 == 2\nconnection refused",
]
OF_THE_APPROACH = [
    "expected 4, got 5",
    "row 4290 is missing",
    "unskilled labour is counted twice",
    "AssertionError: sum is off",
    "tests/test_net.py::test_timeout FAILED",
    "the timeout is read from the wrong setting",
    "E   assert 'forbidden' in '200 OK'",
    "the page says forbidden to the owner too",
    "AssertionError: expected 'connection refused', got ''",
    "Expected status 503, got 200",
    "Error: expect(received).toThrow('permission denied')",
    "DID NOT RAISE <class 'PermissionError'>: permission denied",
    "status == 'timed out after 5 s' != 'done'",
    "2 of 7 mutants killed",
    "the certificate is printed without the name",
    "the rate limiter lets 11 of 10 through",
    "503 rows instead of 504",
    "test_unauthorized FAILED",
    "",
]


@each_row("evidence", IN_THE_WAY)
@each_row("said", [LOGICAL, ENVIRONMENTAL])
@pytest.mark.seed("control-loop", "failure-class")
def test_an_error_pattern_makes_a_failure_environmental_whatever_was_said(evidence: str, said: FailureClass) -> None:
    assert failed_verdict(A, evidence, said).failure_class is ENVIRONMENTAL


@each_row("evidence", OF_THE_APPROACH)
@each_row("said", [LOGICAL, ENVIRONMENTAL])
def test_else_a_failure_is_of_the_class_that_was_said(evidence: str, said: FailureClass) -> None:
    assert failed_verdict(A, evidence, said).failure_class is said


def test_evidence_of_any_length_is_read_at_once() -> None:
    assert failed_verdict(A, "killed " * 100_000, LOGICAL).failure_class is LOGICAL


def test_no_pattern_makes_a_failure_of_what_passed() -> None:
    assert not passed_verdict(A, "it says: connection refused").is_failed


@each_row(
    ("words", "classes"),
    [
        ((word(1), word(2)), (None, None)),
        ((word(2), word(1)), (None, None)),
        ((word(1), word(2, LOGICAL)), (None, LOGICAL)),
        ((word(1), word(2, ENVIRONMENTAL)), (None, ENVIRONMENTAL)),
        ((word(1, LOGICAL, "it timed out"), word(2)), (ENVIRONMENTAL, None)),
        ((word(2),), (ENVIRONMENTAL, None)),
        ((), (ENVIRONMENTAL, ENVIRONMENTAL)),
        ((word(3), word(4)), (ENVIRONMENTAL, ENVIRONMENTAL)),
        ((word(1, LOGICAL), word(1), word(2)), (LOGICAL, None)),
        ((word(1), word(1, LOGICAL), word(2)), (LOGICAL, None)),
        ((word(1, ENVIRONMENTAL), word(1, LOGICAL), word(2)), (ENVIRONMENTAL, None)),
        ((word(1, evidence="  "), word(2)), (ENVIRONMENTAL, None)),
    ],
)
def test_what_was_judged(words: tuple[object, ...], classes: tuple[FailureClass | None, ...]) -> None:
    found = verdicts_from_model((A, B), words)  # type: ignore[arg-type]
    assert [one.criterion for one in found] == ["a is so", "b is so"]
    assert tuple(one.failure_class for one in found) == classes


def test_a_failure_of_no_class_is_logical() -> None:
    unclassed = word(1, LOGICAL).model_copy(update={"failure_class": None})
    assert verdicts_from_model((A,), (unclassed,))[0].failure_class is LOGICAL


def test_the_evidence_is_kept() -> None:
    found = verdicts_from_model((A, B), (word(1, evidence="line 3"), word(2, LOGICAL, "line 4")))
    assert [one.evidence for one in found] == ["line 3", "line 4"]


def test_what_nobody_could_judge_is_a_failure_of_the_environment() -> None:
    found = unjudged_verdicts((A, verifiable()), "no object in it")
    assert [(one.verdict, one.failure_class, one.evidence) for one in found] == [
        ("fail", ENVIRONMENTAL, "no object in it")
    ] * 2


def test_a_crash_fails_every_criterion_as_verifiable_and_environmental() -> None:
    found = crash_verdicts((A, verifiable()), "it died")
    assert [(one.mode, one.verdict, one.failure_class) for one in found] == [(VERIFIABLE, "fail", ENVIRONMENTAL)] * 2


SO, NOT_SO = passed_verdict(A, "seen"), failed_verdict(B, "not seen", LOGICAL)


@each_row(
    ("verdicts", "status", "reason"),
    [
        ((SO,), OutcomeStatus.MATCHED, None),
        ((SO, SO), OutcomeStatus.MATCHED, None),
        ((SO, NOT_SO), OutcomeStatus.FAILED, "b is so: not seen"),
        ((NOT_SO, SO), OutcomeStatus.FAILED, "b is so: not seen"),
        ((NOT_SO, NOT_SO), OutcomeStatus.FAILED, "b is so: not seen; b is so: not seen"),
        ((), OutcomeStatus.FAILED, None),
    ],
)
@pytest.mark.seed("control-loop", "verdict-and")
def test_the_outcome_is_the_and_of_its_verdicts(
    verdicts: tuple[CriterionVerdict, ...], status: OutcomeStatus, reason: str | None
) -> None:
    made = build_outcome(subtask(A, B), done().result, verdicts, ())
    assert (made.status, made.failure_reason) == (status, reason)


@pytest.mark.seed("control-loop", "verdict-and")
def test_the_executors_own_claim_decides_nothing() -> None:
    claimed = ExecutionResult(subtask_id="s", status=ExecutionStatus.FAILED, output="I could not")
    assert build_outcome(subtask(A), claimed, (SO,), ()).is_matched
    assert not build_outcome(subtask(A), done().result, (NOT_SO,), ()).is_matched


def test_an_outcome_is_its_subtasks_and_says_each_tool_once() -> None:
    foreign = ExecutionResult(subtask_id="another", status=ExecutionStatus.COMPLETED, output="x", crashed="it died")
    used = {"tools": ("b", "a", "b"), "targets": ("y", "x", "y"), "obstacles": ("x", "x")}
    made = build_outcome(subtask(A), foreign, (NOT_SO,), (), **used)
    assert (made.subtask_id, made.parent_task_id, made.output) == ("t1-r1-s1", "t1", "x")
    assert (made.tools, made.targets, made.obstacles) == (("b", "a"), ("y", "x"), ("x",))
    assert made.failure_reason == "it died"


def test_a_gap_holds_what_failed() -> None:
    found = build_gap(2, (SO, NOT_SO))
    assert (found.attempt, [(one.criterion, one.failure_class) for one in found.failed_criteria]) == (
        2,
        [("b is so", LOGICAL)],
    )


def test_a_verdict_keeps_the_mode_of_its_criterion() -> None:
    both: tuple[Criterion, ...] = (A, verifiable())
    assert [passed_verdict(one, "").mode for one in both] == [failed_verdict(one, "", LOGICAL).mode for one in both]
    assert [passed_verdict(one, "").mode for one in both] == [one.mode for one in both]
