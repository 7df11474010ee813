"""Who attends to those who research, design and plan: before their work they show that they understand it.

What a person adds to a run while it is under way: heard at fixed points, and on record there.

What a run of the pipeline takes from the memory, and what it leaves there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends import Backend
from proofstone.agents.bus import Bus
from proofstone.agents.dispatch import now
from proofstone.agents.gate_agents import can_judge
from proofstone.agents.memory.models import Memory
from proofstone.agents.memory.rules.calibration import calibrate
from proofstone.agents.memory.rules.consolidation import consolidate
from proofstone.agents.memory.rules.lessons import ROLE, Learnt, learnt
from proofstone.agents.models import Dispatched, Occasion
from proofstone.agents.read_only_agents import Asking, Onlookers
from proofstone.agents.roles.gate import JUDGE
from proofstone.agents.roles.models.gate import JudgeRequest
from proofstone.agents.roles.models.pipeline import KnowledgeOutput
from proofstone.common.text import counted
from proofstone.config.backends import works_alone
from proofstone.errors import ProofstoneError
from proofstone.ledger.models import EventRow
from proofstone.pipeline.journal import PipelineJournal
from proofstone.runtime.journal import Steps
from proofstone.supervision.attendant import Continuity
from proofstone.supervision.attended import Added, Attended, Board, Dispatch, Judge, Subject, why_not_asked
from proofstone.supervision.models.understanding import Tier
from proofstone.supervision.rules.attendance import CALLED, PHASES
from proofstone.supervision.rules.monitor_state import Limits, Watched, tier_of


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


PLANNED: Final = "plan/"
"""How the points begin at which whoever plans is told: what they were told is planned."""
_HEARD: Final = "pipeline.heard"


@dataclass(frozen=True)
class Adding:
    board: Board
    journal: PipelineJournal
    heard: Steps

    @classmethod
    def opened(cls, board: Board, journal: PipelineJournal) -> Adding:
        return cls(board, journal, Steps.opened(board.ledger, board.run_id, _HEARD, "run"))

    def unplanned(self, point: str) -> tuple[str, ...]:
        """What was added and is neither in a plan nor taken in by a task, as it was when the run first came by."""
        known = self.heard.recall(point, point)
        if known is None:  # that there was nothing is on record too: what is said later is heard at the next point
            known = self.heard.keep(point, point, {"numbers": [item.number for item in self._left(point)]})
        listed = known["numbers"] if isinstance(known["numbers"], list) else []
        return tuple(item.text for item in self.board.added() if item.number in listed)

    def too_late(self) -> tuple[str, ...]:
        """What nobody has planned when the run is over."""
        return tuple(item.text for item in self._left(""))

    def _left(self, point: str) -> list[Added]:
        settled = self._planned(before=point) | self._taken_in()
        return [item for item in self.board.added() if item.number not in settled]

    def _planned(self, before: str) -> set[int]:
        found: set[int] = set()
        for point, came in self.heard.all(PLANNED):
            numbers = came["numbers"]
            if point != before and isinstance(numbers, list):
                found.update(int(str(number)) for number in numbers)
        return found

    def _taken_in(self) -> set[int]:
        """By tasks of any part, in the middle of their work."""
        rows = (
            stored.row
            for part in self.journal.children()
            for stored in self.journal.ledger.read(EventRow, run_id=part, type="plan.amended")
        )
        return {int(str(row.payload["number"])) for row in rows if row.payload.get("number")}


_RECALLED: Final = "recall"
_LEARNT: Final = "learnt"


@dataclass(frozen=True)
class Learning:
    memory: Memory | None
    bus: Bus
    steps: Steps
    run_id: str

    def recalled(self, request: str) -> tuple[str, ...]:
        """What earlier runs have learnt about something like it. It may be something else when the run goes on, so it
        is on record."""
        known = self.steps.recall(_RECALLED, request)
        if known is None:
            found = self._found(request)
            known = {"lines": [*found]}
            self.steps.keep(_RECALLED, request, known)
        return tuple(map(str, known["lines"] if isinstance(known["lines"], list) else ()))

    def _found(self, request: str) -> tuple[str, ...]:
        if self.memory is None:
            return ()
        name = f"run/{self.run_id}/{_RECALLED}"
        self.bus.publish("planner", "memory", "MemoryQuery", {"words": [request]}, message_id=f"{name}/query")
        calibration = calibrate(self.memory.entries(), (request,))
        entries: dict[str, JsonValue] = {"entries": [*calibration.used]}
        self.bus.publish("memory", "planner", "MemoryEntries", entries, message_id=f"{name}/entries")
        return (*(f"must not: {line}" for line in calibration.must_not), *calibration.should_prefer)

    def keep(self, output: KnowledgeOutput) -> str:
        """Remember what may be remembered, once. What became of it, in a line; empty: that was said before."""
        if self.steps.recall(_LEARNT, self.run_id) is not None:
            return ""
        at = now()
        came = learnt(output, self.run_id, at)
        told = _told(came, self._remembered(came, at))
        self.steps.keep(_LEARNT, self.run_id, {"told": told})
        return told

    def _remembered(self, came: Learnt, at: str) -> str:
        """It holds nothing up: where it cannot be written, the run says so and goes on."""
        if self.memory is None:
            return "not remembered, as it is switched off"
        try:
            for entry in came.entries:
                payload = entry.model_dump(mode="json")
                self.bus.publish(ROLE, "memory", "MemoryEntry", payload, message_id=f"run/{entry.entry_id}")
                self.memory.write(entry)
            self.memory.revise(lambda there: consolidate(there, at))
        except (ProofstoneError, OSError) as error:
            return f"not remembered: {error}"
        return "remembered"


def _told(came: Learnt, how: str) -> str:
    kept = f"{counted(len(came.entries), 'lesson')} {how}"
    proposed = f"{counted(len(came.proposals), 'proposal')} for files that agents are told by: yours to take over"
    refused = [f"refused: {item.lesson.content[:120]!r}: {item.why}" for item in came.refused]
    return "; ".join((kept, *([proposed] if came.proposals else []), *refused))
