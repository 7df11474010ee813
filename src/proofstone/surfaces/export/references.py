"""The reference documents beside the agents: how they are dispatched, and how grave a finding is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proofstone.contracts.verdict import Severity
from proofstone.core.gate.retry import POLICY
from proofstone.roles import ROLES
from proofstone.surfaces.export.markdown import table
from proofstone.surfaces.export.pipeline import (
    AT_ONCE,
    BUDGETS,
    REPLANS,
    RESEARCHERS,
    RESEARCHERS_NEEDED,
    REVIEWERS,
    STEPS,
)
from proofstone.surfaces.export.schemas import schemas, schemas_page


class Grade(NamedTuple):
    means: str
    then: str


GRADES: Final[Mapping[Severity, Grade]] = {
    Severity.BLOCKER: Grade(
        "harm that must never be let through: a hole, loss of data, a promise of the product that is broken",
        "the run halts. It goes on only when it is put right and reviewed anew; nobody waives it",
    ),
    Severity.CRITICAL: Grade(
        "wrong, and must be put right before anything rests on it",
        "a revision, and a new round. Still open in the end: confidence low, no commit",
    ),
    Severity.MAJOR: Grade(
        "should be put right; the work serves its purpose without",
        "a revision where several stand together; otherwise a known issue",
    ),
    Severity.MINOR: Grade("may stay as it is", "a known issue"),
}


def references() -> dict[str, str]:
    """By topic."""
    return {
        "schemas": schemas_page(schemas(ROLES)),
        "dispatch-patterns": dispatch_patterns(),
        "severity-taxonomy": severity_taxonomy(),
    }


def dispatch_patterns() -> str:
    steps = {pattern: ", ".join(one.id for one in STEPS if one.pattern == pattern) for pattern in "ABC"}
    budgets = table(("loop", "at most", "then"), BUDGETS)
    told = ((f"`{kind}`", one.retries, one.then or "a person is asked") for kind, one in POLICY.items())
    policy = table(("failure", "further attempts", "what the next attempt is told"), told)
    return _PATTERNS.format(
        at_once=AT_ONCE,
        researchers=RESEARCHERS,
        needed=RESEARCHERS_NEEDED,
        reviewers=REVIEWERS,
        replans=REPLANS,
        budgets=budgets,
        policy=policy,
        **steps,
    )


def severity_taxonomy() -> str:
    rows = ((one.capitalize(), f"`{one}`", *GRADES[one]) for one in Severity)
    return _SEVERITIES.format(rows=table(("severity", "written", "means", "then"), rows))


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
