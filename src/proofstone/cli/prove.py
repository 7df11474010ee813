"""`proofstone prove`: try the catalogue of tricks on this machine, and test the walls of its sandbox."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from proofstone.app.context import ensure_private_home, new_run_id
from proofstone.cli.doctor import read_machine_facts, suggest_fixes
from proofstone.cli.output import JsonOption, NoColorOption, Output, QuietOption
from proofstone.errors import InputError
from proofstone.machine.files import scratch_folder
from proofstone.prove.catalogue import CATALOGUE_FOLDER, Catalogue, Trick, draw_sample, select_tricks
from proofstone.prove.compose import load_whole_catalogue
from proofstone.prove.processes import find_search_path
from proofstone.prove.results import Proof, Wall, print_proof, render_catalogue
from proofstone.prove.runner import LiveTrials, TrialPlan, try_all
from proofstone.prove.walls import try_walls
from proofstone.sandbox.probe import choose_sandbox, try_sandboxes

app = typer.Typer(add_completion=False)


@app.command()
def prove(
    quick: Annotated[
        bool, typer.Option("--quick", help="Try ten tricks in about a minute on two cores, without the exit-code gate.")
    ] = False,
    tricks: Annotated[
        list[str] | None,
        typer.Option("--trick", metavar="NAME", help="Try only this trick, and no walls. Can be repeated."),
    ] = None,
    families: Annotated[
        list[str] | None,
        typer.Option("--family", metavar="NAME", help="Try only this family of tricks, and no walls. Can be repeated."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", metavar="N", min=1, help="Try only N of the chosen tricks, drawn by --seed."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="What --sample draws by.")] = 1,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", metavar="N", min=1, max=64, help="How many trials run at the same time; by default one per core."
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as a page of documentation, without the walls.")
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Keep every trial in this new directory.", show_default=False),
    ] = None,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse to run below the strongest sandbox level.")
    ] = False,
    catalogue: Annotated[
        Path, typer.Option("--catalogue", metavar="DIR", help="Use another catalogue.", show_default=False)
    ] = CATALOGUE_FOLDER,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Try every known trick against `proofstone check` on this machine, and report what stopped it.

    Each trick makes a failing check look passed on a sample project. The intended rule must stop it, and an honest
    change in the same place must pass. For comparison, the report shows what a gate would say that looks only at the
    exit code of the tests. Then the walls of the sandbox are tested. Nothing outside a temporary folder is touched.

    The family `composed` is made of everything that can be faked, the places where it can live, the moments at which it
    can act and the ways to hide it. It is tried only where you name it: it takes an hour, or `--sample` draws a part.

    Exit code: 0 every trick was stopped, every honest change passed, and every wall held that the level of your
    sandbox promises; 1 otherwise; 2 bad input.
    """
    if markdown and as_json:
        raise InputError("--markdown and --json: choose one")
    loaded = load_whole_catalogue(catalogue)
    selected = select_tricks(loaded, names=tricks or (), families=families or (), quick=quick)
    if not selected:
        raise InputError("none of these tricks is a quick one", hint="leave out --quick")
    if sample is not None:
        selected = draw_sample(selected, sample, seed)
    output = Output(json=as_json or markdown, quiet=quiet, no_color=no_color)
    with _open_folder(directory) as place:
        search = find_search_path(
            need for trick in selected for need in (*loaded.projects[trick.project].needs, *trick.needs)
        )
        trials_folder = place / "trials" if directory else None
        plan = TrialPlan(place, search, jobs or os.cpu_count() or 1, not quick, require_sandbox, trials_folder)
        proof = _run_trials(loaded, selected, plan, output, walls=not (tricks or families or markdown))
    if as_json:
        output.print_document(
            {"ok": proof.is_ok, **proof.model_dump(mode="json"), "summary": proof.summary.model_dump()}
        )
    elif markdown:
        sys.stdout.write(render_catalogue(proof))
    else:
        sys.stderr.flush()
        print_proof(output.result_console(), proof)
    return 0 if proof.is_ok else 1


def _run_trials(
    loaded: Catalogue, selected: tuple[Trick, ...], plan: TrialPlan, output: Output, *, walls: bool
) -> Proof:
    facts = try_sandboxes(plan.place / "probe")
    level = choose_sandbox(facts, "auto", require=plan.require_sandbox).level
    live = LiveTrials(output.progress_console(), len(selected))
    wall_results: list[Wall] = []
    with live.show_status():
        trials = try_all(loaded, selected, plan, live)
        if walls:
            live.show_step("trying the walls of the sandbox")
            wall_results = try_walls(plan.create_bench("walls", threading.Event()), level)
    return Proof(
        level=level, trials=tuple(trials), walls=tuple(wall_results), advice=tuple(suggest_fixes(read_machine_facts()))
    )


@contextmanager
def _open_folder(directory: Path | None) -> Iterator[Path]:
    """Yield the folder of the trials: a scratch folder that is removed afterwards, or the one to keep."""
    if directory is None:
        with scratch_folder(ensure_private_home(), new_run_id()) as place:
            yield place
        return
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"--dir {directory}: is not empty", hint="name a new directory")
    directory.mkdir(parents=True, exist_ok=True)
    yield directory.resolve()
