"""Phrase the facts of a bundle, for every format in which it is shown. Nothing is escaped here. Pure."""

from __future__ import annotations

from datetime import datetime

from proofstone.agents.rules.budget import money
from proofstone.common.models import Verdict
from proofstone.common.text import counted
from proofstone.documents.markdown import ranges, shortened
from proofstone.gate.rules.pages import duration
from proofstone.pipeline.models.bundle import (
    ApprovalSeen,
    Bundle,
    CheckedLine,
    CheckedTree,
    CostLine,
    LossSeen,
    ReviewSeen,
    Sourced,
    StepSeen,
    TaskEnding,
    VerificationSpent,
)

FINAL = "final"
"""The task under which the checks of the merged tree are recorded."""
_MAX_AGENT = 60
_MAX_RANGES = 10


def headline(bundle: Bundle) -> str:
    return bundle.ending.outcome.value.upper() if bundle.ending.outcome else "NOT FINISHED"


def title(bundle: Bundle) -> str:
    """Return the first line of the request, or the name of the plan."""
    request = bundle.subject.asked.strip()
    return shortened(request.partition("\n")[0] if bundle.subject.command == "run" else request.rpartition("/")[2], 100)


def rows(sourced: Sourced) -> str:
    """Return the rows as `3, 7, 31–34`; if there are too many, as their range and number."""
    text = ranges(sourced.rows)
    return (
        text
        if text.count(",") < _MAX_RANGES
        else f"{min(sourced.rows)}–{max(sourced.rows)}, {len(sourced.rows)} of them"
    )


def confidence(bundle: Bundle) -> str:
    return bundle.ending.confidence.value if bundle.ending.confidence else "not said"


def task_of(subject: TaskEnding | CheckedTree, bundle: Bundle) -> str:
    """Return the name of a task, with its iteration if there is more than one."""
    id = subject.id if isinstance(subject, TaskEnding) else subject.task
    if id == FINAL:
        return "the merged tree"
    has_iterations = len({task.iteration for task in bundle.tasks}) > 1
    return f"{id} (iteration {subject.iteration})" if has_iterations else id


def before(line: CheckedLine) -> str:
    return line.before.value if line.before else "not run"


def remark(line: CheckedLine) -> str:
    """Return remarks on a check besides its verdict."""
    remarks = [shortened(line.said, 120)] if line.said else []
    remarks += ["REGRESSION"] if line.regressed else []
    remarks += ["from an earlier run on the same tree"] if line.reused else []
    remarks += [f"also run: {', '.join(probe.what for probe in line.probes)}"] if line.probes else []
    return "; ".join(remarks)


def passing(tree: CheckedTree) -> str:
    passed = sum(line.after is Verdict.PASS for line in tree.lines)
    return f"{passed} of {len(tree.lines)} checks passed"


def found(review: ReviewSeen) -> str:
    if review.findings is None:
        return "not on record"
    return ", ".join(f"{count} {severity}" for severity, count in review.findings.items() if count) or "none"


def panel(bundle: Bundle) -> str:
    """Say whether the reviewers were different models."""
    if bundle.one_model is None:
        return ""
    if bundle.one_model:
        return "One model served all reviewers, each with a focus of its own: they do not see with different eyes."
    return "The reviewers were served by different models."


def figures(seen: LossSeen) -> tuple[str, ...]:
    """Return L, D, P, Ω, and the directive of the controller."""
    loss, direction = seen.direction.loss, seen.direction
    shares = (f"{share:.2f}" for share in (loss.L, loss.D, loss.P, loss.Omega))
    return (*shares, f"{direction.gradient.arrow} {direction.directive}")


def decided_by(approval: ApprovalSeen) -> str:
    return f"{approval.by} (by default, {approval.mode or 'unattended'})" if approval.auto_selected else approval.by


def cost(line: CostLine) -> tuple[str, ...]:
    spent = line.spent
    tokens = f"{spent.input_tokens:,} in, {spent.output_tokens:,} out"
    return (str(line.dispatches), str(spent.requests), tokens, str(spent.tool_calls), f"{spent.seconds:.1f} s")


def price(line: CostLine) -> str:
    return money(line.spent) if line.spent.requests else ""


def total(bundle: Bundle) -> str:
    spent = bundle.spent
    calls = f"{bundle.dispatches} dispatch{'es' if bundle.dispatches != 1 else ''}"
    return f"{calls}, {counted(spent.requests, 'model call')}, {spent.tokens:,} tokens, {money(spent)}"


def verification(line: VerificationSpent) -> str:
    """Return the part of the cost that was spent on asking agents whether they understand their task."""
    counts = f"{counted(line.questions, 'question')}, {counted(line.judgements, 'judgement')}"
    share = "" if line.share is None else f" ({line.share:.0%} of all)"
    spent = f"{counted(line.spent.requests, 'model call')}, {line.spent.tokens:,} tokens{share}, {money(line.spent)}"
    return f"Of that, on whether agents know what they are doing: {counts}, {spent}"


def step(entry: StepSeen) -> str:
    return f"{entry.part}: {entry.step}" if entry.part else entry.step


def agent(entry: StepSeen) -> str:
    return shortened(f"{entry.agent}:{entry.instance}" if entry.instance else entry.agent, _MAX_AGENT)


def took(entry: StepSeen) -> str:
    if entry.completed_at is None:
        return "not ended"
    seconds = (_parse_time(entry.completed_at) - _parse_time(entry.started_at)).total_seconds()
    return f"{max(seconds, 0):.1f} s" if seconds < 60 else duration(entry.started_at, entry.completed_at)


def clock(timestamp: str) -> str:
    """Format a time stamp as `2026-01-31 12:00:00`."""
    return timestamp[:19].replace("T", " ")


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
