"""For GitHub Copilot: agents and a prompt below `.github`, and a README.

Copilot takes every Markdown file in `.github/agents` for an agent. The references lie there too, so their front matter
keeps them out of the list that people choose from and away from other agents. A file has at most 30,000 characters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from proofstone.surfaces.export.definitions import Agent, agents
from proofstone.surfaces.export.hosts import Ability, Host
from proofstone.surfaces.export.overview import RULES, artifacts, overview
from proofstone.surfaces.export.page import page
from proofstone.surfaces.export.references import references

HOST: Final = Host(
    name="GitHub Copilot",
    tools={
        Ability.DISPATCH: ("agent",),
        Ability.READ: ("read",),
        Ability.SEARCH: ("search",),
        Ability.EDIT: ("edit",),
        Ability.RUN: ("execute",),
        Ability.WEB: ("web",),
    },
    also={
        Ability.DISPATCH: ("runSubagent",),
        Ability.READ: ("read_file",),
        Ability.SEARCH: ("grep_search", "semantic_search", "file_search", "list_dir", "get_errors"),
        Ability.EDIT: ("create_file", "replace_string_in_file", "multi_replace_string_in_file"),
        Ability.RUN: ("run_in_terminal", "get_terminal_output"),
        Ability.WEB: ("fetch_webpage",),
    },
    agents=".github/agents",
    suffix=".agent.md",
    references=".github/agents",
    limits="Copilot offers an agent the tools in its front matter and little else; which files it writes and which "
    "commands it runs is up to the agent and to what you permit. So these limits are advice, not a lock.",
)

PROMPT: Final = ".github/prompts/feature-workflow.prompt.md"
NEXT: Final = (
    "commit the files, or copy `.github` into your repository",
    "in the chat: /feature-workflow, and what you want built; or choose the agent `orchestrator`",
    "before you accept what comes of it: proofstone check",
)

_BEGIN: Final = """1. Put `.github` into the root of your repository.
2. In the chat write `/feature-workflow` and what you want built; or choose the agent `orchestrator`.
3. Where the program does not read prompt files, tell the agent `orchestrator` the same in your own words.

Each agent can also be chosen by itself."""


def files() -> dict[str, str]:
    """By path."""
    return {
        **{HOST.file(agent.name): _front_matter(_about(agent)) + page(agent, HOST) for agent in agents()},
        **{f"{HOST.references}/{topic}.md": _hidden(topic) + text for topic, text in references().items()},
        PROMPT: _prompt(),
        "README.md": overview(HOST, _BEGIN),
    }


def _about(agent: Agent) -> dict[str, object]:
    about: dict[str, object] = {
        "name": agent.name,
        "description": f"{agent.summary}. For the feature pipeline, step {agent.place.step}.",
        "tools": HOST.named(agent.abilities),
    }
    if agent.leads:
        about["agents"] = [other.name for other in agents() if other is not agent and not other.leads]
        about["disable-model-invocation"] = True
    return about


def _hidden(topic: str) -> str:
    return _front_matter(
        {
            "name": topic,
            "description": "A reference for the agents beside it. It is no agent.",
            "tools": [],
            "user-invocable": False,
            "disable-model-invocation": True,
        }
    )


def _front_matter(about: Mapping[str, object]) -> str:
    """JSON values are YAML as well, and quoted as it should be."""
    return "\n".join(
        ("---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in about.items()), "---\n\n")
    )


def _prompt() -> str:
    about = {
        "name": "feature-workflow",
        "description": "Take a feature through the pipeline: research, specification, design, plan, work, proof.",
        "agent": "orchestrator",
        "argument-hint": "what you want built",
    }
    return _front_matter(about) + _PROMPT.format(rules=RULES, artifacts=artifacts(HOST))


_PROMPT: Final = """# Feature Development Pipeline

## Initial Request

${{input:USER_FEATURE:what you want built}}

## Execution Mode

${{input:APPROVAL_MODE:autonomous or interactive}}

Nothing said means `autonomous`.

## Key Artifacts Reference

{artifacts}

## Pipeline Execution Rules

{rules}
"""
