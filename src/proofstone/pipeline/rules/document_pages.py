"""Render the answers of agents as readable pages, each from the same data as its YAML. Pure.

Text of agents is quoted: it cannot pass for a heading, a list or a statement of Proofstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from proofstone.agents.models import OutputHeader
from proofstone.agents.roles.models.pipeline import (
    AcceptanceCriterion,
    Alternative,
    DesignDecision,
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
from proofstone.documents.markdown import (
    block_quote,
    bullet_list,
    code_span,
    escape_markdown,
    join_code_spans,
    table_lines,
)


def render_request(request: str) -> str:
    return _join_page("Initial request", (block_quote(request),))


def render_research(header: OutputHeader, output: ResearchOutput) -> str:
    return _join_page(
        f"Research: {output.focus}",
        (
            _origin_line(header),
            "## Summary",
            block_quote(output.summary),
            "## Findings",
            *_flatten(_finding_blocks(finding) for finding in output.findings),
            "## Files examined",
            render_names(output.source_files_examined),
        ),
    )


def render_spec(header: OutputHeader, output: SpecOutput) -> str:
    return _join_page(
        "Feature",
        (
            _origin_line(header),
            "## Requirements",
            *_flatten(
                (f"### {escape_markdown(requirement.id)}", block_quote(requirement.text))
                for requirement in output.requirements
            ),
            "## Acceptance criteria",
            *_flatten(_criterion_blocks(criterion) for criterion in output.acceptance_criteria),
            *_optional_section("## Edge cases", bullet_list(output.edge_cases)),
            *_optional_section("## Constraints", bullet_list(output.constraints)),
            *_optional_section("## Concerns about the request", *_flatten(_concern_blocks(output))),
        ),
    )


def render_proposals(header: OutputHeader, lessons: Iterable[tuple[Lesson, str]]) -> str:
    """Render proposed changes to instruction files of agents, each with a reason against it, if there is one."""
    return _join_page(
        "Proposals for files that agents are told by",
        (
            _origin_line(header),
            "Proofstone has changed none of these files. `proofstone memory proposals` lists what you can adopt.",
            *_flatten(_proposal_blocks(*lesson) for lesson in lessons),
        ),
    )


def _proposal_blocks(lesson: Lesson, against: str) -> Iterator[str]:
    yield f"## {code_span(lesson.path or 'no file is named')}"
    if against:
        yield f"**Do not take this over: {escape_markdown(against)}.**"
    yield block_quote(lesson.content)
    yield "Why:"
    yield block_quote(lesson.reason)


def render_design(header: OutputHeader, output: DesignOutput) -> str:
    return _join_page(
        "Design",
        (
            _origin_line(header),
            "## Architecture",
            block_quote(output.architecture),
            "## Decisions",
            *_flatten(_decision_blocks(decision) for decision in output.decisions),
        ),
    )


def render_plan(header: OutputHeader, output: PlanOutput, waves: Mapping[str, int]) -> str:
    """Render a plan that has the engine's ids."""
    head = ("task", "title", "size", "risk", "wave", "after")
    rows = [
        (task.id, escape_markdown(task.title), task.size, task.risk, str(waves[task.id]), ", ".join(task.depends_on))
        for task in output.tasks
    ]
    return _join_page(
        "Plan",
        (
            _origin_line(header),
            "## Risk",
            block_quote(output.overall_risk_summary),
            "## Tasks",
            "\n".join(table_lines(head, rows)),
            *_flatten(_task_blocks(task) for task in output.tasks),
        ),
    )


def render_review(header: OutputHeader, output: PanelOutput) -> str:
    counts = ", ".join(f"{count} {severity}" for severity, count in output.findings_count.items() if count)
    return _join_page(
        f"Review of the {output.scope}: {output.review_focus}, round {output.round}",
        (
            _origin_line(header),
            f"Verdict: **{output.verdict}**, confidence {output.confidence}; findings: {counts or 'none'}.",
            "## Summary",
            block_quote(output.summary),
            *_optional_section(
                "## Findings", *_flatten(_review_finding_blocks(finding) for finding in output.findings)
            ),
        ),
    )


def render_names(names: Sequence[str]) -> str:
    return "\n".join(f"- {code_span(name)}" for name in names) or "None."


def _finding_blocks(finding: ResearchFinding) -> Iterator[str]:
    yield f"### {escape_markdown(finding.id)}: {escape_markdown(finding.title)}"
    kind = f", {escape_markdown(finding.category)}" if finding.category else ""
    yield f"Relevance: {finding.relevance}{kind}. Seen in: {join_code_spans(finding.evidence)}"
    yield block_quote(finding.detail)


def _criterion_blocks(criterion: AcceptanceCriterion) -> Iterator[str]:
    yield f"### {escape_markdown(criterion.id)}"
    yield block_quote(criterion.text)
    yield "Observed by:"
    yield block_quote(criterion.test_method)


def _concern_blocks(output: SpecOutput) -> Iterator[Sequence[str]]:
    for number, concern in enumerate(output.pushback, start=1):
        suggested = ("Suggested instead:", block_quote(concern.suggestion)) if concern.suggestion.strip() else ()
        yield f"### {number}: {concern.severity}", block_quote(concern.concern), *suggested


def _decision_blocks(decision: DesignDecision) -> Iterator[str]:
    yield f"### {escape_markdown(decision.id)}: {escape_markdown(decision.title)} {decision.risk}"
    if decision.decided_by:
        yield f"Decided by {code_span(decision.decided_by)} on {escape_markdown(decision.date)}."
    yield block_quote(decision.context)
    yield "\n".join(
        line
        for alternative in decision.alternatives
        for line in _alternative_lines(alternative, selected=alternative.id == decision.selected)
    )
    yield f"Selected: {code_span(decision.selected)}, because:"
    yield block_quote(decision.rationale)
    yield f"Confidence: {decision.confidence}. It rests on:"
    yield block_quote(decision.confidence_definition)


def _alternative_lines(alternative: Alternative, *, selected: bool) -> Iterator[str]:
    mark = " (selected)" if selected else ""
    yield (
        f"- {code_span(alternative.id)} {escape_markdown(alternative.label)}{mark}: "
        f"{escape_markdown(alternative.description)}"
    )
    yield from (f"  - for: {escape_markdown(pro)}" for pro in alternative.pros)
    yield from (f"  - against: {escape_markdown(con)}" for con in alternative.cons)


def _task_blocks(task: PlannedTask) -> Iterator[str]:
    yield f"### {task.id}: {escape_markdown(task.title)}"
    yield block_quote(task.description)
    yield "\n".join((*(f"- file: {code_span(file.path)} {file.risk}" for file in task.files), *_task_facts(task)))


def _task_facts(task: PlannedTask) -> Iterator[str]:
    yield f"- acceptance criteria: {join_code_spans(task.acceptance_criteria)}"
    yield f"- to be read first: {join_code_spans(task.relevant_context)}"
    yield from (f"- verified by: {code_span(command)}" for command in task.verify)
    yield from (f"- done when: {escape_markdown(done)}" for done in task.done)


def _review_finding_blocks(finding: PanelFinding) -> Iterator[str]:
    yield f"### {finding.severity}: {escape_markdown(finding.title)}"
    yield f"Category: {finding.category}. Affected: {join_code_spans(finding.affected)}"
    yield block_quote(finding.description)
    yield "Seen:"
    yield block_quote(finding.evidence)
    yield "Recommended:"
    yield block_quote(finding.recommendation)


def _origin_line(header: OutputHeader) -> str:
    when = f"{escape_markdown(header.started_at)} to {escape_markdown(header.completed_at)}"
    return (
        f"By {code_span(header.agent)} at step {code_span(header.step)}, {when}. Written by Proofstone from the answer."
    )


def _join_page(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join((f"# {title}", *(part for part in parts if part))) + "\n"


def _flatten(groups: Iterable[Iterable[str]]) -> Iterator[str]:
    return (block for group in groups for block in group)


def _optional_section(title: str, *parts: str) -> tuple[str, ...]:
    """Return a section; an empty section is left out."""
    return (title, *parts) if any(parts) else ()
