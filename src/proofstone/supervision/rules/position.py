"""The position table: where each agent is, from what the engine observes (COA-1), and whether it looks things up
(COA-5).

Required lookups:

| work           | by half of it | at its end |
|----------------|---------------|------------|
| research       | 2             | 3          |
| design         | 1             | 1          |
| planning       | 1             | 2          |
| implementation | 1             | 1          |

Before half of the work, no lookups are due. Fewer lookups than due is LOW. None at all past half is MISSING, which
triggers re-verification (T5). Other work requires no lookups, and the lookups of a program with its own tools cannot be
counted: EXEMPT.

What an agent reports about its own position is compared with what the engine observed.

| first match                                                              | status       |
|--------------------------------------------------------------------------|--------------|
| the agent says that it is blocked                                        | BLOCKED      |
| a question is open                                                       | REVERIFY     |
| more than four fifths of the context window are used                     | COMPACT_RISK |
| it needs attention: silence, undeclared files, no lookups, …             | ATTENTION    |
| it has handed over its work, or every criterion is met                   | COMPLETING   |
| otherwise                                                                | ON_TRACK     |

Documents are stale when source has changed since the report was updated. Progress is the share of criteria that are
met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from proofstone.agents.tools.models import EXTERNAL_TOOLS, READING_TOOLS
from proofstone.check.rules.file_requests import grant_files
from proofstone.common.globs import find_undeclared
from proofstone.common.models import FrozenModel
from proofstone.common.risk import is_docs_only
from proofstone.supervision.models.events import (
    AgentEvent,
    AgentObservation,
    AttemptEnded,
    CheckFailed,
    CriteriaChecked,
    EngineRestarted,
    FileChanged,
    GateEntered,
    GatePassed,
    QuestionClosed,
    QuestionOpened,
    ReportUpdated,
    ResultClaimed,
    SelfLocated,
    TaskStarted,
    TokensUsed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import (
    DocsStatus,
    Position,
    PositionStatus,
    ReverifyLevel,
    SelfLocate,
    ToolUse,
    WorkKind,
)
from proofstone.supervision.rules.monitor_state import (
    HALF,
    MINUTE,
    WINDOW_SHARE,
    AgentProfile,
    SupervisionLimits,
    ends_silence,
)

RESEARCH_TOOLS: Final = frozenset(str(tool) for tool in READING_TOOLS | EXTERNAL_TOOLS)
"""Tools that look something up: in the tree, its history, the memory or the web."""


class LookupMinimum(NamedTuple):
    by_half: int
    at_end: int


LOOKUP_MINIMUMS: Final[Mapping[WorkKind, LookupMinimum]] = MappingProxyType(
    {
        WorkKind.RESEARCH: LookupMinimum(2, 3),
        WorkKind.DESIGN: LookupMinimum(1, 1),
        WorkKind.PLANNING: LookupMinimum(1, 2),
        WorkKind.IMPLEMENTATION: LookupMinimum(1, 1),
    }
)


def is_research(tool: str) -> bool:
    return tool in RESEARCH_TOOLS


def count_due_lookups(work: WorkKind, met: int, total: int) -> int:
    """Return the number of lookups that the work requires by now."""
    if not total or met < total * HALF:
        return 0
    return LOOKUP_MINIMUMS[work].by_half if met < total else LOOKUP_MINIMUMS[work].at_end


def are_lookups_missing(work: WorkKind | None, looks: int, met: int, total: int) -> bool:
    """Return whether more than half of the work is done without a lookup, where one is required."""
    return work is not None and not looks and met > total * HALF and count_due_lookups(work, met, total) > 0


def rate_tool_use(work: WorkKind | None, looks: int, met: int, total: int) -> ToolUse:
    if work is None:
        return ToolUse.EXEMPT
    if are_lookups_missing(work, looks, met, total):
        return ToolUse.MISSING
    return ToolUse.LOW if looks < count_due_lookups(work, met, total) else ToolUse.ACTIVE


class PositionState(FrozenModel):
    """Everything observed of an agent that its row is built from."""

    agent: str
    work: WorkKind | None = None
    """None if lookups are not counted."""
    countable: bool = True
    """Whether the tool calls can be counted, because the tools belong to the engine."""
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
    """Source has changed since the report was updated."""
    tool_calls: int = 0
    looks: int = 0
    """Lookups in this task."""
    turns: int = 0
    tokens: int = 0
    window: int | None = None
    located_at: float | None = None
    stale: int = 0
    """Position reports in a row with stale documents, by the agent's words or by observation."""
    anomalies: tuple[str, ...] = ()
    """Where the agent's last report differs from what was observed."""
    failed: tuple[str, ...] = ()
    claimed: str = ""
    error: str = ""
    heard_at: float = 0.0
    in_turn: bool = False
    asked: ReverifyLevel | None = None
    over: bool = False

    @property
    def docs(self) -> DocsStatus:
        if not self.reported:
            return DocsStatus.MISSING
        return DocsStatus.STALE if self.unreported else DocsStatus.CURRENT

    @property
    def undeclared_files(self) -> tuple[str, ...]:
        """Changed files that the task does not declare."""
        undeclared_paths = find_undeclared(self.files, self.declared) if self.declared is not None else ()
        return tuple(
            path for path in undeclared_paths if path not in grant_files(undeclared_paths, self.declared or ())
        )


def create_position_state(watched: AgentProfile, now: float) -> PositionState:
    """Create the state of an agent that is about to start."""
    work = None if watched.own_tools else watched.work
    return PositionState(
        agent=watched.agent, work=work, countable=not watched.own_tools, phase=watched.phase, heard_at=now
    )


# Observations.


def apply_event(standing: PositionState, observed: AgentObservation) -> PositionState:
    """Return the state after the event. Events of other agents change nothing."""
    if observed.agent != standing.agent:
        return standing
    changes = _changes(standing, observed.event, observed.at)
    if ends_silence(observed.event):
        changes["heard_at"] = max(standing.heard_at, observed.at)
    return standing.model_copy(update=changes)


def _changes(standing: PositionState, event: AgentEvent, now: float) -> dict[str, object]:
    match event:
        case TaskStarted():
            return _begin_task(event)
        case GateEntered():
            return {"step": "shows that it understands its task"}
        case GatePassed():
            return {"step": "begins"}
        case TurnStarted():
            return {"in_turn": True, "turns": standing.turns + 1}
        case TurnEnded() | EngineRestarted():
            return {"in_turn": False}
        case ToolUsed():
            looks = standing.looks + is_research(event.name)
            return {"tool_calls": standing.tool_calls + 1, "looks": looks, "step": f"uses {event.name}"}
        case FileChanged():
            files = tuple(dict.fromkeys((*standing.files, event.path)))
            is_source = not is_docs_only((event.path,))
            return {"files": files, "unreported": standing.unreported or is_source, "step": f"changes {event.path}"}
        case ReportUpdated():
            return {"reported": True, "unreported": False}
        case TokensUsed():
            return {"tokens": event.tokens, "window": event.window or standing.window}
        case CriteriaChecked():
            return {"met": event.met, "criteria": event.total}
        case CheckFailed():
            return {"failed": tuple(dict.fromkeys((*standing.failed, event.check)))}
        case ResultClaimed():
            return {"claimed": event.status, "error": event.error}
        case SelfLocated():
            stale = event.located.docs is DocsStatus.STALE or standing.docs is DocsStatus.STALE
            report = {"step": event.located.step, "located_at": now, "anomalies": event.anomalies}
            return {**report, "stale": standing.stale + 1 if stale else 0}
        case QuestionOpened():
            return {"asked": event.level}
        case QuestionClosed():
            return {"asked": None}
        case AttemptEnded():
            return {"in_turn": False, "asked": None, "over": True}
    return {}


def _begin_task(event: TaskStarted) -> dict[str, object]:
    task_fields: dict[str, object] = {"task": event.task, "number": event.number, "total": event.total}
    reset_fields: dict[str, object] = {
        "step": "",
        "met": 0,
        "files": (),
        "looks": 0,
        "stale": 0,
        "anomalies": (),
        "failed": (),
    }
    return {
        **task_fields,
        **reset_fields,
        "declared": event.files,
        "criteria": event.criteria,
        "claimed": "",
        "error": "",
        "over": False,
    }


# The agent's own report.


def find_anomalies(standing: PositionState, report: SelfLocate) -> tuple[str, ...]:
    """Return where an agent's report differs from what the engine observed. Progress may be ahead by one criterion,
    because the latest work may not have been observed yet. Tool calls are compared where they can be counted.
    """
    differences = []
    if report.phase != standing.phase:
        differences.append(f"it reports phase {report.phase}, but is in phase {standing.phase}")
    if standing.total and (report.task, report.total) != (standing.number, standing.total):
        differences.append(
            f"it reports task {report.task}/{report.total}, but is at {standing.number}/{standing.total}"
        )
    maximum = _percent(standing.met + 1, standing.criteria)
    if maximum is not None and standing.met < standing.criteria and report.progress > maximum:
        differences.append(f"it reports {report.progress}%, but {standing.met} of {standing.criteria} criteria are met")
    if standing.countable and report.tool_calls > standing.tool_calls:
        differences.append(f"it reports {report.tool_calls} tool calls, but made {standing.tool_calls}")
    if report.docs is DocsStatus.CURRENT and standing.docs is DocsStatus.STALE:
        differences.append("it reports that its documents are current, but source has changed since")
    return tuple(differences)


# The row of an agent.


def build_position_row(standing: PositionState, now: float, limits: SupervisionLimits | None = None) -> Position:
    notes = (*_status_notes(standing), *_attention_notes(standing, now, limits or SupervisionLimits()))
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
        tool_use=_tool_use(standing),
        turns=standing.turns,
        files=standing.files,
        tokens=standing.tokens,
        quiet_seconds=_quiet_seconds(standing, now),
        status=_status(standing, now, limits or SupervisionLimits()),
        notes=notes,
    )


def _status(standing: PositionState, now: float, limits: SupervisionLimits) -> PositionStatus:
    if standing.claimed == "blocked":
        return PositionStatus.BLOCKED
    if standing.asked is not None:
        return PositionStatus.REVERIFY
    if _is_window_full(standing):
        return PositionStatus.COMPACT_RISK
    if _attention_notes(standing, now, limits):
        return PositionStatus.ATTENTION
    if standing.over or standing.claimed == "success" or (standing.criteria and standing.met >= standing.criteria):
        return PositionStatus.COMPLETING
    return PositionStatus.ON_TRACK


def _status_notes(standing: PositionState) -> tuple[str, ...]:
    """Return the notes for statuses with a note of their own."""
    notes = []
    if standing.claimed == "blocked":
        notes.append(f"blocked: {standing.error}" if standing.error else "blocked")
    if standing.asked is not None:
        notes.append(f"asked at level {standing.asked:d}")
    if standing.window is not None and _is_window_full(standing):
        notes.append(f"{standing.tokens * 100 // standing.window}% of the context window is used")
    return tuple(notes)


def _attention_notes(standing: PositionState, now: float, limits: SupervisionLimits) -> tuple[str, ...]:
    """Return why the agent needs attention."""
    quiet_seconds = _quiet_seconds(standing, now)
    reasons = [
        (standing.in_turn and quiet_seconds > limits.silence_seconds, f"quiet for {quiet_seconds / MINUTE:.0f} min"),
        (bool(standing.undeclared_files), f"undeclared: {', '.join(standing.undeclared_files)}"),
        (_tool_use(standing) is ToolUse.MISSING, "nothing looked up"),
        (standing.stale >= limits.stale_in_a_row, "documents stale"),
        (bool(standing.failed), f"failed: {', '.join(standing.failed)}"),
        (standing.claimed == "failure", f"failure: {standing.error}" if standing.error else "failure"),
    ]
    return (*(note for holds, note in reasons if holds), *standing.anomalies)


def _is_window_full(standing: PositionState) -> bool:
    return standing.window is not None and standing.tokens > WINDOW_SHARE * standing.window


def _tool_use(standing: PositionState) -> ToolUse:
    return rate_tool_use(standing.work, standing.looks, standing.met, standing.criteria)


def _quiet_seconds(standing: PositionState, now: float) -> float:
    return max(0.0, now - standing.heard_at)


def _percent(met: int, total: int) -> int | None:
    return min(met, total) * 100 // total if total else None


# The table.

HEADINGS: Final = ("agent", "task", "step", "progress", "self-locate", "docs", "tool calls", "status", "notes")


def build_position_table(positions: Iterable[Position], now: float) -> tuple[tuple[str, ...], ...]:
    """Return the headings and the rows as text."""
    return (HEADINGS, *(_cells(position, now) for position in positions))


def _cells(position: Position, now: float) -> tuple[str, ...]:
    numbering = f" {position.number}/{position.total}" if position.total else ""
    located = (
        "–"
        if position.last_self_locate is None
        else f"{max(0.0, now - position.last_self_locate) / MINUTE:.0f} min ago"
    )
    return (
        position.agent,
        f"{position.task}{numbering}".strip(),
        position.step,
        "–" if position.progress is None else f"{position.progress}%",
        located,
        position.docs.value,
        f"{position.tool_calls} {position.tool_use.value}",
        position.status.value,
        "; ".join(position.notes),
    )
