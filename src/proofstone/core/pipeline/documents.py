"""The documents of a run: what each agent answered as typed YAML with the engine's header, and as a page. Pure.

| answer    | files                                                                                        |
|-----------|----------------------------------------------------------------------------------------------|
| research  | `research/<focus>.yaml`, `research/<focus>.md`                                                |
| spec      | `spec-output.yaml`, `feature.md`                                                              |
| design    | `design-output.yaml`, `design.md`                                                             |
| plan      | `plan-output.yaml`, `plan.md`, `tasks/<task>.yaml`                                            |
| review    | `review-verdicts/<scope>-<focus>-r<round>.yaml`, `review-findings/<scope>-<focus>-r<round>.md` |
| knowledge | `knowledge-output.yaml`, and `instruction-proposals.md` if there are any                  |

Beside these there are `initial-request.md`, `approvals.yaml` and the append-only `decisions.yaml`; what is made from
the ledger alone is in `task_documents.py`. Names of files are the engine's, never an agent's.

In a plan the ids are the engine's: `task-01` is the first task, and references follow. What the engine knows better
than the agent (dates, waves, who decided, what a path makes of a risk) is filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from proofstone.contracts.agent import OutputHeader
from proofstone.contracts.base import Contract
from proofstone.contracts.pipeline.approval import ApprovalEntry
from proofstone.contracts.pipeline.design import DesignOutput
from proofstone.contracts.pipeline.knowledge import KnowledgeOutput
from proofstone.contracts.pipeline.plan import PlanOutput
from proofstone.contracts.pipeline.research import ResearchOutput
from proofstone.contracts.pipeline.review import PanelOutput
from proofstone.contracts.pipeline.spec import SpecOutput
from proofstone.core.memory.lessons import weakens_lesson
from proofstone.core.pipeline import companions
from proofstone.core.pipeline.plan_text import task_ids
from proofstone.core.pipeline.planning import raised
from proofstone.core.pipeline.yaml_text import yaml_text
from proofstone.errors import InternalError

Documents = Mapping[str, str]
"""From a file's path in the run's folder to its text."""

DECISIONS: Final = "decisions.yaml"
PROPOSALS: Final = "instruction-proposals.md"
_LOG: Final = "decision_log:\n"


def documents_of(name: str, header: OutputHeader, output: Contract) -> Documents:
    """The documents of one answer. `name` is the answer's, as in the table; the header's payload is the answer's own,
    whatever it holds."""
    writer = _WRITERS.get(name)
    documents = writer(header, output) if writer else None
    if documents is None:
        raise InternalError(f"there are no documents {name!r} of {type(output).__name__}")
    return documents


def request_document(request: str) -> Documents:
    return {"initial-request.md": companions.initial_request(request)}


def approvals_document(entries: Sequence[ApprovalEntry]) -> Documents:
    return {"approvals.yaml": yaml_text({"approval_log": [_dumped(entry) for entry in entries]})}


def decisions_document(before: str, decided: Sequence[Mapping[str, JsonValue]]) -> Documents:
    """The log with what was decided since: `before` is what the file holds, and not a byte of it changes."""
    if not decided:
        return {DECISIONS: before} if before else {}
    added = yaml_text({"decision_log": [dict(one) for one in decided]}).removeprefix(_LOG)
    return {DECISIONS: f"{before or _LOG}{added}"}


def decisions_of(header: OutputHeader, output: DesignOutput | KnowledgeOutput) -> list[dict[str, JsonValue]]:
    """What an answer adds to the log of decisions."""
    made: dict[str, JsonValue] = {"date": _date(header), "decided_by": header.agent, "step": header.step}
    if isinstance(output, KnowledgeOutput):
        return [{**made, **_dumped(entry)} for entry in output.decision_log_entries]
    return [
        {
            **made,
            "title": one.title,
            "decision": next(way.label for way in one.alternatives if way.id == one.selected),
            "rationale": one.rationale,
            "alternatives": [way.label for way in one.alternatives],
            "confidence": one.confidence.value,
            "risk": one.risk,
        }
        for one in output.decisions
    ]


def waves(plan: PlanOutput) -> dict[str, int]:
    """Which tasks can run together, from 1: each comes after all that it depends on."""
    after = {task.id: task.depends_on for task in plan.tasks}
    found: dict[str, int] = {}

    def wave(id: str) -> int:
        if id not in found:
            found[id] = 1 + max(map(wave, after[id]), default=0)
        return found[id]

    return {task.id: wave(task.id) for task in plan.tasks}


def renamed(plan: PlanOutput) -> PlanOutput:
    """The plan with the engine's ids, and with what follows from them."""
    ids = task_ids(plan)
    tasks = tuple(
        task.model_copy(update={"id": ids[task.id], "depends_on": tuple(ids[other] for other in task.depends_on)})
        for task in plan.tasks
    )
    numbered = plan.model_copy(update={"tasks": tasks})
    by_wave: dict[int, list[str]] = {}
    for id, wave in waves(numbered).items():
        by_wave.setdefault(wave, []).append(id)
    return numbered.model_copy(
        update={
            "waves": tuple(tuple(by_wave[wave]) for wave in sorted(by_wave)),
            "dependency_graph": {task.id: task.depends_on for task in tasks},
        }
    )


def headed(header: OutputHeader, output: Contract) -> str:
    """The answer as YAML below the header of every output."""
    return yaml_text(_dumped(header.model_copy(update={"payload": _dumped(output)})))


def _research(header: OutputHeader, output: Contract) -> Documents | None:
    if not isinstance(output, ResearchOutput):
        return None
    stem = f"research/{output.focus.value}"
    return {f"{stem}.yaml": headed(header, output), f"{stem}.md": companions.research(header, output)}


def _spec(header: OutputHeader, output: Contract) -> Documents | None:
    if not isinstance(output, SpecOutput):
        return None
    return {"spec-output.yaml": headed(header, output), "feature.md": companions.spec(header, output)}


def _design(header: OutputHeader, output: Contract) -> Documents | None:
    if not isinstance(output, DesignOutput):
        return None
    made = {"date": _date(header), "decided_by": header.agent}
    decisions = tuple(one.model_copy(update=made) for one in output.decisions)
    output = output.model_copy(update={"decisions": decisions})
    return {"design-output.yaml": headed(header, output), "design.md": companions.design(header, output)}


def _plan(header: OutputHeader, output: Contract) -> Documents | None:
    if not isinstance(output, PlanOutput):
        return None
    output = renamed(raised(output))
    tasks = {f"tasks/{task.id}.yaml": headed(header, task) for task in output.tasks}
    page = companions.plan(header, output, waves(output))
    return {"plan-output.yaml": headed(header, output), "plan.md": page, **tasks}


def _review(header: OutputHeader, output: Contract) -> Documents | None:
    if not isinstance(output, PanelOutput):
        return None
    stem = f"{output.scope}-{output.review_focus.value}-r{output.round}"
    return {
        f"review-verdicts/{stem}.yaml": headed(header, output),
        f"review-findings/{stem}.md": companions.review(header, output),
    }


def _knowledge(header: OutputHeader, output: Contract) -> Documents | None:
    if not isinstance(output, KnowledgeOutput):
        return None
    proposed = [one for one in output.updates if one.kind == "instructions"]
    page = (
        {PROPOSALS: companions.proposals(header, [(one, weakens_lesson(one)) for one in proposed])} if proposed else {}
    )
    return {"knowledge-output.yaml": headed(header, output), **page}


_WRITERS: Final[Mapping[str, Callable[[OutputHeader, Contract], Documents | None]]] = {
    "research": _research,
    "spec": _spec,
    "design": _design,
    "plan": _plan,
    "review": _review,
    "knowledge": _knowledge,
}


def _date(header: OutputHeader) -> str:
    return header.completed_at[:10]


def _dumped(value: Contract) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = value.model_dump(mode="json")
    return body
