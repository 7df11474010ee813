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
        f"**WARNING: {prose(one.task)} was set aside ({prose(one.action)}) by {prose(one.by)}: {prose(one.reason)}**"
        for one in bundle.overrides
    )
    yield f"Numbers in brackets, and in columns called rows, are rows of the ledger: this is from {_rows(ending)}."
    if ending.reasons:
        yield "\n".join(("Why the confidence is no higher:", "", *(f"- {_told(one)}" for one in ending.reasons)))
    if ending.raises:
        yield "\n".join(("What would raise it:", "", *(f"- {_told(one)}" for one in ending.raises)))


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
        f"- {one.kind} {one.iteration}: {code(one.run_id)} {prose(one.outcome or 'not finished')}"
        f"{f', {prose(one.reason)}' if one.reason else ''} {_rows(one)}"
        for one in bundle.children
    )


def _commits(bundle: Bundle) -> Iterator[str]:
    yield f"- base: {code(bundle.subject.base_commit)}"
    for one in bundle.commits:
        whose = f" ({prose(one.task)})" if one.task else ""
        yield f"- commit: {code(one.commit)}, tree {code(one.tree)}{whose} {_rows(one)}"
    if not bundle.commits:
        yield "- nothing was committed"
        return
    yield ""
    where = f"On {code(bundle.subject.branch)}, or wherever you have merged it, this takes it back:"
    yield from (where, "", "```sh", visible(bundle.rollback), "```")


def _tasks(bundle: Bundle) -> Iterable[str]:
    head = ("task", "name", "state", "attempts", "confidence", "rows")
    return table(head, (_task(one, bundle) for one in bundle.tasks))


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
    for one in bundle.regressions:
        stands = "stands" if one.stands else "put right since"
        yield f"- **{stands}**, {prose(one.task)}: {_told(one.what)} {_rows(one)}"


def _reviews(bundle: Bundle) -> Iterator[str]:
    head = ("scope", "focus", "round", "verdict", "findings", "model", "rows")
    rows = (
        (
            one.scope,
            one.focus.value,
            str(one.round),
            f"**{one.verdict}**" if one.verdict else "nobody answered",
            words.found(one),
            prose(one.model),
            words.rows(one),
        )
        for one in bundle.reviews
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
    return table(head, (_loss(one) for one in bundle.losses))


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
    for one in bundle.approvals:
        whose = f" of {prose(one.task)}" if one.task else ""
        said = f": {_told(one.words)}" if one.words else ""
        yield (
            f"- {code(one.gate)}{whose}: {prose(one.option)}, by {prose(words.decided_by(one))} at "
            f"{words.clock(one.at)}{said} {_rows(one)}"
        )
    if not bundle.overrides:
        yield "- nothing was overridden"


def _blast(bundle: Bundle) -> Iterator[str]:
    for one in bundle.changed:
        change = f" {prose(one.change)}" if one.change else ""
        alone = " (by its path alone)" if one.by_path_alone else ""
        yield f"- {one.risk}{change} {code(one.path)}{alone} {_rows(one)}"


def _known(bundle: Bundle) -> Iterator[str]:
    if not bundle.known_issues:
        yield "None is known."
    for one in bundle.known_issues:
        where = f" in {named(one.where)}" if one.where else ""
        yield f"- **{one.severity}**, {prose(one.source)}: {_told(one.title)}{where} {_rows(one)}"


def _fixed(bundle: Bundle) -> Iterator[str]:
    for one in bundle.fixed_issues:
        grave = f"**{one.severity}**, " if one.severity else ""
        yield f"- {grave}{prose(one.source)}: {_told(one.title)} ({prose(one.how)}) {_rows(one)}"


def _costs(bundle: Bundle) -> Iterator[str]:
    head = ("role", "model", "dispatches", "model calls", "tokens", "tool calls", "time", "price", "rows")
    yield from table(
        head,
        (
            (prose(one.role), prose(one.model), *words.cost(one), words.price(one), words.rows(one))
            for one in bundle.costs
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
                words.clock(one.started_at),
                prose(words.step(one)),
                prose(words.agent(one)),
                words.took(one),
                one.status.value,
                str(one.retries),
                words.rows(one),
            )
            for one in bundle.timeline
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
