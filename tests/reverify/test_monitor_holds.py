"""What holds of the monitor whatever happens: limits, no dead end, no matter the clock, no matter an interruption."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, chain, pairwise
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from proofstone.common.models import Verdict
from proofstone.supervision.models.events import (
    AnswerUnreadable,
    ApproachDiffers,
    Ask,
    AttemptEnded,
    CheckFailed,
    Claimed,
    ContextChanged,
    CriteriaSeen,
    Decision,
    Event,
    FileChanged,
    GateEntered,
    GatePassed,
    Noticed,
    QuestionClosed,
    QuestionOpened,
    ReportUpdated,
    Respawn,
    Restarted,
    Resume,
    TaskBegan,
    TimePassed,
    TokensUsed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
    UpdateContext,
)
from proofstone.supervision.models.ladder import Docs, Level, Result
from proofstone.supervision.rules.monitor import step, watch
from proofstone.supervision.rules.monitor_state import MINUTE, Limits, Monitor
from tests.reverify.watching import BEGAN, EXECUTOR, SAID, WORKED, graded, kept, located, scored

LIMITS = Limits(milestones=True, patience_turns=2)
ORDINARY: tuple[Event, ...] = (
    BEGAN,
    TaskBegan(task="two", number=2, total=2),
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
    CriteriaSeen(met=3, total=4),
    CheckFailed(check="tests"),
    Claimed(status="success", files=("src/a.py", "x.py")),
    ApproachDiffers(why="it caches"),
    ContextChanged(version=2, what="more"),
    QuestionOpened(level=Level.PING),
    QuestionClosed(),
    TimePassed(),
    Restarted(),
)
ANSWERS: tuple[Event, ...] = (
    located(),
    located(Docs.STALE),
    located(Docs.CURRENT, "it is elsewhere"),
    *(graded(verdict) for verdict in Verdict),
    scored(Result.INTACT),
    scored(Result.JUSTIFIED, amended=("src/other.py",)),
    scored(Result.UNJUSTIFIED),
    AnswerUnreadable(why="nothing of the kind"),
)
Said = Event | Literal["well", "badly"]
"""An event, or an answer to whatever is asked."""
Stream = list[tuple[Said, float]]
FITTING: dict[str, dict[Level, Event]] = {
    "well": {Level.PING: located(), Level.QUESTION: graded(), Level.ANALYSIS: scored(Result.INTACT)},
    "badly": {
        Level.PING: located(Docs.CURRENT, "lost"),
        Level.QUESTION: graded(Verdict.FAIL),
        Level.ANALYSIS: scored(Result.UNJUSTIFIED),
    },
}
OFTEN: tuple[Stream, ...] = (
    [("well", 0.0), (SAID, 0.0)],
    [("badly", 0.0), (SAID, 0.0)],
    [("badly", 0.0), (SAID, 0.0)] * 4,
    [(SAID, 0.0)] * 4,
    [(SAID, 31.0)],
    [(TurnStarted(), 0.0), (TimePassed(), 16.0)],
    [(TimePassed(), 16.0), (Restarted(), 0.0)],
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


def meant(said: Said, monitor: Monitor) -> Event:
    if not isinstance(said, str):
        return said
    return FITTING[said][monitor.open.level] if monitor.open else ToolUsed(name="read")


def followed(monitor: Monitor, stream: Stream) -> tuple[Monitor, list[tuple[float, Decision]]]:
    """The monitor in the end, and each decision with the time as it went on."""
    decided: list[tuple[float, Decision]] = []
    for said, at in timed(stream):
        monitor, decisions = step(monitor, meant(said, monitor), at)
        decided += [(monitor.now, one) for one in decisions]
    return monitor, decided


def begun() -> Monitor:
    return watch(EXECUTOR, 0.0, LIMITS)


def asked(decided: list[tuple[float, Decision]], level: Level) -> list[tuple[float, Ask]]:
    return [(at, one) for at, one in decided if isinstance(one, Ask) and one.asked.level is level]


@given(streams)
@settings(max_examples=150)
def test_two_questions_of_level_two_are_thirty_minutes_apart(stream: Stream) -> None:
    _, decided = followed(begun(), stream)
    times = [at for at, _ in asked(decided, Level.QUESTION)]
    assert all(later - sooner >= LIMITS.question_apart_seconds for sooner, later in pairwise(times))


@given(streams)
@settings(max_examples=150)
def test_a_task_has_one_analysis_with_at_most_three_submissions(stream: Stream) -> None:
    """Once something has come of it, none is asked for in the same task."""
    monitor, over = begun(), False
    for said, at in timed(stream):
        event = meant(said, monitor)
        analysing = monitor.analysing
        monitor, decisions = step(monitor, event, at)
        over = over and not isinstance(event, TaskBegan)
        for one in decisions:
            if isinstance(one, Ask) and one.asked.level is Level.ANALYSIS:
                assert not over
                assert one.asked.time <= LIMITS.submissions
            if isinstance(one, Resume | UpdateContext) and analysing and not isinstance(event, TaskBegan):
                over = over or Level.ANALYSIS in {cause.level for cause in one.causes}


@given(streams)
@settings(max_examples=150)
def test_nobody_is_pinged_more_than_three_times_in_a_row(stream: Stream) -> None:
    _, decided = followed(begun(), stream)
    assert all(one.asked.time <= LIMITS.pings for _, one in asked(decided, Level.PING))


@given(streams)
@settings(max_examples=150)
def test_questions_come_at_boundaries_one_at_a_time_and_never_at_the_gate(stream: Stream) -> None:
    monitor = begun()
    in_turn = in_gate = False
    for said, at in timed(stream):
        event = meant(said, monitor)
        was_open = monitor.open
        monitor, decisions = step(monitor, event, at)
        in_gate = isinstance(event, GateEntered) or (in_gate and not isinstance(event, GatePassed))
        in_turn = isinstance(event, TurnStarted) or (in_turn and not isinstance(event, TurnEnded | Restarted))
        questions = [one for one in decisions if isinstance(one, Ask)]
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
    noticed = [one.cause.number for _, one in decided if isinstance(one, Noticed)]
    ended = Counter(
        cause.number for _, one in decided if isinstance(one, Resume | UpdateContext | Respawn) for cause in one.causes
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
    monitor, _ = step(monitor, GatePassed(), now)
    for _ in range(30):
        now += 31 * MINUTE
        open_ = monitor.open
        event = answer.get(open_.level, SAID) if open_ else SAID
        for one in (event, SAID, TimePassed()):
            monitor, _ = step(monitor, one, now)
    assert monitor.over or not monitor.unsettled


@given(streams)
@settings(max_examples=100)
def test_a_clock_that_goes_back_stands_still(stream: Stream) -> None:
    forward, back = begun(), begun()
    latest = 0.0
    for said, at in timed(stream):
        event = meant(said, forward)
        latest = max(latest, at)
        forward, expected = step(forward, event, latest)
        back, decisions = step(back, event, at)
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
        expected = step(monitor, event, at)
        assert step(stored, event, at) == expected
        monitor, _ = expected
