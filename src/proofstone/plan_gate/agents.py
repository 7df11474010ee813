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

from proofstone.agents.memory.models import Memory
from proofstone.agents.models import Fault, Occasion, RefusalRule, ToolResult
from proofstone.agents.read_only_agents import Asking, Onlookers, answer_of
from proofstone.agents.roles.models.plan_gate import (
    ChallengeRequest,
    Mode,
    PlanAuditRequest,
    ResearchPlanRequest,
    Ruling,
    SynthesisRequest,
)
from proofstone.agents.roles.models.plan_gate_records import PlanQuality, RepositoryClaim
from proofstone.agents.roles.plan_gate import CLOSING, PLAN_RESEARCHERS
from proofstone.agents.roles.registry import ROLES
from proofstone.agents.roles.role import Role
from proofstone.agents.spending import on_record
from proofstone.agents.tools.models import BEYOND, Tool
from proofstone.agents.tools.tool_context import Ground
from proofstone.agents.tools.toolbox import BudgetedTools, Toolbox, ToolCounts, Tools
from proofstone.agents.web.providers import Web
from proofstone.common.models import Contract
from proofstone.plan_gate.claims import Place, look_up
from proofstone.plan_gate.rules.board import PERSON, dangling
from proofstone.plan_gate.rules.decision import ROLE_OF
from proofstone.plan_gate.rules.effects import AskAudit, AskChallenges, AskResearch, AskSynthesis, Heard, Seen

AskAgent = AskChallenges | AskResearch | AskSynthesis | AskAudit
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
class PlanAsking(Asking):
    """A request to an agent of the plan gate."""

    seen: Seen
    mode: Mode | None = None
    """For a researcher."""

    @property
    def agent(self) -> str:
        return self.occasion.agent

    def why_not(self, output: Contract) -> str:
        """Explain why the answer is invalid: it names ids that do not exist. "" if it is valid."""
        challenges = [challenge.id for challenge in self.seen.challenges]
        seen = self.seen
        findings = [
            *(unknown.id for unknown in seen.unknowns),
            *(context.id for context in seen.surfaced),
            *(risk.id for risk in seen.risks),
        ]
        unknown_ids = dangling(_find_challenge_ids(output), challenges)
        unknown_ids += dangling(_find_evidence_ids(output), (*challenges, *findings, PERSON))
        if not unknown_ids:
            return ""
        return f"{', '.join(unknown_ids)}: there is no such id; the ids are {_join_ids((*challenges, *findings))}"


def asking(effect: AskAgent, discussion: Discussion, served: Collection[Tool] = frozenset(Tool)) -> PlanAsking:
    """Build the request for an effect. `served` are the available tools, of which a researcher is told."""
    shown = {
        "plan_path": discussion.plan_path,
        "plan": discussion.plan,
        "plan_quality": discussion.quality,
        "iteration": effect.seen.iteration,
        "challenges": effect.seen.challenges,
        "responses": effect.seen.responses,
    }
    snapshot, step = effect.seen, f"plan/i{effect.seen.iteration}"
    match effect:
        case AskChallenges():
            role = ROLES[ROLE_OF[effect.origin]]
            request: Contract = ChallengeRequest(
                **shown, at_most=effect.at_most, directives=effect.directives, findings=snapshot.unknowns
            )
            return PlanAsking(role, request, _make_occasion(discussion, role, step, snapshot), snapshot)
        case AskResearch():
            role = PLAN_RESEARCHERS[effect.mode]
            request = ResearchPlanRequest(
                **shown,
                targets=effect.targets,
                findings=snapshot.unknowns,
                surfaced=snapshot.surfaced,
                risks=snapshot.risks,
                directives=effect.directives,
                tool_budget=snapshot.budget.lines(effect.mode, served),
            )
            return PlanAsking(
                role, request, _make_occasion(discussion, role, step, snapshot, effect.mode), snapshot, effect.mode
            )
        case AskSynthesis():
            role = ROLES["synthesizer"]
            request = SynthesisRequest(
                **shown,
                last=snapshot.last,
                findings=snapshot.unknowns,
                surfaced=snapshot.surfaced,
                risks=snapshot.risks,
                directives=snapshot.directives,
                notes=snapshot.notes,
                tool_budgets=snapshot.budget.all_lines(),
            )
            return PlanAsking(role, request, _make_occasion(discussion, role, step, snapshot), snapshot)
        case AskAudit():
            request = PlanAuditRequest(**shown, findings=snapshot.unknowns, verdict=effect.verdict)
            return PlanAsking(
                CLOSING, request, _make_occasion(discussion, CLOSING, step, snapshot, CLOSING.foci[0]), snapshot
            )


def numbered(text: str) -> str:
    """Number the lines of the plan, so that agents can refer to them."""
    lines = text.replace("\r\n", "\n").split("\n")
    width = len(str(len(lines)))
    return "\n".join(f"{number:>{width}} {line}" for number, line in enumerate(lines, start=1))


def claims_in(output: object) -> Iterator[RepositoryClaim]:
    """Yield every claim in an answer that Proofstone should look up, each once."""
    yield from dict.fromkeys(model for model in _walk_models(output) if isinstance(model, RepositoryClaim))


def _make_occasion(discussion: Discussion, role: Role, step: str, snapshot: Seen, focus: str | None = None) -> Occasion:
    return Occasion(run_id=discussion.run_id, role=role.name, step=step, focus=focus, iteration=snapshot.iteration)


def _find_challenge_ids(output: Contract) -> Iterator[str]:
    for model in _walk_models(output):
        for name in _CHALLENGE_FIELDS:
            if isinstance(challenge_id := getattr(model, name, None), str):
                yield challenge_id


def _find_evidence_ids(output: Contract) -> Iterator[str]:
    for model in _walk_models(output):
        if isinstance(model, Ruling):
            yield from model.evidence


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
class PlanAgents(Onlookers):
    """Asks the agents of the plan gate."""

    memory: Memory | None = None
    web: Web | None = None
    beyond: frozenset[Tool] = frozenset()
    """The tools that reach beyond the tree, as agents were told when the run began."""
    _counts: dict[int, ToolCounts] = field(default_factory=dict)
    """By iteration: how often researchers used their tools."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def served(self) -> frozenset[Tool]:
        """The available tools. They are part of the request, so they stay the same when a run is resumed."""
        return (frozenset(Tool) - BEYOND) | self.beyond

    @cached_property
    def ground(self) -> Ground:
        return replace(super().ground, memory=self.memory, web=self.web)

    def ask(self, request: PlanAsking) -> Heard | Fault:
        """Ask the agent, and look up the claims in its answer."""
        dispatched = self.dispatch(request, self._make_tools(request), request.why_not)
        answer = answer_of(dispatched)
        if isinstance(answer, Fault):
            return answer
        tool_results = self._read_tool_results(dispatched.occasion.id)
        place = Place(self.ground, self.memory)
        lookups = tuple(look_up(claim, place, tool_results) for claim in claims_in(answer))
        refusals = tuple(result.text for result in tool_results if result.refused is RefusalRule.BUDGET)
        return Heard(answer, lookups, refusals)

    def _read_tool_results(self, dispatch: str) -> list[ToolResult]:
        """Return the results of the tools in this conversation."""
        recorded = on_record(self.world.ledger, self.world.run_id).get(dispatch)
        return recorded.results if recorded else []

    def _make_tools(self, request: PlanAsking) -> Tools:
        toolbox = Toolbox(self.ground, request.role.tools & self.served)
        if request.mode is None:
            return toolbox
        with self._lock:
            iteration = request.seen.iteration
            if iteration not in self._counts:
                self._counts[iteration] = ToolCounts(request.seen.budget)
            counts = self._counts[iteration]
        retry = request.occasion.model_copy(update={"dispatch": request.occasion.dispatch + 1})
        for id in (request.occasion.id, retry.id):
            if id in self.dispatcher.recorded:
                counts.seen(request.mode, self.dispatcher.recorded[id].results)
        return BudgetedTools(toolbox, request.mode, counts)
