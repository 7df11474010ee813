"""Whether an agent looks before it decides (COA-5).

| work           | looks by half of it | at its end |
|----------------|---------------------|------------|
| research       | 2                   | 3          |
| design         | 1                   | 1          |
| planning       | 1                   | 2          |
| implementation | 1                   | 1          |

Before half of it nothing is due. Fewer looks than are due is LOW; none at all past half is MISSING, and that sets
re-verification off (T5). Other work asks for none, and the looks of a program with tools of its own cannot be counted:
EXEMPT.

Where each agent stands, from what the engine sees of it (COA-1). What it says itself is held against that.

| first match                                                          | status       |
|----------------------------------------------------------------------|--------------|
| it says that it is blocked                                           | BLOCKED      |
| it is being asked                                                    | REVERIFY     |
| more than four fifths of what it can see are taken                   | COMPACT_RISK |
| there is something to look at: silence, undeclared files, no look, … | ATTENTION    |
| it has handed its work over, or every criterion is met               | COMPLETING   |
| otherwise                                                            | ON_TRACK     |

Documents are stale when source has changed since its report was updated. Progress is criteria met of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.agents.tools.models import BEYOND, READING
from proofstone.check.rules.file_requests import granted
from proofstone.common.globs import undeclared
from proofstone.common.models import Contract
from proofstone.common.risk import docs_only
from proofstone.supervision.models.events import (
    AttemptEnded,
    CheckFailed,
    Claimed,
    CriteriaSeen,
    Event,
    FileChanged,
    GateEntered,
    GatePassed,
    Observed,
    QuestionClosed,
    QuestionOpened,
    ReportUpdated,
    Restarted,
    SelfLocated,
    TaskBegan,
    TokensUsed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import Docs, Level, Position, PositionStatus, SelfLocate, ToolUse, Work
from proofstone.supervision.rules.monitor_state import HALF, MINUTE, WINDOW_SHARE, Limits, Watched, ends_quiet

RESEARCH: Final = frozenset(str(tool) for tool in READING | BEYOND)
"""Tools that look something up: in the tree, its history, the memory, the web."""


class Minimum(NamedTuple):
    by_half: int
    at_end: int


MINIMUM: Final[Mapping[Work, Minimum]] = MappingProxyType(
    {
        Work.RESEARCH: Minimum(2, 3),
        Work.DESIGN: Minimum(1, 1),
        Work.PLANNING: Minimum(1, 2),
        Work.IMPLEMENTATION: Minimum(1, 1),
    }
)


def is_research(tool: str) -> bool:
    return tool in RESEARCH


def due(work: Work, met: int, total: int) -> int:
    """Looks that the work asks for by now."""
    if not total or met < total * HALF:
        return 0
    return MINIMUM[work].by_half if met < total else MINIMUM[work].at_end


def is_missing(work: Work | None, looks: int, met: int, total: int) -> bool:
    """Past half of it without one look, where one is required."""
    return work is not None and not looks and met > total * HALF and due(work, met, total) > 0


def tool_use(work: Work | None, looks: int, met: int, total: int) -> ToolUse:
    if work is None:
        return ToolUse.EXEMPT
    if is_missing(work, looks, met, total):
        return ToolUse.MISSING
    return ToolUse.LOW if looks < due(work, met, total) else ToolUse.ACTIVE


class Standing(Contract):
    """All that was seen of an agent that its row is made of."""

    agent: str
    work: Work | None = None
    """None: nobody counts how often it looks something up."""
    countable: bool = True
    """Its tools are ours, so that its calls can be counted."""
    phase: int = 0
    task: str = ""
    number: int = 0
    total: int = 0
    declared: tuple[str, ...] | None = None
    step: str = ""
    met: int = 0
    criteria: int = 0
    files: tuple[str, ...] = ()
    reported: bool = False
    unreported: bool = False
    """Source has changed since its report was updated."""
    tool_calls: int = 0
    looks: int = 0
    """In this task."""
    turns: int = 0
    tokens: int = 0
    window: int | None = None
    located_at: float | None = None
    stale: int = 0
    """So many times in a row it said that its documents are stale, or they were when it said where it is."""
    anomalies: tuple[str, ...] = ()
    """Of what it last said, what is not as it was seen."""
    failed: tuple[str, ...] = ()
    claimed: str = ""
    error: str = ""
    heard_at: float = 0.0
    in_turn: bool = False
    asked: Level | None = None
    over: bool = False

    @property
    def docs(self) -> Docs:
        if not self.reported:
            return Docs.MISSING
        return Docs.STALE if self.unreported else Docs.CURRENT

    @property
    def strays(self) -> tuple[str, ...]:
        """Files that it changed and that its task does not declare."""
        beyond = undeclared(self.files, self.declared) if self.declared is not None else ()
        return tuple(path for path in beyond if path not in granted(beyond, self.declared or ()))


def stands(watched: Watched, now: float) -> Standing:
    """An agent that is about to begin."""
    work = None if watched.own_tools else watched.work
    return Standing(agent=watched.agent, work=work, countable=not watched.own_tools, phase=watched.phase, heard_at=now)


# What was seen.


def seen(standing: Standing, observed: Observed) -> Standing:
    """As it stands after the event. What another agent does changes nothing."""
    if observed.agent != standing.agent:
        return standing
    changes = _changes(standing, observed.event, observed.at)
    if ends_quiet(observed.event):
        changes["heard_at"] = max(standing.heard_at, observed.at)
    return standing.model_copy(update=changes)


def _changes(at: Standing, event: Event, now: float) -> dict[str, object]:
    match event:
        case TaskBegan():
            return _began(event)
        case GateEntered():
            return {"step": "shows that it understands its task"}
        case GatePassed():
            return {"step": "begins"}
        case TurnStarted():
            return {"in_turn": True, "turns": at.turns + 1}
        case TurnEnded() | Restarted():
            return {"in_turn": False}
        case ToolUsed():
            looks = at.looks + is_research(event.name)
            return {"tool_calls": at.tool_calls + 1, "looks": looks, "step": f"uses {event.name}"}
        case FileChanged():
            files = tuple(dict.fromkeys((*at.files, event.path)))
            source = not docs_only((event.path,))
            return {"files": files, "unreported": at.unreported or source, "step": f"changes {event.path}"}
        case ReportUpdated():
            return {"reported": True, "unreported": False}
        case TokensUsed():
            return {"tokens": event.tokens, "window": event.window or at.window}
        case CriteriaSeen():
            return {"met": event.met, "criteria": event.total}
        case CheckFailed():
            return {"failed": tuple(dict.fromkeys((*at.failed, event.check)))}
        case Claimed():
            return {"claimed": event.status, "error": event.error}
        case SelfLocated():
            stale = event.located.docs is Docs.STALE or at.docs is Docs.STALE
            said = {"step": event.located.step, "located_at": now, "anomalies": event.anomalies}
            return {**said, "stale": at.stale + 1 if stale else 0}
        case QuestionOpened():
            return {"asked": event.level}
        case QuestionClosed():
            return {"asked": None}
        case AttemptEnded():
            return {"in_turn": False, "asked": None, "over": True}
    return {}


def _began(event: TaskBegan) -> dict[str, object]:
    known: dict[str, object] = {"task": event.task, "number": event.number, "total": event.total}
    anew: dict[str, object] = {"step": "", "met": 0, "files": (), "looks": 0, "stale": 0, "anomalies": (), "failed": ()}
    return {
        **known,
        **anew,
        "declared": event.files,
        "criteria": event.criteria,
        "claimed": "",
        "error": "",
        "over": False,
    }


# What it says itself.


def anomalies(standing: Standing, said: SelfLocate) -> tuple[str, ...]:
    """What an agent says of itself and the engine has seen otherwise. Work that nobody has looked at yet may be further
    than was seen, by one criterion; calls are compared where they can be counted."""
    found = []
    if said.phase != standing.phase:
        found.append(f"it says phase {said.phase}, and is in phase {standing.phase}")
    if standing.total and (said.task, said.total) != (standing.number, standing.total):
        found.append(f"it says task {said.task}/{said.total}, and is at {standing.number}/{standing.total}")
    most = _percent(standing.met + 1, standing.criteria)
    if most is not None and standing.met < standing.criteria and said.progress > most:
        found.append(f"it says {said.progress}%, and {standing.met} of {standing.criteria} criteria are met")
    if standing.countable and said.tool_calls > standing.tool_calls:
        found.append(f"it says {said.tool_calls} tool calls, and made {standing.tool_calls}")
    if said.docs is Docs.CURRENT and standing.docs is Docs.STALE:
        found.append("it says that its documents are current, and source has changed since")
    return tuple(found)


# Its row.


def row(standing: Standing, now: float, limits: Limits | None = None) -> Position:
    notes = (*_beside(standing), *_to_look_at(standing, now, limits or Limits()))
    return Position(
        agent=standing.agent,
        task=standing.task,
        number=standing.number,
        total=standing.total,
        step=standing.step,
        progress=_percent(standing.met, standing.criteria),
        last_self_locate=standing.located_at,
        docs=standing.docs,
        tool_calls=standing.tool_calls,
        tool_use=_use(standing),
        turns=standing.turns,
        files=standing.files,
        tokens=standing.tokens,
        quiet_seconds=_quiet(standing, now),
        status=_status(standing, now, limits or Limits()),
        notes=notes,
    )


def _status(at: Standing, now: float, limits: Limits) -> PositionStatus:
    if at.claimed == "blocked":
        return PositionStatus.BLOCKED
    if at.asked is not None:
        return PositionStatus.REVERIFY
    if _is_crowded(at):
        return PositionStatus.COMPACT_RISK
    if _to_look_at(at, now, limits):
        return PositionStatus.ATTENTION
    if at.over or at.claimed == "success" or (at.criteria and at.met >= at.criteria):
        return PositionStatus.COMPLETING
    return PositionStatus.ON_TRACK


def _beside(at: Standing) -> tuple[str, ...]:
    """Notes that go with a status of their own."""
    notes = []
    if at.claimed == "blocked":
        notes.append(f"blocked: {at.error}" if at.error else "blocked")
    if at.asked is not None:
        notes.append(f"asked at level {at.asked:d}")
    if at.window is not None and _is_crowded(at):
        notes.append(f"{at.tokens * 100 // at.window}% of what it can see is taken")
    return tuple(notes)


def _to_look_at(at: Standing, now: float, limits: Limits) -> tuple[str, ...]:
    """Why somebody should."""
    quiet = _quiet(at, now)
    reasons = [
        (at.in_turn and quiet > limits.silence_seconds, f"quiet for {quiet / MINUTE:.0f} min"),
        (bool(at.strays), f"undeclared: {', '.join(at.strays)}"),
        (_use(at) is ToolUse.MISSING, "no look at anything"),
        (at.stale >= limits.stale_in_a_row, "documents stale"),
        (bool(at.failed), f"failed: {', '.join(at.failed)}"),
        (at.claimed == "failure", f"failure: {at.error}" if at.error else "failure"),
    ]
    return (*(note for holds, note in reasons if holds), *at.anomalies)


def _is_crowded(at: Standing) -> bool:
    return at.window is not None and at.tokens > WINDOW_SHARE * at.window


def _use(at: Standing) -> ToolUse:
    return tool_use(at.work, at.looks, at.met, at.criteria)


def _quiet(at: Standing, now: float) -> float:
    return max(0.0, now - at.heard_at)


def _percent(met: int, total: int) -> int | None:
    return min(met, total) * 100 // total if total else None


# The table.

HEADINGS: Final = ("agent", "task", "step", "progress", "self-locate", "docs", "tool calls", "status", "notes")


def table(positions: Iterable[Position], now: float) -> tuple[tuple[str, ...], ...]:
    """The headings and the rows, as text."""
    return (HEADINGS, *(_cells(position, now) for position in positions))


def _cells(at: Position, now: float) -> tuple[str, ...]:
    of = f" {at.number}/{at.total}" if at.total else ""
    located = "–" if at.last_self_locate is None else f"{max(0.0, now - at.last_self_locate) / MINUTE:.0f} min ago"
    return (
        at.agent,
        f"{at.task}{of}".strip(),
        at.step,
        "–" if at.progress is None else f"{at.progress}%",
        located,
        at.docs.value,
        f"{at.tool_calls} {at.tool_use.value}",
        at.status.value,
        "; ".join(at.notes),
    )
