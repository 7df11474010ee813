"""The programs that definitions can be exported for: their files, and the next steps for the user.

Claude Code: agents, a command and the references below `.claude`. Claude Code reads every Markdown file in
`.claude/agents` as an agent, so the references are elsewhere. A dispatched agent may not be able to dispatch others, so
the command makes the session itself the orchestrator.

GitHub Copilot: agents and a prompt below `.github`, and a README. Copilot reads every Markdown file in `.github/agents`
as an agent. The references are there too, so their front matter hides them from users and from other agents. A file has
at most 30,000 characters.

Any other agent: an `AGENTS.md`, which many programs read by themselves, and plain pages. Only this export includes the
agents of the plan gate: the other sets contain only the feature pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from proofstone.documents.markdown import wrap_paragraph
from proofstone.export.agent_page import build_page
from proofstone.export.definitions import AgentDefinition, build_agents
from proofstone.export.overview import (
    PIPELINE_RULES,
    build_artifacts_table,
    build_overview,
    build_references,
    build_roster,
)
from proofstone.export.pipeline_tables import build_diagram
from proofstone.export.plan_gate_pages import OVERVIEW, build_plan_gate_pages
from proofstone.export.prompts import Ability, Host

CLAUDE_HOST: Final = Host(
    name="Claude Code",
    tools={
        Ability.DISPATCH: ("Agent",),
        Ability.READ: ("Read",),
        Ability.SEARCH: ("Grep", "Glob"),
        Ability.EDIT: ("Write", "Edit"),
        Ability.RUN: ("Bash",),
        Ability.WEB: ("WebSearch", "WebFetch"),
    },
    other_tool_names={Ability.DISPATCH: ("Task",), Ability.EDIT: ("MultiEdit", "NotebookEdit")},
    agents=".claude/agents",
    suffix=".md",
    references=".claude/references",
    limits="Claude Code offers an agent the tools in its front matter and little else; which files it writes and which "
    "commands it runs is up to the agent and to what you permit. So these limits are advice, not a lock.",
)

CLAUDE_COMMAND_PATH: Final = ".claude/commands/feature-workflow.md"
CLAUDE_NEXT_STEPS: Final = (
    "commit the files, or copy `.claude` into your repository; a session that is running must be started anew",
    "in Claude Code: /feature-workflow, and what you want built",
    "before you accept what comes of it: proofstone check",
)


def build_claude_files() -> dict[str, str]:
    """Return the files by path."""
    return {
        **{
            CLAUDE_HOST.agent_path(agent.name): _claude_front_matter(_claude_fields(agent))
            + build_page(agent, CLAUDE_HOST)
            for agent in build_agents()
        },
        **{f"{CLAUDE_HOST.references}/{topic}.md": text for topic, text in build_references().items()},
        CLAUDE_COMMAND_PATH: _claude_command(),
    }


def _claude_fields(agent: AgentDefinition) -> dict[str, str]:
    return {
        "name": agent.name,
        "description": f"{agent.summary}. For the feature pipeline, step {agent.place.step}.",
        "tools": ", ".join(CLAUDE_HOST.list_tools(agent.abilities)),
        "model": "inherit",
    }


def _claude_front_matter(fields: Mapping[str, str]) -> str:
    quoted = ("description", "argument-hint")
    lines = [
        f"{key}: {json.dumps(value, ensure_ascii=False) if key in quoted else value}" for key, value in fields.items()
    ]
    return "\n".join(("---", *lines, "---\n\n"))


def _claude_command() -> str:
    fields = {
        "description": "Take a feature through the pipeline: research, specification, design, plan, work, proof.",
        "argument-hint": "what you want built; say `interactive` to be asked at the gates",
    }
    return _claude_front_matter(fields) + _COMMAND.format(
        rules=PIPELINE_RULES,
        artifacts=build_artifacts_table(CLAUDE_HOST),
        orchestrator=CLAUDE_HOST.agent_path("orchestrator"),
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


COPILOT_HOST: Final = Host(
    name="GitHub Copilot",
    tools={
        Ability.DISPATCH: ("agent",),
        Ability.READ: ("read",),
        Ability.SEARCH: ("search",),
        Ability.EDIT: ("edit",),
        Ability.RUN: ("execute",),
        Ability.WEB: ("web",),
    },
    other_tool_names={
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

COPILOT_PROMPT_PATH: Final = ".github/prompts/feature-workflow.prompt.md"
COPILOT_NEXT_STEPS: Final = (
    "commit the files, or copy `.github` into your repository",
    "in the chat: /feature-workflow, and what you want built; or choose the agent `orchestrator`",
    "before you accept what comes of it: proofstone check",
)

_FIRST_STEPS: Final = """1. Put `.github` into the root of your repository.
2. In the chat write `/feature-workflow` and what you want built; or choose the agent `orchestrator`.
3. Where the program does not read prompt files, tell the agent `orchestrator` the same in your own words.

Each agent can also be chosen by itself."""


def build_copilot_files() -> dict[str, str]:
    """Return the files by path."""
    return {
        **{
            COPILOT_HOST.agent_path(agent.name): _copilot_front_matter(_copilot_fields(agent))
            + build_page(agent, COPILOT_HOST)
            for agent in build_agents()
        },
        **{
            f"{COPILOT_HOST.references}/{topic}.md": _reference_front_matter(topic) + text
            for topic, text in build_references().items()
        },
        COPILOT_PROMPT_PATH: _copilot_prompt(),
        "README.md": build_overview(COPILOT_HOST, _FIRST_STEPS),
    }


def _copilot_fields(agent: AgentDefinition) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": agent.name,
        "description": f"{agent.summary}. For the feature pipeline, step {agent.place.step}.",
        "tools": COPILOT_HOST.list_tools(agent.abilities),
    }
    if agent.is_orchestrator:
        fields["agents"] = [other.name for other in build_agents() if other is not agent and not other.is_orchestrator]
        fields["disable-model-invocation"] = True
    return fields


def _reference_front_matter(topic: str) -> str:
    return _copilot_front_matter(
        {
            "name": topic,
            "description": "A reference for the agents beside it. It is no agent.",
            "tools": [],
            "user-invocable": False,
            "disable-model-invocation": True,
        }
    )


def _copilot_front_matter(fields: Mapping[str, object]) -> str:
    """Write the front matter. JSON values are valid YAML, with correct quoting."""
    return "\n".join(
        ("---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()), "---\n\n")
    )


def _copilot_prompt() -> str:
    fields = {
        "name": "feature-workflow",
        "description": "Take a feature through the pipeline: research, specification, design, plan, work, proof.",
        "agent": "orchestrator",
        "argument-hint": "what you want built",
    }
    return _copilot_front_matter(fields) + _PROMPT.format(
        rules=PIPELINE_RULES, artifacts=build_artifacts_table(COPILOT_HOST)
    )


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


GENERIC_HOST: Final = Host(
    name="any coding agent",
    tools=dict.fromkeys(Ability, ()),
    other_tool_names={},
    agents="agents",
    suffix=".md",
    references="agents",
    limits="Nothing here keeps an agent to these limits unless your program does: they are advice, not a lock.",
)

GENERIC_NEXT_STEPS: Final = (
    "put `AGENTS.md`, `agents/` and `plan-gate/` into the root of your repository; if it has an AGENTS.md, add this "
    "one's text to it",
    "tell your agent: build this with the feature pipeline, and what you want built",
    "before you accept what comes of it: proofstone check",
)


def build_generic_files() -> dict[str, str]:
    """Return the files by path."""
    return {
        "AGENTS.md": _AGENTS.format(
            rules=PIPELINE_RULES,
            artifacts=build_artifacts_table(GENERIC_HOST),
            roster=build_roster(GENERIC_HOST),
            diagram=build_diagram(),
            limits=wrap_paragraph(f"{GENERIC_HOST.limits} {_CHECK}"),
            orchestrator=GENERIC_HOST.agent_path("orchestrator"),
            plan_gate=OVERVIEW,
        ),
        **{GENERIC_HOST.agent_path(agent.name): build_page(agent, GENERIC_HOST) for agent in build_agents()},
        **{f"{GENERIC_HOST.references}/{topic}.md": text for topic, text in build_references().items()},
        **build_plan_gate_pages(GENERIC_HOST),
    }


_CHECK: Final = (
    "What does not rest on an agent's word is `proofstone check`: it freezes the change, runs every check itself in a "
    "sandbox, and records the evidence where no agent can write."
)
_AGENTS: Final = """# Feature pipeline

This applies when you are asked to build something with the feature pipeline. For other work only one thing holds: run
`proofstone check` before you say that you are done, and put right what it finds.

Then you are the orchestrator: read [{orchestrator}]({orchestrator}) in full and keep to it. Start each of the other
agents with its page as its instructions. If you cannot start agents, take their parts one after another: read the page,
do that step alone, write its output, and only then go on. Say in the end that one agent played all of them.

## Key Artifacts Reference

{artifacts}

## Pipeline Execution Rules

{rules}

## The agents

{roster}

## The pipeline

```mermaid
{diagram}
```

## Before work starts

A plan that was written by hand or by the planner can be put through the plan gate first with
`proofstone verify-plan PLAN.md`. If you are asked to play it with agents of your own, read [{plan_gate}]({plan_gate}).

## What holds here, and what does not

{limits}
"""


class ExportTarget(NamedTuple):
    name: str
    """The name of the program."""
    build_files: Callable[[], dict[str, str]]
    next: tuple[str, ...]
    """The next steps for the user."""


EXPORT_TARGETS: Final[Mapping[str, ExportTarget]] = {
    "copilot": ExportTarget(COPILOT_HOST.name, build_copilot_files, COPILOT_NEXT_STEPS),
    "claude": ExportTarget(CLAUDE_HOST.name, build_claude_files, CLAUDE_NEXT_STEPS),
    "generic": ExportTarget(GENERIC_HOST.name, build_generic_files, GENERIC_NEXT_STEPS),
}
