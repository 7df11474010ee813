"""Every page that is generated, and every part of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from generators import (
    controller,
    evidence,
    house,
    ledger,
    pipeline,
    plan_gate,
    plugins,
    roles,
    rules,
    seeds,
    task_gate,
    threats,
    understanding,
)
from generators.api import api_reference
from generators.command_line import cli_reference
from generators.page import marked
from generators.programs import programs
from generators.settings import configuration

MARKED: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "CONTRIBUTING.md": {"metrics": house.metrics},
    "docs/coding-agents.md": {"programs": programs},
    "docs/agents.md": {"lengths of prompts": roles.token_table},
    "docs/verify-plan.md": {
        "decision table": plan_gate.decision_table,
        "tool budgets": plan_gate.tool_budgets,
        "rules": plan_gate.plan_rules,
    },
    "docs/solve.md": {
        "decision table": controller.default_policy,
        "numbers": controller.loop_numbers,
        "other policies": controller.other_policies,
    },
    "docs/gate.md": {"states": task_gate.states, "retries": task_gate.retries},
    "docs/concepts/pipeline.md": {"diagram": pipeline.flow},
    "docs/concepts/lanes.md": {"lanes": pipeline.depths, "risks": pipeline.risks},
    "docs/concepts/task-gate.md": {
        "the way of a task": task_gate.course,
        "what it is told": task_gate.told,
        "bounds": task_gate.bounds,
    },
    "docs/concepts/evidence.md": {"layers": evidence.layers, "what a person may accept": evidence.acceptable},
    "docs/concepts/confidence.md": {"of a check": evidence.of_a_check, "of a run": evidence.of_a_run},
    "docs/concepts/plan-gate.md": {"convergence": plan_gate.convergence, "decisions": plan_gate.decision_table},
    "docs/concepts/control-loop.md": {"policy": controller.course},
    "docs/concepts/ledger.md": {"chain": ledger.chain, "tables": ledger.tables},
    "docs/threat-model.md": {"walls": threats.walls, "calls": threats.calls},
    "docs/understanding.md": {
        "items": understanding.items,
        "triggers": understanding.triggers,
        "ladder": understanding.ladder,
        "wire lines": understanding.wire_lines,
    },
    "docs/run.md": {"bounds": pipeline.pipeline_bounds, "lanes": pipeline.lanes, "review gate": pipeline.review_gate},
}
GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/reference/cli.md": cli_reference,
    "docs/reference/api.md": api_reference,
    seeds.PAGE: seeds.conformance,
    "docs/configuration.md": configuration,
    **rules.PAGES,
    **plugins.PAGES,
    **{page: partial(marked, page, parts) for page, parts in MARKED.items()},
}
