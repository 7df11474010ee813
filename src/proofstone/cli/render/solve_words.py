"""Words about the control loop that its live view, its report and its page share.

Whatever an agent wrote is one line here, not longer than a line can bear, and drives no terminal.
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
from proofstone.agents.rules.budget import summary
from proofstone.common.models import Allowance
from proofstone.common.text import counted, printable
from proofstone.documents.markdown import visible
from proofstone.plans.fields import shortened
from proofstone.solve.models import SolveReport, SolveRound

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
_REASON: Final = 400
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


def failures(outcome: SubTaskOutcome) -> Iterator[str]:
    """What failed and what shows it; a subtask that did not come to that says why, once."""
    failed = [verdict for verdict in outcome.criteria_verdicts if verdict.failed]
    if outcome.matched:
        return
    if any(item.evidence != outcome.failure_reason for item in failed):
        yield from map(_failure, failed)
    else:
        yield _reason(outcome)


def first_failure(outcome: SubTaskOutcome) -> str:
    first, *others = failures(outcome)
    return f"{first} (and {len(others)} more)" if others else first


def missing_plan(round: SolveRound) -> str:
    """Why a round had no plan: what has an outcome and is no subtask; else nothing."""
    planned = {subtask.subtask_id for subtask in round.subtasks}
    return next((_reason(outcome) for outcome in round.outcomes if outcome.subtask_id not in planned), "")


def rejected_merge(round: SolveRound) -> str:
    """What stands against the merged result, where every subtask matched and it was not accepted; else nothing."""
    all_matched = bool(round.outcomes) and all(outcome.matched for outcome in round.outcomes)
    if round.directive.directive is DirectiveName.ACCEPT or not all_matched:
        return ""
    failed = [_failure(item) for item in round.merged if item.failed]
    return f"{_MERGED}: {'; '.join(failed)}" if failed else f"{_MERGED} was not accepted"


def _reason(outcome: SubTaskOutcome) -> str:
    return one_line(outcome.failure_reason or "it failed, and nobody has said why", _REASON)


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
    outcomes = {item.subtask_id: item for item in last.outcomes}
    pursued = [
        (subtask.intent, outcomes[subtask.subtask_id]) for subtask in last.subtasks if subtask.subtask_id in outcomes
    ]
    failed = [(one_line(intent, 100), said) for intent, outcome in pursued for said in failures(outcome)]
    return [*failed, *(("", said) for said in (missing_plan(last), rejected_merge(last)) if said)]


def rejected_plans(report: SolveReport) -> list[str]:
    """A planner may insist: what was said of it several times is one line."""
    return [f"{why} ({times} times)" if times > 1 else why for why, times in Counter(report.rejected).items()]


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


def taking_in(report: SolveReport) -> str:
    """What a person should know before they type it."""
    if accepted(report):
        return "nothing is committed, and your files are as they were; to take it in"
    return "this was not accepted; nothing is committed, and your files are as they were; to take it in all the same"


def serving(agents: Mapping[str, str], shown: Callable[[str], str] = visible) -> str:
    """Who is asked; often one serves them all."""
    roles: dict[str, list[str]] = {}
    for role, by in agents.items():
        roles.setdefault(by, []).append(role)
    return "; ".join(f"{', '.join(served)}: {shown(by)}" for by, served in roles.items())


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
