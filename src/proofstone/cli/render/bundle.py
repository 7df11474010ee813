"""Render the evidence bundle as one HTML page, with a plot of the loss of each task and of the run.

The page loads nothing, runs nothing and escapes everything. It can be read in light and dark mode, narrow and wide, and
can be printed. Its content security policy forbids scripts and external resources, in case text ever slipped through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from proofstone.agents.roles.models.solve_messages import Loss
from proofstone.documents.markdown import shorten_line
from proofstone.documents.svg import escape_xml, svg_line, svg_picture, svg_text
from proofstone.pipeline.models.bundle import (
    BundleLoss,
    BundleRegression,
    CheckComparison,
    EvidenceBundle,
    SourcedValue,
    TreeChecks,
)
from proofstone.pipeline.rules import bundle_words as words

_FIGURES: Final = {
    "L": ("the loss", "#000", ""),
    "D": ("how much failed", "#c0392b", "6 3"),
    "P": ("how much of it by the approach", "#8e5ea2", "2 3"),
    "Ω": ("how much of the tries and the time is used", "#3a86c8", "8 3 2 3"),
}
"""The meaning, colour and dash pattern of each figure. The dashes distinguish them without colours."""
_LEFT, _TOP, _BOTTOM, _HEIGHT = 50, 20, 200, 320
_POINT_DISTANCE, _MIN_WIDTH = 110, 480


def render_loss_plot(losses: Sequence[BundleLoss]) -> str:
    """Return the plot of the loss as SVG."""
    width = max(_MIN_WIDTH, _LEFT + _POINT_DISTANCE * len(losses) + 20)
    description = "; ".join(
        f"{_attempt_name(loss)}: L {loss.direction.loss.L:.2f}, {loss.direction.directive}" for loss in losses
    )
    return svg_picture(width, _HEIGHT, _parts(losses, width), title="The loss, attempt by attempt", told=description)


def _parts(losses: Sequence[BundleLoss], width: float) -> Iterator[str]:
    most = max((1.0, *(loss.direction.loss.L for loss in losses)))
    for step in range(5):
        y = _y(step / 4)
        yield svg_line(_LEFT, y, width - 20, y, "#ddd" if step else "#000")
        yield svg_text(_LEFT - 6, y + 4, f"{most * step / 4:.3g}", anchor="end")
    for number, loss_seen in enumerate(losses):
        yield svg_text(_x(number), _BOTTOM + 16, _attempt_name(loss_seen), anchor="middle")
        yield svg_text(
            _x(number),
            _BOTTOM + 30,
            f"{loss_seen.direction.gradient.arrow} {loss_seen.direction.directive}",
            anchor="middle",
        )
    for name in _FIGURES:
        yield from _trajectories(name, losses, most)
    for number, (name, (meaning, colour, dashes)) in enumerate(_FIGURES.items()):
        y = _BOTTOM + 56 + 15 * number
        yield svg_line(_LEFT, y - 4, _LEFT + 30, y - 4, colour, _line_width(name), dashes=dashes)
        yield svg_text(_LEFT + 38, y, f"{name}  {meaning}")


def _trajectories(name: str, losses: Sequence[BundleLoss], most: float) -> Iterator[str]:
    """Draw one figure. Points of the same task are joined, points of different tasks are not."""
    _, colour, dashes = _FIGURES[name]
    series: dict[str, list[tuple[float, float]]] = {}
    for number, loss in enumerate(losses):
        point = _x(number), _y(_loss_figures(loss.direction.loss)[name] / most)
        series.setdefault(loss.of, []).append(point)
    for points in series.values():
        for (x1, y1), (x2, y2) in pairwise(points):
            yield svg_line(x1, y1, x2, y2, colour, _line_width(name), dashes=dashes)
        for x, y in points:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 * _line_width(name):.1f}" fill="none" stroke="{colour}"/>'


def _loss_figures(loss: Loss) -> dict[str, float]:
    return {"L": loss.L, "D": loss.D, "P": loss.P, "Ω": loss.Omega}


def _attempt_name(loss: BundleLoss) -> str:
    return f"{loss.of} #{loss.number}"


def _line_width(name: str) -> float:
    return 2.5 if name == "L" else 1.5


def _x(number: int) -> float:
    return _LEFT + _POINT_DISTANCE * (number + 0.5)


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)


TableCell = str | tuple[str, str]
"""Text, or text with a CSS class. Neither is markup."""

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
"""Words that have a colour. The word itself is shown too, for readers without colours."""
_MAX_SPEC: Final = 100
_MAX_LINE: Final = 300


def render_html(bundle: EvidenceBundle) -> str:
    """Return the whole page."""
    title = f"Evidence bundle: {words.format_title(bundle)}"
    parts = [_tag("h1", escape_xml(title)), *_render_ending(bundle)]
    for name, section in _SECTIONS:
        if body := "\n".join(section(bundle)):
            parts.append(f"<section>\n{_tag('h2', escape_xml(name))}\n{body}\n</section>")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_xml(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _render_ending(bundle: EvidenceBundle) -> Iterator[str]:
    ending = bundle.ending
    outcome, confidence = _styled_word(words.format_outcome(bundle)), _styled_word(words.format_confidence(bundle))
    why = f": {escape_xml(ending.reason)}" if ending.reason else ""
    yield _tag("p", f"{outcome}{why}. Confidence: {confidence}. {_row_reference(ending)}")
    for override in bundle.overrides:
        warning = f"{override.task} was set aside ({override.action}) by {override.by}: {override.reason}"
        yield _tag("p", f'<span class="bad">WARNING: {escape_xml(warning)}</span>')
    if ending.reasons:
        yield f"<p>Why the confidence is no higher:</p>\n{_list(map(_short_text, ending.reasons))}"
    if ending.raises:
        yield f"<p>What would raise it:</p>\n{_list(map(_short_text, ending.raises))}"


def _render_request(bundle: EvidenceBundle) -> Iterator[str]:
    subject = bundle.subject
    yield _tag("blockquote", "\n".join(escape_xml(line) for line in subject.asked.strip().splitlines()))
    facts = [
        f"run {_code(subject.run_id)}, {escape_xml(words.format_time(subject.started_at))} to "
        f"{escape_xml(words.format_time(subject.updated_at))} {_row_reference(subject)}",
        f"repository {_code(subject.repository)}, branch {_code(subject.branch)}",
    ]
    if subject.lane:
        facts.append(escape_xml(f"lane {subject.lane}: {subject.lane_reason}; mode {subject.mode}"))
    facts += [f"{escape_xml(role)}: {_code(shorten_line(specs, _MAX_SPEC))}" for role, specs in subject.agents.items()]
    facts += [f"note: {escape_xml(note)}" for note in subject.notes]
    for child in bundle.children:
        state = f"{child.outcome or 'not finished'}{f', {child.reason}' if child.reason else ''}"
        facts.append(
            f"{child.kind} {child.iteration}: {_code(child.run_id)} {escape_xml(state)} {_row_reference(child)}"
        )
    yield _list(facts)


def _render_commits(bundle: EvidenceBundle) -> Iterator[str]:
    commits = [
        f"commit {_code(commit.commit)}, tree {_code(commit.tree)} {escape_xml(commit.task)} {_row_reference(commit)}"
        for commit in bundle.commits
    ]
    yield _list([f"base {_code(bundle.subject.base_commit)}", *(commits or ["nothing was committed"])])
    if commits:
        yield f"<p>On {_code(bundle.subject.branch)}, or wherever you have merged it, this takes it back:</p>"
        yield _tag("pre", escape_xml(bundle.rollback))


def _render_tasks(bundle: EvidenceBundle) -> Iterator[str]:
    yield from _table(
        ("task", "name", "state", "attempts", "confidence"),
        (
            (
                task,
                (
                    words.format_task(task, bundle),
                    task.name,
                    _classify_word(task.state.value),
                    str(task.attempts),
                    _classify_word(task.confidence.value if task.confidence else ""),
                ),
            )
            for task in bundle.tasks
        ),
    )


def _render_checks(bundle: EvidenceBundle) -> Iterator[str]:
    for tree in bundle.checks:
        yield _tag("h3", escape_xml(words.format_task(tree, bundle)))
        yield f"<p>{escape_xml(words.format_pass_count(tree))}, attempt {tree.attempt}, tree {_code(tree.tree)}</p>"
        yield from _table(("check", "before", "after", "command", "remark"), _check_rows(tree))


def _check_rows(tree: TreeChecks) -> Iterator[tuple[CheckComparison, Sequence[TableCell]]]:
    for row in tree.lines:
        command = shorten_line(row.command, _MAX_SPEC)
        yield (
            row,
            (row.name, words.format_before(row), _classify_word(row.after.value), command, words.format_remark(row)),
        )


def _render_regressions(bundle: EvidenceBundle) -> Iterator[str]:
    def describe(regression: BundleRegression) -> str:
        state = _styled_word("failed", "stands") if regression.stands else _styled_word("passed", "put right since")
        return f"{state}, {escape_xml(regression.task)}: {_short_text(regression.what)} {_row_reference(regression)}"

    yield _list(map(describe, bundle.regressions)) or "<p>None was seen.</p>"


def _render_reviews(bundle: EvidenceBundle) -> Iterator[str]:
    yield from _table(
        ("scope", "focus", "round", "verdict", "findings", "model"),
        (
            (
                review,
                (
                    review.scope,
                    review.focus.value,
                    str(review.round),
                    _classify_word(review.verdict.value) if review.verdict else "nobody answered",
                    words.format_findings(review),
                    review.model,
                ),
            )
            for review in bundle.reviews
        ),
    )
    if panel := words.format_panel(bundle):
        yield _tag("p", escape_xml(panel))
    verdicts = [
        f"{escape_xml(words.format_task(task, bundle))}: "
        f"{_code(shorten_line(verdict.by or 'architect', _MAX_SPEC))} says "
        f"{_styled_word(verdict.verdict.value)}, confidence {_styled_word(verdict.confidence.value)} "
        f"{_row_reference(task)}"
        for task in bundle.tasks
        for verdict in task.verdicts
    ]
    yield _list(verdicts)
    if not bundle.reviews and not verdicts:
        yield "<p>Nobody reviewed it.</p>"


def _render_losses(bundle: EvidenceBundle) -> Iterator[str]:
    if bundle.losses:
        yield f'<div class="wide">{render_loss_plot(bundle.losses)}</div>'
    yield from _table(
        ("of", "number", "L", "D", "P", "Ω", "then", "why"),
        (
            (
                loss,
                (
                    loss.of,
                    str(loss.number),
                    *words.format_loss(loss),
                    shorten_line(loss.text or loss.direction.rationale, _MAX_SPEC),
                ),
            )
            for loss in bundle.losses
        ),
    )


def _render_decisions(bundle: EvidenceBundle) -> Iterator[str]:
    lines = [
        f"{_styled_word('failed', 'override')} of {escape_xml(override.task)}: "
        f"{escape_xml(', '.join(filter(None, (override.action, override.category))))}, by {escape_xml(override.by)} at "
        f"{escape_xml(words.format_time(override.at))}: {_short_text(override.reason)} {_row_reference(override)}"
        for override in bundle.overrides
    ] or ["nothing was overridden"]
    for approval in bundle.approvals:
        subject = f" of {escape_xml(approval.task)}" if approval.task else ""
        note = f": {_short_text(approval.words)}" if approval.words else ""
        lines.append(
            f"{_code(approval.gate)}{subject}: {escape_xml(approval.option)}, by "
            f"{escape_xml(words.format_decider(approval))} at "
            f"{escape_xml(words.format_time(approval.at))}{note} {_row_reference(approval)}"
        )
    yield _list(lines)


def _render_blast_radius(bundle: EvidenceBundle) -> Iterator[str]:
    yield _list(
        f"{change.risk} {escape_xml(change.change)} {_code(change.path)}"
        f"{' (by its path alone)' if change.by_path_alone else ''} {_row_reference(change)}"
        for change in bundle.changed
    )


def _render_known_issues(bundle: EvidenceBundle) -> Iterator[str]:
    yield (
        _list(
            f"{_styled_word(issue.severity.value)}, {escape_xml(issue.source)}: {_short_text(issue.title)} "
            f"{' '.join(map(_code, issue.where))} {_row_reference(issue)}"
            for issue in bundle.known_issues
        )
        or "<p>None is known.</p>"
    )


def _render_fixed_issues(bundle: EvidenceBundle) -> Iterator[str]:
    yield _list(
        f"{escape_xml(f'{issue.severity}, ' if issue.severity else '')}{escape_xml(issue.source)}: "
        f"{_short_text(issue.title)} ({escape_xml(issue.how)}) {_row_reference(issue)}"
        for issue in bundle.fixed_issues
    )


def _render_costs(bundle: EvidenceBundle) -> Iterator[str]:
    yield from _table(
        ("role", "model", "dispatches", "model calls", "tokens", "tool calls", "time", "price"),
        ((cost, (cost.role, cost.model, *words.format_cost(cost), words.format_price(cost))) for cost in bundle.costs),
    )
    total = f"In all: {words.format_total(bundle)}." if bundle.costs else "No agent that counts its tokens was asked."
    yield _tag("p", escape_xml(total))
    if bundle.verification is not None:
        yield _tag(
            "p",
            f"{escape_xml(words.format_supervision_cost(bundle.verification))} {_row_reference(bundle.verification)}.",
        )


def _render_timeline(bundle: EvidenceBundle) -> Iterator[str]:
    yield from _table(
        ("began", "step", "agent", "took", "status", "retries"),
        (
            (
                entry,
                (
                    words.format_time(entry.started_at),
                    words.format_step(entry),
                    words.format_agent(entry),
                    words.format_step_duration(entry),
                    _classify_word(entry.status.value),
                    str(entry.retries),
                ),
            )
            for entry in bundle.timeline
        ),
    )


def _render_proof(bundle: EvidenceBundle) -> Iterator[str]:
    head, run = bundle.head, bundle.subject.run_id
    yield f"<p>Everything here is from the ledger {_code(head.ledger_id)} up to row {head.seq}, whose hash is:</p>"
    yield _tag("pre", escape_xml(head.hash))
    yield _list(
        (
            f"{_code('proofstone ledger verify')}: that nobody has changed the record since",
            f"{_code(f'proofstone ledger show {run}')}: every row",
            f"{_code(f'proofstone bundle {run}')}: this page again, as text",
        )
    )


# Building blocks of the page. Everything below takes text and returns markup.


def _table(head: Sequence[str], rows: Iterable[tuple[SourcedValue, Sequence[TableCell]]]) -> Iterator[str]:
    """Yield a table in which each row names its rows of the ledger. Yield nothing without rows."""
    body = [f"<tr>{''.join(map(_cell, cells))}<td>{_row_reference(source)}</td></tr>" for source, cells in rows]
    if body:
        titles = "".join(_tag("th", escape_xml(title)) for title in (*head, "rows"))
        yield f'<div class="wide"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>'
        yield from body
        yield "</tbody></table></div>"


def _cell(cell: TableCell) -> str:
    text, kind = (cell, "") if isinstance(cell, str) else cell
    return f'<td class="{kind}">{escape_xml(text)}</td>' if kind else _tag("td", escape_xml(text) or "–")


def _classify_word(word: str) -> TableCell:
    return next(((word, kind) for kind, known in _KINDS.items() if word in known), word)


def _styled_word(word: str, shown: str = "") -> str:
    kind = _classify_word(word)
    return (
        f'<span class="{kind[1]}">{escape_xml(shown or word)}</span>' if isinstance(kind, tuple) else escape_xml(word)
    )


def _list(items: Iterable[str]) -> str:
    lines = "\n".join(_tag("li", item) for item in items)
    return f"<ul>\n{lines}\n</ul>" if lines else ""


def _short_text(text: str) -> str:
    return escape_xml(shorten_line(text, _MAX_LINE))


def _code(text: str) -> str:
    return _tag("code", escape_xml(text))


def _row_reference(source: SourcedValue) -> str:
    return f'<span class="rows">[{words.format_rows(source)}]</span>'


def _tag(name: str, content: str) -> str:
    return f"<{name}>{content}</{name}>"


_SECTIONS: Final[tuple[tuple[str, Callable[[EvidenceBundle], Iterable[str]]], ...]] = (
    ("What was asked for", _render_request),
    ("What was committed, and how to take it back", _render_commits),
    ("Tasks", _render_tasks),
    ("Checks, before and after", _render_checks),
    ("Regressions", _render_regressions),
    ("Reviews", _render_reviews),
    ("The loss, attempt by attempt", _render_losses),
    ("Overrides and approvals", _render_decisions),
    ("Blast radius", _render_blast_radius),
    ("Known issues", _render_known_issues),
    ("Found, and put right before the end", _render_fixed_issues),
    ("Cost", _render_costs),
    ("Timeline", _render_timeline),
    ("How to check it", _render_proof),
)
