"""When a sweep or a probe may be done again, or a budget be raised: the table, and the loop that uses it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofstone.agents.roles.models.plan_gate import Directive, DirectiveKind, DirectiveReason, ResearchMode
from proofstone.agents.roles.models.plan_gate_records import (
    ChallengeOrigin,
    ChallengeStatus,
    SurfacedImpact,
    UnknownResolution,
)
from proofstone.agents.rules.tool_budgets import BudgetKind
from proofstone.plan_gate.models import PlanEventKind
from proofstone.plan_gate.rules.decision import (
    DIRECTIVE_CONDITIONS,
    DirectiveContext,
    describe_directive,
    explain_refused_directive,
)
from proofstone.plan_gate.rules.effects import AskChallenges, AskPlanResearch
from tests.plan_gate.talk import (
    BLOCKING,
    MINOR,
    SIGNIFICANT,
    Script,
    challenges,
    context,
    directive,
    entering,
    follow,
    heard,
    raising,
    resolved,
    resolving,
    ruling,
    subject,
    surfaced,
    synthesis,
    unknown,
    unresolving,
)
from tests.rows import each_row

UNRESOLVED = ChallengeStatus.UNRESOLVED


PAIR = frozenset({("C1", "S1")})
NOTHING = DirectiveContext(
    is_last=False,
    has_only_minor=False,
    contradictions=frozenset(),
    has_answer=False,
    has_resolved_unknown=False,
    has_unresolved=False,
)
EVERYTHING = replace(NOTHING, contradictions=PAIR, has_answer=True, has_resolved_unknown=True, has_unresolved=True)
SWEEP, PROBE = DirectiveKind.RE_SWEEP, DirectiveKind.RE_PROBE
CONTRADICTS, SCOPE = DirectiveReason.NEW_BLOCKING_CONTRADICTS_CONTEXT, DirectiveReason.RESPONSE_CHANGES_SCOPE
CHAIN, CASCADE = DirectiveReason.NEW_DEPENDENCY_CHAIN, DirectiveReason.CASCADE_NOT_EXPLORED
GRANTED = [
    (SWEEP, CONTRADICTS, replace(NOTHING, contradictions=PAIR)),
    (SWEEP, SCOPE, replace(NOTHING, has_answer=True)),
    (PROBE, CHAIN, replace(NOTHING, has_resolved_unknown=True)),
    (PROBE, CASCADE, replace(NOTHING, has_unresolved=True)),
]
REFUSED = [
    (
        SWEEP,
        CONTRADICTS,
        replace(EVERYTHING, contradictions=frozenset({("C1", "S2")})),
        "it names no BLOCKING challenge",
    ),
    (SWEEP, SCOPE, replace(EVERYTHING, has_answer=False), "the person has answered nothing"),
    (PROBE, CHAIN, replace(EVERYTHING, has_resolved_unknown=False), "no unknown was resolved"),
    (PROBE, CASCADE, replace(EVERYTHING, has_unresolved=False), "no challenge is UNRESOLVED"),
    (SWEEP, CHAIN, EVERYTHING, "a RE-SWEEP is given for new-blocking-contradicts-context, response-changes-scope"),
    (SWEEP, CASCADE, EVERYTHING, "a RE-SWEEP is given for"),
    (PROBE, CONTRADICTS, EVERYTHING, "a RE-PROBE is given for new-dependency-chain, cascade-not-explored"),
    (PROBE, SCOPE, EVERYTHING, "a RE-PROBE is given for"),
    (SWEEP, None, EVERYTHING, "a RE-SWEEP is given for"),
    (PROBE, None, EVERYTHING, "a RE-PROBE is given for"),
]


@pytest.mark.parametrize(("kind", "reason", "it"), GRANTED)
@pytest.mark.seed("plan-gate", "resweep-conditions")
def test_each_condition_alone_is_enough(kind: DirectiveKind, reason: DirectiveReason, it: DirectiveContext) -> None:
    assert explain_refused_directive(directive(kind, reason), it) == ""


@each_row(("kind", "reason", "it", "why"), REFUSED)
@pytest.mark.seed("plan-gate", "resweep-conditions")
def test_without_its_condition_nothing_else_helps(
    kind: DirectiveKind, reason: DirectiveReason | None, it: DirectiveContext, why: str
) -> None:
    assert explain_refused_directive(directive(kind, reason), it).startswith(why)


@pytest.mark.parametrize(("kind", "reason"), DIRECTIVE_CONDITIONS)
@pytest.mark.seed("plan-gate", "resweep-not")
def test_nothing_is_done_again_in_the_last_iteration_or_for_minor_challenges(
    kind: DirectiveKind, reason: DirectiveReason
) -> None:
    again = directive(kind, reason)
    assert explain_refused_directive(again, EVERYTHING) == ""
    assert explain_refused_directive(again, replace(EVERYTHING, is_last=True)) == "this is the last iteration"
    refusal = "" if reason is SCOPE else "only MINOR challenges are left"
    assert explain_refused_directive(again, replace(EVERYTHING, has_only_minor=True)) == refusal


def test_every_reason_has_a_condition() -> None:
    assert {reason for _, reason in DIRECTIVE_CONDITIONS} == set(DirectiveReason)
    assert set(DIRECTIVE_CONDITIONS) == {(kind, reason) for kind, reason, _ in GRANTED}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (directive(SWEEP, SCOPE), "RE-SWEEP (response-changes-scope): the store"),
        (directive(DirectiveKind.NOTE), "NOTE: the store"),
        (raising(ResearchMode.PROBE, "Grep", 3), "RAISE-BUDGET probe Grep +3: more to read"),
        (raising(None, "Grep", 3), "RAISE-BUDGET ? Grep +3: more to read"),
    ],
)
def test_a_directive_in_words(said: Directive, words: str) -> None:
    assert describe_directive(said) == words


# In the loop.

ONE_OPEN: Script = {"challenger 1": challenges(SIGNIFICANT)}
AGAIN: list[tuple[str, Directive, Script, tuple[str, ...], bool]] = [
    (
        "new blocking, context there",
        directive(SWEEP, CONTRADICTS),
        {"challenger 1": challenges(BLOCKING), "surface 1": surfaced(context())},
        (),
        True,
    ),
    ("new blocking, no context", directive(SWEEP, CONTRADICTS), {"challenger 1": challenges(BLOCKING)}, (), False),
    (
        "context, nothing blocking",
        directive(SWEEP, CONTRADICTS),
        {**ONE_OPEN, "surface 1": surfaced(context())},
        (),
        False,
    ),
    ("nothing answered", directive(SWEEP, SCOPE), ONE_OPEN, (), False),
    ("an unknown resolved", directive(PROBE, CHAIN), {**ONE_OPEN, "resolve 1": resolved(unknown("C1"))}, (), True),
    (
        "an unknown not resolved",
        directive(PROBE, CHAIN),
        {**ONE_OPEN, "resolve 1": resolved(unknown("C1", resolution=UnknownResolution.UNRESOLVABLE))},
        (),
        False,
    ),
    ("none", directive(PROBE, CHAIN), ONE_OPEN, (), False),
    ("one unresolved", directive(PROBE, CASCADE), {"challenger 1": challenges(*[SIGNIFICANT] * 2)}, ("C1",), True),
    ("none unresolved", directive(PROBE, CASCADE), ONE_OPEN, (), False),
    ("no reason", directive(SWEEP), ONE_OPEN, (), False),
]


@each_row(("again", "script", "unresolved", "granted"), [row[1:] for row in AGAIN])
def test_a_sweep_or_a_probe_is_done_again_under_its_condition(
    again: Directive, script: Script, unresolved: tuple[str, ...], granted: bool
) -> None:
    talk = follow(subject(), {**script, "synthesis 1": synthesis(*unresolving(*unresolved), directives=(again,))})
    mode = "surface" if again.kind is SWEEP else "probe"
    assert (f"{mode} 2" in talk.asked) == granted
    assert bool(talk.states[0].synthesizer_directives) == granted
    assert bool(talk.events(PlanEventKind.REFUSED)) != granted
    if granted:
        need = talk.need(f"{mode} 2")
        assert isinstance(need, AskPlanResearch) and need.directives == ("the store",)
        assert f"{mode} 3" not in talk.asked, "it is done once"


def test_what_was_blocking_before_is_not_new() -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING),
        "surface 1": surfaced(context()),
        "synthesis 2": synthesis(directives=(directive(SWEEP, CONTRADICTS),)),
    }
    assert "surface 3" not in follow(subject(), script).asked


def test_an_unknown_that_was_resolved_before_is_not_new() -> None:
    script: Script = {
        **ONE_OPEN,
        "resolve 1": resolved(unknown("C1")),
        "synthesis 2": synthesis(directives=(directive(PROBE, CHAIN),)),
    }
    assert "probe 3" not in follow(subject(), script).asked


def test_an_answer_of_the_person_may_have_the_sweep_done_again_in_the_iteration_that_it_starts() -> None:
    sweep = directive(SWEEP, SCOPE)
    script: Script = {
        "challenger 1": challenges(BLOCKING),
        "synthesis 1": synthesis(*unresolving("C1"), directives=(sweep,)),
        "person 1": {"C1": "yes"},
        "synthesis 2": synthesis(directives=(sweep,)),
    }
    talk = follow(subject(), script)
    assert [name for name in talk.asked if name.startswith("surface")] == ["surface 1", "surface 3"]


def test_an_answer_that_settles_the_last_challenge_may_have_the_sweep_done_again() -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING),
        "synthesis 1": synthesis(*unresolving("C1")),
        "person 1": {"C1": "only for the shop in Bern"},
        "synthesis 2": synthesis(
            ruling("C1", ChallengeStatus.RESOLVED, "person"), directives=(directive(SWEEP, SCOPE),)
        ),
    }
    talk = follow(subject(), script)
    assert [name for name in talk.asked if name.startswith("surface")] == ["surface 1", "surface 3"]
    assert [state.convergence.status.value for state in talk.states] == ["BLOCKED", "CONTINUE", "CONVERGED"]


@pytest.mark.seed("plan-gate", "re-sweep-names-contradiction")
def test_a_sweep_for_a_contradiction_names_what_contradicts_what() -> None:
    against = SurfacedImpact.CONTRADICTS_PLAN
    for found in (context(impact=against), context()):
        script: Script = {
            "challenger 1": challenges(BLOCKING),
            "surface 1": surfaced(found),
            "synthesis 1": synthesis(directives=(directive(SWEEP, CONTRADICTS),)),
        }
        assert ("surface 2" in follow(subject(), script).asked) == (found.impact is not against)


def test_nothing_is_done_again_in_the_last_iteration_though_the_person_has_answered() -> None:
    script: Script = {
        "challenger 1": challenges(BLOCKING),
        "synthesis 2": synthesis(*unresolving("C1")),
        "person 2": {"C1": "yes"},
        "synthesis 3": synthesis(directives=(directive(SWEEP, SCOPE),)),
    }
    talk = follow(subject(), script)
    assert talk.events(PlanEventKind.REFUSED) == [
        "RE-SWEEP (response-changes-scope): the store: not granted, this is the last iteration"
    ]


def test_nothing_is_done_again_for_minor_challenges() -> None:
    script: Script = {
        "challenger 1": challenges(MINOR),
        "synthesis 1": synthesis(*unresolving("C1"), directives=(directive(PROBE, CASCADE),)),
    }
    talk = follow(subject(), script)
    assert "only MINOR challenges are left" in talk.events(PlanEventKind.REFUSED)[0]


@pytest.mark.seed("plan-gate", "budget-raise", "raised-budget-one-iteration")
def test_a_raised_budget_is_seen_by_whoever_it_is_for_and_holds_for_one_iteration() -> None:
    script: Script = {
        **ONE_OPEN,
        "synthesis 1": synthesis(directives=(raising(ResearchMode.RESOLVE, "web_search", 2),)),
    }
    talk = follow(subject(), script)
    for name, limit in (("resolve 1", 3), ("resolve 2", 5), ("resolve 3", 3)):
        need = talk.need(name)
        assert isinstance(need, AskPlanResearch)
        assert need.snapshot.budget.limit(ResearchMode.RESOLVE, BudgetKind.WEB_SEARCH) == limit
    assert talk.events(PlanEventKind.BUDGET) == ["WebSearch of resolve: 2 more were granted, more to read"]
    assert talk.states[1].synthesizer_directives == (), "each iteration has its own"
    assert talk.states[0].synthesizer_directives == ("RAISE-BUDGET resolve web_search +2: more to read",)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (raising(None), "it names no mode"),
        (raising(tool="hammer"), "no tool that has a budget"),
        (raising(by=0), "no number of calls"),
        (raising(ResearchMode.SURFACE, "WebSearch"), "that budget cannot be raised further"),
    ],
)
def test_a_budget_that_cannot_be_raised_is_not(said: Directive, why: str) -> None:
    talk = follow(subject(), {**ONE_OPEN, "synthesis 1": synthesis(directives=(said,))})
    (refused,) = talk.events(PlanEventKind.REFUSED)
    assert why in refused
    assert (talk.events(PlanEventKind.BUDGET), talk.states[0].synthesizer_directives) == ([], ())


def test_a_budget_is_raised_by_no_more_than_there_is_room_for() -> None:
    talk = follow(
        subject(), {**ONE_OPEN, "synthesis 1": synthesis(directives=(raising(ResearchMode.PROBE, "Grep", 8),))}
    )
    assert talk.events(PlanEventKind.BUDGET) == ["Grep of probe: 4 more were granted, more to read"]


def test_at_the_end_no_budget_is_raised() -> None:
    talk = follow(subject(), {**ONE_OPEN, "synthesis 3": synthesis(directives=(raising(),))})
    assert talk.events(PlanEventKind.BUDGET) == []
    assert "this is the last iteration" in talk.events(PlanEventKind.REFUSED)[0]


def test_a_note_is_told_to_everybody_in_the_next_iteration_and_not_after_it() -> None:
    talk = follow(subject(), {**ONE_OPEN, "synthesis 1": synthesis(directives=(directive(DirectiveKind.NOTE),))})
    for name, notes in (("challenger 2", ("the store",)), ("challenger 3", ())):
        asked = talk.need(name)
        assert isinstance(asked, AskChallenges) and asked.directives == notes
    for name, notes in (("resolve 1", ()), ("resolve 2", ("the store",)), ("resolve 3", ())):
        need = talk.need(name)
        assert isinstance(need, AskPlanResearch) and need.directives == notes


def test_a_note_is_told_to_whoever_looks_again_too() -> None:
    both = (directive(DirectiveKind.NOTE), directive(PROBE, CHAIN))
    script: Script = {**ONE_OPEN, "resolve 1": resolved(unknown("C1")), "synthesis 1": synthesis(directives=both)}
    need = follow(subject(), script).need("probe 2")
    assert isinstance(need, AskPlanResearch) and need.directives == ("the store", "the store")


@pytest.mark.parametrize("rules", [True, False])
def test_what_the_rules_brought_or_was_settled_at_once_is_nothing_new_that_blocks(rules: bool) -> None:
    there = [entering(BLOCKING, origin=ChallengeOrigin.RULES)] if rules else []
    script: Script = {
        "challenger 1": challenges(SIGNIFICANT) if rules else challenges(SIGNIFICANT, BLOCKING),
        "surface 1": surfaced(context()),
        "synthesis 1": synthesis(*(() if rules else resolving("C2")), directives=(directive(SWEEP, CONTRADICTS),)),
    }
    talk = follow(subject(*there), script)
    assert "synthesis 2" in talk.asked and "surface 2" not in talk.asked


def test_calls_beyond_a_budget_are_told() -> None:
    talk = follow(subject(), {"surface 1": heard(surfaced(), "Grep: refused, 4 of 4 used")})
    assert talk.events(PlanEventKind.BUDGET) == ["researcher:surface: Grep: refused, 4 of 4 used"]
