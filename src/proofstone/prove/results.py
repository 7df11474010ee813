"""The results of the trials: the models, the text for terminals, and the page of the manual.

The page does not depend on the machine, the time or the run, so that it can be stored and compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from proofstone.check.rules.outcome import LAYER_TITLES
from proofstone.common.models import Assurance, Confidence, FrozenModel
from proofstone.common.text import escape_control
from proofstone.prove.catalogue import TrickAxes

if TYPE_CHECKING:
    from rich.console import Console


class CheckEnding(StrEnum):
    """How one `proofstone check` ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNVERIFIABLE = "unverifiable"
    REFUSED = "refused"
    """Bad input: nothing was checked, and the check said why."""
    BROKEN = "broken"
    """Proofstone itself failed or did not finish. That does not count as stopping a trick."""


class TrialJudgement(FrozenModel):
    ending: CheckEnding
    rules: tuple[str, ...] = ()
    """The rules of its findings, and the keywords of its reasons."""
    reason: str = ""
    confidence: Confidence | None = None
    reasons: tuple[str, ...] = ()
    """Why the confidence is not high."""


class TrialStatus(StrEnum):
    STOPPED = "stopped"
    OTHERWISE = "refused for another reason"
    """Stopped by luck: none of the rules that must stop the trick reported it."""
    NAMED = "passed below high, and named"
    """A composed trick that passed with less than high confidence, for a reason that its honest twin does not have."""
    UNNAMED = "passed below high, and not named"
    MISSED = "not stopped"
    BROKEN = "broken"
    NOT_TRIED = "not tried"


class ExitCodeGate(StrEnum):
    """What a gate that checks only the exit code of the project's tests says about the trick."""

    PASSES = "passes"
    REFUSES = "refuses"
    NOT_RUN = "not run"


class Trial(FrozenModel):
    """One trick and its honest twin."""

    trick: str
    does: str
    family: str
    layer: str = ""
    axes: TrickAxes | None = None
    origin: str
    project: str
    expected: tuple[str, ...]
    """At least one of these rules must stop the trick."""
    standing: TrialStatus
    stopped_by: tuple[str, ...] = ()
    cheat: TrialJudgement | None = None
    honest: TrialJudgement | None = None
    gate: ExitCodeGate = ExitCodeGate.NOT_RUN
    why: str = ""
    """Why the trick was not tried, what broke, or why the exit-code gate was not run."""

    @property
    def is_tried(self) -> bool:
        return self.standing is not TrialStatus.NOT_TRIED

    @property
    def honest_passed(self) -> bool:
        return self.honest is not None and self.honest.ending is CheckEnding.PASSED

    @property
    def is_ok(self) -> bool:
        is_caught = self.standing in (TrialStatus.STOPPED, TrialStatus.NAMED)
        return not self.is_tried or (is_caught and self.honest_passed)


class Wall(FrozenModel):
    """One thing that no check may do on this machine, and whether it could."""

    name: str
    attempt: str = ""
    """The name of the attempt in the threat model."""
    subject: str = ""
    """What the wall protects."""
    held: bool | None
    """None if it was not tried."""
    is_promised: bool = False
    """Whether the level of the sandbox promises it: such a wall must hold."""
    detail: str = ""
    fix: str = ""
    """What would strengthen the wall."""


class ProofSummary(FrozenModel):
    tricks: int
    """The number of tricks that were tried."""
    stopped: int
    honest_passed: int
    gate_run: int
    gate_passed: int
    """Tricks that an exit-code gate lets through."""
    not_tried: dict[str, int]
    """The number of tricks by reason."""


class Proof(FrozenModel):
    level: Assurance
    """The sandbox level of checks on this machine."""
    trials: tuple[Trial, ...]
    walls: tuple[Wall, ...] = ()
    advice: tuple[str, ...] = ()
    """What would raise the level."""

    @property
    def is_ok(self) -> bool:
        """Whether something was tried, every tried trick was stopped, every twin passed, and no wall gave way that the
        level promises.
        """
        has_tried = any(trial.is_tried for trial in self.trials)
        return has_tried and all(trial.is_ok for trial in self.trials) and not self.broken_promises

    @property
    def broken_promises(self) -> tuple[Wall, ...]:
        """The walls that gave way although the level promises them."""
        return tuple(wall for wall in self.walls if wall.is_promised and wall.held is False)

    @property
    def summary(self) -> ProofSummary:
        return summarize_trials(self.trials)


def summarize_trials(trials: Sequence[Trial]) -> ProofSummary:
    tried = [trial for trial in trials if trial.is_tried]
    reasons = [trial.why for trial in trials if not trial.is_tried]
    return ProofSummary(
        tricks=len(tried),
        stopped=sum(trial.standing is TrialStatus.STOPPED for trial in tried),
        honest_passed=sum(trial.honest_passed for trial in tried),
        gate_run=sum(trial.gate is not ExitCodeGate.NOT_RUN for trial in tried),
        gate_passed=sum(trial.gate is ExitCodeGate.PASSES for trial in tried),
        not_tried={why: reasons.count(why) for why in sorted(set(reasons))},
    )


_STYLES: Final = {TrialStatus.STOPPED: "green", TrialStatus.NOT_TRIED: "dim"}
_GATE_LABELS: Final = {
    ExitCodeGate.PASSES: "lets it through",
    ExitCodeGate.REFUSES: "refuses",
    ExitCodeGate.NOT_RUN: "–",
}
_WALL_LABELS: Final = {True: ("held", "green"), False: ("gives way", "red"), None: ("–", "dim")}


def print_proof(console: Console, proof: Proof) -> None:
    _print_table(console, proof.trials)
    for trial in proof.trials:
        if not trial.is_ok:
            _print_problem(console, trial)
    if proof.walls:
        _print_walls(console, proof)
    _print_summary(console, proof)


def describe_stop(trial: Trial) -> str:
    """Return what stopped the trick, or what happened instead."""
    match trial.standing:
        case TrialStatus.STOPPED:
            return ", ".join(trial.stopped_by)
        case TrialStatus.OTHERWISE:
            return f"another reason: {', '.join(trial.cheat.rules) or trial.cheat.ending}" if trial.cheat else ""
        case TrialStatus.NAMED | TrialStatus.UNNAMED:
            return trial.standing.value
        case TrialStatus.MISSED:
            return "NOT STOPPED"
        case TrialStatus.BROKEN:
            return "BROKEN"
        case TrialStatus.NOT_TRIED:
            return f"not tried: {trial.why}"


def _print_table(console: Console, trials: tuple[Trial, ...]) -> None:
    """Print an aligned table. The longest cell comes last, so that a terminal can wrap it."""
    width = max([5, *(len(trial.trick) for trial in trials)])
    head = f"{'trick':<{width}}  layer  {'honest twin':<12}  {'exit-code gate':<15}  stopped by"
    console.print(head, style="dim", soft_wrap=True)
    for trial in trials:
        honest = trial.honest.ending.value if trial.honest else "–"
        console.print(f"{trial.trick:<{width}}  {trial.layer:<5}  ", end="", soft_wrap=True)
        style = "red" if trial.honest and not trial.honest_passed else None
        console.print(f"{honest:<12}  ", style=style, end="", soft_wrap=True)
        console.print(f"{_GATE_LABELS[trial.gate]:<15}  ", end="", soft_wrap=True)
        console.print(
            escape_control(describe_stop(trial)), style=_STYLES.get(trial.standing, "bold red"), soft_wrap=True
        )


def _print_problem(console: Console, trial: Trial) -> None:
    console.print(f"\n{trial.trick}", style="bold red", end="")
    console.print(f"  {escape_control(trial.does)}", soft_wrap=True)
    if trial.standing is TrialStatus.BROKEN:
        problem = trial.cheat.reason if trial.cheat else trial.why
        console.print(f"  the trial did not finish: {escape_control(problem)}", soft_wrap=True)
    elif trial.standing is not TrialStatus.STOPPED and trial.cheat:
        console.print(f"  must be stopped by {trial.layer}: {', '.join(trial.expected)}", soft_wrap=True)
        result = f"{trial.cheat.ending}" + (f", {trial.cheat.reason}" if trial.cheat.reason else "")
        rules = ", ".join(trial.cheat.rules) or "none"
        console.print(
            f"  the check said: {escape_control(result)}; reported rules: {escape_control(rules)}", soft_wrap=True
        )
    if trial.honest and trial.honest.ending is not CheckEnding.PASSED:
        rules = f" ({', '.join(trial.honest.rules)})" if trial.honest.rules else ""
        result = f"{trial.honest.ending}, {trial.honest.reason}{rules}"
        console.print(f"  its honest twin must pass, but the check said: {escape_control(result)}", soft_wrap=True)
    console.print(f"  to inspect it: proofstone prove --trick {trial.trick} --dir DIR", style="dim", soft_wrap=True)


def _print_walls(console: Console, proof: Proof) -> None:
    console.print(f"\nWalls of this machine, tried at the level {proof.level}:", style="bold")
    subject = ""
    for wall in proof.walls:
        if wall.subject != subject:
            subject = wall.subject
            console.print(f" {subject}", style="dim")
        word, style = _WALL_LABELS[wall.held]
        console.print(f"  {word:<9}", style=style, end="")
        console.print(f"  {wall.name}" + (f" ({escape_control(wall.detail)})" if wall.detail else ""), soft_wrap=True)
        if wall.fix:
            console.print(f"{'':<13}→ {wall.fix}", soft_wrap=True)


def _print_summary(console: Console, proof: Proof) -> None:
    console.print()
    console.print("PROVED" if proof.is_ok else "NOT PROVED", style="bold green" if proof.is_ok else "bold red", end="")
    console.print(f"  {format_summary(proof.summary)}", soft_wrap=True)
    if proof.walls:
        results = [wall.held for wall in proof.walls if wall.held is not None]
        console.print(
            f"  this machine: level {proof.level}, {sum(results)} of {len(results)} walls held", soft_wrap=True
        )
        for wall in proof.broken_promises:
            console.print(f"  this level promises, and it is not so: {wall.name}", style="bold red", soft_wrap=True)
    else:
        console.print(f"  this machine: level {proof.level}", soft_wrap=True)
    for why, count in proof.summary.not_tried.items():
        console.print(f"  not tried: {count} ({escape_control(why)})", style="yellow", soft_wrap=True)
    if proof.level is not Assurance.BUBBLEWRAP:
        for hint in proof.advice:
            console.print(f"  hint: {hint}", style="yellow", soft_wrap=True)


def format_summary(found: ProofSummary) -> str:
    if not found.tricks:
        return "no trick was tried"
    text = (
        f"{found.stopped} of {found.tricks} tricks stopped, {found.honest_passed} of {found.tricks} honest twins passed"
    )
    if found.gate_run:
        text += f"; {found.gate_passed} of {found.gate_run} would have passed an exit-code gate"
    return text


_MARKDOWN_GATE_LABELS: Final = {
    ExitCodeGate.PASSES: "lets it through",
    ExitCodeGate.REFUSES: "refuses",
    ExitCodeGate.NOT_RUN: "not run",
}
_HEAD: Final = (
    "| trick | what it does | seen | layer | stopped by | honest twin | exit-code gate |\n|---|---|---|---|---|---|---|"
)


def render_catalogue(proof: Proof) -> str:
    lines = [f"{format_summary(proof.summary)}.", "", *_layer_table(proof.trials)]
    for family in dict.fromkeys(trial.family for trial in proof.trials):
        family_trials = [trial for trial in proof.trials if trial.family == family]
        lines += ["", f"## {family}", "", _HEAD, *map(_format_row, family_trials)]
    return "\n".join(lines) + "\n"


def _layer_table(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield a table of the layers: how many tricks each must stop, and the rules that stopped them."""
    yield "| layer | tricks | stopped | rules that stopped them |"
    yield "|---|---|---|---|"
    for layer, title in LAYER_TITLES.items():
        layer_trials = [trial for trial in trials if trial.layer == layer]
        if layer_trials:
            stopped = sum(trial.standing is TrialStatus.STOPPED for trial in layer_trials)
            rules = Counter(rule for trial in layer_trials for rule in trial.stopped_by[:1])
            rule_counts = ", ".join(f"`{rule}` {count}" for rule, count in sorted(rules.items()))
            yield f"| {layer} {title} | {len(layer_trials)} | {stopped} | {rule_counts} |"


def _format_row(trial: Trial) -> str:
    # Only the first reported rule: which others report may depend on what was planted where.
    rules = "".join(f"`{rule}`" for rule in trial.stopped_by[:1]) or f"**{describe_stop(trial)}**"
    honest = trial.honest.ending.value if trial.honest else "–"
    cells = (
        f"`{trial.trick}`",
        trial.does,
        trial.origin,
        trial.layer,
        rules,
        honest,
        _MARKDOWN_GATE_LABELS[trial.gate],
    )
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
