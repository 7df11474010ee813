"""Words about the control loop that its live view, its report and its page share.

Whatever an agent wrote is one line here, not longer than a line can bear, and drives no terminal.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from assay.contracts.budget import Allowance
from assay.contracts.solve.messages import (
    CriterionMode,
    CriterionVerdict,
    DirectiveName,
    FailureClass,
    FinalStatus,
    Gradient,
    Loss,
    SubTaskOutcome,
)
from assay.contracts.solve.report import SolveReport, SolveRound
from assay.core.agent.budget import counted, summary
from assay.core.gate.page_text import visible
from assay.core.plan.problems import shortened
from assay.surfaces.cli.text import printable

STATUS_STYLE: Final[Mapping[FinalStatus | None, str]] = {
    FinalStatus.ACCEPTED: "bold green",
    FinalStatus.PARTIAL: "bold yellow",
    FinalStatus.ABANDONED: "bold red",
    None: "bold yellow",
}
GRADIENT_STYLE: Final = {
    Gradient.IMPROVING: "green",
    Gradient.STABLE: "cyan",
    Gradient.PLATEAU: "yellow",
    Gradient.WORSENING: "red",
}
DIRECTIVE_STYLE: Final = {DirectiveName.ACCEPT: "bold green", DirectiveName.ABANDON: "bold red"}
"""Every other one is another try."""
FIGURES: Final[Mapping[str, str]] = {
    "L": "loss: all of these in one figure",
    "D": "distance: how much of what was asked for is not there yet",
    "P": "how far the approach is to blame: 0 something was in the way, 1 the approach is wrong",
    "Ω": "how much of the budget is spent, in replans and time",
}
_LONG: Final = 160
_NEAR, _FAR = 0.3, 0.6
_MERGED: Final = "the merged result"


def one_line(text: str, most: int = _LONG) -> str:
    return visible(shortened(text, most))


def figures(loss: Loss) -> dict[str, float]:
    """By the names of `FIGURES`."""
    return {"L": loss.L, "D": loss.D, "P": loss.P, "Ω": loss.Omega}


def signed(change: float) -> str:
    """With its sign; what is nothing has none of its own, so it is always the same one."""
    return f"{round(change, 2) + 0.0:+.2f}"


def share_style(share: float) -> str:
    """The less the better."""
    return "green" if share <= _NEAR else "yellow" if share <= _FAR else "red"


def headline(report: SolveReport) -> str:
    if report.result is None:
        return "A QUESTION IS WAITING"
    return report.result.status.value.upper()


def effort(report: SolveReport) -> str:
    return f"{counted(len(report.rounds), 'round')}, {seconds(report.elapsed_ms)}"


def seconds(elapsed_ms: int) -> str:
    return f"{elapsed_ms / 1000:.1f} s"


def accepted(report: SolveReport) -> bool:
    return report.result is not None and report.result.status is FinalStatus.ACCEPTED


def intents(round: SolveRound) -> dict[str, str]:
    """What each subtask was for. What has an outcome and is no subtask is the plan that there was not."""
    planned = {one.subtask_id: one.intent for one in round.subtasks}
    return planned | {one.subtask_id: "a plan" for one in round.outcomes if one.subtask_id not in planned}


def failures(outcome: SubTaskOutcome) -> Iterator[str]:
    """What failed and what shows it; a subtask that did not come to that says why."""
    failed = [one for one in outcome.criteria_verdicts if one.failed]
    yield from map(_failure, failed)
    if not failed and not outcome.matched:
        yield one_line(outcome.failure_reason or "it failed, and nobody has said why")


def first_failure(outcome: SubTaskOutcome) -> str:
    first, *others = failures(outcome)
    return f"{first} (and {len(others)} more)" if others else first


def rejected_merge(round: SolveRound) -> str:
    """What stands against the merged result, where every subtask matched and it was not accepted; else nothing."""
    all_matched = bool(round.outcomes) and all(one.matched for one in round.outcomes)
    if round.directive.directive is DirectiveName.ACCEPT or not all_matched:
        return ""
    failed = [_failure(one) for one in round.merged if one.failed]
    return f"{_MERGED}: {'; '.join(failed)}" if failed else f"{_MERGED} was not accepted"


def _failure(verdict: CriterionVerdict) -> str:
    seen = "looked up" if verdict.mode is CriterionMode.VERIFIABLE else "judged"
    of = verdict.failure_class or FailureClass.MIXED
    evidence = f": {one_line(verdict.evidence)}" if verdict.evidence.strip() else ""
    return f"{one_line(verdict.criterion)} [{seen}, {of}]{evidence}"


def last_failures(report: SolveReport) -> list[tuple[str, str]]:
    """Of the last round: which subtask, and what failed in it."""
    if not report.rounds or accepted(report):
        return []
    last = report.rounds[-1]
    named = intents(last)
    failed = [(one_line(named[one.subtask_id], 100), said) for one in last.outcomes for said in failures(one)]
    merged = rejected_merge(last)
    return [*failed, *((("", merged),) if merged else ())]


def output_text(report: SolveReport) -> str:
    """The result itself: text as it is, anything else as JSON. Line breaks are its own, and drive no terminal."""
    if report.result is None or report.result.output is None:
        return ""
    output = report.result.output
    text = output if isinstance(output, str) else json.dumps(output, indent=2, ensure_ascii=False)
    return printable(text.replace("\r\n", "\n").strip("\n"))


def apply_command(report: SolveReport) -> str:
    """As it can be typed anywhere: in a folder of the repository, `git apply` alone would leave files out."""
    return f"git -C {shlex.quote(report.repository)} apply {shlex.quote(report.patch)}"


def memory(report: SolveReport) -> str:
    return f"{report.remembered} {'entry' if report.remembered == 1 else 'entries'} written"


def cost(report: SolveReport) -> str:
    spent = summary(report.spent, Allowance()) or "no model calls"
    return f"agents asked {counted(report.dispatches, 'time')}, {spent}, {seconds(report.elapsed_ms)}"


def table(report: SolveReport) -> list[tuple[str, ...]]:
    """The rounds, below their head."""
    head = ("round", *FIGURES, "∇L", "∇", "direction", "then", "after")
    return [head, *map(_row, report.rounds)]


def _row(round: SolveRound) -> tuple[str, ...]:
    directive = round.directive
    return (
        str(round.number),
        *(f"{share:.2f}" for share in figures(directive.loss).values()),
        signed(directive.grad_l),
        signed(round.nabla),
        f"{directive.gradient.arrow} {directive.gradient}",
        directive.directive.value,
        seconds(round.elapsed_ms),
    )
