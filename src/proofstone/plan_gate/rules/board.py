"""The challenges against a plan, and the guards on how they may be settled.

Rules:

- a challenge whose claims are all false is withdrawn at once; if it is BLOCKING, a ruling may withdraw it;
- each source may bring as many challenges as its cap allows; the rest, ranked by severity, is deferred
  (`DEFERRED_SURFACED`): it is in the report and is not discussed;
- at most 8 challenges are active, that is OPEN or UNRESOLVED, at any time; a more severe one replaces the weakest;
- a settled challenge stays settled; a new doubt needs a new challenge;
- only a MINOR challenge may be DEFERRED, and one that is still open at the end is;
- a challenge that is more than MINOR needs evidence or a mitigation, not just words; a BLOCKING one needs evidence
  that Proofstone itself has seen, the person's answer, or a mitigation; a finding of the rules in the plan's text
  cannot be settled by a mitigation that is not in the text;
- a problem that makes a plan impossible to run is settled only by editing the plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.roles.models.plan_gate import ChallengeDraft, ChallengeRuling, Withdrawal
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeConfidence,
    ChallengeOrigin,
    ChallengeStatus,
    LookupResult,
    PlanSeverity,
)
from proofstone.plan_gate.models import PlanEvent, PlanEventKind

MAX_ACTIVE: Final = 8
PERSON_EVIDENCE: Final = "person"
MIN_MITIGATION_WORDS: Final = 3
"""Minimum for a mitigation: fewer words say nothing that anybody could do."""
_SETTLED: Final = (ChallengeStatus.RESOLVED, ChallengeStatus.WITHDRAWN)


@dataclass(frozen=True)
class NewChallenge:
    """A challenge that is about to be admitted."""

    draft: ChallengeDraft
    origin: ChallengeOrigin
    lookups: tuple[LookupResult, ...] = ()
    line: int | None = None
    """The line of the plan."""
    is_final: bool = False
    """Only an edit of the plan settles it."""
    rule: str = ""
    """The rule that found it."""

    @property
    def false_lookups(self) -> tuple[LookupResult, ...]:
        """The claims that are false."""
        return tuple(lookup for lookup in self.lookups if lookup.holds is False)


@dataclass(frozen=True)
class Exhibit:
    """Evidence for the plan, on which a ruling may rest."""

    id: str
    about: str | None = None
    """The only challenge that it settles; None for any except the one that it led to."""
    against: str | None = None
    """The challenge that it led to, which it cannot settle."""
    is_verified: bool = False
    """Proofstone itself has seen what it rests on, and that is more than the existence of a file."""

    def settles(self, challenge: Challenge) -> bool:
        """Whether it can settle the challenge."""
        if self.about not in (None, challenge.id) or challenge.id == self.against:
            return False
        is_serious = challenge.severity is PlanSeverity.BLOCKING or challenge.origin is ChallengeOrigin.RULES
        return self.is_verified or not is_serious


@dataclass
class ChallengeBoard:
    """The challenges of a run."""

    challenges: dict[str, Challenge] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    max_active: int = MAX_ACTIVE
    """How many may be active at once. If nobody discusses them, there is no limit."""
    evidence: dict[str, str] = field(default_factory=dict)
    events: list[PlanEvent] = field(default_factory=list)
    answered_ids: set[str] = field(default_factory=set)
    """Challenges that the person has answered."""
    iteration: int = 1
    created_count: int = 0
    """Challenges that became active in this iteration."""
    settled_count: int = 0
    """Challenges that were resolved or withdrawn in this iteration."""
    _final: set[str] = field(default_factory=set)
    _refuted_ids: set[str] = field(default_factory=set)
    """Challenges whose claims are all false."""

    def begin(self, iteration: int) -> None:
        """Begin an iteration."""
        self.iteration, self.created_count, self.settled_count = iteration, 0, 0

    @property
    def all(self) -> tuple[Challenge, ...]:
        return tuple(self.challenges.values())

    @property
    def active(self) -> tuple[Challenge, ...]:
        return tuple(challenge for challenge in self.all if challenge.status.is_open)

    @property
    def open_to_discussion(self) -> tuple[Challenge, ...]:
        """Active challenges that somebody could settle."""
        return tuple(challenge for challenge in self.active if challenge.id not in self._final)

    # Admission

    def admit(self, entering: Sequence[NewChallenge], most: int) -> list[str]:
        """Assign an id to each challenge in order, activate at most `most` of them, and return all ids."""
        ids = [self._add_challenge(challenge) for challenge in entering]
        valid_ids = [id for id, challenge in zip(ids, entering, strict=True) if not self._check_refuted(id, challenge)]
        ranked = sorted(valid_ids, key=lambda id: _rank(self.challenges[id]))
        for id in ranked[most:]:
            self._defer(id, f"no more than {most} could be taken", PlanEventKind.OVERFLOW)
        for id in ranked[:most]:
            self._activate(id)
        return ids

    def readmit(self) -> None:
        """Activate deferred BLOCKING challenges as soon as there is room, so that nothing that blocks is lost."""
        for challenge in self.all:
            if challenge.status is ChallengeStatus.DEFERRED_SURFACED and challenge.severity is PlanSeverity.BLOCKING:
                self._activate(challenge.id)

    def _add_challenge(self, entering: NewChallenge) -> str:
        id = f"C{len(self.challenges) + 1}"
        draft = entering.draft
        self.challenges[id] = Challenge(
            id=id,
            origin=entering.origin,
            claim=draft.claim,
            concern=draft.concern,
            failure_scenario=draft.failure_scenario,
            alternative=draft.alternative,
            severity=draft.severity,
            confidence=draft.confidence,
            status=ChallengeStatus.DEFERRED_SURFACED,  # until it is activated
            mitigation=draft.mitigation,
            iteration_introduced=self.iteration,
        )
        if entering.line is not None:
            self.lines[id] = entering.line
        if entering.rule:
            self.rules[id] = entering.rule
        if entering.is_final:
            self._final.add(id)
        if entering.lookups and not entering.false_lookups:
            self.evidence[id] = "; ".join(lookup.saw for lookup in entering.lookups)
        return id

    def _check_refuted(self, id: str, entering: NewChallenge) -> bool:
        """Whether all claims of the challenge are false. Then it is withdrawn.

        But a BLOCKING challenge must not be lost because of a misquotation: only a ruling may withdraw it.
        """
        if not entering.false_lookups or any(lookup.holds for lookup in entering.lookups):
            return False
        self._refuted_ids.add(id)
        if entering.draft.severity is PlanSeverity.BLOCKING:
            return False
        observations = "; ".join(lookup.saw for lookup in entering.false_lookups)
        self._set_status(id, ChallengeStatus.WITHDRAWN, resolution=f"what it rests on is not true: {observations}")
        return True

    def _activate(self, id: str) -> None:
        challenge = self.challenges[id]
        if len(self.active) >= self.max_active:
            weakest = max(self.active, key=_rank)
            if challenge.severity.rank >= weakest.severity.rank:
                self._defer(id, f"{self.max_active} are active already", PlanEventKind.OVERFLOW)
                return
            self._defer(weakest.id, f"{id}, which is {challenge.severity}, took its place", PlanEventKind.DISPLACED)
        self._set_status(id, ChallengeStatus.OPEN, resolution="")
        self.created_count += challenge.iteration_introduced == self.iteration

    def _defer(self, id: str, why: str, kind: PlanEventKind) -> None:
        if self.challenges[id].status is ChallengeStatus.DEFERRED_SURFACED and self.challenges[id].resolution:
            return  # already reported
        self._set_status(id, ChallengeStatus.DEFERRED_SURFACED, resolution=f"put off: {why}")
        self.note(kind, f"{id} ({self.challenges[id].severity}) was put off: {why}")

    # Rulings

    def rule(self, ruling: ChallengeRuling, exhibits: Mapping[str, Exhibit]) -> None:
        """Apply a ruling, if the guards allow it."""
        if self._is_repeated(ruling):
            return
        if why := self._find_refusal(ruling, exhibits):
            self.note(PlanEventKind.REFUSED, f"{ruling.challenge} → {ruling.status} was not allowed: {why}")
            return
        challenge = self.challenges[ruling.challenge]
        status = ChallengeStatus(ruling.status)
        mitigation = ruling.mitigation.strip() or challenge.mitigation
        self._set_status(challenge.id, status, resolution=ruling.resolution.strip(), mitigation=mitigation)
        if ruling.evidence:
            self.evidence[challenge.id] = ", ".join(ruling.evidence)
        self.settled_count += status in _SETTLED

    def withdraw(self, withdrawal: Withdrawal, by: ChallengeOrigin, exhibits: Mapping[str, Exhibit]) -> None:
        """Withdraw a challenge. Only its author may do that, with the evidence that a ruling would need."""
        id, why = withdrawal.challenge, withdrawal.why
        challenge = self.challenges.get(id)
        if challenge is None or challenge.origin is not by or not challenge.status.is_open:
            self.note(PlanEventKind.REFUSED, f"{by} cannot withdraw {id}: it is not an open challenge of its own")
            return
        ruling = ChallengeRuling(challenge=id, status="WITHDRAWN", resolution=why, evidence=withdrawal.evidence)
        if missing := self._find_missing_evidence(challenge, ruling, exhibits):
            self.note(PlanEventKind.REFUSED, f"{by} cannot withdraw {id}: {missing}")
            return
        self._set_status(id, ChallengeStatus.WITHDRAWN, resolution=why)
        if withdrawal.evidence:
            self.evidence[id] = ", ".join(withdrawal.evidence)
        self.settled_count += 1

    def record_answer(self, id: str, text: str) -> None:
        """Record the person's answer. The next iteration decides what follows."""
        self.answered_ids.add(id)
        self._set_status(id, ChallengeStatus.OPEN, resolution=f"the person says: {text}")

    def settle_by_answer(self, id: str, text: str) -> None:
        """Settle a challenge by the person's answer. Used if no agent is asked."""
        self.answered_ids.add(id)
        self._set_status(id, ChallengeStatus.RESOLVED, resolution=f"the person says: {text}")
        self.evidence[id] = PERSON_EVIDENCE
        self.settled_count += 1

    def explain_unanswerable(self, id: str) -> str:
        """Explain why a person's answer would not settle the challenge; "" if it would."""
        if id not in self.challenges:
            return f"there is no challenge {id}"
        if id in self._final:
            return f"{id} is in the plan's text: edit the plan"
        return "" if self.challenges[id].status.is_open else f"{id} is {self.challenges[id].status}"

    def close(self) -> None:
        """Defer the MINOR challenges that are still open at the end."""
        for challenge in self.active:
            if challenge.severity is PlanSeverity.MINOR:
                self._set_status(
                    challenge.id, ChallengeStatus.DEFERRED, resolution=challenge.resolution or "still open at the end"
                )

    def note(self, kind: PlanEventKind, text: str) -> None:
        """Add an event."""
        self.events.append(PlanEvent(iteration=self.iteration, kind=kind, text=text))

    def _is_repeated(self, ruling: ChallengeRuling) -> bool:
        """Whether the ruling repeats a settled status. That is allowed, and changes neither the text nor the
        evidence.
        """
        challenge = self.challenges.get(ruling.challenge)
        return challenge is not None and not challenge.status.is_open and challenge.status == ruling.status

    def _find_refusal(self, ruling: ChallengeRuling, exhibits: Mapping[str, Exhibit]) -> str:
        challenge = self.challenges.get(ruling.challenge)
        status = ChallengeStatus(ruling.status)
        if challenge is None:
            return "there is no such challenge"
        if challenge.id in self._final:
            return "it is in the plan's text, and only an edit settles it"
        if not challenge.status.is_open:
            return f"it is {challenge.status} already"
        if status is ChallengeStatus.DEFERRED and challenge.severity is not PlanSeverity.MINOR:
            return f"only a MINOR challenge may be deferred, and it is {challenge.severity}"
        return self._find_missing_evidence(challenge, ruling, exhibits) if status in _SETTLED else ""

    def _find_missing_evidence(
        self, challenge: Challenge, ruling: ChallengeRuling, exhibits: Mapping[str, Exhibit]
    ) -> str:
        if not ruling.resolution.strip():
            return "nothing says how it was settled"
        if challenge.severity is PlanSeverity.MINOR:
            return ""
        if ruling.status == ChallengeStatus.WITHDRAWN and challenge.id in self._refuted_ids:
            return ""
        # A finding of code in the plan's text is not answered by words outside of it.
        may_be_mitigated = ruling.status == ChallengeStatus.RESOLVED and challenge.origin is not ChallengeOrigin.RULES
        is_mitigated = may_be_mitigated and len(ruling.mitigation.split()) >= MIN_MITIGATION_WORDS
        is_answered = PERSON_EVIDENCE in ruling.evidence and challenge.id in self.answered_ids
        cited_exhibits = (exhibits[id] for id in ruling.evidence if id in exhibits)
        if is_mitigated or is_answered or any(exhibit.settles(challenge) for exhibit in cited_exhibits):
            return ""
        needs_verification = challenge.severity is PlanSeverity.BLOCKING or challenge.origin is ChallengeOrigin.RULES
        required = "evidence against it that the engine has seen" if needs_verification else "evidence against it"
        if challenge.origin is ChallengeOrigin.RULES:
            return f"what the rules have found is settled by {required}, or the person's answer, or an edit"
        return f"a {challenge.severity} challenge is settled by {required}, a mitigation or the person's answer"

    def _set_status(self, id: str, status: ChallengeStatus, **changes: str) -> None:
        self.challenges[id] = self.challenges[id].model_copy(update={"status": status, **changes})


def _rank(challenge: Challenge) -> tuple[int, int, int]:
    """Sort key: most severe and most certain first, then the oldest."""
    return challenge.severity.rank, challenge.confidence.rank, int(challenge.id[1:])


def is_too_weak(draft: ChallengeDraft) -> bool:
    """Whether the challenge is too weak for a devil's advocate."""
    return draft.severity is PlanSeverity.MINOR or draft.confidence is ChallengeConfidence.LOW


def find_unknown_ids(ids: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the ids that do not exist."""
    return [id for id in dict.fromkeys(ids) if id not in known]
