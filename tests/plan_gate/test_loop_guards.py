"""The guards of the convergence loop: who is let in, what settles what, and what an iteration that grows costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from proofstone.agents.roles.models.plan_gate import DirectiveKind, DirectiveReason
from proofstone.agents.roles.models.plan_gate_records import (
    ChallengeOrigin,
    ChallengeStatus,
    ConvergenceStatus,
    PlanSeverity,
    RepositoryClaim,
    SurfacedImpact,
    TeamMode,
    UnknownResolution,
)
from proofstone.common.models import FrozenModel
from proofstone.plan_gate.models import PlanEventKind, PlanVerdict
from tests.plan_gate.talk import (
    BEYOND,
    BLOCKING,
    GONE,
    HERE,
    LOW,
    MINOR,
    SIGNIFICANT,
    Script,
    challenges,
    context,
    directive,
    draft,
    follow,
    probed,
    resolved,
    resolving,
    risk,
    ruling,
    subject,
    surfaced,
    synthesis,
    unknown,
)
from tests.rows import each_row

OPEN, RESOLVED, UNRESOLVED = ChallengeStatus.OPEN, ChallengeStatus.RESOLVED, ChallengeStatus.UNRESOLVED
DEFERRED, WITHDRAWN = ChallengeStatus.DEFERRED, ChallengeStatus.WITHDRAWN
CONVERGED = ConvergenceStatus.CONVERGED
FORCED = ConvergenceStatus.FORCED_EXIT
PROCEED, REVISE, RETHINK = PlanVerdict.PROCEED, PlanVerdict.REVISE, PlanVerdict.RETHINK
CONTRADICTS = SurfacedImpact.CONTRADICTS_PLAN
SCALED = TeamMode.SCALED


# Caps.

CAPS: list[tuple[TeamMode, str, int]] = [
    (TeamMode.BASE, "challenger 1", 5),
    (SCALED, "challenger 1", 5),
    (SCALED, "domain-expert 1", 3),
    (SCALED, "devils-advocate 1", 2),
]


@pytest.mark.parametrize(("team", "who", "most"), CAPS)
def test_of_what_one_source_brings_at_first_the_gravest_are_taken(team: TeamMode, who: str, most: int) -> None:
    brought = challenges(*[SIGNIFICANT] * 7, draft(BLOCKING, confidence=LOW) if most != 2 else BLOCKING)
    talk = follow(subject(team=team), {who: brought})
    taken = [id for id, one in talk.seen("resolve 1").items() if one.status is OPEN]
    assert taken == [*(f"C{number}" for number in range(1, most)), "C8"]
    assert len(talk.events(PlanEventKind.OVERFLOW)) == 8 - most


def test_later_a_challenger_adds_at_most_three() -> None:
    script: Script = {"challenger 1": challenges(SIGNIFICANT), "challenger 2": challenges(*[SIGNIFICANT] * 5)}
    talk = follow(subject(), script)
    assert [id for id, one in talk.seen("resolve 2").items() if one.status is OPEN] == ["C1", "C2", "C3", "C4"]
    assert talk.challenges["C2"].iteration_introduced == 2


@pytest.mark.seed("plan-gate", "cap-two")
def test_what_is_surfaced_and_probed_adds_two_together_ranked_by_severity() -> None:
    script: Script = {
        "surface 1": surfaced(*(context(challenge=draft(one)) for one in (MINOR, SIGNIFICANT, SIGNIFICANT))),
        "probe 1": probed(risk(BLOCKING, challenge=draft(BLOCKING)), risk(challenge=draft(MINOR))),
    }
    talk = follow(subject(), script)
    assert [(id, one.origin) for id, one in talk.seen("synthesis 1").items() if one.status is OPEN] == [
        ("C2", ChallengeOrigin.SURFACED),
        ("C4", ChallengeOrigin.PROBED),
    ]
    progress = talk.end.progress
    assert [one.generates_challenge for one in progress.surfaced] == ["C1", "C2", "C3"]
    assert [one.generates_challenge for one in progress.risks] == ["C4", "C5"]


@pytest.mark.seed("plan-gate", "cap-eight")
def test_at_most_eight_are_active_and_one_that_blocks_takes_the_place_of_the_weakest() -> None:
    script: Script = {
        "challenger 1": challenges(*[SIGNIFICANT] * 4, MINOR),
        "domain-expert 1": challenges(*[SIGNIFICANT] * 3),
        "devils-advocate 1": challenges(SIGNIFICANT, BLOCKING),
    }
    talk = follow(subject(team=SCALED), script)
    active = [id for id, one in talk.seen("resolve 1").items() if one.status is OPEN]
    assert active == ["C1", "C2", "C3", "C4", "C6", "C7", "C8", "C10"]
    assert [text.split()[0] for text in talk.events(PlanEventKind.DISPLACED)] == ["C5"]
    assert [text.split()[0] for text in talk.events(PlanEventKind.OVERFLOW)] == ["C9"]


def test_a_blocking_one_that_was_put_off_comes_in_with_the_next_iteration() -> None:
    script: Script = {"surface 1": surfaced(*(context(challenge=draft(BLOCKING)) for _ in range(3)))}
    talk = follow(subject(), script)
    assert talk.seen("synthesis 1")["C3"].status is ChallengeStatus.DEFERRED_SURFACED
    assert talk.seen("challenger 2")["C3"].status is OPEN


def test_a_blocking_one_that_stays_put_off_keeps_the_plan_from_proceeding() -> None:
    """Three that block come in at the last moment, one too many, and the others are settled."""
    contradiction = directive(DirectiveKind.RE_SWEEP, DirectiveReason.NEW_BLOCKING_CONTRADICTS_CONTEXT)
    sweep = (contradiction.model_copy(update={"challenge": "C2"}),)
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT),
        "surface 1": surfaced(context()),
        "challenger 2": challenges(BLOCKING),
        "synthesis 2": synthesis(*resolving("C1"), directives=sweep),
        "surface 3": surfaced(*(context(challenge=draft(BLOCKING)) for _ in range(3))),
        "synthesis 3": synthesis(*resolving("C2", "C3", "C4")),
    }
    talk = follow(subject(), script)
    assert talk.came == (FORCED, RETHINK)
    assert talk.statuses["C5"] == "DEFERRED_SURFACED"


@pytest.mark.parametrize(("severity", "verdict"), [(SIGNIFICANT, REVISE), (MINOR, PROCEED)])
def test_a_significant_one_that_was_put_off_caps_the_verdict(severity: PlanSeverity, verdict: PlanVerdict) -> None:
    script: Script = {
        "surface 1": surfaced(*(context(challenge=draft(severity)) for _ in range(3))),
        "synthesis 1": synthesis(*resolving("C1", "C2")),
    }
    assert follow(subject(), script).came == (CONVERGED, verdict)


def test_a_devils_advocate_is_not_heard_with_what_is_minor_or_unsure() -> None:
    brought = challenges(MINOR, draft(BLOCKING, confidence=LOW), SIGNIFICANT)
    talk = follow(subject(team=SCALED), {"devils-advocate 1": brought})
    assert [(one.id, one.severity) for one in talk.challenges.values()] == [("C1", SIGNIFICANT)]
    assert len(talk.events(PlanEventKind.REFUSED)) == 2
    others = follow(subject(team=SCALED), {"domain-expert 1": challenges(draft(MINOR, confidence=LOW))})
    assert list(others.challenges) == ["C1"], "the others may bring it"


# What follows from a finding.

FROM_FINDINGS = [
    ("surface 1", surfaced(context(impact=CONTRADICTS)), [(ChallengeOrigin.SURFACED, SIGNIFICANT)]),
    ("surface 1", surfaced(context(impact=SurfacedImpact.CHANGES_NEEDED)), []),
    ("surface 1", surfaced(context(impact=SurfacedImpact.CONFIRMS_APPROACH)), []),
    ("surface 1", surfaced(context(challenge=draft(MINOR))), [(ChallengeOrigin.SURFACED, MINOR)]),
    (
        "surface 1",
        surfaced(context(impact=CONTRADICTS, challenge=draft(BLOCKING))),
        [(ChallengeOrigin.SURFACED, BLOCKING)],
    ),
    ("probe 1", probed(risk(MINOR)), []),
    ("probe 1", probed(risk(SIGNIFICANT)), [(ChallengeOrigin.PROBED, SIGNIFICANT)]),
    ("probe 1", probed(risk(BLOCKING)), [(ChallengeOrigin.PROBED, BLOCKING)]),
    ("probe 1", probed(risk(MINOR, challenge=draft(SIGNIFICANT))), [(ChallengeOrigin.PROBED, SIGNIFICANT)]),
    (
        "surface 1",
        surfaced(context(impact=CONTRADICTS, challenge=draft(MINOR))),
        [(ChallengeOrigin.SURFACED, SIGNIFICANT)],
    ),
    ("probe 1", probed(risk(BLOCKING, challenge=draft(MINOR))), [(ChallengeOrigin.PROBED, BLOCKING)]),
    ("probe 1", probed(risk(SIGNIFICANT, challenge=draft(BLOCKING))), [(ChallengeOrigin.PROBED, BLOCKING)]),
]


@each_row(("who", "found", "expected"), FROM_FINDINGS)
@pytest.mark.seed("plan-gate", "surfaced-probed")
def test_what_contradicts_the_plan_and_a_grave_risk_are_challenges_by_themselves(
    who: str, found: FrozenModel, expected: list[tuple[ChallengeOrigin, PlanSeverity]]
) -> None:
    talk = follow(subject(), {who: found})
    assert [(one.origin, one.severity) for one in talk.challenges.values()] == expected
    progress = talk.end.progress
    made = [one.generates_challenge for one in progress.surfaced] + [one.generates_challenge for one in progress.risks]
    assert made == (["C1"] if expected else [None])


FALSE_CLAIMS = [
    ("challenger 1", challenges(draft(SIGNIFICANT, GONE)), "challenger", "C1"),
    ("surface 1", surfaced(context(GONE, impact=CONTRADICTS)), "researcher:surface", "S1"),
    ("surface 1", surfaced(context(challenge=draft(SIGNIFICANT, GONE))), "researcher:surface", "S1"),
    ("probe 1", probed(risk(SIGNIFICANT, GONE)), "researcher:probe", "P1"),
    ("probe 1", probed(risk(MINOR, challenge=draft(SIGNIFICANT, GONE))), "researcher:probe", "P1"),
]


@each_row(("who", "said", "agent", "about"), FALSE_CLAIMS)
def test_a_false_claim_withdraws_the_challenge_and_is_held_against_its_author(
    who: str, said: FrozenModel, agent: str, about: str
) -> None:
    talk = follow(subject(), {who: said})
    assert talk.statuses == {"C1": "WITHDRAWN"}
    assert [(one.agent, one.iteration, one.about, one.looked.holds) for one in talk.end.progress.against] == [
        (agent, 1, about, False)
    ]
    assert talk.came == (CONVERGED, PROCEED)


def test_a_false_claim_is_held_against_its_author_with_the_iteration_in_which_it_was_made() -> None:
    script: Script = {"challenger 1": challenges(SIGNIFICANT), "challenger 2": challenges(draft(MINOR, GONE))}
    assert [(one.about, one.iteration) for one in follow(subject(), script).end.progress.against] == [("C2", 2)]


PARTLY_FALSE = [
    ("challenger 1", challenges(draft(SIGNIFICANT, HERE, GONE)), "C1"),
    ("challenger 1", challenges(draft(BLOCKING, GONE)), "C1"),
    ("surface 1", surfaced(context(HERE, challenge=draft(SIGNIFICANT, GONE))), "S1"),
    ("probe 1", probed(risk(BLOCKING, GONE)), "P1"),
]


@pytest.mark.parametrize(("who", "said", "about"), PARTLY_FALSE)
def test_what_rests_on_something_true_or_blocks_stands_though_a_false_claim_is_held_against_its_author(
    who: str, said: FrozenModel, about: str
) -> None:
    talk = follow(subject(), {who: said})
    assert talk.seen("synthesis 1")["C1"].status is OPEN
    assert [one.about for one in talk.end.progress.against] == [about]


def test_a_claim_that_holds_or_cannot_be_looked_up_is_held_against_nobody() -> None:
    talk = follow(subject(), {"challenger 1": challenges(draft(MINOR, HERE), draft(MINOR, BEYOND))})
    assert talk.end.progress.against == ()
    assert talk.statuses == {"C1": "DEFERRED", "C2": "DEFERRED"}


@pytest.mark.seed("plan-gate", "unknowns")
def test_an_unknown_about_no_challenge_is_left_out() -> None:
    script: Script = {"challenger 1": challenges(SIGNIFICANT), "resolve 1": resolved(unknown("C9"), unknown("C1"))}
    talk = follow(subject(), script)
    assert [(one.id, one.affects_challenge) for one in talk.end.progress.unknowns] == [("U1", "C1")]
    assert talk.events(PlanEventKind.REFUSED) == ["an unknown is about C9, which is not a challenge"]


# What settles what.

UNRESOLVABLE, PARTLY = UnknownResolution.UNRESOLVABLE, UnknownResolution.PARTIALLY_RESOLVED
CONFIRMED, REFUTED = UnknownResolution.CONFIRMED, UnknownResolution.REFUTED
CONFIRMS, CHANGES = SurfacedImpact.CONFIRMS_APPROACH, SurfacedImpact.CHANGES_NEEDED


@dataclass(frozen=True)
class Case:
    """One ruling on C1, which rests on one thing."""

    name: str
    severity: PlanSeverity
    by: str
    settled: bool
    found: Mapping[str, FrozenModel] = field(default_factory=dict)


def _resolve(
    *evidence: RepositoryClaim, about: str = "C1", found: UnknownResolution = REFUTED
) -> dict[str, FrozenModel]:
    return {"resolve 1": resolved(unknown(about, *evidence, resolution=found))}


def _surface(*evidence: RepositoryClaim, impact: SurfacedImpact = CONFIRMS) -> dict[str, FrozenModel]:
    return {"surface 1": surfaced(context(*evidence, impact=impact))}


EVIDENCE = [
    Case("what the engine has seen", BLOCKING, "U1", True, _resolve(HERE)),
    Case("a part of it", BLOCKING, "U1", True, _resolve(HERE, found=PARTLY)),
    Case("an agent's word", BLOCKING, "U1", False, _resolve()),
    Case("an agent's word, of less", SIGNIFICANT, "U1", True, _resolve()),
    Case("what cannot be looked up", BLOCKING, "U1", False, _resolve(HERE, BEYOND)),
    Case("what is false", SIGNIFICANT, "U1", False, _resolve(HERE, GONE)),
    Case("what says that the concern is right", SIGNIFICANT, "U1", False, _resolve(HERE, found=CONFIRMED)),
    Case("the same, as an agent's word", SIGNIFICANT, "U1", False, _resolve(found=CONFIRMED)),
    Case("what nobody could settle", SIGNIFICANT, "U1", False, _resolve(found=UNRESOLVABLE)),
    Case("what nobody could settle, of a true claim", BLOCKING, "U1", False, _resolve(HERE, found=UNRESOLVABLE)),
    Case("what is about another", SIGNIFICANT, "U1", False, _resolve(HERE, about="C2")),
    Case("context that the engine has seen", BLOCKING, "S1", True, _surface(HERE)),
    Case("context", BLOCKING, "S1", False, _surface()),
    Case("context, of less", SIGNIFICANT, "S1", True, _surface()),
    Case("context that is false", SIGNIFICANT, "S1", False, _surface(GONE)),
    Case("context that asks for a change", SIGNIFICANT, "S1", False, _surface(HERE, impact=CHANGES)),
    Case("context that contradicts the plan", SIGNIFICANT, "S1", False, _surface(HERE, impact=CONTRADICTS)),
    Case("a risk", SIGNIFICANT, "P1", False, {"probe 1": probed(risk(MINOR, HERE))}),
    Case("another challenge", SIGNIFICANT, "C2", False),
    Case("one that was refuted", SIGNIFICANT, "C3", False, _surface(GONE, impact=CONTRADICTS)),
    Case("itself", SIGNIFICANT, "C1", False),
    Case("what there is not", SIGNIFICANT, "U7", False),
    Case("the person, who has not been asked", SIGNIFICANT, "person", False),
]


@each_row("case", EVIDENCE)
@pytest.mark.seed("plan-gate", "resolution-evidence")
def test_what_may_settle_a_challenge(case: Case) -> None:
    script: Script = {
        "challenger 1": challenges(case.severity, SIGNIFICANT),
        **case.found,
        "synthesis 1": synthesis(ruling("C1", RESOLVED, case.by)),
    }
    talk = follow(subject(), script)
    assert talk.seen("iterated 1")["C1"].status is (RESOLVED if case.settled else OPEN)
    assert talk.end.progress.evidence.get("C1") == (case.by if case.settled else None)
    assert bool(talk.events(PlanEventKind.REFUSED)) != case.settled


@pytest.mark.seed("plan-gate", "resolution-evidence")
def test_what_a_challenge_came_of_cannot_settle_it() -> None:
    script: Script = {
        "surface 1": surfaced(context(HERE, impact=CONFIRMS, challenge=draft(BLOCKING))),
        "synthesis 1": synthesis(ruling("C1", WITHDRAWN, "S1")),
    }
    assert follow(subject(), script).seen("iterated 1")["C1"].status is OPEN


def test_another_challenge_that_was_settled_settles_nothing() -> None:
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT, SIGNIFICANT),
        "synthesis 1": synthesis(*resolving("C1")),
        "synthesis 2": synthesis(ruling("C2", RESOLVED, "C1")),
    }
    assert follow(subject(), script).seen("iterated 2")["C2"].status is OPEN


def test_challengers_can_withdraw_what_is_theirs() -> None:
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT),
        "domain-expert 1": challenges(BLOCKING),
        "resolve 1": resolved(unknown("C1", HERE, resolution=UnknownResolution.REFUTED)),
        "challenger 2": challenges(withdraws=("C1", "C2", "C9"), evidence=("U1",)),
    }
    talk = follow(subject(team=SCALED), script)
    assert [one.status for one in talk.seen("resolve 2").values()] == [WITHDRAWN, OPEN]
    assert len(talk.events(PlanEventKind.REFUSED)) == 2


@pytest.mark.seed("plan-gate", "withdrawn-needs-evidence")
def test_a_challenger_withdraws_nothing_without_the_evidence_that_a_ruling_needs() -> None:
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT, MINOR),
        "challenger 2": challenges(withdraws=("C1", "C2")),
    }
    talk = follow(subject(), script)
    assert [one.status for one in talk.seen("resolve 2").values()] == [OPEN, WITHDRAWN]
    assert talk.events(PlanEventKind.REFUSED)[0].startswith(
        "challenger cannot withdraw C1: a SIGNIFICANT challenge is settled by evidence against it"
    )


@pytest.mark.seed("plan-gate", "deferred-minor")
def test_what_is_minor_and_open_at_the_end_is_deferred_and_does_not_keep_it_going() -> None:
    talk = follow(subject(), {"challenger 1": challenges(*[MINOR] * 5)})
    assert set(talk.statuses.values()) == {"DEFERRED"}
    assert (talk.came, len(talk.states)) == ((CONVERGED, PROCEED), 1)
    assert {line.status for line in talk.states[0].challenges} == {DEFERRED}


def test_what_is_minor_stays_open_while_it_goes_on() -> None:
    talk = follow(subject(), {"challenger 1": challenges(SIGNIFICANT, MINOR)})
    assert talk.seen("iterated 2")["C2"].status is OPEN
    assert talk.statuses["C2"] == "DEFERRED"


# Degradation.

GROWING: Script = {"challenger 1": challenges(SIGNIFICANT), "challenger 2": challenges(SIGNIFICANT)}


def test_the_first_iteration_cannot_degrade() -> None:
    talk = follow(subject(), {"challenger 1": challenges(*[SIGNIFICANT] * 5)})
    assert talk.events(PlanEventKind.DEGRADATION) == []
    assert "challenger 2" in talk.asked


@pytest.mark.parametrize(("settled", "degraded"), [((), True), (("C1",), False), (("C1", "C2"), False)])
@pytest.mark.seed("plan-gate", "degradation")
def test_an_iteration_that_creates_more_than_it_settles_is_a_degradation(
    settled: tuple[str, ...], degraded: bool
) -> None:
    script: Script = {"challenger 1": challenges(SIGNIFICANT, SIGNIFICANT), "challenger 2": challenges(SIGNIFICANT)}
    talk = follow(subject(), {**script, "synthesis 2": synthesis(*resolving(*settled))})
    assert bool(talk.events(PlanEventKind.DEGRADATION)) == degraded
    assert ("challenger 3" in talk.asked) != degraded


@pytest.mark.seed("plan-gate", "degradation")
def test_after_a_degradation_nothing_is_added() -> None:
    again = (directive(DirectiveKind.RE_PROBE, DirectiveReason.CASCADE_NOT_EXPLORED),)
    script: Script = {
        **GROWING,
        "synthesis 2": synthesis(ruling("C1", UNRESOLVED), directives=again),
        "probe 3": probed(risk(SIGNIFICANT)),
        "synthesis 3": synthesis(*resolving("C1", "C2")),
    }
    talk = follow(subject(), script)
    assert talk.asked_in(3) == ["resolve", "probe", "synthesis", "audit"]
    assert talk.statuses == {"C1": "RESOLVED", "C2": "RESOLVED", "C3": "DEFERRED_SURFACED"}
    assert talk.came == (CONVERGED, REVISE)


def test_after_a_degradation_what_was_put_off_does_not_come_in_and_still_blocks() -> None:
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT),
        "challenger 2": challenges(*[BLOCKING] * 4),
        "synthesis 3": synthesis(*resolving("C1", "C2", "C3", "C4")),
    }
    talk = follow(subject(), script)
    assert talk.statuses["C5"] == "DEFERRED_SURFACED"
    assert talk.came == (FORCED, RETHINK)
