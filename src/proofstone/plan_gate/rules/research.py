"""The findings of researchers: unknowns, surfaced context, probed risks. Ids are assigned here.

A finding is formatted as one line: `[VERIFIED: source | finding | impact]`. Only Proofstone writes VERIFIED: if there
are claims to look up and all of them hold. The source is then what Proofstone itself saw, and that is all it vouches
for. Anything else is `[UNVERIFIED: …]` with the source that the agent names. Text of an agent can neither break the
line nor look like another one: brackets, bars and line breaks are escaped.

    | what was looked up                 | resolution                                                       |
    |------------------------------------|------------------------------------------------------------------|
    | a claim does not hold              | UNRESOLVABLE                                                     |
    | there are claims, and all hold     | as the researcher says                                           |
    | nothing, or it cannot be looked up | CONFIRMED and REFUTED become PARTIALLY_RESOLVED; the others stay |

Rules:

- a finding is verified if it rests on claims and Proofstone found all of them to be true;
- a false claim is held against its author, and what rests on it is not evidence;
- a contradiction of the plan, and a risk that is at least SIGNIFICANT, is a challenge, whether the researcher says so
  or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.roles.models.plan_gate import (
    ChallengeDraft,
    ProbeOutput,
    ResolveOutput,
    RiskDraft,
    SurfacedDraft,
    SurfaceOutput,
    UnknownDraft,
)
from proofstone.agents.roles.models.plan_gate_records import (
    ChallengeConfidence,
    ChallengeOrigin,
    ClaimKind,
    LookupResult,
    PlanSeverity,
    ProbedRisk,
    RepositoryClaim,
    SurfacedContext,
    SurfacedImpact,
    Unknown,
    UnknownResolution,
    UnknownType,
)
from proofstone.agents.rules.tool_rules import format_path, shorten_text
from proofstone.plan_gate.models import FalseClaim
from proofstone.plan_gate.rules.board import Exhibit, NewChallenge

_SETTLED: Final = frozenset({UnknownResolution.CONFIRMED, UnknownResolution.REFUTED})
_MAX_SHOWN: Final = 200
_MAX_OBSERVATIONS: Final = 2000
_ESCAPES: Final = {
    **{sign: f"\\{sign}" for sign in "\\|[]"},
    "\n": "\\n",
    "\r": "\\r",
    **{sign: f"\\u{ord(sign):04x}" for sign in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"},
}
"""Characters that would end the line, the part or the form."""

_CLAIM_TEXTS: Final = {
    ClaimKind.FILE: ("{path} is there", "{path} is not there"),
    ClaimKind.SYMBOL: ("{name} is defined{within}", "{name} is not defined{within}"),
    ClaimKind.TEXT: ("{path} holds “{text}”", "{path} does not hold “{text}”"),
    ClaimKind.COMMIT: (
        "commit {revision} says or changes “{text}”",
        "commit {revision} neither says nor changes “{text}”",
    ),
    ClaimKind.MEMORY: ("the memory's entry {entry} holds “{text}”", "no entry {entry} of the memory holds “{text}”"),
    ClaimKind.WEB: ("{url} says “{text}”", "{url} does not say “{text}”"),
}


def are_claims_verified(lookups: Sequence[LookupResult]) -> bool:
    """Whether there was something to look up, and all of it holds."""
    return bool(lookups) and all(lookup.holds for lookup in lookups)


def is_substantially_verified(lookups: Sequence[LookupResult]) -> bool:
    """Whether the finding is verified by more than the existence of files or the absence of something. Those hold for
    any plan.
    """
    return are_claims_verified(lookups) and any(
        lookup.claim.kind is not ClaimKind.FILE and not lookup.claim.absent for lookup in lookups
    )


def format_finding(draft: UnknownDraft, lookups: Sequence[LookupResult]) -> tuple[str, UnknownResolution]:
    """Return the line, and the resolution of the unknown."""
    text = (
        _format_line("VERIFIED", _join_observations(lookups), draft)
        if are_claims_verified(lookups)
        else format_unverified(draft)
    )
    return text, _limit_resolution(draft.resolution, lookups)


def format_unverified(draft: UnknownDraft) -> str:
    """Format the draft as an unverified finding."""
    return _format_line("UNVERIFIED", draft.source, draft)


def describe_claim(claim: RepositoryClaim) -> str:
    """Describe a claim: `src/app.py is there`. On one line, and short enough to read."""
    fields = ("path", "name", "revision", "entry", "url")
    words = {field: format_path(shorten_text(getattr(claim, field), _MAX_SHOWN)) for field in fields}
    within = f" in {words['path']}" if claim.path else ""
    text = format_path(shorten_text(" ".join(claim.text.split()), _MAX_SHOWN))
    return _CLAIM_TEXTS[claim.kind][claim.absent].format(**words, within=within, text=text)


def _limit_resolution(resolution: UnknownResolution, lookups: Sequence[LookupResult]) -> UnknownResolution:
    if any(lookup.holds is False for lookup in lookups):
        return UnknownResolution.UNRESOLVABLE
    return (
        UnknownResolution.PARTIALLY_RESOLVED
        if resolution in _SETTLED and not are_claims_verified(lookups)
        else resolution
    )


def _join_observations(lookups: Sequence[LookupResult]) -> str:
    return shorten_text("; ".join(lookup.saw for lookup in lookups), _MAX_OBSERVATIONS)


def _format_line(word: str, source: str, draft: UnknownDraft) -> str:
    return f"[{word}: {' | '.join(map(_escape, (source, draft.finding, draft.impact)))}]"


def _escape(part: str) -> str:
    return "".join(_ESCAPES.get(sign, sign) for sign in part)


@dataclass(frozen=True)
class ClaimLookups:
    """What Proofstone found out about the claims of one answer."""

    by_claim: Mapping[RepositoryClaim, LookupResult]

    @classmethod
    def index_by_claim(cls, lookups: Iterable[LookupResult]) -> ClaimLookups:
        return cls({lookup.claim: lookup for lookup in lookups})

    def __call__(self, claims: Sequence[RepositoryClaim]) -> tuple[LookupResult, ...]:
        return tuple(self.by_claim[claim] for claim in claims)


@dataclass
class PlanResearch:
    """Collects the findings of researchers."""

    unknowns: list[Unknown] = field(default_factory=list)
    surfaced: list[SurfacedContext] = field(default_factory=list)
    risks: list[ProbedRisk] = field(default_factory=list)
    false_claims: list[FalseClaim] = field(default_factory=list)
    _iteration: int = 1
    _before: tuple[int, int, int] = (0, 0, 0)
    """How many unknowns, contexts and risks earlier iterations had."""
    _verified: set[str] = field(default_factory=set)
    _confirming: set[str] = field(default_factory=set)
    """Unknowns for which the researcher said that the concern is right. A missing proof does not reverse that."""

    def begin(self, iteration: int) -> None:
        """Begin an iteration."""
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

    def add_unknowns(self, output: ResolveOutput, find_lookups: ClaimLookups, agent: str) -> None:
        """Add the unknowns of an answer."""
        for draft in output.unknowns:
            lookups = find_lookups(draft.evidence)
            finding, resolution = format_finding(draft, lookups)
            unknown = self._add_unknown(draft, finding, resolution)
            if draft.resolution is UnknownResolution.CONFIRMED:
                self._confirming.add(unknown.id)
            self._weigh_evidence(unknown.id, lookups, agent)

    def mark_unresolvable(self, targets: Iterable[tuple[str, str]], agent: str) -> None:
        """Mark challenges as unresolvable if the answer about them could not be read. `targets`: ids with claims."""
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
            self._add_unknown(draft, *format_finding(draft, ()))

    def add_surfaced(
        self, output: SurfaceOutput, find_lookups: ClaimLookups, agent: str
    ) -> list[tuple[NewChallenge, str]]:
        """Add surfaced context, and return the resulting challenges with the ids of their findings."""
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
            lookups = self._weigh_evidence(context.id, _look_up_evidence(draft, find_lookups), agent)
            if challenge := _make_surfaced_challenge(draft):
                entering.append((NewChallenge(challenge, ChallengeOrigin.SURFACED, lookups), context.id))
        return entering

    def add_risks(self, output: ProbeOutput, find_lookups: ClaimLookups, agent: str) -> list[tuple[NewChallenge, str]]:
        """Add risks, and return the resulting challenges with the ids of their risks."""
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
            lookups = self._weigh_evidence(risk.id, _look_up_evidence(draft, find_lookups), agent)
            if challenge := _make_risk_challenge(draft):
                entering.append((NewChallenge(challenge, ChallengeOrigin.PROBED, lookups), risk.id))
        return entering

    def link_challenge(self, finding: str, challenge: str) -> None:
        """Record the challenge that a finding led to."""
        update = {"generates_challenge": challenge}
        self.surfaced = [
            context.model_copy(update=update) if context.id == finding else context for context in self.surfaced
        ]
        self.risks = [risk.model_copy(update=update) if risk.id == finding else risk for risk in self.risks]

    def record_false_claims(self, agent: str, about: str, lookups: Iterable[LookupResult]) -> None:
        """Record the false claims of an agent."""
        false = (lookup for lookup in lookups if lookup.holds is False)
        self.false_claims += [
            FalseClaim(agent=agent, iteration=self._iteration, about=about, looked=lookup) for lookup in false
        ]

    def build_exhibits(self) -> dict[str, Exhibit]:
        """Return what a ruling may rest on, by id.

        | exhibit | settles |
        |---|---|
        | an unknown that is REFUTED or PARTIALLY_RESOLVED | the challenge that it is about |
        | surfaced context that confirms the approach | any challenge |
        | a confirmed concern, a risk, and anything that rests on a false claim | nothing |
        """
        against = (UnknownResolution.REFUTED, UnknownResolution.PARTIALLY_RESOLVED)
        verified, false = self._verified, {item.about for item in self.false_claims}
        exhibits = [
            Exhibit(unknown.id, about=unknown.affects_challenge, is_verified=unknown.id in verified)
            for unknown in self.unknowns
            if unknown.resolution in against and unknown.id not in self._confirming
        ]
        exhibits += [
            Exhibit(item.id, against=item.generates_challenge, is_verified=item.id in verified)
            for item in self.surfaced
            if item.impact is SurfacedImpact.CONFIRMS_APPROACH
        ]
        return {item.id: item for item in exhibits if item.id not in false}

    def _add_unknown(self, draft: UnknownDraft, finding: str, resolution: UnknownResolution) -> Unknown:
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

    def _weigh_evidence(self, id: str, lookups: tuple[LookupResult, ...], agent: str) -> tuple[LookupResult, ...]:
        if is_substantially_verified(lookups):
            self._verified.add(id)
        self.record_false_claims(agent, id, lookups)
        return lookups


def _look_up_evidence(draft: SurfacedDraft | RiskDraft, find_lookups: ClaimLookups) -> tuple[LookupResult, ...]:
    """Return the lookups for a finding. Its challenge rests on the same evidence."""
    challenge_evidence = draft.challenge.evidence if draft.challenge else ()
    return find_lookups(tuple(dict.fromkeys((*draft.evidence, *challenge_evidence))))


def _make_surfaced_challenge(draft: SurfacedDraft) -> ChallengeDraft | None:
    contradicts = draft.impact is SurfacedImpact.CONTRADICTS_PLAN
    if draft.challenge is not None:
        return _raise_severity(PlanSeverity.SIGNIFICANT, draft.challenge) if contradicts else draft.challenge
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


def _raise_severity(severity: PlanSeverity, draft: ChallengeDraft) -> ChallengeDraft:
    """Raise the challenge to at least the severity of its finding."""
    return draft.model_copy(update={"severity": min(severity, draft.severity, key=lambda candidate: candidate.rank)})


def _make_risk_challenge(draft: RiskDraft) -> ChallengeDraft | None:
    if draft.challenge is not None:
        return _raise_severity(draft.severity, draft.challenge)
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
