"""`evidence-bundle.md`: what came of a run and what shows it, on one page that a person can read. Pure.

Each line ends with the rows of the ledger that it comes from. A section that would say nothing says so where silence
could be taken for good news (regressions, overrides, known issues), and is left out elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from proofstone.documents.markdown import code, named, prose, quoted, shortened, table, visible
from proofstone.pipeline.models.bundle import Bundle, CheckedTree, LossSeen, Sourced, TaskEnding
from proofstone.pipeline.rules import bundle_words as words

_SPEC: Final = 100
_LINE: Final = 300


def page(bundle: Bundle) -> str:
    parts = [f"# Evidence bundle: {prose(words.title(bundle))}", *_ending(bundle)]
    for title, section in _SECTIONS:
        if body := "\n".join(section(bundle)).strip("\n"):
            parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def _ending(bundle: Bundle) -> Iterator[str]:
    ending = bundle.ending
    why = f": {prose(ending.reason)}" if ending.reason else ""
    yield f"**{words.headline(bundle)}**{why}. Confidence: **{words.confidence(bundle)}**."
    yield from (
        f"**WARNING: {prose(override.task)} was set aside ({prose(override.action)}) by {prose(override.by)}: "
        f"{prose(override.reason)}**"
        for override in bundle.overrides
    )
    yield f"Numbers in brackets, and in columns called rows, are rows of the ledger: this is from {_rows(ending)}."
    if ending.reasons:
        yield "\n".join(("Why the confidence is no higher:", "", *(f"- {_told(reason)}" for reason in ending.reasons)))
    if ending.raises:
        yield "\n".join(("What would raise it:", "", *(f"- {_told(item)}" for item in ending.raises)))


def _asked(bundle: Bundle) -> Iterator[str]:
    subject = bundle.subject
    yield quoted(subject.asked)
    yield ""
    yield f"- run: {code(subject.run_id)}, {words.clock(subject.started_at)} to {words.clock(subject.updated_at)}"
    yield f"- repository: {code(subject.repository)}, branch {code(subject.branch)}"
    if subject.lane:
        why = f": {prose(subject.lane_reason)}" if subject.lane_reason else ""
        yield f"- lane: {prose(subject.lane)}{why}; mode: {prose(subject.mode)}"
    for role, served in subject.agents.items():
        yield f"- {prose(role)}: {code(shortened(served, _SPEC))}"
    yield from (f"- note: {prose(note)}" for note in subject.notes)
    yield from (
        f"- {child.kind} {child.iteration}: {code(child.run_id)} {prose(child.outcome or 'not finished')}"
        f"{f', {prose(child.reason)}' if child.reason else ''} {_rows(child)}"
        for child in bundle.children
    )


def _commits(bundle: Bundle) -> Iterator[str]:
    yield f"- base: {code(bundle.subject.base_commit)}"
    for commit in bundle.commits:
        whose = f" ({prose(commit.task)})" if commit.task else ""
        yield f"- commit: {code(commit.commit)}, tree {code(commit.tree)}{whose} {_rows(commit)}"
    if not bundle.commits:
        yield "- nothing was committed"
        return
    yield ""
    where = f"On {code(bundle.subject.branch)}, or wherever you have merged it, this takes it back:"
    yield from (where, "", "```sh", visible(bundle.rollback), "```")


def _tasks(bundle: Bundle) -> Iterable[str]:
    head = ("task", "name", "state", "attempts", "confidence", "rows")
    return table(head, (_task(task, bundle) for task in bundle.tasks))


def _task(one: TaskEnding, bundle: Bundle) -> tuple[str, ...]:
    sure = one.confidence.value if one.confidence else ""
    return words.task_of(one, bundle), prose(one.name), one.state.value, str(one.attempts), sure, words.rows(one)


def _checks(bundle: Bundle) -> Iterator[str]:
    for tree in bundle.checks:
        yield f"### {prose(words.task_of(tree, bundle))}"
        yield ""
        yield f"{words.passing(tree)}, attempt {tree.attempt}, tree {code(tree.tree)}"
        yield ""
        yield from _lines(tree)
        yield ""


def _lines(tree: CheckedTree) -> Iterable[str]:
    head = ("check", "before", "after", "command", "remark", "rows")
    return table(
        head,
        (
            (
                prose(line.name),
                words.before(line),
                f"**{line.after}**",
                prose(shortened(line.command, _SPEC)),
                prose(words.remark(line)),
                words.rows(line),
            )
            for line in tree.lines
        ),
    )


def _regressions(bundle: Bundle) -> Iterator[str]:
    if not bundle.regressions:
        yield "None was seen."
    for regression in bundle.regressions:
        stands = "stands" if regression.stands else "put right since"
        yield f"- **{stands}**, {prose(regression.task)}: {_told(regression.what)} {_rows(regression)}"


def _reviews(bundle: Bundle) -> Iterator[str]:
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
    if said := words.panel(bundle):
        yield from ("", said)
    yield ""
    for task in bundle.tasks:
        whose = prose(words.task_of(task, bundle))
        for verdict in task.verdicts:
            by = code(shortened(verdict.by or "architect", _SPEC))
            yield f"- {whose}: {by} says **{verdict.verdict}**, confidence {verdict.confidence} {_rows(task)}"
    if not bundle.reviews and not any(task.verdicts for task in bundle.tasks):
        yield "Nobody reviewed it."


def _losses(bundle: Bundle) -> Iterable[str]:
    head = ("of", "number", "L", "D", "P", "Ω", "then", "why", "rows")
    return table(head, (_loss(loss) for loss in bundle.losses))


def _loss(one: LossSeen) -> tuple[str, ...]:
    why = prose(shortened(one.text or one.direction.rationale, _SPEC))
    return (prose(one.of), str(one.number), *words.figures(one), why, words.rows(one))


def _decided(bundle: Bundle) -> Iterator[str]:
    for over in bundle.overrides:
        kind = f", {prose(over.category)}" if over.category else ""
        yield (
            f"- **override** of {prose(over.task)}: {prose(over.action)}{kind}, by {prose(over.by)} at "
            f"{words.clock(over.at)}: {_told(over.reason)} {_rows(over)}"
        )
    for approval in bundle.approvals:
        whose = f" of {prose(approval.task)}" if approval.task else ""
        said = f": {_told(approval.words)}" if approval.words else ""
        yield (
            f"- {code(approval.gate)}{whose}: {prose(approval.option)}, by {prose(words.decided_by(approval))} at "
            f"{words.clock(approval.at)}{said} {_rows(approval)}"
        )
    if not bundle.overrides:
        yield "- nothing was overridden"


def _blast(bundle: Bundle) -> Iterator[str]:
    for item in bundle.changed:
        change = f" {prose(item.change)}" if item.change else ""
        alone = " (by its path alone)" if item.by_path_alone else ""
        yield f"- {item.risk}{change} {code(item.path)}{alone} {_rows(item)}"


def _known(bundle: Bundle) -> Iterator[str]:
    if not bundle.known_issues:
        yield "None is known."
    for issue in bundle.known_issues:
        where = f" in {named(issue.where)}" if issue.where else ""
        yield f"- **{issue.severity}**, {prose(issue.source)}: {_told(issue.title)}{where} {_rows(issue)}"


def _fixed(bundle: Bundle) -> Iterator[str]:
    for issue in bundle.fixed_issues:
        grave = f"**{issue.severity}**, " if issue.severity else ""
        yield f"- {grave}{prose(issue.source)}: {_told(issue.title)} ({prose(issue.how)}) {_rows(issue)}"


def _costs(bundle: Bundle) -> Iterator[str]:
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
        yield from ("", f"{words.verification(bundle.verification)} {_rows(bundle.verification)}.")


def _timeline(bundle: Bundle) -> Iterable[str]:
    head = ("began", "step", "agent", "took", "status", "retries", "rows")
    return table(
        head,
        (
            (
                words.clock(item.started_at),
                prose(words.step(item)),
                prose(words.agent(item)),
                words.took(item),
                item.status.value,
                str(item.retries),
                words.rows(item),
            )
            for item in bundle.timeline
        ),
    )


def _proof(bundle: Bundle) -> Iterator[str]:
    head, run = bundle.head, bundle.subject.run_id
    yield f"Everything here is from the ledger {code(head.ledger_id)} up to row {head.seq}, whose hash is:"
    yield from ("", "```text", visible(head.hash), "```", "")
    yield f"- {code('proofstone ledger verify')}: that nobody has changed the record since"
    yield f"- {code(f'proofstone ledger show {run}')}: every row"
    yield f"- {code(f'proofstone bundle {run}')}: this page again"


def _told(text: str) -> str:
    return prose(shortened(text, _LINE))


def _rows(one: Sourced) -> str:
    return f"[{words.rows(one)}]"


_SECTIONS: Final[tuple[tuple[str, Callable[[Bundle], Iterable[str]]], ...]] = (
    ("What was asked for", _asked),
    ("What was committed, and how to take it back", _commits),
    ("Tasks", _tasks),
    ("Checks, before and after", _checks),
    ("Regressions", _regressions),
    ("Reviews", _reviews),
    ("The loss, attempt by attempt", _losses),
    ("Overrides and approvals", _decided),
    ("Blast radius", _blast),
    ("Known issues", _known),
    ("Found, and put right before the end", _fixed),
    ("Cost", _costs),
    ("Timeline", _timeline),
    ("How to check it", _proof),
)
