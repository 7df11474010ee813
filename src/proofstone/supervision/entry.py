"""The understanding gate: before an agent works, it shows that it understands its task and submits a plan."""

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
        request = impact(self.agent.phase, gate.attempt, ATTEMPTS[gate.tier], ITEMS[gate.tier])
        return self.agent.ask(Wanted.IMPACT, f"{before}\n\n{request}".strip())

    def impact_said(self, answer: Part | Malformed) -> Word:
        if not isinstance(answer, ImpactAnalysis):
            why = answer.why if isinstance(answer, Malformed) else "it is not an impact analysis"
            failed_items = tuple(
                ItemVerdict(item=item, verdict=Verdict.FAIL, detail=why) for item in ITEMS[self._gate.tier]
            )
            return self._apply_decision(*judge(self._gate, failed_items), unreadable(Wanted.IMPACT, why))
        self.agent.set(analysis=answer)
        gate, subject = self._gate, self.agent.subject
        facts = subject.facts(wanted(answer))
        verified_items = look_at(answer, facts, Assigned(declared=subject.files, upstream=subject.upstream))
        text = write(
            ImpactMessage(phase=self.agent.phase, attempt=gate.attempt, of=ATTEMPTS[gate.tier], analysis=answer)
        )
        return self._apply_decision(*judge(gate, (*verified_items, *self._judge_items(text, judged_items(gate.tier)))))

    def challenge_said(self, answer: Part | Malformed) -> Word:
        gate, analysis = self._gate, self.agent.state.analysis
        if not isinstance(answer, Words) or analysis is None:
            return self._apply_decision(*answered(gate, ()))
        first = ImpactMessage(phase=self.agent.phase, attempt=gate.attempt, of=ATTEMPTS[gate.tier], analysis=analysis)
        reply = ChallengeResponse(phase=self.agent.phase, content=answer.content)
        text = f"{write(first)}\n\nIt was asked: {self.agent.state.challenged}\n\n{write(reply)}"
        return self._apply_decision(*answered(gate, self._judge_items(text, gate.asked)))

    def _judge_items(self, text: str, items: tuple[Item, ...]) -> tuple[ItemVerdict, ...]:
        judgements = self.agent.judged(text, *(ToJudge(item=item, holds_if=MEANING[item]) for item in items))
        return tuple(
            ItemVerdict(item=item, verdict=judgement.verdict, detail=judgement.detail)
            for item, judgement in zip(items, judgements, strict=True)
        )

    def _apply_decision(self, gate: Attempts, decision: GateDecision, before: str = "") -> Word:
        self.agent.set(gate=gate)
        phase = self.agent.phase
        match decision:
            case Verified():
                self.agent.caps(*(f"{item}: {MEANING[item]}" for item in decision.unverifiable))
                return self._finish_analysis(write(ImpactVerified(phase=phase)))
            case Questioned():
                about = asked_about(self.agent)
                question, text = challenge(
                    phase, [challenge_for(item_verdict, about) for item_verdict in decision.items]
                )
                self.agent.set(challenged=question)
                return self.agent.ask(Wanted.CHALLENGE, text)
            case SentBack():
                why = brief("; ".join(reason.detail or f"{reason.item} does not hold" for reason in decision.reasons))
                rejection = write(ImpactRejected(phase=phase, reason=why))
                return self.ask_impact(f"{before}\n\n{rejection}\n\n{rejected(decision.reasons)}".strip())
            case GaveUp():
                why = brief("; ".join(dict.fromkeys(reason.detail for reason in decision.reasons)))
                return Fault(kind=FaultKind.DRIFTED, why=f"the agent does not understand its task: {why}")
        raise TypeError(f"{decision!r} does not follow from an analysis")

    def _finish_analysis(self, message: str) -> Word:
        if self._gate.tier is Tier.IMPLEMENTER:
            return self.ask_plan(message)
        return self._pass_gate(message)

    def _pass_gate(self, message: str) -> Word:
        self.agent.feed(GatePassed())
        self.agent.set(reader=thaw(self.agent.state.reader), gate=None)
        return self.agent.resume(f"{message}\n\n{GO_ON}")

    # The plan.

    def ask_plan(self, before: str) -> Word:
        return self.agent.ask(Wanted.PLAN, plan(self.agent.phase, before))

    def plan_said(self, answer: Part | Malformed) -> Word:
        agent, state = self.agent, self.agent.state
        number = state.plans + 1
        agent.set(plans=number)
        why = self._find_plan_problems(answer)
        if why:
            if number >= PLANS:
                return Fault(kind=FaultKind.DRIFTED, why=f"its plan was sent back {number} times: {why}")
            return self.ask_plan(write(Rejected(phase=agent.phase, reason=brief(why))))
        if isinstance(answer, PlanSaid):
            agent.set(plan=answer, plans=0)
        refusals = self._apply_requirements()
        message = "\n\n".join((write(PlanApproved(phase=agent.phase)), *refusals))
        return self._pass_gate(message) if state.gate is not None else agent.resume(f"{message}\n\n{GO_ON}")

    def _apply_requirements(self) -> list[str]:
        """Add the requirements that the agent was told about and has planned to its task.

        A requirement that violates the plan gate's rules is not added and is left to the planner. Return what the agent
        is told about each of these.
        """
        state, subject = self.agent.state, self.agent.subject
        refusals: list[str] = []
        for requirement in subject.board.added():
            if requirement.number in state.told:
                version = f"GC-v{requirement.number + 1}"
                amendment = Amendment(
                    task=subject.id, requirement=requirement.text, number=requirement.number, why=version
                )
                if why := subject.amend(amendment):
                    refusals.append(not_taken_in(version, why))
        self.agent.set(told=())
        return refusals

    def _find_plan_problems(self, answer: Part | Malformed) -> str:
        if not isinstance(answer, PlanSaid):
            return answer.why if isinstance(answer, Malformed) else "it is not a plan"
        state, subject = self.agent.state, self.agent.subject
        worked = subject.sight.worked()
        expectations = Planned(
            declared=state.declared,
            absent=frozenset(path for path in answer.files if not subject.is_there(path)),
            announced=state.amended,
            worked=worked.files,
            signatures=worked.signatures,
            said=state.answer,
        )
        work_plan = WorkPlan(
            phase=self.agent.phase,
            files=answer.files,
            changes=answer.changes,
            risk=answer.risk,
            interface_impact=answer.interface_impact,
        )
        return "; ".join(check_plan(work_plan, expectations).reasons)

    @property
    def _gate(self) -> Attempts:
        gate = self.agent.state.gate
        if gate is None:
            raise TypeError("it is not at the understanding gate")
        return gate
