"""What reviewers of the code are shown besides the diff: the risk, the results of the criteria, and how each task was
implemented. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from proofstone.agents.roles.models.payload import RiskMark
from proofstone.agents.roles.models.pipeline import PlanOutput
from proofstone.common.text import pluralize
from proofstone.gate.models import CriterionResult, TaskReport
from proofstone.pipeline.models.run import GateSummary

RISK_MARKS: Final[tuple[RiskMark, ...]] = ("🟢", "🟡", "🔴")
"""The risks, from the lowest to the highest."""


def find_highest_risk(plan: PlanOutput) -> RiskMark:
    return max((file.risk for task in plan.tasks for file in task.files), key=RISK_MARKS.index)


def list_criterion_results(gates: Iterable[GateSummary]) -> tuple[str, ...]:
    """Return each criterion of the accepted tasks with its result and what shows it."""
    return tuple(_write_result(task, result) for gate in gates for task in gate.tasks for result in task.criteria)


def _write_result(task: TaskReport, result: CriterionResult) -> str:
    shown = result.check or result.command
    by = f" by {', '.join(result.judged_by)}" if result.judged_by else f" by {shown}" if shown else ""
    return f"{task.id}: {result.criterion}: {result.status.value}{by}"


def list_implementation_reports(gates: Iterable[GateSummary]) -> tuple[str, ...]:
    """Return in a few words how each task of the accepted plans was implemented."""
    return tuple(_write_report(task) for gate in gates for task in gate.tasks)


def _write_report(task: TaskReport) -> str:
    confidence = f", confidence {task.confidence}" if task.confidence else ""
    head = f"{task.id} {task.name}: {task.state.value.lower()} after {pluralize(task.attempts, 'attempt')}{confidence}"
    details = (
        *(f"attempt {failure.attempt} failed: {failure.type}: {failure.error}" for failure in task.failures),
        *(f"concern: {concern}" for concern in task.concerns),
        *((f"set aside by {task.override.by}: {task.override.reason}",) if task.override else ()),
    )
    return "; ".join((head, *details))
