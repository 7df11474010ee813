"""The table of the plan gate, row by row, and what caps a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.roles.models.plan_gate_records import ChallengeStatus, ConvergenceStatus, PlanSeverity
from proofstone.plan_gate.models import PlanVerdict
from proofstone.plan_gate.rules.decision import DECISION_TABLE, OpenChallengeCounts, count_open_challenges, decide_plan
from tests.plan_gate.reports import challenge
from tests.rows import each_row

CONTINUE, CONVERGED = ConvergenceStatus.CONTINUE, ConvergenceStatus.CONVERGED
BLOCKED, FORCED = ConvergenceStatus.BLOCKED, ConvergenceStatus.FORCED_EXIT
PROCEED, REVISE, RETHINK = PlanVerdict.PROCEED, PlanVerdict.REVISE, PlanVerdict.RETHINK


@each_row(
    ("standing", "row", "status", "verdict"),
    [
        (OpenChallengeCounts(blocking_open=1, is_last=True), 0, FORCED, RETHINK),
        (OpenChallengeCounts(blocking_unresolved=1, is_last=True), 0, FORCED, RETHINK),
        (OpenChallengeCounts(blocking_unresolved=1), 1, BLOCKED, None),
        (OpenChallengeCounts(blocking_unresolved=1, blocking_open=1, significant_open=1), 1, BLOCKED, None),
        (OpenChallengeCounts(blocking_open=1), 2, CONTINUE, None),
        (OpenChallengeCounts(significant_open=1), 2, CONTINUE, None),
        (OpenChallengeCounts(significant_unresolved=1, is_sweep_due=True), 3, CONTINUE, None),
        (OpenChallengeCounts(), 4, CONVERGED, PROCEED),
        (OpenChallengeCounts(is_last=True), 4, CONVERGED, PROCEED),
        (OpenChallengeCounts(significant_unresolved=1), 5, CONVERGED, REVISE),
        (OpenChallengeCounts(significant_unresolved=2), 5, CONVERGED, REVISE),
        (OpenChallengeCounts(significant_unresolved=1, unmitigated=1), 5, CONVERGED, REVISE),
        (OpenChallengeCounts(significant_open=2, is_last=True), 5, CONVERGED, REVISE),
        (OpenChallengeCounts(significant_unresolved=3), 6, CONVERGED, REVISE),
        (OpenChallengeCounts(significant_unresolved=3, unmitigated=1), 7, CONTINUE, None),
        (OpenChallengeCounts(significant_unresolved=3, unmitigated=1, is_last=True), 8, FORCED, RETHINK),
        (
            OpenChallengeCounts(significant_open=2, significant_unresolved=1, unmitigated=3, is_last=True),
            8,
            FORCED,
            RETHINK,
        ),
    ],
)
@pytest.mark.seed("plan-gate", "convergence-table")
def test_the_first_row_that_holds_decides(
    standing: OpenChallengeCounts, row: int, status: ConvergenceStatus, verdict: PlanVerdict | None
) -> None:
    decision = decide_plan(standing)
    assert decision.reason == DECISION_TABLE[row].when
    assert (decision.status, decision.verdict) == (status, verdict)
    assert decision.is_strong == (row == 6)


def test_every_row_of_the_table_can_be_reached() -> None:
    reached = {
        decide_plan(replace(standing, is_last=last)).reason
        for standing in (
            OpenChallengeCounts(is_sweep_due=True),
            OpenChallengeCounts(blocking_open=1),
            OpenChallengeCounts(blocking_unresolved=1),
            OpenChallengeCounts(),
            OpenChallengeCounts(significant_unresolved=1),
            OpenChallengeCounts(significant_unresolved=3),
            OpenChallengeCounts(significant_unresolved=3, unmitigated=2),
        )
        for last in (False, True)
    }
    assert reached == {row.when for row in DECISION_TABLE}


@pytest.mark.parametrize("forced", ["", "the synthesizer gave no answer"])
def test_what_was_put_off_for_want_of_room_keeps_a_plan_from_proceeding(forced: str) -> None:
    decision = decide_plan(OpenChallengeCounts(undiscussed=1), forced=forced)
    assert decision.verdict is REVISE
    assert "put off" in decision.reason


@each_row(
    ("standing", "verdict"),
    [
        (OpenChallengeCounts(), REVISE),
        (OpenChallengeCounts(significant_open=1), REVISE),
        (OpenChallengeCounts(significant_open=3), REVISE),
        (OpenChallengeCounts(significant_open=3, unmitigated=1), RETHINK),
        (OpenChallengeCounts(blocking_open=1), RETHINK),
        (OpenChallengeCounts(blocking_unresolved=1), RETHINK),
    ],
)
def test_a_forced_exit_is_never_better_than_revise(standing: OpenChallengeCounts, verdict: PlanVerdict) -> None:
    decision = decide_plan(standing, forced="2 agents gave no answer")
    assert (decision.status, decision.verdict) == (FORCED, verdict)
    assert decision.reason.startswith("2 agents gave no answer")


@each_row("status", ChallengeStatus)
@each_row("severity", PlanSeverity)
def test_what_counts(status: ChallengeStatus, severity: PlanSeverity) -> None:
    standing = count_open_challenges([challenge("C1", severity=severity, status=status, mitigation="")], last=False)
    open_or_put_off = (ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED, ChallengeStatus.DEFERRED_SURFACED)
    assert standing.blocking == (severity is PlanSeverity.BLOCKING and status in open_or_put_off)
    stands = severity is PlanSeverity.SIGNIFICANT and status.is_open
    assert (standing.significant, standing.unmitigated) == (stands, stands)
    put_off = severity is PlanSeverity.SIGNIFICANT and status is ChallengeStatus.DEFERRED_SURFACED
    assert standing.undiscussed == put_off
