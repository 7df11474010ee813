"""The pipeline: lanes, bounds and the review gate."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from generators.page import mermaid, table
from proofstone.common.models import ChangeKind, Lane
from proofstone.common.risk import RISK_RULES, PathChange, assess_risk
from proofstone.gate.rules.pass_rule import MIN_SIGNALS_LARGE
from proofstone.pipeline.rules.building import MAX_REJECTED_PLANS, MAX_RETURNS
from proofstone.pipeline.rules.directing import MAX_ITERATIONS
from proofstone.pipeline.rules.planning import LANE_DEPTHS, LANES_BY_DEPTH
from proofstone.pipeline.rules.preparing import MIN_RESEARCHERS
from proofstone.pipeline.rules.reviews import MAX_REVIEW_ROUNDS, REVIEW_GATE, ReviewGateDecision
from proofstone.plans.lint import MAX_PRODUCTION_FILES

LANES: Mapping[Lane, str] = {
    Lane.DOCS: "documentation and nothing else",
    Lane.FIX: f"one task of at most {MAX_PRODUCTION_FILES} production files, none of them 🔴",
    Lane.STANDARD: "everything else",
    Lane.LARGE: "the same, with something 🔴",
}
SAMPLE = 6
"""Tasks of a feature of some size."""
REVIEWED: Mapping[ReviewGateDecision, tuple[str, str, str]] = {
    ReviewGateDecision.HALT: (
        "a reviewer has found a blocker",
        "the run halts; `proofstone resume` has it revised and reviewed anew",
        "the run halts; `proofstone resume` has it fixed as a task and reviewed anew",
    ),
    ReviewGateDecision.PASS: (
        "all have submitted, most of them approve, and nothing critical is open, also nothing of the design",
        "it is planned",
        "it is committed, if the confidence is not low",
    ),
    ReviewGateDecision.REVISE: (
        "it is not the last round",
        "the designer revises it",
        "what was found is planned, done and checked as any other work",
    ),
    ReviewGateDecision.KNOWN_ISSUES: (
        "all have submitted",
        "it goes on, and the findings bind the plan",
        "the run fails",
    ),
    ReviewGateDecision.UNHEARD: ("otherwise", "the run fails", "the run fails"),
}
"""When a row of the review gate holds, and what follows for a design and for code."""

BACK: Mapping[tuple[str, str], str] = {
    ("design review ×3", "design"): f"revise, {MAX_REVIEW_ROUNDS['design']} rounds at most",
    ("plan gate", "plan"): f"REVISE or RETHINK, {MAX_RETURNS} at most",
    ("tasks", "plan"): "failed: a directive of the controller",
    ("whole cascade", "plan"): f"failed: a directive, {MAX_ITERATIONS} iterations at most",
    ("code review ×3", "plan"): f"findings, {MAX_REVIEW_ROUNDS['code']} rounds at most",
}
"""Where the whole pipeline goes back to, by the names of its steps, and how often."""
OTHERWISE = (
    PathChange(path="a.py", kind=ChangeKind.MODIFIED, removed=("__all__ = []",)),
    PathChange(path="a.py", kind=ChangeKind.ADDED),
    PathChange(path="a.py", kind=ChangeKind.MODIFIED),
)
"""Files that no row of the risks knows."""


def lanes() -> str:
    head = f"| lane | for | steps | dispatches | with 1 task | with {SAMPLE} |"
    return "\n".join([head, "|---|---|---|---|---|---|", *map(_lane_row, LANE_DEPTHS), ""])


def _lane_row(lane: Lane) -> str:
    depth = LANE_DEPTHS[lane]
    same = next(other for other, its in LANE_DEPTHS.items() if its.steps == depth.steps)
    steps = " → ".join(depth.steps) if same is lane else f"as `{same}`"
    # One task is all that the fix lane has.
    many = "–" if lane is Lane.FIX else str(depth.count_dispatches(SAMPLE))
    cost = f"{depth.fixed_dispatches} + {depth.dispatches_per_task} a task | {depth.count_dispatches(1)} | {many}"
    return f"| `{lane}` | {LANES[lane]} | {steps} | {cost} |"


def pipeline_bounds() -> str:
    bounds = {
        "researchers that must be heard, of 4": MIN_RESEARCHERS,
        "rounds of a design review": MAX_REVIEW_ROUNDS["design"],
        "rounds of a code review": MAX_REVIEW_ROUNDS["code"],
        "times that a plan against the rules is sent back, before there is none": MAX_REJECTED_PLANS,
        "times that the plan gate sends a plan of one iteration back, before the run halts": MAX_RETURNS,
        "iterations of plan, tasks and checks that may fail, before the run does": MAX_ITERATIONS,
    }
    return "\n".join(["| bound | |", "|---|---|", *(f"| {said} | {number} |" for said, number in bounds.items()), ""])


def review_gate() -> str:
    rows = [
        f"| {number} | {when} | `{row.decision}` | {design} | {code} |"
        for number, row in enumerate(REVIEW_GATE, start=1)
        for when, design, code in [REVIEWED[row.decision]]
    ]
    return "\n".join(["| | when | decision | a design | code |", "|---|---|---|---|---|", *rows, ""])


def flow() -> str:
    """The whole pipeline: the steps of its lane, and the ways back."""
    steps = LANE_DEPTHS[Lane.STANDARD].steps
    names = [f"s{number}" for number in range(len(steps))]
    drawn = [_node(name, step) for name, step in zip(names, steps, strict=True)]
    onward = [f"    {one} --> {other}" for one, other in pairwise(names)]
    back = [f"    {names[steps.index(one)]} -.->|{why}| {names[steps.index(to)]}" for (one, to), why in BACK.items()]
    return mermaid("\n".join(["flowchart TD", *drawn, *onward, *back]))


def depths() -> str:
    """Each lane with its steps, and which is left for which."""
    drawn = list[str]()
    for lane in LANES_BY_DEPTH:
        steps = LANE_DEPTHS[lane].steps
        same = next(other for other, depth in LANE_DEPTHS.items() if depth.steps == steps)
        said = " → ".join(steps) if same is lane else f"as {same}; a task that is 🔴 needs {MIN_SIGNALS_LARGE} signals"
        drawn.append(f'    {lane}["<b>{lane}</b><br/>{said}"]')
    deeper = [f"    {one} -.->|left for a deeper one| {other}" for one, other in pairwise(LANES_BY_DEPTH)]
    return mermaid("\n".join(["flowchart TD", *drawn, *deeper]))


def risks() -> str:
    """What is known by its path, and what by the lines that change, in the order in which it is asked."""
    rows = [(row.risk.mark, row.reason, "its path" if row.path else "lines that change") for row in RISK_RULES]
    rows += [(one.risk.mark, f"{one.reason}, if nothing above fits", "–") for one in map(assess_risk, OTHERWISE)]
    return table(("risk", "what", "known by"), rows)


def _node(name: str, step: str) -> str:
    return f'    {name}{{{{"{step}"}}}}' if step == "approval" else f'    {name}["{step}"]'
