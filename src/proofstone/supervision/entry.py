"""Before the work: an agent shows that it understands its task, and how it means to do it."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.agents.models import Fault, FaultKind
from proofstone.agents.roles.models.gate import ToJudge
from proofstone.agents.roles.models.payload import Part
from proofstone.agents.rules.answer import Malformed
from proofstone.common.models import Verdict
from proofstone.supervision.attended import Attended, Word, asked_about
from proofstone.supervision.models.context import brief
from proofstone.supervision.models.events import GatePassed
from proofstone.supervision.models.messages import (
    ChallengeResponse,
    ImpactMessage,
    ImpactRejected,
    ImpactVerified,
    PlanApproved,
    Rejected,
    WorkPlan,
)
from proofstone.supervision.models.understanding import (
    Attempts,
    GateDecision,
    GaveUp,
    ImpactAnalysis,
    Item,
    ItemVerdict,
    Questioned,
    SentBack,
    Tier,
    Verified,
)
from proofstone.supervision.rules.amendments import Amendment
from proofstone.supervision.rules.attendance import PLANS, PlanSaid, Wanted, Words
from proofstone.supervision.rules.context import thaw
from proofstone.supervision.rules.evidence import Assigned, look_at, wanted
from proofstone.supervision.rules.mentions import Planned, check_plan
from proofstone.supervision.rules.questions import challenge as challenge_for
from proofstone.supervision.rules.understanding import (
    ATTEMPTS,
    GO_ON,
    ITEMS,
    MEANING,
    answered,
    challenge,
    impact,
    judge,
    judged_items,
    not_taken_in,
    plan,
    rejected,
    unreadable,
)
from proofstone.supervision.rules.wire import write


@dataclass(frozen=True)
class Entry:
    agent: Attended

    # The impact analysis.

    def ask_impact(self, before: str = "") -> Word:
        gate = self._gate
        asked = impact(self.agent.phase, gate.attempt, ATTEMPTS[gate.tier], ITEMS[gate.tier])
        return self.agent.ask(Wanted.IMPACT, f"{before}\n\n{asked}".strip())

    def impact_said(self, said: Part | Malformed) -> Word:
        if not isinstance(said, ImpactAnalysis):
            why = said.why if isinstance(said, Malformed) else "it is no impact analysis"
            nothing = tuple(ItemVerdict(item=item, verdict=Verdict.FAIL, detail=why) for item in ITEMS[self._gate.tier])
            return self._decided(*judge(self._gate, nothing), unreadable(Wanted.IMPACT, why))
        self.agent.set(analysis=said)
        gate, subject = self._gate, self.agent.subject
        facts = subject.facts(wanted(said))
        looked_up = look_at(said, facts, Assigned(declared=subject.files, upstream=subject.upstream))
        text = write(ImpactMessage(phase=self.agent.phase, attempt=gate.attempt, of=ATTEMPTS[gate.tier], analysis=said))
        return self._decided(*judge(gate, (*looked_up, *self._judged(text, judged_items(gate.tier)))))

    def challenge_said(self, said: Part | Malformed) -> Word:
        gate, analysis = self._gate, self.agent.state.analysis
        if not isinstance(said, Words) or analysis is None:
            return self._decided(*answered(gate, ()))
        first = ImpactMessage(phase=self.agent.phase, attempt=gate.attempt, of=ATTEMPTS[gate.tier], analysis=analysis)
        reply = ChallengeResponse(phase=self.agent.phase, content=said.content)
        text = f"{write(first)}\n\nIt was asked: {self.agent.state.challenged}\n\n{write(reply)}"
        return self._decided(*answered(gate, self._judged(text, gate.asked)))

    def _judged(self, said: str, items: tuple[Item, ...]) -> tuple[ItemVerdict, ...]:
        found = self.agent.judged(said, *(ToJudge(item=item, holds_if=MEANING[item]) for item in items))
        return tuple(
            ItemVerdict(item=item, verdict=one.verdict, detail=one.detail)
            for item, one in zip(items, found, strict=True)
        )

    def _decided(self, gate: Attempts, decision: GateDecision, before: str = "") -> Word:
        self.agent.set(gate=gate)
        phase = self.agent.phase
        match decision:
            case Verified():
                self.agent.caps(*(f"{item}: {MEANING[item]}" for item in decision.unverifiable))
                return self._verified(write(ImpactVerified(phase=phase)))
            case Questioned():
                about = asked_about(self.agent)
                question, text = challenge(phase, [challenge_for(entry, about) for entry in decision.items])
                self.agent.set(challenged=question)
                return self.agent.ask(Wanted.CHALLENGE, text)
            case SentBack():
                why = brief("; ".join(reason.detail or f"{reason.item} does not hold" for reason in decision.reasons))
                told = write(ImpactRejected(phase=phase, reason=why))
                return self.ask_impact(f"{before}\n\n{told}\n\n{rejected(decision.reasons)}".strip())
            case GaveUp():
                why = brief("; ".join(dict.fromkeys(reason.detail for reason in decision.reasons)))
                return Fault(kind=FaultKind.DRIFTED, why=f"it does not understand its task: {why}")
        raise TypeError(f"{decision!r} does not follow from an analysis")

    def _verified(self, told: str) -> Word:
        if self._gate.tier is Tier.IMPLEMENTER:
            return self.ask_plan(told)
        return self._passed(told)

    def _passed(self, told: str) -> Word:
        self.agent.feed(GatePassed())
        self.agent.set(reader=thaw(self.agent.state.reader), gate=None)
        return self.agent.resume(f"{told}\n\n{GO_ON}")

    # The plan.

    def ask_plan(self, before: str) -> Word:
        return self.agent.ask(Wanted.PLAN, plan(self.agent.phase, before))

    def plan_said(self, said: Part | Malformed) -> Word:
        agent, state = self.agent, self.agent.state
        number = state.plans + 1
        agent.set(plans=number)
        why = self._why_not(said)
        if why:
            if number >= PLANS:
                return Fault(kind=FaultKind.DRIFTED, why=f"its plan was sent back {number} times: {why}")
            return self.ask_plan(write(Rejected(phase=agent.phase, reason=brief(why))))
        if isinstance(said, PlanSaid):
            agent.set(plan=said, plans=0)
        refused = self._take_in()
        told = "\n\n".join((write(PlanApproved(phase=agent.phase)), *refused))
        return self._passed(told) if state.gate is not None else agent.resume(f"{told}\n\n{GO_ON}")

    def _take_in(self) -> list[str]:
        """What it was told of and has planned is a part of its task from now on. What the plan gate's rules have
        something against is not, and is left to whoever plans: what it is told of that."""
        state, subject = self.agent.state, self.agent.subject
        refused: list[str] = []
        for item in subject.board.added():
            if item.number in state.told:
                version = f"GC-v{item.number + 1}"
                more = Amendment(task=subject.id, requirement=item.text, number=item.number, why=version)
                if why := subject.amend(more):
                    refused.append(not_taken_in(version, why))
        self.agent.set(told=())
        return refused

    def _why_not(self, said: Part | Malformed) -> str:
        if not isinstance(said, PlanSaid):
            return said.why if isinstance(said, Malformed) else "it is no plan"
        state, subject = self.agent.state, self.agent.subject
        worked = subject.sight.worked()
        against = Planned(
            declared=state.declared,
            absent=frozenset(path for path in said.files if not subject.is_there(path)),
            announced=state.amended,
            worked=worked.files,
            signatures=worked.signatures,
            said=state.answer,
        )
        planned = WorkPlan(
            phase=self.agent.phase,
            files=said.files,
            changes=said.changes,
            risk=said.risk,
            interface_impact=said.interface_impact,
        )
        return "; ".join(check_plan(planned, against).reasons)

    @property
    def _gate(self) -> Attempts:
        gate = self.agent.state.gate
        if gate is None:
            raise TypeError("it is not at the understanding gate")
        return gate
