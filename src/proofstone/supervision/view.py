"""Show the positions of the agents of a run from the record, and the real change in an agent's work tree.

The whole state of an agent is recorded at each turn boundary. The messages after the last boundary tell whether the
agent is in a turn, whether it was pinged, and how it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from proofstone.agents.models import ActivityKind, Fault, SignatureChange, WorkFile, WorkSnapshot
from proofstone.common.models import ChangedPath
from proofstone.errors import RepositoryError
from proofstone.git.objects import read_file_at
from proofstone.git.store import Store
from proofstone.git.work_tree import WorkTree, find_oversized_file, freeze_work_tree
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.schema import StoredRow
from proofstone.runtime.run_index import CHILD_RUN_EVENT
from proofstone.supervision.interfaces import find_changed_signatures
from proofstone.supervision.models.events import (
    AgentEvent,
    AgentObservation,
    AttemptEnded,
    QuestionOpened,
    ResultClaimed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import AgentPosition, ReverifyLevel
from proofstone.supervision.rules.position import apply_event, build_position_row
from proofstone.supervision.rules.supervision_state import SupervisionState

_FINAL_TYPES: Final = ("Output", "Fault")
_LIFE_TYPES: Final = ("Activity", "Turn", "ToolResult")
"""Message types that are signs of life."""


@dataclass
class _DispatchLog:
    """The messages of one dispatch, from its last boundary on."""

    boundary: StoredRow[MessageRow] | None = None
    since: list[StoredRow[MessageRow]] = field(default_factory=list)

    def take(self, stored: StoredRow[MessageRow]) -> None:
        if stored.row.type == "Attended":
            self.boundary, self.since = stored, []
        else:
            self.since.append(stored)

    @property
    def has_ended(self) -> bool:
        """Whether the last message is final. A fault that was retried is followed by other messages."""
        return any(stored.row.type in _FINAL_TYPES for stored in self.since[-1:])


def read_agent_positions(ledger: Ledger, run_id: str, now: float, *, running: bool) -> tuple[AgentPosition, ...]:
    """Return the agents of the run and its parts in the order in which they first appeared. An agent that started
    over appears once, with its last state.
    """
    agents: dict[tuple[str, str], AgentPosition] = {}
    for part, id in _list_runs(ledger, run_id):
        for log in _read_dispatches(ledger, id):
            if log.boundary is not None:
                agent = _read_agent(log, log.boundary, part, now, running=running)
                agents[part, agent.position.agent] = agent
    return tuple(agents.values())


def _list_runs(ledger: Ledger, run_id: str) -> Iterator[tuple[str, str]]:
    yield "", run_id
    for stored in ledger.read(EventRow, run_id=run_id, type=CHILD_RUN_EVENT):
        payload = stored.row.payload
        yield f"{payload['kind']} {payload['iteration']}", str(payload["run_id"])


def _read_dispatches(ledger: Ledger, run_id: str) -> list[_DispatchLog]:
    logs: dict[str, _DispatchLog] = {}
    for stored in ledger.read(MessageRow, run_id=run_id):
        if isinstance(id := stored.row.payload.get("dispatch"), str):
            logs.setdefault(id, _DispatchLog()).take(stored)
    return list(logs.values())


def _read_agent(
    log: _DispatchLog, boundary: StoredRow[MessageRow], part: str, now: float, *, running: bool
) -> AgentPosition:
    attendance = SupervisionState.model_validate(boundary.row.payload["standing"])
    standing, at_work = attendance.standing, running and not log.has_ended
    for at, event in _events(log, boundary, at_work=at_work):
        standing = apply_event(standing, AgentObservation(agent=standing.agent, at=at, event=event))
    return AgentPosition(
        part=part, at_work=at_work, position=build_position_row(standing, now, attendance.monitor.limits)
    )


def _events(log: _DispatchLog, boundary: StoredRow[MessageRow], *, at_work: bool) -> Iterator[tuple[float, AgentEvent]]:
    """Yield the events since the boundary."""
    at = _timestamp(boundary)
    if at_work:
        yield at, TurnStarted()
    pinged = False
    for stored in log.since:
        at, payload = _timestamp(stored), stored.row.payload
        pinged = stored.row.type == "Aloud" or (pinged and stored.row.type not in _LIFE_TYPES)
        match stored.row.type:
            case "Activity" if (
                isinstance(activity := payload["activity"], dict) and activity["kind"] == ActivityKind.TOOL
            ):
                yield at, ToolUsed(name=str(activity["name"]))
            case "Turn" if at_work:
                yield at, TurnEnded()
    if log.has_ended:
        yield from ((at, event) for event in _end_events(log.since[-1].row))
    elif pinged:
        yield at, QuestionOpened(level=ReverifyLevel.PING)


def _end_events(last_message: MessageRow) -> Iterator[AgentEvent]:
    if last_message.type == "Fault":
        yield ResultClaimed(status="failure", error=Fault.model_validate(last_message.payload["fault"]).why)
    yield AttemptEnded()


def _timestamp(stored: StoredRow[MessageRow]) -> float:
    return datetime.fromisoformat(stored.ts).timestamp()


@dataclass(frozen=True)
class WorkTreeChanges:
    """The changes in a private work tree. They are read between two turns, so nobody writes at the same time."""

    store: Store
    place: WorkTree
    base_tree: str

    def observe_changes(self, impact: Iterable[str] = ()) -> WorkSnapshot:
        if why := find_oversized_file(self.place.files):
            raise RepositoryError(f"the work tree cannot be frozen: {why}")
        frozen, planned_impact = freeze_work_tree(self.store, self.place, self.base_tree), tuple(impact)
        compared = [self._compare_file(path, frozen.tree, planned_impact) for path in frozen.change.paths]
        return WorkSnapshot(
            files=tuple(file for file, _ in compared),
            signatures=tuple(signature for _, signatures in compared for signature in signatures or ()),
            unseen=tuple(file.path for file, signatures in compared if signatures is None),
        )

    def _compare_file(
        self, changed: ChangedPath, tree: str, impact: tuple[str, ...]
    ) -> tuple[WorkFile, tuple[SignatureChange, ...] | None]:
        """Return the changed file and its changed signatures, or None if they are unknown."""
        before, after = (read_file_at(self.store.git(), at, changed.path) for at in (self.base_tree, tree))
        old, new = (dict.fromkeys((text or b"").decode("utf-8", "replace").splitlines()) for text in (before, after))
        file = WorkFile(
            path=changed.path,
            kind=changed.kind,
            added=tuple(line for line in new if line not in old),
            removed=tuple(line for line in old if line not in new),
        )
        return file, find_changed_signatures(changed.path, before, after, impact)
