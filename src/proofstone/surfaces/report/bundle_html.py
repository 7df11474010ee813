"""The evidence bundle as one page for a browser: nothing is loaded, nothing runs, everything is escaped.

It can be read in light and in dark, narrow and wide, and be printed. Its own policy forbids scripts and anything from
elsewhere, in case it ever held some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from proofstone.contracts.pipeline.bundle import Bundle, CheckedLine, CheckedTree, Sourced
from proofstone.core.pipeline import bundle_words as words
from proofstone.core.pipeline.page_words import shortened
from proofstone.surfaces.report.bundle_plot import loss_plot
from proofstone.surfaces.report.svg import escaped

Cell = str | tuple[str, str]
"""Text, or text and the class that shows what kind of word it is. Neither is markup."""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; --line: #ccc; --soft: #666; --good: #17692b; --bad: #b3261e; --unsure: #8a5a00;
  --paper: #f6f6f6 }
@media (prefers-color-scheme: dark) {
  :root { --line: #444; --soft: #aaa; --good: #6fd08c; --bad: #ff8a80; --unsure: #f0c060; --paper: #222 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; border-bottom: 1px solid var(--line); margin-top: 2rem }
h3 { font-size: 1rem; margin-bottom: .2rem }
table { border-collapse: collapse; width: 100%; font-size: .9em } .wide { overflow-x: auto }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere }
th { color: var(--soft); font-weight: normal }
code, pre { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere }
pre, blockquote { background: var(--paper); padding: .6rem 1rem; margin: .6rem 0; white-space: pre-wrap }
svg { max-width: 100%; height: auto }
.rows { color: var(--soft); font-size: .85em } .good { color: var(--good) } .bad { color: var(--bad) }
.unsure { color: var(--unsure) } .good, .bad, .unsure { font-weight: 600 }
@media print { body { max-width: none; margin: 0 } h2, h3 { break-after: avoid } tr { break-inside: avoid } }
"""
_KINDS: Final = {
    "good": ("pass", "passed", "PASSED", "approve", "APPROVED", "high", "DONE"),
    "bad": (
        "fail",
        "failed",
        "FAILED",
        "HALTED",
        "blocker",
        "critical",
        "FORCED",
        "BLOCKED",
        "low",
        "ERROR",
        "REJECTED",
    ),
    "unsure": ("unverifiable", "needs_revision", "NEEDS_HUMAN", "medium", "major", "SKIPPED", "NEEDS_REVISION"),
}
"""Words that have a colour. The word itself stands there too, for whoever sees none."""
_SPEC: Final = 100
_LINE: Final = 300


def html(bundle: Bundle) -> str:
    title = f"Evidence bundle: {words.title(bundle)}"
    parts = [_tag("h1", escaped(title)), *_ending(bundle)]
    for name, section in _SECTIONS:
        if body := "\n".join(section(bundle)):
            parts.append(f"<section>\n{_tag('h2', escaped(name))}\n{body}\n</section>")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _ending(bundle: Bundle) -> Iterator[str]:
    ending = bundle.ending
    outcome, sure = _word(words.headline(bundle)), _word(words.confidence(bundle))
    why = f": {escaped(ending.reason)}" if ending.reason else ""
    yield _tag("p", f"{outcome}{why}. Confidence: {sure}. {_rows(ending)}")
    for one in bundle.overrides:
        told = f"{one.task} was set aside ({one.action}) by {one.by}: {one.reason}"
        yield _tag("p", f'<span class="bad">WARNING: {escaped(told)}</span>')
    if ending.reasons:
        yield f"<p>Why the confidence is no higher:</p>\n{_list(map(_told, ending.reasons))}"
    if ending.raises:
        yield f"<p>What would raise it:</p>\n{_list(map(_told, ending.raises))}"


def _asked(bundle: Bundle) -> Iterator[str]:
    subject = bundle.subject
    yield _tag("blockquote", "\n".join(escaped(line) for line in subject.asked.strip().splitlines()))
    facts = [
        f"run {_code(subject.run_id)}, {escaped(words.clock(subject.started_at))} to "
        f"{escaped(words.clock(subject.updated_at))} {_rows(subject)}",
        f"repository {_code(subject.repository)}, branch {_code(subject.branch)}",
    ]
    if subject.lane:
        facts.append(escaped(f"lane {subject.lane}: {subject.lane_reason}; mode {subject.mode}"))
    facts += [f"{escaped(role)}: {_code(shortened(served, _SPEC))}" for role, served in subject.agents.items()]
    facts += [f"note: {escaped(note)}" for note in subject.notes]
    for one in bundle.children:
        told = f"{one.outcome or 'not finished'}{f', {one.reason}' if one.reason else ''}"
        facts.append(f"{one.kind} {one.iteration}: {_code(one.run_id)} {escaped(told)} {_rows(one)}")
    yield _list(facts)


def _commits(bundle: Bundle) -> Iterator[str]:
    made = [
        f"commit {_code(one.commit)}, tree {_code(one.tree)} {escaped(one.task)} {_rows(one)}" for one in bundle.commits
    ]
    yield _list([f"base {_code(bundle.subject.base_commit)}", *(made or ["nothing was committed"])])
    if made:
        yield f"<p>On {_code(bundle.subject.branch)}, or wherever you have merged it, this takes it back:</p>"
        yield _tag("pre", escaped(bundle.rollback))


def _tasks(bundle: Bundle) -> Iterator[str]:
    yield from _table(
        ("task", "name", "state", "attempts", "confidence"),
        (
            (
                one,
                (
                    words.task_of(one, bundle),
                    one.name,
                    _kind(one.state.value),
                    str(one.attempts),
                    _kind(one.confidence.value if one.confidence else ""),
                ),
            )
            for one in bundle.tasks
        ),
    )


def _checks(bundle: Bundle) -> Iterator[str]:
    for tree in bundle.checks:
        yield _tag("h3", escaped(words.task_of(tree, bundle)))
        yield f"<p>{escaped(words.passing(tree))}, attempt {tree.attempt}, tree {_code(tree.tree)}</p>"
        yield from _table(("check", "before", "after", "command", "remark"), _lines(tree))


def _lines(tree: CheckedTree) -> Iterator[tuple[CheckedLine, Sequence[Cell]]]:
    for line in tree.lines:
        command = shortened(line.command, _SPEC)
        yield line, (line.name, words.before(line), _kind(line.after.value), command, words.remark(line))


def _regressions(bundle: Bundle) -> Iterator[str]:
    yield (
        _list(
            f"{_word('failed' if one.stands else 'passed', 'stands' if one.stands else 'put right since')}, "
            f"{escaped(one.task)}: {_told(one.what)} {_rows(one)}"
            for one in bundle.regressions
        )
        or "<p>None was seen.</p>"
    )


def _reviews(bundle: Bundle) -> Iterator[str]:
    yield from _table(
        ("scope", "focus", "round", "verdict", "findings", "model"),
        (
            (
                one,
                (
                    one.scope,
                    one.focus.value,
                    str(one.round),
                    _kind(one.verdict.value) if one.verdict else "nobody answered",
                    words.found(one),
                    one.model,
                ),
            )
            for one in bundle.reviews
        ),
    )
    if said := words.panel(bundle):
        yield _tag("p", escaped(said))
    spoken = [
        f"{escaped(words.task_of(task, bundle))}: {_code(shortened(verdict.by or 'architect', _SPEC))} says "
        f"{_word(verdict.verdict.value)}, confidence {_word(verdict.confidence.value)} {_rows(task)}"
        for task in bundle.tasks
        for verdict in task.verdicts
    ]
    yield _list(spoken)
    if not bundle.reviews and not spoken:
        yield "<p>Nobody reviewed it.</p>"


def _losses(bundle: Bundle) -> Iterator[str]:
    if bundle.losses:
        yield f'<div class="wide">{loss_plot(bundle.losses)}</div>'
    yield from _table(
        ("of", "number", "L", "D", "P", "Ω", "then", "why"),
        (
            (
                one,
                (
                    one.of,
                    str(one.number),
                    *words.figures(one),
                    shortened(one.text or one.direction.rationale, _SPEC),
                ),
            )
            for one in bundle.losses
        ),
    )


def _decided(bundle: Bundle) -> Iterator[str]:
    lines = [
        f"{_word('failed', 'override')} of {escaped(one.task)}: "
        f"{escaped(', '.join(filter(None, (one.action, one.category))))}, by {escaped(one.by)} at "
        f"{escaped(words.clock(one.at))}: {_told(one.reason)} {_rows(one)}"
        for one in bundle.overrides
    ] or ["nothing was overridden"]
    for approval in bundle.approvals:
        whose = f" of {escaped(approval.task)}" if approval.task else ""
        said = f": {_told(approval.words)}" if approval.words else ""
        lines.append(
            f"{_code(approval.gate)}{whose}: {escaped(approval.option)}, by {escaped(words.decided_by(approval))} at "
            f"{escaped(words.clock(approval.at))}{said} {_rows(approval)}"
        )
    yield _list(lines)


def _blast(bundle: Bundle) -> Iterator[str]:
    yield _list(
        f"{one.risk} {escaped(one.change)} {_code(one.path)}"
        f"{' (by its path alone)' if one.by_path_alone else ''} {_rows(one)}"
        for one in bundle.changed
    )


def _known(bundle: Bundle) -> Iterator[str]:
    yield (
        _list(
            f"{_word(one.severity.value)}, {escaped(one.source)}: {_told(one.title)} "
            f"{' '.join(map(_code, one.where))} {_rows(one)}"
            for one in bundle.known_issues
        )
        or "<p>None is known.</p>"
    )


def _fixed(bundle: Bundle) -> Iterator[str]:
    yield _list(
        f"{escaped(f'{one.severity}, ' if one.severity else '')}{escaped(one.source)}: {_told(one.title)} "
        f"({escaped(one.how)}) {_rows(one)}"
        for one in bundle.fixed_issues
    )


def _costs(bundle: Bundle) -> Iterator[str]:
    yield from _table(
        ("role", "model", "dispatches", "model calls", "tokens", "tool calls", "time", "price"),
        ((one, (one.role, one.model, *words.cost(one), words.price(one))) for one in bundle.costs),
    )
    told = f"In all: {words.total(bundle)}." if bundle.costs else "No agent that counts its tokens was asked."
    yield _tag("p", escaped(told))
    if bundle.verification is not None:
        yield _tag("p", f"{escaped(words.verification(bundle.verification))} {_rows(bundle.verification)}.")


def _timeline(bundle: Bundle) -> Iterator[str]:
    yield from _table(
        ("began", "step", "agent", "took", "status", "retries"),
        (
            (
                one,
                (
                    words.clock(one.started_at),
                    words.step(one),
                    words.agent(one),
                    words.took(one),
                    _kind(one.status.value),
                    str(one.retries),
                ),
            )
            for one in bundle.timeline
        ),
    )


def _proof(bundle: Bundle) -> Iterator[str]:
    head, run = bundle.head, bundle.subject.run_id
    yield f"<p>Everything here is from the ledger {_code(head.ledger_id)} up to row {head.seq}, whose hash is:</p>"
    yield _tag("pre", escaped(head.hash))
    yield _list(
        (
            f"{_code('proofstone ledger verify')}: that nobody has changed the record since",
            f"{_code(f'proofstone ledger show {run}')}: every row",
            f"{_code(f'proofstone bundle {run}')}: this page again, as text",
        )
    )


# What a page is made of. Everything below takes text; markup is what it gives.


def _table(head: Sequence[str], rows: Iterable[tuple[Sourced, Sequence[Cell]]]) -> Iterator[str]:
    """Each row with the rows of the ledger that it comes from; no table of nothing."""
    body = [f"<tr>{''.join(map(_cell, cells))}<td>{_rows(source)}</td></tr>" for source, cells in rows]
    if body:
        titles = "".join(_tag("th", escaped(title)) for title in (*head, "rows"))
        yield f'<div class="wide"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>'
        yield from body
        yield "</tbody></table></div>"


def _cell(cell: Cell) -> str:
    text, kind = (cell, "") if isinstance(cell, str) else cell
    return f'<td class="{kind}">{escaped(text)}</td>' if kind else _tag("td", escaped(text) or "–")


def _kind(word: str) -> Cell:
    return next(((word, kind) for kind, known in _KINDS.items() if word in known), word)


def _word(word: str, shown: str = "") -> str:
    kind = _kind(word)
    return f'<span class="{kind[1]}">{escaped(shown or word)}</span>' if isinstance(kind, tuple) else escaped(word)


def _list(items: Iterable[str]) -> str:
    lines = "\n".join(_tag("li", item) for item in items)
    return f"<ul>\n{lines}\n</ul>" if lines else ""


def _told(text: str) -> str:
    return escaped(shortened(text, _LINE))


def _code(text: str) -> str:
    return _tag("code", escaped(text))


def _rows(one: Sourced) -> str:
    return f'<span class="rows">[{words.rows(one)}]</span>'


def _tag(name: str, inside: str) -> str:
    return f"<{name}>{inside}</{name}>"


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
