"""Documents of a run that no agent wrote: what was implemented and verified, task by task, as the ledger has it. Pure.

`implementation-reports/<task>.yaml`, `verification-reports/<task>.yaml` and `verification-ledger.yaml`. The ledger is
what counts; these are summaries of it. Of a task that was planned again, the last one is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from proofstone.contracts.pipeline.bundle import Bundle, CheckedLine, CheckedTree, TaskEnding
from proofstone.contracts.verdict import Verdict
from proofstone.core.pipeline.yaml_text import yaml_text


def task_documents(bundle: Bundle) -> Mapping[str, str]:
    found: dict[str, str] = {}
    trees = {(tree.run_id, tree.task): tree for tree in bundle.checks}
    for task in bundle.tasks:
        tree = trees.get((task.run_id, task.id))
        found[f"implementation-reports/{task.id}.yaml"] = yaml_text(_implementation(task, tree))
        found[f"verification-reports/{task.id}.yaml"] = yaml_text(_verification(task, tree))
    return {**found, "verification-ledger.yaml": yaml_text(_ledger(bundle))}


def _implementation(task: TaskEnding, tree: CheckedTree | None) -> dict[str, JsonValue]:
    return {
        "implementation_report": {
            "task_id": task.id,
            "iteration": task.iteration,
            "task_type": "Large" if task.large else "Standard",
            "state": task.state.value,
            "baseline": [
                {"check_name": line.name, "phase": "baseline", "passed": line.before is Verdict.PASS}
                for line in _lines(tree)
                if line.before is not None
            ],
            "changes": list(task.changed),
            "self_check": {"attempts": max(task.attempts - 1, 0)},
            "tree": task.tree,
            "ledger_rows": list(task.rows),
        }
    }


def _verification(task: TaskEnding, tree: CheckedTree | None) -> dict[str, JsonValue]:
    lines = _lines(tree)
    return {
        "verification_report": {
            "task_id": task.id,
            "iteration": task.iteration,
            "evidence_gate": {**_counted(lines), "gate_status": "passed" if task.passed else "failed"},
            "findings": [finding for line in lines for finding in _findings(line)],
            "regressions": [line.name for line in lines if line.regressed],
            "baseline_cross_check": [
                {"check_name": line.name, "before": line.before.value, "after": line.after.value}
                for line in lines
                if line.before is not None
            ],
            "ledger_rows": list(tree.rows) if tree else [],
        }
    }


def _ledger(bundle: Bundle) -> dict[str, JsonValue]:
    return {
        "verification_ledger": {
            "run_id": bundle.subject.run_id,
            "outcome": bundle.ending.outcome.value if bundle.ending.outcome else None,
            "checked": [
                {
                    "task_id": tree.task,
                    "iteration": tree.iteration,
                    "attempt": tree.attempt,
                    "tree": tree.tree,
                    **_counted(tree.lines),
                    "ledger_rows": list(tree.rows),
                }
                for tree in bundle.checks
            ],
            "reviews": [
                {
                    "scope": one.scope,
                    "focus": one.focus.value,
                    "round": one.round,
                    "verdict": one.verdict.value if one.verdict else None,
                    "ledger_rows": list(one.rows),
                }
                for one in bundle.reviews
            ],
            "head": {"ledger_id": bundle.head.ledger_id, "seq": bundle.head.seq, "hash": bundle.head.hash},
        }
    }


def _lines(tree: CheckedTree | None) -> tuple[CheckedLine, ...]:
    return tree.lines if tree else ()


def _counted(lines: tuple[CheckedLine, ...]) -> dict[str, JsonValue]:
    """Three numbers: what is unverifiable has not passed, and has not failed."""
    return {
        "total_checks": len(lines),
        "passed": sum(line.after is Verdict.PASS for line in lines),
        "failed": sum(line.after is Verdict.FAIL for line in lines),
    }


def _findings(line: CheckedLine) -> Iterator[dict[str, JsonValue]]:
    for phase, state in (("baseline", line.before), ("after", line.after)):
        if state is not None:
            yield {
                "check_name": line.name,
                "tier": line.tier,
                "phase": phase,
                "passed": state is Verdict.PASS,
                "state": state.value,
                "output_snippet": line.said if phase == "after" else "",
            }
