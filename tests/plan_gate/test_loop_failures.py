"""Agents that give no answer, in each position, alone and in pairs."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.plan_gate_records import (
    ChallengeOrigin,
    ChallengeStatus,
    ConvergenceStatus,
    TeamMode,
    UnknownResolution,
)
from proofstone.plan_gate.models import PlanEventKind, PlanVerdict
from tests.plan_gate.talk import (
    BLOCKING,
    FAILS,
    GONE,
    HERE,
    MINOR,
    SIGNIFICANT,
    UNREADABLE,
    Script,
    Scripted,
    challenges,
    draft,
    entering,
    follow,
    resolved,
    ruling,
    subject,
    synthesis,
    unknown,
)
from tests.rows import each_row

OPEN, RESOLVED = ChallengeStatus.OPEN, ChallengeStatus.RESOLVED
CONVERGED = ConvergenceStatus.CONVERGED
FORCED = ConvergenceStatus.FORCED_EXIT
PROCEED, REVISE, RETHINK = PlanVerdict.PROCEED, PlanVerdict.REVISE, PlanVerdict.RETHINK
SCALED = TeamMode.SCALED


ALONE: list[tuple[str, TeamMode, str]] = [
    ("challenger 1", TeamMode.BASE, "challenger"),
    ("domain-expert 1", SCALED, "domain-expert"),
    ("devils-advocate 1", SCALED, "devils-advocate"),
    ("resolve 1", TeamMode.BASE, "researcher:resolve"),
    ("surface 1", TeamMode.BASE, "researcher:surface"),
    ("probe 1", TeamMode.BASE, "researcher:probe"),
]
RULE = entering(SIGNIFICANT, origin=ChallengeOrigin.RULES, line=3)


@each_row(("who", "team", "agent"), ALONE)
@each_row("failed", [FAILS, UNREADABLE])
def test_one_that_fails_is_done_without(who: str, team: TeamMode, agent: str, failed: Scripted) -> None:
    ids = ("U1", "U2")  # the first is given up on if what settles cannot be read
    script: Script = {
        who: failed,
        "resolve 2": resolved(unknown("C1", HERE)),
        "synthesis 2": synthesis(ruling("C1", RESOLVED, *ids)),
    }
    talk = follow(subject(RULE, team=team), script)
    assert len(talk.events(PlanEventKind.FAILURE)) == 1
    assert talk.events(PlanEventKind.FAILURE)[0].startswith(f"{agent}: ")
    assert talk.came == (CONVERGED, PROCEED), "what there was is carried forward, and settled"


@pytest.mark.parametrize(("failed", "given_up"), [(UNREADABLE, ["C1", "C3"]), (FAILS, [])])
def test_if_what_settles_cannot_be_read_its_unknowns_are_unresolvable(failed: Scripted, given_up: list[str]) -> None:
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT, draft(SIGNIFICANT, GONE), SIGNIFICANT),
        "resolve 1": failed,
    }
    unknowns = follow(subject(), script).end.progress.unknowns
    assert [one.affects_challenge for one in unknowns] == given_up
    assert all(one.resolution is UnknownResolution.UNRESOLVABLE for one in unknowns)
    assert all(one.finding.startswith("[UNVERIFIED: researcher:resolve | ") for one in unknowns)


@each_row(
    ("script", "verdict"),
    [
        ({}, REVISE),
        ({"challenger 1": challenges(MINOR)}, REVISE),
        ({"challenger 1": challenges(SIGNIFICANT)}, REVISE),
        ({"challenger 1": challenges(*[SIGNIFICANT] * 3)}, RETHINK),
        ({"challenger 1": challenges(BLOCKING)}, RETHINK),
    ],
)
def test_without_a_synthesizer_it_ends_by_the_table_and_not_better_than_revise(
    script: Script, verdict: PlanVerdict
) -> None:
    talk = follow(subject(), {**script, "synthesis 1": FAILS})
    assert talk.came == (FORCED, verdict)
    assert talk.end.decision.reason.startswith("the synthesizer gave no answer, so it ends here")
    assert talk.states[-1].convergence.status is FORCED
    assert [name for name in talk.asked if name.startswith(("audit", "person"))] == []
    assert OPEN not in {one.status for one in talk.challenges.values() if one.severity is MINOR}


@pytest.mark.parametrize(
    ("team", "who", "verdict"),
    [
        (TeamMode.BASE, "challenger 1", REVISE),
        (SCALED, "challenger 1", PROCEED),
        (SCALED, "domain-expert 1", PROCEED),
        (TeamMode.BASE, "surface 1", PROCEED),
    ],
)
def test_a_plan_that_nobody_has_challenged_does_not_proceed(team: TeamMode, who: str, verdict: PlanVerdict) -> None:
    talk = follow(subject(team=team), {who: FAILS})
    assert talk.came == (CONVERGED, verdict)
    assert ("nobody has challenged it" in talk.end.decision.reason) == (verdict is REVISE)


TWO: list[tuple[list[str], str]] = [
    (["challenger 1", "domain-expert 1"], "devils-advocate 1"),
    (["domain-expert 1", "devils-advocate 1"], "devils-advocate 1"),
    (["challenger 1", "surface 1"], "probe 1"),
    (["resolve 1", "probe 1"], "probe 1"),
    (["surface 1", "probe 1"], "probe 1"),
    (["challenger 1", "synthesis 1"], "synthesis 1"),
    (["surface 1", "challenger 2"], "challenger 2"),
    (["resolve 1", "resolve 2"], "resolve 2"),
    (["challenger 2", "challenger 3"], "challenger 3"),
]


@each_row(("who", "until"), TWO)
def test_any_two_that_fail_end_it_at_once(who: list[str], until: str) -> None:
    talk = follow(subject(RULE, team=SCALED), dict.fromkeys(who, FAILS))
    assert talk.asked[-1] == until
    assert talk.came == (FORCED, REVISE)
    assert talk.end.decision.reason.startswith("2 agents gave no answer, so it ends here")
    assert len(talk.events(PlanEventKind.FAILURE)) == 2


def test_of_two_that_fail_side_by_side_the_third_is_still_heard() -> None:
    script: Script = {"challenger 1": FAILS, "domain-expert 1": FAILS, "devils-advocate 1": challenges(BLOCKING)}
    talk = follow(subject(team=SCALED), script)
    assert talk.came == (FORCED, RETHINK)


def test_a_closing_audit_that_fails_changes_nothing() -> None:
    talk = follow(subject(), {"audit 1": FAILS})
    assert talk.came == (CONVERGED, PROCEED)
    assert talk.events(PlanEventKind.FAILURE) == ["challenger:audit: no answer within 60 seconds"]
    assert talk.end.progress.audit == ""
