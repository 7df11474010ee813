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

from proofstone.check.rules.file_requests import grant_files
from proofstone.common.globs import find_undeclared
from proofstone.common.models import Verdict
from proofstone.common.risk import is_docs_only
from proofstone.supervision.models.events import (
    AgentEvent,
    AnalysisSubmitted,
    AnswerUnreadable,
    ApproachDiffers,
    AttemptEnded,
    ContextChanged,
    CriteriaChecked,
    EngineRestarted,
    FileChanged,
    GateEntered,
    GatePassed,
    MonitorDecision,
    QuestionAnswered,
    ReportUpdated,
    ResultClaimed,
    SelfLocated,
    TaskStarted,
    TimePassed,
    ToolUsed,
    TurnEnded,
    TurnStarted,
)
from proofstone.supervision.models.ladder import (
    AnalysisScore,
    AnswerGrade,
    AnswerResult,
    DocsStatus,
    ReverifyLevel,
    ReverifyTrigger,
)
from proofstone.supervision.rules.monitor_state import (
    MINUTE,
    AgentMonitor,
    AgentProfile,
    SupervisionLimits,
    ends_silence,
    is_sign_of_life,
)
from proofstone.supervision.rules.monitor_step import MonitorStep
from proofstone.supervision.rules.position import are_lookups_missing, is_research

__all__ = ["AgentMonitor", "create_monitor", "process_event"]

_RESULT_BY_VERDICT: Final[Mapping[Verdict, AnswerResult]] = MappingProxyType(
    {
        Verdict.PASS: AnswerResult.UNDERSTOOD,
        Verdict.FAIL: AnswerResult.GAP,
        Verdict.UNVERIFIABLE: AnswerResult.UNVERIFIABLE,
    }
)


def create_monitor(watched: AgentProfile, now: float, limits: SupervisionLimits | None = None) -> AgentMonitor:
    """Create the monitor of an agent that is about to start."""
    return AgentMonitor(watched=watched, limits=limits or SupervisionLimits(), now=now, heard_at=now, pinged_at=now)


def process_event(
    monitor: AgentMonitor, event: AgentEvent, now: float
) -> tuple[AgentMonitor, tuple[MonitorDecision, ...]]:
    """Process an event and return the new monitor with its decisions. A clock that goes backwards is treated as
    stopped.
    """
    if monitor.over or monitor.watched.exempt:
        return monitor, ()
    course = MonitorStep(monitor.model_copy(update={"now": max(now, monitor.now)}))
    _note_sign_of_life(course, event)
    _handle_event(course, event)
    course.ask_due_question()
    return course.monitor, tuple(course.decisions)


def _note_sign_of_life(course: MonitorStep, event: AgentEvent) -> None:
    """Any sign of life answers a ping for silence; an anomaly leads up the ladder."""
    if ends_silence(event):
        course.update_monitor(heard_at=course.monitor.now)
    silent = course.monitor.silent
    if silent is None or not is_sign_of_life(event):
        return
    course.update_monitor(silent=None)
    anomalies = event.anomalies if isinstance(event, SelfLocated) else ()
    result = AnswerResult.ANOMALY if anomalies else AnswerResult.FITS
    course.apply_result(silent, result, "; ".join(anomalies) or "the agent is working")


def _handle_event(course: MonitorStep, event: AgentEvent) -> None:
    match event:
        case TaskStarted():
            _begin_task(course, event)
        case GateEntered():
            course.withdraw_question()
            course.update_monitor(in_gate=True)
        case GatePassed():
            course.update_monitor(in_gate=False)
        case TurnStarted():
            course.update_monitor(in_turn=True)
        case TurnEnded():
            course.update_monitor(in_turn=False)
            _count_unanswered_turn(course, event.calls)
        case ToolUsed():
            course.update_monitor(research=course.monitor.research + is_research(event.name))
        case CriteriaChecked():
            _check_tool_use(course, event)
        case FileChanged():
            course.update_monitor(unreported=course.monitor.unreported or not is_docs_only((event.path,)))
            _check_files(course, (event.path,), "touches")
        case ReportUpdated():
            course.update_monitor(reported=True, unreported=False)
        case ResultClaimed():
            _check_files(course, event.files, "says that it has changed")
        case ApproachDiffers():
            course.notice_deviation(event.why)
        case ContextChanged():
            course.notice(ReverifyTrigger.SCOPE_CHANGE, f"scope change: {event.what}")
        case SelfLocated():
            _handle_position(course, event)
        case QuestionAnswered():
            _handle_answer(course, event.grade)
        case AnalysisSubmitted():
            _handle_analysis(course, event.score)
        case AnswerUnreadable():
            course.close(AnswerResult.UNANSWERED, event.why)
        case TimePassed():
            _check_silence(course)
        case EngineRestarted():
            _restart(course)
        case AttemptEnded():
            unsettled = course.monitor.open_causes
            course.drop_causes(unsettled, "the agent has handed over its work, which is checked like any other")
            course.update_monitor(over="the attempt has ended")


# Notice anomalies.


def _begin_task(course: MonitorStep, event: TaskStarted) -> None:
    is_first = course.monitor.task is None
    if not is_first:
        _close_task(course)
    # An analysis that is still open is answered in the new task, and so is the one analysis of that task.
    course.update_monitor(
        task=event.task,
        declared=event.files,
        analysed=course.monitor.is_analysing,
        research=0,
        low_use_seen=False,
        stale=0,
    )


def _close_task(course: MonitorStep) -> None:
    """Drop the causes of the previous task, which are obsolete. Keep those about a changed context."""
    unsettled = course.monitor.open_causes
    scope_changes = tuple(cause for cause in unsettled if cause.trigger is ReverifyTrigger.SCOPE_CHANGE)
    course.drop_causes(
        tuple(cause for cause in unsettled if cause not in scope_changes), "the task has ended and was checked"
    )
    course.queue_causes(tuple(cause.model_copy(update={"level": ReverifyLevel.QUESTION}) for cause in scope_changes))


def _check_tool_use(course: MonitorStep, event: CriteriaChecked) -> None:
    monitor = course.monitor
    if monitor.low_use_seen or monitor.in_gate or monitor.watched.own_tools:
        return
    if are_lookups_missing(monitor.watched.work, monitor.research, event.met, event.total):
        course.update_monitor(low_use_seen=True)
        course.notice(
            ReverifyTrigger.LOW_TOOL_USE,
            f"{event.met} of {event.total} criteria are met, but the agent has not looked anything up",
        )


def _check_files(course: MonitorStep, paths: Iterable[str], action: str) -> None:
    declared = course.monitor.declared
    if declared is None:
        return
    undeclared_paths = find_undeclared(paths, declared)
    deviating = tuple(path for path in undeclared_paths if path not in grant_files(undeclared_paths, declared))
    if deviating:
        course.notice_deviation(f"it {action} {', '.join(deviating)}, which its task does not declare")


def _check_silence(course: MonitorStep) -> None:
    monitor = course.monitor
    quiet = monitor.now - max(monitor.heard_at, monitor.pinged_at)
    if monitor.in_turn and not monitor.in_gate and quiet > monitor.limits.silence_seconds:
        course.ping((monitor.now - monitor.heard_at) / MINUTE)


def _restart(course: MonitorStep) -> None:
    """Requeue open questions, which the agent may never have received. Time without an engine is not silence of the
    agent.
    """
    silent = course.monitor.silent
    course.withdraw_question()
    course.update_monitor(silent=None, in_turn=False, pinged_at=course.monitor.now)
    course.queue_causes(silent.causes if silent else ())
    course.notice(ReverifyTrigger.RECOVERY, "the engine was restarted")


# Process answers.


def _handle_position(course: MonitorStep, event: SelfLocated) -> None:
    monitor = course.monitor
    stale = event.located.docs is DocsStatus.STALE or (monitor.reported and monitor.unreported)
    if monitor.open is not None and monitor.open.level is ReverifyLevel.PING:
        about_docs = any(cause.trigger is ReverifyTrigger.STALE_DOCS for cause in monitor.open.causes)
        anomalies = (*event.anomalies, *(("its documents are still stale",) if stale and about_docs else ()))
        result = AnswerResult.ANOMALY if anomalies else AnswerResult.FITS
        course.close(result, "; ".join(anomalies) or "the agent is where it should be")
        return
    if monitor.in_gate:
        return
    in_a_row = monitor.stale + 1 if stale else 0
    course.update_monitor(stale=in_a_row)
    if in_a_row >= monitor.limits.stale_in_a_row:
        course.notice(ReverifyTrigger.STALE_DOCS, f"its documents were stale {in_a_row} times in a row")
        course.update_monitor(stale=0)


def _handle_answer(course: MonitorStep, grade: AnswerGrade) -> None:
    question = course.monitor.open
    if question is None or question.level is not ReverifyLevel.QUESTION:
        return
    reasons = {
        Verdict.PASS: "its answer shows that it understands",
        Verdict.FAIL: f"its answer does not name {', '.join(grade.missing)}"
        if grade.missing
        else "its answer shows a gap",
        Verdict.UNVERIFIABLE: "nobody could judge whether the agent understands",
    }
    course.close(_RESULT_BY_VERDICT[grade.verdict], reasons[grade.verdict], plan_first=grade.changed_approach)


def _handle_analysis(course: MonitorStep, score: AnalysisScore) -> None:
    question = course.monitor.open
    if question is not None and question.level is ReverifyLevel.ANALYSIS:
        course.close(score.result, score.reason, score=score)


def _count_unanswered_turn(course: MonitorStep, calls: int) -> None:
    """A turn has ended while a question is open. An agent that still uses tools may answer in a later turn."""
    question = course.monitor.open
    if question is None:
        return
    if calls and question.turns + 1 < course.monitor.limits.patience_turns:
        course.update_monitor(open=question.model_copy(update={"turns": question.turns + 1}))
    else:
        course.close(AnswerResult.UNANSWERED, "the agent has not answered")
