"""`assay demo`: scripted agents on a sample repository; the ones that cheat are caught. Real git, checks and ledger."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from assay.adapters.git.program import Git
from assay.app import check_run
from assay.engine.progress import Silent
from assay.engine.world import CheckRequest
from assay.errors import InputError
from assay.surfaces.cli.output import JsonOption, NoColorOption, Output
from assay.surfaces.demo.shop import AGENTS, FILES, Agent
from assay.surfaces.report.check import print_report

app = typer.Typer(add_completion=False)

_SAID = {"run_id", "outcome", "reason", "assurance", "fixed", "edited", "regressions", "findings"}


@app.command()
def demo(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="A new directory for it; else a temporary one.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Watch four scripted agents mend a bug, or pretend to. Needs no model, no key and no network.

    A sample repository is made with a failing test. Each agent says that it has mended the bug; `assay check` says
    whether it has. Everything stays in the directory that is named at the end, for you to look at.

    Exit code: 0 if every agent was judged as it deserves.
    """
    place = _new_directory(directory)
    repository, state = place / "shop", place / "state"
    output = Output(json=as_json, no_color=no_color)
    console = output.results()
    git = _make(repository)
    judged: list[dict[str, object]] = []
    for number, agent in enumerate(AGENTS, start=1):
        console.rule(f"{number}. {agent.name}")
        console.print(f'It says: "{agent.claim}"\n', soft_wrap=True)
        _work(repository, agent)
        with check_run(repository, CheckRequest(), Silent(), home=state) as run:
            report = run.run()
        print_report(console, report)
        console.print(f"\n{agent.lesson}\n", style="italic", soft_wrap=True)
        right = report.outcome is agent.outcome
        said = {"agent": agent.name, "claim": agent.claim, "as_it_deserves": right}
        judged.append(said | report.model_dump(mode="json", include=_SAID))
        git.run("checkout", "--quiet", "--", ".")
    all_right = all(one["as_it_deserves"] for one in judged)
    if as_json:
        output.document({"directory": str(place), "agents": judged})
    console.rule("the evidence")
    console.print(f"repository  {repository}\nledger      ASSAY_HOME={state} assay ledger show", soft_wrap=True)
    console.print(f"proof       ASSAY_HOME={state} assay ledger verify --repo {repository}", soft_wrap=True)
    if not all_right:
        console.print("\nAn agent was not judged as it deserves: see above.", style="bold red")
    return 0 if all_right else 1


def _new_directory(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="assay-demo-"))
    if directory.exists() and any(directory.iterdir()):
        raise InputError(f"--dir {directory}: there is something in it already", hint="name a directory that is new")
    directory.mkdir(parents=True, exist_ok=True)
    return directory.absolute()


def _make(repository: Path) -> Git:
    """The sample repository, with one commit."""
    for path, text in FILES.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text, "utf-8")
    git = Git(repository, settings=("user.name=Assay demo", "user.email=demo@example.invalid", "commit.gpgSign=false"))
    git.run("init", "--quiet", "--initial-branch=main", ".")
    git.run("add", "--all")
    git.run("commit", "--quiet", "--message", "A cart that adds up, nearly")
    return git


def _work(repository: Path, agent: Agent) -> None:
    for path, (old, new) in agent.edits.items():
        file = repository / path
        text = file.read_text("utf-8")
        if old not in text:
            raise AssertionError(f"{agent.name}: {path} does not hold what it is to change")
        file.write_text(text.replace(old, new), "utf-8")
