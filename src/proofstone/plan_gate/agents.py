"""The agents of the plan gate: how each effect of the loop becomes a request, and how agents are asked.

The agents read the base of the repository and, if allowed, the memory and the web.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from pydantic import BaseModel

from proofstone.agents.dispatch import format_now
from proofstone.agents.memory.models import MemoryStore
from proofstone.agents.models import DispatchKey, Fault, RefusalRule, ToolResult
from proofstone.agents.read_only_agents import ReadOnlyAgents, ReadOnlyRequest, get_answer
from proofstone.agents.roles.models.plan_gate import (
    ChallengeRequest,
    ChallengeRuling,
    Directive,
    PlanAuditRequest,
    ResearchMode,
    ResearchPlanRequest,
    SynthesisRequest,
    Withdrawal,
)
from proofstone.agents.roles.models.plan_gate_records import PlanQuality, RepositoryClaim
from proofstone.agents.roles.plan_gate import PLAN_AUDITOR, PLAN_RESEARCHERS
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.roles.role import Role
from proofstone.agents.spending import read_dispatch_records
from proofstone.agents.tools.models import EXTERNAL_TOOLS, Tool
from proofstone.agents.tools.tool_context import ToolContext
from proofstone.agents.tools.toolbox import BudgetedTools, Toolbox, ToolCounts, Tools
from proofstone.agents.web.providers import WebProviders
from proofstone.common.models import FrozenModel
from proofstone.ledger.models import StepStatus, TelemetryRow
from proofstone.plan_gate.claims import ClaimContext, look_up_claim
from proofstone.plan_gate.rules.board import PERSON_EVIDENCE, find_unknown_ids
from proofstone.plan_gate.rules.decision import ROLES_BY_ORIGIN
from proofstone.plan_gate.rules.effects import (
    AskChallenges,
    AskPlanAudit,
    AskPlanResearch,
    AskSynthesis,
    DiscussionSnapshot,
    PlanAgentReply,
)

AgentEffect = AskChallenges | AskPlanResearch | AskSynthesis | AskPlanAudit
_CHALLENGE_FIELDS: Final = ("challenge", "affects_challenge")


@dataclass(frozen=True)
class Discussion:
    """What all agents are shown."""

    run_id: str
    plan_path: str
    plan: str
    """The text of the plan with line numbers."""
    quality: PlanQuality


@dataclass(frozen=True)
class PlanAgentRequest(ReadOnlyRequest):
    """A request to an agent of the plan gate."""

    snapshot: DiscussionSnapshot
    mode: ResearchMode | None = None
    """For a researcher."""

    @property
    def agent(self) -> str:
        return self.occasion.agent

    def explain_invalid(self, output: FrozenModel) -> str:
        """Explain why the answer is invalid: it names ids that do not exist. "" if it is valid."""
        challenges = [challenge.id for challenge in self.snapshot.challenges]
        seen = self.snapshot
        findings = [
            *(unknown.id for unknown in seen.unknowns),
            *(context.id for context in seen.surfaced),
            *(risk.id for risk in seen.risks),
        ]
        unknown_ids = find_unknown_ids(_find_challenge_ids(output), challenges)
        unknown_ids += find_unknown_ids(_find_evidence_ids(output), (*challenges, *findings, PERSON_EVIDENCE))
        if not unknown_ids:
            return ""
        return f"{', '.join(unknown_ids)}: there is no such id; the ids are {_join_ids((*challenges, *findings))}"


def build_plan_request(
    effect: AgentEffect, discussion: Discussion, served: Collection[Tool] = frozenset(Tool)
) -> PlanAgentRequest:
    """Build the request for an effect. `served` are the available tools, of which a researcher is told."""
    shown = {
        "plan_path": discussion.plan_path,
        "plan": discussion.plan,
        "plan_quality": discussion.quality,
        "iteration": effect.snapshot.iteration,
        "challenges": effect.snapshot.challenges,
        "responses": effect.snapshot.responses,
    }
    snapshot, step = effect.snapshot, f"plan/i{effect.snapshot.iteration}"
    match effect:
        case AskChallenges():
            role = ROLES[ROLES_BY_ORIGIN[effect.origin]]
            request: FrozenModel = ChallengeRequest(
                **shown, at_most=effect.max_challenges, directives=effect.directives, findings=snapshot.unknowns
            )
            return PlanAgentRequest(role, request, _make_occasion(discussion, role, step, snapshot), snapshot)
        case AskPlanResearch():
            role = PLAN_RESEARCHERS[effect.mode]
            request = ResearchPlanRequest(
                **shown,
                targets=effect.targets,
                findings=snapshot.unknowns,
                surfaced=snapshot.surfaced,
                risks=snapshot.risks,
                directives=effect.directives,
                tool_budget=snapshot.budget.format_lines(effect.mode, served),
            )
            return PlanAgentRequest(
                role, request, _make_occasion(discussion, role, step, snapshot, effect.mode), snapshot, effect.mode
            )
        case AskSynthesis():
            role = ROLES["synthesizer"]
            request = SynthesisRequest(
                **shown,
                last=snapshot.is_last,
                findings=snapshot.unknowns,
                surfaced=snapshot.surfaced,
                risks=snapshot.risks,
                directives=snapshot.directives,
                notes=snapshot.notes,
                tool_budgets=snapshot.budget.format_all_lines(),
            )
            return PlanAgentRequest(role, request, _make_occasion(discussion, role, step, snapshot), snapshot)
        case AskPlanAudit():
            request = PlanAuditRequest(**shown, findings=snapshot.unknowns, verdict=effect.verdict)
            return PlanAgentRequest(
                PLAN_AUDITOR,
                request,
                _make_occasion(discussion, PLAN_AUDITOR, step, snapshot, PLAN_AUDITOR.foci[0]),
                snapshot,
            )


def number_lines(text: str) -> str:
    """Number the lines of the plan, so that agents can refer to them."""
    lines = text.replace("\r\n", "\n").split("\n")
    width = len(str(len(lines)))
    return "\n".join(f"{number:>{width}} {line}" for number, line in enumerate(lines, start=1))


def find_claims(output: object) -> Iterator[RepositoryClaim]:
    """Yield every claim in an answer that Proofstone should look up, each once."""
    yield from dict.fromkeys(model for model in _walk_models(output) if isinstance(model, RepositoryClaim))


def _make_occasion(
    discussion: Discussion, role: Role, step: str, snapshot: DiscussionSnapshot, focus: str | None = None
) -> DispatchKey:
    return DispatchKey(run_id=discussion.run_id, role=role.name, step=step, focus=focus, iteration=snapshot.iteration)


def _find_challenge_ids(output: FrozenModel) -> Iterator[str]:
    for model in _walk_models(output):
        for name in _CHALLENGE_FIELDS:
            if isinstance(challenge_id := getattr(model, name, None), str):
                yield challenge_id


def _find_evidence_ids(output: FrozenModel) -> Iterator[str]:
    for model in _walk_models(output):
        if isinstance(model, ChallengeRuling | Withdrawal):
            yield from model.evidence
        elif isinstance(model, Directive) and model.contradicts is not None:
            yield model.contradicts


def _walk_models(value: object) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from _walk_models(getattr(value, name))
    elif isinstance(value, tuple):
        for child in value:
            yield from _walk_models(child)


def _join_ids(ids: Collection[str]) -> str:
    return ", ".join(ids) or "none"


@dataclass
class PlanAgents(ReadOnlyAgents):
    """Asks the agents of the plan gate."""

    memory: MemoryStore | None = None
    web: WebProviders | None = None
    external_tools: frozenset[Tool] = frozenset()
    """The tools that reach beyond the tree, as agents were told when the run began."""
    _counts: dict[int, ToolCounts] = field(default_factory=dict)
    """By iteration: how often researchers used their tools."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def available_tools(self) -> frozenset[Tool]:
        """The available tools. They are part of the request, so they stay the same when a run is resumed."""
        return (frozenset(Tool) - EXTERNAL_TOOLS) | self.external_tools

    @cached_property
    def tool_context(self) -> ToolContext:
        return replace(super().tool_context, memory=self.memory, web=self.web)

    def ask(self, request: PlanAgentRequest) -> PlanAgentReply | Fault:
        """Ask the agent, and look up the claims in its answer."""
        started = TelemetryRow(
            run_id=self.world.run_id,
            step=request.occasion.step,
            agent=request.role.name,
            instance=request.occasion.focus,
            started_at=format_now(),
        )
        dispatched = self.dispatch(request, self._make_tools(request), request.explain_invalid, beginning=(started,))
        answer = get_answer(dispatched)
        self._record_end(started, answer, retries=dispatched.occasion.dispatch - 1)
        if isinstance(answer, Fault):
            return answer
        tool_results = self._read_tool_results(dispatched.occasion.id)
        place = ClaimContext(self.tool_context, self.memory)
        lookups = tuple(look_up_claim(claim, place, tool_results) for claim in find_claims(answer))
        refusals = tuple(result.text for result in tool_results if result.refused is RefusalRule.BUDGET)
        return PlanAgentReply(answer, lookups, refusals)

    def _record_end(self, started: TelemetryRow, answer: FrozenModel | Fault, *, retries: int) -> None:
        """Record the end of a step, once: a resumed run reads answers that an earlier process has recorded."""
        recorded = self.world.ledger.read(
            TelemetryRow, run_id=started.run_id, step=started.step, agent=started.agent, instance=started.instance
        )
        rows = [stored.row for stored in recorded]
        if any(row.completed_at for row in rows):
            return
        status = StepStatus.ERROR if isinstance(answer, Fault) else StepStatus.DONE
        end = {"completed_at": format_now(), "status": status, "retry_count": retries}
        self.world.ledger.append((rows[-1] if rows else started).model_copy(update=end))

    def _read_tool_results(self, dispatch: str) -> list[ToolResult]:
        """Return the results of the tools in this conversation."""
        recorded = read_dispatch_records(self.world.ledger, self.world.run_id).get(dispatch)
        return recorded.results if recorded else []

    def _make_tools(self, request: PlanAgentRequest) -> Tools:
        toolbox = Toolbox(self.tool_context, request.role.tools & self.available_tools)
        if request.mode is None:
            return toolbox
        with self._lock:
            iteration = request.snapshot.iteration
            if iteration not in self._counts:
                self._counts[iteration] = ToolCounts(request.snapshot.budget)
            counts = self._counts[iteration]
        retry = request.occasion.model_copy(update={"dispatch": request.occasion.dispatch + 1})
        for id in (request.occasion.id, retry.id):
            if id in self.dispatcher.recorded_dispatches:
                counts.count_recorded(request.mode, self.dispatcher.recorded_dispatches[id].results)
        return BudgetedTools(toolbox, request.mode, counts)
