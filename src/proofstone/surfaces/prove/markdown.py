"""The proof as a page of the manual: what is in the catalogue, what stops each trick, what an exit code would say.

Nothing in it depends on the machine, the time or the run, so that it can be kept and compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from proofstone.core.layers import TITLES
from proofstone.surfaces.prove.results import Gate, Proof, Standing, Trial
from proofstone.surfaces.prove.text import stopped_by, summary

_GATE: Final = {Gate.PASSES: "lets it through", Gate.REFUSES: "refuses", Gate.NOT_RUN: "not run"}
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
    cells = (f"`{trial.trick}`", trial.does, trial.origin, trial.layer, rules, honest, _GATE[trial.gate])
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
