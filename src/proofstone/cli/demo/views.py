"""Print the demo: its live view with explanations for newcomers, and at the end what happened and what to try next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Final

from proofstone.agents.roles.models.solve_messages import DirectiveName
from proofstone.cli.demo.moments import Aftermath, Moment, describe_lie
from proofstone.cli.demo.stage import REQUEST, DemoStage
from proofstone.cli.render.confidence_text import print_confidence
from proofstone.cli.render.live_gate import LiveGate
from proofstone.cli.render.live_pipeline import LivePipeline
from proofstone.cli.render.pipeline import format_run_cost
from proofstone.common.text import escape_control
from proofstone.gate.models import RunView
from proofstone.pipeline.models.run import RunReport

if TYPE_CHECKING:
    from rich.console import Console


_MIN_TABLE_WIDTH: Final = 72
"""Below this width a table would break its words."""


def print_beginning(console: Console, stage: DemoStage) -> None:
    _print_line(
        console, f"A small shop, in {stage.repository}: its cart cuts half a cent off, and two of its tests fail."
    )
    _print_line(console, f'proofstone run "{REQUEST}"', "bold")
    _print_line(
        console, "The agents are scripted. Git, the checks, the sandbox, the decisions and the ledger are real.\n"
    )


def print_moments(console: Console, seen: Mapping[str, Moment | None]) -> None:
    """Print what the ledger shows, as a table if the terminal is wide enough."""
    if console.width < _MIN_TABLE_WIDTH:
        _print_list(console, seen)
    else:
        _print_table(console, seen)


def _print_list(console: Console, seen: Mapping[str, Moment | None]) -> None:
    for name, moment in seen.items():
        if moment is None:
            _print_line(console, _missing_text(name), "bold red")
            continue
        _print_line(console, moment.what, "bold")
        _print_line(console, f"  Proofstone: {moment.did}")
        _print_line(console, f"  evidence: ledger, {format_row_numbers(moment.rows)}", "dim")


def _missing_text(name: str) -> str:
    return f"not on record: {name}"


def _print_table(console: Console, seen: Mapping[str, Moment | None]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_edge=False, pad_edge=False, show_lines=True)
    table.add_column("what happened", ratio=4, overflow="fold")
    table.add_column("what Proofstone did", ratio=5, overflow="fold")
    table.add_column("evidence: ledger", ratio=2, overflow="fold")
    for name, moment in seen.items():
        if moment is None:
            table.add_row(_missing_text(name), "", "", style="bold red")
        else:
            cells = (moment.what, moment.did, format_row_numbers(moment.rows))
            table.add_row(*(Text(escape_control(cell)) for cell in cells))
    console.print(table)


def format_row_numbers(rows: tuple[int, ...]) -> str:
    if len(rows) > 2:
        return f"rows {min(rows)} to {max(rows)}"
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows))}"


def print_aftermath(console: Console, stage: DemoStage, report: RunReport, left: Aftermath) -> None:
    """Print the commit and the evidence bundle."""
    if report.commit is not None:
        _print_line(console, f"\none commit: {report.commit[:12]} on {report.branch}", "bold")
        if report.confidence is not None:
            print_confidence(console, report.confidence, report.reasons)
        _print_line(console, f"  {stage.git.run_line('log', '-1', '--format=%s', report.commit)}")
        _print_line(console, f"  in {stage.repository}, on main:")
        _print_line(console, f"  merge it:   git merge --ff-only {quote(report.branch)}")
        _print_line(console, f"  revert it:  {report.rollback}")
    _print_line(console, "\nthe evidence bundle:", "bold")
    for page in left.pages:
        _print_line(console, f"  {page}")
    _print_line(console, f"  {format_run_cost(report)}", "dim")
    _print_line(console, f"\nthe ledger: {left.verdict.splitlines()[0] if left.verdict else 'no output'}", "bold")


def print_next(console: Console, stage: DemoStage, run_id: str) -> None:
    _print_line(console, "\nlook further:", "bold")
    _print_line(console, f"  cd {quote(str(stage.repository))} && export PROOFSTONE_HOME={quote(str(stage.home))}")
    for command in (
        f"proofstone status {run_id}",
        f"proofstone status {run_id} --cost",
        f"proofstone bundle {run_id}",
        f"proofstone ledger show {run_id}",
        f'proofstone run "{REQUEST}" --backend script:../{stage.script.name}   # once more',
    ):
        _print_line(console, f"  {command}")
    _print_line(
        console,
        "\nwith a real agent, in your own repository (in another shell: this one has the demo's ledger):",
        "bold",
    )
    for command, why in (
        ("proofstone doctor", "what this machine has, and what it lacks"),
        ("proofstone backends", "which coding agents and models are here"),
        ('proofstone run "what you want" --backend cli:claude', "or cli:codex, cli:gemini, api:openai:gpt-5 …"),
    ):
        _print_line(console, f"  {command:<48}  # {why}")
    _print_line(console, f"\nAll of the demo is in {stage.folder}; delete it when you are done.")


def print_problems(console: Console, wrongs: list[str]) -> None:
    for wrong in wrongs:
        _print_line(console, f"not as it must be: {wrong}", "bold red")
    if not wrongs:
        _print_line(console, "\nEverything happened as it must, and the ledger confirms it.", "bold green")


def _print_line(console: Console, text: str, style: str = "") -> None:
    console.print(escape_control(text), style=style, soft_wrap=True)


_STEP_MEANINGS: Final[Mapping[str, str]] = {
    "research": "four agents read the code, each with its own question",
    "specification": "the request as testable criteria, and objections to it",
    "design": "decisions, each with the rejected alternatives",
    "design review": "three reviewers, each with its own focus",
    "plan": "tasks, each with its files, checks and criteria",
    "plan gate": "other agents challenge the plan before any code is written",
    "task": "implementers work; what they say is only a claim, and Proofstone runs the checks itself",
    "whole cascade": "every check once more, on everything together",
    "code review": "three reviewers look at the whole change",
    "knowledge": "what the next run should know",
    "commit": "exactly the tree that was checked, on a branch of its own",
}
"""What happens at each step."""
_REMARKS: Final[Mapping[tuple[str, str], str]] = {
    ("plan-gate", ": REVISE: "): "challenged: the plan goes back to its planner, and nothing is lost yet",
    ("direction", f" {DirectiveName.REFINE}: "): "failed: the next plan is told why, and may keep its approach once",
    ("direction", f" {DirectiveName.BREAK_SYMMETRY}: "): "turned: more of the same gives the same, so the next plan "
    "must take another approach; one that is nearly the same would not be taken",
    ("direction", f" {DirectiveName.CHANGE_APPROACH}: "): "turned: it gets worse, so the next plan must take another "
    "approach",
    ("review-gate", "code, round 1: revise"): "sent back: what was found is planned, done and checked like any other "
    "work",
}
"""Explanations by the kind of a note and a part of its text."""
_STYLE: Final = "bold magenta"


@dataclass
class DemoGateView(LiveGate):
    """The live view of the gate, which points out the lie."""

    _reported: set[tuple[str, int]] = field(default_factory=set)

    def on_task_changed(self, view: RunView, task: str) -> None:
        super().on_task_changed(view, task)
        record = view.get_task(task).record
        for failure in record.failures[-1:]:
            evidence = describe_lie(failure)
            if not evidence or record.claim is None or (task, failure.attempt) in self._reported:
                continue
            self._reported.add((task, failure.attempt))
            with self._print_lock:
                self._print(f'  caught: it said "{record.claim.evidence}"; but {evidence}', _STYLE)


@dataclass
class DemoPipelineView(LivePipeline):
    """The live view of the pipeline, with explanations."""

    gate_view_class: type[LiveGate] = DemoGateView

    def on_note(self, kind: str, text: str) -> None:
        super().on_note(kind, text)
        remark = next(
            (explanation for (note_kind, mark), explanation in _REMARKS.items() if note_kind == kind and mark in text),
            "",
        )
        if remark:
            with self._print_lock:
                self._print(f"  {remark}", _STYLE)

    def _reach(self, step: str, *, heading: bool = True) -> None:
        is_new = step not in self._visited
        super()._reach(step, heading=heading)
        if is_new and step in _STEP_MEANINGS:
            self._print(f"  {_STEP_MEANINGS[step]}", "italic")
