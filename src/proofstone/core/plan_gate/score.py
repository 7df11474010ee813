"""The quality score. It is for the reader of the report; nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from proofstone.contracts.plan_gate.answers import Dimension, DimensionScore
from proofstone.contracts.plan_gate.report import QualityScore, ScoreLine

WEIGHTS: Final = {
    Dimension.APPROACH: 0.25,
    Dimension.RISK: 0.20,
    Dimension.ASSUMPTIONS: 0.15,
    Dimension.INTEGRATION: 0.15,
    Dimension.UNKNOWNS: 0.15,
    Dimension.CONSTRAINTS: 0.10,
}


def scored(given: Iterable[DimensionScore], audited: Iterable[DimensionScore] = ()) -> QualityScore | None:
    """Over the dimensions that were scored, each by its weight among them; None if none was. `audited` is what the
    challenger gives at the close: it is shown, and does not count."""
    scores = {one.dimension: one for one in given}
    second = {one.dimension: one.score for one in audited}
    if not scores:
        return None
    lines = tuple(
        ScoreLine(
            dimension=dimension,
            weight=weight,
            score=scores[dimension].score,
            evidence=scores[dimension].evidence,
            audited=second.get(dimension),
        )
        for dimension, weight in WEIGHTS.items()
        if dimension in scores
    )
    weighed = sum(line.weight * line.score for line in lines) / sum(line.weight for line in lines)
    return QualityScore(total=round(weighed), lines=lines)
