"""The monitor of one agent: events in, decisions out.

Questions are asked at turn boundaries. Only a ping for silence waits for none, as there may be none. Silence is the
agent's only while it has the word: from the beginning of a turn, or from a question, to the turn's end. An answer is
judged before its turn is said to have ended; a turn that ends without tools over an open question has not answered it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from proofstone.check.rules.file_requests import granted
from proofstone.common.globs import undeclared
from proofstone.common.models import Verdict
from proofstone.common.risk import docs_only
from proofstone.supervision.models.events import (
    AnalysisSubmitted,
    AnswerUnreadable,
    ApproachDiffers,
    AttemptEnded,
    Claimed,
    ContextChanged,
    CriteriaSeen,
    Decision,
    Event,
    FileChanged,
    GateEntered,
    GatePassed,
    QuestionAnswered,
    ReportUpdated,
    Restarted,
    SelfLocated,
    TaskBegan,
    TimePassed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import Docs, Grade, Level, Result, Score, Trigger
from proofstone.supervision.rules.course import Course
from proofstone.supervision.rules.monitor_state import MINUTE, Limits, Monitor, Watched, ends_quiet, shows_life
from proofstone.supervision.rules.position import is_missing, is_research

__all__ = ["Monitor", "step", "watch"]

_SHOWN_BY: Final[Mapping[Verdict, Result]] = MappingProxyType(
    {
        Verdict.PASS: Result.UNDERSTOOD,
        Verdict.FAIL: Result.GAP,
        Verdict.UNVERIFIABLE: Result.UNVERIFIABLE,
    }
)


def watch(watched: Watched, now: float, limits: Limits | None = None) -> Monitor:
    """The monitor of an agent that is about to begin."""
    return Monitor(watched=watched, limits=limits or Limits(), now=now, heard_at=now, pinged_at=now)


def step(monitor: Monitor, event: Event, now: float) -> tuple[Monitor, tuple[Decision, ...]]:
    """What follows from the event. A clock that goes back stands still."""
    if monitor.over or monitor.watched.exempt:
        return monitor, ()
    course = Course(monitor.model_copy(update={"now": max(now, monitor.now)}))
    _hear(course, event)
    _take(course, event)
    course.deliver()
    return course.monitor, tuple(course.decisions)


def _hear(course: Course, event: Event) -> None:
    """Any sign of life answers a ping for silence; one that does not fit leads further."""
    if ends_quiet(event):
        course.set(heard_at=course.monitor.now)
    silent = course.monitor.silent
    if silent is None or not shows_life(event):
        return
    course.set(silent=None)
    anomalies = event.anomalies if isinstance(event, SelfLocated) else ()
    result = Result.ANOMALY if anomalies else Result.FITS
    course.conclude(silent, result, "; ".join(anomalies) or "it is at work")


def _take(course: Course, event: Event) -> None:
    match event:
        case TaskBegan():
            _begin(course, event)
        case GateEntered():
            course.take_back()
            course.set(in_gate=True)
        case GatePassed():
            course.set(in_gate=False)
        case TurnStarted():
            course.set(in_turn=True)
        case TurnEnded():
            course.set(in_turn=False)
            _pass_over(course, event.calls)
        case ToolUsed():
            course.set(research=course.monitor.research + is_research(event.name))
        case CriteriaSeen():
            _look_at_tool_use(course, event)
        case FileChanged():
            course.set(unreported=course.monitor.unreported or not docs_only((event.path,)))
            _look_at_files(course, (event.path,), "touches")
        case ReportUpdated():
            course.set(reported=True, unreported=False)
        case Claimed():
            _look_at_files(course, event.files, "says that it has changed")
        case ApproachDiffers():
            course.deviates(event.why)
        case ContextChanged():
            course.notice(Trigger.SCOPE_CHANGE, f"scope change: {event.what}")
        case SelfLocated():
            _locate(course, event)
        case QuestionAnswered():
            _answer(course, event.grade)
        case AnalysisSubmitted():
            _submit(course, event.score)
        case AnswerUnreadable():
            course.close(Result.UNANSWERED, event.why)
        case TimePassed():
            _look_at_silence(course)
        case Restarted():
            _restart(course)
        case AttemptEnded():
            left = course.monitor.unsettled
            course.lapse(left, "its work is handed over; what it leaves is checked as any other")
            course.set(over="the attempt has ended")


# What is noticed.


def _begin(course: Course, event: TaskBegan) -> None:
    first = course.monitor.task is None
    if not first:
        _close_task(course)
    course.set(task=event.task, declared=event.files, analysed=False, research=0, low_use_seen=False, stale=0)
    if not first and course.monitor.limits.milestones:
        course.notice(Trigger.MILESTONE, f"it goes on to task {event.number}/{event.total}")


def _close_task(course: Course) -> None:
    """What was to be asked about the task before this one has no subject any more. A changed context has."""
    unsettled = course.monitor.unsettled
    kept = tuple(item for item in unsettled if item.trigger is Trigger.SCOPE_CHANGE)
    course.lapse(tuple(item for item in unsettled if item not in kept), "its task has ended, and was checked")
    course.wait(tuple(item.model_copy(update={"level": Level.QUESTION}) for item in kept))


def _look_at_tool_use(course: Course, event: CriteriaSeen) -> None:
    monitor = course.monitor
    if monitor.low_use_seen or monitor.in_gate or monitor.watched.own_tools:
        return
    if is_missing(monitor.watched.work, monitor.research, event.met, event.total):
        course.set(low_use_seen=True)
        course.notice(Trigger.LOW_TOOL_USE, f"{event.met} of {event.total} criteria are met without one look")


def _look_at_files(course: Course, paths: Iterable[str], how: str) -> None:
    declared = course.monitor.declared
    if declared is None:
        return
    beyond = undeclared(paths, declared)
    strange = tuple(path for path in beyond if path not in granted(beyond, declared))
    if strange:
        course.deviates(f"it {how} {', '.join(strange)}, which its task does not declare")


def _look_at_silence(course: Course) -> None:
    monitor = course.monitor
    quiet = monitor.now - max(monitor.heard_at, monitor.pinged_at)
    if monitor.in_turn and not monitor.in_gate and quiet > monitor.limits.silence_seconds:
        course.ping((monitor.now - monitor.heard_at) / MINUTE)


def _restart(course: Course) -> None:
    """A question that was open may never have been heard. Time that passed while there was no engine is nobody's
    silence."""
    silent = course.monitor.silent
    course.take_back()
    course.set(silent=None, in_turn=False, pinged_at=course.monitor.now)
    course.wait(silent.causes if silent else ())
    course.notice(Trigger.RECOVERY, "the engine was restarted")


# What is answered.


def _locate(course: Course, event: SelfLocated) -> None:
    monitor = course.monitor
    stale = event.located.docs is Docs.STALE or (monitor.reported and monitor.unreported)
    if monitor.open is not None and monitor.open.level is Level.PING:
        about_docs = any(cause.trigger is Trigger.STALE_DOCS for cause in monitor.open.causes)
        anomalies = (*event.anomalies, *(("its documents are still stale",) if stale and about_docs else ()))
        result = Result.ANOMALY if anomalies else Result.FITS
        course.close(result, "; ".join(anomalies) or "it is where it should be")
        return
    if monitor.in_gate:
        return
    in_a_row = monitor.stale + 1 if stale else 0
    course.set(stale=in_a_row)
    if in_a_row >= monitor.limits.stale_in_a_row:
        course.notice(Trigger.STALE_DOCS, f"its documents were stale {in_a_row} times in a row")
        course.set(stale=0)


def _answer(course: Course, grade: Grade) -> None:
    asked = course.monitor.open
    if asked is None or asked.level is not Level.QUESTION:
        return
    said = {
        Verdict.PASS: "its answer shows that it understands",
        Verdict.FAIL: f"its answer does not name {', '.join(grade.missing)}" if grade.missing else "a gap shows",
        Verdict.UNVERIFIABLE: "nobody could say whether it understands",
    }
    course.close(_SHOWN_BY[grade.verdict], said[grade.verdict], plan_first=grade.changed_approach)


def _submit(course: Course, score: Score) -> None:
    asked = course.monitor.open
    if asked is not None and asked.level is Level.ANALYSIS:
        course.close(score.result, score.reason, score=score)


def _pass_over(course: Course, calls: int) -> None:
    """A turn has ended over an open question. Whoever still uses tools may answer in a later one."""
    asked = course.monitor.open
    if asked is None:
        return
    if calls and asked.turns + 1 < course.monitor.limits.patience_turns:
        course.set(open=asked.model_copy(update={"turns": asked.turns + 1}))
    else:
        course.close(Result.UNANSWERED, "it has not answered")
