"""The quality score, which is for the reader alone."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.plan_gate import Dimension
from proofstone.plan_gate.rules.decision import WEIGHTS, compute_score
from tests.plan_gate.talk import score
from tests.rows import each_row

APPROACH, RISK, ASSUMPTIONS = Dimension.APPROACH, Dimension.RISK, Dimension.ASSUMPTIONS
INTEGRATION, UNKNOWNS, CONSTRAINTS = Dimension.INTEGRATION, Dimension.UNKNOWNS, Dimension.CONSTRAINTS


def test_the_weights_are_those_of_the_rules_and_make_one() -> None:
    assert WEIGHTS == {
        APPROACH: 0.25,
        RISK: 0.20,
        ASSUMPTIONS: 0.15,
        INTEGRATION: 0.15,
        UNKNOWNS: 0.15,
        CONSTRAINTS: 0.10,
    }
    assert sum(WEIGHTS.values()) == pytest.approx(1)


@each_row(
    ("given", "total"),
    [
        (dict.fromkeys(Dimension, 10), 10),
        (dict.fromkeys(Dimension, 1), 1),
        ({APPROACH: 10, RISK: 10, ASSUMPTIONS: 1, INTEGRATION: 1, UNKNOWNS: 1, CONSTRAINTS: 1}, 5),
        ({APPROACH: 1, RISK: 1, ASSUMPTIONS: 10, INTEGRATION: 10, UNKNOWNS: 10, CONSTRAINTS: 10}, 6),
        ({CONSTRAINTS: 8}, 8),
        ({APPROACH: 10, CONSTRAINTS: 3}, 8),
    ],
)
def test_the_total_is_weighed_over_what_was_scored(given: dict[Dimension, int], total: int) -> None:
    quality = compute_score(score(*one) for one in given.items())
    assert quality is not None
    assert quality.total == total
    assert [line.dimension for line in quality.lines] == [one for one in WEIGHTS if one in given]
    assert {line.dimension: (line.score, line.weight) for line in quality.lines} == {
        one: (points, WEIGHTS[one]) for one, points in given.items()
    }


def test_nothing_scored_is_no_score() -> None:
    assert compute_score(()) is None
    assert compute_score((), [score(APPROACH, 3)]) is None


@each_row(("second", "disputed"), [(7, False), (8, False), (6, False), (9, True), (5, True)])
@pytest.mark.seed("plan-gate", "binary-counts")
def test_what_the_audit_gives_is_shown_and_does_not_count(second: int, disputed: bool) -> None:
    quality = compute_score([score(APPROACH, 7), score(RISK, 7)], [score(APPROACH, second), score(UNKNOWNS, 1)])
    assert quality is not None
    assert quality.total == 7
    assert [(line.dimension, line.audited, line.is_disputed) for line in quality.lines] == [
        (APPROACH, second, disputed),
        (RISK, None, False),
    ]
    assert quality.lines[0].evidence == "approach is seen"
