"""The plan gate: what is decided by what, what may be looked up, and what its rules object to."""

from __future__ import annotations

import re

from generators.page import cell, mermaid
from proofstone.agents.roles.models.plan_gate import ResearchMode
from proofstone.agents.roles.models.plan_gate_records import ConvergenceStatus, PlanSeverity
from proofstone.agents.rules.tool_budgets import COMBINED_LIMITS, MODE_LIMITS, SEARCH_REASONS, TOOL_KINDS, BudgetKind
from proofstone.plan_gate.rules.decision import DECISION_TABLE
from proofstone.plan_gate.rules.objections import RULES, Objection


def decision_table() -> str:
    rows = [
        f"| {number} | {cell(row.when)} | {row.status} | {_verdict(row.verdict, strong=row.is_strong)} |"
        for number, row in enumerate(DECISION_TABLE, start=1)
    ]
    return "\n".join(["| | when | status | verdict |", "|---|---|---|---|", *rows, ""])


def _verdict(verdict: str | None, *, strong: bool) -> str:
    return f"**{verdict}**{', strongly' if strong else ''}" if verdict else "–"


def tool_budgets() -> str:
    head = f"| budget | tools that count | {' | '.join(ResearchMode)} | together |"
    searched = [
        f"- `{mode}`: {', '.join(f'`{one}`' for one in SEARCH_REASONS[mode]) or 'never'}" for mode in ResearchMode
    ]
    table = [head, "|---|---|" + "---|" * (len(ResearchMode) + 1), *map(_budget_row, BudgetKind)]
    return "\n".join([*table, "", "The web is searched for these reasons and no others:", "", *searched, ""])


def _budget_row(kind: BudgetKind) -> str:
    tools = ", ".join(f"`{tool}`" for tool, its in TOOL_KINDS.items() if its is kind)
    limits = " | ".join(str(MODE_LIMITS[mode].get(kind, "–")) for mode in ResearchMode)
    return f"| {kind} | {tools} | {limits} | {COMBINED_LIMITS[kind]} |"


def plan_rules() -> str:
    """Rules that say the same are one row; the gravest first."""
    same: dict[tuple[PlanSeverity, Objection], list[str]] = {}
    for rule, said in RULES.items():
        same.setdefault(said, []).append(f"`{rule}`")
    rows = [
        f"| {severity} | {', '.join(rules)} | {_prose(objection.concern)} | {_prose(objection.alternative)} |"
        for (severity, objection), rules in sorted(same.items(), key=lambda row: row[0][0].rank)
    ]
    return "\n".join(["| severity | rules | why | instead |", "|---|---|---|---|", *rows, ""])


def _prose(text: str) -> str:
    """A tag is shown, not taken for one."""
    return re.sub(r"<[\w-]+>", r"`\g<0>`", cell(text))


def convergence() -> str:
    """The decision table as a way: what each row leads to."""
    ends = {row.verdict: f'    {row.verdict}(["{row.verdict}"])' for row in DECISION_TABLE if row.verdict}
    drawn = ['    rules["rules: code looks first"] --> challenge', '    challenge["challenge"] --> research']
    drawn += ['    research["look into it"] --> rule', '    rule["rule on each challenge"] --> decide{"decide"}']
    return mermaid("\n".join(["flowchart TD", *drawn, *ends.values(), *map(_arrow, range(1, len(DECISION_TABLE) + 1))]))


def _arrow(number: int) -> str:
    row = DECISION_TABLE[number - 1]
    said = f'"{number}: {row.status}"'
    if row.verdict:
        return f"    decide -->|{said}| {row.verdict}"
    asked = 'person["you are asked"] --> challenge' if row.status is ConvergenceStatus.BLOCKED else "challenge"
    return f"    decide -->|{said}| {asked}"
