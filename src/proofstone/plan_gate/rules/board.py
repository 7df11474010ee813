"""The challenges against a plan, and every guard on what may become of them.

Rules:
- a challenge that rests on claims of which none is true is withdrawn at once; if it is BLOCKING, it may be;
- of those that one source brings, so many are taken as its cap says; the rest, ranked by severity, is put off
  (`DEFERRED_SURFACED`): it stands in the report and is not discussed;
- at most 8 are active, that is OPEN or UNRESOLVED, at any time; a graver one then takes the place of the weakest;
- what is settled stays settled; who doubts it brings a new challenge;
- only a MINOR one may be DEFERRED, and one that is still open at the end is;
- a challenge that is more than MINOR is settled by evidence or a mitigation, not by words alone; a BLOCKING one by
  evidence that the engine has seen itself, the person's answer, or a mitigation; what the rules have found in the
  plan's text not by a mitigation that is not in it;
- what makes a plan impossible to run is settled by editing the plan and by nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from proofstone.agents.roles.models.plan_gate import ChallengeDraft, Ruling
from proofstone.agents.roles.models.plan_gate_records import (
    Challenge,
    ChallengeConfidence,
    ChallengeStatus,
    LookedUp,
    Origin,
    PlanSeverity,
)
from proofstone.plan_gate.models import EventKind, PlanEvent

MOST_ACTIVE: Final = 8
PERSON: Final = "person"
FEWEST_WORDS: Final = 3
"""Of a mitigation: with fewer, nothing is said that anybody could do."""
_SETTLED: Final = (ChallengeStatus.RESOLVED, ChallengeStatus.WITHDRAWN)


@dataclass(frozen=True)
class Entering:
    """A challenge at the door."""

    draft: ChallengeDraft
    origin: Origin
    looked: tuple[LookedUp, ...] = ()
    line: int | None = None
    """Of the plan."""
    final: bool = False
    """Nothing but an edit of the plan settles it."""
    rule: str = ""
    """Which rule has found it."""

    @property
    def false(self) -> tuple[LookedUp, ...]:
        return tuple(item for item in self.looked if item.holds is False)


@dataclass(frozen=True)
class Exhibit:
    """Something that speaks for the plan: what a ruling may rest on."""

    id: str
    about: str | None = None
    """The one challenge that it settles; None: any but the one that came of it."""
    against: str | None = None
    """The challenge that came of it, which it cannot settle."""
    verified: bool = False
    """The engine has seen itself what it rests on, and that is more than that some file is there."""

    def settles(self, challenge: Challenge) -> bool:
        if self.about not in (None, challenge.id) or challenge.id == self.against:
            return False
        grave = challenge.severity is PlanSeverity.BLOCKING or challenge.origin is Origin.RULES
        return self.verified or not grave


@dataclass
class Board:
    challenges: dict[str, Challenge] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    most: int = MOST_ACTIVE
    """That may be active at once. Where nobody discusses them, room is no matter."""
    evidence: dict[str, str] = field(default_factory=dict)
    events: list[PlanEvent] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    """Challenges that the person has said something about."""
    iteration: int = 1
    created: int = 0
    """Challenges that became active in this iteration."""
    settled: int = 0
    """Challenges that were resolved or withdrawn in it."""
    _final: set[str] = field(default_factory=set)
    _refuted_ids: set[str] = field(default_factory=set)
    """Challenges that rest on nothing that is true."""

    def begin(self, iteration: int) -> None:
        self.iteration, self.created, self.settled = iteration, 0, 0

    @property
    def all(self) -> tuple[Challenge, ...]:
        return tuple(self.challenges.values())

    @property
    def active(self) -> tuple[Challenge, ...]:
        return tuple(item for item in self.all if item.status.is_open)

    @property
    def open_to_discussion(self) -> tuple[Challenge, ...]:
        """Active ones that somebody could settle."""
        return tuple(item for item in self.active if item.id not in self._final)

    # Coming in.

    def admit(self, entering: Sequence[Entering], most: int) -> list[str]:
        """Each gets an id, in the order in which they came; at most so many become active. All ids, in that order."""
        ids = [self._numbered(item) for item in entering]
        sound = [id for id, one in zip(ids, entering, strict=True) if not self._refuted(id, one)]
        ranked = sorted(sound, key=lambda id: _rank(self.challenges[id]))
        for id in ranked[most:]:
            self._put_off(id, f"no more than {most} could be taken", EventKind.OVERFLOW)
        for id in ranked[:most]:
            self._take_in(id)
        return ids

    def readmit(self) -> None:
        """BLOCKING ones that were put off come in as soon as there is room: nothing that blocks is lost."""
        for item in self.all:
            if item.status is ChallengeStatus.DEFERRED_SURFACED and item.severity is PlanSeverity.BLOCKING:
                self._take_in(item.id)

    def _numbered(self, one: Entering) -> str:
        id = f"C{len(self.challenges) + 1}"
        draft = one.draft
        self.challenges[id] = Challenge(
            id=id,
            origin=one.origin,
            claim=draft.claim,
            concern=draft.concern,
            failure_scenario=draft.failure_scenario,
            alternative=draft.alternative,
            severity=draft.severity,
            confidence=draft.confidence,
            status=ChallengeStatus.DEFERRED_SURFACED,  # until it is taken in
            mitigation=draft.mitigation,
            iteration_introduced=self.iteration,
        )
        if one.line is not None:
            self.lines[id] = one.line
        if one.rule:
            self.rules[id] = one.rule
        if one.final:
            self._final.add(id)
        if one.looked and not one.false:
            self.evidence[id] = "; ".join(seen.saw for seen in one.looked)
        return id

    def _refuted(self, id: str, one: Entering) -> bool:
        """Whether nothing that it rests on is true. What blocks is not lost for a misquotation: it may be withdrawn
        for that, but by a ruling."""
        if not one.false or any(looked.holds for looked in one.looked):
            return False
        self._refuted_ids.add(id)
        if one.draft.severity is PlanSeverity.BLOCKING:
            return False
        saw = "; ".join(looked.saw for looked in one.false)
        self._becomes(id, ChallengeStatus.WITHDRAWN, resolution=f"what it rests on is not true: {saw}")
        return True

    def _take_in(self, id: str) -> None:
        challenge = self.challenges[id]
        if len(self.active) >= self.most:
            weakest = max(self.active, key=_rank)
            if challenge.severity.rank >= weakest.severity.rank:
                self._put_off(id, f"{self.most} are active already", EventKind.OVERFLOW)
                return
            self._put_off(weakest.id, f"{id}, which is {challenge.severity}, took its place", EventKind.DISPLACED)
        self._becomes(id, ChallengeStatus.OPEN, resolution="")
        self.created += challenge.iteration_introduced == self.iteration

    def _put_off(self, id: str, why: str, kind: EventKind) -> None:
        if self.challenges[id].status is ChallengeStatus.DEFERRED_SURFACED and self.challenges[id].resolution:
            return  # it was said before
        self._becomes(id, ChallengeStatus.DEFERRED_SURFACED, resolution=f"put off: {why}")
        self.note(kind, f"{id} ({self.challenges[id].severity}) was put off: {why}")

    # What becomes of them.

    def rule(self, ruling: Ruling, exhibits: Mapping[str, Exhibit]) -> None:
        if self._says_again(ruling):
            return
        if why := self._why_not(ruling, exhibits):
            self.note(EventKind.REFUSED, f"{ruling.challenge} → {ruling.status} was not allowed: {why}")
            return
        challenge = self.challenges[ruling.challenge]
        status = ChallengeStatus(ruling.status)
        mitigation = ruling.mitigation.strip() or challenge.mitigation
        self._becomes(challenge.id, status, resolution=ruling.resolution.strip(), mitigation=mitigation)
        if ruling.evidence:
            self.evidence[challenge.id] = ", ".join(ruling.evidence)
        self.settled += status in _SETTLED

    def withdraw(self, id: str, why: str, by: Origin) -> None:
        """Whoever brought a challenge can take it back."""
        challenge = self.challenges.get(id)
        if challenge is None or challenge.origin is not by or not challenge.status.is_open:
            self.note(EventKind.REFUSED, f"{by} cannot withdraw {id}: it is not an open challenge of its own")
            return
        self._becomes(id, ChallengeStatus.WITHDRAWN, resolution=why)
        self.settled += 1

    def heard(self, id: str, text: str) -> None:
        """The person has answered: it is for the next iteration to say what follows."""
        self.answered.add(id)
        self._becomes(id, ChallengeStatus.OPEN, resolution=f"the person says: {text}")

    def settled_by_person(self, id: str, text: str) -> None:
        """Where nobody else is asked, the person's word settles what an edit need not."""
        self.answered.add(id)
        self._becomes(id, ChallengeStatus.RESOLVED, resolution=f"the person says: {text}")
        self.evidence[id] = PERSON
        self.settled += 1

    def can_be_answered(self, id: str) -> str:
        """Why a person's word would not settle it; empty if it would."""
        if id not in self.challenges:
            return f"there is no challenge {id}"
        if id in self._final:
            return f"{id} is in the plan's text: edit the plan"
        return "" if self.challenges[id].status.is_open else f"{id} is {self.challenges[id].status}"

    def close(self) -> None:
        """At the end, what is MINOR and still open is left for later."""
        for item in self.active:
            if item.severity is PlanSeverity.MINOR:
                self._becomes(item.id, ChallengeStatus.DEFERRED, resolution=item.resolution or "still open at the end")

    def note(self, kind: EventKind, text: str) -> None:
        self.events.append(PlanEvent(iteration=self.iteration, kind=kind, text=text))

    def _says_again(self, ruling: Ruling) -> bool:
        """What is settled already: that is no offence, and changes neither the words nor the evidence."""
        challenge = self.challenges.get(ruling.challenge)
        return challenge is not None and not challenge.status.is_open and challenge.status == ruling.status

    def _why_not(self, ruling: Ruling, exhibits: Mapping[str, Exhibit]) -> str:
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
        return self._unsettled(challenge, ruling, exhibits) if status in _SETTLED else ""

    def _unsettled(self, challenge: Challenge, ruling: Ruling, exhibits: Mapping[str, Exhibit]) -> str:
        if not ruling.resolution.strip():
            return "nothing says how it was settled"
        if challenge.severity is PlanSeverity.MINOR:
            return ""
        if ruling.status == ChallengeStatus.WITHDRAWN and challenge.id in self._refuted_ids:
            return ""
        # What code has found in the plan's text is not answered by words that are not in it.
        may_be_mitigated = ruling.status == ChallengeStatus.RESOLVED and challenge.origin is not Origin.RULES
        mitigated = may_be_mitigated and len(ruling.mitigation.split()) >= FEWEST_WORDS
        heard = PERSON in ruling.evidence and challenge.id in self.answered
        shown = (exhibits[id] for id in ruling.evidence if id in exhibits)
        if mitigated or heard or any(item.settles(challenge) for item in shown):
            return ""
        seen = challenge.severity is PlanSeverity.BLOCKING or challenge.origin is Origin.RULES
        needed = "evidence against it that the engine has seen" if seen else "evidence against it"
        if challenge.origin is Origin.RULES:
            return f"what the rules have found is settled by {needed}, or the person's answer, or an edit"
        return f"a {challenge.severity} challenge is settled by {needed}, a mitigation or the person's answer"

    def _becomes(self, id: str, status: ChallengeStatus, **changes: str) -> None:
        self.challenges[id] = self.challenges[id].model_copy(update={"status": status, **changes})


def _rank(challenge: Challenge) -> tuple[int, int, int]:
    """The gravest and surest first; among equals, those that were there before."""
    return challenge.severity.rank, challenge.confidence.rank, int(challenge.id[1:])


def too_weak(draft: ChallengeDraft) -> bool:
    """What a devil's advocate does not bring."""
    return draft.severity is PlanSeverity.MINOR or draft.confidence is ChallengeConfidence.LOW


def dangling(ids: Iterable[str], known: Collection[str]) -> list[str]:
    """References that lead nowhere."""
    return [id for id in dict.fromkeys(ids) if id not in known]
