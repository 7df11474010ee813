"""What the payloads have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from proofstone.common.models import Contract

RiskMark = Literal["🟢", "🟡", "🔴"]
LocalId = Annotated[str, Field(min_length=1, max_length=60, description="An id of your own, unique in your answer.")]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Text = Annotated[str, Field(min_length=1, max_length=8_000)]


class Part(Contract):
    """A part of an answer. Fields that we do not know are left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def repeated(ids: tuple[str, ...]) -> list[str]:
    """Those that are there more than once."""
    return sorted({item for item in ids if ids.count(item) > 1})
