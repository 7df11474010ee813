"""Supervision, amendments and memory in a run of the pipeline.

Agents that research, design and plan first show that they understand their task. A user can add requirements to a run,
which take effect at fixed, recorded points. A run reads lessons from the memory and leaves its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from proofstone.agents.backends import Backend
from proofstone.agents.bus import MessageBus
from proofstone.agents.dispatch import format_now
from proofstone.agents.gate_agents import can_judge
from proofstone.agents.memory.models import MemoryEntry, MemoryStore
from proofstone.agents.memory.rules.calibration import calibrate
from proofstone.agents.memory.rules.consolidation import consolidate
from proofstone.agents.memory.rules.lessons import KNOWLEDGE_ROLE, SortedLessons, sort_lessons
from proofstone.agents.models import DispatchKey, DispatchResult
from proofstone.agents.read_only_agents import ReadOnlyAgents, ReadOnlyRequest
from proofstone.agents.roles.gate import JUDGE
from proofstone.agents.roles.models.gate import JudgeRequest
from proofstone.agents.roles.models.pipeline import KnowledgeOutput
from proofstone.common.text import pluralize
from proofstone.config.backends import is_coding_agent
from proofstone.errors import ProofstoneError
from proofstone.ledger.models import EventRow
from proofstone.pipeline.journal import PipelineJournal
from proofstone.runtime.journal import Journal
from proofstone.supervision.agent_supervision import (
    AgentSupervision,
    AskArchitect,
    ContextBoard,
    SupervisionTask,
    UnderstandingJudge,
    explain_not_supervised,
)
from proofstone.supervision.models.context import ContextRequirement
from proofstone.supervision.models.understanding import SupervisionTier
from proofstone.supervision.rules.monitor_state import AgentProfile, SupervisionLimits, find_tier
from proofstone.supervision.rules.supervision_state import AGENT_NAME_BY_ROLE, PHASE_BY_ROLE
from proofstone.supervision.supervisor import AgentSupervisor


@dataclass(frozen=True)
class PipelineSupervision:
    board: ContextBoard
    limits: SupervisionLimits

    def supervisor_for(
        self, request: ReadOnlyRequest, place: ReadOnlyAgents, occasion: DispatchKey
    ) -> AgentSupervisor | None:
        """Return the supervisor of an agent; None if the agent answers only once, or cannot be asked."""
        role, backend = request.role.name, _backend_of(place, occasion)
        tier = find_tier(role)
        if tier is SupervisionTier.EXEMPT or explain_not_supervised(role, backend):
            return None
        subject = SupervisionTask(
            profile=AgentProfile(
                agent=occasion.agent.replace(":", "-").replace(role, AGENT_NAME_BY_ROLE.get(role, role)),
                role=role,
                phase=PHASE_BY_ROLE[role],
                own_tools=is_coding_agent(backend.identity.spec),
            ),
            tier=tier,
            tool_context=place.tool_context,
            board=self.board,
            known_version=len(self.board.build_versions()),
            judge=UnderstandingJudge(occasion, request.text, place.commit, _judge_of(place)),
            can_answer=lambda question: backend.identity.can_answer(role, question),
            name=request.role.title,
            number=1,
            total=1,
        )
        return AgentSupervisor(AgentSupervision(subject, self.limits))


def _backend_of(place: ReadOnlyAgents, occasion: DispatchKey) -> Backend:
    return place.backends.get(occasion.agent) or place.backends[occasion.role]


def _judge_of(place: ReadOnlyAgents) -> AskArchitect | None:
    architect = place.backends.get(JUDGE.name)
    if architect is None or not can_judge(architect):
        return None

    def judge(request: JudgeRequest, occasion: DispatchKey) -> DispatchResult:
        return place.dispatch(ReadOnlyRequest(JUDGE, request, occasion))

    return judge


PLANNING_POINT_PREFIX: Final = "plan/"
"""The prefix of the points at which the planner receives additions, which are then planned."""
_ADDITIONS_EVENT: Final = "pipeline.heard"


@dataclass(frozen=True)
class Amendments:
    board: ContextBoard
    journal: PipelineJournal
    recorded: Journal

    @classmethod
    def load(cls, board: ContextBoard, journal: PipelineJournal) -> Amendments:
        return cls(board, journal, Journal.load(board.ledger, board.run_id, _ADDITIONS_EVENT, "run"))

    def read_unplanned(self, point: str) -> tuple[str, ...]:
        """Return the additions that are neither in a plan nor in a task, as recorded when the run first passed this
        point.
        """
        recorded = self.recorded.lookup(point, point)
        if recorded is None:  # an empty list is recorded too: later additions take effect at the next point
            recorded = self.recorded.record(
                point, point, {"numbers": [addition.number for addition in self._find_open(point)]}
            )
        numbers = recorded["numbers"] if isinstance(recorded["numbers"], list) else []
        return tuple(addition.text for addition in self.board.read_requirements() if addition.number in numbers)

    def read_all(self, point: str) -> tuple[str, ...]:
        """Return all additions to the run, as recorded when the run first passed this point."""
        recorded = self.recorded.lookup(point, point)
        if recorded is None:
            recorded = self.recorded.record(point, point, {"count": len(self.board.read_requirements())})
        return tuple(addition.text for addition in self.board.read_requirements()[: int(str(recorded["count"]))])

    def read_texts(self) -> tuple[str, ...]:
        """Return all additions to the run so far."""
        return tuple(addition.text for addition in self.board.read_requirements())

    def find_unplanned_at_end(self) -> tuple[str, ...]:
        """Return the additions that are in no plan when the run is over."""
        return tuple(addition.text for addition in self._find_open(""))

    def _find_open(self, point: str) -> list[ContextRequirement]:
        handled = self._planned_numbers(before=point) | self._amended_numbers()
        return [addition for addition in self.board.read_requirements() if addition.number not in handled]

    def _planned_numbers(self, before: str) -> set[int]:
        planned: set[int] = set()
        for point, payload in self.recorded.with_prefix(PLANNING_POINT_PREFIX):
            numbers = payload["numbers"]
            if point != before and isinstance(numbers, list):
                planned.update(int(str(number)) for number in numbers)
        return planned

    def _amended_numbers(self) -> set[int]:
        """Return the additions that tasks of any part took in while they ran."""
        rows = (
            stored.row
            for part in self.journal.list_children()
            for stored in self.journal.ledger.read(EventRow, run_id=part, type="plan.amended")
        )
        return {int(str(row.payload["number"])) for row in rows if row.payload.get("number")}


_RECALL_STEP: Final = "recall"
_LESSONS_STEP: Final = "learnt"
_COURSE_STEP: Final = "remembered"


@dataclass(frozen=True)
class PipelineMemory:
    memory: MemoryStore | None
    bus: MessageBus
    steps: Journal
    run_id: str
    request: str

    def recall_lessons(self, request: str) -> tuple[str, ...]:
        """Return the lessons of earlier runs about similar requests. They may change before a resume, so they are
        recorded.
        """
        recorded = self.steps.lookup(_RECALL_STEP, request)
        if recorded is None:
            lines = self._query_memory(request)
            recorded = {"lines": [*lines]}
            self.steps.record(_RECALL_STEP, request, recorded)
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

    def store_lessons(self, output: KnowledgeOutput) -> str:
        """Write the lessons to the memory, once. Return the result in one line, or an empty string if this was done
        before.
        """
        if self.steps.lookup(_LESSONS_STEP, self.run_id) is not None:
            return ""
        at = format_now()
        lessons = sort_lessons(output, self.run_id, at, self.request)
        summary = _describe_lessons(lessons, self._write_entries(KNOWLEDGE_ROLE, lessons.entries, at))
        self.steps.record(_LESSONS_STEP, self.run_id, {"told": summary})
        return summary

    def store_course(self, entries: Callable[[str], tuple[MemoryEntry, ...]]) -> str:
        """Write what the engine itself leaves about the run, once; `entries` builds it for the time of writing. Return
        the result in one line, or an empty string if there was nothing to write.
        """
        if self.memory is None or self.steps.lookup(_COURSE_STEP, self.run_id) is not None:
            return ""
        at = format_now()
        if not (built := entries(at)):
            return ""
        state = self._write_entries("planner", built, at)
        self.steps.record(_COURSE_STEP, self.run_id, {"entries": len(built)})
        return f"how the run went: {state}"

    def _write_entries(self, role: str, entries: tuple[MemoryEntry, ...], at: str) -> str:
        """Write the entries. A failure does not stop the run; it is reported."""
        if self.memory is None:
            return "not remembered: the memory is switched off"
        try:
            for entry in entries:
                payload = entry.model_dump(mode="json")
                self.bus.publish(role, "memory", "MemoryEntry", payload, message_id=f"run/{entry.entry_id}")
                self.memory.write(entry)
            self.memory.revise(lambda existing: consolidate(existing, at))
        except (ProofstoneError, OSError) as error:
            return f"not remembered: {error}"
        return "remembered"


def _describe_lessons(lessons: SortedLessons, state: str) -> str:
    summary = f"{pluralize(len(lessons.entries), 'lesson')} {state}"
    count = pluralize(len(lessons.proposals), "proposal")
    proposed = f"{count} for instruction files of agents: `proofstone memory proposals`"
    refused = [f"refused: {refusal.lesson.content[:120]!r}: {refusal.why}" for refusal in lessons.refused]
    return "; ".join((summary, *([proposed] if lessons.proposals else []), *refused))
