"""What holds of the monitor whatever happens: limits, no dead end, no matter the clock, no matter an interruption."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, chain, pairwise
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.common.models import Verdict
from proofstone.supervision.models.events import (
    AgentEvent,
    AnswerUnreadable,
    ApproachDiffers,
    AskQuestion,
    AttemptEnded,
    CauseNoticed,
    CheckFailed,
    ContextChanged,
    CriteriaChecked,
    EngineRestarted,
    FileChanged,
    GateEntered,
    GatePassed,
    MonitorDecision,
    QuestionClosed,
    QuestionOpened,
    ReportUpdated,
    RespawnAgent,
    ResultClaimed,
    ResumeWork,
    TaskStarted,
    TimePassed,
    TokensUsed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
    UpdateContext,
)
from proofstone.supervision.models.ladder import AnswerResult, DocsStatus, ReverifyLevel
from proofstone.supervision.rules.monitor import create_monitor, process_event
from proofstone.supervision.rules.monitor_state import MINUTE, AgentMonitor, SupervisionLimits
from tests.supervision.watching import BEGAN, EXECUTOR, SAID, WORKED, graded, kept, located, scored

LIMITS = SupervisionLimits(patience_turns=2)
ORDINARY: tuple[AgentEvent, ...] = (
    BEGAN,
    TaskStarted(task="two", number=2, total=2),
    GateEntered(),
    GatePassed(),
    TurnStarted(),
    WORKED,
    SAID,
    ToolUsed(name="read"),
    ToolUsed(name="edit"),
    FileChanged(path="src/a.py"),
    FileChanged(path="src/other.py"),
    ReportUpdated(),
    TokensUsed(tokens=1),
    CriteriaChecked(met=3, total=4),
    CheckFailed(check="tests"),
    ResultClaimed(status="success", files=("src/a.py", "x.py")),
    ApproachDiffers(why="it caches"),
    ContextChanged(version=2, what="more"),
    QuestionOpened(level=ReverifyLevel.PING),
    QuestionClosed(),
    TimePassed(),
    EngineRestarted(),
)
ANSWERS: tuple[AgentEvent, ...] = (
    located(),
    located(DocsStatus.STALE),
    located(DocsStatus.CURRENT, "it is elsewhere"),
    *(graded(verdict) for verdict in Verdict),
    scored(AnswerResult.INTACT),
    scored(AnswerResult.JUSTIFIED, amended=("src/other.py",)),
    scored(AnswerResult.UNJUSTIFIED),
    AnswerUnreadable(why="nothing of the kind"),
)
Said = AgentEvent | Literal["well", "badly"]
"""An event, or an answer to whatever is asked."""
Stream = list[tuple[Said, float]]
FITTING: dict[str, dict[ReverifyLevel, AgentEvent]] = {
    "well": {
        ReverifyLevel.PING: located(),
        ReverifyLevel.QUESTION: graded(),
        ReverifyLevel.ANALYSIS: scored(AnswerResult.INTACT),
    },
    "badly": {
        ReverifyLevel.PING: located(DocsStatus.CURRENT, "lost"),
        ReverifyLevel.QUESTION: graded(Verdict.FAIL),
        ReverifyLevel.ANALYSIS: scored(AnswerResult.UNJUSTIFIED),
    },
}
OFTEN: tuple[Stream, ...] = (
    [("well", 0.0), (SAID, 0.0)],
    [("badly", 0.0), (SAID, 0.0)],
    [("badly", 0.0), (SAID, 0.0)] * 4,
    [(SAID, 0.0)] * 4,
    [(SAID, 31.0)],
    [(TurnStarted(), 0.0), (TimePassed(), 16.0)],
    [(TimePassed(), 16.0), (EngineRestarted(), 0.0)],
    [(FileChanged(path="src/other.py"), 0.0), (WORKED, 0.0)],
    [(ContextChanged(version=3, what="less"), 0.0), (WORKED, 0.0)],
)
"""What belongs together, so that streams get far up the ladder."""
minutes = st.sampled_from((0.0, 0.0, 1.0, 10.0, 16.0, 31.0, -5.0, -60.0))
alone = st.tuples(st.sampled_from((*ORDINARY, *ANSWERS)), minutes).map(lambda one: [one])
streams = st.lists(st.sampled_from(OFTEN) | alone, min_size=4, max_size=40).map(
    lambda some: list(chain.from_iterable(some))
)


def timed(stream: Stream) -> list[tuple[Said, float]]:
    """By a clock that may go back."""
    times = accumulate(minutes * MINUTE for _, minutes in stream)
    return [(event, at) for (event, _), at in zip(stream, times, strict=True)]


def meant(said: Said, monitor: AgentMonitor) -> AgentEvent:
    if not isinstance(said, str):
        return said
    return FITTING[said][monitor.open.level] if monitor.open else ToolUsed(name="read")


def followed(monitor: AgentMonitor, stream: Stream) -> tuple[AgentMonitor, list[tuple[float, MonitorDecision]]]:
    """The monitor in the end, and each decision with the time as it went on."""
    decided: list[tuple[float, MonitorDecision]] = []
    for said, at in timed(stream):
        monitor, decisions = process_event(monitor, meant(said, monitor), at)
        decided += [(monitor.now, one) for one in decisions]
    return monitor, decided


def begun() -> AgentMonitor:
    return create_monitor(EXECUTOR, 0.0, LIMITS)


def asked(decided: list[tuple[float, MonitorDecision]], level: ReverifyLevel) -> list[tuple[float, AskQuestion]]:
    return [(at, one) for at, one in decided if isinstance(one, AskQuestion) and one.asked.level is level]


@given(streams)
@settings(max_examples=150)
@pytest.mark.seed("continuity", "limit-rv2")
def test_two_questions_of_level_two_are_thirty_minutes_apart(stream: Stream) -> None:
    _, decided = followed(begun(), stream)
    times = [at for at, _ in asked(decided, ReverifyLevel.QUESTION)]
    assert all(later - sooner >= LIMITS.question_apart_seconds for sooner, later in pairwise(times))


@given(streams)
@settings(max_examples=150)
@pytest.mark.seed("continuity", "limit-rv3")
def test_a_task_has_one_analysis_with_at_most_three_submissions(stream: Stream) -> None:
    """Once something has come of it, none is asked for in the same task."""
    monitor, over = begun(), False
    for said, at in timed(stream):
        event = meant(said, monitor)
        analysing = monitor.is_analysing
        monitor, decisions = process_event(monitor, event, at)
        over = over and not isinstance(event, TaskStarted)
        for one in decisions:
            if isinstance(one, AskQuestion) and one.asked.level is ReverifyLevel.ANALYSIS:
                assert not over
                assert one.asked.time <= LIMITS.submissions
            if isinstance(one, ResumeWork | UpdateContext) and analysing and not isinstance(event, TaskStarted):
                over = over or ReverifyLevel.ANALYSIS in {cause.level for cause in one.causes}


@given(streams)
@settings(max_examples=150)
def test_nobody_is_pinged_more_than_three_times_in_a_row(stream: Stream) -> None:
    _, decided = followed(begun(), stream)
    assert all(one.asked.time <= LIMITS.pings for _, one in asked(decided, ReverifyLevel.PING))


@given(streams)
@settings(max_examples=150)
def test_questions_come_at_boundaries_one_at_a_time_and_never_at_the_gate(stream: Stream) -> None:
    monitor = begun()
    in_turn = in_gate = False
    for said, at in timed(stream):
        event = meant(said, monitor)
        was_open = monitor.open
        monitor, decisions = process_event(monitor, event, at)
        in_gate = isinstance(event, GateEntered) or (in_gate and not isinstance(event, GatePassed))
        in_turn = isinstance(event, TurnStarted) or (in_turn and not isinstance(event, TurnEnded | EngineRestarted))
        questions = [one for one in decisions if isinstance(one, AskQuestion)]
        assert not (questions and in_gate)
        at_boundary = [one for one in questions if not one.at_once]
        assert len(at_boundary) <= 1
        if at_boundary:
            assert not in_turn
            assert was_open is None or was_open is not monitor.open
            in_turn = True


@given(streams)
@settings(max_examples=200)
def test_everything_that_was_noticed_ends_once(stream: Stream) -> None:
    """In resume, an update of the context, or another agent."""
    _, decided = followed(begun(), [*stream, (AttemptEnded(), 0.0)])
    noticed = [one.cause.number for _, one in decided if isinstance(one, CauseNoticed)]
    ended = Counter(
        cause.number
        for _, one in decided
        if isinstance(one, ResumeWork | UpdateContext | RespawnAgent)
        for cause in one.causes
    )
    assert ended == Counter(noticed)


@given(streams)
@settings(max_examples=100)
def test_after_it_was_replaced_nothing_follows(stream: Stream) -> None:
    _, decided = followed(begun(), stream)
    kinds = [one.kind for _, one in decided]
    assert "respawn" not in kinds[:-1]


@given(streams, st.sampled_from(("well", "badly", "never")))
@settings(max_examples=150)
def test_whoever_is_left_with_its_questions_comes_to_an_end(stream: Stream, answers: str) -> None:
    """Without the attempt ending: by answers alone, good, bad or none."""
    monitor, _ = followed(begun(), stream)
    answer = FITTING.get(answers, {})
    now = monitor.now
    monitor, _ = process_event(monitor, GatePassed(), now)
    for _ in range(30):
        now += 31 * MINUTE
        open_ = monitor.open
        event = answer.get(open_.level, SAID) if open_ else SAID
        for one in (event, SAID, TimePassed()):
            monitor, _ = process_event(monitor, one, now)
    assert monitor.over or not monitor.open_causes


@given(streams)
@settings(max_examples=100)
def test_a_clock_that_goes_back_stands_still(stream: Stream) -> None:
    forward, back = begun(), begun()
    latest = 0.0
    for said, at in timed(stream):
        event = meant(said, forward)
        latest = max(latest, at)
        forward, expected = process_event(forward, event, latest)
        back, decisions = process_event(back, event, at)
        assert decisions == expected
    assert back == forward


@given(streams)
@settings(max_examples=60)
def test_a_monitor_that_was_kept_decides_as_one_that_never_stopped(stream: Stream) -> None:
    monitor = begun()
    for said, at in timed(stream):
        event = meant(said, monitor)
        stored = kept(monitor)
        assert stored == monitor
        expected = process_event(monitor, event, at)
        assert process_event(stored, event, at) == expected
        monitor, _ = expected
