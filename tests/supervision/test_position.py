"""The position table: what is made of events, which status follows, and what an agent says that was not seen."""

from __future__ import annotations

import pytest

from proofstone.supervision.models.events import (
    AgentEvent,
    AgentObservation,
    AttemptEnded,
    CheckFailed,
    ContextChanged,
    CriteriaChecked,
    FileChanged,
    QuestionClosed,
    QuestionOpened,
    ReportUpdated,
    ResultClaimed,
    SelfLocated,
    TaskStarted,
    TimePassed,
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
)
from proofstone.supervision.rules.monitor_state import AgentProfile
from proofstone.supervision.rules.position import (
    HEADINGS,
    PositionState,
    apply_event,
    build_position_row,
    build_position_table,
    create_position_state,
    find_anomalies,
)
from tests.rows import each_row

AGENT = AgentProfile(agent="implementer-1", role="executor", phase=6)
BEGAN = TaskStarted(task="limit logins", number=2, total=3, files=("src/a.py",), criteria=4)


def standing(*events: AgentEvent, at: float = 0.0, watched: AgentProfile = AGENT) -> PositionState:
    """After the events, all of them at the same time."""
    now = create_position_state(watched, 0.0)
    for event in (BEGAN, *events):
        now = apply_event(now, AgentObservation(agent="implementer-1", at=at, event=event))
    return now


def located(docs: DocsStatus = DocsStatus.CURRENT, **said: int) -> SelfLocate:
    known = {"phase": 6, "task": 2, "total": 3, "progress": 0, "tool_calls": 0, **said}
    return SelfLocate.model_validate({**known, "step": "write the handler", "docs": docs})


STALE = SelfLocated(located=located(DocsStatus.STALE))


@each_row(
    ("events", "now", "status", "notes"),
    [
        ((), 0, "ON_TRACK", ()),
        ((TurnStarted(),), 900, "ON_TRACK", ()),
        ((TurnStarted(),), 901, "ATTENTION", ("quiet for 15 min",)),
        ((TurnStarted(), TurnEnded()), 9000, "ON_TRACK", ()),
        ((FileChanged(path="src/a.py"),), 0, "ON_TRACK", ()),
        ((FileChanged(path="src/__init__.py"),), 0, "ON_TRACK", ()),
        ((FileChanged(path="src/b.py"),), 0, "ATTENTION", ("undeclared: src/b.py",)),
        ((CriteriaChecked(met=3, total=4),), 0, "ATTENTION", ("nothing looked up",)),
        ((ToolUsed(name="read"), CriteriaChecked(met=3, total=4)), 0, "ON_TRACK", ()),
        ((STALE,), 0, "ON_TRACK", ()),
        ((STALE, STALE), 0, "ATTENTION", ("documents stale",)),
        ((STALE, SelfLocated(located=located()), STALE), 0, "ON_TRACK", ()),
        ((SelfLocated(located=located(), anomalies=("it is elsewhere",)),), 0, "ATTENTION", ("it is elsewhere",)),
        ((CheckFailed(check="tests"),), 0, "ATTENTION", ("failed: tests",)),
        ((ResultClaimed(status="failure", error="no network"),), 0, "ATTENTION", ("failure: no network",)),
        ((ResultClaimed(status="success"),), 0, "COMPLETING", ()),
        ((AttemptEnded(),), 0, "COMPLETING", ()),
        ((ToolUsed(name="grep"), CriteriaChecked(met=4, total=4)), 0, "COMPLETING", ()),
        ((ResultClaimed(status="success"), FileChanged(path="b")), 0, "ATTENTION", ("undeclared: b",)),
        ((TokensUsed(tokens=80, window=100),), 0, "ON_TRACK", ()),
        ((TokensUsed(tokens=81, window=100),), 0, "COMPACT_RISK", ("81% of the context window is used",)),
        ((TokensUsed(tokens=81),), 0, "ON_TRACK", ()),
        (
            (TokensUsed(tokens=81, window=100), FileChanged(path="b")),
            0,
            "COMPACT_RISK",
            ("81% of the context window is used", "undeclared: b"),
        ),
        (
            (FileChanged(path="b"), QuestionOpened(level=ReverifyLevel.ANALYSIS)),
            0,
            "REVERIFY",
            ("asked at level 3", "undeclared: b"),
        ),
        ((QuestionOpened(level=ReverifyLevel.PING), QuestionClosed()), 0, "ON_TRACK", ()),
        (
            (QuestionOpened(level=ReverifyLevel.PING), ResultClaimed(status="blocked", error="task 1")),
            0,
            "BLOCKED",
            ("blocked: task 1", "asked at level 1"),
        ),
        ((ResultClaimed(status="blocked"), BEGAN), 0, "ON_TRACK", ()),
    ],
)
@pytest.mark.seed("continuity", "position-table")
def test_status_and_notes_by_what_was_seen(
    events: tuple[AgentEvent, ...], now: float, status: str, notes: tuple[str, ...]
) -> None:
    at = build_position_row(standing(*events), now)
    assert (at.status.value, at.notes) == (status, notes)


@each_row(
    ("events", "docs"),
    [
        ((), DocsStatus.MISSING),
        ((FileChanged(path="src/a.py"),), DocsStatus.MISSING),
        ((ReportUpdated(),), DocsStatus.CURRENT),
        ((FileChanged(path="src/a.py"), ReportUpdated()), DocsStatus.CURRENT),
        ((ReportUpdated(), FileChanged(path="src/a.py")), DocsStatus.STALE),
        ((ReportUpdated(), FileChanged(path="README.md")), DocsStatus.CURRENT),
    ],
)
def test_documents_are_stale_when_source_changed_since_the_report(
    events: tuple[AgentEvent, ...], docs: DocsStatus
) -> None:
    assert build_position_row(standing(*events), 0).docs is docs


def test_a_row_holds_what_was_counted() -> None:
    events = (TurnStarted(), ToolUsed(name="read"), ToolUsed(name="edit"), FileChanged(path="src/a.py"))
    more = (
        FileChanged(path="src/a.py"),
        CriteriaChecked(met=1, total=4),
        TokensUsed(tokens=7),
        TurnEnded(),
        TurnStarted(),
    )
    at = build_position_row(standing(*events, *more, at=60.0), 90.0)
    assert at == Position(
        agent="implementer-1",
        task="limit logins",
        number=2,
        total=3,
        step="changes src/a.py",
        progress=25,
        last_self_locate=None,
        docs=DocsStatus.MISSING,
        tool_calls=2,
        tool_use=ToolUse.ACTIVE,
        turns=2,
        files=("src/a.py",),
        tokens=7,
        quiet_seconds=30.0,
        status=PositionStatus.ON_TRACK,
    )


def test_progress_of_a_task_without_criteria_is_nobodys_guess() -> None:
    at = standing(TaskStarted(task="t"), SelfLocated(located=located(progress=90)))
    assert build_position_row(at, 0).progress is None


@pytest.mark.parametrize("event", [TimePassed(), ContextChanged(version=2, what="x"), CriteriaChecked(met=0, total=1)])
def test_what_the_engine_does_itself_is_no_word_of_the_agents(event: AgentEvent) -> None:
    at = apply_event(standing(TurnStarted()), AgentObservation(agent="implementer-1", at=1000.0, event=event))
    assert build_position_row(at, 1000.0).quiet_seconds == 1000.0


def test_what_another_agent_does_changes_nothing() -> None:
    at = standing()
    assert apply_event(at, AgentObservation(agent="implementer-2", at=5.0, event=FileChanged(path="src/b.py"))) == at


def test_a_clock_that_goes_back_makes_nobody_quiet_and_nobody_loud() -> None:
    at = apply_event(
        standing(TurnStarted(), at=100.0), AgentObservation(agent="implementer-1", at=50.0, event=ToolUsed(name="read"))
    )
    assert build_position_row(at, 40.0).quiet_seconds == 0.0
    assert build_position_row(at, 110.0).quiet_seconds == 10.0


@each_row(
    ("events", "said", "found"),
    [
        ((), located(), ()),
        ((), located(phase=5), ("it reports phase 5, but is in phase 6",)),
        ((), located(task=3), ("it reports task 3/3, but is at 2/3",)),
        ((CriteriaChecked(met=1, total=4),), located(progress=50), ()),
        ((CriteriaChecked(met=1, total=4),), located(progress=51), ("it reports 51%, but 1 of 4 criteria are met",)),
        ((CriteriaChecked(met=4, total=4),), located(progress=100), ()),
        ((CriteriaChecked(met=3, total=4),), located(progress=10), ()),
        ((TaskStarted(task="t", number=2, total=3),), located(progress=100), ()),
        ((ToolUsed(name="run"),), located(tool_calls=1), ()),
        ((ToolUsed(name="run"),), located(tool_calls=2), ("it reports 2 tool calls, but made 1",)),
        ((ToolUsed(name="run"),) * 3, located(tool_calls=1), ()),
        (
            (ReportUpdated(), FileChanged(path="src/a.py")),
            located(),
            ("it reports that its documents are current, but source has changed since",),
        ),
        ((ReportUpdated(), FileChanged(path="src/a.py")), located(DocsStatus.STALE), ()),
        ((FileChanged(path="src/a.py"),), located(), ()),
    ],
)
@pytest.mark.seed("continuity", "self-locate-compared")
def test_what_an_agent_says_is_held_against_what_was_seen(
    events: tuple[AgentEvent, ...], said: SelfLocate, found: tuple[str, ...]
) -> None:
    assert find_anomalies(standing(*events), said) == found


def test_the_calls_of_a_program_with_tools_of_its_own_are_its_own_word() -> None:
    watched = AGENT.model_copy(update={"own_tools": True})
    at = standing(CriteriaChecked(met=4, total=4), watched=watched)
    assert find_anomalies(at, located(tool_calls=40)) == ()
    assert build_position_row(at, 0).tool_use is ToolUse.EXEMPT


def test_the_table_has_a_row_for_each_agent() -> None:
    at = standing(ToolUsed(name="read"), SelfLocated(located=located()), FileChanged(path="src/b.py"), at=60.0)
    idle = build_position_row(create_position_state(AgentProfile(agent="planner-1", role="planner"), 0.0), 0.0)
    assert build_position_table((build_position_row(at, 180.0), idle), 180.0) == (
        HEADINGS,
        (
            "implementer-1",
            "limit logins 2/3",
            "changes src/b.py",
            "0%",
            "2 min ago",
            "missing",
            "1 ACTIVE",
            "ATTENTION",
            "undeclared: src/b.py",
        ),
        ("planner-1", "", "", "–", "–", "missing", "0 ACTIVE", "ON_TRACK", ""),
    )


def test_a_standing_can_be_kept_and_read_back() -> None:
    at = standing(
        TurnStarted(),
        ToolUsed(name="read"),
        QuestionOpened(level=ReverifyLevel.QUESTION),
        TokensUsed(tokens=1, window=9),
    )
    assert PositionState.model_validate_json(at.model_dump_json()) == at
