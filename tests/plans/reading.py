"""Short ways to a plan, for the tests of its reader."""

from __future__ import annotations

from pathlib import Path

from proofstone.plans.lint import find_lint_problems
from proofstone.plans.models import Plan, PlanProblem, PlanTask
from proofstone.plans.parser import read_plan

FIXTURES = Path(__file__).parents[1] / "fixtures" / "plans"


def fixture(name: str) -> str:
    return (FIXTURES / f"{name}.md").read_text(encoding="utf-8")


def element(
    name: str = "One",
    files: str = "src/a.py",
    action: str = "Do it.",
    verify: str = "pytest -q tests/test_a.py",
    done: str = "`a` refuses an empty text",
    attributes: str = 'type="auto"',
) -> str:
    """A task that is sound unless a test says otherwise; an element given as "" is left out."""
    parts = {"name": name, "files": files, "action": action, "verify": verify, "done": done}
    inside = "\n".join(f"  <{key}>{value}</{key}>" for key, value in parts.items() if value)
    return f"<task {attributes}>\n{inside}\n</task>\n"


def read(text: str) -> Plan:
    plan, _ = read_plan(text, "PLAN.md")
    assert plan is not None
    return plan


def only_task(text: str) -> PlanTask:
    [task] = read(text).tasks
    return task


def problems(text: str) -> tuple[PlanProblem, ...]:
    """All that `proofstone plan lint` would say."""
    plan, found = read_plan(text, "PLAN.md")
    return found + (find_lint_problems(plan, text) if plan else ())


def rules(text: str) -> list[tuple[str, str, int]]:
    return sorted((problem.severity.value, problem.rule, problem.line) for problem in problems(text))
