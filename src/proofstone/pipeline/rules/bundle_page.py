"""Render `evidence-bundle.md`: the result of a run and its evidence, on one readable page. Pure.

Each line ends with the ledger rows that it comes from. An empty section says so where its absence could be taken for
good news (regressions, overrides, known issues), and is left out elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from proofstone.documents.markdown import (
    block_quote,
    code_span,
    escape_markdown,
    join_code_spans,
    make_visible,
    shorten_line,
    table_lines,
)
from proofstone.pipeline.models.bundle import BundleLoss, EvidenceBundle, SourcedValue, TaskEnding, TreeChecks
from proofstone.pipeline.rules import bundle_words as words

_MAX_SPEC: Final = 100
_MAX_LINE: Final = 300


def render_bundle_page(bundle: EvidenceBundle) -> str:
    parts = [f"# Evidence bundle: {escape_markdown(words.format_title(bundle))}", *_ending_lines(bundle)]
    for title, section in _SECTIONS:
        if body := "\n".join(section(bundle)).strip("\n"):
            parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def _ending_lines(bundle: EvidenceBundle) -> Iterator[str]:
    ending = bundle.ending
    reason = f": {escape_markdown(ending.reason)}" if ending.reason else ""
    yield f"**{words.format_outcome(bundle)}**{reason}. Confidence: **{words.format_confidence(bundle)}**."
    yield from (
        f"**WARNING: {escape_markdown(override.task)} was set aside ({escape_markdown(override.action)}) by "
        f"{escape_markdown(override.by)}: "
        f"{escape_markdown(override.reason)}**"
        for override in bundle.overrides
    )
    yield f"Numbers in brackets, and in columns called rows, are rows of the ledger: this is from {_rows_of(ending)}."
    if ending.reasons:
        yield "\n".join(
            ("Why the confidence is no higher:", "", *(f"- {_shorten(reason)}" for reason in ending.reasons))
        )
    if ending.raises:
        yield "\n".join(("What would raise it:", "", *(f"- {_shorten(suggestion)}" for suggestion in ending.raises)))


def _request_lines(bundle: EvidenceBundle) -> Iterator[str]:
    subject = bundle.subject
    yield block_quote(subject.asked)
    yield ""
    yield (
        f"- run: {code_span(subject.run_id)}, {words.format_time(subject.started_at)} to "
        f"{words.format_time(subject.updated_at)}"
    )
    yield f"- repository: {code_span(subject.repository)}, branch {code_span(subject.branch)}"
    if subject.lane:
        reason = f": {escape_markdown(subject.lane_reason)}" if subject.lane_reason else ""
        yield f"- lane: {escape_markdown(subject.lane)}{reason}; mode: {escape_markdown(subject.mode)}"
    for role, served in subject.agents.items():
        yield f"- {escape_markdown(role)}: {code_span(shorten_line(served, _MAX_SPEC))}"
    yield from (f"- note: {escape_markdown(note)}" for note in subject.notes)
    yield from (
        f"- {child.kind} {child.iteration}: {code_span(child.run_id)} "
        f"{escape_markdown(child.outcome or 'not finished')}"
        f"{f', {escape_markdown(child.reason)}' if child.reason else ''} {_rows_of(child)}"
        for child in bundle.children
    )


def _commit_lines(bundle: EvidenceBundle) -> Iterator[str]:
    yield f"- base: {code_span(bundle.subject.base_commit)}"
    for commit in bundle.commits:
        owner = f" ({escape_markdown(commit.task)})" if commit.task else ""
        yield f"- commit: {code_span(commit.commit)}, tree {code_span(commit.tree)}{owner} {_rows_of(commit)}"
    if not bundle.commits:
        yield "- nothing was committed"
        return
    yield ""
    where = f"On {code_span(bundle.subject.branch)}, or wherever you have merged it, this takes it back:"
    yield from (where, "", "```sh", make_visible(bundle.rollback), "```")


def _task_table(bundle: EvidenceBundle) -> Iterable[str]:
    head = ("task", "name", "state", "attempts", "confidence", "rows")
    return table_lines(head, (_task_row(task, bundle) for task in bundle.tasks))


def _task_row(task: TaskEnding, bundle: EvidenceBundle) -> tuple[str, ...]:
    confidence = task.confidence.value if task.confidence else ""
    return (
        words.format_task(task, bundle),
        escape_markdown(task.name),
        task.state.value,
        str(task.attempts),
        confidence,
        words.format_rows(task),
    )


def _check_lines(bundle: EvidenceBundle) -> Iterator[str]:
    for tree in bundle.checks:
        yield f"### {escape_markdown(words.format_task(tree, bundle))}"
        yield ""
        yield f"{words.format_pass_count(tree)}, attempt {tree.attempt}, tree {code_span(tree.tree)}"
        yield ""
        yield from _check_table(tree)
        yield ""


def _check_table(tree: TreeChecks) -> Iterable[str]:
    head = ("check", "before", "after", "command", "remark", "rows")
    return table_lines(
        head,
        (
            (
                escape_markdown(line.name),
                words.format_before(line),
                f"**{line.after}**",
                escape_markdown(shorten_line(line.command, _MAX_SPEC)),
                escape_markdown(words.format_remark(line)),
                words.format_rows(line),
            )
            for line in tree.lines
        ),
    )


def _regression_lines(bundle: EvidenceBundle) -> Iterator[str]:
    if not bundle.regressions:
        yield "None was seen."
    for regression in bundle.regressions:
        state = "stands" if regression.stands else "put right since"
        yield f"- **{state}**, {escape_markdown(regression.task)}: {_shorten(regression.what)} {_rows_of(regression)}"


def _review_lines(bundle: EvidenceBundle) -> Iterator[str]:
    head = ("scope", "focus", "round", "verdict", "findings", "model", "rows")
    rows = (
        (
            review.scope,
            review.focus.value,
            str(review.round),
            f"**{review.verdict}**" if review.verdict else "nobody answered",
            words.format_findings(review),
            escape_markdown(review.model),
            words.format_rows(review),
        )
        for review in bundle.reviews
    )
    yield from table_lines(head, rows)
    if remark := words.format_panel(bundle):
        yield from ("", remark)
    yield ""
    for task in bundle.tasks:
        task_name = escape_markdown(words.format_task(task, bundle))
        for verdict in task.verdicts:
            reviewer = code_span(shorten_line(verdict.by or "architect", _MAX_SPEC))
            statement = f"{reviewer} says **{verdict.verdict}**, confidence {verdict.confidence}"
            yield f"- {task_name}: {statement} {_rows_of(task)}"
    if not bundle.reviews and not any(task.verdicts for task in bundle.tasks):
        yield "Nobody reviewed it."


def _loss_table(bundle: EvidenceBundle) -> Iterable[str]:
    head = ("of", "number", "L", "D", "P", "Ω", "then", "why", "rows")
    return table_lines(head, (_loss_row(loss) for loss in bundle.losses))


def _loss_row(loss: BundleLoss) -> tuple[str, ...]:
    reason = escape_markdown(shorten_line(loss.text or loss.direction.rationale, _MAX_SPEC))
    return (escape_markdown(loss.of), str(loss.number), *words.format_loss(loss), reason, words.format_rows(loss))


def _decision_lines(bundle: EvidenceBundle) -> Iterator[str]:
    for override in bundle.overrides:
        kind = f", {escape_markdown(override.category)}" if override.category else ""
        yield (
            f"- **override** of {escape_markdown(override.task)}: {escape_markdown(override.action)}{kind}, by "
            f"{escape_markdown(override.by)} at "
            f"{words.format_time(override.at)}: {_shorten(override.reason)} {_rows_of(override)}"
        )
    for approval in bundle.approvals:
        owner = f" of {escape_markdown(approval.task)}" if approval.task else ""
        comment = f": {_shorten(approval.words)}" if approval.words else ""
        yield (
            f"- {code_span(approval.gate)}{owner}: {escape_markdown(approval.option)}, by "
            f"{escape_markdown(words.format_decider(approval))} at "
            f"{words.format_time(approval.at)}{comment} {_rows_of(approval)}"
        )
    if not bundle.overrides:
        yield "- nothing was overridden"


def _change_lines(bundle: EvidenceBundle) -> Iterator[str]:
    for file in bundle.changed:
        change = f" {escape_markdown(file.change)}" if file.change else ""
        note = " (by its path alone)" if file.by_path_alone else ""
        yield f"- {file.risk}{change} {code_span(file.path)}{note} {_rows_of(file)}"


def _known_issue_lines(bundle: EvidenceBundle) -> Iterator[str]:
    if not bundle.known_issues:
        yield "None is known."
    for issue in bundle.known_issues:
        where = f" in {join_code_spans(issue.where)}" if issue.where else ""
        yield (
            f"- **{issue.severity}**, {escape_markdown(issue.source)}: {_shorten(issue.title)}{where} {_rows_of(issue)}"
        )


def _fixed_issue_lines(bundle: EvidenceBundle) -> Iterator[str]:
    for issue in bundle.fixed_issues:
        severity = f"**{issue.severity}**, " if issue.severity else ""
        yield (
            f"- {severity}{escape_markdown(issue.source)}: {_shorten(issue.title)} "
            f"({escape_markdown(issue.how)}) {_rows_of(issue)}"
        )


def _cost_lines(bundle: EvidenceBundle) -> Iterator[str]:
    head = ("role", "model", "dispatches", "model calls", "tokens", "tool calls", "time", "price", "rows")
    yield from table_lines(
        head,
        (
            (
                escape_markdown(cost.role),
                escape_markdown(cost.model),
                *words.format_cost(cost),
                words.format_price(cost),
                words.format_rows(cost),
            )
            for cost in bundle.costs
        ),
    )
    yield from (
        ("", f"In all: {words.format_total(bundle)}.")
        if bundle.costs
        else ("No agent that counts its tokens was asked.",)
    )
    if bundle.verification is not None:
        yield from ("", f"{words.format_supervision_cost(bundle.verification)} {_rows_of(bundle.verification)}.")


def _timeline_table(bundle: EvidenceBundle) -> Iterable[str]:
    head = ("began", "step", "agent", "took", "status", "retries", "rows")
    return table_lines(
        head,
        (
            (
                words.format_time(step.started_at),
                escape_markdown(words.format_step(step)),
                escape_markdown(words.format_agent(step)),
                words.format_step_duration(step),
                step.status.value,
                str(step.retries),
                words.format_rows(step),
            )
            for step in bundle.timeline
        ),
    )


def _proof_lines(bundle: EvidenceBundle) -> Iterator[str]:
    head, run = bundle.head, bundle.subject.run_id
    yield f"Everything here is from the ledger {code_span(head.ledger_id)} up to row {head.seq}, whose hash is:"
    yield from ("", "```text", make_visible(head.hash), "```", "")
    yield f"- {code_span('proofstone ledger verify')}: that nobody has changed the record since"
    yield f"- {code_span(f'proofstone ledger show {run}')}: every row"
    yield f"- {code_span(f'proofstone bundle {run}')}: this page again"


def _shorten(text: str) -> str:
    return escape_markdown(shorten_line(text, _MAX_LINE))


def _rows_of(sourced: SourcedValue) -> str:
    return f"[{words.format_rows(sourced)}]"


_SECTIONS: Final[tuple[tuple[str, Callable[[EvidenceBundle], Iterable[str]]], ...]] = (
    ("What was asked for", _request_lines),
    ("What was committed, and how to take it back", _commit_lines),
    ("Tasks", _task_table),
    ("Checks, before and after", _check_lines),
    ("Regressions", _regression_lines),
    ("Reviews", _review_lines),
    ("The loss, attempt by attempt", _loss_table),
    ("Overrides and approvals", _decision_lines),
    ("Blast radius", _change_lines),
    ("Known issues", _known_issue_lines),
    ("Found, and put right before the end", _fixed_issue_lines),
    ("Cost", _cost_lines),
    ("Timeline", _timeline_table),
    ("How to check it", _proof_lines),
)
