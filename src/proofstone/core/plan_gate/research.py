"""What researchers have found: unknowns, surfaced context, probed risks. Ids are given here.

Rules:
- a finding is verified if it rests on claims and the engine has found all of them to be true;
- a false claim is held against its author, and what rests on it is no evidence;
- what contradicts the plan, and a risk that is at least SIGNIFICANT, is a challenge, whether its finder says so or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from proofstone.contracts.plan_gate.answers import (
    ChallengeDraft,
    ProbeOutput,
    ResolveOutput,
    RiskDraft,
    SurfacedDraft,
    SurfaceOutput,
    UnknownDraft,
)
from proofstone.contracts.plan_gate.evidence import LookedUp, RepositoryClaim
from proofstone.contracts.plan_gate.record import (
    ChallengeConfidence,
    Origin,
    PlanSeverity,
    ProbedRisk,
    SurfacedContext,
    SurfacedImpact,
    Unknown,
    UnknownResolution,
    UnknownType,
)
from proofstone.contracts.plan_gate.report import HeldAgainst
from proofstone.core.plan_gate.board import Entering, Exhibit
from proofstone.core.plan_gate.findings import finding_text, is_substantial


@dataclass(frozen=True)
class Looked:
    """What the engine saw of the claims of one answer."""

    by_claim: Mapping[RepositoryClaim, LookedUp]

    @classmethod
    def of(cls, looked: Iterable[LookedUp]) -> Looked:
        return cls({one.claim: one for one in looked})

    def __call__(self, claims: Sequence[RepositoryClaim]) -> tuple[LookedUp, ...]:
        return tuple(self.by_claim[claim] for claim in claims)


@dataclass
class Research:
    unknowns: list[Unknown] = field(default_factory=list)
    surfaced: list[SurfacedContext] = field(default_factory=list)
    risks: list[ProbedRisk] = field(default_factory=list)
    against: list[HeldAgainst] = field(default_factory=list)
    _iteration: int = 1
    _before: tuple[int, int, int] = (0, 0, 0)
    """How many unknowns, contexts and risks there were from earlier iterations."""
    _verified: set[str] = field(default_factory=set)
    _confirming: set[str] = field(default_factory=set)
    """Unknowns of which it was said that the concern is right; that it was not shown does not turn them round."""

    def begin(self, iteration: int) -> None:
        self._iteration, self._before = iteration, (len(self.unknowns), len(self.surfaced), len(self.risks))

    @property
    def new_unknowns(self) -> list[Unknown]:
        return self.unknowns[self._before[0] :]

    @property
    def new_surfaced(self) -> list[SurfacedContext]:
        return self.surfaced[self._before[1] :]

    @property
    def new_risks(self) -> list[ProbedRisk]:
        return self.risks[self._before[2] :]

    def take_unknowns(self, output: ResolveOutput, looked: Looked, agent: str) -> None:
        for draft in output.unknowns:
            seen = looked(draft.evidence)
            finding, resolution = finding_text(draft, seen)
            unknown = self._unknown(draft, finding, resolution)
            if draft.resolution is UnknownResolution.CONFIRMED:
                self._confirming.add(unknown.id)
            self._weigh(unknown.id, seen, agent)

    def give_up(self, targets: Iterable[tuple[str, str]], agent: str) -> None:
        """On challenges, with their claims, about which the answer could not be read."""
        for challenge, claim in targets:
            why = "its answer could not be read"
            draft = UnknownDraft(
                description=f"what would settle {challenge}",
                type=UnknownType.INTEGRATION_UNKNOWN,
                affects_challenge=challenge,
                suggested_query=claim,
                resolution=UnknownResolution.UNRESOLVABLE,
                source=agent,
                finding=why,
                impact=f"{challenge} stays as it is",
            )
            self._unknown(draft, *finding_text(draft, ()))

    def take_surfaced(self, output: SurfaceOutput, looked: Looked, agent: str) -> list[tuple[Entering, str]]:
        """The challenges that follow from it, each with the id of its finding."""
        entering = []
        for draft in output.surfaced:
            context = SurfacedContext(
                id=f"S{len(self.surfaced) + 1}",
                source=draft.source,
                location=draft.location,
                relevance=draft.relevance,
                impact=draft.impact,
            )
            self.surfaced.append(context)
            seen = self._weigh(context.id, _looked_at(draft, looked), agent)
            if challenge := _from_surfaced(draft):
                entering.append((Entering(challenge, Origin.SURFACED, seen), context.id))
        return entering

    def take_risks(self, output: ProbeOutput, looked: Looked, agent: str) -> list[tuple[Entering, str]]:
        """The challenges that follow from them, each with the id of its risk."""
        entering = []
        for draft in output.risks:
            risk = ProbedRisk(
                id=f"P{len(self.risks) + 1}",
                risk=draft.risk,
                trigger=draft.trigger,
                cascade=draft.cascade,
                probability=draft.probability,
                severity=draft.severity,
            )
            self.risks.append(risk)
            seen = self._weigh(risk.id, _looked_at(draft, looked), agent)
            if challenge := _from_risk(draft):
                entering.append((Entering(challenge, Origin.PROBED, seen), risk.id))
        return entering

    def generated(self, finding: str, challenge: str) -> None:
        made = {"generates_challenge": challenge}
        self.surfaced = [one.model_copy(update=made) if one.id == finding else one for one in self.surfaced]
        self.risks = [one.model_copy(update=made) if one.id == finding else one for one in self.risks]

    def hold_against(self, agent: str, about: str, looked: Iterable[LookedUp]) -> None:
        false = (one for one in looked if one.holds is False)
        self.against += [HeldAgainst(agent=agent, iteration=self._iteration, about=about, looked=one) for one in false]

    def exhibits(self) -> dict[str, Exhibit]:
        """What a ruling may rest on, by its id.

        | what | settles |
        |---|---|
        | an unknown that is REFUTED or PARTIALLY_RESOLVED | the challenge that it was about |
        | surfaced context that confirms the approach | any challenge |
        | what says that the concern is right, a risk, and what rests on a false claim | nothing |
        """
        against = (UnknownResolution.REFUTED, UnknownResolution.PARTIALLY_RESOLVED)
        verified, false = self._verified, {one.about for one in self.against}
        found = [
            Exhibit(one.id, about=one.affects_challenge, verified=one.id in verified)
            for one in self.unknowns
            if one.resolution in against and one.id not in self._confirming
        ]
        found += [
            Exhibit(one.id, against=one.generates_challenge, verified=one.id in verified)
            for one in self.surfaced
            if one.impact is SurfacedImpact.CONFIRMS_APPROACH
        ]
        return {one.id: one for one in found if one.id not in false}

    def _unknown(self, draft: UnknownDraft, finding: str, resolution: UnknownResolution) -> Unknown:
        unknown = Unknown(
            id=f"U{len(self.unknowns) + 1}",
            description=draft.description,
            type=draft.type,
            affects_challenge=draft.affects_challenge,
            suggested_query=draft.suggested_query,
            resolution=resolution,
            finding=finding,
        )
        self.unknowns.append(unknown)
        return unknown

    def _weigh(self, id: str, looked: tuple[LookedUp, ...], agent: str) -> tuple[LookedUp, ...]:
        if is_substantial(looked):
            self._verified.add(id)
        self.hold_against(agent, id, looked)
        return looked


def _looked_at(draft: SurfacedDraft | RiskDraft, looked: Looked) -> tuple[LookedUp, ...]:
    """What a finding rests on is what its challenge rests on."""
    own = draft.challenge.evidence if draft.challenge else ()
    return looked(tuple(dict.fromkeys((*draft.evidence, *own))))


def _from_surfaced(draft: SurfacedDraft) -> ChallengeDraft | None:
    contradicts = draft.impact is SurfacedImpact.CONTRADICTS_PLAN
    if draft.challenge is not None:
        return _at_least(PlanSeverity.SIGNIFICANT, draft.challenge) if contradicts else draft.challenge
    if not contradicts:
        return None
    return ChallengeDraft(
        claim=f"The plan is contradicted by {draft.location}"[:300],
        concern=draft.relevance,
        failure_scenario=draft.relevance,
        alternative=f"Take {draft.location} into account.",
        severity=PlanSeverity.SIGNIFICANT,
        confidence=ChallengeConfidence.MED,
    )


def _at_least(severity: PlanSeverity, draft: ChallengeDraft) -> ChallengeDraft:
    """A challenge is no less grave than what it came of."""
    return draft.model_copy(update={"severity": min(severity, draft.severity, key=lambda one: one.rank)})


def _from_risk(draft: RiskDraft) -> ChallengeDraft | None:
    if draft.challenge is not None:
        return _at_least(draft.severity, draft.challenge)
    if draft.severity is PlanSeverity.MINOR:
        return None
    return ChallengeDraft(
        claim=f"The plan does not provide for this: {draft.risk}"[:300],
        concern=draft.risk,
        failure_scenario=f"{draft.trigger} Then: {draft.cascade}"[:8000],
        alternative="Provide for it, or show that it cannot happen.",
        severity=draft.severity,
        confidence=ChallengeConfidence.MED,
    )
