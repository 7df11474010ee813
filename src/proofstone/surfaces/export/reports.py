"""What the two agents answer whose answers the engine would otherwise write or not need: a claim about one task, and
what running the checks on it gave."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from proofstone.contracts.agent import Completion, Output
from proofstone.contracts.gate import ExecutorResult
from proofstone.contracts.pipeline.part import Line, Part
from proofstone.contracts.verdict import Phase, Verdict

MOST_CORRECTIONS = 2
"""Within one attempt, before it is handed on as it is."""


class RanCheck(Part):
    """One command, as the agent says that it went."""

    check_name: Line
    command: Line
    verdict: Verdict
    exit_code: int | None = None
    output_snippet: str = Field(default="", max_length=500, description="The lines that matter.")


class SelfCheck(Part):
    attempts: int = Field(ge=0, le=MOST_CORRECTIONS, description="How often you corrected your own work.")
    passed: bool


class ImplementationReport(ExecutorResult):
    """What an executor answers, and what its own look at it gave."""

    completion: Completion
    task_type: Literal["code", "documentation", "revert"]
    baseline: tuple[RanCheck, ...] = Field(description="What checks gave before you changed anything.")
    changes: tuple[Line, ...] = Field(default=(), description="One line for each file: what changed, and why.")
    self_check: SelfCheck


class EvidenceGate(Part):
    total_checks: int = Field(ge=0)
    passed: int = Field(ge=0)
    failed: int = Field(ge=0)
    unverifiable: int = Field(ge=0, description="Never counted as passed.")
    gate_status: Literal["passed", "failed"]


class ProofstoneCheck(Part):
    ran: bool
    exit_code: int | None = Field(default=None, description="0: passed; 1: failed or unverifiable; 2: bad input.")
    why_not: str = Field(default="", description="If it did not run, why.")


class CascadeResult(RanCheck):
    tier: int = Field(ge=1, le=4)
    phase: Literal[Phase.BASELINE, Phase.AFTER]


class VerificationReport(Output):
    """What a verifier answers."""

    task_id: Line
    evidence_gate: EvidenceGate
    proofstone_check: ProofstoneCheck = Field(
        description="What `proofstone check` said. It decides; the rest explains."
    )
    findings: tuple[CascadeResult, ...] = Field(min_length=1, description="Every check that was run, or could not be.")
    regressions: tuple[Line, ...] = Field(default=(), description="What passed on the baseline and fails now.")
    baseline_cross_check: tuple[Line, ...] = Field(
        default=(), description="Where the implementer's own baseline differs from what you saw."
    )
