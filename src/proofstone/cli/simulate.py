"""`proofstone simulate`: compare the policies of the control loop on generated tasks. Nothing real is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.cli.render.simulation import print_comparison, render_comparison_plot
from proofstone.errors import InputError
from proofstone.machine.files import write_atomic
from proofstone.solve.rules.gradient import LossWeights
from proofstone.solve.simulation.rules import MIXES, DiceSource
from proofstone.solve.simulation.run import CONTENDERS, PolicySummary, compare_policies

app = typer.Typer(add_completion=False)
ALL_MIXES = "all"


@app.command()
def simulate(
    landscapes: Annotated[
        int, typer.Option("--landscapes", min=2, help="How many tasks to draw from each mix.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same result.")] = 1,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", help=f"One of: {', '.join(CONTENDERS)}; can be repeated."),
    ] = None,
    mix: Annotated[
        str, typer.Option("--mix", metavar="NAME", help=f"The kind of tasks: {', '.join(MIXES)}; or {ALL_MIXES}.")
    ] = "mixed",
    replans: Annotated[
        int, typer.Option("--replans", min=0, help="The replans that each run may use.")
    ] = LossWeights.max_replans,
    seconds: Annotated[
        int, typer.Option("--seconds", min=0, help="The seconds that each run may use.")
    ] = LossWeights.time_budget_ms // 1000,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the result in this file.")
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Compare the policies of the control loop on random tasks: how often each succeeds with the same budget, in how
    many rounds and at what cost.

    Each policy drives a simulated planner through the same tasks with the same random numbers; measurements and
    decisions are those of the real controller. The tasks are generated: this shows which policy suits which kind of
    task, not how often a model solves one.
    """
    policies = _require_known("policy", policy or list(CONTENDERS), list(CONTENDERS))
    mixes = list(MIXES) if mix == ALL_MIXES else _require_known("mix", [mix], [*MIXES, ALL_MIXES])
    if plot is not None and not plot.parent.is_dir():
        raise InputError(f"--plot {plot}: there is no directory {plot.parent}", hint="create it, or name another file")
    weights = LossWeights(max_replans=replans, time_budget_ms=seconds * 1000)
    summaries = {
        name: compare_policies(MIXES[name], policies, landscapes, make_random_source(seed, name), weights)
        for name in mixes
    }
    if plot is not None:
        write_atomic(plot, render_comparison_plot(summaries).encode())
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document(_document(summaries, seed, weights))
    else:
        print_comparison(output.result_console(), summaries, seed, weights)
    return 0


def make_random_source(seed: int, mix: str) -> DiceSource:
    """Return a source of random numbers for a mix."""
    return lambda name: Random(f"{seed} {mix} {name}")  # noqa: S311  a simulation, not a secret


def _require_known(option: str, names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in known:
            raise InputError(f"--{option} {name}: there is no such {option}", hint=f"there are: {', '.join(known)}")
    return names


def _document(results: dict[str, tuple[PolicySummary, ...]], seed: int, weights: LossWeights) -> dict[str, object]:
    return {
        "seed": seed,
        "replans": weights.max_replans,
        "seconds": weights.time_budget_ms // 1000,
        "mixes": {name: [asdict(summary) for summary in summaries] for name, summaries in results.items()},
    }
