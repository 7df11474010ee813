"""From what the loop needs to whom it is asked, and how: role, request, occasion, and what the answer may name.

Those who are asked at the plan gate: agents who look at the base of the repository, and further where they may.
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
_NAMES_A_CHALLENGE: Final = ("challenge", "affects_challenge")


@dataclass(frozen=True)
class Discussion:
    """What all of them are shown."""

    run_id: str
    plan_path: str
    plan: str
    """Its text, with the number of each line."""
    quality: PlanQuality


@dataclass(frozen=True)
class PlanAsking(Asking):
    seen: Seen
    mode: Mode | None = None
    """Of a researcher."""

    @property
    def agent(self) -> str:
        return self.occasion.agent

    def why_not(self, output: Contract) -> str:
        """Why the answer cannot be meant: it names what there is not."""
        challenges = [challenge.id for challenge in self.seen.challenges]
        seen = self.seen
        findings = [
            *(unknown.id for unknown in seen.unknowns),
            *(item.id for item in seen.surfaced),
            *(risk.id for risk in seen.risks),
        ]
        lost = dangling(_named_challenges(output), challenges)
        lost += dangling(_named_evidence(output), (*challenges, *findings, PERSON))
        if not lost:
            return ""
        return f"{', '.join(lost)}: there is no such thing; there are {_listed((*challenges, *findings))}"


def asking(need: AskAgent, it: Discussion, served: Collection[Tool] = frozenset(Tool)) -> PlanAsking:
    """`served`: the tools that there are here at all, of which a researcher hears."""
    shown = {
        "plan_path": it.plan_path,
        "plan": it.plan,
        "plan_quality": it.quality,
        "iteration": need.seen.iteration,
        "challenges": need.seen.challenges,
        "responses": need.seen.responses,
    }
    seen, step = need.seen, f"plan/i{need.seen.iteration}"
    match need:
        case AskChallenges():
            role = ROLES[ROLE_OF[need.origin]]
            request: Contract = ChallengeRequest(
                **shown, at_most=need.at_most, directives=need.directives, findings=seen.unknowns
            )
            return PlanAsking(role, request, _occasion(it, role, step, seen), seen)
        case AskResearch():
            role = PLAN_RESEARCHERS[need.mode]
            request = ResearchPlanRequest(
                **shown,
                targets=need.targets,
                findings=seen.unknowns,
                surfaced=seen.surfaced,
                risks=seen.risks,
                directives=need.directives,
                tool_budget=seen.budget.lines(need.mode, served),
            )
            return PlanAsking(role, request, _occasion(it, role, step, seen, need.mode), seen, need.mode)
        case AskSynthesis():
            role = ROLES["synthesizer"]
            request = SynthesisRequest(
                **shown,
                last=seen.last,
                findings=seen.unknowns,
                surfaced=seen.surfaced,
                risks=seen.risks,
                directives=seen.directives,
                notes=seen.notes,
                tool_budgets=seen.budget.all_lines(),
            )
            return PlanAsking(role, request, _occasion(it, role, step, seen), seen)
        case AskAudit():
            request = PlanAuditRequest(**shown, findings=seen.unknowns, verdict=need.verdict)
            return PlanAsking(CLOSING, request, _occasion(it, CLOSING, step, seen, CLOSING.foci[0]), seen)


def numbered(text: str) -> str:
    """The plan as agents are shown it, so that they can name its lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    width = len(str(len(lines)))
    return "\n".join(f"{number:>{width}} {line}" for number, line in enumerate(lines, start=1))


def claims_in(output: object) -> Iterator[RepositoryClaim]:
    """Every claim in an answer that the engine is to look up, each once."""
    yield from dict.fromkeys(item for item in _within(output) if isinstance(item, RepositoryClaim))


def _occasion(it: Discussion, role: Role, step: str, seen: Seen, focus: str | None = None) -> Occasion:
    return Occasion(run_id=it.run_id, role=role.name, step=step, focus=focus, iteration=seen.iteration)


def _named_challenges(output: Contract) -> Iterator[str]:
    for item in _within(output):
        for name in _NAMES_A_CHALLENGE:
            if isinstance(named := getattr(item, name, None), str):
                yield named


def _named_evidence(output: Contract) -> Iterator[str]:
    for item in _within(output):
        if isinstance(item, Ruling):
            yield from item.evidence


def _within(value: object) -> Iterator[BaseModel]:
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from _within(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _within(item)


def _listed(ids: Collection[str]) -> str:
    return ", ".join(ids) or "none"


@dataclass
class PlanAgents(Onlookers):
    memory: Memory | None = None
    web: Web | None = None
    beyond: frozenset[Tool] = frozenset()
    """Tools that look further than the tree, as agents were told of them when the run began."""
    _counts: dict[int, ToolCounts] = field(default_factory=dict)
    """By iteration: what researchers have used of their tools."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def served(self) -> frozenset[Tool]:
        """The tools that there are here at all. It is part of what is asked, so it is the same when a run goes on."""
        return (frozenset(Tool) - BEYOND) | self.beyond

    @cached_property
    def ground(self) -> Ground:
        return replace(super().ground, memory=self.memory, web=self.web)

    def ask(self, one: PlanAsking) -> Heard | Fault:
        """Ask, and look up what the answer rests on."""
        dispatched = self.dispatch(one, self._tools(one), one.why_not)
        answer = answer_of(dispatched)
        if isinstance(answer, Fault):
            return answer
        shown = self._results(dispatched.occasion.id)
        place = Place(self.ground, self.memory)
        looked = tuple(look_up(claim, place, shown) for claim in claims_in(answer))
        refusals = tuple(result.text for result in shown if result.refused is RefusalRule.BUDGET)
        return Heard(answer, looked, refusals)

    def _results(self, dispatch: str) -> list[ToolResult]:
        """What the tools of that very conversation have shown."""
        recorded = on_record(self.world.ledger, self.world.run_id).get(dispatch)
        return recorded.results if recorded else []

    def _tools(self, one: PlanAsking) -> Tools:
        toolbox = Toolbox(self.ground, one.role.tools & self.served)
        if one.mode is None:
            return toolbox
        with self._lock:
            iteration = one.seen.iteration
            if iteration not in self._counts:
                self._counts[iteration] = ToolCounts(one.seen.budget)
            counts = self._counts[iteration]
        again = one.occasion.model_copy(update={"dispatch": one.occasion.dispatch + 1})
        for id in (one.occasion.id, again.id):
            if id in self.dispatcher.recorded:
                counts.seen(one.mode, self.dispatcher.recorded[id].results)
        return BudgetedTools(toolbox, one.mode, counts)
