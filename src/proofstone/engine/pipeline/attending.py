"""Who attends to those who research, design and plan: before their work they show that they understand it."""

from __future__ import annotations

from dataclasses import dataclass

from proofstone.adapters.backends import Backend
from proofstone.config.backends import works_alone
from proofstone.contracts.agent import Dispatched, Occasion
from proofstone.contracts.reverify.judging import JudgeRequest
from proofstone.contracts.reverify.understanding import Tier
from proofstone.core.reverify.attendance import CALLED, PHASES
from proofstone.core.reverify.limits import Limits
from proofstone.core.reverify.watched import Watched, tier_of
from proofstone.engine.agents.casting import can_judge
from proofstone.engine.agents.onlookers import Asking, Onlookers
from proofstone.engine.continuity.attendant import Continuity
from proofstone.engine.continuity.attended import Attended
from proofstone.engine.continuity.board import Board
from proofstone.engine.continuity.judging import Dispatch, Judge
from proofstone.engine.continuity.subject import Subject, why_not_asked
from proofstone.roles.architect import JUDGE


@dataclass(frozen=True)
class Attending:
    board: Board
    limits: Limits

    def to(self, one: Asking, place: Onlookers, occasion: Occasion) -> Continuity | None:
        """None: whoever is asked reads and answers once, or cannot be asked."""
        role, backend = one.role.name, _backend(place, occasion)
        tier = tier_of(role)
        if tier is Tier.EXEMPT or why_not_asked(role, backend):
            return None
        subject = Subject(
            watched=Watched(
                agent=occasion.agent.replace(":", "-").replace(role, CALLED.get(role, role)),
                role=role,
                phase=PHASES[role],
                own_tools=works_alone(backend.identity.spec),
            ),
            tier=tier,
            ground=place.ground,
            board=self.board,
            knows=len(self.board.versions()),
            judge=Judge(occasion, one.text, place.commit, _judge(place)),
            answers=lambda asked: backend.identity.answers(role, asked),
            name=one.role.title,
            number=1,
            total=1,
        )
        return Continuity(Attended(subject, self.limits))


def _backend(place: Onlookers, occasion: Occasion) -> Backend:
    return place.backends.get(occasion.agent) or place.backends[occasion.role]


def _judge(place: Onlookers) -> Dispatch | None:
    architect = place.backends.get(JUDGE.name)
    if architect is None or not can_judge(architect):
        return None

    def judge(request: JudgeRequest, occasion: Occasion) -> Dispatched:
        return place.dispatch(Asking(JUDGE, request, occasion))

    return judge
