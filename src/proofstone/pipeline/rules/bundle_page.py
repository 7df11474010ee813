"""Render `evidence-bundle.md`: the result of a run and its evidence, on one readable page. Pure.

Each line ends with the ledger rows that it comes from. An empty section says so where its absence could be taken for
good news (regressions, overrides, known issues), and is left out elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from proofstone.documents.markdown import code, named, prose, quoted, shortened, table, visible
from proofstone.pipeline.models.bundle import Bundle, CheckedTree, LossSeen, Sourced, TaskEnding
from proofstone.pipeline.rules import bundle_words as words

_MAX_SPEC: Final = 100
_MAX_LINE: Final = 300


def page(bundle: Bundle) -> str:
    parts = [f"# Evidence bundle: {prose(words.title(bundle))}", *_ending_lines(bundle)]
    for title, section in _SECTIONS:
        if body := "\n".join(section(bundle)).strip("\n"):
            parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def _ending_lines(bundle: Bundle) -> Iterator[str]:
    ending = bundle.ending
    reason = f": {prose(ending.reason)}" if ending.reason else ""
    yield f"**{words.headline(bundle)}**{reason}. Confidence: **{words.confidence(bundle)}**."
    yield from (
        f"**WARNING: {prose(override.task)} was set aside ({prose(override.action)}) by {prose(override.by)}: "
        f"{prose(override.reason)}**"
        for override in bundle.overrides
    )
    yield f"Numbers in brackets, and in columns called rows, are rows of the ledger: this is from {_rows_of(ending)}."
    if ending.reasons:
        yield "\n".join(
            ("Why the confidence is no higher:", "", *(f"- {_shorten(reason)}" for reason in ending.reasons))
        )
    if ending.raises:
        yield "\n".join(("What would raise it:", "", *(f"- {_shorten(suggestion)}" for suggestion in ending.raises)))


def _request_lines(bundle: Bundle) -> Iterator[str]:
    subject = bundle.subject
    yield quoted(subject.asked)
    yield ""
    yield f"- run: {code(subject.run_id)}, {words.clock(subject.started_at)} to {words.clock(subject.updated_at)}"
    yield f"- repository: {code(subject.repository)}, branch {code(subject.branch)}"
    if subject.lane:
        reason = f": {prose(subject.lane_reason)}" if subject.lane_reason else ""
        yield f"- lane: {prose(subject.lane)}{reason}; mode: {prose(subject.mode)}"
    for role, served in subject.agents.items():
        yield f"- {prose(role)}: {code(shortened(served, _MAX_SPEC))}"
    yield from (f"- note: {prose(note)}" for note in subject.notes)
    yield from (
        f"- {child.kind} {child.iteration}: {code(child.run_id)} {prose(child.outcome or 'not finished')}"
        f"{f', {prose(child.reason)}' if child.reason else ''} {_rows_of(child)}"
        for child in bundle.children
    )


def _commit_lines(bundle: Bundle) -> Iterator[str]:
    yield f"- base: {code(bundle.subject.base_commit)}"
    for commit in bundle.commits:
        owner = f" ({prose(commit.task)})" if commit.task else ""
        yield f"- commit: {code(commit.commit)}, tree {code(commit.tree)}{owner} {_rows_of(commit)}"
    if not bundle.commits:
        yield "- nothing was committed"
        return
    yield ""
    where = f"On {code(bundle.subject.branch)}, or wherever you have merged it, this takes it back:"
    yield from (where, "", "```sh", visible(bundle.rollback), "```")


def _task_table(bundle: Bundle) -> Iterable[str]:
    head = ("task", "name", "state", "attempts", "confidence", "rows")
    return table(head, (_task_row(task, bundle) for task in bundle.tasks))


def _task_row(task: TaskEnding, bundle: Bundle) -> tuple[str, ...]:
    confidence = task.confidence.value if task.confidence else ""
    return (
        words.task_of(task, bundle),
        prose(task.name),
        task.state.value,
        str(task.attempts),
        confidence,
        words.rows(task),
    )


def _check_lines(bundle: Bundle) -> Iterator[str]:
    for tree in bundle.checks:
        yield f"### {prose(words.task_of(tree, bundle))}"
        yield ""
        yield f"{words.passing(tree)}, attempt {tree.attempt}, tree {code(tree.tree)}"
        yield ""
        yield from _check_table(tree)
        yield ""


def _check_table(tree: CheckedTree) -> Iterable[str]:
    head = ("check", "before", "after", "command", "remark", "rows")
    return table(
        head,
        (
            (
                prose(line.name),
                words.before(line),
                f"**{line.after}**",
                prose(shortened(line.command, _MAX_SPEC)),
                prose(words.remark(line)),
                words.rows(line),
            )
            for line in tree.lines
        ),
    )


def _regression_lines(bundle: Bundle) -> Iterator[str]:
    if not bundle.regressions:
        yield "None was seen."
    for regression in bundle.regressions:
        state = "stands" if regression.stands else "put right since"
        yield f"- **{state}**, {prose(regression.task)}: {_shorten(regression.what)} {_rows_of(regression)}"


def _review_lines(bundle: Bundle) -> Iterator[str]:
    head = ("scope", "focus", "round", "verdict", "findings", "model", "rows")
    rows = (
        (
            review.scope,
            review.focus.value,
            str(review.round),
            f"**{review.verdict}**" if review.verdict else "nobody answered",
            words.found(review),
            prose(review.model),
            words.rows(review),
        )
        for review in bundle.reviews
    )
    yield from table(head, rows)
    if remark := words.panel(bundle):
        yield from ("", remark)
    yield ""
    for task in bundle.tasks:
        task_name = prose(words.task_of(task, bundle))
        for verdict in task.verdicts:
            reviewer = code(shortened(verdict.by or "architect", _MAX_SPEC))
            statement = f"{reviewer} says **{verdict.verdict}**, confidence {verdict.confidence}"
            yield f"- {task_name}: {statement} {_rows_of(task)}"
    if not bundle.reviews and not any(task.verdicts for task in bundle.tasks):
        yield "Nobody reviewed it."


def _loss_table(bundle: Bundle) -> Iterable[str]:
    head = ("of", "number", "L", "D", "P", "Ω", "then", "why", "rows")
    return table(head, (_loss_row(loss) for loss in bundle.losses))


def _loss_row(loss: LossSeen) -> tuple[str, ...]:
    reason = prose(shortened(loss.text or loss.direction.rationale, _MAX_SPEC))
    return (prose(loss.of), str(loss.number), *words.figures(loss), reason, words.rows(loss))


def _decision_lines(bundle: Bundle) -> Iterator[str]:
    for override in bundle.overrides:
        kind = f", {prose(override.category)}" if override.category else ""
        yield (
            f"- **override** of {prose(override.task)}: {prose(override.action)}{kind}, by {prose(override.by)} at "
            f"{words.clock(override.at)}: {_shorten(override.reason)} {_rows_of(override)}"
        )
    for approval in bundle.approvals:
        owner = f" of {prose(approval.task)}" if approval.task else ""
        comment = f": {_shorten(approval.words)}" if approval.words else ""
        yield (
            f"- {code(approval.gate)}{owner}: {prose(approval.option)}, by {prose(words.decided_by(approval))} at "
            f"{words.clock(approval.at)}{comment} {_rows_of(approval)}"
        )
    if not bundle.overrides:
        yield "- nothing was overridden"


def _change_lines(bundle: Bundle) -> Iterator[str]:
    for file in bundle.changed:
        change = f" {prose(file.change)}" if file.change else ""
        note = " (by its path alone)" if file.by_path_alone else ""
        yield f"- {file.risk}{change} {code(file.path)}{note} {_rows_of(file)}"


def _known_issue_lines(bundle: Bundle) -> Iterator[str]:
    if not bundle.known_issues:
        yield "None is known."
    for issue in bundle.known_issues:
        where = f" in {named(issue.where)}" if issue.where else ""
        yield f"- **{issue.severity}**, {prose(issue.source)}: {_shorten(issue.title)}{where} {_rows_of(issue)}"


def _fixed_issue_lines(bundle: Bundle) -> Iterator[str]:
    for issue in bundle.fixed_issues:
        severity = f"**{issue.severity}**, " if issue.severity else ""
        yield f"- {severity}{prose(issue.source)}: {_shorten(issue.title)} ({prose(issue.how)}) {_rows_of(issue)}"


def _cost_lines(bundle: Bundle) -> Iterator[str]:
    head = ("role", "model", "dispatches", "model calls", "tokens", "tool calls", "time", "price", "rows")
    yield from table(
        head,
        (
            (prose(cost.role), prose(cost.model), *words.cost(cost), words.price(cost), words.rows(cost))
            for cost in bundle.costs
        ),
    )
    yield from (
        ("", f"In all: {words.total(bundle)}.") if bundle.costs else ("No agent that counts its tokens was asked.",)
    )
    if bundle.verification is not None:
        yield from ("", f"{words.verification(bundle.verification)} {_rows_of(bundle.verification)}.")


def _timeline_table(bundle: Bundle) -> Iterable[str]:
    head = ("began", "step", "agent", "took", "status", "retries", "rows")
    return table(
        head,
        (
            (
                words.clock(step.started_at),
                prose(words.step(step)),
                prose(words.agent(step)),
                words.took(step),
                step.status.value,
                str(step.retries),
                words.rows(step),
            )
            for step in bundle.timeline
        ),
    )


def _proof_lines(bundle: Bundle) -> Iterator[str]:
    head, run = bundle.head, bundle.subject.run_id
    yield f"Everything here is from the ledger {code(head.ledger_id)} up to row {head.seq}, whose hash is:"
    yield from ("", "```text", visible(head.hash), "```", "")
    yield f"- {code('proofstone ledger verify')}: that nobody has changed the record since"
    yield f"- {code(f'proofstone ledger show {run}')}: every row"
    yield f"- {code(f'proofstone bundle {run}')}: this page again"


def _shorten(text: str) -> str:
    return prose(shortened(text, _MAX_LINE))


def _rows_of(sourced: Sourced) -> str:
    return f"[{words.rows(sourced)}]"


_SECTIONS: Final[tuple[tuple[str, Callable[[Bundle], Iterable[str]]], ...]] = (
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
