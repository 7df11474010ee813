"""Who is asked about a plan."""

from __future__ import annotations

import pytest

from proofstone.agents.roles.models.plan_gate_records import PlanQuality, TeamMode
from proofstone.plan_gate.models import Complexity
from proofstone.plan_gate.rules.decision import choose_team
from tests.rows import each_row

BASE, SCALED = TeamMode.BASE, TeamMode.SCALED
RICH, ADEQUATE, THIN = PlanQuality.RICH, PlanQuality.ADEQUATE, PlanQuality.THIN
SIX, SEVEN = Complexity(steps=3, domains=3), Complexity(steps=3, domains=3, files=1)
MOST = Complexity(steps=3, domains=3, integrations=4, compliance=2, unknowns=3, files=1)


@each_row(
    ("quality", "complexity", "unknowns", "mode", "why"),
    [
        (RICH, Complexity(), 0, BASE, "complexity 0 is below 7"),
        (RICH, SIX, 3, BASE, "complexity 6 is below 7"),
        (RICH, SEVEN, 0, SCALED, "complexity 7 is 7 or more"),
        (ADEQUATE, SEVEN, 0, SCALED, "complexity 7 is 7 or more"),
        (RICH, MOST, 9, SCALED, "complexity 16 is 7 or more"),
        (ADEQUATE, Complexity(unknowns=3), 4, SCALED, "4 things are marked as unknown"),
        (THIN, MOST, 9, BASE, "the plan is THIN: there is too little of it for more eyes"),
    ],
)
@pytest.mark.seed("plan-gate", "plan-quality")
def test_complexity_or_many_unknowns_scale_a_team_unless_the_plan_is_thin(
    quality: PlanQuality, complexity: Complexity, unknowns: int, mode: TeamMode, why: str
) -> None:
    team = choose_team(quality, complexity, unknowns)
    assert (team.mode, team.reason) == (mode, why)


def test_a_scaled_team_has_a_domain_expert_and_a_devils_advocate_beside_the_others() -> None:
    assert choose_team(RICH, SIX, 0).roles == ("challenger", "researcher", "synthesizer")
    scaled = ("challenger", "domain_expert", "devils_advocate", "researcher", "synthesizer")
    assert choose_team(RICH, SEVEN, 0).roles == scaled


def test_complexity_is_at_most_sixteen() -> None:
    assert MOST.total == 16
