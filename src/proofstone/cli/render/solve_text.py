"""Format facts about a run of the control loop for its live view, its report and its page.

Text of an agent is shortened to one line and cannot control the terminal.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from proofstone.agents.roles.models.solve_messages import (
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    FinalStatus,
    Gradient,
    Loss,
    SubTaskOutcome,
)
from proofstone.agents.rules.budget import summarize_spending
from proofstone.common.models import Allowance
from proofstone.common.text import escape_control, pluralize
from proofstone.documents.markdown import make_visible
from proofstone.plans.fields import shorten_text
from proofstone.solve.models import SolveReport, SolveRound

STATUS_STYLES: Final[Mapping[FinalStatus | None, str]] = {
    FinalStatus.ACCEPTED: "bold green",
    FinalStatus.PARTIAL: "bold yellow",
    FinalStatus.ABANDONED: "bold red",
    None: "bold yellow",
}
GRADIENT_STYLES: Final = {
    Gradient.IMPROVING: "green",
    Gradient.STABLE: "cyan",
    Gradient.PLATEAU: "yellow",
    Gradient.WORSENING: "red",
}
DIRECTIVE_STYLES: Final = {DirectiveName.ACCEPT: "bold green", DirectiveName.ABANDON: "bold red"}
"""The styles of the final directives. Every other directive means another attempt."""
FIGURES: Final[Mapping[str, str]] = {
    "L": "loss: all of these in one figure",
    "D": "distance: how much of what was asked for is not there yet",
    "P": "how far the approach is to blame: 0 something was in the way, 1 the approach is wrong",
    "Ω": "how much of the budget is spent, in replans and time",
}
_MAX_LINE: Final = 160
_MAX_REASON: Final = 400
_NEAR, _FAR = 0.3, 0.6
_MERGED: Final = "the merged result"


def shorten_visibly(text: str, most: int = _MAX_LINE) -> str:
    """Shorten a text to one printable line."""
    return make_visible(shorten_text(text, most))


def loss_figures(loss: Loss) -> dict[str, float]:
    """Return the figures of the loss by the names of `FIGURES`."""
    return {"L": loss.L, "D": loss.D, "P": loss.P, "Ω": loss.Omega}


def format_signed(change: float) -> str:
    """Format a change with its sign. Zero is always `+0.00`."""
    return f"{round(change, 2) + 0.0:+.2f}"


def style_of_share(share: float) -> str:
    """Return the style of a share; less is better."""
    return "green" if share <= _NEAR else "yellow" if share <= _FAR else "red"


def format_solve_headline(report: SolveReport) -> str:
    if report.result is None:
        return "A QUESTION IS WAITING"
    return report.result.status.value.upper()


def format_effort(report: SolveReport) -> str:
    return f"{pluralize(len(report.rounds), 'round')}, {format_seconds(report.elapsed_ms)}"


def format_seconds(elapsed_ms: int) -> str:
    return f"{elapsed_ms / 1000:.1f} s"


def is_accepted(report: SolveReport) -> bool:
    """Return whether the goal was reached."""
    return report.result is not None and report.result.status is FinalStatus.ACCEPTED


def list_failures(outcome: SubTaskOutcome) -> Iterator[str]:
    """Yield the failed criteria with their evidence, or once the reason of a subtask that was not judged."""
    failed = [verdict for verdict in outcome.criteria_verdicts if verdict.is_failed]
    if outcome.is_matched:
        return
    if any(verdict.evidence != outcome.failure_reason for verdict in failed):
        yield from map(_describe_failure, failed)
    else:
        yield _failure_reason(outcome)


def format_first_failure(outcome: SubTaskOutcome) -> str:
    """Return the first failure, and how many more there are."""
    first, *others = list_failures(outcome)
    return f"{first} (and {len(others)} more)" if others else first


def explain_missing_plan(round: SolveRound) -> str:
    """Return why a round had no plan: the reason of an outcome without a subtask. Empty if it had one."""
    planned = {subtask.subtask_id for subtask in round.subtasks}
    return next((_failure_reason(outcome) for outcome in round.outcomes if outcome.subtask_id not in planned), "")


def explain_rejected_merge(round: SolveRound) -> str:
    """Return why the merged result was not accepted although every subtask matched; otherwise empty."""
    all_matched = bool(round.outcomes) and all(outcome.is_matched for outcome in round.outcomes)
    if round.directive.directive is DirectiveName.ACCEPT or not all_matched:
        return ""
    failed = [_describe_failure(verdict) for verdict in round.merged if verdict.is_failed]
    return f"{_MERGED}: {'; '.join(failed)}" if failed else f"{_MERGED} was not accepted"


def _failure_reason(outcome: SubTaskOutcome) -> str:
    return shorten_visibly(outcome.failure_reason or "it failed without a reason", _MAX_REASON)


def _describe_failure(verdict: CriterionVerdict) -> str:
    method = "looked up" if verdict.mode is CriterionMode.VERIFIABLE else "judged"
    failure_class = verdict.failure_class or FailureClass.MIXED
    evidence = f": {shorten_visibly(verdict.evidence)}" if verdict.evidence.strip() else ""
    return f"{shorten_visibly(verdict.criterion)} [{method}, {failure_class}]{evidence}"


def list_last_failures(report: SolveReport) -> list[tuple[str, str]]:
    """Return the subtasks of the last round with their failures."""
    if not report.rounds or is_accepted(report):
        return []
    last = report.rounds[-1]
    outcomes = {outcome.subtask_id: outcome for outcome in last.outcomes}
    pursued = [
        (subtask.intent, outcomes[subtask.subtask_id]) for subtask in last.subtasks if subtask.subtask_id in outcomes
    ]
    failed = [
        (shorten_visibly(intent, 100), failure) for intent, outcome in pursued for failure in list_failures(outcome)
    ]
    return [
        *failed,
        *(("", failure) for failure in (explain_missing_plan(last), explain_rejected_merge(last)) if failure),
    ]


def list_rejected_plans(report: SolveReport) -> list[str]:
    """Return the reasons why plans were rejected. A repeated reason is counted."""
    return [f"{why} ({times} times)" if times > 1 else why for why, times in Counter(report.rejected).items()]


def format_solve_output(report: SolveReport) -> str:
    """Return the result: text as it is, anything else as JSON. Line breaks stay; it cannot control the terminal."""
    if report.result is None or report.result.output is None:
        return ""
    output = report.result.output
    text = output if isinstance(output, str) else json.dumps(output, indent=2, ensure_ascii=False)
    return escape_control(text.replace("\r\n", "\n").strip("\n"))


def format_apply_command(report: SolveReport) -> str:
    """Return the command that applies the patch from any folder. In a subfolder, `git apply` alone would skip files."""
    return f"git -C {shlex.quote(report.repository)} apply {shlex.quote(report.patch)}"


def describe_patch(report: SolveReport) -> str:
    """Return what a person should know before they apply the patch."""
    if is_accepted(report):
        return "nothing is committed, and your files are unchanged; to apply the patch"
    return "this was not accepted; nothing is committed, and your files are unchanged; to apply the patch anyway"


def describe_agents(agents: Mapping[str, str], shown: Callable[[str], str] = make_visible) -> str:
    """Describe which backends serve the roles. Combine roles with the same backend."""
    roles: dict[str, list[str]] = {}
    for role, by in agents.items():
        roles.setdefault(by, []).append(role)
    return "; ".join(f"{', '.join(served)}: {shown(by)}" for by, served in roles.items())


def format_memory(report: SolveReport) -> str:
    return f"{report.remembered} {'entry' if report.remembered == 1 else 'entries'} written"


def format_solve_cost(report: SolveReport) -> str:
    spent = summarize_spending(report.spent, Allowance()) or "no model calls"
    return f"agents asked {pluralize(report.dispatches, 'time')}, {spent}, {format_seconds(report.elapsed_ms)}"


def build_round_table(report: SolveReport) -> list[tuple[str, ...]]:
    """Return the rounds as rows, after a heading."""
    head = ("round", *FIGURES, "∇L", "∇", "direction", "then", "after")
    return [head, *map(_round_row, report.rounds)]


def _round_row(round: SolveRound) -> tuple[str, ...]:
    directive = round.directive
    return (
        str(round.number),
        *(f"{share:.2f}" for share in loss_figures(directive.loss).values()),
        format_signed(directive.grad_l),
        format_signed(round.nabla),
        f"{directive.gradient.arrow} {directive.gradient}",
        directive.directive.value,
        format_seconds(round.elapsed_ms),
    )
