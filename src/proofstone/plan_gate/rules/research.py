"""What was found out about a plan, in one line: `[VERIFIED: source | finding | impact]`.

That word is the engine's. It is written where there is something to look up and all of it holds, and the source is then
what the engine itself has seen: that is all it answers for. Anything else is `[UNVERIFIED: …]` with the source that the
agent names, whatever it says of it. What an agent wrote cannot break the line, nor look like another one:
brackets, bars and line breaks in it are escaped, and `parse_finding` gives it back to the letter.

| what was looked up                 | resolution                                                       |
|------------------------------------|------------------------------------------------------------------|
| a claim does not hold              | UNRESOLVABLE                                                     |
| there is a claim, and all hold     | as the researcher says                                           |
| nothing, or it cannot be looked up | CONFIRMED and REFUTED are PARTIALLY_RESOLVED; the others stay    |

What researchers have found: unknowns, surfaced context, probed risks. Ids are given here.

Rules:
- a finding is verified if it rests on claims and the engine has found all of them to be true;
- a false claim is held against its author, and what rests on it is no evidence;
- what contradicts the plan, and a risk that is at least SIGNIFICANT, is a challenge, whether its finder says so or not.
"""

from __future__ import annotations

import re
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
    ClaimKind,
    LookedUp,
    Origin,
    PlanSeverity,
    ProbedRisk,
    RepositoryClaim,
    SurfacedContext,
    SurfacedImpact,
    Unknown,
    UnknownResolution,
    UnknownType,
)
from proofstone.agents.rules.tool_rules import shortened, shown
from proofstone.plan_gate.models import HeldAgainst
from proofstone.plan_gate.rules.board import Entering, Exhibit

_SETTLED: Final = frozenset({UnknownResolution.CONFIRMED, UnknownResolution.REFUTED})
_SHOWN: Final = 200
_SEEN: Final = 2000
_ESCAPES: Final = {
    **{sign: f"\\{sign}" for sign in "\\|[]"},
    "\n": "\\n",
    "\r": "\\r",
    **{sign: f"\\u{ord(sign):04x}" for sign in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"},
}
"""What would end the line, the part or the form."""
_MEANT: Final = {written: sign for sign, written in _ESCAPES.items()}
_ESCAPED: Final = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_PART: Final = r"((?:[^\\|\[\]\n]|\\.)*)"
_FORM: Final = re.compile(rf"\[(UN)?VERIFIED: {_PART} \| {_PART} \| {_PART}\]")

_CLAIMED: Final = {
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


@dataclass(frozen=True)
class FoundOut:
    """A finding, in its parts."""

    verified: bool
    source: str
    finding: str
    impact: str


def is_verified(looked: Sequence[LookedUp]) -> bool:
    """Whether there was something to look up, and all of it holds."""
    return bool(looked) and all(item.holds for item in looked)


def is_substantial(looked: Sequence[LookedUp]) -> bool:
    """Whether it is verified by more than that files are there, or that something is not: that holds of any plan."""
    return is_verified(looked) and any(
        item.claim.kind is not ClaimKind.FILE and not item.claim.absent for item in looked
    )


def finding_text(draft: UnknownDraft, looked: Sequence[LookedUp]) -> tuple[str, UnknownResolution]:
    """The line, and what has become of the unknown."""
    text = _line("VERIFIED", _seen(looked), draft) if is_verified(looked) else unverified(draft)
    return text, _resolution(draft.resolution, looked)


def unverified(draft: UnknownDraft) -> str:
    return _line("UNVERIFIED", draft.source, draft)


def parse_finding(text: str) -> FoundOut | None:
    """None: it is not of this form."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    not_so, source, finding, impact = found.groups()
    return FoundOut(not_so is None, _meant(source), _meant(finding), _meant(impact))


def claimed(claim: RepositoryClaim) -> str:
    """A claim in words: `src/app.py is there`. In one line, and not longer than a person reads."""
    fields = ("path", "name", "revision", "entry", "url")
    words = {field: shown(shortened(getattr(claim, field), _SHOWN)) for field in fields}
    within = f" in {words['path']}" if claim.path else ""
    text = shown(shortened(" ".join(claim.text.split()), _SHOWN))
    return _CLAIMED[claim.kind][claim.absent].format(**words, within=within, text=text)


def _resolution(said: UnknownResolution, looked: Sequence[LookedUp]) -> UnknownResolution:
    if any(item.holds is False for item in looked):
        return UnknownResolution.UNRESOLVABLE
    return UnknownResolution.PARTIALLY_RESOLVED if said in _SETTLED and not is_verified(looked) else said


def _seen(looked: Sequence[LookedUp]) -> str:
    return shortened("; ".join(item.saw for item in looked), _SEEN)


def _line(word: str, source: str, draft: UnknownDraft) -> str:
    return f"[{word}: {' | '.join(map(_escaped, (source, draft.finding, draft.impact)))}]"


def _escaped(part: str) -> str:
    return "".join(_ESCAPES.get(sign, sign) for sign in part)


def _meant(part: str) -> str:
    return _ESCAPED.sub(lambda escape: _MEANT.get(escape[0], escape[0]), part)


@dataclass(frozen=True)
class Looked:
    """What the engine saw of the claims of one answer."""

    by_claim: Mapping[RepositoryClaim, LookedUp]

    @classmethod
    def of(cls, looked: Iterable[LookedUp]) -> Looked:
        return cls({item.claim: item for item in looked})

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
        self.surfaced = [item.model_copy(update=made) if item.id == finding else item for item in self.surfaced]
        self.risks = [risk.model_copy(update=made) if risk.id == finding else risk for risk in self.risks]

    def hold_against(self, agent: str, about: str, looked: Iterable[LookedUp]) -> None:
        false = (item for item in looked if item.holds is False)
        self.against += [
            HeldAgainst(agent=agent, iteration=self._iteration, about=about, looked=item) for item in false
        ]

    def exhibits(self) -> dict[str, Exhibit]:
        """What a ruling may rest on, by its id.

        | what | settles |
        |---|---|
        | an unknown that is REFUTED or PARTIALLY_RESOLVED | the challenge that it was about |
        | surfaced context that confirms the approach | any challenge |
        | what says that the concern is right, a risk, and what rests on a false claim | nothing |
        """
        against = (UnknownResolution.REFUTED, UnknownResolution.PARTIALLY_RESOLVED)
        verified, false = self._verified, {item.about for item in self.against}
        found = [
            Exhibit(unknown.id, about=unknown.affects_challenge, verified=unknown.id in verified)
            for unknown in self.unknowns
            if unknown.resolution in against and unknown.id not in self._confirming
        ]
        found += [
            Exhibit(item.id, against=item.generates_challenge, verified=item.id in verified)
            for item in self.surfaced
            if item.impact is SurfacedImpact.CONFIRMS_APPROACH
        ]
        return {item.id: item for item in found if item.id not in false}

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
