"""When a synthesizer may have something looked at again, or a budget raised. What it asks for is not always granted.

| directive | reason | may be given when |
|---|---|---|
| RE-SWEEP | new-blocking-contradicts-context | a BLOCKING challenge came in this iteration, and context was surfaced |
| RE-SWEEP | response-changes-scope | the person answered in this iteration |
| RE-PROBE | new-dependency-chain | an unknown was resolved in this iteration |
| RE-PROBE | cascade-not-explored | a challenge is UNRESOLVED |

None of them in the last iteration, nor when nothing but MINOR challenges is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proofstone.contracts.plan_gate.answers import Directive, DirectiveKind, DirectiveReason


@dataclass(frozen=True)
class Circumstances:
    """Of the iteration that has just been synthesised."""

    last: bool
    only_minor_left: bool
    new_blocking: bool
    surfaced: bool
    answered: bool
    resolved_unknown: bool
    unresolved: bool


CONDITIONS: Final[dict[tuple[DirectiveKind, DirectiveReason], tuple[Callable[[Circumstances], bool], str]]] = {
    (DirectiveKind.RE_SWEEP, DirectiveReason.NEW_BLOCKING_CONTRADICTS_CONTEXT): (
        lambda it: it.new_blocking and it.surfaced,
        "no BLOCKING challenge came in that could contradict what was surfaced",
    ),
    (DirectiveKind.RE_SWEEP, DirectiveReason.RESPONSE_CHANGES_SCOPE): (
        lambda it: it.answered,
        "the person has answered nothing in this iteration",
    ),
    (DirectiveKind.RE_PROBE, DirectiveReason.NEW_DEPENDENCY_CHAIN): (
        lambda it: it.resolved_unknown,
        "no unknown was resolved in this iteration",
    ),
    (DirectiveKind.RE_PROBE, DirectiveReason.CASCADE_NOT_EXPLORED): (
        lambda it: it.unresolved,
        "no challenge is UNRESOLVED",
    ),
}


def why_not(directive: Directive, it: Circumstances) -> str:
    """Why a sweep or a probe is not done again; empty if it is."""
    if it.last:
        return "no iteration comes after this one"
    if it.only_minor_left:
        return "nothing but MINOR challenges is left"
    condition = CONDITIONS.get((directive.kind, directive.reason)) if directive.reason else None
    if condition is None:
        reasons = ", ".join(reason for kind, reason in CONDITIONS if kind is directive.kind)
        return f"a {directive.kind} is given for {reasons}"
    holds, otherwise = condition
    return "" if holds(it) else otherwise


def in_words(directive: Directive) -> str:
    """As it stands in the state of the iteration."""
    if directive.kind is DirectiveKind.RAISE_BUDGET:
        mode = directive.mode.value if directive.mode else "?"
        return f"{directive.kind} {mode} {directive.tool} +{directive.by}: {directive.text}"
    reason = f" ({directive.reason})" if directive.reason else ""
    return f"{directive.kind}{reason}: {directive.text}"
