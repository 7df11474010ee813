"""`proofstone agents`: list the agents, and write their definitions as files for a coding agent."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proofstone.cli.output import JsonOption, NoColorOption, Output
from proofstone.common.text import escape_control
from proofstone.export.definitions import AgentDefinition, build_agents
from proofstone.export.prompts import Ability
from proofstone.export.targets import EXPORT_TARGETS
from proofstone.export.writer import write_exported_files

app = typer.Typer(
    add_completion=False, help="List the agents of the feature pipeline, and write them as files for your coding agent."
)


class ExportKind(StrEnum):
    """The coding agents that definitions can be written for."""

    COPILOT = "copilot"
    CLAUDE = "claude"
    GENERIC = "generic"


@app.command()
def export(
    kind: Annotated[ExportKind, typer.Argument(metavar="KIND", help="The kind of coding agent.", show_default=False)],
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder to write to: your repository, or a separate folder.", show_default=False
        ),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace existing files that differ.")] = False,
    as_json: JsonOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Write the definitions of the agents into DIR: nine agents, schemas, dispatch patterns, severities, and an entry
    point.

    \b
    KIND is one of:
      copilot   GitHub Copilot: .github/agents, .github/prompts and a README.md with the diagram
      claude    Claude Code: .claude/agents, .claude/commands and .claude/references
      generic   any other agent: AGENTS.md and agents/; and the agents of the plan gate in plan-gate/

    \b
      proofstone agents export claude .
      proofstone agents export copilot ../pipeline      # look at it first, then copy what you want

    The definitions come from the same prompts and contracts that Proofstone itself uses. Outside of Proofstone nothing
    enforces their limits; verify their work with `proofstone check`.

    Either all files are written or none. Equal files are left alone; if an existing file differs, nothing is written
    without --force. Exit code: 0 everything is in place; 2 it is not.
    """
    chosen = EXPORT_TARGETS[kind.value]
    result = write_exported_files(folder, chosen.build_files(), force=force)
    output = Output(json=as_json, no_color=no_color)
    if as_json:
        output.print_document(
            {
                "kind": kind.value,
                "directory": str(folder.absolute()),
                "written": list(result.new),
                "replaced": list(result.replaced),
                "unchanged": list(result.unchanged),
                "next": list(chosen.next),
            }
        )
        return
    console = output.result_console()
    for word, paths in (("wrote", result.new), ("replaced", result.replaced)):
        for path in paths:
            console.print(escape_control(f"{word} {folder / path}"), soft_wrap=True)
    if result.unchanged:
        console.print(f"{len(result.unchanged)} files exist already and are equal", style="dim")
    console.print(f"\nDefinitions for {chosen.name}. Next:", soft_wrap=True)
    for number, step in enumerate(chosen.next, 1):
        console.print(f"  {number}. {step}", soft_wrap=True)


@app.command(name="list")
def list_(as_json: JsonOption = False, no_color: NoColorOption = False) -> None:
    """List the agents of the feature pipeline: the step, the purpose and the abilities of each.

    `proofstone backends` lists the roles of Proofstone's own runtime, including those of the plan gate.
    """
    output = Output(json=as_json, no_color=no_color)
    agents = build_agents()
    if as_json:
        output.print_document({"agents": [_document(agent) for agent in agents]})
        return
    console = output.result_console()
    width = max(len(agent.name) for agent in agents)
    for agent in agents:
        console.print(f"{agent.name:<{width}}  {agent.summary}", soft_wrap=True)
        console.print(
            f"{'':<{width}}  step {agent.place.step}; may {', '.join(_abilities(agent))}", style="dim", soft_wrap=True
        )
    console.print("\n`proofstone agents export KIND DIR` writes their definitions.", soft_wrap=True)


def _abilities(agent: AgentDefinition) -> list[str]:
    return [ability.value for ability in Ability if ability in agent.abilities]


def _document(agent: AgentDefinition) -> dict[str, object]:
    return {
        "agent": agent.name,
        "title": agent.title,
        "purpose": agent.summary,
        "step": agent.place.step,
        "schema": agent.schema.name,
        "abilities": _abilities(agent),
        "tools": sorted(agent.tools),
    }
