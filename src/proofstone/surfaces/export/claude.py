"""For Claude Code: agents, a command and the references below `.claude`.

Claude Code reads every Markdown file in `.claude/agents` as an agent, so the references lie elsewhere. An agent that
was dispatched may not be able to dispatch others: the command has the session itself be the orchestrator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from proofstone.surfaces.export.definitions import Agent, agents
from proofstone.surfaces.export.hosts import Ability, Host
from proofstone.surfaces.export.overview import RULES, artifacts
from proofstone.surfaces.export.page import page
from proofstone.surfaces.export.references import references

HOST: Final = Host(
    name="Claude Code",
    tools={
        Ability.DISPATCH: ("Agent",),
        Ability.READ: ("Read",),
        Ability.SEARCH: ("Grep", "Glob"),
        Ability.EDIT: ("Write", "Edit"),
        Ability.RUN: ("Bash",),
        Ability.WEB: ("WebSearch", "WebFetch"),
    },
    also={Ability.DISPATCH: ("Task",), Ability.EDIT: ("MultiEdit", "NotebookEdit")},
    agents=".claude/agents",
    suffix=".md",
    references=".claude/references",
    limits="Claude Code offers an agent the tools in its front matter and little else; which files it writes and which "
    "commands it runs is up to the agent and to what you permit. So these limits are advice, not a lock.",
)

COMMAND: Final = ".claude/commands/feature-workflow.md"
NEXT: Final = (
    "commit the files, or copy `.claude` into your repository; a session that is running must be started anew",
    "in Claude Code: /feature-workflow, and what you want built",
    "before you accept what comes of it: proofstone check",
)


def files() -> dict[str, str]:
    """By path."""
    return {
        **{HOST.file(agent.name): _front_matter(_about(agent)) + page(agent, HOST) for agent in agents()},
        **{f"{HOST.references}/{topic}.md": text for topic, text in references().items()},
        COMMAND: _command(),
    }


def _about(agent: Agent) -> dict[str, str]:
    return {
        "name": agent.name,
        "description": f"{agent.summary}. For the feature pipeline, step {agent.place.step}.",
        "tools": ", ".join(HOST.named(agent.abilities)),
        "model": "inherit",
    }


def _front_matter(about: Mapping[str, str]) -> str:
    quoted = ("description", "argument-hint")
    lines = [
        f"{key}: {json.dumps(value, ensure_ascii=False) if key in quoted else value}" for key, value in about.items()
    ]
    return "\n".join(("---", *lines, "---\n\n"))


def _command() -> str:
    about = {
        "description": "Take a feature through the pipeline: research, specification, design, plan, work, proof.",
        "argument-hint": "what you want built; say `interactive` to be asked at the gates",
    }
    return _front_matter(about) + _COMMAND.format(
        rules=RULES, artifacts=artifacts(HOST), orchestrator=HOST.file("orchestrator")
    )


_COMMAND: Final = """# Feature Development Pipeline

In this session you are the orchestrator. Read `{orchestrator}` in full and keep to it, to its tools too.
Dispatch the other agents by their names with the tool `Agent`; several at once in one message where the pattern says
so.

## Initial Request

$ARGUMENTS

## Execution Mode

`interactive` if the request says so, otherwise `autonomous`.

## Key Artifacts Reference

{artifacts}

## Pipeline Execution Rules

{rules}
"""
