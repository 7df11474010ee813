"""The monitor of one agent: events in, decisions out.

Questions are asked at turn boundaries. Only a ping for silence does not wait for one, because there may be none.
Silence counts only while the agent is to act: from the start of a turn, or from a question, to the end of the turn. An
answer is judged before the end of its turn is processed. A turn that ends without tool calls while a question is open
has not answered it.
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

_RESULT_BY_VERDICT: Final[Mapping[Verdict, Result]] = MappingProxyType(
    {
        Verdict.PASS: Result.UNDERSTOOD,
        Verdict.FAIL: Result.GAP,
        Verdict.UNVERIFIABLE: Result.UNVERIFIABLE,
    }
)


def watch(watched: Watched, now: float, limits: Limits | None = None) -> Monitor:
    """Create the monitor of an agent that is about to start."""
    return Monitor(watched=watched, limits=limits or Limits(), now=now, heard_at=now, pinged_at=now)


def step(monitor: Monitor, event: Event, now: float) -> tuple[Monitor, tuple[Decision, ...]]:
    """Process an event and return the new monitor with its decisions. A clock that goes backwards is treated as
    stopped.
    """
    if monitor.over or monitor.watched.exempt:
        return monitor, ()
    course = Course(monitor.model_copy(update={"now": max(now, monitor.now)}))
    _note_sign_of_life(course, event)
    _handle_event(course, event)
    course.deliver()
    return course.monitor, tuple(course.decisions)


def _note_sign_of_life(course: Course, event: Event) -> None:
    """Any sign of life answers a ping for silence; an anomaly leads up the ladder."""
    if ends_quiet(event):
        course.set(heard_at=course.monitor.now)
    silent = course.monitor.silent
    if silent is None or not shows_life(event):
        return
    course.set(silent=None)
    anomalies = event.anomalies if isinstance(event, SelfLocated) else ()
    result = Result.ANOMALY if anomalies else Result.FITS
    course.conclude(silent, result, "; ".join(anomalies) or "the agent is working")


def _handle_event(course: Course, event: Event) -> None:
    match event:
        case TaskBegan():
            _begin_task(course, event)
        case GateEntered():
            course.take_back()
            course.set(in_gate=True)
        case GatePassed():
            course.set(in_gate=False)
        case TurnStarted():
            course.set(in_turn=True)
        case TurnEnded():
            course.set(in_turn=False)
            _count_unanswered_turn(course, event.calls)
        case ToolUsed():
            course.set(research=course.monitor.research + is_research(event.name))
        case CriteriaSeen():
            _check_tool_use(course, event)
        case FileChanged():
            course.set(unreported=course.monitor.unreported or not docs_only((event.path,)))
            _check_files(course, (event.path,), "touches")
        case ReportUpdated():
            course.set(reported=True, unreported=False)
        case Claimed():
            _check_files(course, event.files, "says that it has changed")
        case ApproachDiffers():
            course.deviates(event.why)
        case ContextChanged():
            course.notice(Trigger.SCOPE_CHANGE, f"scope change: {event.what}")
        case SelfLocated():
            _handle_position(course, event)
        case QuestionAnswered():
            _handle_answer(course, event.grade)
        case AnalysisSubmitted():
            _handle_analysis(course, event.score)
        case AnswerUnreadable():
            course.close(Result.UNANSWERED, event.why)
        case TimePassed():
            _check_silence(course)
        case Restarted():
            _restart(course)
        case AttemptEnded():
            unsettled = course.monitor.unsettled
            course.lapse(unsettled, "the agent has handed over its work, which is checked like any other")
            course.set(over="the attempt has ended")


# Notice anomalies.


def _begin_task(course: Course, event: TaskBegan) -> None:
    is_first = course.monitor.task is None
    if not is_first:
        _close_task(course)
    course.set(task=event.task, declared=event.files, analysed=False, research=0, low_use_seen=False, stale=0)
    if not is_first and course.monitor.limits.milestones:
        course.notice(Trigger.MILESTONE, f"the agent continues with task {event.number}/{event.total}")


def _close_task(course: Course) -> None:
    """Drop the causes of the previous task, which are obsolete. Keep those about a changed context."""
    unsettled = course.monitor.unsettled
    scope_changes = tuple(cause for cause in unsettled if cause.trigger is Trigger.SCOPE_CHANGE)
    course.lapse(
        tuple(cause for cause in unsettled if cause not in scope_changes), "the task has ended and was checked"
    )
    course.wait(tuple(cause.model_copy(update={"level": Level.QUESTION}) for cause in scope_changes))


def _check_tool_use(course: Course, event: CriteriaSeen) -> None:
    monitor = course.monitor
    if monitor.low_use_seen or monitor.in_gate or monitor.watched.own_tools:
        return
    if is_missing(monitor.watched.work, monitor.research, event.met, event.total):
        course.set(low_use_seen=True)
        course.notice(
            Trigger.LOW_TOOL_USE,
            f"{event.met} of {event.total} criteria are met, but the agent has not looked anything up",
        )


def _check_files(course: Course, paths: Iterable[str], action: str) -> None:
    declared = course.monitor.declared
    if declared is None:
        return
    undeclared_paths = undeclared(paths, declared)
    deviating = tuple(path for path in undeclared_paths if path not in granted(undeclared_paths, declared))
    if deviating:
        course.deviates(f"it {action} {', '.join(deviating)}, which its task does not declare")


def _check_silence(course: Course) -> None:
    monitor = course.monitor
    quiet = monitor.now - max(monitor.heard_at, monitor.pinged_at)
    if monitor.in_turn and not monitor.in_gate and quiet > monitor.limits.silence_seconds:
        course.ping((monitor.now - monitor.heard_at) / MINUTE)


def _restart(course: Course) -> None:
    """Requeue open questions, which the agent may never have received. Time without an engine is not silence of the
    agent.
    """
    silent = course.monitor.silent
    course.take_back()
    course.set(silent=None, in_turn=False, pinged_at=course.monitor.now)
    course.wait(silent.causes if silent else ())
    course.notice(Trigger.RECOVERY, "the engine was restarted")


# Process answers.


def _handle_position(course: Course, event: SelfLocated) -> None:
    monitor = course.monitor
    stale = event.located.docs is Docs.STALE or (monitor.reported and monitor.unreported)
    if monitor.open is not None and monitor.open.level is Level.PING:
        about_docs = any(cause.trigger is Trigger.STALE_DOCS for cause in monitor.open.causes)
        anomalies = (*event.anomalies, *(("its documents are still stale",) if stale and about_docs else ()))
        result = Result.ANOMALY if anomalies else Result.FITS
        course.close(result, "; ".join(anomalies) or "the agent is where it should be")
        return
    if monitor.in_gate:
        return
    in_a_row = monitor.stale + 1 if stale else 0
    course.set(stale=in_a_row)
    if in_a_row >= monitor.limits.stale_in_a_row:
        course.notice(Trigger.STALE_DOCS, f"its documents were stale {in_a_row} times in a row")
        course.set(stale=0)


def _handle_answer(course: Course, grade: Grade) -> None:
    question = course.monitor.open
    if question is None or question.level is not Level.QUESTION:
        return
    reasons = {
        Verdict.PASS: "its answer shows that it understands",
        Verdict.FAIL: f"its answer does not name {', '.join(grade.missing)}"
        if grade.missing
        else "its answer shows a gap",
        Verdict.UNVERIFIABLE: "nobody could judge whether the agent understands",
    }
    course.close(_RESULT_BY_VERDICT[grade.verdict], reasons[grade.verdict], plan_first=grade.changed_approach)


def _handle_analysis(course: Course, score: Score) -> None:
    question = course.monitor.open
    if question is not None and question.level is Level.ANALYSIS:
        course.close(score.result, score.reason, score=score)


def _count_unanswered_turn(course: Course, calls: int) -> None:
    """A turn has ended while a question is open. An agent that still uses tools may answer in a later turn."""
    question = course.monitor.open
    if question is None:
        return
    if calls and question.turns + 1 < course.monitor.limits.patience_turns:
        course.set(open=question.model_copy(update={"turns": question.turns + 1}))
    else:
        course.close(Result.UNANSWERED, "the agent has not answered")
