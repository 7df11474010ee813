"""The documents of a run. Pure.

Each answer of an agent becomes typed YAML with the engine's header, and a readable page:

| answer    | files                                                                                          |
|-----------|------------------------------------------------------------------------------------------------|
| research  | `research/<focus>.yaml`, `research/<focus>.md`                                                 |
| spec      | `spec-output.yaml`, `feature.md`                                                               |
| design    | `design-output.yaml`, `design.md`                                                              |
| plan      | `plan-output.yaml`, `plan.md`, `tasks/<task>.yaml`                                             |
| review    | `review-verdicts/<scope>-<focus>-r<round>.yaml`, `review-findings/<scope>-<focus>-r<round>.md` |
| knowledge | `knowledge-output.yaml`, and `instruction-proposals.md` if there are any                       |

There are also `initial-request.md`, `approvals.yaml` and the append-only `decisions.yaml`. The engine chooses all file
names. In a plan the ids are the engine's: `task-01` is the first task, and references follow. The engine fills in what
it knows better than the agent: dates, waves, who decided, and the risk of a path.

Other documents summarise the ledger, task by task: `implementation-reports/<task>.yaml`,
`verification-reports/<task>.yaml` and `verification-ledger.yaml`. Of a task that was planned again, they show the last
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from proofstone.agents.memory.rules.lessons import explain_lesson_weakening
from proofstone.agents.models import OutputHeader
from proofstone.agents.roles.models.pipeline import (
    DesignOutput,
    KnowledgeOutput,
    PanelOutput,
    PlanOutput,
    ResearchOutput,
    SpecOutput,
)
from proofstone.common.models import FrozenModel, Verdict
from proofstone.documents.yaml import dump_yaml
from proofstone.errors import InternalError
from proofstone.pipeline.models.bundle import CheckComparison, EvidenceBundle, TaskEnding, TreeChecks
from proofstone.pipeline.models.run import ApprovalEntry
from proofstone.pipeline.rules import document_pages
from proofstone.pipeline.rules.plan_text import assign_task_ids
from proofstone.pipeline.rules.planning import raise_plan_risks

Documents = Mapping[str, str]
"""A mapping from a path in the run's folder to the text of the file."""

DECISIONS_FILE: Final = "decisions.yaml"
PROPOSALS_FILE: Final = "instruction-proposals.md"
_LOG_HEAD: Final = "decision_log:\n"


def build_documents(name: str, header: OutputHeader, output: FrozenModel) -> Documents:
    """Return the documents of one answer. `name` is the name of the answer in the table. The payload of the header is
    ignored; the answer itself is written.
    """
    writer = _WRITERS.get(name)
    documents = writer(header, output) if writer else None
    if documents is None:
        raise InternalError(f"no document {name!r} exists for {type(output).__name__}")
    return documents


def build_request_document(request: str) -> Documents:
    return {"initial-request.md": document_pages.render_request(request)}


def build_approvals_document(entries: Sequence[ApprovalEntry]) -> Documents:
    return {"approvals.yaml": dump_yaml({"approval_log": [_dump(entry) for entry in entries]})}


def append_decisions(before: str, decided: Sequence[Mapping[str, JsonValue]]) -> Documents:
    """Append decisions to the log. `before` is the content of the file, which stays unchanged byte by byte."""
    if not decided:
        return {DECISIONS_FILE: before} if before else {}
    added = dump_yaml({"decision_log": [dict(decision) for decision in decided]}).removeprefix(_LOG_HEAD)
    return {DECISIONS_FILE: f"{before or _LOG_HEAD}{added}"}


def list_decisions(header: OutputHeader, output: DesignOutput | KnowledgeOutput) -> list[dict[str, JsonValue]]:
    """Return the decisions that an answer adds to the log."""
    origin: dict[str, JsonValue] = {"date": _completion_date(header), "decided_by": header.agent, "step": header.step}
    if isinstance(output, KnowledgeOutput):
        return [{**origin, **_dump(entry)} for entry in output.decision_log_entries]
    return [
        {
            **origin,
            "title": decision.title,
            "decision": next(
                alternative.label for alternative in decision.alternatives if alternative.id == decision.selected
            ),
            "rationale": decision.rationale,
            "alternatives": [alternative.label for alternative in decision.alternatives],
            "confidence": decision.confidence.value,
            "risk": decision.risk,
        }
        for decision in output.decisions
    ]


def compute_waves(plan: PlanOutput) -> dict[str, int]:
    """Return the wave of each task, from 1: a task comes after all tasks that it depends on."""
    dependencies = {task.id: task.depends_on for task in plan.tasks}
    numbers: dict[str, int] = {}

    def wave(id: str) -> int:
        if id not in numbers:
            numbers[id] = 1 + max(map(wave, dependencies[id]), default=0)
        return numbers[id]

    return {task.id: wave(task.id) for task in plan.tasks}


def assign_engine_ids(plan: PlanOutput) -> PlanOutput:
    """Return the plan with the engine's ids, and the waves and dependencies that follow from them."""
    ids = assign_task_ids(plan)
    tasks = tuple(
        task.model_copy(update={"id": ids[task.id], "depends_on": tuple(ids[other] for other in task.depends_on)})
        for task in plan.tasks
    )
    numbered = plan.model_copy(update={"tasks": tasks})
    by_wave: dict[int, list[str]] = {}
    for id, wave in compute_waves(numbered).items():
        by_wave.setdefault(wave, []).append(id)
    return numbered.model_copy(
        update={
            "waves": tuple(tuple(by_wave[wave]) for wave in sorted(by_wave)),
            "dependency_graph": {task.id: task.depends_on for task in tasks},
        }
    )


def dump_with_header(header: OutputHeader, output: FrozenModel) -> str:
    """Return the answer as YAML below the header of every output."""
    return dump_yaml(_dump(header.model_copy(update={"payload": _dump(output)})))


def _research_documents(header: OutputHeader, output: FrozenModel) -> Documents | None:
    if not isinstance(output, ResearchOutput):
        return None
    stem = f"research/{output.focus.value}"
    return {
        f"{stem}.yaml": dump_with_header(header, output),
        f"{stem}.md": document_pages.render_research(header, output),
    }


def _spec_documents(header: OutputHeader, output: FrozenModel) -> Documents | None:
    if not isinstance(output, SpecOutput):
        return None
    return {
        "spec-output.yaml": dump_with_header(header, output),
        "feature.md": document_pages.render_spec(header, output),
    }


def _design_documents(header: OutputHeader, output: FrozenModel) -> Documents | None:
    if not isinstance(output, DesignOutput):
        return None
    origin = {"date": _completion_date(header), "decided_by": header.agent}
    decisions = tuple(decision.model_copy(update=origin) for decision in output.decisions)
    output = output.model_copy(update={"decisions": decisions})
    return {
        "design-output.yaml": dump_with_header(header, output),
        "design.md": document_pages.render_design(header, output),
    }


def find_iteration(header: OutputHeader) -> int:
    """Return the iteration of a plan, from its step: `plan/i2p1`."""
    match = _ITERATION.search(header.step)
    return int(match[1]) if match else 1


def _plan_documents(header: OutputHeader, output: FrozenModel) -> Documents | None:
    if not isinstance(output, PlanOutput):
        return None
    output = assign_engine_ids(raise_plan_risks(output))
    iteration = find_iteration(header)
    tasks = {f"tasks/{name_task_document(task.id, iteration)}": dump_with_header(header, task) for task in output.tasks}
    page = document_pages.render_plan(header, output, compute_waves(output))
    return {"plan-output.yaml": dump_with_header(header, output), "plan.md": page, **tasks}


def _review_documents(header: OutputHeader, output: FrozenModel) -> Documents | None:
    if not isinstance(output, PanelOutput):
        return None
    stem = f"{output.scope}-{output.review_focus.value}-r{output.round}"
    return {
        f"review-verdicts/{stem}.yaml": dump_with_header(header, output),
        f"review-findings/{stem}.md": document_pages.render_review(header, output),
    }


def _knowledge_documents(header: OutputHeader, output: FrozenModel) -> Documents | None:
    if not isinstance(output, KnowledgeOutput):
        return None
    proposed = [update for update in output.updates if update.kind == "instructions"]
    page = (
        {
            PROPOSALS_FILE: document_pages.render_proposals(
                header, [(update, explain_lesson_weakening(update)) for update in proposed]
            )
        }
        if proposed
        else {}
    )
    return {"knowledge-output.yaml": dump_with_header(header, output), **page}


_WRITERS: Final[Mapping[str, Callable[[OutputHeader, FrozenModel], Documents | None]]] = {
    "research": _research_documents,
    "spec": _spec_documents,
    "design": _design_documents,
    "plan": _plan_documents,
    "review": _review_documents,
    "knowledge": _knowledge_documents,
}


def _completion_date(header: OutputHeader) -> str:
    return header.completed_at[:10]


def _dump(value: FrozenModel) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = value.model_dump(mode="json")
    return body


TASK_FOLDERS: Final = ("tasks", "implementation-reports", "verification-reports")
"""The folders with one document for each task."""
_ITERATION: Final = re.compile(r"/i(\d+)p")
_ITERATION_SUFFIX: Final = re.compile(r"-i(\d+)\.yaml$")


def name_task_document(id: str, iteration: int) -> str:
    """Return the name of a document about a task: the plan of each iteration begins with `task-01`."""
    return f"{id}.yaml" if iteration == 1 else f"{id}-i{iteration}.yaml"


def read_task_iteration(name: str) -> int:
    """Return the iteration of a document about a task, from its name."""
    match = _ITERATION_SUFFIX.search(name)
    return int(match[1]) if match else 1


def list_documented_tasks(bundle: EvidenceBundle) -> tuple[TaskEnding, ...]:
    """Return the tasks that have documents: those in the commit, if there is one, otherwise all."""
    if not bundle.commits:
        return bundle.tasks
    return tuple(task for task in bundle.tasks if task.passed and task.run_id in bundle.committed_gates)


def build_task_documents(bundle: EvidenceBundle) -> Mapping[str, str]:
    """Return the reports of each task: of those in the commit, if there is one, otherwise of all."""
    documents: dict[str, str] = {}
    trees = {(tree.run_id, tree.task): tree for tree in bundle.checks}
    for task in list_documented_tasks(bundle):
        tree, name = trees.get((task.run_id, task.id)), name_task_document(task.id, task.iteration)
        documents[f"implementation-reports/{name}"] = dump_yaml(_implementation_report(task, tree))
        documents[f"verification-reports/{name}"] = dump_yaml(_verification_report(task, tree))
    return {**documents, "verification-ledger.yaml": dump_yaml(_verification_ledger(bundle))}


def _implementation_report(task: TaskEnding, tree: TreeChecks | None) -> dict[str, JsonValue]:
    return {
        "implementation_report": {
            "task_id": task.id,
            "iteration": task.iteration,
            "task_type": "Large" if task.large else "Standard",
            "state": task.state.value,
            "baseline": [
                {"check_name": line.name, "phase": "baseline", "passed": line.before is Verdict.PASS}
                for line in _lines_of(tree)
                if line.before is not None
            ],
            "changes": list(task.changed),
            "attempts": task.attempts,
            "self_check": {"attempts": task.corrections},
            "tree": task.tree,
            "ledger_rows": list(task.rows),
        }
    }


def _verification_report(task: TaskEnding, tree: TreeChecks | None) -> dict[str, JsonValue]:
    lines = _lines_of(tree)
    return {
        "verification_report": {
            "task_id": task.id,
            "iteration": task.iteration,
            "evidence_gate": {**_count_checks(lines), "gate_status": "passed" if task.passed else "failed"},
            "findings": [finding for line in lines for finding in _check_findings(line)],
            "regressions": [line.name for line in lines if line.is_regression],
            "baseline_cross_check": [
                {"check_name": line.name, "before": line.before.value, "after": line.after.value}
                for line in lines
                if line.before is not None
            ],
            "ledger_rows": list(tree.rows) if tree else [],
        }
    }


def _verification_ledger(bundle: EvidenceBundle) -> dict[str, JsonValue]:
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
                    **_count_checks(tree.lines),
                    "ledger_rows": list(tree.rows),
                }
                for tree in bundle.checks
            ],
            "reviews": [
                {
                    "scope": review.scope,
                    "focus": review.focus.value,
                    "round": review.round,
                    "verdict": review.verdict.value if review.verdict else None,
                    "ledger_rows": list(review.rows),
                }
                for review in bundle.reviews
            ],
            "head": {"ledger_id": bundle.head.ledger_id, "seq": bundle.head.seq, "hash": bundle.head.hash},
        }
    }


def _lines_of(tree: TreeChecks | None) -> tuple[CheckComparison, ...]:
    return tree.lines if tree else ()


def _count_checks(lines: tuple[CheckComparison, ...]) -> dict[str, JsonValue]:
    """Count the checks. An unverifiable check has neither passed nor failed."""
    return {
        "total_checks": len(lines),
        "passed": sum(line.after is Verdict.PASS for line in lines),
        "failed": sum(line.after is Verdict.FAIL for line in lines),
    }


def _check_findings(line: CheckComparison) -> Iterator[dict[str, JsonValue]]:
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
