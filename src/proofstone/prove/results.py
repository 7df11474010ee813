"""What came of the trials, for people and programs.

The proof as a person reads it: the table, the walls, what went wrong, and the sum.

The proof as a page of the manual: what is in the catalogue, what stops each trick, what an exit code would say.

Nothing in it depends on the machine, the time or the run, so that it can be kept and compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from proofstone.check.rules.outcome import TITLES
from proofstone.common.models import Assurance, Contract
from proofstone.common.text import printable

if TYPE_CHECKING:
    from rich.console import Console


class Ending(StrEnum):
    """How one `proofstone check` ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNVERIFIABLE = "unverifiable"
    REFUSED = "refused"
    """Bad input: it was not checked at all, and said why."""
    BROKEN = "broken"
    """Proofstone itself failed or did not come to an end: that stops nothing."""


class Judged(Contract):
    ending: Ending
    rules: tuple[str, ...] = ()
    """The rules of its findings, and the key words of its reasons."""
    reason: str = ""


class Standing(StrEnum):
    STOPPED = "stopped"
    OTHERWISE = "refused for another reason"
    """None of the rules that must stop it did: by luck, then, and not by design."""
    MISSED = "not stopped"
    BROKEN = "broken"
    NOT_TRIED = "not tried"


class Gate(StrEnum):
    """What a gate that looks at the exit code of the project's tests says to the trick."""

    PASSES = "passes"
    REFUSES = "refuses"
    NOT_RUN = "not run"


class Trial(Contract):
    """One trick and its twin."""

    trick: str
    does: str
    family: str
    layer: str
    origin: str
    project: str
    expected: tuple[str, ...]
    """The rules of which at least one must stop it."""
    standing: Standing
    stopped_by: tuple[str, ...] = ()
    cheat: Judged | None = None
    honest: Judged | None = None
    gate: Gate = Gate.NOT_RUN
    why: str = ""
    """Why it was not tried, what broke, or why the exit-code gate was not run."""

    @property
    def tried(self) -> bool:
        return self.standing is not Standing.NOT_TRIED

    @property
    def honest_passed(self) -> bool:
        return self.honest is not None and self.honest.ending is Ending.PASSED

    @property
    def well(self) -> bool:
        return not self.tried or (self.standing is Standing.STOPPED and self.honest_passed)


class Wall(Contract):
    """One thing that no check may do on this machine, and whether it could."""

    name: str
    attempt: str = ""
    """The name of the attempt in the threat model."""
    subject: str = ""
    """What it protects."""
    held: bool | None
    """None: not tried."""
    detail: str = ""
    fix: str = ""
    """What would raise it."""


class Summary(Contract):
    tricks: int
    """That were tried."""
    stopped: int
    honest_passed: int
    gate_run: int
    gate_passed: int
    """Tricks that an exit-code gate lets through."""
    not_tried: dict[str, int]
    """Why, and how many."""


class Proof(Contract):
    level: Assurance
    """The sandbox that checks get on this machine."""
    trials: tuple[Trial, ...]
    walls: tuple[Wall, ...] = ()
    advice: tuple[str, ...] = ()
    """What would raise the level."""

    @property
    def well(self) -> bool:
        """Every trick that was tried was stopped, every twin passed; and something was tried."""
        return any(trial.tried for trial in self.trials) and all(trial.well for trial in self.trials)

    @property
    def summary(self) -> Summary:
        return summed(self.trials)


def summed(trials: Sequence[Trial]) -> Summary:
    tried = [trial for trial in trials if trial.tried]
    reasons = [trial.why for trial in trials if not trial.tried]
    return Summary(
        tricks=len(tried),
        stopped=sum(trial.standing is Standing.STOPPED for trial in tried),
        honest_passed=sum(trial.honest_passed for trial in tried),
        gate_run=sum(trial.gate is not Gate.NOT_RUN for trial in tried),
        gate_passed=sum(trial.gate is Gate.PASSES for trial in tried),
        not_tried={why: reasons.count(why) for why in sorted(set(reasons))},
    )


_STYLE: Final = {Standing.STOPPED: "green", Standing.NOT_TRIED: "dim"}
_GATE: Final = {Gate.PASSES: "lets it through", Gate.REFUSES: "refuses", Gate.NOT_RUN: "–"}
_HELD: Final = {True: ("held", "green"), False: ("gives way", "red"), None: ("–", "dim")}


def print_proof(console: Console, proof: Proof) -> None:
    _table(console, proof.trials)
    for trial in proof.trials:
        if not trial.well:
            _complaint(console, trial)
    if proof.walls:
        _walls(console, proof)
    _sum(console, proof)


def stopped_by(trial: Trial) -> str:
    """What stopped it, or what became of it instead."""
    match trial.standing:
        case Standing.STOPPED:
            return ", ".join(trial.stopped_by)
        case Standing.OTHERWISE:
            return f"another reason: {', '.join(trial.cheat.rules) or trial.cheat.ending}" if trial.cheat else ""
        case Standing.MISSED:
            return "NOT STOPPED"
        case Standing.BROKEN:
            return "BROKEN"
        case Standing.NOT_TRIED:
            return f"not tried: {trial.why}"


def _table(console: Console, trials: tuple[Trial, ...]) -> None:
    """Aligned by hand, with the longest cell last but for two short ones: a terminal wraps what does not fit."""
    name = max([5, *(len(trial.trick) for trial in trials)])
    head = f"{'trick':<{name}}  layer  {'honest twin':<12}  {'exit-code gate':<15}  stopped by"
    console.print(head, style="dim", soft_wrap=True)
    for trial in trials:
        honest = trial.honest.ending.value if trial.honest else "–"
        console.print(f"{trial.trick:<{name}}  {trial.layer:<5}  ", end="", soft_wrap=True)
        style = "red" if trial.honest and not trial.honest_passed else None
        console.print(f"{honest:<12}  ", style=style, end="", soft_wrap=True)
        console.print(f"{_GATE[trial.gate]:<15}  ", end="", soft_wrap=True)
        console.print(printable(stopped_by(trial)), style=_STYLE.get(trial.standing, "bold red"), soft_wrap=True)


def _complaint(console: Console, trial: Trial) -> None:
    console.print(f"\n{trial.trick}", style="bold red", end="")
    console.print(f"  {printable(trial.does)}", soft_wrap=True)
    if trial.standing is Standing.BROKEN:
        said = trial.cheat.reason if trial.cheat else trial.why
        console.print(f"  could not be tried to the end: {printable(said)}", soft_wrap=True)
    elif trial.standing is not Standing.STOPPED and trial.cheat:
        console.print(f"  must be stopped by {trial.layer}: {', '.join(trial.expected)}", soft_wrap=True)
        told = f"{trial.cheat.ending}" + (f", {trial.cheat.reason}" if trial.cheat.reason else "")
        rules = ", ".join(trial.cheat.rules) or "none"
        console.print(f"  the check said: {printable(told)}; rules that spoke: {printable(rules)}", soft_wrap=True)
    if trial.honest and trial.honest.ending is not Ending.PASSED:
        rules = f" ({', '.join(trial.honest.rules)})" if trial.honest.rules else ""
        told = f"{trial.honest.ending}, {trial.honest.reason}{rules}"
        console.print(f"  its honest twin must pass, and the check said: {printable(told)}", soft_wrap=True)
    console.print(f"  to look at it: proofstone prove --trick {trial.trick} --dir DIR", style="dim", soft_wrap=True)


def _walls(console: Console, proof: Proof) -> None:
    console.print(f"\nWalls of this machine, tried at the level {proof.level}:", style="bold")
    subject = ""
    for wall in proof.walls:
        if wall.subject != subject:
            subject = wall.subject
            console.print(f" {subject}", style="dim")
        word, style = _HELD[wall.held]
        console.print(f"  {word:<9}", style=style, end="")
        console.print(f"  {wall.name}" + (f" ({printable(wall.detail)})" if wall.detail else ""), soft_wrap=True)
        if wall.fix:
            console.print(f"{'':<13}→ {wall.fix}", soft_wrap=True)


def _sum(console: Console, proof: Proof) -> None:
    console.print()
    console.print("PROVED" if proof.well else "NOT PROVED", style="bold green" if proof.well else "bold red", end="")
    console.print(f"  {summary(proof.summary)}", soft_wrap=True)
    if proof.walls:
        tried = [wall.held for wall in proof.walls if wall.held is not None]
        console.print(f"  this machine: level {proof.level}, {sum(tried)} of {len(tried)} walls held", soft_wrap=True)
    else:
        console.print(f"  this machine: level {proof.level}", soft_wrap=True)
    for why, count in proof.summary.not_tried.items():
        console.print(f"  not tried: {count} ({printable(why)})", style="yellow", soft_wrap=True)
    if proof.level is not Assurance.BUBBLEWRAP:
        for hint in proof.advice:
            console.print(f"  hint: {hint}", style="yellow", soft_wrap=True)


def summary(found: Summary) -> str:
    if not found.tricks:
        return "no trick was tried"
    told = (
        f"{found.stopped} of {found.tricks} tricks stopped, {found.honest_passed} of {found.tricks} honest twins passed"
    )
    if found.gate_run:
        told += f"; {found.gate_passed} of {found.gate_run} would have passed an exit-code gate"
    return told


_MARKDOWN_GATE: Final = {Gate.PASSES: "lets it through", Gate.REFUSES: "refuses", Gate.NOT_RUN: "not run"}
_HEAD: Final = (
    "| trick | what it does | seen | layer | stopped by | honest twin | exit-code gate |\n|---|---|---|---|---|---|---|"
)


def render(proof: Proof) -> str:
    lines = [f"{summary(proof.summary)}.", "", *_layers(proof.trials)]
    for family in dict.fromkeys(trial.family for trial in proof.trials):
        of = [trial for trial in proof.trials if trial.family == family]
        lines += ["", f"## {family}", "", _HEAD, *map(_row, of)]
    return "\n".join(lines) + "\n"


def _layers(trials: Sequence[Trial]) -> Iterator[str]:
    """Which layer stops what: how many tricks are its own, and with which rules it stopped them."""
    yield "| layer | tricks | stopped | rules that stopped them |"
    yield "|---|---|---|---|"
    for layer, words in TITLES.items():
        of = [trial for trial in trials if trial.layer == layer]
        if of:
            stopped = sum(trial.standing is Standing.STOPPED for trial in of)
            rules = Counter(rule for trial in of for rule in trial.stopped_by[:1])
            told = ", ".join(f"`{rule}` {count}" for rule, count in sorted(rules.items()))
            yield f"| {layer} {words} | {len(of)} | {stopped} | {told} |"


def _row(trial: Trial) -> str:
    # The first of its rules that spoke: which others do may depend on what was planted where.
    rules = "".join(f"`{rule}`" for rule in trial.stopped_by[:1]) or f"**{stopped_by(trial)}**"
    honest = trial.honest.ending.value if trial.honest else "–"
    cells = (f"`{trial.trick}`", trial.does, trial.origin, trial.layer, rules, honest, _MARKDOWN_GATE[trial.gate])
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
