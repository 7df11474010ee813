"""The criteria of a run: which a check shows, who judged the others, and what became of added requirements. Pure.

    | a criterion of a task that passed                        | status   |
    |----------------------------------------------------------|----------|
    | a check shows it                                         | shown    |
    | a person says that it is not met                         | unmet    |
    | an architect other than the rules, or a person, approved | judged   |
    | otherwise                                                | unjudged |

The rules judge evidence, never prose. A run without a judge asks a person about all unjudged criteria at once, when
its tasks are finished, and does not pass before the answer. A requirement that a person adds to a run becomes a
criterion of every unfinished task that it concerns. If there is none, or one of them does not meet it, the run does not
pass either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from proofstone.agents.roles.models.gate import ArchitectDecision, TaskState
from proofstone.common.globs import find_undeclared, may_overlap
from proofstone.gate.models import (
    AddedFile,
    CriteriaJudgement,
    CriterionLink,
    CriterionResult,
    CriterionStatus,
    RequirementResult,
    TaskRecord,
)
from proofstone.gate.rules.pass_rule import RULES_ARCHITECT
from proofstone.plans.models import Plan, PlanTask
from proofstone.supervision.models.context import ContextRequirement
from proofstone.supervision.rules.amendments import Amendment

CRITERIA_GATE: Final = "criteria"
"""The name under which a person answers the question about unjudged criteria."""
_MET: Final = (CriterionStatus.SHOWN, CriterionStatus.JUDGED)
_MAX_LISTED: Final = 3


def list_criterion_results(
    task: PlanTask,
    record: TaskRecord,
    judgements: Sequence[CriteriaJudgement] = (),
    amendments: Iterable[Amendment] = (),
) -> tuple[CriterionResult, ...]:
    """Return every criterion of the task with its status."""
    added = {amendment.requirement for amendment in amendments if amendment.task == task.id and amendment.requirement}
    if record.evidence is None or record.state is not TaskState.APPROVED:
        return tuple(
            CriterionResult(task=task.id, criterion=criterion, status=CriterionStatus.OPEN, is_added=criterion in added)
            for criterion in task.done
        )
    judges = tuple(
        verdict.by or "architect"
        for verdict in record.verdicts
        if verdict.by != RULES_ARCHITECT and verdict.verdict is ArchitectDecision.APPROVED
    )
    return tuple(
        _judge_link(task.id, link, judges, judgements).model_copy(update={"is_added": link.criterion in added})
        for link in record.evidence.criteria
    )


def _judge_link(
    task: str, link: CriterionLink, judges: tuple[str, ...], judgements: Sequence[CriteriaJudgement]
) -> CriterionResult:
    result = CriterionResult(task=task, criterion=link.criterion, status=CriterionStatus.UNJUDGED)
    if link.check is not None:
        return result.model_copy(update={"status": CriterionStatus.SHOWN, "check": link.check, "command": link.command})
    judgement = find_judgement(task, link.criterion, judgements)
    if judgement is not None:
        status = CriterionStatus.JUDGED if judgement.holds else CriterionStatus.UNMET
        by = (f"human ({judgement.judged_by})",)
        return result.model_copy(update={"status": status, "judged_by": by, "note": judgement.note})
    return result.model_copy(update={"status": CriterionStatus.JUDGED, "judged_by": judges}) if judges else result


def find_judgement(task: str, criterion: str, judgements: Sequence[CriteriaJudgement]) -> CriteriaJudgement | None:
    """Return the last word of a person about the criterion."""
    words = [judgement for judgement in judgements if (task, criterion) in judgement.criteria]
    return words[-1] if words else None


# Requirements that a person adds.


def find_new_amendments(
    plan: Plan,
    records: Mapping[str, TaskRecord],
    requirements: Iterable[ContextRequirement],
    amendments: Iterable[Amendment],
) -> tuple[Amendment, ...]:
    """Return what makes each requirement a criterion of every unfinished task that it concerns and that lacks it."""
    known = {(amendment.task, amendment.number) for amendment in amendments if amendment.requirement}
    return tuple(
        Amendment(
            task=task.id,
            files=_find_unowned_files(plan, requirement.files),
            requirement=requirement.text,
            number=requirement.number,
            why=f"for the requirement “{requirement.text}”",
            by=requirement.by,
        )
        for requirement in requirements
        for task in plan.tasks
        if (task.id, requirement.number) not in known
        and _is_unfinished(records[task.id])
        and (not requirement.files or may_overlap(task.files, requirement.files))
    )


def _find_unowned_files(plan: Plan, files: Sequence[str]) -> tuple[str, ...]:
    """Return the files that a person named and that no task declares: naming a file allows the task to change it."""
    literal = [path for path in files if not set("*?[") & set(path) and not path.endswith("/")]
    return tuple(path for path in literal if all(find_undeclared((path,), task.files) for task in plan.tasks))


def _is_unfinished(record: TaskRecord) -> bool:
    return not record.checkpoint and not record.is_finished and record.override is None


def rate_requirements(
    requirements: Iterable[ContextRequirement],
    amendments: Sequence[Amendment],
    results: Iterable[CriterionResult],
    judgements: Sequence[CriteriaJudgement],
) -> tuple[RequirementResult, ...]:
    """Return what became of each requirement. `results` are those of all tasks."""
    by_criterion = {(result.task, result.criterion): result for result in results}
    rated = []
    for requirement in requirements:
        tasks = tuple(
            dict.fromkeys(
                amendment.task
                for amendment in amendments
                if amendment.number == requirement.number and amendment.requirement
            )
        )
        is_met, detail = _rate_requirement(requirement.text, tasks, by_criterion, judgements)
        rated.append(
            RequirementResult(
                number=requirement.number,
                text=requirement.text,
                added_by=requirement.by,
                tasks=tasks,
                is_met=is_met,
                detail=detail,
            )
        )
    return tuple(rated)


def _rate_requirement(
    text: str,
    tasks: Sequence[str],
    results: Mapping[tuple[str, str], CriterionResult],
    judgements: Sequence[CriteriaJudgement],
) -> tuple[bool, str]:
    judgement = find_judgement("", text, judgements)
    if not tasks and judgement is not None:
        word = "says that it is met" if judgement.holds else "says that it is not met"
        return judgement.holds, f"no task has it; {judgement.judged_by} {word}"
    if not tasks:
        return False, "no task has it: the tasks that it concerns were finished, or none declares its files"
    unmet = [task for task in tasks if not ((found := results.get((task, text))) and found.status in _MET)]
    if unmet:
        status = results[unmet[0], text].status if (unmet[0], text) in results else CriterionStatus.OPEN
        return False, f"{status.value} in {', '.join(unmet)}"
    shown = [result for task in tasks if (result := results[task, text])]
    checks = ", ".join(dict.fromkeys(result.check for result in shown if result.check))
    judges = ", ".join(dict.fromkeys(judge for result in shown for judge in result.judged_by))
    words = (f"shown by {checks}" if checks else "", f"judged by {judges}" if judges else "")
    return True, "; ".join(filter(None, words))


# The question to the person, and the outcome.


def find_unjudged(
    results: Iterable[CriterionResult], requirements: Iterable[RequirementResult] = ()
) -> tuple[tuple[str, str], ...]:
    """Return what a person must judge: the criteria that nobody has judged, and the requirements that no task has."""
    criteria = [(result.task, result.criterion) for result in results if result.status is CriterionStatus.UNJUDGED]
    return (*criteria, *(("", result.text) for result in requirements if not result.is_met and not result.tasks))


def find_rejected(
    results: Iterable[CriterionResult], judgements: Sequence[CriteriaJudgement]
) -> tuple[tuple[str, str], ...]:
    """Return the criteria and requirements of which a person says that they are not met."""
    unmet = [(result.task, result.criterion) for result in results if result.status is CriterionStatus.UNMET]
    last = {key: judgement.holds for judgement in judgements for key in judgement.criteria}
    return (*unmet, *(key for key, holds in last.items() if not key[0] and not holds))


def write_criteria_question(unjudged: Sequence[tuple[str, str]]) -> str:
    """Write the question about all of them; "" if there are none."""
    if not unjudged:
        return ""
    lines = "\n".join(f"- {task or 'no task'}: {criterion}" for task, criterion in unjudged)
    subject = (
        "this, and nobody has judged it: does it hold?"
        if len(unjudged) == 1
        else ("these, and nobody has judged them: do they hold?")
    )
    return f"no check shows {subject}\n{lines}"


def explain_unjudged(unjudged: Sequence[tuple[str, str]]) -> str:
    """Return the reason, in one line, why the run does not pass."""
    shown = "; ".join(f"{task or 'no task'}: {criterion}" for task, criterion in unjudged[:_MAX_LISTED])
    more = f" and {len(unjudged) - _MAX_LISTED} more" if len(unjudged) > _MAX_LISTED else ""
    count = "1 criterion" if len(unjudged) == 1 else f"{len(unjudged)} criteria"
    return f"nobody has judged {count}: {shown}{more}"


def describe_criterion(result: CriterionResult) -> str:
    """Return what shows the criterion, or who judged it, in words."""
    match result.status:
        case CriterionStatus.SHOWN:
            command = f" (`{result.command}`)" if result.command else ""
            return f"shown by {result.check}{command}"
        case CriterionStatus.JUDGED:
            return f"judged by {', '.join(result.judged_by)}; no check shows it"
        case CriterionStatus.UNMET:
            note = f": {result.note}" if result.note else ""
            return f"not met, says {', '.join(result.judged_by)}{note}"
        case CriterionStatus.UNJUDGED:
            return "unjudged: no check shows it, and nobody has judged it"
        case CriterionStatus.OPEN:
            return "open"


def list_added_files(task: str, amendments: Iterable[Amendment]) -> tuple[AddedFile, ...]:
    """Return the files that were added to the task while it ran, each once."""
    added: dict[str, AddedFile] = {}
    for amendment in amendments:
        for path in amendment.files if amendment.task == task else ():
            added.setdefault(path, AddedFile(path=path, reason=amendment.why, added_by=amendment.by or "executor"))
    return tuple(added.values())
