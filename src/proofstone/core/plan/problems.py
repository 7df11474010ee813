"""How the reader and the linter say what is wrong with a plan."""

from __future__ import annotations

from proofstone.contracts.plan import PlanProblem, ProblemSeverity


def error(rule: str, line: int, message: str, hint: str, task: str | None = None) -> PlanProblem:
    """The plan cannot be run."""
    return PlanProblem(
        severity=ProblemSeverity.ERROR, rule=rule, line=line, message=message, hint=hint, task=task
    )  # fmt: skip


def warning(rule: str, line: int, message: str, hint: str, task: str | None = None) -> PlanProblem:
    """The plan can be run; somebody should look at it."""
    return PlanProblem(
        severity=ProblemSeverity.WARNING, rule=rule, line=line, message=message, hint=hint, task=task
    )  # fmt: skip


def shortened(text: str, length: int = 80) -> str:
    """On one line, and not longer than a message can bear."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"
