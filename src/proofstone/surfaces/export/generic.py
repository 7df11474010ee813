"""For any other agent: an `AGENTS.md`, which many programs read by themselves, and plain pages beside it.

Only here are the agents of the plan gate exported too: the sets for other programs are those of the feature pipeline.
"""

from __future__ import annotations

from typing import Final

from proofstone.surfaces.export.definitions import agents
from proofstone.surfaces.export.hosts import Ability, Host
from proofstone.surfaces.export.markdown import paragraph
from proofstone.surfaces.export.overview import RULES, artifacts, roster
from proofstone.surfaces.export.page import page
from proofstone.surfaces.export.pipeline import diagram
from proofstone.surfaces.export.plan_gate import OVERVIEW, plan_gate
from proofstone.surfaces.export.references import references

HOST: Final = Host(
    name="any coding agent",
    tools=dict.fromkeys(Ability, ()),
    also={},
    agents="agents",
    suffix=".md",
    references="agents",
    limits="Nothing here keeps an agent to these limits unless your program does: they are advice, not a lock.",
)

NEXT: Final = (
    "put `AGENTS.md`, `agents/` and `plan-gate/` into the root of your repository; if it has an AGENTS.md, add this "
    "one's text to it",
    "tell your agent: build this with the feature pipeline, and what you want built",
    "before you accept what comes of it: proofstone check",
)


def files() -> dict[str, str]:
    """By path."""
    return {
        "AGENTS.md": _AGENTS.format(
            rules=RULES,
            artifacts=artifacts(HOST),
            roster=roster(HOST),
            diagram=diagram(),
            limits=paragraph(f"{HOST.limits} {_CHECK}"),
            orchestrator=HOST.file("orchestrator"),
            plan_gate=OVERVIEW,
        ),
        **{HOST.file(agent.name): page(agent, HOST) for agent in agents()},
        **{f"{HOST.references}/{topic}.md": text for topic, text in references().items()},
        **plan_gate(HOST),
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

A plan that was written by hand or by the planner can be put through the plan gate first: `proofstone verify-plan
PLAN.md`.
If you are asked to play it with agents of your own, read [{plan_gate}]({plan_gate}).

## What holds here, and what does not

{limits}
"""
