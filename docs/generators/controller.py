"""The controller: its policies, and the numbers of the loop."""

from __future__ import annotations

import re
from collections.abc import Mapping

from generators.page import cell, mermaid
from proofstone.agents.roles.models.solve_messages import OutcomeStatus, SubTaskOutcome
from proofstone.solve.rules.directing import RoundResult, update_blocks
from proofstone.solve.rules.gradient import DEFAULT_POLICY, POLICIES, LossWeights, Policy, PolicyRow
from proofstone.solve.rules.plan_rules import Blocks

FIGURES = re.compile(r" \([^()]*\{[^()]*\)")
"""What a rationale is filled in with: a table is about any figures."""
WEIGHTS: Mapping[str, str] = {
    "alpha": "α: what D weighs in the loss",
    "beta": "β: what P weighs in it, as long as there is budget left",
    "lam": "λ: what Ω weighs in it",
    "replans_weight": "what the share of the replans weighs in Ω",
    "time_weight": "what the share of the time weighs in it",
    "epsilon": "ε: below this, ∇ is flat: *it does not move*, *a local minimum*",
    "delta": "δ: up to this, D is *nearly there*",
    "rho": "ρ: above this, P means that *the approach is to blame*",
    "abandon": "from this Ω on, *the budget is spent*",
    "max_replans": "after this many replans it is spent too; `--max-replans`, `solve.max_replans`",
    "time_budget_ms": "the time that it has, in milliseconds; `--seconds`, `solve.seconds`",
}


def default_policy() -> str:
    return _policy(DEFAULT_POLICY)


def other_policies() -> str:
    others = {name: policy for name, policy in POLICIES.items() if policy is not DEFAULT_POLICY}
    return "\n".join(f"`{name}`:\n\n{_policy(policy)}" for name, policy in others.items())


def _policy(policy: Policy) -> str:
    rows = [
        f"| {number} | {cell(FIGURES.sub('', row.rationale_template))} | `{row.directive}` | {_blocked_by(row)} |"
        for number, row in enumerate(policy, start=1)
    ]
    return "\n".join(["| | when | directive | blocked from then on |", "|---|---|---|---|", *rows, ""])


def _blocked_by(row: PolicyRow) -> str:
    """As the code itself does it, to a subtask that failed by one tool at one target."""
    failed = SubTaskOutcome(
        subtask_id="s", parent_task_id="t", status=OutcomeStatus.FAILED, tools=("grep",), obstacles=("a",)
    )
    blocks = update_blocks(row, RoundResult(outcomes=(failed,)), Blocks(), ("grep", "write"))
    said = ["the tools of what failed"] * bool(blocks.tools) + ["what was in the way"] * bool(blocks.targets)
    return ", ".join(said) or "–"


def loop_numbers() -> str:
    rows = [f"| {said} | {getattr(LossWeights(), name):,} |" for name, said in WEIGHTS.items()]
    return "\n".join(["| number | value |", "|---|---|", *rows, ""])


def course() -> str:
    """The default policy as a way: the first row that holds decides."""
    drawn = ['    round(["a round is over"]) --> q1']
    for number, row in enumerate(DEFAULT_POLICY, start=1):
        when, _, then = FIGURES.sub("", row.rationale_template).partition(": ")
        said = f"<b>{row.directive}</b>{f'<br/>{then}' if then else ''}"
        drawn.append(f'    q{number}{{"{when}"}} -->|yes| d{number}["{said}"]')
        if number < len(DEFAULT_POLICY):
            drawn.append(f"    q{number} -->|no| q{number + 1}")
    return mermaid("\n".join(["flowchart TD", *drawn]))
