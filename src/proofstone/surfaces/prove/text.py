"""The proof as a person reads it: the table, the walls, what went wrong, and the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proofstone.contracts.verdict import Assurance
from proofstone.surfaces.cli.text import printable
from proofstone.surfaces.prove.results import Ending, Gate, Proof, Standing, Summary, Trial

if TYPE_CHECKING:
    from rich.console import Console

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
