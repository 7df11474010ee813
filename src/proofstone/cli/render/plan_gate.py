"""Show a run of the plan gate while it runs, and print its report.

The live view prints the answers of the agents and the changes after each iteration. The report has the open challenges,
the questions and the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.plan_gate_records import Challenge, ChallengeStatus, IterationState, PlanSeverity
from proofstone.cli.render.live_agents import LiveAgents
from proofstone.common.text import escape_control
from proofstone.documents.markdown import make_visible
from proofstone.plan_gate.models import OpenQuestion, PlanEvent, PlanEventKind, PlanReport, PlanVerdict
from proofstone.plan_gate.rules.admission import select_mitigations
from proofstone.plan_gate.rules.loop import MAX_PLAN_ITERATIONS
from proofstone.plan_gate.rules.report import (
    STRONG_RECOMMENDATION,
    describe_mitigation,
    format_answer_command,
    format_headline,
    list_open_challenges,
    rank_by_severity,
    strip_claim_line,
)
from proofstone.plan_gate.run import PlanGateStart

if TYPE_CHECKING:
    from rich.console import Console


SEVERITY_STYLES: Final = {PlanSeverity.BLOCKING: "red", PlanSeverity.SIGNIFICANT: "yellow", PlanSeverity.MINOR: ""}
_SETTLED_STYLES: Final = {ChallengeStatus.RESOLVED: "green", ChallengeStatus.WITHDRAWN: "green"}


@dataclass
class LivePlanGate(LiveAgents):
    """Show a run of the plan gate. Implements `plan_gate.run.Watching` for one console."""

    _last_status: dict[str, ChallengeStatus] = field(default_factory=dict)
    """The status of each challenge when it was last printed."""

    def on_run_started(self, beginning: PlanGateStart) -> None:
        with self._print_lock:
            self._note_backends(beginning.agents.values())
            facts = f"{beginning.quality}, complexity {beginning.complexity.total}, {beginning.team_mode} team"
            self._print(f"{make_visible(beginning.title or beginning.plan_path)}: {facts}", "bold")
            self._print(f"run {beginning.run_id}", "dim")
            self._print(_describe_agents(beginning), "dim")

    def on_iteration_started(self, iteration: int) -> None:
        with self._print_lock:
            self._print(f"iteration {iteration} of {MAX_PLAN_ITERATIONS}", "bold")

    def on_iteration_ended(
        self, state: IterationState, challenges: Sequence[Challenge], events: Sequence[PlanEvent]
    ) -> None:
        with self._print_lock:
            for challenge in sorted(challenges, key=rank_by_severity):
                self._print_change(challenge)
            for event in events:
                is_note = event.kind is PlanEventKind.TEAM
                self._print(
                    f"  {'' if is_note else '! '}{event.kind}: {make_visible(event.text)}",
                    "dim" if is_note else "yellow",
                )
            self._print(f"  {_describe_open(state)}", "bold")

    def _print_change(self, challenge: Challenge) -> None:
        """Print a challenge if it is new or its status has changed."""
        before = self._last_status.get(challenge.id)
        if before is challenge.status:
            return
        self._last_status[challenge.id] = challenge.status
        change = f"{before} → {challenge.status}" if before else challenge.status.value
        style = (
            SEVERITY_STYLES[challenge.severity]
            if challenge.status.is_open
            else _SETTLED_STYLES.get(challenge.status, "dim")
        )
        self._print(f"  {challenge.id} {challenge.severity} {change}  {make_visible(challenge.claim)}", style)


def _describe_agents(beginning: PlanGateStart) -> str:
    if not beginning.agents:
        return beginning.note or "no agent is asked: the rules decide alone"
    return ", ".join(f"{role}: {by}" for role, by in beginning.agents.items())


def _describe_open(state: IterationState) -> str:
    """Describe what is open, and the state of convergence."""
    convergence = state.convergence
    minor = sum(challenge.severity is PlanSeverity.MINOR and challenge.status.is_open for challenge in state.challenges)
    counts = f"{convergence.blocking_open} blocking, {convergence.significant_open} significant, {minor} minor open"
    return f"{counts} → {convergence.status}"


_VERDICT_STYLES: Final = {
    PlanVerdict.PROCEED: "bold green",
    PlanVerdict.REVISE: "bold yellow",
    PlanVerdict.RETHINK: "bold red",
    None: "bold yellow",
}


def print_plan_report(console: Console, report: PlanReport, written: Path | None = None) -> None:
    """Print the result at the end of `proofstone verify-plan`. `written` is the file of the full report."""
    if open_challenges := list_open_challenges(report):
        console.print("open challenges:", style="bold")
        for challenge in open_challenges:
            _print_challenge(console, report, challenge)
    if report.verdict is PlanVerdict.PROCEED and (to_apply := select_mitigations(report.challenges)):
        console.print("mitigations to add to the plan:", style="bold")
        for challenge in to_apply:
            _print_line(console, f"  {challenge.id}  {make_visible(challenge.mitigation)}")
    if report.questions:
        console.print("\nyou are asked:", style="bold")
        for question in report.questions:
            _print_question(console, report, question)
    if report.debt_warning:
        _print_line(console, "\ntechnical debt: five challenges or more were deferred; the report lists them", "yellow")
    _print_verdict(console, report, written)


def _print_challenge(console: Console, report: PlanReport, challenge: Challenge) -> None:
    line = report.lines.get(challenge.id)
    where = "" if line is None else f"  {make_visible(report.plan or report.plan_path)}:{line}"
    head = (
        f"  {challenge.id} {challenge.severity} {challenge.status}{where}  "
        f"{make_visible(strip_claim_line(report, challenge))}"
    )
    _print_line(console, head, SEVERITY_STYLES[challenge.severity])
    _print_line(console, f"    {make_visible(challenge.concern)}")
    _print_line(console, f"    {make_visible(describe_mitigation(challenge))}", "dim")


def _print_question(console: Console, report: PlanReport, question: OpenQuestion) -> None:
    _print_line(console, f"  {make_visible(question.challenge)}: {make_visible(question.question)}", "yellow")
    for number, option in enumerate(question.options, start=1):
        _print_line(console, f"    {number}. {make_visible(option)}")
    _print_line(console, f"    {format_answer_command(report, question.challenge)}")


def _print_verdict(console: Console, report: PlanReport, written: Path | None) -> None:
    console.print()
    console.print(format_headline(report), style=_VERDICT_STYLES[report.verdict], end="")
    _print_line(console, f"  {make_visible(report.reason)}".rstrip())
    if report.strong:
        _print_line(console, f"  {STRONG_RECOMMENDATION}", "yellow")
    if report.next_step:
        _print_line(console, f"  next: {make_visible(report.next_step)}")
    if written is not None:
        _print_line(console, f"  report: {written}", "dim")
    _print_line(console, f"  run {report.run_id}; `proofstone ledger show {report.run_id}` shows all of it", "dim")


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(escape_control(text), style=style, soft_wrap=True)
