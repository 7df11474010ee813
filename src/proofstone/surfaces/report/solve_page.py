"""What came of a goal, as a page: everything in it, in Markdown. What agents wrote stays text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from proofstone.contracts.solve.messages import Criterion, SubTaskOutcome
from proofstone.contracts.solve.report import SolveReport, SolveRound
from proofstone.core.gate.page_text import code, prose
from proofstone.surfaces.cli.text import printable
from proofstone.surfaces.report.solve_plot import text_plot
from proofstone.surfaces.report.solve_words import (
    apply_command,
    cost,
    effort,
    failures,
    headline,
    memory,
    missing_plan,
    output_text,
    rejected_merge,
    rejected_plans,
    serving,
    signed,
    table,
    taking_in,
)


def markdown(report: SolveReport) -> str:
    said = report.result.summary if report.result else report.question
    parts = ["# Control loop", f"**{headline(report)}** after {effort(report)}: {prose(said)}"]
    for title, lines in _SECTIONS:
        if body := "\n".join(lines(report)).strip("\n"):
            parts += [f"## {title}", body]
    return "\n\n".join(parts) + "\n"


def _asked(report: SolveReport) -> Iterator[str]:
    yield fenced(report.task.raw_input)
    yield ""
    yield f"Understood as: {prose(report.task.intent)}"
    if report.task.clarification:
        yield ""
        yield f"Answered since: {prose(report.task.clarification)}"


def _question(report: SolveReport) -> Iterator[str]:
    if report.question:
        yield prose(report.question)
        yield ""
        yield f"Answer with {code(report.next_step)}" if report.next_step else ""


def _result(report: SolveReport) -> Iterator[str]:
    if output := output_text(report):
        yield fenced(output)


def _partial(report: SolveReport) -> Iterator[str]:
    return _list(report.result.partial if report.result else ())


def _moves(report: SolveReport) -> Iterator[str]:
    return _list(report.result.next_moves if report.result else ())


def _trajectory(report: SolveReport) -> Iterator[str]:
    if not report.rounds:
        return
    head, *rows = table(report)
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(prose, row))} |" for row in rows)
    yield ""
    yield fenced(text_plot(report))


def _rounds(report: SolveReport) -> Iterator[str]:
    for one in report.rounds:
        yield f"### Round {one.number}"
        yield ""
        yield from _round(one)
        yield ""


def _round(round: SolveRound) -> Iterator[str]:
    outcomes = {one.subtask_id: one for one in round.outcomes}
    for subtask in round.subtasks:
        outcome = outcomes.get(subtask.subtask_id)
        yield f"- {_ended(outcome)}: {prose(subtask.intent)} (sequence {subtask.sequence})"
        yield from (f"  - wanted: {_criterion(one)}" for one in subtask.success_criteria)
        yield from (f"  - failed: {prose(one)}" for one in _failed(outcome))
    if missing := missing_plan(round):
        yield f"- {prose(missing)}"
    if rejected := rejected_merge(round):
        yield f"- {prose(rejected)}"
    yield f"- decided: **{round.directive.directive}** (∇ {signed(round.nabla)}): {prose(round.directive.rationale)}"
    if blocked := (*round.directive.blocked_tools, *round.directive.blocked_targets):
        yield f"- not again: {', '.join(map(code, blocked))}"


def _ended(outcome: SubTaskOutcome | None) -> str:
    return "not begun" if outcome is None else outcome.status.value


def _failed(outcome: SubTaskOutcome | None) -> Iterable[str]:
    return () if outcome is None else failures(outcome)


def _criterion(criterion: Criterion) -> str:
    how = f", by {code(criterion.command)}" if criterion.command else ""
    return f"{prose(criterion.criterion)} ({criterion.mode}{how})"


def _rejected(report: SolveReport) -> Iterator[str]:
    return _list(rejected_plans(report))


def _changed(report: SolveReport) -> Iterator[str]:
    yield from (f"- {one.kind}: {code(one.path)}" for one in report.changed)
    if report.patch:
        yield ""
        yield f"{_sentence(taking_in(report))}: {code(apply_command(report))}"


def _made(report: SolveReport) -> Iterator[str]:
    yield f"- repository: {code(report.repository)}"
    yield f"- asked: {serving(report.agents, code)}"
    yield f"- policy: {prose(report.policy)}"
    yield f"- cost: {cost(report)}"
    yield f"- memory: {memory(report)}"
    yield f"- run: {code(report.run_id)}; {code(f'proofstone ledger show {report.run_id}')} shows all of it"
    yield from (f"- note: {prose(note)}" for note in report.notes)
    if report.next_step and not report.question:
        yield f"- next: {code(report.next_step)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {prose(line)}" for line in lines)


def fenced(text: str) -> str:
    """The text as it is, in a fence that no line of it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{printable(text)}\n{fence}"


_SECTIONS: Final[tuple[tuple[str, Callable[[SolveReport], Iterable[str]]], ...]] = (
    ("What was asked for", _asked),
    ("A question", _question),
    ("The result", _result),
    ("Done, and can be used", _partial),
    ("What you could do now", _moves),
    ("Changed files", _changed),
    ("The loss, round by round", _trajectory),
    ("Rounds", _rounds),
    ("Plans that were not taken", _rejected),
    ("How it was made", _made),
)
