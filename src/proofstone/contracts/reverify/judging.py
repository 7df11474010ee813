"""What is asked of whoever judges what code cannot: whether an agent has understood."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.part import Part
from proofstone.contracts.verdict import Verdict


class ToJudge(Contract):
    """One thing to be said yes or no to."""

    item: str
    """`RC-07`, or `answer`."""
    holds_if: str


class JudgeRequest(Contract):
    run_id: str
    agent: str
    """Whose understanding it is."""
    task: str
    """What that agent was told to do."""
    said: str
    """What it said."""
    to_judge: tuple[ToJudge, ...]
    base_commit: str = ""
    deadline_seconds: float | None = None


class Judged(Part):
    item: str = Field(description="As it is called in the request.")
    verdict: Verdict = Field(
        description="`pass` if it holds, `fail` if it does not, `unverifiable` if you cannot tell."
    )
    detail: str = Field(default="", description="What is wrong, so that it can be put right; or why nobody can tell.")


class Judgement(Contract):
    """What a judge answers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    items: tuple[Judged, ...] = Field(description="One for each that is to be judged.")
