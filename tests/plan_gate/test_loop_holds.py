"""What holds whatever agents and the person answer: the loop is driven with arbitrary answers.

What is known of each answer is kept beside the loop, so that what it lets through is judged by what was said and not
by what it made of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.agents.roles.models.plan_gate import (
    ChallengeRuling,
    ChallengesOutput,
    DirectiveKind,
    DirectiveReason,
    ProbeOutput,
    ResearchMode,
    ResolveOutput,
    SurfaceOutput,
    SynthesisOutput,
)
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeConfidence,
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
from proofstone.plan_gate.rules.decision import DIRECTIVE_CONDITIONS
from proofstone.plan_gate.rules.effects import (
    AskChallenges,
    AskPlanAudit,
    AskPlanQuestions,
    AskPlanResearch,
    AskSynthesis,
    PlanAgentFailure,
    PlanAgentReply,
    PlanAnswers,
    PlanEffect,
    PlanEffectResult,
    PlanSubject,
    RecordIteration,
)
from proofstone.runtime.rules import EffectDone
from tests.plan_gate.talk import (
    BEYOND,
    BLOCKING,
    FAILS,
    GONE,
    HERE,
    MINOR,
    UNREADABLE,
    Talk,
    audit,
    challenges,
    challenges_of,
    context,
    converse,
    directive,
    draft,
    entering,
    heard,
    name_of,
    probed,
    raising,
    resolved,
    risk,
    ruling,
    subject,
    surfaced,
    synthesis,
    unknown,
)

OPEN, UNRESOLVED = ChallengeStatus.OPEN, ChallengeStatus.UNRESOLVED
RESOLVED, WITHDRAWN = ChallengeStatus.RESOLVED, ChallengeStatus.WITHDRAWN
DEFERRED, PUT_OFF = ChallengeStatus.DEFERRED, ChallengeStatus.DEFERRED_SURFACED
RULED = (OPEN, RESOLVED, UNRESOLVED, DEFERRED, WITHDRAWN)
RESEARCHED = (ChallengeOrigin.SURFACED, ChallengeOrigin.PROBED)
T = TypeVar("T")


# Arbitrary answers. Five of eight drafts rest on something, and not all of that is true.

CLAIMS: list[tuple[RepositoryClaim, ...]] = [(), (), (), (HERE,), (HERE,), (HERE, GONE), (GONE,), (BEYOND,)]
MITIGATIONS = ["", "", "Keep two stores."]
DRAFTS = [
    draft(severity, *claims, confidence=confidence, mitigation=mitigation)
    for severity, claims, confidence, mitigation in product(PlanSeverity, CLAIMS, ChallengeConfidence, MITIGATIONS)
]
FOUND = [
    context(*claims, impact=impact, challenge=made)
    for claims, impact, made in product(CLAIMS, SurfacedImpact, (None, *DRAFTS[::5]))
]
RISKS = [
    risk(severity, *claims, challenge=made)
    for severity, claims, made in product(PlanSeverity, CLAIMS, (None, *DRAFTS[::5]))
]
DIRECTIVES = [
    *(directive(*one) for one in product(DirectiveKind, (None, *DirectiveReason))),
    *(directive(*one) for one in [*DIRECTIVE_CONDITIONS] * 4),
    *(raising(*one) for one in product((None, *ResearchMode), ("Read", "hammer"), (0, 1, 8))),
]
UNKNOWNS = list(product(CLAIMS, UnknownResolution))
RULINGS = list(product((RESOLVED, RESOLVED, *RULED), ("it was looked into", "it was looked into", ""), MITIGATIONS))


def _few(items: Sequence[T], most: int) -> st.SearchStrategy[list[T]]:
    return st.lists(st.sampled_from(items), max_size=most)


_drafts, _found, _risks, _directives = _few(DRAFTS, 7), _few(FOUND, 4), _few(RISKS, 4), _few(DIRECTIVES, 3)
_rules_of_twelve = _few([f"C{number}" for number in range(1, 13)], 4)
_few_drafts = _few(DRAFTS, 2)
_unknowns, _ruled = st.sampled_from(UNKNOWNS), st.sampled_from(RULINGS)


@st.composite
def _subjects(draw: st.DrawFn) -> PlanSubject:
    severities = draw(st.lists(st.sampled_from(PlanSeverity), max_size=draw(st.sampled_from([0, 2, 12]))))
    final = draw(st.integers(0, 19)) == 0
    rules = [entering(one, origin=ChallengeOrigin.RULES, final=final) for one in severities]
    team = draw(st.sampled_from([TeamMode.BASE, TeamMode.SCALED, TeamMode.SCALED, None]))
    return subject(*rules, team=team, answers=dict.fromkeys(draw(_rules_of_twelve), "yes"))


def _rulings(need: AskSynthesis) -> st.SearchStrategy[list[ChallengeRuling]]:
    seen = need.snapshot
    ids = [*(one.id for one in seen.challenges), "C99"]
    found = [one.id for one in seen.unknowns] + [one.id for one in seen.surfaced] + [one.id for one in seen.risks]
    rests = _few([*found, *ids, "person", "U99"], 2)
    one = st.tuples(st.sampled_from(ids), _ruled, rests)
    return st.lists(one.map(_ruling), max_size=12)


@st.composite
def _kind_rulings(draw: st.DrawFn, need: AskSynthesis) -> list[ChallengeRuling]:
    """Most of what stands is settled as it may be."""
    seen = need.snapshot
    found = [one.id for one in seen.unknowns] + [one.id for one in seen.surfaced]
    standing = [one.id for one in seen.challenges if one.status in (OPEN, UNRESOLVED)]
    ways = st.sampled_from(["mitigated"] if draw(st.booleans()) else ["mitigated", "shown", "heard", "unresolved"])
    return [_in_this_way(id, draw(ways), draw(_few(found, 2)) if found else []) for id in standing]


def _in_this_way(id: str, way: str, found: list[str]) -> ChallengeRuling:
    match way:
        case "mitigated":
            return ruling(id, RESOLVED, mitigation="Keep two stores.")
        case "shown":
            return ruling(id, WITHDRAWN, *found)
        case "heard":
            return ruling(id, RESOLVED, "person")
        case _:
            return ruling(id, UNRESOLVED)


def _ruling(drawn: tuple[str, tuple[ChallengeStatus, str, str], list[str]]) -> ChallengeRuling:
    id, (status, resolution, mitigation), evidence = drawn
    return ruling(id, status, *evidence, resolution=resolution, mitigation=mitigation)


@st.composite
def _answers(draw: st.DrawFn, need: PlanEffect, *, kind: bool) -> PlanEffectResult:
    """What may come of asking; from kind people, little that is new and much that settles."""
    match need:
        case RecordIteration():
            return EffectDone()
        case AskPlanQuestions(questions=questions):
            ids = [one.challenge for one in questions]
            some = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
            return PlanAnswers(dict.fromkeys(some, "yes"))
    if draw(st.integers(0, 59 if kind else 14)) == 0:
        return draw(st.sampled_from([FAILS, UNREADABLE]))
    return heard(draw(_outputs(need, kind=kind)))


@st.composite
def _outputs(
    draw: st.DrawFn, need: AskChallenges | AskPlanResearch | AskSynthesis | AskPlanAudit, *, kind: bool
) -> FrozenModel:
    ids = [*(one.id for one in need.snapshot.challenges), "C99"]
    match need:
        case AskChallenges():
            return challenges(*draw(_few_drafts if kind else _drafts), withdraws=tuple(draw(_few(ids, 2))))
        case AskPlanResearch(mode=ResearchMode.RESOLVE):
            several = draw(st.lists(st.tuples(st.sampled_from(ids), _unknowns), max_size=3))
            return resolved(*(unknown(id, *claims, resolution=found) for id, (claims, found) in several))
        case AskPlanResearch(mode=ResearchMode.SURFACE):
            return surfaced(*draw(_found))
        case AskPlanResearch():
            return probed(*draw(_risks))
        case AskSynthesis():
            rulings = draw(_kind_rulings(need) if kind else _rulings(need))
            return synthesis(*rulings, directives=tuple(draw(_directives)))
        case AskPlanAudit():
            return audit()


# What was said, counted beside the loop.


@dataclass(frozen=True)
class Speaks:
    """A finding that speaks against a concern, and of which nothing was shown to be false."""

    about: str | None
    """The one challenge that it is about."""
    made: str | None
    """The challenge that came of it."""
    verified: bool

    def settles(self, challenge: Challenge) -> bool:
        grave = challenge.severity is BLOCKING or challenge.origin is ChallengeOrigin.RULES
        return self.about in (None, challenge.id) and self.made != challenge.id and (self.verified or not grave)


@dataclass
class Known:
    """What a just judge would know."""

    challenges: int
    speaks: dict[str, Speaks] = field(default_factory=dict)
    refuted: set[str] = field(default_factory=set)
    """Challenges that rest on nothing that is true."""
    mitigated: set[str] = field(default_factory=set)
    withdrawn: set[tuple[str, ChallengeOrigin]] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    found: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, about: PlanSubject, talk: Talk) -> Known:
        known = cls(len(about.rules), answered=set() if talk.asked else set(about.answers))
        for need, sent in _said(talk):
            known._learn(need, sent)
        return known

    def _learn(self, need: PlanEffect, sent: PlanEffectResult) -> None:
        match need, sent:
            case AskPlanQuestions(), PlanAnswers(answers=answers):
                self.answered |= set(answers)
            case AskChallenges(origin=origin), PlanAgentReply(output=ChallengesOutput() as brought):
                self._brought(origin, brought)
            case AskPlanResearch(mode=ResearchMode.RESOLVE, targets=targets), PlanAgentFailure(is_unreadable=True):
                self.found["U"] += len(targets)
            case AskPlanResearch(snapshot=seen), PlanAgentReply(output=ResolveOutput() as output):
                self._resolved({one.id for one in seen.challenges}, output)
            case AskPlanResearch(), PlanAgentReply(output=SurfaceOutput() as context):
                for one in context.surfaced:
                    own = one.challenge.evidence if one.challenge else ()
                    makes = one.challenge is not None or one.impact is SurfacedImpact.CONTRADICTS_PLAN
                    made = self._made(one.evidence + own) if makes else None
                    speaks = one.impact is SurfacedImpact.CONFIRMS_APPROACH
                    self._found("S", one.evidence + own, None, made, speaks=speaks)
            case AskPlanResearch(), PlanAgentReply(output=ProbeOutput() as risks):
                for each in risks.risks:
                    if each.challenge is not None or each.severity is not MINOR:
                        self._made(each.evidence + (each.challenge.evidence if each.challenge else ()))
            case AskSynthesis(), PlanAgentReply(output=SynthesisOutput() as synthesis):
                self.mitigated |= {each.challenge for each in synthesis.rulings if each.mitigation}

    def _brought(self, origin: ChallengeOrigin, output: ChallengesOutput) -> None:
        for one in output.challenges:
            weak = one.severity is MINOR or one.confidence is ChallengeConfidence.LOW
            if not (weak and origin is ChallengeOrigin.DEVILS_ADVOCATE):
                self._made(one.evidence)
        self.withdrawn |= {(one.challenge, origin) for one in output.withdrawals}

    def _resolved(self, there: set[str], output: ResolveOutput) -> None:
        against = (UnknownResolution.REFUTED, UnknownResolution.PARTIALLY_RESOLVED)
        for one in output.unknowns:
            if one.affects_challenge in there:
                self._found("U", one.evidence, one.affects_challenge, None, speaks=one.resolution in against)

    def _made(self, claims: tuple[RepositoryClaim, ...]) -> str:
        """The id of a challenge that rests on these."""
        self.challenges += 1
        id = f"C{self.challenges}"
        if GONE in claims and HERE not in claims:
            self.refuted.add(id)
        return id

    def _found(
        self, kind: str, claims: tuple[RepositoryClaim, ...], about: str | None, made: str | None, *, speaks: bool
    ) -> None:
        self.found[kind] += 1
        if speaks and GONE not in claims:
            self.speaks[f"{kind}{self.found[kind]}"] = Speaks(about, made, verified=set(claims) == {HERE})


def _said(talk: Talk) -> Iterator[tuple[PlanEffect, PlanEffectResult]]:
    for needs, sent in zip(talk.needs, talk.sent, strict=True):
        yield from zip(needs, sent, strict=True)


def _active(challenges: tuple[Challenge, ...]) -> list[Challenge]:
    return [one for one in challenges if one.status in (OPEN, UNRESOLVED)]


# What holds, each a rule of its own.


def _it_ends_within_three_iterations_with_a_verdict(about: PlanSubject, talk: Talk) -> None:
    decision = talk.end.decision
    assert decision.verdict is not None
    assert decision.status in (ConvergenceStatus.CONVERGED, ConvergenceStatus.FORCED_EXIT)
    assert [state.iteration for state in talk.states] in ([1], [1, 2], [1, 2, 3])
    assert talk.states[-1].convergence.status is decision.status
    earlier = {state.convergence.status for state in talk.states[:-1]}
    assert earlier <= {ConvergenceStatus.CONTINUE, ConvergenceStatus.BLOCKED}


def _no_cap_is_ever_exceeded(about: PlanSubject, talk: Talk) -> None:
    before: dict[str, Challenge] = {}
    for need, _ in _said(talk):
        now = challenges_of(need)
        assert len(_active(now)) <= 8 or not talk.asked, "where nobody discusses them, room is no matter"
        iteration = int(name_of(need).split()[1])
        own = [one for one in now if one.iteration_introduced == iteration]
        new = [one for one in _active(tuple(own)) if one.id not in before]
        caps = {
            ChallengeOrigin.CHALLENGER: 5 if iteration == 1 else 3,
            ChallengeOrigin.DOMAIN_EXPERT: 3,
            ChallengeOrigin.DEVILS_ADVOCATE: 2,
        }
        assert sum(one.origin in RESEARCHED for one in new) <= 2
        for origin, cap in caps.items():
            assert sum(one.origin is origin for one in new) <= cap
        assert all(
            one.severity is not MINOR and one.confidence is not ChallengeConfidence.LOW
            for one in now
            if one.origin is ChallengeOrigin.DEVILS_ADVOCATE
        )
        before = {one.id: one for one in now}


def _nothing_grave_stands_where_a_plan_proceeds(about: PlanSubject, talk: Talk) -> None:
    stands = (OPEN, UNRESOLVED, PUT_OFF)
    for one in talk.challenges.values():
        if talk.end.decision.verdict is PlanVerdict.PROCEED and one.severity is not MINOR:
            assert one.status not in stands
        if one.severity is BLOCKING and one.status in stands:
            assert talk.end.decision.verdict is PlanVerdict.RETHINK
        if one.status is DEFERRED:
            assert one.severity is MINOR
        if one.severity is MINOR:
            assert one.status not in (OPEN, UNRESOLVED)


def _ids_are_unique_and_in_order_and_what_was_brought_never_changes(about: PlanSubject, talk: Talk) -> None:
    said = {"status", "resolution", "mitigation"}
    brought: dict[str, dict[str, object]] = {}
    for need, _ in _said(talk):
        now = challenges_of(need)
        assert [one.id for one in now] == [f"C{number}" for number in range(1, len(now) + 1)]
        for one in now:
            body = one.model_dump(exclude=said)
            assert brought.setdefault(one.id, body) == body
    progress = talk.end.progress
    assert [one.id for one in progress.unknowns] == [f"U{n}" for n in range(1, len(progress.unknowns) + 1)]
    assert [one.id for one in progress.surfaced] == [f"S{n}" for n in range(1, len(progress.surfaced) + 1)]
    assert [one.id for one in progress.risks] == [f"P{n}" for n in range(1, len(progress.risks) + 1)]


def _what_is_settled_was_settled_by_something_and_stays_so(about: PlanSubject, talk: Talk) -> None:
    known = Known.of(about, talk)
    for one in talk.challenges.values():
        if one.status in (RESOLVED, WITHDRAWN):
            assert one.resolution
            assert one.severity is MINOR or _is_justified(one, talk, known), one
    settled: dict[str, Challenge] = {}
    for need, _ in _said(talk):
        for one in challenges_of(need):
            assert settled.get(one.id, one) == one
            if one.status in (RESOLVED, WITHDRAWN, DEFERRED):
                settled[one.id] = one


def _is_justified(one: Challenge, talk: Talk, known: Known) -> bool:
    evidence = talk.end.progress.evidence.get(one.id, "").split(", ")
    if one.status is WITHDRAWN and ((one.id, one.origin) in known.withdrawn or one.id in known.refuted):
        return True
    if one.status is RESOLVED and one.id in known.mitigated and one.origin is not ChallengeOrigin.RULES:
        return True
    if "person" in evidence and one.id in known.answered:
        return True
    return any(known.speaks[id].settles(one) for id in evidence if id in known.speaks)


def _whoever_claims_what_is_not_so_has_it_held_against_them(about: PlanSubject, talk: Talk) -> None:
    refuted = [one for one in talk.challenges.values() if one.id in Known.of(about, talk).refuted]
    against = {one.about for one in talk.end.progress.against}
    progress = talk.end.progress
    made = {one.generates_challenge: one.id for one in progress.surfaced}
    made |= {one.generates_challenge: one.id for one in progress.risks}
    for one in refuted:
        assert made.get(one.id, one.id) in against
        assert one.status is WITHDRAWN or one.severity is BLOCKING
    assert all(one.looked.holds is False for one in progress.against)


def _what_contradicts_the_plan_and_every_grave_risk_have_a_challenge(about: PlanSubject, talk: Talk) -> None:
    for finding in talk.end.progress.surfaced:
        if finding.impact is SurfacedImpact.CONTRADICTS_PLAN:
            made = talk.challenges[finding.generates_challenge or ""]
            assert made.origin is ChallengeOrigin.SURFACED and made.severity is not MINOR
    for one in talk.end.progress.risks:
        if one.severity is not MINOR:
            made = talk.challenges[one.generates_challenge or ""]
            assert made.origin is ChallengeOrigin.PROBED and made.severity.rank <= one.severity.rank


def _agents_that_fail_end_it_and_never_well(about: PlanSubject, talk: Talk) -> None:
    failed = [name_of(need) for need, sent in _said(talk) if isinstance(sent, PlanAgentFailure)]
    counted = [name for name in failed if not name.startswith("audit")]
    forced = len(counted) >= 2 or any(name.startswith("synthesis") for name in counted)
    assert ("so it ends here" in talk.end.decision.reason) == forced
    assert len(talk.events(PlanEventKind.FAILURE)) == len(failed)
    if forced:
        assert talk.end.decision.status is ConvergenceStatus.FORCED_EXIT
        assert talk.end.decision.verdict in (PlanVerdict.REVISE, PlanVerdict.RETHINK)
        assert not any(name.startswith("audit") for name in talk.asked)


def _after_a_degradation_nothing_becomes_active(about: PlanSubject, talk: Talk) -> None:
    degraded = {one.iteration for one in talk.end.progress.events if one.kind is PlanEventKind.DEGRADATION}
    assert 1 not in degraded
    for iteration in degraded:
        names = [name for name in talk.asked if name.endswith(f" {iteration + 1}")]
        assert not any(name.startswith("challenger") for name in names)
        before = {one.id for one in _active(challenges_of(talk.need(f"iterated {iteration}")))}
        for name in names:
            assert {one.id for one in _active(challenges_of(talk.need(name)))} <= before


def _a_person_is_asked_about_nothing_but_what_blocks_and_is_unresolved(about: PlanSubject, talk: Talk) -> None:
    for need, _ in _said(talk):
        if isinstance(need, AskPlanQuestions):
            waiting = [
                one.id for one in need.progress.challenges if (one.severity, one.status) == (BLOCKING, UNRESOLVED)
            ]
            assert [one.challenge for one in need.questions] == waiting != []
            assert len(need.progress.iterations) < 3


def _the_same_answers_give_the_same_result(about: PlanSubject, talk: Talk) -> None:
    """So a run that was interrupted can be taken up from its record."""
    recorded = iter([sent for _, sent in _said(talk)])
    assert converse(about, lambda need: next(recorded)) == talk


def _what_cannot_be_run_is_discussed_by_nobody(about: PlanSubject, talk: Talk) -> None:
    if about.team is None or any(one.is_final for one in about.rules):
        assert talk.asked == []
    if any(one.is_final and one.draft.severity is BLOCKING for one in about.rules):
        assert talk.end.decision.verdict is PlanVerdict.RETHINK


HOLDS = (
    _it_ends_within_three_iterations_with_a_verdict,
    _no_cap_is_ever_exceeded,
    _nothing_grave_stands_where_a_plan_proceeds,
    _ids_are_unique_and_in_order_and_what_was_brought_never_changes,
    _what_is_settled_was_settled_by_something_and_stays_so,
    _whoever_claims_what_is_not_so_has_it_held_against_them,
    _what_contradicts_the_plan_and_every_grave_risk_have_a_challenge,
    _agents_that_fail_end_it_and_never_well,
    _after_a_degradation_nothing_becomes_active,
    _a_person_is_asked_about_nothing_but_what_blocks_and_is_unresolved,
    _the_same_answers_give_the_same_result,
    _what_cannot_be_run_is_discussed_by_nobody,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_is_answered_each_rule_holds(data: st.DataObject) -> None:
    """Each of the functions above is one; a conversation is had once and judged by all of them."""
    about, kind = data.draw(_subjects()), data.draw(st.booleans())
    talk = converse(about, lambda need: data.draw(_answers(need, kind=kind)))
    for rule in HOLDS:
        rule(about, talk)
