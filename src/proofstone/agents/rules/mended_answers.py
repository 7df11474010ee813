"""What is mended in the answers of single roles, besides their form. Pure.

| answer                          | mended                                                                             |
|---------------------------------|------------------------------------------------------------------------------------|
| every answer with `completion`  | a missing one is DONE, with the answer's own summary; a long summary is cut        |
| review                          | the completion's severity and number of findings follow from the findings          |
| specification, research, design | an id that is used twice is replaced, because nothing in the answer points to it   |
| design                          | `selected` may be the label of an alternative                                      |
| plan                            | title, description, done, risk and size of a task by rule; a risk is only raised   |
| plan of the control loop        | `sequence` is the order of the subtasks; `mode` follows from the check             |

A missing completion says only that the agent forgot it: the answer has everything else that its schema requires, and is
validated. An answer that is nothing but a completion, or that says in its completion anything that cannot be read, is
not mended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from pydantic import BaseModel

from proofstone.agents.models import CompletionStatus, RoleOutput
from proofstone.agents.roles.models.pipeline import DesignOutput, PanelOutput, PlanOutput, ResearchOutput, SpecOutput
from proofstone.agents.roles.models.solve import SolvePlanOutput
from proofstone.agents.rules.mending import MendingNotes, find_entries, mend_form
from proofstone.common.models import ChangeKind, Severity
from proofstone.common.risk import PathChange, assess_risk

MAX_SUMMARY: Final = 200
_SUMMARY_FIELDS: Final = ("summary", "overall_risk_summary", "intent", "architecture", "why")
_MAX_TITLE: Final = 300
_RISKS: Final = ("🟢", "🟡", "🔴")

Answer = dict[str, object]


def mend_answer(found: Mapping[str, object], contract: type[BaseModel]) -> tuple[Answer, tuple[str, ...]]:
    """Return the answer with everything mended that may be, and a note for each change."""
    notes = MendingNotes()
    answer = mend_form(_lift_completion(found, contract), contract, notes)
    for output, mend in _MENDERS:
        if issubclass(contract, output):
            mend(answer, notes)
    if issubclass(contract, RoleOutput):
        _fill_completion(answer, contract, notes)
    return answer, tuple(notes.lines)


def _lift_completion(found: Mapping[str, object], contract: type[BaseModel]) -> Mapping[str, object]:
    """Read a completion that is only the word of its status as one."""
    completion = found.get("completion")
    if issubclass(contract, RoleOutput) and isinstance(completion, str) and _read_status(completion):
        return {**found, "completion": {"status": _read_status(completion), "summary": _find_summary(found)}}
    return found


def _fill_completion(answer: Answer, contract: type[BaseModel], notes: MendingNotes) -> None:
    completion = answer.get("completion")
    if isinstance(completion, dict):
        summary = completion.get("summary")
        if isinstance(summary, str) and len(summary) > MAX_SUMMARY:
            answer["completion"] = {**completion, "summary": _cut(summary, MAX_SUMMARY)}
            notes.add("completion.summary", f"it was cut to {MAX_SUMMARY} characters")
        elif summary is None and completion.get("status"):
            answer["completion"] = {**completion, "summary": _find_summary(answer)}
            notes.add("completion.summary", "it was missing; the engine filled it")
        return
    own = set(contract.model_fields) - {"completion"}
    if completion is not None or not any(answer.get(name) for name in own):
        return
    status = "" if "status" in own else _read_status(answer.get("status"))
    answer["completion"] = {"status": status or CompletionStatus.DONE, "summary": _find_summary(answer)}
    if contract is PanelOutput:
        answer["completion"].update(_summarize_findings(answer))  # type: ignore[attr-defined]  # made just above
    notes.add("completion", "it was missing; the engine filled it")


def _read_status(value: object) -> str:
    word = value.strip().upper().replace(" ", "_").replace("-", "_") if isinstance(value, str) else ""
    return word if word in set(CompletionStatus) else ""


def _find_summary(answer: Mapping[str, object]) -> str:
    texts = (answer.get(name) for name in _SUMMARY_FIELDS)
    text = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return _cut(text, MAX_SUMMARY) or "the answer has no summary"


def _summarize_findings(answer: Mapping[str, object]) -> dict[str, object]:
    severities = [str(finding.get("severity", "")).lower() for finding in find_entries(answer, "findings")]
    gravest = next((severity.value for severity in Severity if severity.value in severities), None)
    return {"severity": gravest, "findings_count": len(severities)}


def _mend_ids(name: str, prefix: str) -> Callable[[Answer, MendingNotes], None]:
    """Return a mender that replaces ids that are used twice in the list of that name."""

    def mend(answer: Answer, notes: MendingNotes) -> None:
        _replace_duplicates(list(find_entries(answer, name)), set(), name, prefix, notes)

    return mend


def _mend_spec(answer: Answer, notes: MendingNotes) -> None:
    requirements, criteria = (list(find_entries(answer, name)) for name in ("requirements", "acceptance_criteria"))
    taken = {str(entry.get("id")) for entry in requirements}
    _replace_duplicates(requirements, set(), "requirements", "R", notes)
    _replace_duplicates(criteria, taken | {str(entry.get("id")) for entry in requirements}, "criteria", "AC", notes)


def _replace_duplicates(
    entries: Sequence[Answer], taken: Collection[str], name: str, prefix: str, notes: MendingNotes
) -> None:
    used = set(taken)
    reserved = {str(entry.get("id")) for entry in entries}
    for entry in entries:
        id = str(entry.get("id"))
        if id in used:
            number = next(n for n in range(1, 1000) if f"{prefix}{n}" not in used | reserved)
            notes.add(name, f"the id {id} was used twice; the second is {prefix}{number}")
            entry["id"] = id = f"{prefix}{number}"
        used.add(id)


def _mend_design(answer: Answer, notes: MendingNotes) -> None:
    for decision in find_entries(answer, "decisions"):
        alternatives = list(find_entries(decision, "alternatives"))
        selected = str(decision.get("selected", ""))
        if any(selected == alternative.get("id") for alternative in alternatives):
            continue
        meant = [
            alternative.get("id")
            for alternative in alternatives
            if selected.casefold() in (str(alternative.get(key, "")).casefold() for key in ("id", "label"))
        ]
        if len(meant) == 1:
            decision["selected"] = meant[0]
            notes.add("selected", f"{selected!r} was read as {meant[0]}")


def _mend_plan(answer: Answer, notes: MendingNotes) -> None:
    tasks = list(find_entries(answer, "tasks"))
    ids = [str(task.get("id")) for task in tasks]
    for task in tasks:
        _mend_dependencies(task, ids, notes)
        _mend_task_texts(task, notes)
        _mend_task_risk(task, notes)


def _mend_dependencies(task: Answer, ids: Sequence[str], notes: MendingNotes) -> None:
    named = task.get("depends_on")
    if not isinstance(named, list):
        return
    if len(ids) == 1 and named:  # nothing else is there to wait for
        task["depends_on"] = []
        notes.add(f"task {ids[0]}", f"it is the only task; `depends_on` {', '.join(map(str, named))} was dropped")
        return
    by_folded = {id.casefold(): id for id in ids}
    task["depends_on"] = [by_folded.get(str(name).casefold(), name) for name in named]


def _mend_task_texts(task: Answer, notes: MendingNotes) -> None:
    where = f"task {task.get('id')}"
    title, description = task.get("title"), task.get("description")
    if not title and isinstance(description, str) and description.strip():
        task["title"] = _cut(description.strip().splitlines()[0], _MAX_TITLE)
        notes.add(where, "`title` was missing; it is the first line of the description")
    elif not description and isinstance(title, str) and title.strip():
        task["description"] = title
        notes.add(where, "`description` was missing; it is the title")
    if not task.get("done") and task.get("title"):
        task["done"] = [task["title"]]
        notes.add(where, "`done` was missing; the title is the criterion, which somebody must judge")


def _mend_task_risk(task: Answer, notes: MendingNotes) -> None:
    where = f"task {task.get('id')}"
    entries = task.get("files")
    if not isinstance(entries, list):
        return
    files = [{"path": entry} if isinstance(entry, str) else entry for entry in entries]
    for file in files:
        if isinstance(file, dict) and isinstance(file.get("path"), str) and not file.get("risk"):
            change = PathChange(path=file["path"], kind=ChangeKind.MODIFIED)
            file["risk"] = assess_risk(change).risk.mark
            notes.add(where, f"the risk of {file['path']} was missing; its path makes it {file['risk']}")
    task["files"] = files
    marks = [file.get("risk") for file in files if isinstance(file, dict)]
    if not marks or not all(mark in _RISKS for mark in marks):
        return
    highest = max(marks, key=lambda mark: _RISKS.index(str(mark)))
    if task.get("risk") is None or (
        task["risk"] in _RISKS and _RISKS.index(str(task["risk"])) < _RISKS.index(str(highest))
    ):
        notes.add(where, f"the risk is that of its files, {highest}, and not {task.get('risk') or 'missing'}")
        task["risk"] = highest
    size = "Large" if task["risk"] == "🔴" else task.get("size") or "Standard"
    if size != task.get("size"):
        notes.add(where, f"the size follows from the risk: {size}")
        task["size"] = size


def _mend_subtasks(answer: Answer, notes: MendingNotes) -> None:
    _mend_criteria(list(find_entries(answer, "task_criteria")), notes)
    for number, subtask in enumerate(find_entries(answer, "subtasks"), start=1):
        _mend_criteria(list(find_entries(subtask, "success_criteria")), notes)
        if subtask.get("sequence") is None:
            subtask["sequence"] = number
            notes.add(f"subtask {number}", f"`sequence` was missing; the engine set {number}")


def _mend_criteria(criteria: Sequence[Answer], notes: MendingNotes) -> None:
    """A criterion with exactly one check is verifiable: the check is stricter than the judgement of a model."""
    for criterion in criteria:
        if not criterion.get("predicate"):
            criterion.pop("predicate", None)
        has_check = bool(criterion.get("command")) != bool(criterion.get("predicate"))
        if has_check and criterion.get("mode") in (None, "plausible"):
            criterion["mode"] = "verifiable"
            notes.add("criterion", "it has a check, so its mode is verifiable")


def _cut(text: str, length: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"


_MENDERS: Final[tuple[tuple[type[BaseModel], Callable[[Answer, MendingNotes], None]], ...]] = (
    (SpecOutput, _mend_spec),
    (ResearchOutput, _mend_ids("findings", "F")),
    (DesignOutput, _mend_ids("decisions", "D")),
    (DesignOutput, _mend_design),
    (PlanOutput, _mend_plan),
    (SolvePlanOutput, _mend_subtasks),
)
