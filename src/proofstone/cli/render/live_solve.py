"""Show a run of the control loop: each plan, the results of its subtasks, and the figures after each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from proofstone.agents.roles.models.solve_messages import DirectiveName, SubTask, SubTaskOutcome
from proofstone.cli.render.live_agents import AgentsAtWork
from proofstone.cli.render.solve_words import (
    DIRECTIVE_STYLE,
    GRADIENT_STYLE,
    figures,
    first_failure,
    one_line,
    rejected_merge,
    serving,
    share_style,
    signed,
)
from proofstone.common.text import counted
from proofstone.documents.markdown import visible
from proofstone.solve.agents import Beginning
from proofstone.solve.models import SolveRound


@dataclass
class LiveSolve(AgentsAtWork):
    """Show a run of the control loop. Implements `solve.agents.Watching` for one console."""

    _intents: dict[str, str] = field(default_factory=dict)
    """The intents of the planned subtasks, by id."""

    def began(self, beginning: Beginning) -> None:
        with self._print_lock:
            self._note_backends(beginning.agents.values())
            self._print(one_line(beginning.goal), "bold")
            self._print(f"run {beginning.run_id}{', resumed' if beginning.resumed else ''}", "dim")
            self._print(serving(beginning.agents), "dim")
            self._print(_describe_limits(beginning), "dim")
            for note in beginning.notes:
                self._print(f"note: {visible(note)}", "dim")

    def rejected(self, round: int, why: str) -> None:
        with self._print_lock:
            self._print(f"  ! plan not taken: {one_line(why, 400)}", "yellow")

    def planned(self, round: int, subtasks: Sequence[SubTask]) -> None:
        with self._print_lock:
            self._print(f"round {round}: {counted(len(subtasks), 'subtask')}", "bold")
            for subtask in subtasks:
                self._intents[subtask.subtask_id] = subtask.intent
                self._print(f"  {subtask.sequence}. {one_line(subtask.intent, 100)}", "dim")

    def pursued(self, outcome: SubTaskOutcome) -> None:
        with self._print_lock:
            intent = one_line(self._intents.get(outcome.subtask_id, "a plan"), 100)
            if outcome.matched:
                self._print(f"  ✓ {intent}", "green")
            else:
                self._print(f"  ✗ {intent}: {first_failure(outcome)}", "red")

    def decided(self, round: SolveRound) -> None:
        with self._print_lock:
            self._print_figures(round)
            directive = round.directive
            if directive.directive is DirectiveName.ACCEPT:
                return
            if rejected := rejected_merge(round):
                self._print(f"  ✗ {rejected}", "red")
            self._print(f"  {one_line(directive.rationale, 400)}", "dim")
            if blocked := (*directive.blocked_tools, *directive.blocked_targets):
                self._print(f"  not again: {one_line(', '.join(blocked))}", "dim")

    def _print_figures(self, round: SolveRound) -> None:
        from rich.text import Text

        directive = round.directive
        shares = figures(directive.loss)
        line = Text().append(f"round {round.number}", style="bold")
        for name in ("D", "P"):
            line.append(f"  {name} {shares[name]:.2f}", style=share_style(shares[name]))
        line.append(f"  ∇L {signed(directive.grad_l)}")
        line.append(f"  Ω {shares['Ω']:.2f}", style=share_style(shares["Ω"]))
        gradient = directive.gradient
        line.append(f"  {gradient.arrow} {gradient}", style=GRADIENT_STYLE[gradient])
        line.append(f" → {directive.directive}", style=DIRECTIVE_STYLE.get(directive.directive, "bold yellow"))
        self.console.print(line, soft_wrap=True)


def _describe_limits(beginning: Beginning) -> str:
    replans = counted(beginning.max_replans, "replan")
    return f"policy {beginning.policy}, at most {replans} and {beginning.time_budget_ms / 1000:g} s"
