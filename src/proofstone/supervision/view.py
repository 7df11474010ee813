"""Where the agents of a run stand, by what is on record: one row for each that is attended to.

At each turn boundary all that is known of an agent is on record with it. What has come since then tells whether it is
in a turn, whether it was pinged, and how it ended.

What really changed in a work tree while an agent is at work there, and which interfaces with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from proofstone.agents.models import ActivityKind, ChangedSignature, Fault, Worked, WorkedFile
from proofstone.common.models import ChangedPath
from proofstone.errors import RepositoryError
from proofstone.git.objects import file_at
from proofstone.git.store import Store
from proofstone.git.work_tree import WorkTree, freeze, too_heavy
from proofstone.ledger import Ledger
from proofstone.ledger.models import EventRow, MessageRow
from proofstone.ledger.schema import Stored
from proofstone.runtime.run_index import CHILD
from proofstone.supervision.interfaces import changed_signatures
from proofstone.supervision.models.events import (
    AttemptEnded,
    Claimed,
    Event,
    Observed,
    QuestionOpened,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import AgentSeen, Level
from proofstone.supervision.rules.attendance import Attendance
from proofstone.supervision.rules.position import row, seen

_ENDS: Final = ("Output", "Fault")
_LIVES: Final = ("Activity", "Turn", "ToolResult")
"""Signs of life."""


@dataclass
class _Followed:
    """One dispatch, from its last boundary on."""

    boundary: Stored[MessageRow] | None = None
    since: list[Stored[MessageRow]] = field(default_factory=list)

    def take(self, stored: Stored[MessageRow]) -> None:
        if stored.row.type == "Attended":
            self.boundary, self.since = stored, []
        else:
            self.since.append(stored)

    @property
    def ended(self) -> bool:
        """A fault that was overcome is followed by something."""
        return any(item.row.type in _ENDS for item in self.since[-1:])


def agents_seen(ledger: Ledger, run_id: str, now: float, *, running: bool) -> tuple[AgentSeen, ...]:
    """Of the run and its parts, in the order in which they were first seen; of an agent that began anew, the last."""
    found: dict[tuple[str, str], AgentSeen] = {}
    for part, id in _parts(ledger, run_id):
        for item in _followed(ledger, id):
            if item.boundary is not None:
                agent = _agent(item, item.boundary, part, now, running=running)
                found[part, agent.position.agent] = agent
    return tuple(found.values())


def _parts(ledger: Ledger, run_id: str) -> Iterator[tuple[str, str]]:
    yield "", run_id
    for stored in ledger.read(EventRow, run_id=run_id, type=CHILD):
        said = stored.row.payload
        yield f"{said['kind']} {said['iteration']}", str(said["run_id"])


def _followed(ledger: Ledger, run_id: str) -> list[_Followed]:
    found: dict[str, _Followed] = {}
    for stored in ledger.read(MessageRow, run_id=run_id):
        if isinstance(id := stored.row.payload.get("dispatch"), str):
            found.setdefault(id, _Followed()).take(stored)
    return list(found.values())


def _agent(one: _Followed, boundary: Stored[MessageRow], part: str, now: float, *, running: bool) -> AgentSeen:
    known = Attendance.model_validate(boundary.row.payload["standing"])
    standing, at_work = known.standing, running and not one.ended
    for at, event in _events(one, boundary, at_work=at_work):
        standing = seen(standing, Observed(agent=standing.agent, at=at, event=event))
    return AgentSeen(part=part, at_work=at_work, position=row(standing, now, known.monitor.limits))


def _events(one: _Followed, boundary: Stored[MessageRow], *, at_work: bool) -> Iterator[tuple[float, Event]]:
    """What has happened since the boundary."""
    at = _time(boundary)
    if at_work:
        yield at, TurnStarted()
    pinged = False
    for stored in one.since:
        at, said = _time(stored), stored.row.payload
        pinged = stored.row.type == "Aloud" or (pinged and stored.row.type not in _LIVES)
        match stored.row.type:
            case "Activity" if isinstance(did := said["activity"], dict) and did["kind"] == ActivityKind.TOOL:
                yield at, ToolUsed(name=str(did["name"]))
            case "Turn" if at_work:
                yield at, TurnEnded()
    if one.ended:
        yield from ((at, event) for event in _ending(one.since[-1].row))
    elif pinged:
        yield at, QuestionOpened(level=Level.PING)


def _ending(last: MessageRow) -> Iterator[Event]:
    if last.type == "Fault":
        yield Claimed(status="failure", error=Fault.model_validate(last.payload["fault"]).why)
    yield AttemptEnded()


def _time(stored: Stored[MessageRow]) -> float:
    return datetime.fromisoformat(stored.ts).timestamp()


@dataclass(frozen=True)
class WorkSight:
    """A private work tree. Nobody writes there meanwhile: it is looked at between two turns."""

    store: Store
    place: WorkTree
    base_tree: str

    def worked(self, impact: Iterable[str] = ()) -> Worked:
        if why := too_heavy(self.place.files):
            raise RepositoryError(f"it cannot be frozen: {why}")
        frozen, said = freeze(self.store, self.place, self.base_tree), tuple(impact)
        looked_at = [self._one(path, frozen.tree, said) for path in frozen.change.paths]
        return Worked(
            files=tuple(file for file, _ in looked_at),
            signatures=tuple(signature for _, signatures in looked_at for signature in signatures or ()),
            unseen=tuple(file.path for file, signatures in looked_at if signatures is None),
        )

    def _one(
        self, changed: ChangedPath, tree: str, impact: tuple[str, ...]
    ) -> tuple[WorkedFile, tuple[ChangedSignature, ...] | None]:
        """The file, and its interfaces that are not what they were; None: that cannot be told."""
        before, after = (file_at(self.store.git(), at, changed.path) for at in (self.base_tree, tree))
        old, new = (dict.fromkeys((text or b"").decode("utf-8", "replace").splitlines()) for text in (before, after))
        file = WorkedFile(
            path=changed.path,
            kind=changed.kind,
            added=tuple(line for line in new if line not in old),
            removed=tuple(line for line in old if line not in new),
        )
        return file, changed_signatures(changed.path, before, after, impact)
