"""What stands in front of the definitions: how to begin, the pipeline at a glance, what holds and what does not."""

from __future__ import annotations

from typing import Final

from proofstone.surfaces.export.definitions import agents
from proofstone.surfaces.export.hosts import Host
from proofstone.surfaces.export.markdown import paragraph, table
from proofstone.surfaces.export.pipeline import FEATURE, diagram

RULES: Final = """1. Follow the workflow of the orchestrator step by step; leave none out.
2. The mode decides what happens at the approval gates: `autonomous` takes the default and records it, `interactive`
   asks.
3. Every output is of its schema, and every decision is made from outputs and commands.
4. Every loop has its budget. When it is exhausted, do what the budget says, and nothing else.
5. Nothing is committed that `proofstone check --staged` has not passed."""


def artifacts(host: Host) -> str:
    rows = (
        ("Agents", f"`{host.agents}/`"),
        ("Schemas", f"`{host.references}/schemas.md`"),
        ("Dispatch patterns and budgets", f"`{host.references}/dispatch-patterns.md`"),
        ("Severities", f"`{host.references}/severity-taxonomy.md`"),
        ("Outputs of a run", f"`{FEATURE}/`"),
    )
    return table(("what", "where"), rows)


def roster(host: Host) -> str:
    """The agents, with links from a page in the root of the export."""
    rows = [(f"[{one.name}]({host.file(one.name)})", one.place.step, one.summary) for one in agents()]
    return table(("agent", "step", "what it does"), rows)


def overview(host: Host, how_to_begin: str) -> str:
    """The page for people."""
    return _OVERVIEW.format(
        begin=how_to_begin,
        diagram=diagram(),
        roster=roster(host),
        artifacts=artifacts(host),
        limits=paragraph(f"{host.limits} {_ASKED}"),
        intro=paragraph(_INTRO.format(name=host.name)),
    )


_INTRO: Final = (
    "Nine agents for {name} that take a feature from a request to a checked change: research, specification, design, "
    "plan, implementation, verification, review. Made by `proofstone agents export` from the roles of "
    "Proofstone; make them "
    "again after an update instead of editing them."
)
_ASKED: Final = (
    "Agents write their own outputs here, count their own loops and check their own schemas: all of this is asked of "
    "them, and nothing enforces it."
)
_OVERVIEW: Final = """# Feature pipeline

{intro}

## How to begin

{begin}

## The pipeline

```mermaid
{diagram}
```

## The agents

{roster}

## Where things are

{artifacts}

## What holds here, and what does not

{limits}

What does not rest on their word is `proofstone check`: it freezes the change, runs every check itself in a sandbox,
compares
with the state before, and records the evidence where no agent can write. Install Proofstone where the agents run, so
that
they can use it, and run it yourself before you accept anything:

```
proofstone check            # the change in the work tree
proofstone hook install     # git refuses a commit without passing evidence
```

In Proofstone's own runtime the same roles work with limits that are enforced: `proofstone gate PLAN.md --executor …`.
"""
