"""Talking with the convergence loop: what agents would answer, and a conversation that follows a script.

Claims are about what files hold, and where a file is says what the engine saw of it: what is under `here/` holds, what
is under `gone/` does not, what is under `beyond/` cannot be looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

from proofstone.agents.models import Completion, CompletionStatus
from proofstone.agents.roles.models.plan_gate import (
    ChallengeDraft,
    ChallengeRuling,
    ChallengesOutput,
    Dimension,
    DimensionScore,
    Directive,
    DirectiveKind,
    DirectiveReason,
    Dispute,
    PlanAuditOutput,
    ProbeOutput,
    QuestionDraft,
    ResearchMode,
    ResolveOutput,
    RiskDraft,
    SurfacedDraft,
    SurfaceOutput,
    SynthesisOutput,
    UnknownDraft,
    Withdrawal,
)
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeConfidence,
    ChallengeOrigin,
    ChallengeStatus,
    ClaimKind,
    ConvergenceStatus,
    IterationState,
    LookupResult,
    PlanQuality,
    PlanSeverity,
    RepositoryClaim,
    SurfacedImpact,
    SurfacedSource,
    TeamMode,
    UnknownResolution,
    UnknownType,
)
from proofstone.common.models import FrozenModel
from proofstone.plan_gate.models import PlanEventKind, PlanVerdict
from proofstone.plan_gate.rules.board import NewChallenge
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
    PlanLoopResult,
    PlanSubject,
    RecordIteration,
)
from proofstone.plan_gate.rules.loop import run_plan_loop
from proofstone.runtime.rules import EffectDone
from tests.talk import Prompter, drive
from tests.talk import Talk as BaseTalk

BLOCKING, SIGNIFICANT, MINOR = PlanSeverity.BLOCKING, PlanSeverity.SIGNIFICANT, PlanSeverity.MINOR
HIGH, MED, LOW = ChallengeConfidence.HIGH, ChallengeConfidence.MED, ChallengeConfidence.LOW
DONE = Completion(status=CompletionStatus.DONE, summary="done")
FAILS = PlanAgentFailure("no answer within 60 seconds")
UNREADABLE = PlanAgentFailure("no object in it", is_unreadable=True)


# Claims, and what the engine saw of them.


def about(path: str) -> RepositoryClaim:
    return RepositoryClaim(kind=ClaimKind.TEXT, path=path, text="the store is empty")


HERE, GONE, BEYOND = about("here/a.py"), about("gone/a.py"), about("beyond/a.py")
_HOLDS = {"here": True, "gone": False, "beyond": None}


def look(claim: RepositoryClaim) -> LookupResult:
    holds = _HOLDS[claim.path.split("/")[0]]
    return LookupResult(claim=claim, holds=holds, saw=f"{claim.path}: {holds}")


def claims_in(value: object) -> Iterator[RepositoryClaim]:
    if isinstance(value, RepositoryClaim):
        yield value
    elif isinstance(value, BaseModel):
        for _, part in value:
            yield from claims_in(part)
    elif isinstance(value, tuple):
        for part in value:
            yield from claims_in(part)


def heard(output: FrozenModel, *refusals: str) -> PlanAgentReply:
    """With everything looked up that is claimed in it."""
    return PlanAgentReply(output, tuple(map(look, dict.fromkeys(claims_in(output)))), refusals)


# What agents answer.


def draft(
    severity: PlanSeverity = SIGNIFICANT,
    *evidence: RepositoryClaim,
    confidence: ChallengeConfidence = HIGH,
    mitigation: str = "",
    claim: str = "The plan assumes that the store is empty",
) -> ChallengeDraft:
    return ChallengeDraft(
        claim=claim,
        concern="It is not after the first night.",
        failure_scenario="The second import fails, and nobody is told.",
        alternative="Import into a table of its own.",
        severity=severity,
        confidence=confidence,
        mitigation=mitigation,
        evidence=evidence,
    )


def entering(
    severity: PlanSeverity = SIGNIFICANT,
    *evidence: RepositoryClaim,
    origin: ChallengeOrigin = ChallengeOrigin.CHALLENGER,
    confidence: ChallengeConfidence = HIGH,
    mitigation: str = "",
    final: bool = False,
    line: int | None = None,
) -> NewChallenge:
    brought = draft(severity, *evidence, confidence=confidence, mitigation=mitigation)
    return NewChallenge(brought, origin, tuple(map(look, evidence)), line=line, is_final=final)


def challenges(
    *drafts: ChallengeDraft | PlanSeverity, withdraws: tuple[str, ...] = (), evidence: tuple[str, ...] = ()
) -> ChallengesOutput:
    return ChallengesOutput(
        completion=DONE,
        challenges=tuple(draft(one) if isinstance(one, PlanSeverity) else one for one in drafts),
        withdrawals=tuple(Withdrawal(challenge=id, why="it was a misreading", evidence=evidence) for id in withdraws),
    )


def unknown(
    challenge: str, *evidence: RepositoryClaim, resolution: UnknownResolution = UnknownResolution.REFUTED
) -> UnknownDraft:
    return UnknownDraft(
        description="whether the store is empty",
        type=UnknownType.API_BEHAVIOR,
        affects_challenge=challenge,
        suggested_query="store",
        resolution=resolution,
        source="a.py",
        finding="it is emptied each night",
        impact="the concern falls",
        evidence=evidence,
    )


def resolved(*unknowns: UnknownDraft) -> ResolveOutput:
    return ResolveOutput(completion=DONE, unknowns=unknowns)


def context(
    *evidence: RepositoryClaim,
    impact: SurfacedImpact = SurfacedImpact.CHANGES_NEEDED,
    challenge: ChallengeDraft | None = None,
) -> SurfacedDraft:
    return SurfacedDraft(
        source=SurfacedSource.CODEBASE,
        location="src/store.py",
        relevance="The store is filled at start.",
        impact=impact,
        challenge=challenge,
        evidence=evidence,
    )


def surfaced(*found: SurfacedDraft) -> SurfaceOutput:
    return SurfaceOutput(completion=DONE, surfaced=found)


def risk(
    severity: PlanSeverity = MINOR, *evidence: RepositoryClaim, challenge: ChallengeDraft | None = None
) -> RiskDraft:
    return RiskDraft(
        risk="The store is full",
        trigger="Too many imports.",
        cascade="Nothing is imported.",
        probability="LOW",
        severity=severity,
        challenge=challenge,
        evidence=evidence,
    )


def probed(*risks: RiskDraft) -> ProbeOutput:
    return ProbeOutput(completion=DONE, risks=risks)


def ruling(
    challenge: str,
    status: ChallengeStatus = ChallengeStatus.RESOLVED,
    *evidence: str,
    resolution: str = "it was looked into",
    mitigation: str = "",
) -> ChallengeRuling:
    return ChallengeRuling.model_validate(
        {
            "challenge": challenge,
            "status": status.value,
            "resolution": resolution,
            "mitigation": mitigation,
            "evidence": evidence,
        }
    )


def resolving(*ids: str) -> tuple[ChallengeRuling, ...]:
    """By a mitigation, which may settle anything."""
    return tuple(ruling(id, mitigation="Import into a table of its own.") for id in ids)


def unresolving(*ids: str) -> tuple[ChallengeRuling, ...]:
    return tuple(ruling(id, ChallengeStatus.UNRESOLVED) for id in ids)


CONTRADICTS_CONTEXT = DirectiveReason.NEW_BLOCKING_CONTRADICTS_CONTEXT


def directive(kind: DirectiveKind, reason: DirectiveReason | None = None) -> Directive:
    named = {"challenge": "C1", "contradicts": "S1"} if reason is CONTRADICTS_CONTEXT else {}
    return Directive(kind=kind, reason=reason, text="the store", **named)


def raising(mode: ResearchMode | None = ResearchMode.RESOLVE, tool: str = "Read", by: int = 2) -> Directive:
    return Directive(kind=DirectiveKind.RAISE_BUDGET, text="more to read", mode=mode, tool=tool, by=by)


def synthesis(
    *rulings: ChallengeRuling,
    directives: tuple[Directive, ...] = (),
    questions: tuple[QuestionDraft, ...] = (),
    scores: tuple[DimensionScore, ...] = (),
    disputes: tuple[Dispute, ...] = (),
) -> SynthesisOutput:
    return SynthesisOutput(
        completion=DONE,
        rulings=rulings,
        directives=directives,
        questions=questions,
        scores=scores,
        disputes=disputes,
    )


def score(dimension: Dimension, points: int) -> DimensionScore:
    return DimensionScore(dimension=dimension, score=points, evidence=f"{dimension} is seen")


def audit(*scores: DimensionScore, disputes: tuple[Dispute, ...] = ()) -> PlanAuditOutput:
    return PlanAuditOutput(completion=DONE, scores=scores, disputes=disputes, summary="It holds.")


# A conversation.


def subject(
    *rules: NewChallenge, team: TeamMode | None = TeamMode.BASE, answers: Mapping[str, str] | None = None
) -> PlanSubject:
    return PlanSubject("plans/PLAN.md", PlanQuality.ADEQUATE, team, rules, answers or {})


def name_of(need: PlanEffect) -> str:
    """Who is asked and in which iteration: `challenger 1`, `resolve 2`, `person 1`."""
    match need:
        case AskChallenges(origin=origin, snapshot=seen):
            return f"{origin} {seen.iteration}"
        case AskPlanResearch(mode=mode, snapshot=seen):
            return f"{mode} {seen.iteration}"
        case AskSynthesis(snapshot=seen):
            return f"synthesis {seen.iteration}"
        case AskPlanAudit(snapshot=seen):
            return f"audit {seen.iteration}"
        case AskPlanQuestions(progress=progress):
            return f"person {len(progress.iterations)}"
        case RecordIteration(state=state):
            return f"iterated {state.iteration}"


def challenges_of(need: PlanEffect) -> tuple[Challenge, ...]:
    """As they are when it is asked."""
    match need:
        case RecordIteration(challenges=shown):
            return shown
        case AskPlanQuestions(progress=progress):
            return progress.challenges
        case _:
            return need.snapshot.challenges


_NOTHING_FOUND = {ResearchMode.RESOLVE: resolved(), ResearchMode.SURFACE: surfaced(), ResearchMode.PROBE: probed()}


def nothing(need: PlanEffect) -> PlanEffectResult:
    """What somebody answers who has nothing to say."""
    match need:
        case AskChallenges():
            return heard(challenges())
        case AskPlanResearch(mode=mode):
            return heard(_NOTHING_FOUND[mode])
        case AskSynthesis():
            return heard(synthesis())
        case AskPlanAudit():
            return heard(audit())
        case AskPlanQuestions(questions=questions):
            return PlanAnswers({one.challenge: "go on" for one in questions})
        case RecordIteration():
            return EffectDone()


@dataclass
class Talk(BaseTalk[tuple[PlanEffect, ...]]):
    """All that was said, and what came of it."""

    sent: list[tuple[PlanEffectResult, ...]] = field(default_factory=list)
    ended: PlanLoopResult | None = None

    @property
    def end(self) -> PlanLoopResult:
        assert self.ended is not None
        return self.ended

    @property
    def asked(self) -> list[str]:
        return [name_of(need) for needs in self.needs for need in needs if not isinstance(need, RecordIteration)]

    def asked_in(self, iteration: int) -> list[str]:
        return [name.split()[0] for name in self.asked if name.endswith(f" {iteration}")]

    @property
    def came(self) -> tuple[ConvergenceStatus, PlanVerdict | None]:
        """How it came out."""
        return self.end.decision.status, self.end.decision.verdict

    def need(self, name: str) -> PlanEffect:
        return next(need for needs in self.needs for need in needs if name_of(need) == name)

    def seen(self, name: str) -> dict[str, Challenge]:
        """The challenges when that was asked."""
        return {one.id: one for one in challenges_of(self.need(name))}

    @property
    def states(self) -> tuple[IterationState, ...]:
        return self.end.progress.iterations

    @property
    def challenges(self) -> dict[str, Challenge]:
        return {one.id: one for one in self.end.progress.challenges}

    @property
    def statuses(self) -> dict[str, str]:
        return {one.id: one.status.value for one in self.end.progress.challenges}

    def events(self, kind: PlanEventKind) -> list[str]:
        return [one.text for one in self.end.progress.events if one.kind is kind]


def converse(about: PlanSubject, answer: Callable[[PlanEffect], PlanEffectResult]) -> Talk:
    talk = Talk()

    def send(needs: tuple[PlanEffect, ...]) -> tuple[PlanEffectResult, ...]:
        talk.needs.append(needs)
        talk.sent.append(tuple(map(answer, needs)))
        return talk.sent[-1]

    talk.ended = drive(run_plan_loop(about), send)
    return talk


Scripted = FrozenModel | PlanEffectResult | Mapping[str, str]
Script = Mapping[str, Scripted | list[Scripted]]
"""By name of who is asked, what each says, in turn if it is a list. Nobody else has anything to say."""


def follow(about: PlanSubject, script: Script | None = None) -> Talk:
    """All of the script must be used."""
    once: Script = {name: said if isinstance(said, list) else [said] for name, said in (script or {}).items()}
    prompter: Prompter[Scripted] = Prompter(once)
    talk = converse(about, lambda need: _as_sent(prompter.read(name_of(need)), need))
    assert not prompter.unread(), f"nobody asked for {prompter.unread()}, only {talk.asked}"
    return talk


def _as_sent(said: Scripted | None, need: PlanEffect) -> PlanEffectResult:
    if said is None:
        return nothing(need)
    if isinstance(said, FrozenModel):
        return heard(said)
    return PlanAnswers(said) if isinstance(said, Mapping) else said
