"""How good a plan is by rule, how complex, and whether it is trivial.

| quality | when |
|---|---|
| RICH | every step has files, a verification that is not vacuous, a done criterion, and its place in the order |
| ADEQUATE | most steps have a verification, their own or one of the whole text |
| THIN | otherwise |

A checkpoint is for a person and needs none of this.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from proofstone.contracts.change import ChangeKind
from proofstone.contracts.plan_gate.record import PlanQuality
from proofstone.contracts.plan_gate.report import Complexity
from proofstone.core.commands import loses_exit_code
from proofstone.core.plan_gate.mentions import has_ending
from proofstone.core.plan_gate.outline import Outline
from proofstone.core.plan_gate.step import Step
from proofstone.core.plan_gate.tree import is_pattern
from proofstone.core.protected import roles
from proofstone.core.risk import PathChange, Risk, risk_of

MANY_FILES = 10


def quality(outline: Outline) -> tuple[PlanQuality, str]:
    """And why, in one line."""
    steps = [step for step in outline.steps if not step.checkpoint]
    if not steps:
        return PlanQuality.THIN, "no step that somebody could carry out was found"
    lacking = next(((step, what) for step in steps for what in _lacks(step)), None)
    if lacking is None:
        return PlanQuality.RICH, f"{_all(steps)} files, a verification, a done criterion and a place in the order"
    first = f"line {lacking[0].line} has {lacking[1]}"
    if is_verified(outline.whole):
        return PlanQuality.ADEQUATE, f"there is a verification of the whole; {first}"
    verified = sum(map(is_verified, steps))
    count = f"{verified} of {len(steps)} steps have a verification"
    if 2 * verified > len(steps):
        return PlanQuality.ADEQUATE, f"{count}; {first}"
    return PlanQuality.THIN, f"only {count}; {first}" if verified else f"no step has a verification; {first}"


def is_verified(step: Step) -> bool:
    """Whether something is run for it that can fail."""
    return any(not loses_exit_code(command) for command in step.verify)


def complexity(outline: Outline) -> Complexity:
    return Complexity(
        steps=min(len(outline.steps), 3),
        domains=min(len(outline.domains), 3),
        integrations=min(2 * len(outline.integrations), 4),
        compliance=2 if outline.compliance else 0,
        unknowns=min(len(outline.markers), 3),
        files=1 if len(outline.files) >= MANY_FILES else 0,
    )


def is_trivial(outline: Outline, tree: Collection[str]) -> bool:
    """At most two steps, one file, no integration, no unknown marker. What names no step or no file is not small but
    unknown, and some files are never a trifle. `tree` is every file of the base commit."""
    return (
        1 <= len(outline.steps) <= 2
        and len(outline.files) == 1
        and _is_one_file(outline.files[0], tree)
        and _is_ordinary(outline.files[0])
        and not outline.integrations
        and not outline.markers
    )


def _is_one_file(path: str, tree: Collection[str]) -> bool:
    """Neither a pattern nor a folder, whether it is written with its slash or without."""
    if is_pattern(path) or "{" in path or not has_ending(path):
        return False
    below = f"{PurePosixPath(path)}/"
    return not any(one.startswith(below) for one in tree)


def _is_ordinary(path: str) -> bool:
    """Not of the highest risk, and it decides nothing about what counts as proof."""
    plain = str(PurePosixPath(path))
    return risk_of(PathChange(path=plain, kind=ChangeKind.MODIFIED)).risk is not Risk.RED and not roles(plain)


def _lacks(step: Step) -> list[str]:
    missing = []
    if not step.files:
        missing.append("no files")
    if not is_verified(step):
        missing.append("no verification that could fail" if step.verify else "no verification")
    if not step.done:
        missing.append("no done criterion")
    if not step.ordered:
        missing.append("no place in the order")
    return missing


def _all(steps: list[Step]) -> str:
    return "the one step has" if len(steps) == 1 else f"all {len(steps)} steps have"
