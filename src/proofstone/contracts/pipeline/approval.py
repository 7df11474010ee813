"""Where a run asks the person how to go on: the request, and the log of what was decided."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from proofstone.contracts.base import Contract


class RunMode(StrEnum):
    AUTONOMOUS = "autonomous"
    """The default option is taken, and that is recorded."""
    INTERACTIVE = "interactive"


class ApprovalOption(Contract):
    id: str
    label: str = Field(max_length=50)
    description: str
    is_default: bool = False


class ApprovalMetadata(Contract):
    risk_summary: str = ""
    findings_count: int = 0
    elapsed_time: str = ""


class ApprovalRequest(Contract):
    gate_id: str
    """`gate-pushback`, `gate-post-research`, `gate-post-planning`; with a number behind it from the second time on."""
    pipeline_step: str
    question: str
    context: str
    options: tuple[ApprovalOption, ...] = Field(min_length=1)
    metadata: ApprovalMetadata = ApprovalMetadata()

    @model_validator(mode="after")
    def _one_is_the_default(self) -> ApprovalRequest:
        if sum(option.is_default for option in self.options) != 1:
            raise ValueError(f"{self.gate_id}: exactly one option is the default")
        return self

    @property
    def default(self) -> ApprovalOption:
        return next(option for option in self.options if option.is_default)

    def option(self, id: str) -> ApprovalOption | None:
        return next((option for option in self.options if option.id == id), None)


class ApprovalEntry(Contract):
    """One line of the approval log."""

    gate_id: str
    timestamp: str
    mode: RunMode
    selected_option: str
    auto_selected: bool
    user_response_raw: str = ""
