"""Phrase the facts of a bundle, for every format in which it is shown. Nothing is escaped here. Pure."""

from __future__ import annotations

from datetime import datetime

from proofstone.agents.rules.budget import format_spending
from proofstone.common.models import Verdict
from proofstone.common.text import pluralize
from proofstone.documents.markdown import format_ranges, shorten_line
from proofstone.gate.rules.pages import format_time_between
from proofstone.pipeline.models.bundle import (
    BundleApproval,
    BundleLoss,
    BundleReview,
    CheckComparison,
    CostLine,
    EvidenceBundle,
    SourcedValue,
    SupervisionCost,
    TaskEnding,
    TimelineStep,
    TreeChecks,
)

FINAL_TASK_ID = "final"
"""The task under which the checks of the merged tree are recorded."""
_MAX_AGENT = 60
_MAX_RANGES = 10


def format_outcome(bundle: EvidenceBundle) -> str:
    return bundle.ending.outcome.value.upper() if bundle.ending.outcome else "NOT FINISHED"


def format_title(bundle: EvidenceBundle) -> str:
    """Return the first line of the request, or the name of the plan."""
    request = bundle.subject.asked.strip()
    return shorten_line(
        request.partition("\n")[0] if bundle.subject.command == "run" else request.rpartition("/")[2], 100
    )


def format_rows(sourced: SourcedValue) -> str:
    """Return the rows as `3, 7, 31–34`; if there are too many, as their range and number."""
    text = format_ranges(sourced.rows)
    return (
        text
        if text.count(",") < _MAX_RANGES
        else f"{min(sourced.rows)}–{max(sourced.rows)}, {len(sourced.rows)} of them"
    )


def format_confidence(bundle: EvidenceBundle) -> str:
    return bundle.ending.confidence.value if bundle.ending.confidence else "not said"


def format_task(subject: TaskEnding | TreeChecks, bundle: EvidenceBundle) -> str:
    """Return the name of a task, with its iteration if there is more than one."""
    id = subject.id if isinstance(subject, TaskEnding) else subject.task
    if id == FINAL_TASK_ID:
        return "the merged tree"
    has_iterations = len({task.iteration for task in bundle.tasks}) > 1
    return f"{id} (iteration {subject.iteration})" if has_iterations else id


def format_before(line: CheckComparison) -> str:
    return line.before.value if line.before else "not run"


def format_remark(line: CheckComparison) -> str:
    """Return remarks on a check besides its verdict."""
    remarks = [shorten_line(line.said, 120)] if line.said else []
    remarks += ["REGRESSION"] if line.is_regression else []
    remarks += ["from an earlier run on the same tree"] if line.reused else []
    remarks += [f"also run: {', '.join(probe.what for probe in line.probes)}"] if line.probes else []
    return "; ".join(remarks)


def format_pass_count(tree: TreeChecks) -> str:
    passed = sum(line.after is Verdict.PASS for line in tree.lines)
    return f"{passed} of {len(tree.lines)} checks passed"


def format_findings(review: BundleReview) -> str:
    if review.findings is None:
        return "not on record"
    return ", ".join(f"{count} {severity}" for severity, count in review.findings.items() if count) or "none"


def format_panel(bundle: EvidenceBundle) -> str:
    """Say whether the reviewers were different models."""
    if bundle.one_model is None:
        return ""
    if bundle.one_model:
        return "One model served all reviewers, each with a focus of its own: they do not see with different eyes."
    return "The reviewers were served by different models."


def format_loss(seen: BundleLoss) -> tuple[str, ...]:
    """Return L, D, P, Ω, and the directive of the controller."""
    loss, direction = seen.direction.loss, seen.direction
    shares = (f"{share:.2f}" for share in (loss.L, loss.D, loss.P, loss.Omega))
    return (*shares, f"{direction.gradient.arrow} {direction.directive}")


def format_decider(approval: BundleApproval) -> str:
    return f"{approval.by} (by default, {approval.mode or 'unattended'})" if approval.auto_selected else approval.by


def format_cost(line: CostLine) -> tuple[str, ...]:
    spent = line.spent
    tokens = f"{spent.input_tokens:,} in, {spent.output_tokens:,} out"
    return (str(line.dispatches), str(spent.requests), tokens, str(spent.tool_calls), f"{spent.seconds:.1f} s")


def format_price(line: CostLine) -> str:
    return format_spending(line.spent) if line.spent.requests else ""


def format_total(bundle: EvidenceBundle) -> str:
    spent = bundle.spent
    calls = f"{bundle.dispatches} dispatch{'es' if bundle.dispatches != 1 else ''}"
    return f"{calls}, {pluralize(spent.requests, 'model call')}, {spent.tokens:,} tokens, {format_spending(spent)}"


def format_supervision_cost(line: SupervisionCost) -> str:
    """Return the part of the cost that was spent on asking agents whether they understand their task."""
    counts = f"{pluralize(line.questions, 'question')}, {pluralize(line.judgements, 'judgement')}"
    share = "" if line.share is None else f" ({line.share:.0%} of all)"
    spent = (
        f"{pluralize(line.spent.requests, 'model call')}, {line.spent.tokens:,} tokens{share}, "
        f"{format_spending(line.spent)}"
    )
    return f"Of that, on whether agents know what they are doing: {counts}, {spent}"


def format_step(entry: TimelineStep) -> str:
    return f"{entry.part}: {entry.step}" if entry.part else entry.step


def format_agent(entry: TimelineStep) -> str:
    return shorten_line(f"{entry.agent}:{entry.instance}" if entry.instance else entry.agent, _MAX_AGENT)


def format_step_duration(entry: TimelineStep) -> str:
    if entry.completed_at is None:
        return "not ended"
    seconds = (_parse_time(entry.completed_at) - _parse_time(entry.started_at)).total_seconds()
    return f"{max(seconds, 0):.1f} s" if seconds < 60 else format_time_between(entry.started_at, entry.completed_at)


def format_time(timestamp: str) -> str:
    """Format a time stamp as `2026-01-31 12:00:00`."""
    return timestamp[:19].replace("T", " ")


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
