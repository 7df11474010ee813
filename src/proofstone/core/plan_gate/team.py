"""Who is asked about a plan: a trivial one needs nobody, a complex one needs more eyes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proofstone.contracts.plan_gate.record import Origin, PlanQuality, TeamMode
from proofstone.contracts.plan_gate.report import Complexity

SCALED_AT: Final = 7
"""Points of complexity."""
MANY_UNKNOWNS: Final = 3
"""More than these."""

CHALLENGERS: Final = {
    TeamMode.BASE: (Origin.CHALLENGER,),
    TeamMode.SCALED: (Origin.CHALLENGER, Origin.DOMAIN_EXPERT, Origin.DEVILS_ADVOCATE),
}
ROLE_OF: Final = {
    Origin.CHALLENGER: "challenger",
    Origin.DOMAIN_EXPERT: "domain_expert",
    Origin.DEVILS_ADVOCATE: "devils_advocate",
}
ALWAYS: Final = ("researcher", "synthesizer")


@dataclass(frozen=True)
class Team:
    mode: TeamMode
    why: str

    @property
    def roles(self) -> tuple[str, ...]:
        return (*(ROLE_OF[origin] for origin in CHALLENGERS[self.mode]), *ALWAYS)


def team_for(quality: PlanQuality, complexity: Complexity, unknowns: int) -> Team:
    if quality is PlanQuality.THIN:
        return Team(TeamMode.BASE, "the plan is THIN: there is too little of it for more eyes")
    if complexity.total >= SCALED_AT:
        return Team(TeamMode.SCALED, f"complexity {complexity.total} is {SCALED_AT} or more")
    if unknowns > MANY_UNKNOWNS:
        return Team(TeamMode.SCALED, f"{unknowns} things are marked as unknown")
    return Team(TeamMode.BASE, f"complexity {complexity.total} is below {SCALED_AT}")
