"""The message of a task's commit: `type(phase-plan): name`, then what it belongs to. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from proofstone.contracts.plan import Plan, PlanTask
from proofstone.core.protected import Role, roles

_LONGEST_SUBJECT = 72
_NUMBERED = re.compile(r"^(task\s*)?\d+(\.\d+)*\s*[:.)–-]\s*", re.IGNORECASE)
_KNOWN = re.compile(r"^(feat|fix|docs|test|refactor|chore|perf|build|ci|style)(\([^)]*\))?!?:\s*", re.IGNORECASE)
_MENDS = re.compile(r"^(fix|repair|mend|correct|resolve)\b", re.IGNORECASE)


def message(plan: Plan, task: PlanTask, changed: Sequence[str], *, run_id: str) -> str:
    scope = "-".join(part for part in (plan.phase, plan.plan) if part)
    name = " ".join(_NUMBERED.sub("", task.name).split()) or task.id
    known = _KNOWN.match(name)
    kind = known[1].lower() if known else kind_of(task, changed)
    told = name[known.end() :] if known else name
    subject = f"{kind}({_text(scope)}): {told}" if scope else f"{kind}: {told}"
    cut, is_cut = fitted(subject)
    whole = f"{told}\n\n" if is_cut else ""
    return (
        f"{cut}\n\n{whole}Plan: {plan.title}\nTask: {task.name}\nFiles:\n{listed(changed)}\n\n"
        f"Proofstone-Run: {run_id}\nProofstone-Task: {task.id}\n"
    )


def fitted(subject: str) -> tuple[str, bool]:
    """As much of it as the first line of a message should hold, and whether that is not all."""
    if len(subject) <= _LONGEST_SUBJECT:
        return subject, False
    return f"{subject[: _LONGEST_SUBJECT - 1].rstrip()}…", True


def listed(paths: Sequence[str]) -> str:
    return "\n".join(f"- {_quoted(path)}" for path in paths)


def kind_of(task: PlanTask, changed: Sequence[str]) -> str:
    """What kind of change it is, by its name and its files."""
    if changed and all(path.endswith((".md", ".rst", ".txt")) or path.startswith("docs/") for path in changed):
        return "docs"
    if changed and all(Role.TESTS in roles(path) for path in changed):
        return "test"
    return "fix" if _MENDS.match(_NUMBERED.sub("", task.name)) else "feat"


def _quoted(path: str) -> str:
    """A name cannot write lines of its own into the message."""
    return path if path.isprintable() else json.dumps(path)


def _text(scope: str) -> str:
    return re.sub(r"[()\s]+", "-", scope).strip("-")
