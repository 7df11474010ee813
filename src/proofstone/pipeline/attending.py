"""Supervision, amendments and memory in a run of the pipeline.

Agents that research, design and plan first show that they understand their task. A user can add requirements to a run,
which take effect at fixed, recorded points. A run reads lessons from the memory and leaves its own.
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

    def to(self, request: Asking, place: Onlookers, occasion: Occasion) -> Continuity | None:
        """Return the attendant of an agent; None if the agent answers only once, or cannot be asked."""
        role, backend = request.role.name, _backend_of(place, occasion)
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
            judge=Judge(occasion, request.text, place.commit, _judge_of(place)),
            answers=lambda question: backend.identity.answers(role, question),
            name=request.role.title,
            number=1,
            total=1,
        )
        return Continuity(Attended(subject, self.limits))


def _backend_of(place: Onlookers, occasion: Occasion) -> Backend:
    return place.backends.get(occasion.agent) or place.backends[occasion.role]


def _judge_of(place: Onlookers) -> Dispatch | None:
    architect = place.backends.get(JUDGE.name)
    if architect is None or not can_judge(architect):
        return None

    def judge(request: JudgeRequest, occasion: Occasion) -> Dispatched:
        return place.dispatch(Asking(JUDGE, request, occasion))

    return judge


PLANNED: Final = "plan/"
"""The prefix of the points at which the planner receives additions, which are then planned."""
_ADDITIONS_EVENT: Final = "pipeline.heard"


@dataclass(frozen=True)
class Adding:
    board: Board
    journal: PipelineJournal
    heard: Steps

    @classmethod
    def opened(cls, board: Board, journal: PipelineJournal) -> Adding:
        return cls(board, journal, Steps.opened(board.ledger, board.run_id, _ADDITIONS_EVENT, "run"))

    def unplanned(self, point: str) -> tuple[str, ...]:
        """Return the additions that are neither in a plan nor in a task, as recorded when the run first passed this
        point.
        """
        recorded = self.heard.recall(point, point)
        if recorded is None:  # an empty list is recorded too: later additions take effect at the next point
            recorded = self.heard.keep(
                point, point, {"numbers": [addition.number for addition in self._find_open(point)]}
            )
        numbers = recorded["numbers"] if isinstance(recorded["numbers"], list) else []
        return tuple(addition.text for addition in self.board.added() if addition.number in numbers)

    def too_late(self) -> tuple[str, ...]:
        """Return the additions that are in no plan when the run is over."""
        return tuple(addition.text for addition in self._find_open(""))

    def _find_open(self, point: str) -> list[Added]:
        handled = self._planned_numbers(before=point) | self._amended_numbers()
        return [addition for addition in self.board.added() if addition.number not in handled]

    def _planned_numbers(self, before: str) -> set[int]:
        planned: set[int] = set()
        for point, payload in self.heard.all(PLANNED):
            numbers = payload["numbers"]
            if point != before and isinstance(numbers, list):
                planned.update(int(str(number)) for number in numbers)
        return planned

    def _amended_numbers(self) -> set[int]:
        """Return the additions that tasks of any part took in while they ran."""
        rows = (
            stored.row
            for part in self.journal.children()
            for stored in self.journal.ledger.read(EventRow, run_id=part, type="plan.amended")
        )
        return {int(str(row.payload["number"])) for row in rows if row.payload.get("number")}


_RECALL_STEP: Final = "recall"
_LESSONS_STEP: Final = "learnt"


@dataclass(frozen=True)
class Learning:
    memory: Memory | None
    bus: Bus
    steps: Steps
    run_id: str

    def recalled(self, request: str) -> tuple[str, ...]:
        """Return the lessons of earlier runs about similar requests. They may change before a resume, so they are
        recorded.
        """
        recorded = self.steps.recall(_RECALL_STEP, request)
        if recorded is None:
            lines = self._query_memory(request)
            recorded = {"lines": [*lines]}
            self.steps.keep(_RECALL_STEP, request, recorded)
        return tuple(map(str, recorded["lines"] if isinstance(recorded["lines"], list) else ()))

    def _query_memory(self, request: str) -> tuple[str, ...]:
        if self.memory is None:
            return ()
        name = f"run/{self.run_id}/{_RECALL_STEP}"
        self.bus.publish("planner", "memory", "MemoryQuery", {"words": [request]}, message_id=f"{name}/query")
        calibration = calibrate(self.memory.entries(), (request,))
        entries: dict[str, JsonValue] = {"entries": [*calibration.used]}
        self.bus.publish("memory", "planner", "MemoryEntries", entries, message_id=f"{name}/entries")
        return (*(f"must not: {line}" for line in calibration.must_not), *calibration.should_prefer)

    def keep(self, output: KnowledgeOutput) -> str:
        """Write the lessons to the memory, once. Return the result in one line, or an empty string if this was done
        before.
        """
        if self.steps.recall(_LESSONS_STEP, self.run_id) is not None:
            return ""
        at = now()
        lessons = learnt(output, self.run_id, at)
        summary = _describe_lessons(lessons, self._write_entries(lessons, at))
        self.steps.keep(_LESSONS_STEP, self.run_id, {"told": summary})
        return summary

    def _write_entries(self, lessons: Learnt, at: str) -> str:
        """Write the entries. A failure does not stop the run; it is reported."""
        if self.memory is None:
            return "not remembered: the memory is switched off"
        try:
            for entry in lessons.entries:
                payload = entry.model_dump(mode="json")
                self.bus.publish(ROLE, "memory", "MemoryEntry", payload, message_id=f"run/{entry.entry_id}")
                self.memory.write(entry)
            self.memory.revise(lambda existing: consolidate(existing, at))
        except (ProofstoneError, OSError) as error:
            return f"not remembered: {error}"
        return "remembered"


def _describe_lessons(lessons: Learnt, state: str) -> str:
    summary = f"{counted(len(lessons.entries), 'lesson')} {state}"
    proposed = f"{counted(len(lessons.proposals), 'proposal')} for instruction files of agents: review and apply them"
    refused = [f"refused: {refusal.lesson.content[:120]!r}: {refusal.why}" for refusal in lessons.refused]
    return "; ".join((summary, *([proposed] if lessons.proposals else []), *refused))
