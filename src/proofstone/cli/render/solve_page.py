"""Render a run of the control loop as a Markdown page, and plot its loss as text bars and as SVG.

Text of agents is escaped and never becomes markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from proofstone.agents.roles.models.solve_messages import Criterion, SubTaskOutcome
from proofstone.cli.render.solve_text import (
    FIGURES,
    build_round_table,
    describe_agents,
    describe_patch,
    explain_missing_plan,
    explain_rejected_merge,
    format_apply_command,
    format_effort,
    format_memory,
    format_signed,
    format_solve_cost,
    format_solve_headline,
    format_solve_output,
    list_failures,
    list_rejected_plans,
    loss_figures,
    shorten_visibly,
)
from proofstone.common.text import escape_control, fence_text, pluralize
from proofstone.documents.markdown import code_span, escape_markdown
from proofstone.documents.plot import LossPlot, PlotPoint
from proofstone.solve.models import SolveReport, SolveRound

_BAR: Final = 8
_EIGHTHS: Final = "▏▎▍▌▋▊▉█"
_NOTHING: Final = "no round has ended"


# The plot for a terminal.


def render_text_plot(report: SolveReport) -> str:
    """Return a plot with a row for each round and a bar for each figure."""
    if not report.rounds:
        return f"{_NOTHING}: there is nothing to plot"
    head = "  ".join(name.ljust(_BAR + 5) for name in FIGURES)
    wide = len(str(max(round_.number for round_ in report.rounds)))
    rows = [f"{round_.number:>{wide}}  {_bars(round_)}  {_direction(round_)}" for round_ in report.rounds]
    legend = [f"{name}  {meaning}" for name, meaning in FIGURES.items()]
    return "\n".join([f"{'':{wide}}  {head}".rstrip(), *rows, *legend])


def _bars(round: SolveRound) -> str:
    shares = loss_figures(round.directive.loss).values()
    return "  ".join(f"{share:.2f} {_bar(share).ljust(_BAR)}" for share in shares)


def _bar(share: float) -> str:
    """Return a bar in eighths of a character, at least one eighth if the share is not 0. Only L can exceed 1."""
    eighths = round(min(max(share, 0), 1) * _BAR * 8) or int(share > 0)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")


def _direction(round: SolveRound) -> str:
    directive = round.directive
    return f"{directive.gradient.arrow} {directive.directive}"


# The plot as SVG.


def render_svg_plot(report: SolveReport) -> str:
    """Return the plot as SVG."""
    title = _title(report)
    return LossPlot(
        points=[
            PlotPoint(_round_labels(solve_round), loss_figures(solve_round.directive.loss))
            for solve_round in report.rounds
        ],
        meanings=FIGURES,
        title=title,
        description=_describe_rounds(report.rounds),
        caption=(title, f"run {report.run_id}, policy {report.policy}"),
        empty=_NOTHING,
    ).draw()


def _round_labels(round: SolveRound) -> tuple[str, ...]:
    """Return the labels below a round: its number, the gradient and the decision."""
    directive = round.directive
    gradient = f"∇L {format_signed(directive.grad_l)} {directive.gradient.arrow}"
    return (f"round {round.number}", gradient, directive.directive)


def _title(report: SolveReport) -> str:
    return f"{format_solve_headline(report)}: {shorten_visibly(report.task.raw_input, 80)}"


def _describe_rounds(rounds: Sequence[SolveRound]) -> str:
    if not rounds:
        return f"{_NOTHING}."
    return f"The loss over {pluralize(len(rounds), 'round')}. {'; '.join(map(_describe_round, rounds))}."


def _describe_round(round: SolveRound) -> str:
    directive = round.directive
    shares = ", ".join(f"{name} {share:.2f}" for name, share in loss_figures(directive.loss).items())
    return f"round {round.number}: {shares}, {directive.gradient}, {directive.directive}"


def render_markdown(report: SolveReport) -> str:
    """Return the whole page."""
    summary = report.result.summary if report.result else report.question
    parts = [
        "# Control loop",
        f"**{format_solve_headline(report)}** after {format_effort(report)}: {escape_markdown(summary)}",
    ]
    for title, lines in _SECTIONS:
        if body := "\n".join(lines(report)).strip("\n"):
            parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def _render_request(report: SolveReport) -> Iterator[str]:
    yield fence_block(report.task.raw_input)
    yield ""
    yield f"Understood as: {escape_markdown(report.task.intent)}"
    if report.task.clarification:
        yield ""
        yield f"Answered since: {escape_markdown(report.task.clarification)}"


def _render_question(report: SolveReport) -> Iterator[str]:
    if report.question:
        yield escape_markdown(report.question)
        yield ""
        yield f"Answer with {code_span(report.next_step)}" if report.next_step else ""


def _render_result(report: SolveReport) -> Iterator[str]:
    if output := format_solve_output(report):
        yield fence_block(output)


def _render_partial(report: SolveReport) -> Iterator[str]:
    return _bullet_list(report.result.partial if report.result else ())


def _render_moves(report: SolveReport) -> Iterator[str]:
    return _bullet_list(report.result.next_moves if report.result else ())


def _render_trajectory(report: SolveReport) -> Iterator[str]:
    if not report.rounds:
        return
    head, *rows = build_round_table(report)
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(escape_markdown, row))} |" for row in rows)
    yield ""
    yield fence_block(render_text_plot(report))


def _render_rounds(report: SolveReport) -> Iterator[str]:
    for round_ in report.rounds:
        yield f"### Round {round_.number}"
        yield ""
        yield from _render_round(round_)
        yield ""


def _render_round(round: SolveRound) -> Iterator[str]:
    outcomes = {part.subtask_id: part for part in round.outcomes}
    for subtask in round.subtasks:
        outcome = outcomes.get(subtask.subtask_id)
        yield f"- {_outcome_status(outcome)}: {escape_markdown(subtask.intent)} (sequence {subtask.sequence})"
        yield from (f"  - wanted: {_describe_criterion(part)}" for part in subtask.success_criteria)
        yield from (f"  - failed: {escape_markdown(part)}" for part in _failure_lines(outcome))
    if missing := explain_missing_plan(round):
        yield f"- {escape_markdown(missing)}"
    if rejected := explain_rejected_merge(round):
        yield f"- {escape_markdown(rejected)}"
    yield (
        f"- decided: **{round.directive.directive}** (∇ {format_signed(round.nabla)}): "
        f"{escape_markdown(round.directive.rationale)}"
    )
    if blocked := (*round.directive.blocked_tools, *round.directive.blocked_targets):
        yield f"- not again: {', '.join(map(code_span, blocked))}"


def _outcome_status(outcome: SubTaskOutcome | None) -> str:
    return "not begun" if outcome is None else outcome.status.value


def _failure_lines(outcome: SubTaskOutcome | None) -> Iterable[str]:
    return () if outcome is None else list_failures(outcome)


def _describe_criterion(criterion: Criterion) -> str:
    how = f", by {code_span(criterion.command)}" if criterion.command else ""
    return f"{escape_markdown(criterion.criterion)} ({criterion.mode}{how})"


def _render_rejected_plans(report: SolveReport) -> Iterator[str]:
    return _bullet_list(list_rejected_plans(report))


def _render_changes(report: SolveReport) -> Iterator[str]:
    yield from (f"- {change.kind}: {code_span(change.path)}" for change in report.changed)
    if report.patch:
        yield ""
        yield f"{_capitalize(describe_patch(report))}: {code_span(format_apply_command(report))}"


def _render_details(report: SolveReport) -> Iterator[str]:
    yield f"- repository: {code_span(report.repository)}"
    yield f"- asked: {describe_agents(report.agents, code_span)}"
    yield f"- policy: {escape_markdown(report.policy)}"
    yield f"- cost: {format_solve_cost(report)}"
    yield f"- memory: {format_memory(report)}"
    yield f"- run: {code_span(report.run_id)}; {code_span(f'proofstone ledger show {report.run_id}')} shows all of it"
    yield from (f"- note: {escape_markdown(note)}" for note in report.notes)
    if report.next_step and not report.question:
        yield f"- next: {code_span(report.next_step)}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _bullet_list(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {escape_markdown(line)}" for line in lines)


def fence_block(text: str) -> str:
    """Return the text in a code fence that none of its lines can close."""
    return fence_text(escape_control(text), "text")


_SECTIONS: Final[tuple[tuple[str, Callable[[SolveReport], Iterable[str]]], ...]] = (
    ("What was asked for", _render_request),
    ("A question", _render_question),
    ("The result", _render_result),
    ("Done, and can be used", _render_partial),
    ("What you could do now", _render_moves),
    ("Changed files", _render_changes),
    ("The loss, round by round", _render_trajectory),
    ("Rounds", _render_rounds),
    ("Plans that were not taken", _render_rejected_plans),
    ("How it was made", _render_details),
)
