"""From what the loop needs to whom it is asked, and how: role, request, occasion, and what the answer may name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel

from proofstone.contracts.agent import Occasion
from proofstone.contracts.base import Contract
from proofstone.contracts.plan_gate.answers import Mode, Ruling
from proofstone.contracts.plan_gate.evidence import RepositoryClaim
from proofstone.contracts.plan_gate.record import PlanQuality
from proofstone.contracts.plan_gate.requests import (
    ChallengeRequest,
    PlanAuditRequest,
    ResearchPlanRequest,
    SynthesisRequest,
)
from proofstone.contracts.tools import Tool
from proofstone.core.plan_gate.board import PERSON, dangling
from proofstone.core.plan_gate.needs import AskAudit, AskChallenges, AskResearch, AskSynthesis, Seen
from proofstone.core.plan_gate.team import ROLE_OF
from proofstone.engine.agents.onlookers import Asking
from proofstone.roles import ROLES
from proofstone.roles.challenger import CLOSING
from proofstone.roles.plan_researcher import PLAN_RESEARCHERS
from proofstone.roles.role import Role

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
        challenges = [one.id for one in self.seen.challenges]
        seen = self.seen
        findings = [
            *(one.id for one in seen.unknowns),
            *(one.id for one in seen.surfaced),
            *(one.id for one in seen.risks),
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
    yield from dict.fromkeys(one for one in _within(output) if isinstance(one, RepositoryClaim))


def _occasion(it: Discussion, role: Role, step: str, seen: Seen, focus: str | None = None) -> Occasion:
    return Occasion(run_id=it.run_id, role=role.name, step=step, focus=focus, iteration=seen.iteration)


def _named_challenges(output: Contract) -> Iterator[str]:
    for one in _within(output):
        for name in _NAMES_A_CHALLENGE:
            if isinstance(named := getattr(one, name, None), str):
                yield named


def _named_evidence(output: Contract) -> Iterator[str]:
    for one in _within(output):
        if isinstance(one, Ruling):
            yield from one.evidence


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
