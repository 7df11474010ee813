"""What the agents of the plan gate are asked. The descriptions are written for them."""

from __future__ import annotations

from pydantic import Field

from proofstone.contracts.base import Contract
from proofstone.contracts.plan_gate.record import (
    Challenge,
    PlanQuality,
    ProbedRisk,
    SurfacedContext,
    Unknown,
)

_PLAN = Field(description="The plan, with the number of each line before it.")
_CHALLENGES = Field(default=(), description="What has been brought against the plan so far, and what became of it.")


class Discussed(Contract):
    """What every agent of the plan gate is shown."""

    plan_path: str
    plan: str = _PLAN
    plan_quality: PlanQuality
    iteration: int = Field(ge=1, le=3, description="Of at most 3.")
    challenges: tuple[Challenge, ...] = _CHALLENGES
    responses: tuple[str, ...] = Field(default=(), description="What the person has answered.")


class ChallengeRequest(Discussed):
    at_most: int = Field(ge=0, description="So many new challenges are taken; of more, the weakest are left out.")
    directives: tuple[str, ...] = Field(default=(), description="What you are asked to mind, and why.")
    findings: tuple[Unknown, ...] = Field(default=(), description="What was found out so far.")


class ResearchPlanRequest(Discussed):
    """Of a researcher, in each of the three modes."""

    targets: tuple[str, ...] = Field(default=(), description="The challenges that are still open: settle these.")
    findings: tuple[Unknown, ...] = Field(default=(), description="What was found out so far.")
    surfaced: tuple[SurfacedContext, ...] = Field(default=(), description="What was surfaced so far.")
    risks: tuple[ProbedRisk, ...] = Field(default=(), description="What was probed so far.")
    directives: tuple[str, ...] = Field(default=(), description="What you are asked to look at again, and why.")
    tool_budget: tuple[str, ...] = Field(default=(), description="How often you may use each tool; more is refused.")


class SynthesisRequest(Discussed):
    last: bool = Field(default=False, description="Whether there is no iteration after this one.")
    findings: tuple[Unknown, ...] = Field(
        default=(), description="`[VERIFIED: …]` was seen by the engine itself; `[UNVERIFIED: …]` is an agent's word."
    )
    surfaced: tuple[SurfacedContext, ...] = ()
    risks: tuple[ProbedRisk, ...] = ()
    directives: tuple[str, ...] = Field(default=(), description="What you have directed so far.")
    notes: tuple[str, ...] = Field(default=(), description="What the engine has seen: failures, false claims, caps.")
    tool_budgets: tuple[str, ...] = Field(default=(), description="By mode and tool; only RAISE-BUDGET raises one.")


class PlanAuditRequest(Discussed):
    findings: tuple[Unknown, ...] = ()
    verdict: str = Field(description="What the table of the runtime has decided.")
