"""`assay backends`: who serves each role, whether they can, and with `--probe` how they answer."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.adapters.backends.probing import Probed
from assay.agents_app import Agent, Agents, Standing, agents, probes, words
from assay.contracts.agent import Usage
from assay.errors import InputError
from assay.surfaces.cli.agent_options import BackendOption, backend_words
from assay.surfaces.cli.output import JsonOption, NoColorOption, Output, RepoOption, printable, repository_root

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(add_completion=False)


@app.command()
def backends(
    repo: RepoOption = Path(),
    backend: BackendOption = None,
    ask: Annotated[
        bool, typer.Option("--probe", help="Ask each of them one short question. It costs a few tokens.")
    ] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> int:
    """Show who serves each role, where that was said, and whether they can; with --probe, whether they answer.

    \b
    A backend is whoever can take a role:
      api:openai:gpt-5          a model, by provider and name
      cmd:./agent.sh            a program
      human                     you
      script:answers.yaml       prepared answers, for demonstrations

    \b
    Roles are set under [backends], in your own ~/.config/assay/assay.toml and in the repository's assay.toml.
    Yours goes before the repository's, and --backend before both.

    Exits with 0 when all are ready, and have answered if they were asked; with 1 when one is not.
    """
    if not repo.is_dir():
        raise InputError(f"--repo {repo}: there is no such directory")
    output = Output(json=as_json, no_color=no_color)
    said = words(repository_root(repo), backend_words(backend))
    known = agents(said)
    console = output.results()
    _print_agents(console, known)
    answered = []
    for one in probes(said, known) if ask else ():
        answered.append(one)
        _print_probe(console, one)
    well = known.ready and not any(one.fault for one in answered)
    if as_json:
        output.document(_document(well, str(said.person.file), known, answered if ask else None))
    return 0 if well else 1


def _print_agents(console: Console, known: Agents) -> None:
    width = max(len(agent.name) for agent in known.agents)
    for agent in known.agents:
        name = agent.name
        for one in agent.standings:
            console.print(printable(f"{name:<{width}}  {one.spec}"), style="bold", soft_wrap=True)
            console.print(printable(f"{'':<{width}}  {_facts(agent, one)}"), soft_wrap=True)
            name = ""
        if not agent.standings:
            console.print(f"{name:<{width}}  nobody is named", style="yellow", soft_wrap=True)
    if any(not agent.standings for agent in known.agents):
        console.print(
            "\nName somebody for all that have nobody: `default` under [backends], or --backend default=SPEC."
        )
    for problem in known.problems:
        word = "refused" if problem.refuse else "note"
        console.print(printable(f"\n{word}: {problem.text}"), style="red" if problem.refuse else None, soft_wrap=True)


def _facts(agent: Agent, one: Standing) -> str:
    model = f"{one.vendor or 'vendor unknown'}, {_tier(one)}, " if one.model else ""
    price = {True: "price known, ", False: "price unknown, ", None: ""}[one.priced]
    state = f"not ready: {one.missing}{f' ({one.hint})' if one.hint else ''}" if one.missing else "ready"
    key = f" ({agent.choice.key})" if agent.choice.key else ""
    return f"{model}{price}set by {agent.choice.origin}{key}: {state}"


def _tier(one: Standing) -> str:
    return "tier unknown" if one.tier is None else f"tier {one.tier}"


def _print_probe(console: Console, one: Probed) -> None:
    if one.fault:
        console.print(printable(f"\n{one.spec} did not answer as it should: {one.fault}"), style="red", soft_wrap=True)
        return
    used = one.usage
    tokens = f", {used.tokens} tokens, {_cost(used)}" if used.requests else ""
    who = f" as {one.model}" if one.model else ""
    console.print(printable(f"\n{one.spec} answered{who} in {one.milliseconds} ms{tokens}"), soft_wrap=True)


def _cost(used: Usage) -> str:
    return "cost unknown" if used.usd is None else f"${used.usd:.6f}"


def _document(well: bool, file: str, known: Agents, answered: list[Probed] | None) -> dict[str, object]:
    return {
        "ok": well,
        "person_file": file,
        "agents": [
            {
                "agent": agent.name,
                "from": agent.choice.origin.value,
                "key": agent.choice.key,
                "ready": not agent.missing,
                "backends": [asdict(one) for one in agent.standings],
            }
            for agent in known.agents
        ],
        "problems": [asdict(problem) for problem in known.problems],
        "probes": None if answered is None else [_probe_document(one) for one in answered],
    }


def _probe_document(one: Probed) -> dict[str, object]:
    return {
        "spec": one.spec,
        "answered": not one.fault,
        "fault": one.fault,
        "model": one.model,
        "milliseconds": one.milliseconds,
        "usage": one.usage.model_dump(mode="json"),
    }
