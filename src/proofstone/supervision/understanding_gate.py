"""The understanding gate: before an agent works, it shows that it understands its task and submits a plan."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.agents.models import Fault, FaultKind
from proofstone.agents.roles.models.gate import JudgeItem
from proofstone.agents.roles.models.payload import AnswerPart
from proofstone.agents.rules.answer import MalformedAnswer
from proofstone.common.models import Verdict
from proofstone.supervision.agent_supervision import AgentDirective, AgentSupervision, describe_work
from proofstone.supervision.models.context import truncate_line
from proofstone.supervision.models.events import GatePassed
from proofstone.supervision.models.messages import (
    ImpactChallengeResponse,
    ImpactMessage,
    ImpactRejected,
    ImpactVerified,
    PlanApproved,
    PlanRejected,
    WorkPlan,
)
from proofstone.supervision.models.understanding import (
    AnalysisItem,
    GateAttempts,
    GiveUpDecision,
    ImpactAnalysis,
    ItemVerdict,
    QuestionDecision,
    RetryDecision,
    SupervisionTier,
    UnderstandingDecision,
    VerifyDecision,
)
from proofstone.supervision.rules.amendments import Amendment
from proofstone.supervision.rules.context import thaw_context
from proofstone.supervision.rules.evidence import TaskFileScope, list_lookups, verify_looked_up_items
from proofstone.supervision.rules.mentions import PlanExpectations, check_plan
from proofstone.supervision.rules.questions import build_challenge
from proofstone.supervision.rules.supervision_state import MAX_PLANS, FreeTextReply, PlanReply, RequestKind
from proofstone.supervision.rules.understanding import (
    CONTINUE_TEXT,
    ITEM_CRITERIA,
    ITEMS_BY_TIER,
    MAX_ATTEMPTS_BY_TIER,
    SELF_LOCATE_TEXT,
    judge_analysis,
    judge_challenge_answer,
    list_judged_items,
    write_challenge,
    write_impact_request,
    write_plan_request,
    write_refused_requirement,
    write_rejection,
    write_unreadable_answer,
)
from proofstone.supervision.rules.wire import write_message


@dataclass(frozen=True)
class UnderstandingGate:
    agent: AgentSupervision

    # The impact analysis.

    def ask_impact(self, before: str = "") -> AgentDirective:
        gate = self._gate
        request = write_impact_request(
            self.agent.phase, gate.attempt, MAX_ATTEMPTS_BY_TIER[gate.tier], ITEMS_BY_TIER[gate.tier]
        )
        return self.agent.ask(RequestKind.IMPACT, f"{before}\n\n{request}".strip())

    def handle_impact(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        if not isinstance(answer, ImpactAnalysis):
            why = answer.why if isinstance(answer, MalformedAnswer) else "it is not an impact analysis"
            failed_items = tuple(
                ItemVerdict(item=item, verdict=Verdict.FAIL, detail=why) for item in ITEMS_BY_TIER[self._gate.tier]
            )
            return self._apply_decision(
                *judge_analysis(self._gate, failed_items), write_unreadable_answer(RequestKind.IMPACT, why)
            )
        self.agent.update_state(analysis=answer)
        gate, subject = self._gate, self.agent.subject
        facts = subject.look_up_facts(list_lookups(answer))
        verified_items = verify_looked_up_items(
            answer, facts, TaskFileScope(subject.files, subject.upstream, subject.upstream_ids)
        )
        text = write_message(
            ImpactMessage(
                phase=self.agent.phase, attempt=gate.attempt, of=MAX_ATTEMPTS_BY_TIER[gate.tier], analysis=answer
            )
        )
        return self._apply_decision(
            *judge_analysis(gate, (*verified_items, *self._judge_items(text, list_judged_items(gate.tier))))
        )

    def handle_challenge_answer(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        gate, analysis = self._gate, self.agent.state.analysis
        if not isinstance(answer, FreeTextReply) or analysis is None:
            return self._apply_decision(*judge_challenge_answer(gate, ()))
        first = ImpactMessage(
            phase=self.agent.phase, attempt=gate.attempt, of=MAX_ATTEMPTS_BY_TIER[gate.tier], analysis=analysis
        )
        reply = ImpactChallengeResponse(phase=self.agent.phase, content=answer.content)
        text = f"{write_message(first)}\n\nIt was asked: {self.agent.state.challenged}\n\n{write_message(reply)}"
        return self._apply_decision(*judge_challenge_answer(gate, self._judge_items(text, gate.asked)))

    def _judge_items(self, text: str, items: tuple[AnalysisItem, ...]) -> tuple[ItemVerdict, ...]:
        judgements = self.agent.request_judgements(
            text, *(JudgeItem(item=item, holds_if=ITEM_CRITERIA[item]) for item in items)
        )
        return tuple(
            ItemVerdict(item=item, verdict=judgement.verdict, detail=judgement.detail)
            for item, judgement in zip(items, judgements, strict=True)
        )

    def _apply_decision(self, gate: GateAttempts, decision: UnderstandingDecision, before: str = "") -> AgentDirective:
        self.agent.update_state(gate=gate)
        phase = self.agent.phase
        match decision:
            case VerifyDecision():
                self.agent.add_caps(*(f"{item}: {ITEM_CRITERIA[item]}" for item in decision.unverifiable))
                return self._finish_analysis(write_message(ImpactVerified(phase=phase)))
            case QuestionDecision():
                about = describe_work(self.agent)
                question, text = write_challenge(
                    phase, [build_challenge(item_verdict, about) for item_verdict in decision.items]
                )
                self.agent.update_state(challenged=question)
                return self.agent.ask(RequestKind.CHALLENGE, text)
            case RetryDecision():
                why = truncate_line(
                    "; ".join(reason.detail or f"{reason.item} does not hold" for reason in decision.reasons)
                )
                rejection = write_message(ImpactRejected(phase=phase, reason=why))
                return self.ask_impact(f"{before}\n\n{rejection}\n\n{write_rejection(decision.reasons)}".strip())
            case GiveUpDecision():
                why = truncate_line("; ".join(dict.fromkeys(reason.detail for reason in decision.reasons)))
                return Fault(kind=FaultKind.DRIFTED, why=f"the agent does not understand its task: {why}")
        raise TypeError(f"{decision!r} does not follow from an analysis")

    def _finish_analysis(self, message: str) -> AgentDirective:
        if self._gate.tier is SupervisionTier.IMPLEMENTER:
            return self.ask_plan(message)
        return self._pass_gate(message)

    def _pass_gate(self, message: str) -> AgentDirective:
        self.agent.process_events(GatePassed())
        self.agent.update_state(reader=thaw_context(self.agent.state.reader), gate=None)
        return self.agent.resume(f"{message}\n\n{CONTINUE_TEXT}\n\n{SELF_LOCATE_TEXT}")

    # The plan.

    def ask_plan(self, before: str) -> AgentDirective:
        return self.agent.ask(RequestKind.PLAN, write_plan_request(self.agent.phase, before))

    def handle_plan(self, answer: AnswerPart | MalformedAnswer) -> AgentDirective:
        agent, state = self.agent, self.agent.state
        number = state.plans + 1
        agent.update_state(plans=number)
        why = self._find_plan_problems(answer)
        if why:
            if number >= MAX_PLANS:
                return Fault(kind=FaultKind.DRIFTED, why=f"its plan was sent back {number} times: {why}")
            return self.ask_plan(write_message(PlanRejected(phase=agent.phase, reason=truncate_line(why))))
        if isinstance(answer, PlanReply):
            agent.update_state(plan=answer, plans=0)
        refusals = self._apply_requirements()
        message = "\n\n".join((write_message(PlanApproved(phase=agent.phase)), *refusals))
        return self._pass_gate(message) if state.gate is not None else agent.resume(f"{message}\n\n{CONTINUE_TEXT}")

    def _apply_requirements(self) -> list[str]:
        """Add the requirements that the agent was told about and has planned to its task.

        A requirement that violates the plan gate's rules is not added and is left to the planner. Return what the agent
        is told about each of these.
        """
        state, subject = self.agent.state, self.agent.subject
        refusals: list[str] = []
        for requirement in subject.board.read_requirements():
            if requirement.number in state.told:
                version = f"GC-v{requirement.number + 1}"
                amendment = Amendment(
                    task=subject.id, requirement=requirement.text, number=requirement.number, why=version
                )
                if why := subject.amend(amendment):
                    refusals.append(write_refused_requirement(version, why))
        self.agent.update_state(told=())
        return refusals

    def _find_plan_problems(self, answer: AnswerPart | MalformedAnswer) -> str:
        if not isinstance(answer, PlanReply):
            return answer.why if isinstance(answer, MalformedAnswer) else "it is not a plan"
        state, subject = self.agent.state, self.agent.subject
        worked = subject.change_view.observe_changes()
        expectations = PlanExpectations(
            declared=state.declared,
            absent=frozenset(path for path in answer.files if not subject.path_exists(path)),
            announced=state.amended,
            observe_changes=worked.files,
            signatures=worked.signatures,
            last_answer=state.answer,
        )
        work_plan = WorkPlan(
            phase=self.agent.phase,
            files=answer.files,
            changes=answer.changes,
            risk=answer.risk,
            interface_impact=answer.interface_impact,
        )
        return "; ".join(check_plan(work_plan, expectations))

    @property
    def _gate(self) -> GateAttempts:
        gate = self.agent.state.gate
        if gate is None:
            raise TypeError("it is not at the understanding gate")
        return gate
