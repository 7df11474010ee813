"""The overview page of an export, and the reference pages about dispatching agents and about severities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proofstone.agents.roles.registry import ROLES
from proofstone.common.models import Severity
from proofstone.documents.markdown import markdown_table, wrap_paragraph
from proofstone.export.definitions import build_agents
from proofstone.export.pipeline_tables import (
    BUDGETS,
    FEATURE_FOLDER,
    MAX_PARALLEL_AGENTS,
    REPLANS,
    RESEARCHERS,
    RESEARCHERS_NEEDED,
    REVIEWERS,
    STEPS,
    build_diagram,
)
from proofstone.export.prompts import Host
from proofstone.export.schemas import build_schemas_page, list_schemas
from proofstone.gate.rules.state_machine import RETRY_POLICIES

PIPELINE_RULES: Final = """1. Follow the workflow of the orchestrator step by step; leave none out.
2. The mode decides what happens at the approval gates: `autonomous` takes the default and records it, `interactive`
   asks.
3. Every output is of its schema, and every decision is made from outputs and commands.
4. Every loop has its budget. When it is exhausted, do what the budget says, and nothing else.
5. Nothing is committed that `proofstone check --staged` has not passed."""


def build_artifacts_table(host: Host) -> str:
    rows = (
        ("Agents", f"`{host.agents}/`"),
        ("Schemas", f"`{host.references}/schemas.md`"),
        ("Dispatch patterns and budgets", f"`{host.references}/dispatch-patterns.md`"),
        ("Severities", f"`{host.references}/severity-taxonomy.md`"),
        ("Outputs of a run", f"`{FEATURE_FOLDER}/`"),
    )
    return markdown_table(("what", "where"), rows)


def build_roster(host: Host) -> str:
    """Return a table of the agents, with links from a page in the root of the export."""
    rows = [
        (f"[{agent.name}]({host.agent_path(agent.name)})", agent.place.step, agent.summary) for agent in build_agents()
    ]
    return markdown_table(("agent", "step", "what it does"), rows)


def build_overview(host: Host, how_to_begin: str) -> str:
    """Return the overview page for people."""
    return _OVERVIEW.format(
        begin=how_to_begin,
        diagram=build_diagram(),
        roster=build_roster(host),
        artifacts=build_artifacts_table(host),
        limits=wrap_paragraph(f"{host.limits} {_NOT_ENFORCED}"),
        intro=wrap_paragraph(_INTRO.format(name=host.name)),
    )


_INTRO: Final = (
    "Nine agents for {name} that take a feature from a request to a checked change: research, specification, design, "
    "plan, implementation, verification, review. Made by `proofstone agents export` from the roles of "
    "Proofstone; make them "
    "again after an update instead of editing them."
)
_NOT_ENFORCED: Final = (
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


class SeverityGrade(NamedTuple):
    means: str
    then: str


SEVERITY_GRADES: Final[Mapping[Severity, SeverityGrade]] = {
    Severity.BLOCKER: SeverityGrade(
        "harm that must never be let through: a hole, loss of data, a promise of the product that is broken",
        "the run halts. It goes on only when it is put right and reviewed anew; nobody waives it",
    ),
    Severity.CRITICAL: SeverityGrade(
        "wrong, and must be put right before anything rests on it",
        "a revision, and a new round. Still open in the end: confidence low, no commit",
    ),
    Severity.MAJOR: SeverityGrade(
        "should be put right; the work serves its purpose without",
        "a revision where several stand together; otherwise a known issue",
    ),
    Severity.MINOR: SeverityGrade("may stay as it is", "a known issue"),
}


def build_references() -> dict[str, str]:
    """Return the reference pages by topic."""
    return {
        "schemas": build_schemas_page(list_schemas(ROLES)),
        "dispatch-patterns": build_dispatch_patterns(),
        "severity-taxonomy": build_severity_taxonomy(),
    }


def build_dispatch_patterns() -> str:
    steps = {pattern: ", ".join(step.id for step in STEPS if step.pattern == pattern) for pattern in "ABC"}
    budgets = markdown_table(("loop", "at most", "then"), BUDGETS)
    rows = (
        (f"`{failure}`", policy_row.retries, policy_row.directive or "a person is asked")
        for failure, policy_row in RETRY_POLICIES.items()
    )
    policy = markdown_table(("failure", "further attempts", "what the next attempt is told"), rows)
    return _PATTERNS.format(
        at_once=MAX_PARALLEL_AGENTS,
        researchers=RESEARCHERS,
        needed=RESEARCHERS_NEEDED,
        reviewers=REVIEWERS,
        replans=REPLANS,
        budgets=budgets,
        policy=policy,
        **steps,
    )


def build_severity_taxonomy() -> str:
    rows = ((severity.capitalize(), f"`{severity}`", *SEVERITY_GRADES[severity]) for severity in Severity)
    return _SEVERITIES.format(rows=markdown_table(("severity", "written", "means", "then"), rows))


_PATTERNS: Final = """# Dispatch patterns

How the orchestrator sends agents out. At most {at_once} work at the same time, and never two that may change the same
file.

## Pattern A: in parallel

Steps {A}. Send out all N at once; send each that failed once more; go on if at least M of N are `DONE`.

- Research: N is {researchers}, M is {needed}.
- Reviews: N is {reviewers}, M is {reviewers}. Each has a focus of its own, so none can stand in for another.

## Pattern B: implement, verify, replan

Steps {B}. In waves: all tasks whose dependencies are done, at most {at_once} at once. Each finished task goes to a
verifier of its own. If one does not pass, the planner gets what failed and a directive, and the loop begins anew, at
most {replans} times.

## Pattern C: one agent

Steps {C}. Send out one; if it fails, once more; then the step ends in `ERROR`.

## Budgets

Every loop ends. What follows when it is exhausted is fixed, and is never a silent pass.

{budgets}

## What follows a failed attempt at a task

{policy}
"""

_SEVERITIES: Final = """# Severity taxonomy

One scale for findings, concerns and the `severity` of a `completion`. There is no other.

{rows}

- The verdict of a review is `blocker` exactly if one of its findings is a Blocker.
- A finding keeps its severity until what it describes has changed. It is not softened to be kind, raised to be heard,
  or lowered because time is short.
- A finding that nobody can show is no finding, or a Minor one that says so.
- Severity says how grave it is; `confidence` how sure its author is; risk (🟢 🟡 🔴) how much a file can hurt. None of
  them stands for another.
"""
