"""Show a run of the control loop: each plan, the results of its subtasks, and the figures after each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from proofstone.agents.roles.models.solve_messages import DirectiveName, SubTask, SubTaskOutcome
from proofstone.cli.render.live_agents import LiveAgents
from proofstone.cli.render.solve_text import (
    DIRECTIVE_STYLES,
    GRADIENT_STYLES,
    describe_agents,
    explain_rejected_merge,
    format_first_failure,
    format_signed,
    loss_figures,
    shorten_visibly,
    style_of_share,
)
from proofstone.common.text import pluralize
from proofstone.documents.markdown import make_visible
from proofstone.solve.agents import SolveStart
from proofstone.solve.models import SolveRound


@dataclass
class LiveSolve(LiveAgents):
    """Show a run of the control loop. Implements `solve.agents.Watching` for one console."""

    _intents: dict[str, str] = field(default_factory=dict)
    """The intents of the planned subtasks, by id."""

    def on_run_started(self, beginning: SolveStart) -> None:
        with self._print_lock:
            self._note_backends(beginning.agents.values())
            self._print(shorten_visibly(beginning.goal), "bold")
            self._print(f"run {beginning.run_id}{', resumed' if beginning.resumed else ''}", "dim")
            if self.verbose:
                self._print(describe_agents(beginning.agents), "dim")
                self._print(_describe_limits(beginning), "dim")
            for note in beginning.notes:
                self._print(f"note: {make_visible(note)}", "dim")

    def on_plan_rejected(self, round: int, why: str) -> None:
        with self._print_lock:
            self._print(f"  ! plan not taken: {shorten_visibly(why, 400)}", "yellow")

    def on_plan_accepted(self, round: int, subtasks: Sequence[SubTask]) -> None:
        with self._print_lock:
            self._print(f"round {round}: {pluralize(len(subtasks), 'subtask')}", "bold")
            for subtask in subtasks:
                self._intents[subtask.subtask_id] = subtask.intent
                self._print(f"  {subtask.sequence}. {shorten_visibly(subtask.intent, 100)}", "dim")

    def on_subtask_ended(self, outcome: SubTaskOutcome) -> None:
        with self._print_lock:
            intent = shorten_visibly(self._intents.get(outcome.subtask_id, "a plan"), 100)
            if outcome.is_matched:
                self._print(f"  ✓ {intent}", "green")
            else:
                self._print(f"  ✗ {intent}: {format_first_failure(outcome)}", "red")

    def on_round_ended(self, round: SolveRound) -> None:
        with self._print_lock:
            directive = round.directive
            if self.verbose:
                self._print_figures(round)
            else:
                style = DIRECTIVE_STYLES.get(directive.directive, "bold yellow")
                self._print(f"round {round.number}: {directive.directive}", style)
            if directive.directive is DirectiveName.ACCEPT:
                return
            if rejected := explain_rejected_merge(round):
                self._print(f"  ✗ {rejected}", "red")
            if not self.verbose:
                return
            self._print(f"  {shorten_visibly(directive.rationale, 400)}", "dim")
            if blocked := (*directive.blocked_tools, *directive.blocked_targets):
                self._print(f"  not again: {shorten_visibly(', '.join(blocked))}", "dim")

    def _print_figures(self, round: SolveRound) -> None:
        from rich.text import Text

        directive = round.directive
        shares = loss_figures(directive.loss)
        line = Text().append(f"round {round.number}", style="bold")
        for name in ("D", "P"):
            line.append(f"  {name} {shares[name]:.2f}", style=style_of_share(shares[name]))
        line.append(f"  ∇L {format_signed(directive.grad_l)}")
        line.append(f"  Ω {shares['Ω']:.2f}", style=style_of_share(shares["Ω"]))
        gradient = directive.gradient
        line.append(f"  {gradient.arrow} {gradient}", style=GRADIENT_STYLES[gradient])
        line.append(f" → {directive.directive}", style=DIRECTIVE_STYLES.get(directive.directive, "bold yellow"))
        self.console.print(line, soft_wrap=True)


def _describe_limits(beginning: SolveStart) -> str:
    replans = pluralize(beginning.max_replans, "replan")
    return f"policy {beginning.policy}, at most {replans} and {beginning.time_budget_ms / 1000:g} s"
