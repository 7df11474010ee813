"""Types that the payloads of several roles share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from proofstone.common.models import FrozenModel

RiskMark = Literal["🟢", "🟡", "🔴"]
LocalId = Annotated[str, Field(min_length=1, max_length=60, description="An id of your own, unique in your answer.")]
ShortText = Annotated[str, Field(min_length=1, max_length=300)]
LongText = Annotated[str, Field(min_length=1, max_length=8_000)]


class AnswerPart(FrozenModel):
    """A part of an answer. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def find_duplicates(ids: tuple[str, ...]) -> list[str]:
    """Return the ids that occur more than once."""
    return sorted({id_ for id_ in ids if ids.count(id_) > 1})
