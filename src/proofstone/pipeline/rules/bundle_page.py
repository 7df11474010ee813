"""Build the page of a run: its result and its evidence, for Markdown and for a browser. Pure.

The story comes first: what was asked for, claimed, caught and committed, and the change itself. Then everything else.
Each line names the ledger rows that it comes from. An empty section says so where its absence could be taken for good
news (what was caught, regressions, overrides, known issues), and is left out elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from proofstone.agents.roles.models.solve_messages import Loss
from proofstone.documents.diff import ShownDiff
from proofstone.documents.html import write_html
from proofstone.documents.markdown import shorten_line
from proofstone.documents.markdown_page import write_markdown
from proofstone.documents.model import (
    Block,
    CodeBlock,
    DiffBlock,
    Document,
    Heading,
    Inline,
    Paragraph,
    Picture,
    Quote,
    Section,
    StyledText,
    Tone,
    bullets,
    code,
    faint,
    inline,
    strong,
    table,
)
from proofstone.documents.plot import LossPlot, PlotPoint
from proofstone.pipeline.models.bundle import BundleLoss, BundleRegression, EvidenceBundle, SourcedValue
from proofstone.pipeline.rules import bundle_words as words

_MAX_SPEC: Final = 100
_MAX_LINE: Final = 300
_TONES: Final = {
    Tone.GOOD: ("pass", "passed", "PASSED", "approve", "APPROVED", "high", "DONE", "shown", "judged"),
    Tone.BAD: (
        *("fail", "failed", "FAILED", "HALTED", "blocker", "critical", "FORCED", "BLOCKED", "low", "ERROR"),
        *("REJECTED", "unmet"),
    ),
    Tone.UNSURE: (
        *("unverifiable", "needs_revision", "NEEDS_HUMAN", "medium", "major", "SKIPPED", "NEEDS_REVISION"),
        "unjudged",
    ),
}
"""Words that have a colour. The word itself is shown too, for readers without colours."""
_FIGURES: Final = {
    "L": "the loss",
    "D": "how much failed",
    "P": "how much of it by the approach",
    "Ω": "how much of the tries and the time is used",
}


def render_bundle_page(bundle: EvidenceBundle) -> str:
    """Return the page as Markdown, without the diff and the plot."""
    return write_markdown(build_bundle_page(bundle))


def render_bundle_html(bundle: EvidenceBundle, diff: ShownDiff | None = None) -> str:
    """Return the page for a browser, with the diff that was committed."""
    return write_html(build_bundle_page(bundle, diff), _find_tone(words.format_outcome(bundle)) or Tone.UNSURE)


def build_bundle_page(bundle: EvidenceBundle, diff: ShownDiff | None = None) -> Document:
    """Return the page. Without `diff`, it has no section about the change itself."""
    story, rest = (
        tuple(Section(title, tuple(build(bundle))) for title, build in sections) for sections in (_STORY, _REST)
    )
    change = (Section("The change", tuple(_build_diff(diff))),) if diff is not None else ()
    return Document(
        title=f"Evidence bundle: {words.format_title(bundle)}",
        summary=tuple(_build_ending(bundle)),
        sections=(*story, *change, *rest),
    )


def _build_ending(bundle: EvidenceBundle) -> Iterator[Block]:
    ending = bundle.ending
    yield Paragraph(
        inline(
            _style_word(words.format_outcome(bundle)),
            f": {ending.reason}." if ending.reason else ".",
            " Confidence: ",
            _style_word(words.format_confidence(bundle)),
            ".",
        )
    )
    for override in bundle.overrides:
        warning = f"WARNING: {override.task} was set aside ({override.action}) by {override.by}: {override.reason}"
        yield Paragraph(inline(strong(warning, Tone.BAD)))
    if ending.reasons:
        yield Paragraph(inline("Why the confidence is not high:"))
        yield from bullets(inline(_shorten(str(reason))) for reason in ending.reasons)
    yield Paragraph(inline(faint("Rows are rows of the ledger; the outcome is from "), _rows(ending), "."))


def _build_request(bundle: EvidenceBundle) -> Iterator[Block]:
    subject = bundle.subject
    yield Quote(subject.asked)
    times = f", {words.format_time(subject.started_at)} to {words.format_time(subject.updated_at)} "
    yield Paragraph(inline("Run ", code(subject.run_id), times, _rows(subject)))


def _build_circumstances(bundle: EvidenceBundle) -> Iterator[Block]:
    """Build where and by whom the run was carried out. Roles that the same agent has are listed together."""
    subject = bundle.subject
    facts = [
        inline("repository: ", code(subject.repository), ", branch ", code(subject.branch)),
    ]
    if subject.lane:
        reason = f": {subject.lane_reason}" if subject.lane_reason else ""
        facts.append(inline(f"lane: {subject.lane}{reason}; mode: {subject.mode}"))
    roles: dict[str, list[str]] = {}
    for role, spec in subject.agents.items():
        roles.setdefault(spec, []).append(role)
    facts += [inline(f"{', '.join(names)}: ", code(shorten_line(spec, _MAX_SPEC))) for spec, names in roles.items()]
    facts += [inline(f"note: {note}") for note in subject.notes]
    for child in bundle.children:
        state = f" {child.outcome or 'not finished'}{f', {child.reason}' if child.reason else ''} "
        facts.append(inline(f"{child.kind} {child.iteration}: ", code(child.run_id), state, _rows(child)))
    yield from bullets(facts)


def _build_claims(bundle: EvidenceBundle) -> Iterator[Block]:
    yield from table(
        ("task", "attempt", "the executor said", "in its words", "exit code it claims", "rows"),
        (
            (
                claim.task,
                str(claim.attempt),
                strong(claim.status),  # no colour: a claim proves nothing
                _shorten(claim.statement),
                "" if claim.exit_code is None else str(claim.exit_code),
                words.format_rows(claim),
            )
            for claim in bundle.claims
        ),
    )


def _build_caught(bundle: EvidenceBundle) -> Iterator[Block]:
    """Build what the engine, the reviewers and the auditor stopped."""
    caught: list[Inline] = []
    told: set[int] = set()
    for claim in bundle.claims:
        if claim.caught:
            endings = [issue.how for issue in bundle.fixed_issues if set(issue.rows) & set(claim.rows)]
            then = f"; {endings[0]} " if endings else " "
            said = f" – the executor had said {claim.status}{then}"
            caught.append(
                inline(f"{claim.task}, attempt {claim.attempt}: ", strong(_shorten(claim.caught), Tone.BAD), said)
                + inline(_rows(claim))
            )
            told |= set(claim.rows)
    caught += [
        inline(f"{finding.kind} {finding.rule}: {_shorten(finding.detail)} ", strong(f"Caught: {finding.caught}"), " ")
        + inline(_rows(finding))
        for finding in bundle.audit
        if finding.caught
    ]
    for issue in (issue for issue in bundle.fixed_issues if not told & set(issue.rows)):
        severity = f"{issue.severity}, " if issue.severity else ""
        text = f"{severity}{issue.source}: {_shorten(issue.title)} ({issue.how}) "
        caught.append(inline(text, _rows(issue)))
    yield from bullets(caught) or (Paragraph(inline("Nothing had to be stopped or put right.")),)


def _build_commits(bundle: EvidenceBundle) -> Iterator[Block]:
    facts = [inline("base: ", code(bundle.subject.base_commit))]
    for commit in bundle.commits:
        owner = f" ({commit.task}) " if commit.task else " "
        facts.append(inline("commit: ", code(commit.commit), ", tree ", code(commit.tree), owner, _rows(commit)))
    if not bundle.commits:
        facts.append(inline("nothing was committed"))
    yield from bullets(facts)
    if bundle.commits:
        branch = code(bundle.subject.branch)
        yield Paragraph(inline("On ", branch, ", or wherever you have merged it, this takes it back:"))
        yield CodeBlock(bundle.rollback, "sh")


def _build_diff(diff: ShownDiff) -> Iterator[Block]:
    if diff.problem:
        yield Paragraph(inline(f"The diff cannot be shown: {diff.problem}."))
    else:
        yield DiffBlock(diff.files, (), diff.left_out)


def _build_tasks(bundle: EvidenceBundle) -> Iterator[Block]:
    yield from table(
        ("task", "name", "state", "attempts", "confidence", "rows"),
        (
            (
                words.format_task(task, bundle),
                task.name,
                _style_word(task.state.value),
                str(task.attempts),
                _style_word(task.confidence.value if task.confidence else ""),
                words.format_rows(task),
            )
            for task in bundle.tasks
        ),
    )
    for task in bundle.tasks:
        if task.confidence and task.reasons:
            name = words.format_task(task, bundle)
            yield Paragraph(inline(f"Why the confidence in {name} is {task.confidence.value}:"))
            yield from bullets(inline(_shorten(str(reason))) for reason in task.reasons)


def _build_criteria(bundle: EvidenceBundle) -> Iterable[Block]:
    return table(
        ("task", "criterion", "status", "check", "command", "result", "rows"),
        (
            (
                criterion.task,
                _shorten(criterion.criterion),
                _style_word(criterion.status.value),
                criterion.check or "",
                inline(code(shorten_line(criterion.command, _MAX_SPEC))) if criterion.command else "",
                _shorten(criterion.result),
                words.format_rows(criterion),
            )
            for criterion in bundle.criteria
        ),
    )


def _build_added(bundle: EvidenceBundle) -> Iterable[Block]:
    lines: list[Inline] = []
    for requirement in bundle.requirements:
        state: str | StyledText = "met" if requirement.is_met else strong("not met", Tone.BAD)
        detail = f": {requirement.detail}" if requirement.detail else ""
        text = f": {_shorten(requirement.text)}{detail} "
        lines.append(inline("requirement, ", state, text, _rows(requirement)))
    for task in bundle.tasks:
        name = words.format_task(task, bundle)
        lines += [inline(f"file of {name}: {_shorten(added)} ", _rows(task)) for added in task.added_files]
    return bullets(lines)


def _build_gaps(bundle: EvidenceBundle) -> Iterable[Block]:
    return bullets(inline(f"{_shorten(gap.text)} ", _rows(gap)) for gap in bundle.gaps)


def _build_audit(bundle: EvidenceBundle) -> Iterable[Block]:
    def describe(rule: str, where: str, detail: str, caught: str) -> Inline:
        ending = (strong("Caught"), f": {caught}. ") if caught else (strong("Not stopped.", Tone.BAD), " ")
        return inline(f"{rule}, {where}: {_shorten(detail)} ", *ending)

    return bullets(
        describe(
            f"{finding.kind} {finding.rule}",
            " ".join(filter(None, (finding.run_id, finding.task, finding.role))),
            finding.detail,
            finding.caught,
        )
        + inline(_rows(finding))
        for finding in bundle.audit
    ) or (Paragraph(inline("The auditor found nothing.")),)


def _build_checks(bundle: EvidenceBundle) -> Iterator[Block]:
    for tree in bundle.checks:
        yield Heading(words.format_task(tree, bundle))
        yield Paragraph(inline(f"{words.format_pass_count(tree)}, attempt {tree.attempt}, tree ", code(tree.tree)))
        yield from table(
            ("check", "before", "after", "command", "remark", "rows"),
            (
                (
                    line.name,
                    words.format_before(line),
                    _style_word(line.after.value),
                    inline(code(shorten_line(line.command, _MAX_SPEC))) if line.command else "",
                    words.format_remark(line),
                    words.format_rows(line),
                )
                for line in tree.lines
            ),
        )


def _build_regressions(bundle: EvidenceBundle) -> Iterable[Block]:
    def describe(regression: BundleRegression) -> Inline:
        state = strong("stands", Tone.BAD) if regression.stands else strong("put right since", Tone.GOOD)
        return inline(state, f", {regression.task}: {_shorten(regression.what)} ", _rows(regression))

    return bullets(map(describe, bundle.regressions)) or (Paragraph(inline("None was seen.")),)


def _build_reviews(bundle: EvidenceBundle) -> Iterator[Block]:
    yield from table(
        ("scope", "focus", "round", "verdict", "findings", "model", "rows"),
        (
            (
                review.scope,
                review.focus.value,
                str(review.round),
                _style_word(review.verdict.value) if review.verdict else "nobody answered",
                words.format_findings(review),
                review.model,
                words.format_rows(review),
            )
            for review in bundle.reviews
        ),
    )
    if panel := words.format_panel(bundle):
        yield Paragraph(inline(panel))
    verdicts = [
        inline(f"{words.format_task(task, bundle)}: ", code(shorten_line(verdict.by or "architect", _MAX_SPEC)))
        + inline(
            " says ", _style_word(verdict.verdict.value), ", confidence ", _style_word(verdict.confidence.value), " "
        )
        + inline(_rows(task))
        for task in bundle.tasks
        for verdict in task.verdicts
    ]
    yield from bullets(verdicts)
    if not bundle.reviews and not verdicts:
        yield Paragraph(inline("Nobody reviewed it."))


def _build_losses(bundle: EvidenceBundle) -> Iterator[Block]:
    if bundle.losses:
        yield Picture(_draw_losses(bundle.losses))
    yield from table(
        ("of", "number", "L", "D", "P", "Ω", "then", "why", "rows"),
        (
            (
                loss.of,
                str(loss.number),
                *words.format_loss(loss),
                shorten_line(loss.text or loss.direction.rationale, _MAX_SPEC),
                words.format_rows(loss),
            )
            for loss in bundle.losses
        ),
    )


def _draw_losses(losses: Sequence[BundleLoss]) -> str:
    return LossPlot(
        points=[
            PlotPoint(
                (_name_attempt(loss), f"{loss.direction.gradient.arrow} {loss.direction.directive}"),
                _read_figures(loss.direction.loss),
                series=loss.of,
            )
            for loss in losses
        ],
        meanings=_FIGURES,
        title="The loss, attempt by attempt",
        description="; ".join(
            f"{_name_attempt(loss)}: L {loss.direction.loss.L:.2f}, {loss.direction.directive}" for loss in losses
        ),
    ).draw()


def _read_figures(loss: Loss) -> dict[str, float]:
    return {"L": loss.L, "D": loss.D, "P": loss.P, "Ω": loss.Omega}


def _name_attempt(loss: BundleLoss) -> str:
    return f"{loss.of} #{loss.number}"


def _build_decisions(bundle: EvidenceBundle) -> Iterable[Block]:
    lines: list[Inline] = []
    for override in bundle.overrides:
        kind = ", ".join(filter(None, (override.action, override.category)))
        when = words.format_time(override.at)
        text = f" of {override.task}: {kind}, by {override.by} at {when}: {_shorten(override.reason)} "
        lines.append(inline(strong("override", Tone.BAD), text, _rows(override)))
    for approval in bundle.approvals:
        owner = f" of {approval.task}" if approval.task else ""
        comment = f": {_shorten(approval.words)}" if approval.words else ""
        when = words.format_time(approval.at)
        text = f"{owner}: {approval.option}, by {words.format_decider(approval)} at {when}{comment} "
        lines.append(inline(code(approval.gate), text, _rows(approval)))
    if not bundle.overrides:
        lines.append(inline("nothing was overridden"))
    return bullets(lines)


def _build_blast_radius(bundle: EvidenceBundle) -> Iterable[Block]:
    return bullets(
        inline(f"{file.risk} {file.change} ".replace("  ", " "), code(file.path))
        + inline(" (by its path alone) " if file.by_path_alone else " ", _rows(file))
        for file in bundle.changed
    )


def _build_known_issues(bundle: EvidenceBundle) -> Iterable[Block]:
    return bullets(
        inline(_style_word(issue.severity.value), f", {issue.source}: {_shorten(issue.title)} ")
        + tuple(span for path in issue.where for span in (code(path), StyledText(" ")))
        + inline(_rows(issue))
        for issue in bundle.known_issues
    ) or (Paragraph(inline("None is known.")),)


def _build_costs(bundle: EvidenceBundle) -> Iterator[Block]:
    yield from table(
        ("role", "model", "dispatches", "model calls", "tokens", "tool calls", "time", "price", "rows"),
        (
            (cost.role, cost.model, *words.format_cost(cost), words.format_price(cost), words.format_rows(cost))
            for cost in bundle.costs
        ),
    )
    total = f"In all: {words.format_total(bundle)}." if bundle.costs else "No agent that counts its tokens was asked."
    yield Paragraph(inline(total))
    if bundle.verification is not None:
        text = f"{words.format_supervision_cost(bundle.verification)} "
        yield Paragraph(inline(text, _rows(bundle.verification), "."))


def _build_timeline(bundle: EvidenceBundle) -> Iterable[Block]:
    return table(
        ("began", "step", "agent", "took", "status", "retries", "rows"),
        (
            (
                words.format_time(step.started_at),
                words.format_step(step),
                words.format_agent(step),
                words.format_step_duration(step),
                _style_word(step.status.value),
                str(step.retries),
                words.format_rows(step),
            )
            for step in bundle.timeline
        ),
    )


def _build_proof(bundle: EvidenceBundle) -> Iterator[Block]:
    head, run = bundle.head, bundle.subject.run_id
    ledger = code(head.ledger_id)
    yield Paragraph(inline("Everything here is from the ledger ", ledger, f" up to row {head.seq}, whose hash is:"))
    yield CodeBlock(head.hash)
    yield from bullets(
        (
            inline(code("proofstone ledger verify"), ": that nobody has changed the record since"),
            inline(code(f"proofstone ledger show {run}"), ": every row"),
            inline(code(f"proofstone bundle {run}"), ": this page again"),
        )
    )


def _find_tone(word: str) -> Tone | None:
    return next((tone for tone, known in _TONES.items() if word in known), None)


def _style_word(word: str) -> StyledText:
    """Return a word that may have a colour."""
    return strong(word, _find_tone(word)) if word else StyledText("")


def _shorten(text: str) -> str:
    return shorten_line(text, _MAX_LINE)


def _rows(sourced: SourcedValue) -> StyledText:
    return faint(f"({'rows' if len(sourced.rows) > 1 else 'row'} {words.format_rows(sourced)})")


_Build = Callable[[EvidenceBundle], Iterable[Block]]
_STORY: Final[tuple[tuple[str, _Build], ...]] = (
    ("What was asked for", _build_request),
    ("What was claimed", _build_claims),
    ("What was caught", _build_caught),
    ("What was committed, and how to take it back", _build_commits),
)
_REST: Final[tuple[tuple[str, _Build], ...]] = (
    ("Tasks", _build_tasks),
    ("Criteria, and what shows them", _build_criteria),
    ("Added while it ran", _build_added),
    ("Overridden, cut short, or looked at by nobody", _build_gaps),
    ("Known issues", _build_known_issues),
    ("Checks, before and after", _build_checks),
    ("Regressions", _build_regressions),
    ("Reviews", _build_reviews),
    ("Overrides and approvals", _build_decisions),
    ("What the auditor found", _build_audit),
    ("Blast radius", _build_blast_radius),
    ("The loss, attempt by attempt", _build_losses),
    ("How it was run", _build_circumstances),
    ("Cost", _build_costs),
    ("Timeline", _build_timeline),
    ("How to check it", _build_proof),
)
