"""Words about a run of the pipeline that its live view, its report and its questions share.

Whatever an agent or a person wrote is one line here, and drives no terminal.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from proofstone.contracts.budget import Allowance
from proofstone.contracts.gate import TaskState
from proofstone.contracts.gate_report import TaskReport
from proofstone.contracts.pipeline.approval import ApprovalEntry, ApprovalOption, ApprovalRequest
from proofstone.contracts.pipeline.run import FinalChecks, KnownIssue, Reviewed, RunReport
from proofstone.contracts.verdict import Severity
from proofstone.core.agent.budget import summary
from proofstone.core.counted import counted
from proofstone.core.gate.page_text import visible
from proofstone.surfaces.report.solve_words import one_line, seconds

WANT_WORDS: Final = frozenset(("expand", "modify", "revise"))
"""Options that say nothing to whoever goes on, unless the person says what they want."""
_SHORT: Final = 12
_LONG: Final = 400


def approval(entry: ApprovalEntry) -> str:
    how = ", by default" if entry.auto_selected else ", by a person"
    said = f": {one_line(entry.user_response_raw, _LONG)}" if entry.user_response_raw.strip() else ""
    return f"{visible(entry.gate_id)}: {visible(entry.selected_option)}{how}{said}"


def option_line(option: ApprovalOption) -> str:
    default = " (the default)" if option.is_default else ""
    return f"{one_line(option.label)}{default}: {one_line(option.description, _LONG)}"


def answer_command(run_id: str, request: ApprovalRequest, option: ApprovalOption) -> str:
    """The command that takes this option."""
    words = ' --note "…"' if option.id in WANT_WORDS else ""
    return f"proofstone approve {run_id} {shlex.quote(request.gate_id)} {shlex.quote(option.id)}{words}"


def cascade(checks: FinalChecks) -> str:
    """What the whole cascade gave."""
    tree = checks.tree[:_SHORT]
    if checks.passed:
        return f"✓ all checks pass on the merged tree {tree}, confidence {checks.confidence}"
    broken = f"; {counted(len(checks.regressions), 'regression')}" if checks.regressions else ""
    return f"✗ the merged tree {tree} does not pass: {one_line(checks.reason or 'nobody said why', _LONG)}{broken}"


def task_line(task: TaskReport) -> str:
    confidence = f", confidence {task.confidence}" if task.confidence else ""
    tries = counted(task.attempts, "attempt")
    mark = {TaskState.APPROVED: "✓", TaskState.FAILED: "✗", TaskState.BLOCKED: "✗"}.get(task.state, "–")
    return f"{mark} {visible(task.id)} {one_line(task.name)}  {task.state.value.lower()}, {tries}{confidence}"


def trouble(task: TaskReport) -> Iterator[str]:
    """Why a task is not through; of one that is, nothing."""
    if task.override is not None:
        yield f"set aside by {visible(task.override.by)}: {one_line(task.override.reason, _LONG)}"
    if task.failures and task.state is not TaskState.APPROVED:
        last = task.failures[-1]
        yield f"{last.type}: {one_line(last.error, _LONG)}"
    if task.asks:
        yield one_line(task.asks, _LONG)


def review_line(word: Reviewed) -> str:
    """`security approve (1 minor), by gpt-5`."""
    if word.verdict is None:
        return f"{word.focus} not heard"
    found = ", ".join(f"{word.findings[one]} {one}" for one in Severity if word.findings.get(one))
    model = f", by {visible(word.model)}" if word.model else ""
    return f"{word.focus} {word.verdict}{f' ({found})' if found else ''}{model}"


def issue_line(issue: KnownIssue) -> str:
    where = f" in {one_line(', '.join(issue.where))}" if issue.where else ""
    return f"{issue.severity}: {one_line(issue.title, _LONG)}{where} ({one_line(issue.source)})"


def cost(report: RunReport) -> str:
    spent = summary(report.spent, Allowance()) or "no model calls"
    return f"agents asked {counted(report.dispatches, 'time')}, {spent}, {seconds(report.elapsed_ms)}"
