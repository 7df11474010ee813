"""`proofstone agents`: the agents, and their definitions as files for the coding agent that somebody already uses."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import printable
from proofstone.export.definitions import Agent
from proofstone.export.definitions import agents as all_agents
from proofstone.export.prompts import Ability
from proofstone.export.targets import KINDS
from proofstone.export.writing import write

app = typer.Typer(
    add_completion=False, help="The agents of the feature pipeline, as files for the coding agent that you already use."
)


class ExportKind(StrEnum):
    COPILOT = "copilot"
    CLAUDE = "claude"
    GENERIC = "generic"


@app.command()
def export(
    kind: Annotated[ExportKind, typer.Argument(metavar="KIND", help="For whom.", show_default=False)],
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Where to: your repository, or a folder of its own.", show_default=False),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there and differ.")] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Write the agents' definitions into DIR: nine agents, schemas, dispatch patterns, severities, and a way to begin.

    \b
    KIND is one of:
      copilot   GitHub Copilot: .github/agents, .github/prompts and a README.md with the diagram
      claude    Claude Code: .claude/agents, .claude/commands and .claude/references
      generic   any other agent: AGENTS.md and agents/; and the agents of the plan gate in plan-gate/

    \b
      proofstone agents export claude .
      proofstone agents export copilot ../pipeline      # look at it first, then copy what you want

    They are made from the same prompts and contracts that Proofstone itself works with. Outside of Proofstone nothing
    enforces
    their limits; what comes of them is verified by `proofstone check`.

    All is written, or nothing. Files that are there already and the same are left alone; if one differs, nothing is
    written without --force. Exits with 0 when everything is in its place, with 2 when it is not.
    """
    chosen = KINDS[kind.value]
    done = write(folder, chosen.files(), force=force)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.document(
            {
                "kind": kind.value,
                "directory": str(folder.absolute()),
                "written": list(done.new),
                "replaced": list(done.replaced),
                "unchanged": list(done.unchanged),
                "next": list(chosen.next),
            }
        )
        return
    console = output.results()
    for word, paths in (("wrote", done.new), ("replaced", done.replaced)):
        for path in paths:
            console.print(printable(f"{word} {folder / path}"), soft_wrap=True)
    if done.unchanged:
        console.print(f"{len(done.unchanged)} files were there already and are the same", style="dim")
    console.print(f"\nDefinitions for {chosen.name}. Next:", soft_wrap=True)
    for number, step in enumerate(chosen.next, 1):
        console.print(f"  {number}. {step}", soft_wrap=True)


@app.command(name="list")
def list_(as_json: JsonOption = False, no_color: NoColorOption = False) -> None:
    """Show the agents of the feature pipeline: when each works, what for, and what it may do.

    Roles of Proofstone's own runtime, those of the plan gate among them, are shown by `proofstone backends`.
    """
    output = Output(json=as_json, no_color=no_color)
    known = all_agents()
    if as_json:
        output.document({"agents": [_document(agent) for agent in known]})
        return
    console = output.results()
    width = max(len(agent.name) for agent in known)
    for agent in known:
        console.print(f"{agent.name:<{width}}  {agent.summary}", soft_wrap=True)
        console.print(
            f"{'':<{width}}  step {agent.place.step}; may {', '.join(_abilities(agent))}", style="dim", soft_wrap=True
        )
    console.print("\n`proofstone agents export KIND DIR` writes their definitions.", soft_wrap=True)


def _abilities(agent: Agent) -> list[str]:
    return [ability.value for ability in Ability if ability in agent.abilities]


def _document(agent: Agent) -> dict[str, object]:
    return {
        "agent": agent.name,
        "title": agent.title,
        "purpose": agent.summary,
        "step": agent.place.step,
        "schema": agent.schema.name,
        "abilities": _abilities(agent),
        "tools": sorted(agent.tools),
    }
