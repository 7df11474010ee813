"""Review of a design or of code by a panel of three, each with a focus of their own."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict, Field, computed_field, field_validator, model_validator

from proofstone.contracts.agent import Output
from proofstone.contracts.base import Contract
from proofstone.contracts.gate import ReviewedCheck
from proofstone.contracts.pipeline.part import Line, Part, Text
from proofstone.contracts.verdict import Confidence, ReviewVerdict, Severity

Scope = Literal["design", "code"]


class ReviewFocus(StrEnum):
    SECURITY = "security"
    ARCHITECTURE = "architecture"
    CORRECTNESS = "correctness"


class FindingCategory(StrEnum):
    SECURITY = "security"
    CORRECTNESS = "correctness"
    PERFORMANCE = "performance"
    MAINTAINABILITY = "maintainability"
    DESIGN = "design"


class PanelFinding(Part):
    title: Line
    severity: Severity = Field(
        description="blocker: must never be let through; critical: must be put right first; major: should be; "
        "minor: may stay."
    )
    category: FindingCategory
    description: Text = Field(description="What goes wrong, and when.")
    affected: tuple[Line, ...] = Field(min_length=1, description="`path:line`, or a part of the design by its id.")
    recommendation: Text
    evidence: Text = Field(description="What you have seen that shows it, such as the lines themselves.")


class PanelRequest(Contract):
    """What a reviewer of the panel is given."""

    request: str = Field(description="What the person wants, in their words.")
    scope: Scope = Field(description="What is reviewed.")
    focus: ReviewFocus = Field(description="What to look for. Two others look for the rest.")
    round: int = Field(default=1, ge=1)
    criteria: tuple[str, ...] = Field(default=(), description="What must hold in the end.")
    subject: str = Field(description="The design, or the change as a diff. `[...]` stands for what was left out.")
    checks: tuple[ReviewedCheck, ...] = Field(default=(), description="What the engine's own checks gave.")
    earlier: tuple[PanelFinding, ...] = Field(default=(), description="Your findings of the round before.")


class PanelOutput(Output):
    """What a reviewer of the panel answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reviewer_model: str = Field(default="", description="Leave it out: the engine knows it.")
    review_focus: ReviewFocus
    scope: Scope
    round: int = Field(default=1, ge=1)
    verdict: ReviewVerdict
    confidence: Confidence
    findings: tuple[PanelFinding, ...] = Field(default=(), max_length=30)
    summary: Text

    @computed_field  # type: ignore[prop-decorator]
    @property
    def findings_count(self) -> dict[Severity, int]:
        """Counted, whatever the reviewer says."""
        found = Counter(one.severity for one in self.findings)
        return {severity: found[severity] for severity in Severity}

    @field_validator("confidence", mode="before")
    @classmethod
    def _either_spelling(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _the_verdict_follows_from_the_findings(self) -> PanelOutput:
        blockers = self.findings_count[Severity.BLOCKER]
        if blockers and self.verdict is not ReviewVerdict.BLOCKER:
            raise ValueError(f"a finding is a blocker, so the verdict must be blocker, not {self.verdict}")
        if self.verdict is ReviewVerdict.BLOCKER and not blockers:
            raise ValueError("the verdict is blocker, but no finding has that severity")
        if self.verdict is ReviewVerdict.NEEDS_REVISION and not self.findings:
            raise ValueError("the verdict is needs_revision, but there is no finding that says what to revise")
        return self
