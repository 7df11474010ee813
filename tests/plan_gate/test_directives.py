"""When a sweep or a probe may be done again: the table of conditions, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.contracts.plan_gate.answers import Directive, DirectiveKind, DirectiveReason, Mode
from assay.core.plan_gate.directives import CONDITIONS, Circumstances, in_words, why_not
from tests.plan_gate.talk import directive, raising

NOTHING = Circumstances(
    last=False,
    only_minor_left=False,
    new_blocking=False,
    surfaced=False,
    answered=False,
    resolved_unknown=False,
    unresolved=False,
)
EVERYTHING = replace(NOTHING, new_blocking=True, surfaced=True, answered=True, resolved_unknown=True, unresolved=True)
SWEEP, PROBE = DirectiveKind.RE_SWEEP, DirectiveKind.RE_PROBE
CONTRADICTS, SCOPE = DirectiveReason.NEW_BLOCKING_CONTRADICTS_CONTEXT, DirectiveReason.RESPONSE_CHANGES_SCOPE
CHAIN, CASCADE = DirectiveReason.NEW_DEPENDENCY_CHAIN, DirectiveReason.CASCADE_NOT_EXPLORED
GRANTED = [
    (SWEEP, CONTRADICTS, replace(NOTHING, new_blocking=True, surfaced=True)),
    (SWEEP, SCOPE, replace(NOTHING, answered=True)),
    (PROBE, CHAIN, replace(NOTHING, resolved_unknown=True)),
    (PROBE, CASCADE, replace(NOTHING, unresolved=True)),
]
REFUSED = [
    (SWEEP, CONTRADICTS, replace(EVERYTHING, new_blocking=False), "no BLOCKING challenge came in"),
    (SWEEP, CONTRADICTS, replace(EVERYTHING, surfaced=False), "no BLOCKING challenge came in"),
    (SWEEP, SCOPE, replace(EVERYTHING, answered=False), "the person has answered nothing"),
    (PROBE, CHAIN, replace(EVERYTHING, resolved_unknown=False), "no unknown was resolved"),
    (PROBE, CASCADE, replace(EVERYTHING, unresolved=False), "no challenge is UNRESOLVED"),
    (SWEEP, CHAIN, EVERYTHING, "a RE-SWEEP is given for new-blocking-contradicts-context, response-changes-scope"),
    (SWEEP, CASCADE, EVERYTHING, "a RE-SWEEP is given for"),
    (PROBE, CONTRADICTS, EVERYTHING, "a RE-PROBE is given for new-dependency-chain, cascade-not-explored"),
    (PROBE, SCOPE, EVERYTHING, "a RE-PROBE is given for"),
    (SWEEP, None, EVERYTHING, "a RE-SWEEP is given for"),
    (PROBE, None, EVERYTHING, "a RE-PROBE is given for"),
]


@pytest.mark.parametrize(("kind", "reason", "it"), GRANTED)
def test_each_condition_alone_is_enough(kind: DirectiveKind, reason: DirectiveReason, it: Circumstances) -> None:
    assert why_not(directive(kind, reason), it) == ""


@pytest.mark.parametrize(("kind", "reason", "it", "why"), REFUSED)
def test_without_its_condition_nothing_else_helps(
    kind: DirectiveKind, reason: DirectiveReason | None, it: Circumstances, why: str
) -> None:
    assert why_not(directive(kind, reason), it).startswith(why)


@pytest.mark.parametrize(("kind", "reason"), CONDITIONS)
def test_nothing_is_done_again_in_the_last_iteration_or_for_minor_challenges(
    kind: DirectiveKind, reason: DirectiveReason
) -> None:
    again = directive(kind, reason)
    assert why_not(again, EVERYTHING) == ""
    assert why_not(again, replace(EVERYTHING, last=True)) == "no iteration comes after this one"
    assert why_not(again, replace(EVERYTHING, only_minor_left=True)) == "nothing but MINOR challenges is left"


def test_every_reason_has_a_condition() -> None:
    assert {reason for _, reason in CONDITIONS} == set(DirectiveReason)
    assert set(CONDITIONS) == {(kind, reason) for kind, reason, _ in GRANTED}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (directive(SWEEP, SCOPE), "RE-SWEEP (response-changes-scope): the store"),
        (directive(DirectiveKind.NOTE), "NOTE: the store"),
        (raising(Mode.PROBE, "Grep", 3), "RAISE-BUDGET probe Grep +3: more to read"),
        (raising(None, "Grep", 3), "RAISE-BUDGET ? Grep +3: more to read"),
    ],
)
def test_a_directive_in_words(said: Directive, words: str) -> None:
    assert in_words(said) == words
