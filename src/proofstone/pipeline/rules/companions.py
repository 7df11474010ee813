"""The answers of agents as pages that people read, each made from the same data as its YAML. Pure.

What agents wrote is quoted: it cannot pass for a heading, a list or a word of Proofstone's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from proofstone.agents.models import OutputHeader
from proofstone.agents.roles.models.pipeline import (
    AcceptanceCriterion,
    Alternative,
    Decision,
    DesignOutput,
    Lesson,
    PanelFinding,
    PanelOutput,
    PlannedTask,
    PlanOutput,
    ResearchFinding,
    ResearchOutput,
    SpecOutput,
)
from proofstone.documents.markdown import code, listed, named, prose, quoted, table


def initial_request(request: str) -> str:
    return _page("Initial request", (quoted(request),))


def research(header: OutputHeader, output: ResearchOutput) -> str:
    return _page(
        f"Research: {output.focus}",
        (
            _made(header),
            "## Summary",
            quoted(output.summary),
            "## Findings",
            *_blocks(_finding(finding) for finding in output.findings),
            "## Files examined",
            listed_names(output.source_files_examined),
        ),
    )


def spec(header: OutputHeader, output: SpecOutput) -> str:
    return _page(
        "Feature",
        (
            _made(header),
            "## Requirements",
            *_blocks((f"### {prose(requirement.id)}", quoted(requirement.text)) for requirement in output.requirements),
            "## Acceptance criteria",
            *_blocks(_criterion(item) for item in output.acceptance_criteria),
            *_some("## Edge cases", listed(output.edge_cases)),
            *_some("## Constraints", listed(output.constraints)),
            *_some("## Concerns about the request", *_blocks(_concerns(output))),
        ),
    )


def proposals(header: OutputHeader, lessons: Iterable[tuple[Lesson, str]]) -> str:
    """Changes to files that agents are told by, each with why it should not be taken over, if there is a reason."""
    return _page(
        "Proposals for files that agents are told by",
        (
            _made(header),
            "Proofstone has changed none of these files. What you want of it, put in yourself.",
            *_blocks(_proposal(*lesson) for lesson in lessons),
        ),
    )


def _proposal(lesson: Lesson, against: str) -> Iterator[str]:
    yield f"## {code(lesson.path or 'no file is named')}"
    if against:
        yield f"**Do not take this over: {prose(against)}.**"
    yield quoted(lesson.content)
    yield "Why:"
    yield quoted(lesson.reason)


def design(header: OutputHeader, output: DesignOutput) -> str:
    return _page(
        "Design",
        (
            _made(header),
            "## Architecture",
            quoted(output.architecture),
            "## Decisions",
            *_blocks(_decision(decision) for decision in output.decisions),
        ),
    )


def plan(header: OutputHeader, output: PlanOutput, waves: Mapping[str, int]) -> str:
    """Of a plan whose ids are the engine's."""
    head = ("task", "title", "size", "risk", "wave", "after")
    rows = [
        (task.id, prose(task.title), task.size, task.risk, str(waves[task.id]), ", ".join(task.depends_on))
        for task in output.tasks
    ]
    return _page(
        "Plan",
        (
            _made(header),
            "## Risk",
            quoted(output.overall_risk_summary),
            "## Tasks",
            "\n".join(table(head, rows)),
            *_blocks(_task(task) for task in output.tasks),
        ),
    )


def review(header: OutputHeader, output: PanelOutput) -> str:
    counts = ", ".join(f"{count} {severity}" for severity, count in output.findings_count.items() if count)
    return _page(
        f"Review of the {output.scope}: {output.review_focus}, round {output.round}",
        (
            _made(header),
            f"Verdict: **{output.verdict}**, confidence {output.confidence}; findings: {counts or 'none'}.",
            "## Summary",
            quoted(output.summary),
            *_some("## Findings", *_blocks(_review_finding(finding) for finding in output.findings)),
        ),
    )


def listed_names(names: Sequence[str]) -> str:
    return "\n".join(f"- {code(name)}" for name in names) or "None."


def _finding(one: ResearchFinding) -> Iterator[str]:
    yield f"### {prose(one.id)}: {prose(one.title)}"
    kind = f", {prose(one.category)}" if one.category else ""
    yield f"Relevance: {one.relevance}{kind}. Seen in: {named(one.evidence)}"
    yield quoted(one.detail)


def _criterion(one: AcceptanceCriterion) -> Iterator[str]:
    yield f"### {prose(one.id)}"
    yield quoted(one.text)
    yield "Observed by:"
    yield quoted(one.test_method)


def _concerns(output: SpecOutput) -> Iterator[Sequence[str]]:
    for number, one in enumerate(output.pushback, start=1):
        suggested = ("Suggested instead:", quoted(one.suggestion)) if one.suggestion.strip() else ()
        yield f"### {number}: {one.severity}", quoted(one.concern), *suggested


def _decision(one: Decision) -> Iterator[str]:
    yield f"### {prose(one.id)}: {prose(one.title)} {one.risk}"
    if one.decided_by:
        yield f"Decided by {code(one.decided_by)} on {prose(one.date)}."
    yield quoted(one.context)
    yield "\n".join(line for way in one.alternatives for line in _alternative(way, selected=way.id == one.selected))
    yield f"Selected: {code(one.selected)}, because:"
    yield quoted(one.rationale)
    yield f"Confidence: {one.confidence}. It rests on:"
    yield quoted(one.confidence_definition)


def _alternative(one: Alternative, *, selected: bool) -> Iterator[str]:
    yield f"- {code(one.id)} {prose(one.label)}{' (selected)' if selected else ''}: {prose(one.description)}"
    yield from (f"  - for: {prose(pro)}" for pro in one.pros)
    yield from (f"  - against: {prose(con)}" for con in one.cons)


def _task(task: PlannedTask) -> Iterator[str]:
    yield f"### {task.id}: {prose(task.title)}"
    yield quoted(task.description)
    yield "\n".join((*(f"- file: {code(file.path)} {file.risk}" for file in task.files), *_facts(task)))


def _facts(task: PlannedTask) -> Iterator[str]:
    yield f"- acceptance criteria: {named(task.acceptance_criteria)}"
    yield f"- to be read first: {named(task.relevant_context)}"
    yield from (f"- verified by: {code(command)}" for command in task.verify)
    yield from (f"- done when: {prose(done)}" for done in task.done)


def _review_finding(one: PanelFinding) -> Iterator[str]:
    yield f"### {one.severity}: {prose(one.title)}"
    yield f"Category: {one.category}. Affected: {named(one.affected)}"
    yield quoted(one.description)
    yield "Seen:"
    yield quoted(one.evidence)
    yield "Recommended:"
    yield quoted(one.recommendation)


def _made(header: OutputHeader) -> str:
    when = f"{prose(header.started_at)} to {prose(header.completed_at)}"
    return f"By {code(header.agent)} at step {code(header.step)}, {when}. Written by Proofstone from the answer."


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join((f"# {title}", *(part for part in parts if part))) + "\n"


def _blocks(groups: Iterable[Iterable[str]]) -> Iterator[str]:
    return (block for group in groups for block in group)


def _some(title: str, *parts: str) -> tuple[str, ...]:
    """A section that would say nothing is left out."""
    return (title, *parts) if any(parts) else ()
